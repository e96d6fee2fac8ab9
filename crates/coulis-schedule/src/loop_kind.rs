//! How a loop runs, which several primitives say: what is legal, and how it is noted.

use coulis_ir::LoopKind;
use coulis_tensor::{IterKind, IterVar};

use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::stage::StageId;

/// Whether the loop may run like that: it is a loop of the stage that no thread index is bound to, and where
/// its iterations run at the same time it is one of a data axis, since they may not fold into one element.
pub(crate) fn check(
    primitive: &'static str,
    schedule: &Schedule,
    stage: StageId,
    axis: &IterVar,
    kind: LoopKind,
) -> Result<(), ScheduleError> {
    let stage = schedule.by_id(stage);
    stage.leaf_position(primitive, axis)?;
    stage.check_unbound(primitive, axis)?;
    let at_once = match kind {
        LoopKind::Serial | LoopKind::Unrolled => false,
        LoopKind::Parallel | LoopKind::Vectorized => true,
    };
    if at_once && axis.kind() != IterKind::Data {
        return Err(stage.wrong_kind(primitive, axis, IterKind::Data));
    }
    if at_once {
        stage.check_computes_once(primitive, axis, kind == LoopKind::Parallel)?;
    }
    Ok(())
}

/// Has the loop run like that.
pub(crate) fn set(schedule: &mut Schedule, stage: StageId, axis: &IterVar, kind: LoopKind) {
    schedule.by_id_mut(stage).attrs.entry(axis.var().clone()).or_default().kind = Some(kind);
}
