//! The primitives as methods, for callers in Rust. Each is one step of the trace.

use coulis_ir::{Attr, Buffer, Expr, MemScope, ThreadTag};
use coulis_tensor::{IterVar, Tensor};

use crate::error::ScheduleError;
use crate::primitive::Primitive;
use crate::primitive::bind::Bind;
use crate::primitive::cache_read::CacheRead;
use crate::primitive::cache_write::CacheWrite;
use crate::primitive::compute_at::ComputeAt;
use crate::primitive::compute_inline::ComputeInline;
use crate::primitive::compute_root::ComputeRoot;
use crate::primitive::double_buffer::DoubleBuffer;
use crate::primitive::filled::FilledRows;
use crate::primitive::from_boundary::FromBoundary;
use crate::primitive::from_first::FromFirst;
use crate::primitive::fuse::Fuse;
use crate::primitive::grid_finish::FinishGrid;
use crate::primitive::in_runs::InRuns;
use crate::primitive::join::Join;
use crate::primitive::parallel::Parallel;
use crate::primitive::peel::Peel;
use crate::primitive::pragma::Pragma;
use crate::primitive::reorder::Reorder;
use crate::primitive::rfactor::Rfactor;
use crate::primitive::set_scope::SetScope;
use crate::primitive::set_store_predicate::SetStorePredicate;
use crate::primitive::split::{Split, SplitAxis};
use crate::primitive::storage_align::AlignStorage;
use crate::primitive::tile::Tile;
use crate::primitive::unroll::Unroll;
use crate::primitive::vectorize::Vectorize;
use crate::primitive::zip::Zip;
use crate::schedule::{Schedule, StageRef};
use crate::stage::{GridFinish, StageId};

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

type Result<T> = std::result::Result<T, ScheduleError>;

impl Schedule {
    /// Runs a primitive that Rust called.
    fn call<P: Primitive>(&mut self, call: P) -> Result<P::Output> {
        self.run(call, &[]).map(|(output, _)| output)
    }

    /// One loop becomes an outer and an inner one.
    pub fn split(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        by: Split,
    ) -> Result<(IterVar, IterVar)> {
        let stage = self.find(&stage.into())?;
        self.call(SplitAxis { stage, axis: axis.clone(), by })
    }

    /// Splits two loops and orders them outer, outer, inner, inner.
    pub fn tile(
        &mut self,
        stage: impl Into<StageRef>,
        x: &IterVar,
        y: &IterVar,
        x_factor: i64,
        y_factor: i64,
    ) -> Result<[IterVar; 4]> {
        let stage = self.find(&stage.into())?;
        self.call(Tile { stage, x: x.clone(), y: y.clone(), x_factor, y_factor })
    }

    /// Neighbouring loops become one; no loops give an outermost loop of one iteration.
    pub fn fuse(&mut self, stage: impl Into<StageRef>, axes: &[IterVar]) -> Result<IterVar> {
        let stage = self.find(&stage.into())?;
        self.call(Fuse { stage, axes: axes.to_vec() })
    }

