//! Regions of attached stages that elements of memory say: an index array's, or the ends of a ragged row.
//!
//! Such elements are read before the stage is computed, also where the loops around overhang and its reader
//! reads nothing. So the stage is computed where all of them are there to be read. That leaves out no element
//! that is read: a reader comes to the region by the same elements ([`are_of_same_elements`]), so that where
//! one of them is not there it reads nothing either.

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::for_each_expr;
use coulis_ir::{BinaryOp, Expr, Node, Stmt};

use crate::fold;
use crate::interval::Interval;
use crate::nest::Builder;
use crate::schedule::Schedule;
use crate::stage::{Attach, Stage};
use crate::stores::nested;

/// The elements that an expression reads, each once.
fn elements<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<Expr> {
    let mut found = Vec::new();
    for expr in exprs.into_iter().filter(|expr| expr.reads_memory()) {
        for_each_expr(expr, &mut |e| {
            if matches!(e.node(), Node::Load(..)) && !found.contains(e) {
                found.push(e.clone());
            }
        });
    }
    found
}

/// Whether two ranges are made of the same elements of memory, as ranges of no elements are.
pub(crate) fn are_of_same_elements(a: &Interval, b: &Interval) -> bool {
    let (a, b) = (elements([&a.0, &a.1]), elements([&b.0, &b.1]));
    a.len() == b.len() && a.iter().all(|element| b.contains(element))
}

/// Whether what the range is made of is there before any loop: elements of inputs, and of stages at the root.
pub(crate) fn is_at_hand(schedule: &Schedule, range: &Interval) -> bool {
    elements([&range.0, &range.1]).iter().all(|element| {
        let Node::Load(buffer, _) = element.node() else { return true };
        let maker = schedule.stages.iter().find(|stage| stage.outputs.contains(buffer));
        maker.is_none_or(|stage| stage.attach == Attach::Root)
    })
}

/// What is to hold for the elements that an expression reads to be inside their tensors, in the order of the reads, without
/// what is known anyway. An element that is read under a condition is looked at under it.
fn readable(expr: &Expr, known: &Analyzer, found: &mut Vec<Expr>) {
    if !expr.reads_memory() {
        return;
    }
    match expr.node() {
        Node::Load(buffer, indices) => {
            indices.iter().for_each(|index| readable(index, known, found));
            for (index, extent) in indices.iter().zip(&buffer.shape) {
                let zero = fold::int(0, index.dtype());
                for (op, end) in [(BinaryOp::Ge, &zero), (BinaryOp::Lt, extent)] {
                    if !fold::proves(known, op, index, end) {
                        push(found, known.simplify(&fold::compare(op, index, end)));
                    }
                }
            }
        }
        Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
            readable(cond, known, found);
            let not = cond.clone().logical_not();
            let (a, b) = (all(a, &known.with(cond)), all(b, &known.with(&not)));
            if a.is_some() || b.is_some() {
                let [a, b] = [a, b].map(|arm| arm.unwrap_or_else(|| Expr::bool(true)));
                push(found, Expr::if_then_else(cond.clone(), a, b));
            }
        }
        Node::Let(var, value, body) => {
            readable(value, known, found);
            if let Some(body) = all(body, known) {
                push(found, Expr::let_in(var.clone(), value.clone(), body));
            }
        }
        _ => expr.each_child(|child| readable(child, known, found)),
    }
}

fn push(found: &mut Vec<Expr>, condition: Expr) {
    if !found.contains(&condition) {
        found.push(condition);
    }
}

/// The same as one condition, where there is any.
fn all(expr: &Expr, known: &Analyzer) -> Option<Expr> {
    let mut found = Vec::new();
    readable(expr, known, &mut found);
    found.into_iter().reduce(Expr::and)
}

impl<'a> Builder<'a> {
    /// The stages, last of all those whose regions elements of memory say, which may be elements of the others.
    pub(crate) fn told_last(&self) -> Vec<&'a Stage> {
        let stages = self.schedule.stages.iter().map(|stage| &**stage);
        let (told, plain): (Vec<&Stage>, Vec<&Stage>) = stages.partition(|stage| self.is_told(stage));
        [plain, told].concat()
    }

    /// Whether elements of memory say the stage's region.
    fn is_told(&self, stage: &Stage) -> bool {
        let domains = &self.at(stage).domains;
        stage.axes.iter().any(|axis| {
            let (min, extent) = &domains[axis.var()];
            min.reads_memory() || extent.reads_memory()
        })
    }

    /// What is to hold for the region of a stage to be known.
    fn is_region_known(&self, stage: &Stage) -> Vec<Expr> {
        let at = self.at(stage);
        let mut found = Vec::new();
        for axis in &stage.axes {
            let (min, extent) = &at.domains[axis.var()];
            readable(min, &at.known, &mut found);
            readable(extent, &at.known, &mut found);
        }
        found
    }

    /// The statements of an attached stage, where its region is known.
    pub(crate) fn in_known_region(&self, stage: &Stage, produced: Stmt) -> Stmt {
        nested(self.is_region_known(stage).into_iter().map(Expr::likely), produced)
    }

    /// The extent of a stage's memory: none where its region is not known.
    pub(crate) fn known_extent(&self, stage: &Stage, extent: &Expr) -> Expr {
        if !extent.reads_memory() {
            return extent.clone();
        }
        match self.is_region_known(stage).into_iter().reduce(Expr::and) {
            Some(known) => Expr::if_then_else(known, extent.clone(), fold::int(0, extent.dtype())),
            None => extent.clone(),
        }
    }
}
