//! What a schedule makes of each stage, as text for reading: where it is computed, in which memory, and its loops.

use std::fmt::Write;

use coulis_ir::LoopKind;
use coulis_ir::print::print_expr;

use crate::ranges;
use crate::schedule::Schedule;
use crate::stage::{Attach, Stage};

impl Schedule {
    /// A paragraph a stage, producers first: a line for the stage, and a line for each of its loops, outermost first.
    /// Extents are those that the operation declares; a stage that is computed inside another one may cover less.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for stage in self.stages() {
            // Writing to a string does not fail.
            let _ = write!(text, "{}", self.explain_stage(stage));
        }
        text
    }

    fn explain_stage(&self, stage: &Stage) -> String {
        let place = match stage.attach() {
            Attach::Root => "a loop nest of its own".to_owned(),
            Attach::Inline => "in place of each read".to_owned(),
            Attach::At(parent, axis) => {
                let name = self.by_id(*parent).axis_name(axis);
                format!("inside loop {name} of {}", self.stage_name(*parent))
            }
        };
        let memory = stage.scope().map(|scope| format!(", in {} memory", scope.name())).unwrap_or_default();
        let mut text = format!("{}: {place}{memory}\n", self.stage_name(stage.id()));
        let (domains, analyzer) = (ranges::declared(stage), self.analyzer());
        let extents = ranges::extents(stage, &domains, &analyzer);
        let names: Vec<String> = stage.leaves().iter().map(|leaf| stage.axis_name(leaf)).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        for (leaf, name) in stage.leaves().iter().zip(&names) {
            let extent = extents.get(leaf.var()).map_or_else(|| "?".to_owned(), print_expr);
            let how = match (stage.thread_of(leaf), stage.kind_of(leaf)) {
                (Some(tag), _) => format!(" on {}", tag.name()),
                (None, LoopKind::Serial) => String::new(),
                (None, kind @ (LoopKind::Parallel | LoopKind::Unrolled | LoopKind::Vectorized)) => {
                    format!(" {}", kind.name())
                }
            };
            let words = leaf.kind().words();
            let _ = writeln!(text, "  {name:<width$}  {words}, {extent} iterations{how}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::{DType, ThreadTag};
    use coulis_tensor::{compute, placeholder, reduce_axis, sum, var};

    use crate::{Schedule, Split};

    #[test]
    fn each_stage_is_told_with_its_loops() {
        let n = var("n");
        let a = placeholder(&[n.expr(), n.expr()], DType::F32, "A").expect("a placeholder");
        let k = reduce_axis(&n, "k");
        let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k)));
        let b = b.expect("a compute");
        let mut s = Schedule::new(std::slice::from_ref(&b), &[a, b.clone()]).expect("a schedule");
        let (_, inner) = s.split(&b, &b.op().reduce_axes()[0], Split::Factor(16)).expect("a split");
        let part = s.rfactor(&b, &inner).expect("a factored stage");
        let row = s.stage(&b).expect("a stage").axes()[0].clone();
        s.bind(&b, &row, ThreadTag::BlockX).expect("a bound loop");
        s.compute_at(part, &b, &row).expect("an attached stage");
        let want = "B_rf: inside loop ax0 of B\n  \
                    k_inner  data axis, 16 iterations\n  \
                    i        data axis, n iterations\n  \
                    k_outer  reduce axis, (n + 15) // 16 iterations\n\
                    B: a loop nest of its own\n  \
                    ax0        data axis, n iterations on blockIdx.x\n  \
                    k_inner_v  reduce axis, 16 iterations\n";
        assert_eq!(s.explain(), want);
    }
}
