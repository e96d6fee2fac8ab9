//! Stages: a computed operation with its loops.
//!
//! A stage has root axes (its dimensions, then its reduce axes), relations that replace axes by others, and the
//! leaves that are left: the loops, outermost first. Rewrites such as rfactor replace axes and body and keep the
//! output buffers, so that consumers need no change.

use std::collections::BTreeMap;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::for_each_load;
use coulis_ir::{Attr, Buffer, Expr, LoopKind, MemScope, ThreadTag, Var};
use coulis_tensor::{Body, IterKind, IterVar, Program, Reduction};

use crate::error::ScheduleError;
use crate::fold;
use crate::names::{identifier, name_of};

/// Identity of a stage within its schedule; survives all rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageId(pub u32);

/// Where a stage is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// In a loop nest of its own.
    Root,
    /// In place of each read of it.
    Inline,
    /// At the head of the body of a loop of another stage.
    At(StageId, IterVar),
}

/// How axes replace others.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// `parent = outer * extent(inner) + inner`, or what [`SplitBy::parent_of`] says.
    Split {
        /// The axis that is replaced.
        parent: IterVar,
        /// The outer loop.
        outer: IterVar,
        /// The inner loop.
        inner: IterVar,
        /// What fixes the extents.
        by: SplitBy,
    },
    /// `outer = fused // extent(inner)`, `inner = fused % extent(inner)`.
    Fuse {
        /// The first of the pair.
        outer: IterVar,
        /// The second of the pair.
        inner: IterVar,
        /// The loop that replaces both.
        fused: IterVar,
    },
    /// A loop of one iteration.
    Singleton {
        /// The loop.
        axis: IterVar,
    },
}

/// What fixes the extents of a split.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitBy {
    /// Extent of the inner loop.
    Factor(Expr),
    /// Extent of the outer loop.
    Nparts(Expr),
    /// Extent of the inner loop, whose last run begins among the points of the one before it and ends with the axis.
    Overlap(Expr),
}

impl SplitBy {
    /// The value of an axis of `whole` points at `outer` and `inner`, whose loop runs `each` times.
    pub(crate) fn parent_of(&self, (outer, inner): (&Expr, &Expr), each: &Expr, whole: &Expr) -> Expr {
        let first = fold::mul(outer, each);
        match self {
            SplitBy::Factor(_) | SplitBy::Nparts(_) => fold::add(&first, inner),
            SplitBy::Overlap(_) if fold::floormod(whole, each).is_int(0) => fold::add(&first, inner),
            SplitBy::Overlap(_) => {
                let analyzer = Analyzer::new();
                let last = fold::max(&analyzer, &fold::sub(whole, each), &fold::int(0, whole.dtype()));
                fold::add(&fold::min(&analyzer, &first, &last), inner)
            }
        }
    }
}

/// What a loop is marked as.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AxisAttr {
    /// How it runs; serial when absent.
    pub kind: Option<LoopKind>,
    /// The block or thread index that it runs over.
    pub thread: Option<ThreadTag>,
    /// Remarks on it, in order.
    pub pragmas: Vec<(String, Attr)>,
    /// Whether each execution of it is a run of the reducer's quick step.
    pub is_run: bool,
    /// Whether its iterations fold chains of a run.
    pub is_chain: bool,
    /// Whether its iterations are passed over once the state is settled.
    pub until_settled: bool,
}

/// A demand on the stride of one dimension of an intermediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageAlign {
    /// The dimension.
    pub dim: usize,
    /// `stride % factor == offset`.
    pub factor: i64,
    /// See `factor`.
    pub offset: i64,
}

impl StorageAlign {
    /// The least extent of the next dimension, `extent` or more, that gives such a stride.
    pub(crate) fn padded(&self, extent: i128) -> i128 {
        extent + (i128::from(self.offset) - extent).rem_euclid(i128::from(self.factor))
    }
}

/// How the parts of a reduction over blocks come together. Either way the order of the fold is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridFinish {
    /// A second launch folds them.
    SecondKernel,
    /// The block that takes the last ticket folds them.
    LastBlock,
}

