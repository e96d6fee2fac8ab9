//! Stores and the conditions around them: who stores, which points exist, and what the user asked for.
//!
//! From the outside in: one thread where several hold the same value, the points of the stage (data axes, then reduce
//! axes), the store predicate. Source: seed 003; faults C2, C5, G8 and G9 (docs/sources.md) are what goes wrong without.

use coulis_ir::remark::HANDED_OVER;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{Attr, BinaryOp, Buffer, Element, Expr, Intrinsic, MemScope, Node, Stmt, ThreadTag, Var};

use coulis_tensor::{Body, IterVar};

use crate::error::ScheduleError;
use crate::fold;
use crate::infer::{self, Loop, Placed};
use crate::launch::{Index, is_block, shares, thread_index};
use crate::nest::Builder;
use crate::ranges;
use crate::runs;
use crate::schedule::Values;
use crate::stage::{Attach, Stage};
use crate::thread_error::ThreadError;

/// What a nest of loops does with the stage's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Stores start values, or results after the reduce axes are gone.
    Data,
    /// Computes at every point.
    Main,
}

/// A condition under which a point of the loops is a point of the stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guard {
    /// The condition.
    pub condition: Expr,
    /// Whether it is about reduce axes.
    pub is_reduce: bool,
}

/// Where a nest stands: values of all axes, from 0 and absolute, extents of all axes, and what is known there.
pub(crate) struct Point<'a> {
    pub offsets: &'a Values,
    pub absolutes: &'a Values,
    pub extents: &'a Values,
    pub known: &'a Analyzer,
}

impl Placed {
    /// What is known inside all loops of the stage.
    pub fn known_inside(&self) -> Analyzer {
        let mut analyzer = self.known.clone();
        infer::bind(&mut analyzer, &self.loops);
        analyzer
    }
}

