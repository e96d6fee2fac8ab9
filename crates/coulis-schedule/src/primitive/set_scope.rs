//! set_scope: where the results of a stage live.

use coulis_ir::{Expr, MemScope};

use crate::error::ScheduleError;
use crate::example::chain;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "set_scope",
    signature: "s[A].set_scope(scope)",
    summary: "the results live in global, shared, shared.dyn or local memory",
    before: "\
B = T.allocate([16], \"float32\", \"global\")
for i in range(16):
    B[i] = A[i] * T.float32(2)
for i in range(16):
    C[i] = B[i] + T.float32(1)",
    call: "s[B].set_scope(\"local\")",
    after: "\
B = T.allocate([16], \"float32\", \"local\")
for i in range(16):
    B[i] = A[i] * T.float32(2)
for i in range(16):
    C[i] = B[i] + T.float32(1)",
    example: || chain(&[Expr::int(16)]),
    apply: apply::<SetScope>,
};

/// Arguments of set_scope.
#[derive(Clone, Debug)]
pub(crate) struct SetScope {
    pub stage: StageId,
    pub scope: MemScope,
}

/// The scopes that results of a stage may live in. Memory that is spread over the lanes of a warp is for tile programs, where
/// a layout says which lane has what.
const SCOPES: [MemScope; 4] = [MemScope::Global, MemScope::Shared, MemScope::SharedDyn, MemScope::Local];

/// The scope of that name.
pub(crate) fn scope_of(found: String) -> Result<MemScope, ScheduleError> {
    match MemScope::from_name(&found) {
        Some(scope) => check_scope(scope).map(|()| scope),
        None => Err(ScheduleError::UnknownScope { found, legal: names() }),
    }
}

/// Refuses a scope that results of a stage do not live in.
pub(crate) fn check_scope(scope: MemScope) -> Result<(), ScheduleError> {
    if SCOPES.contains(&scope) {
        return Ok(());
    }
    Err(ScheduleError::ScopeOfStage { found: scope.name(), legal: names() })
}

fn names() -> Vec<String> {
    SCOPES.iter().map(|scope| scope.name().to_owned()).collect()
}

impl Schedule {
    /// The results live in that scope.
    pub fn set_scope(&mut self, stage: impl Into<StageRef>, scope: MemScope) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(SetScope { stage, scope })
    }
}

impl Primitive for SetScope {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<SetScope, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        let found = call.string(0, "scope")?;
        let scope = scope_of(found)?;
        Ok(SetScope { stage, scope })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![Arg::Str(self.scope.name().to_owned())];
        Step::on_stage(schedule.stage_name(self.stage), "set_scope", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        check_scope(self.scope)?;
        let stage = schedule.by_id(self.stage);
        if stage.is_arg() && self.scope != MemScope::Global {
            return Err(ScheduleError::Argument {
                primitive: "set_scope",
                stage: schedule.stage_name(stage.id),
                reason: "lives in global memory",
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).scope = Some(self.scope);
        Ok(())
    }
}