    /// The loops, in the order given, take the places that they have together.
    pub fn reorder(&mut self, stage: impl Into<StageRef>, axes: &[IterVar]) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Reorder { stage, axes: axes.to_vec() })
    }

    /// The body is repeated once an iteration.
    pub fn unroll(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Unroll { stage, axis: axis.clone() })
    }

    /// The iterations of a data axis become lanes.
    pub fn vectorize(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Vectorize { stage, axis: axis.clone() })
    }

    /// The iterations of a data axis are spread over threads.
    pub fn parallel(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Parallel { stage, axis: axis.clone() })
    }

    /// The stage is computed inside the loop `axis` of `parent`.
    pub fn compute_at(
        &mut self,
        stage: impl Into<StageRef>,
        parent: impl Into<StageRef>,
        axis: &IterVar,
    ) -> Result<()> {
        let (stage, parent) = (self.find(&stage.into())?, self.find(&parent.into())?);
        self.call(ComputeAt { stage, parent, axis: axis.clone() })
    }

    /// The stage is computed in place of each read of it.
    pub fn compute_inline(&mut self, stage: impl Into<StageRef>) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(ComputeInline { stage })
    }

    /// The stage is computed in a loop nest of its own.
    pub fn compute_root(&mut self, stage: impl Into<StageRef>) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(ComputeRoot { stage })
    }

    /// A new stage copies the tensor, and the readers read the copy.
    pub fn cache_read(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
    ) -> Result<StageId> {
        let cache = self.cache_of(tensor.into(), scope, readers, "cache_read")?;
        self.call(cache)
    }

    /// As [`Schedule::cache_read`] of rows, each copied from its first boundary of accesses of so many lanes
    /// on, with what is before that at its end; the readers take the elements in that order.
    pub fn from_boundary(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
        lanes: i64,
    ) -> Result<StageId> {
        let cache = self.cache_of(tensor.into(), scope, readers, "from_boundary")?;
        self.call(FromBoundary { cache, lanes })
    }

    /// As [`Schedule::from_boundary`], of a copy whose rows have `length` elements, a whole number of
    /// accesses: those that no row has are one that the folds may take any number of times. All readers run
    /// over all elements of the copy.
    pub fn filled(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
        lanes: i64,
        length: i64,
    ) -> Result<StageId> {
        let cache = self.cache_of(tensor.into(), scope, readers, "filled")?;
        self.call(FilledRows { rows: FromBoundary { cache, lanes }, length })
    }

    fn cache_of(
        &self,
        tensor: TensorRef,
        scope: MemScope,
        readers: &[StageRef],
        primitive: &'static str,
    ) -> Result<CacheRead> {
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
        let readers = readers.iter().map(|r| self.find(r)).collect::<Result<_>>()?;
        Ok(CacheRead { tensor, scope, readers })
    }

    /// A new stage takes over the computation, laid out as the loops run, and the old one copies out of it.
    pub fn cache_write(&mut self, stage: impl Into<StageRef>, scope: MemScope) -> Result<StageId> {
        let stage = self.find(&stage.into())?;
        self.call(CacheWrite { stage, scope })
    }

    /// The loop becomes dimension 0 of a new stage of partial results, which the old stage folds.
    pub fn rfactor(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<StageId> {
        self.rfactor_at(stage, axis, 0)
    }

    /// As [`Schedule::rfactor`], with the position of the new dimension; negative ones count from the end.
    pub fn rfactor_at(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        factor_axis: i64,
    ) -> Result<StageId> {
        let stage = self.find(&stage.into())?;
        self.call(Rfactor { stage, axis: axis.clone(), factor_axis })
    }

    /// The elements along the axis that are whole accesses of so many lanes become a stage, those at both ends of each row
    /// another, and the old stage combines the two: the new stages.
    pub fn peel(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        lanes: i64,
    ) -> Result<(StageId, StageId)> {
        let stage = self.find(&stage.into())?;
        self.call(Peel { stage, axis: axis.clone(), lanes })
    }

    /// Two folds of as many steps, whose results the stage combines as their reducer does, become one fold of that stage.
    pub fn zip(
        &mut self,
        stage: impl Into<StageRef>,
        first: impl Into<StageRef>,
        second: impl Into<StageRef>,
    ) -> Result<()> {
        let stage = self.find(&stage.into())?;
        let (first, second) = (self.find(&first.into())?, self.find(&second.into())?);
        self.call(Zip { stage, first, second })
    }

    /// The loop runs over that block or thread index.
    pub fn bind(&mut self, stage: impl Into<StageRef>, axis: &IterVar, tag: ThreadTag) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Bind { stage, axis: axis.clone(), tag })
    }

    /// Only where the condition holds are results stored. It is over axes of the stage, sizes, and the thread indices
    /// that [`crate::thread_index`] gives.
    pub fn set_store_predicate(&mut self, stage: impl Into<StageRef>, predicate: Expr) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(SetStorePredicate { stage, predicate })
    }

    /// Says how the parts of a reduction over blocks come together.
    pub fn grid_finish(&mut self, stage: impl Into<StageRef>, finish: GridFinish) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(FinishGrid { stage, finish })
    }

    /// Two copies of the stage's memory, so that one is filled while the other is read.
    pub fn double_buffer(&mut self, stage: impl Into<StageRef>) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(DoubleBuffer { stage })
    }

    /// The reduce loop and those in it fold short runs by the reducer's quick step.
    pub fn in_runs(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(InRuns { stage, axis: axis.clone() })
    }

    /// A fold that surely holds an element starts from the state of the first one.
    pub fn from_first(&mut self, stage: impl Into<StageRef>) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(FromFirst { stage })
    }

    /// The results live in that scope.
    pub fn set_scope(&mut self, stage: impl Into<StageRef>, scope: MemScope) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(SetScope { stage, scope })
    }

    /// Two neighbouring dimensions of an intermediate become one.
    pub fn join(&mut self, stage: impl Into<StageRef>, outer: &IterVar, inner: &IterVar) -> Result<IterVar> {
        let stage = self.find(&stage.into())?;
        self.call(Join { stage, outer: outer.clone(), inner: inner.clone() })
    }

    /// The stride of that dimension of an intermediate becomes `offset` modulo `factor`.
    pub fn storage_align(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        factor: i64,
        offset: i64,
    ) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(AlignStorage { stage, axis: axis.clone(), factor, offset })
    }

    /// Marks the loop with `pragma_<key>`.
    pub fn pragma(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        key: &str,
        value: Attr,
    ) -> Result<()> {
        let stage = self.find(&stage.into())?;
        self.call(Pragma { stage, axis: axis.clone(), key: key.to_owned(), value })
    }
}