impl GridFinish {
    /// Every way.
    pub const ALL: [GridFinish; 2] = [GridFinish::SecondKernel, GridFinish::LastBlock];

    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            GridFinish::SecondKernel => "second_kernel",
            GridFinish::LastBlock => "last_block",
        }
    }

    /// The way of that name.
    pub fn from_name(name: &str) -> Option<GridFinish> {
        GridFinish::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// Rows whose elements a stage takes from a boundary on, and those before it last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// The axis that counts them in that order.
    pub along: Var,
    /// Elements of the row before its boundary, over the stage's axes.
    pub by: Expr,
    /// The most that `by` is in any row.
    pub most: Expr,
    /// Elements of a row.
    pub length: Expr,
    /// What stands in the body for the place of the element in its row.
    pub place: Var,
    /// Whether the result is stored in that place, rather than in the order of the axis.
    pub stores: bool,
    /// Where the axis is longer than a row.
    pub filled: Option<Filled>,
}

/// Rows that are made longer, to whole accesses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filled {
    /// Elements of an access.
    pub lanes: Expr,
    /// Accesses that every row surely has from its boundary on.
    pub whole: Expr,
    /// What is stored for the elements that no row has, if anything.
    pub with: Option<Expr>,
}

/// A computed operation and its loops.
#[derive(Clone, Debug)]
pub struct Stage {
    pub(crate) id: StageId,
    pub(crate) name: String,
    pub(crate) outputs: Vec<Buffer>,
    /// How many of the outputs the program knows of; the others are fields of a state that are no results.
    pub(crate) n_results: usize,
    pub(crate) axes: Vec<IterVar>,
    pub(crate) body: Body,
    pub(crate) all_axes: Vec<IterVar>,
    pub(crate) leaves: Vec<IterVar>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) attrs: BTreeMap<Var, AxisAttr>,
    pub(crate) attach: Attach,
    pub(crate) scope: Option<MemScope>,
    pub(crate) aligns: Vec<StorageAlign>,
    pub(crate) store_predicate: Option<Expr>,
    pub(crate) finish: Option<GridFinish>,
    pub(crate) double_buffer: bool,
    pub(crate) from_first: bool,
    /// The axes that count partial states of one fold, that another stage combines.
    pub(crate) factored: Vec<Factored>,
    pub(crate) clamped: bool,
    pub(crate) turn: Option<Turn>,
    pub(crate) is_output: bool,
    /// How many of the results are arguments.
    pub(crate) n_args: usize,
}

/// An axis that counts partial states of one fold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factored {
    /// Which of the stage's axes it is.
    pub dim: usize,
    /// The reduce axes of the stage around it in the order of the reduction: at each of their steps all states have elements
    /// that are before those of the next.
    pub around: Vec<IterVar>,
}

/// What an axis derives from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub data: bool,
    pub reduce: bool,
}

impl Stage {
    pub(crate) fn new(
        id: StageId,
        name: String,
        outputs: Vec<Buffer>,
        axes: Vec<IterVar>,
        body: Body,
    ) -> Stage {
        let mut stage = Stage {
            id,
            name,
            n_results: outputs.len(),
            outputs,
            axes: Vec::new(),
            body: Body::Plain(Vec::new()),
            all_axes: Vec::new(),
            leaves: Vec::new(),
            relations: Vec::new(),
            attrs: BTreeMap::new(),
            attach: Attach::Root,
            scope: None,
            aligns: Vec::new(),
            store_predicate: None,
            finish: None,
            double_buffer: false,
            from_first: false,
            factored: Vec::new(),
            clamped: false,
            turn: None,
            is_output: false,
            n_args: 0,
        };
        stage.redefine(axes, body);
        stage
    }

    /// Replaces axes and body, and forgets all that was done to the loops.
    pub(crate) fn redefine(&mut self, axes: Vec<IterVar>, body: Body) {
        self.axes = axes;
        self.body = body;
        self.leaves = self.axes.iter().chain(self.reduce_axes()).cloned().collect();
        self.all_axes = self.leaves.clone();
        self.relations.clear();
        self.attrs.clear();
        self.store_predicate = None;
        self.finish = None;
        self.factored.clear();
    }

