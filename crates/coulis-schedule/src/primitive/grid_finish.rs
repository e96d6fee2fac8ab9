//! grid_finish: how the parts of a reduction over blocks come together.
//!
//! Each block leaves its part in global memory. A second launch folds the parts, or the block that takes the
//! last ticket does; no float is ever added by an atomic, and the order of the fold is that of the blocks.
//! Where the parts are a stage of their own, as rfactor leaves them, it is the stage after that which is
//! finished in the last block: the whole launch of it, by as many threads as it asks for. Where both stages
//! have an index of blocks in common, it is the last block of each index that finishes what that index has.

use coulis_ir::ThreadTag;
use coulis_tensor::Body;

use crate::error::ScheduleError;
use crate::example::{after, size, sums};
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{GridFinish, StageId};
use crate::thread_error::ThreadError;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "grid_finish",
    signature: "s[B].grid_finish(how)",
    summary: "parts of a reduce axis on blockIdx are folded by a \"second_kernel\", or by the \"last_block\" to end",
    before: "\
B_part = T.allocate([T.max((m + 31) // 32, 1)], \"float32\", \"global\")
with T.attr(None, \"zeroed\", \"left\"):
    B_counter = T.allocate([1], \"uint32\", \"global\")
    blockIdx_x = T.launch_thread(\"blockIdx.x\", T.max((m + 31) // 32, 1))
    with T.allocate([1], \"float32\", \"local\") as mine:
        mine[0] = T.float32(0)
        for k_inner in range(32):
            if T.likely(blockIdx_x * 32 + k_inner < m):
                mine[0] = mine[0] + A[blockIdx_x * 32 + k_inner]
        B_part[blockIdx_x] = mine[0]
    B_is_last = T.allocate([1], \"bool\", \"shared\")
    B_ticket = T.allocate([1], \"uint32\", \"local\")
    T.cuda.cta_sync()
    T.cuda.thread_fence()
    B_ticket[0] = T.cuda.atomic_add(B_counter[0], T.uint32(1))
    T.cuda.thread_fence()
    B_is_last[0] = B_ticket[0] == T.Cast(\"uint32\", T.max((m + 31) // 32, 1) - 1)
    T.cuda.cta_sync()
    with T.allocate([1], \"float32\", \"local\") as mine:
        mine[0] = T.float32(0)
        if B_is_last[0]:
            for part in range(T.max((m + 31) // 32, 1)):
                mine[0] = mine[0] + B_part[part]
        if B_is_last[0]:
            B[()] = mine[0]
    if B_is_last[0]:
        B_counter[0] = T.uint32(0)",
    call: "s[B].grid_finish(\"second_kernel\")",
    after: "\
B_part = T.allocate([(m + 31) // 32], \"float32\", \"global\")
with T.launch_thread(\"blockIdx.x\", (m + 31) // 32) as blockIdx_x:
    mine = T.allocate([1], \"float32\", \"local\")
    mine[0] = T.float32(0)
    for k_inner in range(32):
        if T.likely(blockIdx_x * 32 + k_inner < m):
            mine[0] = mine[0] + A[blockIdx_x * 32 + k_inner]
    B_part[blockIdx_x] = mine[0]
threadIdx_x = T.launch_thread(\"threadIdx.x\", 1)
mine = T.allocate([1], \"float32\", \"local\")
mine[0] = T.float32(0)
for part in range((m + 31) // 32):
    mine[0] = mine[0] + B_part[part]
B[()] = mine[0]",
    example: || {
        after(sums(&[], size("m")), |s| {
            let k = s.stage("B")?.reduce_axes()[0].clone();
            let (outer, _) = s.split("B", &k, Split::Factor(32))?;
            s.bind("B", &outer, ThreadTag::BlockX)?;
            s.grid_finish("B", GridFinish::LastBlock)
        })
    },
    apply: apply::<FinishGrid>,
};

/// Arguments of grid_finish.
#[derive(Clone, Debug)]
pub(crate) struct FinishGrid {
    pub stage: StageId,
    pub finish: GridFinish,
}

impl Schedule {
    /// Says how the parts of a reduction over blocks come together.
    pub fn grid_finish(
        &mut self,
        stage: impl Into<StageRef>,
        finish: GridFinish,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(FinishGrid { stage, finish })
    }
}

impl Primitive for FinishGrid {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<FinishGrid, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        let found = call.string(0, "how")?;
        let finish = GridFinish::from_name(&found).ok_or(ThreadError::UnknownFinish { found })?;
        Ok(FinishGrid { stage, finish })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![Arg::Str(self.finish.name().to_owned())];
        Step::on_stage(schedule.stage_name(self.stage), "grid_finish", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        match (schedule.by_id(self.stage).body(), self.finish) {
            (Body::Reduce(_), _) | (Body::Plain(_), GridFinish::LastBlock) => Ok(()),
            (Body::Plain(_), GridFinish::SecondKernel) => Err(ScheduleError::WrongBody {
                primitive: "grid_finish",
                stage: schedule.stage_name(self.stage),
                wanted: "a reduction",
                found: "no reduction",
            }),
        }
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).finish = Some(self.finish);
        Ok(())
    }
}
