//! cache_read: some readers of a tensor read a copy of it in another scope.

use std::sync::Arc;

use coulis_ir::{Buffer, DType, Expr, MemScope, Var};
use coulis_tensor::{Body, IterKind, IterVar, Tensor};

use crate::error::ScheduleError;
use crate::example::{plus_one, size};
use crate::inline::replace_in_stage;
use crate::names::{identifier, name_of};
use crate::primitive::set_scope::{check_scope, scope_of};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "cache_read",
    signature: "s.cache_read(tensor, scope, readers)",
    summary: "a new stage copies the tensor, and the readers read the copy",
    before: "for i in range(n):\n    B[i] = A[i] + T.float32(1)",
    call: "A_local = s.cache_read(A, \"local\", [B])",
    after: "\
A_local = T.allocate([n], \"float32\", \"local\")
for ax0 in range(n):
    A_local[ax0] = A[ax0]
for i in range(n):
    B[i] = A_local[i] + T.float32(1)",
    example: || plus_one(&[size("n")]),
    apply: apply::<CacheRead>,
};

/// Arguments of cache_read.
#[derive(Clone, Debug)]
pub(crate) struct CacheRead {
    pub tensor: Buffer,
    pub scope: MemScope,
    pub readers: Vec<StageId>,
}

/// How callers name a tensor.
#[derive(Clone, Debug)]
pub enum TensorRef {
    /// By its buffer.
    Buffer(Buffer),
    /// By the stage that computes it alone.
    Stage(StageId),
}

impl From<&Tensor> for TensorRef {
    fn from(tensor: &Tensor) -> TensorRef {
        TensorRef::Buffer(tensor.buffer().clone())
    }
}

impl From<&Buffer> for TensorRef {
    fn from(buffer: &Buffer) -> TensorRef {
        TensorRef::Buffer(buffer.clone())
    }
}

impl From<StageId> for TensorRef {
    fn from(stage: StageId) -> TensorRef {
        TensorRef::Stage(stage)
    }
}

impl Schedule {
    /// A new stage copies the tensor, and the readers read the copy.
    pub fn cache_read(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
    ) -> Result<StageId, ScheduleError> {
        let cache = self.cache_of(tensor.into(), scope, readers, "cache_read")?;
        self.call(cache)
    }

    pub(crate) fn cache_of(
        &self,
        tensor: TensorRef,
        scope: MemScope,
        readers: &[StageRef],
        primitive: &'static str,
    ) -> Result<CacheRead, ScheduleError> {
        let tensor = match tensor {
            TensorRef::Buffer(buffer) => buffer,
            TensorRef::Stage(id) => {
                let stage = self.stage(id)?;
                match stage.outputs() {
                    [one] => one.clone(),
                    _ => {
                        return Err(ScheduleError::WrongBody {
                            primitive,
                            stage: self.stage_name(id),
                            wanted: "one tensor",
                            found: "a tuple; name the component by its buffer",
                        });
                    }
                }
            }
        };
        let readers = readers.iter().map(|r| self.find(r)).collect::<Result<_, _>>()?;
        Ok(CacheRead { tensor, scope, readers })
    }
}

impl Primitive for CacheRead {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<CacheRead, ScheduleError> {
        call.at_most(3)?;
        CacheRead::of(call)
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_schedule("cache_read", self.args(schedule))
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        self.check_as("cache_read", schedule)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        let name = schedule.free_name(format!("{}.{}", self.tensor.name, self.scope.name()));
        let axes: Vec<IterVar> = self.tensor.shape.iter().enumerate().map(dimension_axis).collect();
        let read = self.tensor.at(axes.iter().map(IterVar::expr).collect::<Vec<_>>());
        let copy = Buffer::new(&name, self.tensor.dtype, self.tensor.shape.clone(), self.scope);
        let id = schedule.fresh_id();
        let mut stage = Stage::new(id, name, vec![copy.clone()], axes, Body::Plain(vec![read]));
        stage.scope = Some(self.scope);
        let replace =
            |buffer: &Buffer, indices: &[Expr]| (*buffer == self.tensor).then(|| copy.at(indices.to_vec()));
        let mut first = schedule.stages.len();
        for reader in &self.readers {
            first = first.min(schedule.position(*reader));
            replace_in_stage(schedule.by_id_mut(*reader), &replace);
        }
        schedule.stages.insert(first, Arc::new(stage));
        Ok(id)
    }
}