    /// Takes note of which results the caller keeps.
    pub(crate) fn note_args(&mut self, program: &Program) {
        let is_arg = |output: &&Buffer| program.args().iter().any(|arg| arg.buffer() == *output);
        self.n_args = self.outputs.iter().filter(is_arg).count();
    }

    /// Whether the caller keeps a result.
    pub(crate) fn is_arg(&self) -> bool {
        self.n_args > 0
    }

    /// Whether the caller keeps some of the results and not all.
    pub(crate) fn is_arg_in_part(&self) -> bool {
        self.is_arg() && self.n_args < self.outputs.len()
    }

    /// Identity.
    pub fn id(&self) -> StageId {
        self.id
    }

    /// Whether results are stored under a condition (`set_store_predicate`).
    pub fn stores_some(&self) -> bool {
        self.store_predicate.is_some()
    }

    /// Name: the tensor's, `B.rf` for the factored part of `B`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Axes of the dimensions, as the operation is defined now.
    pub fn axes(&self) -> &[IterVar] {
        &self.axes
    }

    /// Axes that are folded away, as the operation is defined now.
    pub fn reduce_axes(&self) -> &[IterVar] {
        match &self.body {
            Body::Reduce(reduction) => &reduction.axes,
            Body::Plain(_) => &[],
        }
    }

    /// The loops, outermost first.
    pub fn leaves(&self) -> &[IterVar] {
        &self.leaves
    }

    /// Buffers of the results.
    pub fn outputs(&self) -> &[Buffer] {
        &self.outputs[..self.n_results]
    }

    /// What is computed now.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Where it is computed.
    pub fn attach(&self) -> &Attach {
        &self.attach
    }

    /// Storage scope, if it was set.
    pub fn scope(&self) -> Option<MemScope> {
        self.scope
    }

    /// How a loop is marked.
    pub fn kind_of(&self, axis: &IterVar) -> LoopKind {
        self.attrs.get(axis.var()).and_then(|a| a.kind).unwrap_or(LoopKind::Serial)
    }

    /// The block or thread index that a loop is bound to.
    pub fn thread_of(&self, axis: &IterVar) -> Option<ThreadTag> {
        self.attrs.get(axis.var()).and_then(|a| a.thread)
    }

    /// Whether an axis, or a loop that replaced it, is bound to a block or thread index.
    pub(crate) fn leads_to_thread(&self, axis: &IterVar) -> bool {
        if self.leaves.contains(axis) {
            return self.thread_of(axis).is_some_and(|tag| tag != ThreadTag::VThread);
        }
        self.relations.iter().any(|relation| match relation {
            Relation::Split { parent, outer, inner, .. } if parent == axis => {
                self.leads_to_thread(outer) || self.leads_to_thread(inner)
            }
            Relation::Fuse { outer, inner, fused } if outer == axis || inner == axis => {
                self.leads_to_thread(fused)
            }
            Relation::Split { .. } | Relation::Fuse { .. } | Relation::Singleton { .. } => false,
        })
    }

    /// Refuses a loop whose iterations may compute points that others of it compute too, where they run at the same time: the outer one of
    /// two that overlap, and for threads the inner one too, as each of its iterations may run all of the outer one.
    pub(crate) fn check_computes_once(
        &self,
        primitive: &'static str,
        axis: &IterVar,
        by_threads: bool,
    ) -> Result<(), ScheduleError> {
        if !self.computes_again(axis, by_threads) {
            return Ok(());
        }
        let wanted = "a loop whose iterations compute points of their own, as they run at the same time";
        let (stage, found) = (self.name.clone(), format!("`{}`, which overlaps", self.axis_name(axis)));
        Err(ScheduleError::BadValue { primitive, stage, what: "axis", wanted, found })
    }

    fn computes_again(&self, axis: &IterVar, by_threads: bool) -> bool {
        self.relations.iter().any(|relation| match relation {
            Relation::Split { parent, outer, inner, by } if outer == axis || inner == axis => {
                let overlaps = matches!(by, SplitBy::Overlap(_)) && (outer == axis || by_threads);
                overlaps || self.computes_again(parent, by_threads)
            }
            Relation::Fuse { outer, inner, fused } if fused == axis => {
                self.computes_again(outer, by_threads) || self.computes_again(inner, by_threads)
            }
            Relation::Split { .. } | Relation::Fuse { .. } | Relation::Singleton { .. } => false,
        })
    }

