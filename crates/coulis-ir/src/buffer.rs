//! Buffers: typed, shaped windows on memory, with a scope and a layout.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coulis_layout::TileLayout;

use crate::dtype::DType;
use crate::expr::{Expr, Var};

/// Where a buffer lives. Source: the storage scopes of seeds 000 to 003.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemScope {
    /// Device memory that every thread sees.
    Global,
    /// Memory of one cta, of a size known when the kernel is compiled.
    Shared,
    /// Memory of one cta, sized at launch.
    SharedDyn,
    /// Registers spread over the lanes of a warp.
    Warp,
    /// Memory of one thread: registers where accesses are constant.
    Local,
}

impl MemScope {
    /// Every scope, outermost first.
    pub const ALL: [MemScope; 5] =
        [MemScope::Global, MemScope::Shared, MemScope::SharedDyn, MemScope::Warp, MemScope::Local];

    /// The name in text: `global`, `shared`, `shared.dyn`, `warp`, `local`.
    pub const fn name(self) -> &'static str {
        match self {
            MemScope::Global => "global",
            MemScope::Shared => "shared",
            MemScope::SharedDyn => "shared.dyn",
            MemScope::Warp => "warp",
            MemScope::Local => "local",
        }
    }

    /// The scope of that name.
    pub fn from_name(name: &str) -> Option<MemScope> {
        MemScope::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// The most bytes that memory may have, which sizes and indices count in 64 bits.
pub const MOST_BYTES: i64 = i64::MAX;

/// The extents that are constants, as `4 * 1024 of float32`, where memory of that shape has more than [`MOST_BYTES`].
/// Memory of an extent of 0 has none.
pub fn oversize(shape: &[Expr], dtype: DType) -> Option<String> {
    let constants: Vec<i128> = shape.iter().filter_map(Expr::as_int).collect();
    if constants.iter().any(|extent| *extent <= 0) {
        return None;
    }
    let bytes = constants.iter().try_fold(dtype.bytes() as i128, |bytes, n| bytes.checked_mul(*n));
    let fits = bytes.is_some_and(|bytes| bytes <= i128::from(MOST_BYTES));
    let product = || constants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" * ");
    (!fits).then(|| format!("{} of {dtype}", product()))
}

/// Identity of a buffer; survives cloning, differs between any two buffers ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u64);

/// What a buffer is. Offsets, shapes and strides count elements.
#[derive(Debug)]
pub struct BufferData {
    /// Identity.
    pub id: BufferId,
    /// Name hint; the printer makes it a unique identifier.
    pub name: String,
    /// The pointer. Buffers with the same `data` are views of the same memory (aliases).
    pub data: Var,
    /// Element type.
    pub dtype: DType,
    /// Extents, one a dimension; empty for a scalar.
    pub shape: Vec<Expr>,
    /// Strides in elements, one a dimension; empty means compact row-major.
    pub strides: Vec<Expr>,
    /// Distance from `data` to the first element, in elements. Of a parameter, whose first element is what callers give, it says where
    /// the offsets of other buffers on the same memory count from.
    pub elem_offset: Expr,
    /// Memory scope.
    pub scope: MemScope,
    /// Alignment of `data` in bytes; 64 unless said.
    pub align: u32,
    /// Tile layout, for buffers of tile programs; `None` means strides say it all.
    pub layout: Option<TileLayout>,
    /// Prints as `buffer_type="auto"`: a dimension of extent 1 may be broadcast (its stride is 0).
    pub auto_broadcast: bool,
}

static NEXT_BUFFER: AtomicU64 = AtomicU64::new(1);

/// A shared handle on a [`BufferData`]; equal when it is the same buffer.
#[derive(Clone)]
pub struct Buffer(Arc<BufferData>);

impl Buffer {
    /// A new compact buffer of its own data pointer, named `name`.
    pub fn new(name: &str, dtype: DType, shape: Vec<Expr>, scope: MemScope) -> Buffer {
        Buffer::from_data(BufferData {
            id: BufferId(0),
            name: name.to_owned(),
            data: Var::handle(name),
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: Expr::int(0),
            scope,
            align: 64,
            layout: None,
            auto_broadcast: false,
        })
    }

    /// A new buffer from all its fields; `id` is replaced by a fresh one.
    pub fn from_data(mut data: BufferData) -> Buffer {
        data.id = BufferId(NEXT_BUFFER.fetch_add(1, Ordering::Relaxed));
        Buffer(Arc::new(data))
    }

    /// Whether neither strides nor an offset say where elements are.
    pub fn is_plain(&self) -> bool {
        self.0.strides.is_empty() && self.0.elem_offset.is_int(0)
    }

    /// A copy with a fresh identity, changed by `edit`. It is an alias unless `edit` replaces `data`.
    pub fn derive(&self, edit: impl FnOnce(&mut BufferData)) -> Buffer {
        let d = &*self.0;
        let mut data = BufferData {
            id: d.id,
            name: d.name.clone(),
            data: d.data.clone(),
            dtype: d.dtype,
            shape: d.shape.clone(),
            strides: d.strides.clone(),
            elem_offset: d.elem_offset.clone(),
            scope: d.scope,
            align: d.align,
            layout: d.layout.clone(),
            auto_broadcast: d.auto_broadcast,
        };
        edit(&mut data);
        Buffer::from_data(data)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The element at `indices`; one index a dimension.
    pub fn at(&self, indices: impl Into<Vec<Expr>>) -> Expr {
        Expr::load(self.clone(), indices.into())
    }
}

impl std::ops::Deref for Buffer {
    type Target = BufferData;

    fn deref(&self) -> &BufferData {
        &self.0
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Buffer {}

impl std::hash::Hash for Buffer {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id.0)
    }
}
