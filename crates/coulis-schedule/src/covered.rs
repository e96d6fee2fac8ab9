//! Whether a tensor that the caller keeps is stored; and, of a stage that is computed piece by piece, inside
//! a loop, in full.
//!
//! Each iteration of the loops around computes a box that holds what its readers read there. So what all of them compute
//! holds every element that some reader reads anywhere, and all of a dimension along which every box is whole. It is
//! proved of one read, or of the boxes themselves: the indices, or where the boxes begin, in the other dimensions run
//! through a range each without a gap, independently of each other.

use coulis_ir::hash::FastMap;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Expr, LoopKind, MemScope, Node, Var};
use coulis_tensor::{IterVar, OpKind, Program};

use crate::error::ScheduleError;
use crate::fold;
use crate::infer::{self, Loop, Placed, reads_of};
use crate::interval::Interval;
use crate::launch::Launches;
use crate::ranges::{self, Domains};
use crate::schedule::{Schedule, Values};
use crate::stage::{Attach, Stage, StageId};

/// Refuses a computed argument that no stage stores as the caller holds it. Who makes a schedule need not know yet
/// which tensors are arguments, so that this is asked again of what primitives have done.
pub(crate) fn check_stored(schedule: &Schedule, program: &Program) -> Result<(), ScheduleError> {
    let computed = program.args().iter().filter(|arg| !matches!(arg.op().kind(), OpKind::Placeholder));
    for arg in computed {
        let of_arg = schedule.stages.iter().find(|stage| stage.outputs.contains(arg.buffer()));
        let (primitive, reason) = match of_arg {
            Some(stage) if stage.attach == Attach::Inline => ("compute_inline", "is to be stored"),
            Some(stage) if stage.scope.is_some_and(|scope| scope != MemScope::Global) => {
                ("set_scope", "lives in global memory")
            }
            Some(stage) if !stage.aligns.is_empty() => ("storage_align", "the caller lays it out"),
            Some(stage) if stage.double_buffer => ("double_buffer", "the caller gives its memory"),
            Some(_) => continue,
            // What is stored has other dimensions.
            None => ("join", "the caller lays it out"),
        };
        return Err(ScheduleError::Argument { primitive, stage: arg.name().to_owned(), reason });
    }
    Ok(())
}

/// An argument that is attached must be written in full, by one thread at a time.
pub(crate) fn check_argument(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    stage: &Stage,
    parent: &Stage,
    axis: &IterVar,
    (path, domains): (&[Loop], &Domains),
) -> Result<(), ScheduleError> {
    let refused = |reason| Err(argument_attached(schedule, stage, (parent, axis), reason));
    if path.iter().any(|l| l.launched().is_some()) {
        return refused("every block and thread would compute it");
    }
    let parallel = |l: &Loop| {
        let owner = schedule.stages.iter().find(|s| s.leaves.contains(&l.leaf));
        !l.is_unit() && owner.is_some_and(|s| s.kind_of(&l.leaf) == LoopKind::Parallel)
    };
    if path.iter().any(parallel) {
        return refused("parallel iterations may compute one element twice");
    }
    if !is_covered(schedule, placed, stage, path, domains) {
        return refused("not all of it is computed");
    }
    Ok(())
}

/// An argument that is attached inside a launch must be written by one block, whose threads barriers can order; so must
/// be what else its stage computes, of which each block would need global memory of its own.
pub(crate) fn check_arguments_inside(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    launches: &Launches,
) -> Result<(), ScheduleError> {
    for stage in schedule.stages.iter().filter(|s| s.is_arg()) {
        let Attach::At(parent, axis) = &stage.attach else { continue };
        let refused =
            |reason| Err(argument_attached(schedule, stage, (schedule.by_id(*parent), axis), reason));
        let Some(group) = placed.get(&stage.id).map(|at| launches.of(at.root)) else { continue };
        if group.iter().any(|index| index.tag.is_of_grid() && !index.is_unit()) {
            return refused("every block would compute it");
        }
        if !group.is_empty() && stage.is_arg_in_part() {
            return refused("a launch has no memory for those of its results that are no arguments");
        }
    }
    Ok(())
}

fn argument_attached(
    schedule: &Schedule,
    stage: &Stage,
    (parent, axis): (&Stage, &IterVar),
    reason: &'static str,
) -> ScheduleError {
    ScheduleError::ArgumentAttached {
        stage: schedule.stage_name(stage.id),
        parent: schedule.stage_name(parent.id),
        axis: parent.axis_name(axis),
        reason,
    }
}