    /// Whether some loops overlap.
    pub(crate) fn overlaps(&self) -> bool {
        self.relations
            .iter()
            .any(|relation| matches!(relation, Relation::Split { by: SplitBy::Overlap(_), .. }))
    }

    /// The name of an axis in traces: its own as an identifier, made unique within the stage by `_1`, `_2`, ….
    pub fn axis_name(&self, axis: &IterVar) -> String {
        let name = name_of(&self.all_axes, IterVar::name, |other| other == axis);
        name.unwrap_or_else(|| identifier(axis.name()))
    }

    /// Names of some axes.
    pub(crate) fn names(&self, axes: &[IterVar]) -> Vec<String> {
        axes.iter().map(|a| self.axis_name(a)).collect()
    }

    /// The axis of that trace name.
    pub(crate) fn axis_named(&self, name: &str) -> Option<IterVar> {
        self.all_axes.iter().find(|a| self.axis_name(a) == name).cloned()
    }

    /// Buffers that the body reads, in order of first read.
    pub fn reads(&self) -> Vec<Buffer> {
        let mut found: Vec<Buffer> = Vec::new();
        let mut seen = Default::default();
        for expr in self.body.exprs() {
            for_each_load(expr, &mut seen, &mut |buffer, _| {
                if !found.contains(buffer) {
                    found.push(buffer.clone());
                }
            });
        }
        found
    }

    /// What an axis derives from.
    pub(crate) fn origin(&self, axis: &IterVar) -> Origin {
        if self.axes.contains(axis) {
            return Origin { data: true, reduce: false };
        }
        if self.reduce_axes().contains(axis) {
            return Origin { data: false, reduce: true };
        }
        for relation in &self.relations {
            match relation {
                Relation::Split { parent, outer, inner, .. } if outer == axis || inner == axis => {
                    return self.origin(parent);
                }
                Relation::Fuse { outer, inner, fused } if fused == axis => {
                    let (a, b) = (self.origin(outer), self.origin(inner));
                    return Origin { data: a.data || b.data, reduce: a.reduce || b.reduce };
                }
                Relation::Singleton { axis: single } if single == axis => {
                    return Origin { data: true, reduce: false };
                }
                Relation::Split { .. } | Relation::Fuse { .. } | Relation::Singleton { .. } => {}
            }
        }
        Origin::default()
    }

    /// Root axes that an axis derives from.
    pub(crate) fn roots_of(&self, axis: &IterVar) -> Vec<IterVar> {
        if self.axes.contains(axis) || self.reduce_axes().contains(axis) {
            return vec![axis.clone()];
        }
        for relation in &self.relations {
            match relation {
                Relation::Split { parent, outer, inner, .. } if outer == axis || inner == axis => {
                    return self.roots_of(parent);
                }
                Relation::Fuse { outer, inner, fused } if fused == axis => {
                    let mut roots = self.roots_of(outer);
                    roots.extend(self.roots_of(inner));
                    return roots;
                }
                Relation::Split { .. } | Relation::Fuse { .. } | Relation::Singleton { .. } => {}
            }
        }
        Vec::new()
    }

    /// The fold of a stage that is not scheduled, over that axis and maybe others.
    pub(crate) fn reduction_as_made(
        &self,
        primitive: &'static str,
        axis: &IterVar,
    ) -> Result<&Reduction, ScheduleError> {
        self.leaf_position(primitive, axis)?;
        let Body::Reduce(reduction) = &self.body else {
            let (stage, wanted, found) = (self.name.clone(), "a reduction", "no reduction");
            return Err(ScheduleError::WrongBody { primitive, stage, wanted, found });
        };
        if axis.kind() != IterKind::Reduce {
            return Err(self.wrong_kind(primitive, axis, IterKind::Reduce));
        }
        if !self.relations.is_empty() || !self.attrs.is_empty() || !self.aligns.is_empty() {
            let (stage, found) = (self.name.clone(), "loops that were scheduled".to_owned());
            let (what, wanted) = ("stage", "one whose loops are as they were made");
            return Err(ScheduleError::BadValue { primitive, stage, what, wanted, found });
        }
        Ok(reduction)
    }

