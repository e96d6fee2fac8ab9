//! cache_write: a stage computes into a copy in another scope, laid out as its loops run, and copies out.

use std::sync::Arc;

use coulis_ir::visit::substitute_expr;
use coulis_ir::{BinaryOp, Buffer, Expr, MemScope, Var};
use coulis_tensor::{Body, IterKind, IterVar};

use crate::error::ScheduleError;
use crate::example::{plus_one, size};
use crate::fold;
use crate::inline::map_body;
use crate::primitive::set_scope::{check_scope, scope_of};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::ranges;
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Relation, Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "cache_write",
    signature: "s.cache_write(stage, scope)",
    summary: "a new stage takes over the computation, with the loops of the data axes as its dimensions",
    before: "for i in range(n):\n    B[i] = A[i] + T.float32(1)",
    call: "B_local = s.cache_write(B, \"local\")",
    after: "\
B_local = T.allocate([n], \"float32\", \"local\")
for i_c in range(n):
    B_local[i_c] = A[i_c] + T.float32(1)
for i in range(n):
    B[i] = B_local[i]",
    example: || plus_one(&[size("n")]),
    apply: apply::<CacheWrite>,
};

/// Arguments of cache_write.
#[derive(Clone, Debug)]
pub(crate) struct CacheWrite {
    pub stage: StageId,
    pub scope: MemScope,
}

impl Schedule {
    /// A new stage takes over the computation, laid out as the loops run, and the old one copies out of it.
    pub fn cache_write(
        &mut self,
        stage: impl Into<StageRef>,
        scope: MemScope,
    ) -> Result<StageId, ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(CacheWrite { stage, scope })
    }
}