/// Whether the boxes of `realised` hold every element of the stage, over all iterations of the loops of `path`. `placed`
/// has its consumers.
fn is_covered(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    stage: &Stage,
    path: &[Loop],
    realised: &Domains,
) -> bool {
    let declared = ranges::declared(stage);
    let mut known = schedule.analyzer();
    infer::bind(&mut known, path);
    let holds = |(lo, hi): &Interval, (min, extent): &(Expr, Expr), known: &Analyzer| {
        let end = fold::add(hi, &fold::int(1, hi.dtype()));
        fold::proves(known, BinaryOp::Le, lo, min)
            && fold::proves(known, BinaryOp::Ge, &end, &fold::add(min, extent))
    };
    let is_whole = |dim: usize| {
        let var = stage.axes[dim].var();
        let (min, extent) = &realised[var];
        let last = fold::sub(&fold::add(min, extent), &fold::int(1, extent.dtype()));
        holds(&(min.clone(), last), &declared[var], &known)
    };
    let open: Vec<usize> = (0..stage.axes.len()).filter(|dim| !is_whole(*dim)).collect();
    let known = schedule.analyzer();
    let one = || fold::int(1, stage.axes.first().map_or(coulis_ir::DType::I32, |axis| axis.dtype()));
    // Whether places that begin at these indices, and are of these extents, leave nothing out.
    let tiles = |mut runs: Runs, reader: Option<&Stage>, begins: &[Expr], extents: &[Expr]| {
        let all = open.iter().all(|dim| {
            let range = runs.of_sum(&known.simplify(&begins[*dim]), &extents[*dim]);
            range.is_some_and(|range| holds(&range, &declared[stage.axes[*dim].var()], &known))
        });
        all && path.iter().all(|l| runs.runs_at_all(reader, l))
    };
    let (begins, extents): (Vec<Expr>, Vec<Expr>) =
        stage.axes.iter().map(|axis| realised[axis.var()].clone()).unzip();
    if tiles(Runs::of_loops(path, &known), None, &begins, &extents) {
        return true;
    }
    schedule.consumers(stage).into_iter().any(|reader| {
        let Some(at) = placed.get(&reader.id) else { return false };
        reads_of(reader, &stage.outputs).iter().any(|indices| {
            let mut runs = Runs::of_loops(&at.path, &known);
            let offsets = runs.with_axes(reader, at);
            let indices: Vec<Expr> = indices.iter().map(|index| substitute_expr(index, &offsets)).collect();
            tiles(runs, Some(reader), &indices, &vec![one(); indices.len()])
        })
    })
}

/// The integers that indices run through.
struct Runs<'a> {
    known: &'a Analyzer,
    /// What varies and how many values from 0 it has: axes of the reader and loops around it.
    extents: FastMap<Var, Expr>,
    /// That of it on which indices so far depend.
    used: Vec<Var>,
}

impl<'a> Runs<'a> {
    fn of_loops(loops: &[Loop], known: &'a Analyzer) -> Runs<'a> {
        let extents = loops.iter().map(|l| (l.var.clone(), l.extent.clone())).collect();
        Runs { known, extents, used: Vec::new() }
    }

    /// Adds the axes of a reader, from their minima on; their values.
    fn with_axes(&mut self, reader: &Stage, at: &Placed) -> Values {
        let mut values = Values::default();
        for axis in reader.axes.iter().chain(reader.reduce_axes()) {
            let (min, extent) = &at.domains[axis.var()];
            values.insert(axis.var().clone(), fold::add(min, &axis.expr()));
            self.extents.insert(axis.var().clone(), extent.clone());
        }
        values
    }

    fn varies(&self, expr: &Expr) -> bool {
        self.extents.keys().any(|var| uses_any(expr, std::slice::from_ref(var)))
    }

    /// The range of which an index takes every value, each together with every combination of what `used` held before;
    /// `None` where that is not known.
    fn of_index(&mut self, index: &Expr) -> Option<Interval> {
        if !self.varies(index) {
            return Some((index.clone(), index.clone()));
        }
        match index.node() {
            Node::Var(var) if !self.used.contains(var) => {
                let extent = self.extents.get(var)?.clone();
                self.used.push(var.clone());
                let last = fold::sub(&extent, &fold::int(1, extent.dtype()));
                (!self.varies(&extent)).then(|| (fold::int(0, last.dtype()), last))
            }
            Node::Cast(a) if a.dtype().is_int() && index.dtype().is_int() => {
                let (lo, hi) = self.of_index(a)?;
                Some((fold::cast(&lo, index.dtype()), fold::cast(&hi, index.dtype())))
            }
            Node::Binary(BinaryOp::FloorDiv, a, b) if self.is_positive(b) => {
                let (lo, hi) = self.of_index(a)?;
                // Of no values there are none either.
                let keeps = lo.is_int(0) || fold::proves(self.known, BinaryOp::Le, &lo, &hi);
                keeps.then(|| (fold::floordiv(&lo, b), fold::floordiv(&hi, b)))
            }
            Node::Binary(BinaryOp::FloorMod, a, b) if self.is_positive(b) => {
                let (lo, hi) = self.of_index(a)?;
                let last = fold::sub(b, &fold::int(1, b.dtype()));
                let goes_round = fold::proves(self.known, BinaryOp::Ge, &fold::sub(&hi, &lo), &last);
                goes_round.then(|| (fold::int(0, last.dtype()), last))
            }
            Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..) => {
                self.of_sum(index, &fold::int(1, index.dtype()))
            }
            _ => None,
        }
    }