    /// The position of a leaf; why there is none otherwise.
    pub(crate) fn leaf_position(
        &self,
        primitive: &'static str,
        axis: &IterVar,
    ) -> Result<usize, ScheduleError> {
        if let Some(position) = self.leaves.iter().position(|leaf| leaf == axis) {
            return Ok(position);
        }
        let stage = self.name.clone();
        let legal = self.names(&self.leaves);
        if !self.all_axes.contains(axis) {
            let axis = axis.name().to_owned();
            return Err(ScheduleError::ForeignAxis { primitive, stage, axis, legal });
        }
        let history = self
            .relations
            .iter()
            .find_map(|relation| match relation {
                Relation::Split { parent, outer, inner, .. } if parent == axis => Some(format!(
                    "was split into `{}` and `{}`",
                    self.axis_name(outer),
                    self.axis_name(inner)
                )),
                Relation::Fuse { outer, inner, fused } if outer == axis || inner == axis => {
                    Some(format!("was fused into `{}`", self.axis_name(fused)))
                }
                Relation::Split { .. } | Relation::Fuse { .. } | Relation::Singleton { .. } => None,
            })
            .unwrap_or_else(|| "is no loop".to_owned());
        Err(ScheduleError::NotALeaf { primitive, stage, axis: self.axis_name(axis), history, legal })
    }

    /// Refuses an axis that is marked as anything but a plain serial loop.
    pub(crate) fn check_unmarked(
        &self,
        primitive: &'static str,
        axis: &IterVar,
    ) -> Result<(), ScheduleError> {
        let Some(attr) = self.attrs.get(axis.var()) else { return Ok(()) };
        let found = match attr.kind {
            _ if attr.thread.is_some() => "bound to a thread index",
            Some(LoopKind::Parallel) => "parallel",
            Some(LoopKind::Unrolled) => "unrolled",
            Some(LoopKind::Vectorized) => "vectorized",
            Some(LoopKind::Serial) | None if attr.pragmas.is_empty() => return Ok(()),
            Some(LoopKind::Serial) | None => "annotated",
        };
        let (stage, axis) = (self.name.clone(), self.axis_name(axis));
        Err(ScheduleError::AlreadyMarked { primitive, stage, axis, found })
    }

    /// Refuses a stage that takes rows from a boundary on.
    pub(crate) fn check_unturned(&self, primitive: &'static str) -> Result<(), ScheduleError> {
        if self.turn.is_none() {
            return Ok(());
        }
        let (wanted, found) =
            ("a stage that takes rows from their begin", "one that takes them from a boundary on");
        Err(ScheduleError::WrongBody { primitive, stage: self.name.clone(), wanted, found })
    }

    /// Refuses an axis that is bound to a block or thread index.
    pub(crate) fn check_unbound(&self, primitive: &'static str, axis: &IterVar) -> Result<(), ScheduleError> {
        if self.thread_of(axis).is_some() { self.check_unmarked(primitive, axis) } else { Ok(()) }
    }

    /// A refusal of an axis of the wrong kind.
    pub(crate) fn wrong_kind(
        &self,
        primitive: &'static str,
        axis: &IterVar,
        wanted: IterKind,
    ) -> ScheduleError {
        let legal: Vec<IterVar> = self.leaves.iter().filter(|l| l.kind() == wanted).cloned().collect();
        ScheduleError::WrongKind {
            primitive,
            stage: self.name.clone(),
            axis: self.axis_name(axis),
            wanted: wanted.words(),
            found: axis.kind().words(),
            legal: self.names(&legal),
        }
    }

    /// A new axis of a name that derives from others.
    pub(crate) fn new_axis(&mut self, name: &str, like: &IterVar, kind: IterKind) -> IterVar {
        let axis = IterVar::derived(Var::size(name, like.dtype()), kind);
        self.all_axes.push(axis.clone());
        axis
    }
}