impl Primitive for CacheWrite {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<CacheWrite, ScheduleError> {
        call.at_most(2)?;
        let stage = call.stage(0, "stage")?;
        let found = call.string(1, "scope")?;
        let scope = scope_of(found)?;
        Ok(CacheWrite { stage, scope })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        Step::on_schedule("cache_write", vec![stage, Arg::Str(self.scope.name().to_owned())])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        check_scope(self.scope)?;
        let stage = schedule.by_id(self.stage);
        schedule.check_holds_none("cache_write", self.stage)?;
        stage.check_unturned("cache_write")?;
        if stage.overlaps() {
            let (wanted, found) = ("one whose loops compute each element once", "split with overlap=True");
            return schedule.bad_value("cache_write", self.stage, "stage", wanted, found.to_owned());
        }
        if let Some(axis) = stage.reduce_axes().iter().find(|a| !stage.leaves.contains(a)) {
            return Err(ScheduleError::ReduceAxisScheduled {
                primitive: "cache_write",
                stage: schedule.stage_name(stage.id),
                axis: stage.axis_name(axis),
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        let id = schedule.fresh_id();
        let position = schedule.position(self.stage);
        let stage = &schedule.stages[position];
        let analyzer = schedule.analyzer();
        let domains = ranges::declared(stage);
        let extents = ranges::extents(stage, &domains, &analyzer);

        // Dimensions of the copy: the data loops, in order.
        let leaves: Vec<IterVar> = stage.leaves.iter().filter(|l| stage.origin(l).data).cloned().collect();
        let mut axes = Vec::new();
        let mut values = Values::default();
        let mut known = analyzer.clone();
        for leaf in &leaves {
            let extent = extents[leaf.var()].clone();
            let var = Var::size(&format!("{}_c", leaf.name()), leaf.dtype());
            let zero = fold::int(0, leaf.dtype());
            known.bind(&var, &zero, &extent);
            values.insert(leaf.var().clone(), var.expr());
            axes.push(IterVar::new(var, IterKind::Data, zero, extent));
        }
        let offsets = ranges::offsets(stage, &extents, &values);
        let mut roots = Values::default();
        for axis in &stage.axes {
            roots.insert(
                axis.var().clone(),
                known.simplify(&fold::add(&domains[axis.var()].0, &offsets[axis.var()])),
            );
        }
        let marked = ranges::marked(stage, &extents, &analyzer);
        let mut inside: Option<Expr> = None;
        for axis in stage.all_axes.iter().filter(|a| marked.contains(a.var()) && stage.origin(a).data) {
            let (value, extent) = (&offsets[axis.var()], &extents[axis.var()]);
            if !fold::proves(&known, BinaryOp::Lt, value, extent) {
                let bound = known.simplify(&fold::compare(BinaryOp::Lt, value, extent));
                inside = Some(inside.map_or(bound.clone(), |all| all.and(bound)));
            }
        }
        let body = cached_body(stage, &roots, inside);

        // The original stage becomes the copy out of the new one.
        let name = format!("{}.{}", stage.name, self.scope.name());
        let shape: Vec<Expr> = axes.iter().filter_map(|a| a.dom().map(|(_, e)| e.clone())).collect();
        let outputs: Vec<Buffer> = stage
            .outputs
            .iter()
            .enumerate()
            .map(|(c, output)| {
                let one = stage.outputs.len() == 1;
                let name = if one { name.clone() } else { format!("{name}.v{c}") };
                Buffer::new(&name, output.dtype, shape.clone(), self.scope)
            })
            .collect();
        let indices = forward(stage, &extents, &leaves);
        let reads = outputs.iter().map(|o| o.at(indices.clone())).collect();
        let data_axes = stage.axes.clone();
        let mut cache = Stage::new(id, name, outputs, axes, body);
        cache.scope = Some(self.scope);
        Arc::make_mut(&mut schedule.stages[position]).redefine(data_axes, Body::Plain(reads));
        schedule.stages.insert(position, Arc::new(cache));
        Ok(id)
    }
}

/// The body with root axes expressed in the new dimensions. Points that are none of the tensor keep the identity,
/// or 0 where there is no reduction; what memory says of their start and of their reduce axes is not read.
fn cached_body(stage: &Stage, roots: &Values, inside: Option<Expr>) -> Body {
    let body = map_body(&stage.body, &|e| substitute_expr(e, roots));
    match (body, inside) {
        (body, None) => body,
        (Body::Reduce(mut r), Some(inside)) => {
            for axis in &mut r.axes {
                if let Some((min, extent)) = axis.dom()
                    && extent.reads_memory()
                {
                    let extent =
                        Expr::if_then_else(inside.clone(), extent.clone(), Expr::constant(0, extent.dtype()));
                    *axis = IterVar::new(axis.var().clone(), axis.kind(), min.clone(), extent);
                }
            }
            for (start, identity) in r.init.iter_mut().zip(&r.identity) {
                if start.reads_memory() {
                    *start = Expr::if_then_else(inside.clone(), start.clone(), identity.clone());
                }
            }
            r.condition = Some(match r.condition {
                Some(condition) => inside.and(condition),
                None => inside,
            });
            Body::Reduce(r)
        }
        (Body::Plain(exprs), Some(inside)) => Body::Plain(
            exprs
                .into_iter()
                .map(|e| {
                    let zero = Expr::constant(0, e.dtype());
                    Expr::if_then_else(inside.clone(), e, zero)
                })
                .collect(),
        ),
    }
}

/// The values of the data loops at a point of the root axes.
fn forward(stage: &Stage, extents: &Values, leaves: &[IterVar]) -> Vec<Expr> {
    let mut values = Values::default();
    for axis in &stage.axes {
        values.insert(axis.var().clone(), axis.expr());
    }
    for relation in &stage.relations {
        match relation {
            Relation::Split { parent, outer, inner, .. } => {
                if let Some(value) = values.get(parent.var()).cloned() {
                    let extent = &extents[inner.var()];
                    values.insert(outer.var().clone(), fold::floordiv(&value, extent));
                    values.insert(inner.var().clone(), fold::floormod(&value, extent));
                }
            }
            Relation::Fuse { outer, inner, fused } => {
                if let (Some(o), Some(i)) = (values.get(outer.var()), values.get(inner.var())) {
                    let value = fold::add(&fold::mul(o, &extents[inner.var()]), i);
                    values.insert(fused.var().clone(), value);
                }
            }
            Relation::Singleton { axis } => {
                values.insert(axis.var().clone(), fold::int(0, axis.dtype()));
            }
        }
    }
    leaves.iter().filter_map(|leaf| values.get(leaf.var()).cloned()).collect()
}