    /// The same of a sum of multiples, and of all from each of its values on, `extent` of them. One more term
    /// keeps the values without a gap where its step is at most their number.
    fn of_sum(&mut self, index: &Expr, extent: &Expr) -> Option<Interval> {
        if self.varies(extent) {
            return None;
        }
        let mut terms = Vec::new();
        let one = fold::int(1, index.dtype());
        self.terms(index, &one, &mut terms)?;
        let zero = fold::int(0, index.dtype());
        let (mut lo, mut hi) = (zero.clone(), fold::sub(extent, &one));
        let mut open: Vec<(Expr, Interval)> = Vec::new();
        for (scale, term) in terms {
            let (a, b) = self.of_index(&term)?;
            let (a, b) = (fold::mul(&a, &scale), fold::mul(&b, &scale));
            if !self.varies(&term) {
                (lo, hi) = (fold::add(&lo, &a), fold::add(&hi, &b));
            } else if self.is_positive(&scale) {
                open.push((scale, (a, b)));
            } else {
                open.push((fold::sub(&zero, &scale), (b, a)));
            }
        }
        let is_alone = open.len() == 1 && extent.is_int(1);
        while !open.is_empty() {
            let count = self.known.simplify(&fold::add(&fold::sub(&hi, &lo), &one));
            let next = open.iter().position(|(step, (a, b))| {
                let fits =
                    |smaller: &Expr, larger: &Expr| fold::proves(self.known, BinaryOp::Le, smaller, larger);
                self.is_positive(step) && fits(step, &count) && (is_alone || fits(a, b))
            })?;
            let (_, (a, b)) = open.swap_remove(next);
            (lo, hi) = (fold::add(&lo, &a), fold::add(&hi, &b));
        }
        Some((self.known.simplify(&lo), self.known.simplify(&hi)))
    }

    /// Adds the terms of a sum, with what each is multiplied by.
    fn terms(&self, expr: &Expr, scale: &Expr, terms: &mut Vec<(Expr, Expr)>) -> Option<()> {
        match expr.node() {
            Node::Binary(BinaryOp::Add, a, b) => {
                self.terms(a, scale, terms)?;
                self.terms(b, scale, terms)
            }
            Node::Binary(BinaryOp::Sub, a, b) => {
                self.terms(a, scale, terms)?;
                let minus = fold::sub(&fold::int(0, scale.dtype()), scale);
                self.terms(b, &minus, terms)
            }
            Node::Binary(BinaryOp::Mul, a, b) => match (self.varies(a), self.varies(b)) {
                (true, true) => None,
                (true, false) => self.terms(a, &fold::mul(scale, b), terms),
                (false, _) => self.terms(b, &fold::mul(scale, a), terms),
            },
            _ => {
                terms.push((scale.clone(), expr.clone()));
                Some(())
            }
        }
    }

    fn is_positive(&self, expr: &Expr) -> bool {
        !self.varies(expr) && fold::proves(self.known, BinaryOp::Gt, expr, &fold::int(0, expr.dtype()))
    }

    /// Whether a loop around the stage has an iteration, wherever there is something to compute: the indices depend on it,
    /// and an axis of no points has no elements there either.
    fn runs_at_all(&self, reader: Option<&Stage>, l: &Loop) -> bool {
        let one = fold::int(1, l.extent.dtype());
        if l.is_unit() || fold::proves(self.known, BinaryOp::Ge, &l.extent, &one) {
            return true;
        }
        let roots = reader.map_or(Vec::new(), |reader| reader.roots_of(&l.leaf));
        let is_of_reader = !roots.is_empty() && roots.iter().all(|root| self.used.contains(root.var()));
        is_of_reader || self.used.contains(&l.var)
    }
}