impl CacheRead {
    /// The first three arguments of a call.
    pub(crate) fn of(call: &Call) -> Result<CacheRead, ScheduleError> {
        let tensor = match call.arg(0, "tensor")? {
            Arg::Name(name) | Arg::Stage(name) => tensor_named(call.schedule, name)
                .ok_or_else(|| call.bad(format!("`{name}` is no tensor of the program")))?,
            Arg::Tensor(buffer) => buffer.clone(),
            other => return Err(call.bad(format!("`tensor` is to be a tensor, got {other}"))),
        };
        let found = call.string(1, "scope")?;
        let scope = scope_of(found)?;
        let readers = match call.arg(2, "readers")? {
            Arg::List(items) => {
                items.iter().map(|item| call.as_stage(item, "readers")).collect::<Result<_, _>>()?
            }
            one => vec![call.as_stage(one, "readers")?],
        };
        Ok(CacheRead { tensor, scope, readers })
    }

    /// These as a step has them.
    pub(crate) fn args(&self, schedule: &Schedule) -> Vec<Arg> {
        let readers = self.readers.iter().map(|id| Arg::Name(schedule.stage_name(*id))).collect();
        let tensor = Arg::Name(tensor_name(schedule, &self.tensor));
        vec![tensor, Arg::Str(self.scope.name().to_owned()), Arg::List(readers)]
    }

    /// Whether `primitive` may copy the tensor for these readers.
    pub(crate) fn check_as(&self, primitive: &'static str, schedule: &Schedule) -> Result<(), ScheduleError> {
        check_scope(self.scope)?;
        let tensor = self.tensor.name.clone();
        if !known_tensors(schedule).contains(&self.tensor) {
            return Err(ScheduleError::UnknownTensor { primitive, tensor });
        }
        let reads = |s: &Stage| s.reads().contains(&self.tensor);
        let legal =
            || schedule.stages.iter().filter(|s| reads(s)).map(|s| schedule.stage_name(s.id)).collect();
        let wrong = self.readers.iter().find(|id| !reads(schedule.by_id(**id)));
        if let Some(reader) = wrong {
            let reader = schedule.stage_name(*reader);
            return Err(ScheduleError::NotAReader { primitive, tensor, reader, legal: legal() });
        }
        if self.readers.is_empty() {
            return Err(ScheduleError::NoReaders { primitive, tensor, legal: legal() });
        }
        Ok(())
    }
}

/// The axis `ax<n>` of a dimension of that extent.
pub(crate) fn dimension_axis((dim, extent): (usize, &Expr)) -> IterVar {
    let dtype = if extent.dtype() == DType::I64 { DType::I64 } else { DType::I32 };
    let extent = crate::fold::cast(extent, dtype);
    IterVar::new(Var::size(&format!("ax{dim}"), dtype), IterKind::Data, Expr::int_of(0, dtype), extent)
}

/// Every tensor that a step may name: arguments first, then results of stages.
fn known_tensors(schedule: &Schedule) -> Vec<Buffer> {
    let inputs = schedule.program().args().iter().map(|a| a.buffer().clone());
    let mut known: Vec<Buffer> = inputs.collect();
    for output in schedule.stages.iter().flat_map(|s| &s.outputs) {
        if !known.contains(output) {
            known.push(output.clone());
        }
    }
    known
}

/// The name of a tensor in traces, made unique by `_1`, `_2`, ….
fn tensor_name(schedule: &Schedule, tensor: &Buffer) -> String {
    let name = name_of(&known_tensors(schedule), |known| &known.name, |known| known == tensor);
    name.unwrap_or_else(|| identifier(&tensor.name))
}

fn tensor_named(schedule: &Schedule, name: &str) -> Option<Buffer> {
    let known = known_tensors(schedule);
    let named = known.iter().find(|b| tensor_name(schedule, b) == name).cloned();
    named.or_else(|| match schedule.stage(name) {
        Ok(stage) if stage.outputs.len() == 1 => Some(stage.outputs[0].clone()),
        Ok(_) | Err(_) => None,
    })
}
