//! fuse: neighbouring loops become one.

use coulis_ir::visit::uses_any;
use coulis_ir::{DType, Expr, Var};
use coulis_tensor::{IterKind, IterVar};

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::primitive::split::move_attached;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges;
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, Relation, StageId};
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "fuse",
    signature: "s[B].fuse(*axes)",
    summary: "neighbouring loops become one; without axes, adds an outermost loop of one iteration",
    before: "for i, j in T.grid(n, 8):\n    B[i, j] = A[i, j]",
    call: "i_j_fused = s[B].fuse(i, j)",
    after: "\
for i_j_fused in range(n * 8):
    B[i_j_fused // 8, i_j_fused % 8] = A[i_j_fused // 8, i_j_fused % 8]",
    example: || copy(&[size("n"), Expr::int(8)]),
    apply: apply::<Fuse>,
};

/// Arguments of fuse.
#[derive(Clone, Debug)]
pub(crate) struct Fuse {
    pub stage: StageId,
    pub axes: Vec<IterVar>,
}

impl Schedule {
    /// Neighbouring loops become one; no loops give an outermost loop of one iteration.
    pub fn fuse(&mut self, stage: impl Into<StageRef>, axes: &[IterVar]) -> Result<IterVar, ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Fuse { stage, axes: axes.to_vec() })
    }
}

impl Primitive for Fuse {
    type Output = IterVar;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Fuse, ScheduleError> {
        let stage = call.object()?;
        Ok(Fuse { stage, axes: call.axes(stage)? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = self.axes.iter().map(|a| axis_arg(schedule, self.stage, a)).collect();
        Step::on_stage(schedule.stage_name(self.stage), "fuse", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        for (n, axis) in self.axes.iter().enumerate() {
            stage.leaf_position("fuse", axis)?;
            stage.check_unmarked("fuse", axis)?;
            if self.axes[..n].contains(axis) {
                let axis = stage.axis_name(axis);
                return Err(ScheduleError::Repeated { primitive: "fuse", stage: stage.name.clone(), axis });
            }
        }
        for pair in self.axes.windows(2) {
            let position = |axis| stage.leaf_position("fuse", axis);
            let (outer, inner) = (stage.axis_name(&pair[0]), stage.axis_name(&pair[1]));
            if position(&pair[0])? + 1 != position(&pair[1])? {
                let (stage, legal) = (stage.name.clone(), stage.names(&stage.leaves));
                return Err(ScheduleError::NotAdjacent { stage, outer, inner, legal });
            }
            // The extent of the inner loop may not depend on an index that the fused loop computes.
            let domains = ranges::declared(stage);
            for root in self.axes.iter().flat_map(|a| stage.roots_of(a)) {
                let Some((_, extent)) = domains.get(root.var()) else { continue };
                let on = stage.all_axes.iter().find(|a| uses_any(extent, std::slice::from_ref(a.var())));
                if let Some(on) = on {
                    return Err(ScheduleError::OrderDependency {
                        primitive: "fuse",
                        stage: stage.name.clone(),
                        axis: stage.axis_name(&root),
                        on: stage.axis_name(on),
                    });
                }
            }
        }
        let lost = &self.axes[..self.axes.len().saturating_sub(1)];
        let is_lost = |attach: &Attach| match attach {
            Attach::At(parent, axis) => *parent == self.stage && lost.contains(axis),
            Attach::Root | Attach::Inline => false,
        };
        let attached = schedule.stages.iter().filter(|s| is_lost(&s.attach));
        let attached: Vec<String> = attached.map(|s| schedule.stage_name(s.id)).collect();
        if !attached.is_empty() {
            let stage = stage.name.clone();
            return Err(ScheduleError::HoldsStages { primitive: "fuse", stage, attached });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<IterVar, ScheduleError> {
        let stage = schedule.by_id_mut(self.stage);
        let mut axes = self.axes.iter();
        let Some(first) = axes.next() else {
            let like = IterVar::derived(Var::size("singleton", DType::I32), IterKind::Data);
            let axis = stage.new_axis("singleton", &like, IterKind::Data);
            stage.leaves.insert(0, axis.clone());
            stage.relations.push(Relation::Singleton { axis: axis.clone() });
            return Ok(axis);
        };
        let mut fused = first.clone();
        for inner in axes {
            let stage = schedule.by_id_mut(self.stage);
            let position = stage.leaf_position("fuse", &fused)?;
            let kind = match (fused.kind(), inner.kind()) {
                (IterKind::Data, IterKind::Data) => IterKind::Data,
                (IterKind::Reduce, _) | (_, IterKind::Reduce) => IterKind::Reduce,
            };
            let wide = coulis_ir::expr::promoted_dtype(fused.dtype(), inner.dtype());
            let like = IterVar::derived(Var::size("wide", wide), kind);
            let stem = fused.name().strip_suffix("_fused").unwrap_or(fused.name()).to_owned();
            let both = stage.new_axis(&format!("{stem}_{}_fused", inner.name()), &like, kind);
            stage.leaves.splice(position..=position + 1, [both.clone()]);
            stage.relations.push(Relation::Fuse {
                outer: fused.clone(),
                inner: inner.clone(),
                fused: both.clone(),
            });
            move_attached(schedule, self.stage, inner, &both);
            fused = both;
        }
        Ok(fused)
    }
}