impl Builder<'_> {
    /// The number of loops around those of a fold by all threads that each thread runs by itself.
    pub(crate) fn n_around_fold(&self, stage: &Stage) -> usize {
        let loops = &self.at(stage).loops;
        let is_serial = |l: &Loop| l.is_loop() && stage.origin(&l.leaf).reduce;
        loops.iter().position(is_serial).unwrap_or(loops.len())
    }

    /// What is known behind these loops of a fold, which may have had no step at all.
    pub(crate) fn known_behind_fold(&self, stage: &Stage) -> Analyzer {
        let at = self.at(stage);
        let mut analyzer = at.known.clone();
        infer::bind(&mut analyzer, &at.loops[..self.n_around_fold(stage)]);
        analyzer
    }

    /// Where the stage stores each component: in memory of the realised size from its start on, and in an argument,
    /// which is the whole tensor, where the tensor has the element. A stage may have components of both kinds.
    pub(crate) fn elements(&self, stage: &Stage, offsets: &Values) -> Vec<Element> {
        let at = self.at(stage);
        let element = |output: &Buffer| {
            let own = self.realised.get(&output.id).map(|r| r.buffer.clone());
            let index = |axis: &IterVar| match own {
                Some(_) => offsets[axis.var()].clone(),
                None => fold::add(&at.domains[axis.var()].0, &offsets[axis.var()]),
            };
            let indices = stage.axes.iter().map(index).collect();
            Element { indices, buffer: own.unwrap_or_else(|| output.clone()) }
        };
        stage.outputs.iter().map(element).collect()
    }

    /// What the stage has stored of all components.
    pub(crate) fn results(&self, stage: &Stage, offsets: &Values) -> Vec<Expr> {
        self.elements(stage, offsets).into_iter().map(|e| e.buffer.at(e.indices)).collect()
    }

    /// Stores all components of the stage.
    pub(crate) fn store_results(&self, stage: &Stage, offsets: &Values, values: &[Expr]) -> Stmt {
        store_each(&output_names(stage), &self.elements(stage, offsets), values)
    }

    /// Conditions under which a point of the loops is a point of the stage.
    pub(crate) fn guards_of(&self, stage: &Stage, point: &Point, purpose: Purpose) -> Vec<Guard> {
        let at = self.at(stage);
        let marked = ranges::marked(stage, point.extents, &at.known);
        let own_memory = self.has_own_memory(stage);
        let mut guards = Vec::new();
        let mut demand = |op, a: &Expr, b: &Expr, is_reduce| {
            if !fold::proves(point.known, op, a, b) {
                let condition = point.known.simplify(&fold::compare(op, a, b));
                let guard = Guard { condition, is_reduce };
                if !guards.contains(&guard) {
                    guards.push(guard);
                }
            }
        };
        // A block more than there is work for, where the last one has to finish: first of all, since indices that
        // divide by an extent have no value there. A guard of the one axis that it comes from says it too.
        for l in at.loops.iter().filter(|l| purpose == Purpose::Main && l.launched().is_some()) {
            let index = self.launches.of(at.root).iter().find(|i| Some(i.tag) == l.thread);
            let roots = stage.roots_of(&l.leaf);
            let is_said = roots.len() == 1 && roots[0] != l.leaf && marked.contains(roots[0].var());
            if !is_said && index.is_some_and(|i| i.extent != l.extent) {
                demand(BinaryOp::Lt, &l.value(), &l.extent, true);
            }
        }
        for axis in stage.all_axes.iter().filter(|a| marked.contains(a.var())) {
            let origin = stage.origin(axis);
            if purpose == Purpose::Data && !origin.data {
                continue;
            }
            if let (Some(value), Some(extent)) =
                (point.offsets.get(axis.var()), point.extents.get(axis.var()))
            {
                demand(BinaryOp::Lt, value, extent, origin.reduce);
            }
        }
        // Values that are no points of the tensor may go to memory of the realised size, unless it is the caller's; but what
        // is read for them has to be there.
        let starts_from_memory =
            matches!(&stage.body, Body::Reduce(r) if r.init.iter().any(Expr::reads_memory));
        if at.partial && (purpose == Purpose::Main || !own_memory || starts_from_memory) {
            let declared = ranges::declared(stage);
            let mut inside = Vec::new();
            for axis in &stage.axes {
                let (min, extent) = &declared[axis.var()];
                if let Some(value) = point.absolutes.get(axis.var()) {
                    inside.push((BinaryOp::Ge, value, min.clone()));
                    inside.push((BinaryOp::Lt, value, fold::add(min, extent)));
                }
            }
            let unproved = |known: &Analyzer| -> Vec<Expr> {
                let open = inside.iter().filter(|(op, a, b)| !fold::proves(known, *op, a, b));
                open.map(|(op, a, b)| known.simplify(&fold::compare(*op, a, b))).collect()
            };
            // Where it hangs on the stage's own loops whether a point is there, it may not for points that are read.
            let own: Vec<Var> = at.loops.iter().filter(|l| l.is_loop()).map(|l| l.var.clone()).collect();
            let conditions = unproved(point.known);
            // The caller holds all points, whether they are read or not.
            let hangs = own_memory && conditions.iter().any(|condition| uses_any(condition, &own));
            let asked = match hangs {
                true => self.asked_for(stage),
                false => Vec::new(),
            };
            let when_asked = asked.iter().fold(point.known.clone(), |known, condition| known.with(condition));
            let conditions =
                if !asked.is_empty() && unproved(&when_asked).is_empty() { asked } else { conditions };
            for condition in conditions {
                let guard = Guard { condition, is_reduce: false };
                if !guards.contains(&guard) {
                    guards.push(guard);
                }
            }
        }
        guards
    }

    /// Whether each element of the memory that a stage has of its own is stored, also those that are no
    /// points of the tensor: start values go there too, where they are stored before the fold.
    pub(crate) fn fills_memory(&self, stage: &Stage) -> bool {
        let starts_anywhere = match &stage.body {
            Body::Plain(_) => false,
            Body::Reduce(r) => {
                let folds = !r.axes.is_empty() || r.condition.is_some() || !r.init.is_empty();
                folds && !stage.from_first && !r.init.iter().any(Expr::reads_memory)
            }
        };
        starts_anywhere && self.has_own_memory(stage) || !self.at(stage).partial
    }

    /// What an attached stage stores, with a remark where threads of a launch read it from memory that all of them see.
    pub(crate) fn handed_over(&self, stage: &Stage, produced: Stmt) -> Stmt {
        let at = self.at(stage);
        if at.scope != MemScope::Global || self.launches.of(at.root).is_empty() {
            return produced;
        }
        let (key, value) = (HANDED_OVER.to_owned(), Attr::Int(1));
        Stmt::Annotate { node: None, key, value, body: Box::new(produced) }
    }

    /// Whether the memory of all components is of the realised size; that of an argument is the caller's.
    fn has_own_memory(&self, stage: &Stage) -> bool {
        stage.outputs.iter().all(|o| self.realised.contains_key(&o.id))
    }

    /// Conditions on the loops around an attached stage without which its one reader, which holds it, reads nothing of it.
    /// They are about no thread index that shares the memory of the stage: what one thread does not read others may.
    fn asked_for(&self, stage: &Stage) -> Vec<Expr> {
        let Attach::At(parent, axis) = &stage.attach else { return Vec::new() };
        let parent = self.schedule.by_id(*parent);
        if self.schedule.consumers(stage).iter().any(|reader| reader.id != parent.id) {
            return Vec::new();
        }
        let at = self.at(parent);
        let Some(place) = at.loops.iter().position(|l| l.leaf == *axis) else { return Vec::new() };
        let scope = self.at(stage).scope;
        let around = at.path.iter().chain(&at.loops[..=place]);
        let sharing = around.filter(|l| l.thread.is_some_and(|tag| shares(scope, tag)));
        // Also an index that no loop around runs over: memory of a thread may be computed ahead of the loop that does.
        let indices = self.launches.of(at.root).iter().filter(|index| shares(scope, index.tag));
        let moving: Vec<Var> = (sharing.chain(&at.loops[place + 1..]).map(|l| l.var.clone()))
            .chain(indices.map(|index| index.var.clone()))
            .collect();
        let guards = self.guards(parent).into_iter().map(|guard| guard.condition);
        // A fold that was factored has its guards as a condition.
        let known = at.known_inside();
        let of_fold = match &parent.body {
            Body::Reduce(r) => r.condition.as_ref().filter(|condition| runs::is_guard(condition)),
            Body::Plain(_) => None,
        };
        let of_fold = of_fold.map(|condition| known.simplify(&substitute_expr(condition, &at.absolutes)));
        guards
            .chain(of_fold.into_iter().flat_map(|c| unlikely(&c)))
            .filter(|c| !uses_any(c, &moving))
            .collect()
    }

    /// The guards of all loops of a stage.
    pub(crate) fn guards(&self, stage: &Stage) -> Vec<Guard> {
        let at = self.at(stage);
        let known = at.known_inside();
        let point =
            Point { offsets: &at.offsets, absolutes: &at.absolutes, known: &known, extents: &at.extents };
        self.guards_of(stage, &point, Purpose::Main)
    }

    /// The thread indices of the launch whose threads see the memory of the stage and would all store the same: no
    /// data loop of the stage is bound to them.
    pub(crate) fn idle(&self, stage: &Stage) -> Vec<&Index> {
        let at = self.at(stage);
        let spread =
            |tag: ThreadTag| at.loops.iter().any(|l| l.launched() == Some(tag) && stage.origin(&l.leaf).data);
        let indices = self.launches.of(at.root).iter();
        let idle = |i: &&Index| !is_block(i.tag) && !i.is_unit() && shares(at.scope, i.tag) && !spread(i.tag);
        indices.filter(idle).collect()
    }

    /// That the thread is the one that stores.
    pub(crate) fn one_of_many(&self, stage: &Stage) -> Vec<Expr> {
        self.idle(stage).into_iter().map(Index::is_zero).collect()
    }

    /// The user's condition on stores at a point; `gone` are indices that are not there any more.
    pub(crate) fn predicate(
        &self,
        stage: &Stage,
        point: &Point,
        gone: &[Var],
    ) -> Result<Option<Expr>, ScheduleError> {
        let Some(predicate) = &stage.store_predicate else { return Ok(None) };
        let mut map: Values = point.offsets.clone();
        map.extend(point.absolutes.iter().map(|(v, e)| (v.clone(), e.clone())));
        for index in self.launches.of(self.at(stage).root) {
            let unit = fold::int(0, index.var.dtype());
            let value = if index.is_unit() { unit } else { index.var.expr() };
            let var = thread_index(index.tag);
            map.insert(var.clone(), fold::cast(&value, var.dtype()));
        }
        let condition = substitute_expr(predicate, &map);
        let mut fault = None;
        for_each_expr(&condition, &mut |e| {
            let Some(var) = e.as_var() else { return };
            if ThreadTag::ALL.into_iter().any(|tag| thread_index(tag) == *var) {
                fault = Some(format!("`{}`, to which no axis of the launch is bound", var.name()));
            } else if gone.contains(var) {
                fault = Some(format!("`{}`, which is folded away where the result is stored", var.name()));
            }
        });
        match fault {
            Some(found) => {
                Err(ThreadError::Predicate { stage: self.schedule.stage_name(stage.id), found }.into())
            }
            None => Ok(Some(condition)),
        }
    }
}

