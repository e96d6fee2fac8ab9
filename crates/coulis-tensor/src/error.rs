//! What can be wrong with a tensor expression. Every case is found when the expression is built.

use coulis_ir::{DType, Ty, counted, quoted_names};

/// A mistake in a tensor expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// A user's reducer that does not keep what it claims, with the counterexample.
    #[error("{0}")]
    Refuted(String),
    /// A reduction inside a larger expression.
    #[error(
        "a reduction is to be the whole body of `{tensor}`; compute the reduction in a tensor of its own and read that one"
    )]
    NestedReduction {
        /// The tensor.
        tensor: String,
    },
    /// A tuple of a reduction and something else.
    #[error(
        "component {component} of `{tensor}` is {found}, and component 0 is not; either all are reductions or none"
    )]
    MixedTuple {
        /// The tensor.
        tensor: String,
        /// Position in the tuple.
        component: usize,
        /// `a reduction` or `no reduction`.
        found: &'static str,
    },
    /// A tuple of different reductions.
    #[error(
        "component {component} of `{tensor}` differs in its {what}; the components of a tuple reduction share \
         sources, axes, combiner and condition: fold them with one tuple reducer"
    )]
    DifferentReductions {
        /// The tensor.
        tensor: String,
        /// Position in the tuple.
        component: usize,
        /// `combiner`, `sources`, `axes`, `condition` or `position`.
        what: &'static str,
    },
    /// An axis that no `reduce_axis` made.
    #[error("`{reducer}` folds over reduce axes, and `{axis}` is a data axis; make it with reduce_axis")]
    NotReduceAxis {
        /// The reducer.
        reducer: String,
        /// The axis.
        axis: String,
    },
    /// The same axis twice in one list.
    #[error("`{reducer}` is given the reduce axis `{axis}` twice; each axis is folded once")]
    DuplicateAxis {
        /// The reducer.
        reducer: String,
        /// The axis.
        axis: String,
    },
    /// One axis folded by two computes.
    #[error(
        "reduce axis `{axis}` belongs to `{first}` and to `{second}`; give each compute an axis of its own"
    )]
    SharedAxis {
        /// The axis.
        axis: String,
        /// The compute that comes first.
        first: String,
        /// The other.
        second: String,
    },
    /// An axis that the body reads and nobody iterates.
    #[error(
        "the body of `{tensor}` reads the axis `{axis}`, which is neither one of its dimensions nor in the list of \
         reduce axes"
    )]
    UnlistedAxis {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: String,
    },
    /// An initial value that is not a constant or an element.
    #[error("initial value {position} of `{reducer}` is to be a constant or one element of a tensor")]
    InitForm {
        /// The reducer.
        reducer: String,
        /// Position in the list.
        position: usize,
    },
    /// An initial value that is not the same for all points of a fold.
    #[error(
        "initial value {position} of `{reducer}` reads at the reduce axis `{axis}`, and a fold starts once; legal \
         are data axes"
    )]
    InitAxis {
        /// The reducer.
        reducer: String,
        /// Position in the list.
        position: usize,
        /// The reduce axis.
        axis: String,
    },
    /// Wrong number of initial values.
    #[error("`{reducer}` folds {wanted} sources and takes as many initial values, got {found}")]
    InitCount {
        /// The reducer.
        reducer: String,
        /// Number of sources.
        wanted: usize,
        /// Number of initial values.
        found: usize,
    },
    /// An initial value of another type.
    #[error("initial value {position} of `{reducer}` is to be {wanted}, got {found}")]
    InitType {
        /// The reducer.
        reducer: String,
        /// Position in the list.
        position: usize,
        /// Type of the state.
        wanted: DType,
        /// Type of the value.
        found: DType,
    },
    /// Wrong number of indices.
    #[error("`{tensor}` takes {wanted} indices, got {found}")]
    IndexCount {
        /// The tensor that is read.
        tensor: String,
        /// Its number of dimensions.
        wanted: usize,
        /// Number of indices.
        found: usize,
    },
    /// An index that is not an integer.
    #[error("index {position} of `{tensor}` is to be an integer, got {found}")]
    IndexType {
        /// The tensor that is read.
        tensor: String,
        /// Position of the index.
        position: usize,
        /// Its type.
        found: Ty,
    },
    /// A combiner, identity and sources of different lengths.
    #[error(
        "`{reducer}` has {identities} identities, {results} results and {sources} sources; all three are to be equal"
    )]
    ReducerArity {
        /// The reducer.
        reducer: String,
        /// Number of identities.
        identities: usize,
        /// Number of results of the combiner.
        results: usize,
        /// Number of sources.
        sources: usize,
    },
    /// A source, identity or result of the wrong type.
    #[error("{what} {position} of `{reducer}` is {found}, and the state is {wanted}; cast it")]
    ReducerType {
        /// The reducer.
        reducer: String,
        /// `source` or `result`.
        what: &'static str,
        /// Position.
        position: usize,
        /// Type of the state.
        wanted: DType,
        /// What it is.
        found: Ty,
    },
    /// A condition that is not a bool.
    #[error("the condition of `{reducer}` is to be bool, got {found}")]
    ConditionType {
        /// The reducer.
        reducer: String,
        /// What it is.
        found: Ty,
    },
    /// An operand whose type the operation has no meaning for.
    #[error("`{operation}` takes {wanted}, got {found}")]
    OperandType {
        /// The operation or function.
        operation: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// Type of the operands, brought together.
        found: DType,
    },
    /// Wrong number of arguments of a function.
    #[error("`{function}` takes {wanted} arguments, got {found}")]
    ArgumentCount {
        /// The function.
        function: &'static str,
        /// Number of its arguments.
        wanted: usize,
        /// Number of arguments given.
        found: usize,
    },
    /// A reduction as an operand.
    #[error(
        "the reduction `{reducer}` is to be the whole body of a compute; compute it in a tensor of its own and read that one"
    )]
    ReductionAsOperand {
        /// The reducer.
        reducer: String,
    },
    /// A reducer that has no meaning for a type.
    #[error("`{reducer}` does not take {dtype}")]
    Unsupported {
        /// The reducer.
        reducer: String,
        /// The type.
        dtype: DType,
    },
    /// Extents and strides of different lengths.
    #[error("`{tensor}` has {} and takes as many strides, got {found}", counted(wanted, "dimension"))]
    StrideCount {
        /// The tensor.
        tensor: String,
        /// Number of dimensions.
        wanted: usize,
        /// Number of strides.
        found: usize,
    },
    /// An extent or stride that is not an integer.
    #[error("{what} {axis} of `{tensor}` is to be an integer, got {found}")]
    NotAnInteger {
        /// The tensor.
        tensor: String,
        /// `extent` or `stride`.
        what: &'static str,
        /// Dimension.
        axis: usize,
        /// What it is.
        found: Ty,
    },
    /// An extent below 0.
    #[error("extent {axis} of `{tensor}` is to be at least 0, got {value}")]
    NegativeExtent {
        /// The tensor.
        tensor: String,
        /// Dimension.
        axis: usize,
        /// Its value.
        value: i128,
    },
    /// Constant extents of more bytes than are counted.
    #[error("`{tensor}` has {found}, which is more than {limit} bytes, the most that is legal")]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Its extents and type.
        found: String,
        /// Most bytes.
        limit: i64,
    },
    /// Wrong number of axis names.
    #[error("`{tensor}` has {} and takes as many axis names, got {found}", counted(wanted, "dimension"))]
    AxisCount {
        /// The tensor.
        tensor: String,
        /// Number of dimensions.
        wanted: usize,
        /// Number of names.
        found: usize,
    },
    /// A tuple where one result is wanted, or an empty body.
    #[error(
        "the body of `{tensor}` has {found} components; one makes a tensor, and a tuple of two or more makes as many tensors"
    )]
    TupleBody {
        /// The tensor.
        tensor: String,
        /// Number of components.
        found: usize,
    },
    /// A component that is a vector or has no type of its own.
    #[error("component {component} of `{tensor}` is {found}; bodies are scalar expressions")]
    VectorBody {
        /// The tensor.
        tensor: String,
        /// Position in the tuple.
        component: usize,
        /// What it is.
        found: Ty,
    },
    /// A read of memory that no tensor stands for.
    #[error("the body of `{tensor}` reads `{buffer}`, which is no tensor of this program")]
    UnknownBuffer {
        /// The tensor.
        tensor: String,
        /// Name of the buffer.
        buffer: String,
    },
    /// An input that the arguments do not list.
    #[error("`{tensor}` is read and is not among the arguments; they are {}", quoted_names(args))]
    MissingInput {
        /// The placeholder.
        tensor: String,
        /// Names of the arguments.
        args: Vec<String>,
    },
    /// An output that the arguments do not list.
    #[error("output `{tensor}` is not among the arguments; they are {}", quoted_names(args))]
    MissingOutput {
        /// The output.
        tensor: String,
        /// Names of the arguments.
        args: Vec<String>,
    },
    /// The same tensor twice among the arguments.
    #[error("`{tensor}` is among the arguments twice")]
    DuplicateArgument {
        /// The tensor.
        tensor: String,
    },
    /// An argument that the outputs do not depend on.
    #[error("argument `{tensor}` takes no part in the outputs")]
    UnusedArgument {
        /// The tensor.
        tensor: String,
    },
    /// A program without outputs, or whose output is an input.
    #[error("`{tensor}` is an input; outputs are computed tensors")]
    OutputIsInput {
        /// The tensor.
        tensor: String,
    },
    /// A program without outputs.
    #[error("a program has at least one output")]
    NoOutput,
}
