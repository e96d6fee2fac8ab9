//! until_settled: a loop of a fold passes over its iterations once its state is settled.
//!
//! Before each iteration the state is asked whether anything may still change it, as the reducer knows it: no element
//! does once `any` has found one. Of partial states that are combined later, those of lanes and of vectors side by side,
//! one that is settled does for all. The first position of an extremum settles only what is behind it, so iterations of a
//! loop that asks for it have all their elements before those of the next. What is asked costs a few operations of
//! vectors, so the loop is one over blocks of elements. A loop of parts that other stages fold, which are attached there,
//! passes over these as well.

use std::slice::from_ref;

use coulis_ir::{DType, Expr, Lambda, LoopKind, Reducer, Var};
use coulis_tensor::{Body, IterKind, IterVar, compute, placeholder, reduce_at, reduce_axis};

use crate::error::ScheduleError;
use crate::example::{LEGAL, after, scheduled, size};
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;
use crate::until;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "until_settled",
    signature: "s[B].until_settled(axis)",
    summary: "the reduce loop does nothing more once the state is settled, or one of the partial states that are combined \
              later; it has no effect on folds of threads",
    before: "\
for i in range(n):
    B[i] = T.bool(False)
    for k_outer, k_inner in T.grid((m + 4095) // 4096, 4096):
        if T.likely(k_outer * 4096 + k_inner < m):
            B[i] = B[i] or A[i, k_outer * 4096 + k_inner]",
    call: "s[B].until_settled(k_outer)",
    after: "\
for i in range(n):
    B[i] = T.bool(False)
    for k_outer in range((m + 4095) // 4096):
        if not B[i]:
            for k_inner in range(4096):
                if T.likely(k_outer * 4096 + k_inner < m):
                    B[i] = B[i] or A[i, k_outer * 4096 + k_inner]",
    example: || {
        after(any_of_rows(), |s| {
            let k = s.stage("B")?.reduce_axes()[0].clone();
            s.split("B", &k, Split::Factor(4096)).map(|_| ())
        })
    },
    apply: apply::<UntilSettled>,
};

/// `B`, whether any bool of each row of `A` is true.
fn any_of_rows() -> Schedule {
    let [x, y, state] = ["x", "y", "state"].map(|name| Var::new(name, DType::Bool));
    let or = Lambda { body: vec![x.expr().or(y.expr())], params: vec![x, y] };
    let settled = Lambda { body: vec![state.expr()], params: vec![state] };
    let any = Reducer { settled: Some(settled), ..Reducer::plain(or, vec![Expr::bool(false)]) };
    let (n, m) = (size("n"), size("m"));
    let a = placeholder(&[n.clone(), m.clone()], DType::Bool, "A").expect(LEGAL);
    let k = reduce_axis(m, "k");
    let b = compute(&[n], "B", |i| reduce_at(&any, &[a.at((&i[0], &k))], k.expr(), from_ref(&k)));
    scheduled(a, b.expect(LEGAL))
}

/// Arguments of until_settled.
#[derive(Clone, Debug)]
pub(crate) struct UntilSettled {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The reduce loop does nothing more once the state is settled.
    pub fn until_settled(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(UntilSettled { stage, axis: axis.clone() })
    }
}

impl Primitive for UntilSettled {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<UntilSettled, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        Ok(UntilSettled { stage, axis: call.axis(stage, 0, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![axis_arg(schedule, self.stage, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "until_settled", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let at = stage.leaf_position("until_settled", &self.axis)?;
        let wrong = |wanted, found| {
            let (primitive, stage) = ("until_settled", stage.name.clone());
            Err(ScheduleError::WrongBody { primitive, stage, wanted, found })
        };
        let Body::Reduce(reduction) = &stage.body else { return wrong("a reduction", "no reduction") };
        if self.axis.kind() != IterKind::Reduce {
            return Err(stage.wrong_kind("until_settled", &self.axis, IterKind::Reduce));
        }
        if reduction.settled.is_none() {
            return wrong("a reducer that knows settled states", "one that knows none");
        }
        if stage.kind_of(&self.axis) != LoopKind::Serial || stage.thread_of(&self.axis).is_some() {
            stage.check_unmarked("until_settled", &self.axis)?;
        }
        let bad = |wanted, found| ScheduleError::BadValue {
            primitive: "until_settled",
            stage: stage.name.clone(),
            what: "axis",
            wanted,
            found,
        };
        if !until::follows(stage, at) {
            let wanted =
                "a reduce loop each of whose iterations has the elements behind those of the one before";
            return Err(bad(wanted, format!("`{}`", stage.axis_name(&self.axis))));
        }
        match until::of_others(stage, at) {
            Some(data) => Err(bad(
                "a reduce loop in which all states are partial states of one result, as rfactor makes them",
                format!("the loop `{}` in it", stage.axis_name(data)),
            )),
            None => Ok(()),
        }
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id_mut(self.stage);
        stage.attrs.entry(self.axis.var().clone()).or_default().until_settled = true;
        Ok(())
    }
}