/// Stores all components at one place of their buffers.
pub(crate) fn store_all(names: &[String], buffers: &[Buffer], indices: &[Expr], values: &[Expr]) -> Stmt {
    let element = |buffer: &Buffer| Element { buffer: buffer.clone(), indices: indices.to_vec() };
    store_each(names, &buffers.iter().map(element).collect::<Vec<_>>(), values)
}

/// Stores all components; those that read one stored before them are computed first (contract N17).
pub(crate) fn store_each(names: &[String], elements: &[Element], values: &[Expr]) -> Stmt {
    let mut stores = Vec::new();
    let mut early = Vec::new();
    for (component, value) in values.iter().enumerate() {
        let value = if reads_any(value, &elements[..component]) {
            let var = Var::new(&format!("{}_new", names[component]), value.dtype());
            early.push((var.clone(), value.clone()));
            var.expr()
        } else {
            value.clone()
        };
        let Element { buffer, indices } = &elements[component];
        stores.push(Stmt::store(buffer, indices.clone(), value));
    }
    let stores = Stmt::seq(stores);
    early.into_iter().rev().fold(stores, |body, (var, value)| Stmt::let_(var, value, body))
}

/// What is made of the components of a source, which are read from memory before anything is asked of them
/// where they are those of another state: a combination may want one only where another says so, and would be
/// a branch for each read.
pub(crate) fn with_read_first(sources: &[Expr], body: impl FnOnce(&[Expr]) -> Stmt) -> Stmt {
    let is_read = |e: &Expr| matches!(e.node(), Node::Load(from, _) if from.scope != MemScope::Local);
    if sources.len() < 2 || !sources.iter().all(is_read) {
        return body(sources);
    }
    let names: Vec<Var> =
        sources.iter().enumerate().map(|(i, e)| Var::new(&format!("other{i}"), e.dtype())).collect();
    let body = body(&names.iter().map(Var::expr).collect::<Vec<_>>());
    names.into_iter().zip(sources).rev().fold(body, |body, (name, e)| Stmt::let_(name, e.clone(), body))
}

