//! Why a tile call cannot be replaced by statements.

use coulis_layout::counted;

use crate::variant::{Row, table};

/// Why a tile call cannot be replaced by statements.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TileError {
    /// No variant accepts the call.
    #[error("no variant of {op} accepts the call:\n{}", table(rows))]
    NoVariant {
        /// The operation, `tile.reduce`.
        op: &'static str,
        /// Every variant with the needs that failed.
        rows: Vec<Row>,
    },
    /// The call forces a variant that does not accept it.
    #[error("`dispatch=\"{name}\"` forces a variant that declines the call:\n{}", table(rows))]
    Forced {
        /// The variant.
        name: String,
        /// Every variant with the needs that failed.
        rows: Vec<Row>,
    },
    /// The call forces a variant that does not exist.
    #[error("`dispatch=\"{name}\"` names no variant of {op}; there are {legal}")]
    UnknownVariant {
        /// The name.
        name: String,
        /// The operation.
        op: &'static str,
        /// Existing names.
        legal: String,
    },
    /// A named reducer that nobody put in place.
    #[error("the reducer `{name}` of a tile call is not known for the element types {types}")]
    Reducer {
        /// The name.
        name: String,
        /// The types of the sources.
        types: String,
    },
    /// Sources or destinations in another number than the reducer asks for.
    #[error("the reducer `{reducer}` takes {}, got {found}", counted(wanted, what))]
    Count {
        /// The reducer.
        reducer: String,
        /// `source` or `destination`.
        what: &'static str,
        /// The reducer's number.
        wanted: usize,
        /// The call's number.
        found: usize,
    },
    /// A source whose element type is not the reducer's.
    #[error("source {at} of the reducer `{reducer}` is {wanted}, got `{buffer}` of {found}")]
    SourceType {
        /// The reducer.
        reducer: String,
        /// Which source, from 0.
        at: usize,
        /// Type that the reducer takes.
        wanted: &'static str,
        /// The buffer.
        buffer: String,
        /// Its type.
        found: &'static str,
    },
    /// A reduced axis that the source has not.
    #[error("axis {axis} is reduced, and the source has {}", counted(rank, "dimension"))]
    Axis {
        /// The axis.
        axis: i64,
        /// Rank of the source.
        rank: usize,
    },
    /// A reduced axis that is named more than once.
    #[error(
        "axis {axis} of the source's {} is named twice among the reduced ones",
        counted(rank, "dimension")
    )]
    AxisTwice {
        /// The axis, as it was written the second time.
        axis: i64,
        /// Rank of the source.
        rank: usize,
    },
    /// The old value cannot take part, since results are no states.
    #[error("`accum=True` needs a reducer whose results are its state, and `{reducer}` finishes its state")]
    Accum {
        /// The reducer.
        reducer: String,
    },
    /// The old value cannot take part, since the state does not hold all values of its type.
    #[error(
        "`accum=True` of `{reducer}` takes a destination whose values its state of {state} holds, and `{buffer}` is {found}"
    )]
    AccumType {
        /// The reducer.
        reducer: String,
        /// Type of the state.
        state: &'static str,
        /// The destination.
        buffer: String,
        /// Its type.
        found: &'static str,
    },
    /// An option that does not exist, or of another type.
    #[error("the option `{name}` of a tile call is to be {wanted}, got {found}")]
    Option {
        /// The option.
        name: String,
        /// What is legal.
        wanted: &'static str,
        /// What the call has.
        found: String,
    },
    /// A fault of a variant, which is ours.
    #[error("variant `{variant}` of {op} accepted a call and failed on it: {message}")]
    Bug {
        /// The variant.
        variant: &'static str,
        /// The operation.
        op: &'static str,
        /// What went wrong.
        message: String,
    },
    /// A layout of another number of elements than its buffer.
    #[error("`{buffer}` has {wanted} elements, and its layout `{layout}` has {found}")]
    LayoutSize {
        /// The buffer.
        buffer: String,
        /// Its elements.
        wanted: i64,
        /// The layout.
        layout: String,
        /// Elements of the layout.
        found: i64,
    },
    /// A layout that puts two elements at one address.
    #[error("elements {first:?} and {second:?} of `{buffer}` have one address in its layout `{layout}`")]
    Overlap {
        /// The buffer.
        buffer: String,
        /// The layout.
        layout: String,
        /// Coordinates of an element.
        first: Vec<i64>,
        /// Those of another one.
        second: Vec<i64>,
    },
    /// A window on registers of a tile that every thread holds whole.
    #[error(
        "`.local` is what a thread holds of a tile that is spread over threads, and `{buffer}` is not spread: its \
         elements are accessed as they are"
    )]
    NotSpread {
        /// What the window looks at.
        buffer: String,
    },
    /// A buffer whose elements have no address.
    #[error(transparent)]
    Address(#[from] crate::address::AddressError),
    /// A part of a buffer that lies outside of it.
    #[error(
        "dimension {dim} of `{buffer}` has {whole} elements, and a tile call names those from {min} to {end}"
    )]
    Region {
        /// The buffer.
        buffer: String,
        /// The dimension.
        dim: usize,
        /// First element.
        min: i128,
        /// Past the last element.
        end: i128,
        /// Extent of the dimension.
        whole: i128,
    },
    /// A part of a buffer that begins elsewhere for some of the threads which do the call together.
    #[error(
        "the part of `{buffer}` begins at `{min}` along dimension {dim}, which differs between threads that do the call together; \
         legal are parts that are one for all threads of a {scope}, and calls of one thread"
    )]
    Differs {
        /// The buffer.
        buffer: String,
        /// The dimension.
        dim: usize,
        /// Where the part begins, as text.
        min: String,
        /// Scope of the call.
        scope: &'static str,
    },
    /// A layout whose addresses are not counted upwards.
    #[error(
        "the strides and offsets of a layout are to be at least 0, and `{buffer}` has the layout `{layout}`"
    )]
    Backwards {
        /// The buffer.
        buffer: String,
        /// Its layout.
        layout: String,
    },
    /// A window without a layout that has another number of elements than what it looks at.
    #[error(
        "the window `{buffer}` has {wanted} elements, and `{memory}` has {found}; without a layout both are to have as many"
    )]
    WindowSize {
        /// The window.
        buffer: String,
        /// Its elements.
        wanted: i64,
        /// What it looks at.
        memory: String,
        /// Elements of that.
        found: i64,
    },
    /// A window that is larger than what it looks at.
    #[error("the window `{buffer}` reaches over {wanted} elements, and `{memory}` has {found}")]
    Window {
        /// The window.
        buffer: String,
        /// Elements that it reaches over.
        wanted: i64,
        /// What it looks at.
        memory: String,
        /// Elements of that.
        found: i64,
    },
    /// Something that no variant does yet.
    #[error("{what} is not supported yet")]
    Unsupported {
        /// What.
        what: String,
    },
}
