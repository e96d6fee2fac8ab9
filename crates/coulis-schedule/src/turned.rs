//! Nests of stages that take rows from a boundary on: `from_boundary` and `filled`.

use coulis_ir::visit::{substitute_expr, substitute_stmt};
use coulis_ir::{BinaryOp, Expr, LoopKind, Stmt};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::fold;
use crate::infer::Loop;
use crate::nest::Builder;
use crate::schedule::Values;
use crate::stage::{Attach, Filled, Stage, Turn};

impl Builder<'_> {
    /// The loops of a stage that takes rows from a boundary on and has more points than they have elements.
    /// Loops whose steps are written out, or are a vector, stand twice: for whole accesses, which all rows
    /// have as many of, so that these are under way together, and for what is behind these.
    pub(crate) fn filled(
        &self,
        stage: &Stage,
        filled: &Filled,
        exprs: &[Expr],
    ) -> Result<Stmt, ScheduleError> {
        let Some(turn) = &stage.turn else { return Ok(Stmt::NOP) };
        let at = self.at(stage);
        let n_loops = stage.leaves.len();
        let number = &at.absolutes[&turn.along];
        let access = fold::floordiv(number, &filled.lanes);
        let is_whole = fold::compare(BinaryOp::Lt, &access, &filled.whole).likely();
        let (behind, either) = self.of_row(stage, turn, exprs);
        let of_none = filled
            .with
            .as_ref()
            .map(|value| Box::new(self.store_results(stage, &at.offsets, std::slice::from_ref(value))));
        let is_of_row = fold::compare(BinaryOp::Lt, number, &turn.length);
        let rest = Stmt::If { cond: is_of_row, then: Box::new(either), otherwise: of_none };
        let rest = Stmt::if_(is_whole.clone().logical_not(), rest);
        let most = self.guarded(stage, Stmt::if_(is_whole, behind))?;
        let mut rest = self.guarded(stage, rest)?;
        let has_stage = |leaf: &IterVar| {
            self.schedule
                .stages
                .iter()
                .any(|s| matches!(&s.attach, Attach::At(parent, axis) if *parent == stage.id && axis == leaf))
        };
        let is_within = |leaf: &&IterVar| {
            let within = matches!(stage.kind_of(leaf), LoopKind::Unrolled | LoopKind::Vectorized);
            within && !has_stage(leaf)
        };
        let from = n_loops - stage.leaves.iter().rev().take_while(is_within).count();
        let most = self.loops(stage, from, n_loops, most)?;
        for (nth, l) in at.loops[..n_loops].iter().enumerate().skip(from).rev() {
            let own = Loop { var: l.var.renamed(&format!("{}_rest", l.var.name())), ..l.clone() };
            rest = substitute_stmt(rest, &Values::from_iter([(l.var.clone(), own.var.expr())]));
            rest = self.one_loop(stage, &Loop { extent: self.extent_there(stage, nth), ..own }, rest)?;
        }
        self.loops(stage, 0, from, Stmt::seq([most, rest]))
    }

    /// The store of a stage that takes rows from a boundary on: of an element behind it, or else of one
    /// before it. Most elements are behind it in every row.
    pub(crate) fn turned(&self, stage: &Stage, turn: &Turn, exprs: &[Expr]) -> Stmt {
        let number = &self.at(stage).absolutes[&turn.along];
        let is_always = fold::compare(BinaryOp::Lt, &fold::add(number, &turn.most), &turn.length);
        let (behind, either) = self.of_row(stage, turn, exprs);
        Stmt::If { cond: is_always.likely(), then: Box::new(behind), otherwise: Some(Box::new(either)) }
    }

    /// The store of an element that is behind the row's boundary, and of one that is there or before it.
    fn of_row(&self, stage: &Stage, turn: &Turn, exprs: &[Expr]) -> (Stmt, Stmt) {
        let at = self.at(stage);
        let here = |e: &Expr| substitute_expr(e, &at.absolutes);
        let turn = Turn { by: here(&turn.by), length: here(&turn.length), ..turn.clone() };
        let (is_behind, behind, before) = turn.sides(&at.absolutes[&turn.along]);
        let store = |place: &Expr| {
            let mut values = at.absolutes.clone();
            values.insert(turn.place.clone(), place.clone());
            self.store_of(stage, exprs, &values, turn.stores.then_some(place))
        };
        let [then, otherwise] = [&behind, &before].map(|place| Box::new(store(place)));
        (store(&behind), Stmt::If { cond: is_behind, then, otherwise: Some(otherwise) })
    }
}