/// Names of the results, for [`store_all`].
pub(crate) fn output_names(stage: &Stage) -> Vec<String> {
    stage.outputs.iter().map(|o| o.name.clone()).collect()
}

/// The body under its conditions, first one outermost.
pub(crate) fn nested(conditions: impl IntoIterator<Item = Expr>, body: Stmt) -> Stmt {
    let conditions: Vec<Expr> = conditions.into_iter().collect();
    conditions.into_iter().rev().fold(body, |body, condition| Stmt::if_(condition, body))
}

/// The body under one condition, the conjunction of all; each stands once.
pub(crate) fn under_all(conditions: impl IntoIterator<Item = Expr>, body: Stmt) -> Stmt {
    let mut once: Vec<Expr> = Vec::new();
    for condition in conditions {
        if !once.contains(&condition) {
            once.push(condition);
        }
    }
    match once.into_iter().reduce(Expr::and) {
        Some(all) => Stmt::if_(all, body),
        None => body,
    }
}

/// The conditions that are marked as likely, without their marks.
pub(crate) fn unlikely(condition: &Expr) -> Vec<Expr> {
    match condition.node() {
        Node::Binary(BinaryOp::And, a, b) => [unlikely(a), unlikely(b)].concat(),
        Node::Call(Intrinsic::Likely, args) => args.iter().flat_map(unlikely).collect(),
        _ => vec![condition.clone()],
    }
}

/// Guards as loops have them: marked as likely, which loop partition looks for.
pub(crate) fn likely(guards: Vec<Guard>) -> impl Iterator<Item = Expr> {
    guards.into_iter().map(|g| g.condition.likely())
}

fn reads_any(expr: &Expr, elements: &[Element]) -> bool {
    let mut found = false;
    for_each_expr(expr, &mut |e| {
        if let Node::Load(buffer, _) = e.node() {
            found |= elements.iter().any(|element| element.buffer == *buffer);
        }
    });
    found
}
