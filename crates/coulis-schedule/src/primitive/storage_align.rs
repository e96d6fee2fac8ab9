//! storage_align: pads an intermediate so that the stride of a dimension is as wanted.

use coulis_ir::buffer::oversize;
use coulis_ir::{DType, Expr};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::chain;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{StageId, StorageAlign};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "storage_align",
    signature: "s[A].storage_align(axis, factor, offset)",
    summary: "the stride of that dimension of an intermediate becomes `offset` modulo `factor`",
    before: "\
B = T.allocate([16, 32], \"float32\", \"global\")
for i, j in T.grid(16, 32):
    B[i, j] = A[i, j] * T.float32(2)
for i, j in T.grid(16, 32):
    C[i, j] = B[i, j] + T.float32(1)",
    call: "s[B].storage_align(i, 32, 1)",
    after: "\
B = T.allocate([16, 33], \"float32\", \"global\")
for i, j in T.grid(16, 32):
    B[i, j] = A[i, j] * T.float32(2)
for i, j in T.grid(16, 32):
    C[i, j] = B[i, j] + T.float32(1)",
    example: || chain(&[Expr::int(16), Expr::int(32)]),
    apply: apply::<AlignStorage>,
};

/// Arguments of storage_align.
#[derive(Clone, Debug)]
pub(crate) struct AlignStorage {
    pub stage: StageId,
    pub axis: IterVar,
    pub factor: i64,
    pub offset: i64,
}

impl Schedule {
    /// The stride of that dimension of an intermediate becomes `offset` modulo `factor`.
    pub fn storage_align(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        factor: i64,
        offset: i64,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(AlignStorage { stage, axis: axis.clone(), factor, offset })
    }
}

impl Primitive for AlignStorage {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<AlignStorage, ScheduleError> {
        call.at_most(3)?;
        let stage = call.object()?;
        let axis = call.axis(stage, 0, "axis")?;
        let factor = call.as_int(call.arg(1, "factor")?, "factor")?;
        let offset = call.as_int(call.arg(2, "offset")?, "offset")?;
        Ok(AlignStorage { stage, axis, factor, offset })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let axis = axis_arg(schedule, self.stage, &self.axis);
        let args = vec![axis, Arg::Int(self.factor), Arg::Int(self.offset)];
        Step::on_stage(schedule.stage_name(self.stage), "storage_align", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let name = schedule.stage_name(stage.id);
        if stage.is_arg() {
            let (primitive, reason) = ("storage_align", "the caller lays it out");
            return Err(ScheduleError::Argument { primitive, stage: name, reason });
        }
        let bad = |what, wanted, found: String| ScheduleError::BadValue {
            primitive: "storage_align",
            stage: name.clone(),
            what,
            wanted,
            found,
        };
        let Some(dim) = stage.axes.iter().position(|a| *a == self.axis) else {
            return Err(bad("axis", "a dimension of the stage", stage.axis_name(&self.axis)));
        };
        if self.factor < 1 {
            return Err(bad("factor", "at least 1", self.factor.to_string()));
        }
        if self.offset < 0 || self.offset >= self.factor {
            return Err(bad("offset", "from 0 to less than factor", self.offset.to_string()));
        }
        if dim + 2 != stage.axes.len() {
            let what = "storage_align of any dimension but the last but one".to_owned();
            return Err(ScheduleError::Unsupported { what });
        }
        let constant = |extent: &Expr| extent.as_int().is_some();
        if !stage.axes[dim + 1].dom().is_some_and(|(_, extent)| constant(extent)) {
            let what = "storage_align beside a dimension of symbolic extent".to_owned();
            return Err(ScheduleError::Unsupported { what });
        }
        let align = StorageAlign { dim, factor: self.factor, offset: self.offset };
        for buffer in &stage.outputs {
            let mut shape = buffer.shape.clone();
            let index_dtype = stage.axes[dim + 1].var().dtype();
            let Some(padded) = shape[dim + 1].as_int().map(|extent| align.padded(extent)) else { continue };
            shape[dim + 1] = Expr::int_of(padded, DType::I64);
            if index_dtype.int_range().is_some_and(|(_, most)| padded > most)
                || oversize(&shape, buffer.dtype).is_some()
            {
                let wanted = "such that the padded extent fits its type and the bytes are counted";
                return Err(bad("factor", wanted, self.factor.to_string()));
            }
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id_mut(self.stage);
        if let Some(dim) = stage.axes.iter().position(|a| *a == self.axis) {
            stage.aligns.retain(|a| a.dim != dim);
            stage.aligns.push(StorageAlign { dim, factor: self.factor, offset: self.offset });
        }
        Ok(())
    }
}
