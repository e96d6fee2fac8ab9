//! tile: two loops are split, and the inner ones go inside.

use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::primitive::reorder::Reorder;
use crate::primitive::split::{Split, SplitAxis};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "tile",
    signature: "s[B].tile(x, y, x_factor, y_factor)",
    summary: "splits two loops and orders them outer, outer, inner, inner",
    before: "for i, j in T.grid(n, m):\n    B[i, j] = A[i, j]",
    call: "i_outer, j_outer, i_inner, j_inner = s[B].tile(i, j, 4, 8)",
    after:
        "\
for i_outer, j_outer, i_inner, j_inner in T.grid((n + 3) // 4, (m + 7) // 8, 4, 8):
    if T.likely(i_outer * 4 + i_inner < n):
        if T.likely(j_outer * 8 + j_inner < m):
            B[i_outer * 4 + i_inner, j_outer * 8 + j_inner] = A[i_outer * 4 + i_inner, j_outer * 8 + j_inner]",
    example: || copy(&[size("n"), size("m")]),
    apply: apply::<Tile>,
};

/// Arguments of tile.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub stage: StageId,
    pub x: IterVar,
    pub y: IterVar,
    pub x_factor: i64,
    pub y_factor: i64,
}

impl Schedule {
    /// Splits two loops and orders them outer, outer, inner, inner.
    pub fn tile(
        &mut self,
        stage: impl Into<StageRef>,
        x: &IterVar,
        y: &IterVar,
        x_factor: i64,
        y_factor: i64,
    ) -> Result<[IterVar; 4], ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Tile { stage, x: x.clone(), y: y.clone(), x_factor, y_factor })
    }
}

impl Primitive for Tile {
    type Output = [IterVar; 4];
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Tile, ScheduleError> {
        call.at_most(4)?;
        let stage = call.object()?;
        let (x, y) = (call.axis(stage, 0, "x")?, call.axis(stage, 1, "y")?);
        let x_factor = call.as_int(call.arg(2, "x_factor")?, "x_factor")?;
        let y_factor = call.as_int(call.arg(3, "y_factor")?, "y_factor")?;
        Ok(Tile { stage, x, y, x_factor, y_factor })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let axis = |a| axis_arg(schedule, self.stage, a);
        let args = vec![axis(&self.x), axis(&self.y), Arg::Int(self.x_factor), Arg::Int(self.y_factor)];
        Step::on_stage(schedule.stage_name(self.stage), "tile", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        for split in self.splits() {
            split.check(schedule)?;
        }
        if self.x == self.y {
            let stage = schedule.by_id(self.stage);
            let (axis, stage) = (stage.axis_name(&self.x), stage.name.clone());
            return Err(ScheduleError::Repeated { primitive: "tile", stage, axis });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<[IterVar; 4], ScheduleError> {
        let [x, y] = self.splits();
        let (x_outer, x_inner) = x.apply(schedule)?;
        let (y_outer, y_inner) = y.apply(schedule)?;
        let axes = [x_outer, y_outer, x_inner, y_inner];
        let reorder = Reorder { stage: self.stage, axes: axes.to_vec() };
        reorder.check(schedule)?;
        reorder.apply(schedule)?;
        Ok(axes)
    }
}

impl Tile {
    fn splits(&self) -> [SplitAxis; 2] {
        let split = |axis: &IterVar, factor| SplitAxis {
            stage: self.stage,
            axis: axis.clone(),
            by: Split::Factor(factor),
        };
        [split(&self.x, self.x_factor), split(&self.y, self.y_factor)]
    }
}
