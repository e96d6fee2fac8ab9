//! Why a primitive or the building of a nest is refused. Each case names what was asked, what was found and what
//! is legal now; a refused primitive leaves the schedule as it was.

use coulis_ir::{DType, quoted_names};
use coulis_tensor::TensorError;

use crate::thread_error::ThreadError;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A mistake in the program.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A mistake on block and thread indices.
    #[error(transparent)]
    Thread(Box<ThreadError>),
    /// A tensor of another program, which has the name of a stage.
    #[error(
        "tensor `{asked}` is none of this schedule, whose stage `{asked}` makes another one of that name; the stages \
         are {}",
        quoted_names(legal)
    )]
    OtherTensor {
        /// The tensor's name.
        asked: String,
        /// Names of the stages.
        legal: Vec<String>,
    },
    /// No such stage.
    #[error("there is no stage `{asked}`; the stages are {}", quoted_names(legal))]
    UnknownStage {
        /// The name asked for.
        asked: String,
        /// Names of the stages.
        legal: Vec<String>,
    },
    /// A stage that a primitive took away.
    #[error(
        "`{asked}` is no stage any more: {primitive} made it a part of `{into}`; the stages are {}",
        quoted_names(legal)
    )]
    GoneStage {
        /// Its name.
        asked: String,
        /// The primitive.
        primitive: &'static str,
        /// The stage that computes now what it did.
        into: String,
        /// Names of the stages.
        legal: Vec<String>,
    },
    /// No such primitive.
    #[error("there is no primitive `{asked}`; the primitives are {}", legal.join(", "))]
    UnknownPrimitive {
        /// The name asked for.
        asked: String,
        /// Names of the primitives.
        legal: Vec<String>,
    },
    /// Names that are not one for each value that a primitive gives.
    #[error(
        "{primitive}: the names to the left of `=` are {names}, and it gives {n_values} value(s), which are named one by one or not at all"
    )]
    Names {
        /// The primitive.
        primitive: &'static str,
        /// The names.
        names: String,
        /// How many values it gives.
        n_values: usize,
    },
    /// No such axis in the stage.
    #[error(
        "{primitive}: `{axis}` is not an axis of `{stage}`{}; its axes are {}",
        namesake(axis, legal),
        quoted_names(legal)
    )]
    ForeignAxis {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis asked for.
        axis: String,
        /// The leaf axes.
        legal: Vec<String>,
    },
    /// An axis that has been replaced.
    #[error("{primitive}: `{axis}` of `{stage}` {history}; the axes are now {}", quoted_names(legal))]
    NotALeaf {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis asked for.
        axis: String,
        /// What became of it: ``was split into `k_outer` and `k_inner` ``.
        history: String,
        /// The leaf axes.
        legal: Vec<String>,
    },
    /// A data axis where a reduce axis is wanted, or the reverse.
    #[error(
        "{primitive} takes a {wanted} of `{stage}`, and `{axis}` is a {found}; legal are {}",
        quoted_names(legal)
    )]
    WrongKind {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// `data axis` or `reduce axis`.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
        /// Leaf axes of the wanted kind.
        legal: Vec<String>,
    },
    /// A factor or number of parts below 1.
    #[error("{primitive} of `{axis}` takes a {what} of at least 1, got {found}")]
    FactorTooSmall {
        /// The primitive.
        primitive: &'static str,
        /// The axis.
        axis: String,
        /// `factor` or `number of parts`.
        what: &'static str,
        /// The value given.
        found: i64,
    },
    /// A factor or number of parts that the type of the axis does not hold.
    #[error(
        "{primitive} of `{axis}` takes a {what} of at most {most}, since its index is {dtype}, got {found}"
    )]
    FactorTooLarge {
        /// The primitive.
        primitive: &'static str,
        /// The axis.
        axis: String,
        /// `factor` or `number of parts`.
        what: &'static str,
        /// The value given.
        found: i64,
        /// The largest legal value.
        most: i128,
        /// The type of the axis' index.
        dtype: &'static str,
    },
    /// A factor that is not an integer expression of sizes.
    #[error("split of `{axis}` takes an integer factor of constants and sizes, and this one uses `{found}`")]
    FactorForm {
        /// The axis.
        axis: String,
        /// What it uses.
        found: String,
    },
    /// Axes that are not next to each other in that order.
    #[error(
        "fuse takes neighbours in loop order, and `{inner}` does not follow `{outer}` in `{stage}`; the order is {}",
        quoted_names(legal)
    )]
    NotAdjacent {
        /// The stage.
        stage: String,
        /// The first of the pair.
        outer: String,
        /// The second of the pair.
        inner: String,
        /// The leaf axes in order.
        legal: Vec<String>,
    },
    /// The same axis twice.
    #[error("{primitive} names `{axis}` of `{stage}` twice; each axis stands once")]
    Repeated {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
    },
    /// An axis moved outside one that its extent depends on.
    #[error(
        "{primitive}: the extent of `{axis}` of `{stage}` depends on `{on}`, which is to stay outside of it"
    )]
    OrderDependency {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The dependent axis.
        axis: String,
        /// What its extent uses.
        on: String,
    },
    /// A loop kind on an axis that already has one.
    #[error("{primitive}: `{axis}` of `{stage}` is {found} already; do this before, or to another axis")]
    AlreadyMarked {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// `parallel`, `unrolled`, `vectorized`, `annotated` or `bound to a thread index`.
        found: &'static str,
    },
    /// Something that outputs cannot be.
    #[error(
        "{primitive}: `{stage}` is an output, and outputs are computed at the root; legal are {}",
        quoted_names(legal)
    )]
    Output {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// Stages that are no outputs.
        legal: Vec<String>,
    },
    /// An argument that a stage cannot be moved away from.
    #[error("{primitive}: `{stage}` is an argument and {reason}")]
    Argument {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// Why not.
        reason: &'static str,
    },
    /// A body that the primitive does not take.
    #[error("{primitive} takes {wanted}, and `{stage}` is {found}")]
    WrongBody {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// What is taken.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A reducer without the laws that a new order of folding needs.
    #[error(
        "{primitive} of `{stage}` changes the order of the fold, and its reducer `{reducer}` does not claim to be \
         associative and commutative"
    )]
    UnclaimedLaws {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The reducer.
        reducer: String,
    },
    /// A state that is wider than the result, or has more fields, and would need memory that has no size.
    #[error(
        "`{stage}` is folded in {state} and its result rounded once, which takes memory for the states inside the reduce loop; here {why}. \
         Legal are data loops outside of the reduce loops, and ones inside with extents of their own; a `cache_write` \
         of `{stage}` has a schedule of its own"
    )]
    NoState {
        /// The stage.
        stage: String,
        /// The type of the state.
        state: DType,
        /// What leaves the memory without a size.
        why: &'static str,
    },
    /// An axis that cannot be factored.
    #[error("rfactor of `{stage}` by `{axis}`: {reason}")]
    CannotFactor {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// Why not.
        reason: &'static str,
    },
    /// A position outside the dimensions.
    #[error("rfactor of `{stage}` takes a factor_axis from {low} to {high}, got {found}")]
    FactorAxis {
        /// The stage.
        stage: String,
        /// Smallest legal.
        low: i64,
        /// Largest legal.
        high: i64,
        /// The value given.
        found: i64,
    },
    /// A rewrite of a stage whose axes hold other stages.
    #[error(
        "{primitive}: {} is computed at axes of `{stage}`, which this replaces; do this first",
        quoted_names(attached)
    )]
    HoldsStages {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The stages attached at it.
        attached: Vec<String>,
    },
    /// A rewrite that needs unscheduled reduce axes.
    #[error("{primitive}: the reduce axis `{axis}` of `{stage}` is scheduled already; do this first")]
    ReduceAxisScheduled {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
    },
    /// A stage to be computed at a stage that does not use it, or before it exists.
    #[error(
        "compute_at: {consumer} reads `{stage}` outside the loop `{axis}` of `{parent}`; legal parents hold all of {}",
        quoted_names(consumers)
    )]
    OutsideConsumers {
        /// The stage.
        stage: String,
        /// The stage of the loop.
        parent: String,
        /// The loop.
        axis: String,
        /// The consumer that is outside, or `nobody`.
        consumer: String,
        /// All consumers.
        consumers: Vec<String>,
    },
    /// Stages attached at each other.
    #[error("compute_at: `{parent}` is itself computed inside `{stage}`")]
    AttachCycle {
        /// The stage.
        stage: String,
        /// The stage of the loop.
        parent: String,
    },
    /// A stage inside a loop that cannot hold one.
    #[error(
        "`{stage}` is computed inside `{axis}` of `{parent}`, which is {kind}; attach it outside of that loop"
    )]
    AttachInside {
        /// The stage.
        stage: String,
        /// The stage of the loop.
        parent: String,
        /// The loop.
        axis: String,
        /// Its kind.
        kind: &'static str,
    },
    /// An argument that would not be computed in full.
    #[error(
        "compute_at: `{stage}` is an argument and computed at `{axis}` of `{parent}`, where {reason}; compute it at \
         the root"
    )]
    ArgumentAttached {
        /// The stage.
        stage: String,
        /// The stage of the loop.
        parent: String,
        /// The loop.
        axis: String,
        /// What would go wrong.
        reason: &'static str,
    },
    /// A read of a tensor outside the loop in which it is computed.
    #[error("`{stage}` is read outside the loop in which it is computed")]
    ReadOutsideAttach {
        /// The stage.
        stage: String,
    },
    /// An index that leaves its dimension of a tensor at some point of the stage.
    #[error(
        "`{stage}` reads `{tensor}` at `{index}` in dimension {dim}, which is {range} there; legal are 0 to {last}"
    )]
    ReadOutside {
        /// The stage that reads.
        stage: String,
        /// The tensor that is read.
        tensor: String,
        /// The dimension, from 0.
        dim: usize,
        /// The index, as text.
        index: String,
        /// The values that it takes, as text.
        range: String,
        /// The last legal value, as text.
        last: String,
    },
    /// A loop that must have a constant extent and has not.
    #[error(
        "`{axis}` of `{stage}` is {kind}, which takes a constant extent, and its extent is {extent}; split it"
    )]
    NonConstantExtent {
        /// The stage.
        stage: String,
        /// The axis.
        axis: String,
        /// `vectorized` or `unrolled`.
        kind: &'static str,
        /// The extent, as text.
        extent: String,
    },
    /// A tensor that a stage does not read.
    #[error("{primitive}: `{reader}` does not read `{tensor}`; its readers are {}", quoted_names(legal))]
    NotAReader {
        /// The primitive.
        primitive: &'static str,
        /// The tensor.
        tensor: String,
        /// The stage named as a reader.
        reader: String,
        /// The stages that read it.
        legal: Vec<String>,
    },
    /// A copy that no stage would read.
    #[error(
        "{primitive} of `{tensor}` takes at least one reader, got none; its readers are {}",
        quoted_names(legal)
    )]
    NoReaders {
        /// The primitive.
        primitive: &'static str,
        /// The tensor.
        tensor: String,
        /// The stages that read it.
        legal: Vec<String>,
    },
    /// A tensor that is not of this program.
    #[error("{primitive}: `{tensor}` is no tensor of this program")]
    UnknownTensor {
        /// The primitive.
        primitive: &'static str,
        /// The tensor.
        tensor: String,
    },
    /// A scope name.
    #[error("there is no scope `{found}`; the scopes are {}", quoted_names(legal))]
    UnknownScope {
        /// The name given.
        found: String,
        /// Names of the scopes.
        legal: Vec<String>,
    },
    /// A scope that results of a stage do not live in.
    #[error("results of a stage in {found} memory are not supported; legal are {}", quoted_names(legal))]
    ScopeOfStage {
        /// The scope asked for.
        found: &'static str,
        /// Names of the legal ones.
        legal: Vec<String>,
    },
    /// A value of another kind than the pragma has.
    #[error("pragma of `{stage}`: the value of `{key}` is to be {wanted}, got {found}")]
    PragmaValue {
        /// The stage.
        stage: String,
        /// The pragma.
        key: &'static str,
        /// What is legal.
        wanted: &'static str,
        /// What was given.
        found: String,
    },
    /// A pragma on a loop in which something stands that it rules out.
    #[error("pragma {key} of {loops}: {found}; take it off, or mark a loop without that")]
    PragmaOver {
        /// The pragma.
        key: &'static str,
        /// The loops that have it, and their stages.
        loops: String,
        /// What stands in one of them.
        found: String,
    },
    /// A pragma's key or an alignment that has no meaning.
    #[error("{primitive} of `{stage}`: {what} is to be {wanted}, got {found}")]
    BadValue {
        /// The primitive.
        primitive: &'static str,
        /// The stage.
        stage: String,
        /// The argument.
        what: &'static str,
        /// What is legal.
        wanted: &'static str,
        /// What was given.
        found: String,
    },
    /// Arguments of a step that the primitive does not take.
    #[error("{primitive} is called as `{signature}`, and {problem}")]
    BadCall {
        /// The primitive.
        primitive: &'static str,
        /// How it is called.
        signature: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// An expression that is too long to be written out.
    #[error(
        "an element of `{stage}` takes {found} operations{}, and legal are at most {most}; compute a part of them in a \
         stage with loops of its own",
        with_inlined(inlined)
    )]
    TooLong {
        /// The stage.
        stage: String,
        /// Operations of its longest expression.
        found: u64,
        /// The most that are legal.
        most: u64,
        /// The stages that are inlined.
        inlined: Vec<String>,
    },
    /// A variable that no argument determines.
    #[error("`{var}` is used in `{kernel}` and no argument's shape or stride determines it")]
    UnboundVariable {
        /// The kernel.
        kernel: String,
        /// The variable.
        var: String,
    },
    /// Something legal that is not there yet.
    #[error("{what} is not supported yet")]
    Unsupported {
        /// What was asked.
        what: String,
    },
}

impl From<ThreadError> for ScheduleError {
    fn from(error: ThreadError) -> ScheduleError {
        ScheduleError::Thread(Box::new(error))
    }
}

/// What tells an axis from one of the stage that has its name.
fn namesake(axis: &str, legal: &[String]) -> String {
    if legal.iter().any(|name| name == axis) {
        format!(", whose own `{axis}` is another one")
    } else {
        String::new()
    }
}

/// Names the stages whose operations count for their reader.
fn with_inlined(inlined: &[String]) -> String {
    if inlined.is_empty() { String::new() } else { format!(" with {} inlined", quoted_names(inlined)) }
}
