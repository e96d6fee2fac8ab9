//! The dtype-erased array: an element type, a shape, strides in elements, and shared bytes.
//!
//! A view (transposed, reversed, broadcast, sliced) is the same bytes under other strides; nothing is copied. Each
//! constructor checks that every element lies inside the storage, so that an executor may trust `as_ptr`, the shape
//! and the strides without another look.

use std::fmt;
use std::sync::Arc;

use coulis_ir::DType;
use coulis_ir::args::{compact_strides, reach};
use half::{bf16, f16};

use crate::storage::{AlignedBytes, Foreign, OutOfMemory, Owner, Storage};

/// The largest rank; NumPy's is the same.
pub const MAX_RANK: usize = 64;

/// A shape or a view that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A negative length.
    #[error("axis {axis} has length {length}; a length is at least 0")]
    Negative {
        /// The axis.
        axis: usize,
        /// Its length.
        length: i64,
    },
    /// More axes than supported.
    #[error("{rank} axes; at most {MAX_RANK} are supported")]
    Rank {
        /// Number of axes.
        rank: usize,
    },
    /// A size in bytes beyond 2^63 - 1. Axes of length 0 count as 1 here, so that strides stay in range too.
    #[error("the shape {shape:?} of {dtype} has more than 2^63 - 1 bytes")]
    Overflow {
        /// The shape.
        shape: Vec<i64>,
        /// Element type.
        dtype: DType,
    },
    /// As many strides as axes are needed.
    #[error("{strides} strides for {rank} axes")]
    StrideCount {
        /// Strides given.
        strides: usize,
        /// Axes.
        rank: usize,
    },
    /// A view that reaches outside its array.
    #[error("the view reaches element {reached} of a storage of {elements} elements")]
    OutOfBounds {
        /// First or last element that the view reaches.
        reached: i128,
        /// Elements that the storage holds.
        elements: i128,
    },
    /// Data of the wrong length.
    #[error("the shape needs {wanted} bytes, the data has {found}")]
    DataLength {
        /// Bytes that shape and dtype need.
        wanted: u64,
        /// Bytes given.
        found: u64,
    },
    /// Memory of someone else that starts where its type cannot.
    #[error("the memory of an array of {dtype} is not aligned to {} bytes; that of a copy is", dtype.bytes())]
    Misaligned {
        /// Element type.
        dtype: DType,
    },
    /// Elements at address 0, where no memory is.
    #[error("an array of {dtype} of shape {shape:?} has no memory")]
    NoMemory {
        /// Element type.
        dtype: DType,
        /// Shape, which has elements.
        shape: Vec<i64>,
    },
    /// No memory for the data.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// A Rust type that is the memory form of a dtype. `bool` is not one, because not every byte is a `bool`.
pub trait Element: Copy + sealed::Sealed {
    /// The dtype.
    const DTYPE: DType;
}

mod sealed {
    /// Sealed: the set of element types is the set of dtypes.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty { const DTYPE: DType = DType::$dtype; }
    )*};
}
elements!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64);

/// One element, widened without loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A `bool`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A float of any width.
    Float(f64),
}

impl Scalar {
    /// The value as the nearest `float64`.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::UInt(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }
}

/// A read-only array. Cloning shares the bytes.
#[derive(Clone)]
pub struct Array {
    dtype: DType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Byte position of element `[0, ..., 0]` in the storage, a multiple of the element's size.
    offset: usize,
    storage: Storage,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.storage {
            Storage::Mapped(_) => "mapped",
            Storage::Owned(_) => "owned",
            Storage::Foreign(_) => "foreign",
        };
        write!(f, "Array({} {:?}, strides {:?}, {kind})", self.dtype, self.shape, self.strides)
    }
}

impl Array {
    /// An array over owned bytes in row-major order.
    pub fn from_owned(dtype: DType, shape: &[i64], bytes: AlignedBytes) -> Result<Array, ShapeError> {
        let wanted = size_in_bytes(dtype, shape)?;
        let found = bytes.as_slice().len();
        if wanted != found {
            return Err(ShapeError::DataLength { wanted: wanted as u64, found: found as u64 });
        }
        Ok(Array {
            dtype,
            shape: shape.to_vec(),
            strides: compact_strides(shape),
            offset: 0,
            storage: Storage::Owned(Arc::new(bytes)),
        })
    }

    /// A copy of little-endian bytes in row-major order.
    pub fn from_bytes(dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Array, ShapeError> {
        Array::from_owned(dtype, shape, AlignedBytes::copy_of(bytes)?)
    }

    /// A copy of typed values in row-major order.
    pub fn from_slice<T: Element>(shape: &[i64], values: &[T]) -> Result<Array, ShapeError> {
        // SAFETY: every `Element` is a plain number without padding, so its memory is readable as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), std::mem::size_of_val(values))
        };
        Array::from_bytes(T::DTYPE, shape, bytes)
    }

    /// A copy of booleans in row-major order.
    pub fn from_bools(shape: &[i64], values: &[bool]) -> Result<Array, ShapeError> {
        let bytes: Vec<u8> = values.iter().map(|&value| u8::from(value)).collect();
        Array::from_bytes(DType::Bool, shape, &bytes)
    }

    /// An array over memory of someone else, whose element `[0, ..., 0]` is at `first`; `strides` are in elements and may
    /// be negative or 0. Nothing is copied. `owner` is dropped with the last clone of the array.
    ///
    /// # Safety
    /// Every element of the shape is readable at its place, and nobody writes to it, as long as the array or a clone
    /// of it lives. Without elements nothing is read.
    pub unsafe fn from_foreign(
        dtype: DType,
        shape: &[i64],
        strides: &[i64],
        first: *const u8,
        owner: Option<Owner>,
    ) -> Result<Array, ShapeError> {
        let (before, after) = bytes_around(dtype, shape, strides, first.addr())?;
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        if after == 0 {
            let storage = Storage::Owned(Arc::new(AlignedBytes::zeroed(0)?));
            return Ok(Array { dtype, shape, strides, offset: 0, storage });
        }
        // SAFETY: the caller's promise; elements between those of the shape lie in the same memory.
        let foreign = unsafe { Foreign::new(first.wrapping_sub(before), before + after, owner) };
        Ok(Array { dtype, shape, strides, offset: before, storage: Storage::Foreign(foreign) })
    }

    /// An array over part of a storage; `strides` are in elements and `offset` in bytes.
    /// A storage that is not aligned for the dtype is copied.
    pub(crate) fn from_storage(
        dtype: DType,
        shape: Vec<i64>,
        strides: Vec<i64>,
        offset: usize,
        storage: Storage,
    ) -> Result<Array, ShapeError> {
        let n_bytes = size_in_bytes(dtype, &shape)?;
        if n_bytes == 0 {
            let storage = Storage::Owned(Arc::new(AlignedBytes::zeroed(0)?));
            return Ok(Array { dtype, shape, strides, offset: 0, storage });
        }
        let bytes = storage.bytes();
        let found = bytes.len().saturating_sub(offset);
        if found < n_bytes {
            return Err(ShapeError::DataLength { wanted: n_bytes as u64, found: found as u64 });
        }
        let aligned = (bytes.as_ptr() as usize + offset).is_multiple_of(dtype.bytes());
        if aligned {
            return Ok(Array { dtype, shape, strides, offset, storage });
        }
        let copy = AlignedBytes::copy_of(&bytes[offset..offset + n_bytes])?;
        Ok(Array { dtype, shape, strides, offset: 0, storage: Storage::Owned(Arc::new(copy)) })
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Steps of the axes, in elements; negative and zero ones included.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Address of element `[0, ..., 0]`, aligned for the dtype. Every index inside the shape is readable from here
    /// while the array or a clone of it lives. With no element at all the address is not null but not readable.
    pub fn as_ptr(&self) -> *const u8 {
        self.storage.bytes().as_ptr().wrapping_add(self.offset)
    }

    /// All bytes behind the array, and the byte at which element `[0, ..., 0]` stands.
    pub fn storage(&self) -> (&[u8], usize) {
        (self.storage.bytes(), self.offset)
    }

    /// Number of elements; repeated ones of a broadcast view count each time.
    pub fn len(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Bytes of all elements, as if row-major.
    pub fn n_bytes(&self) -> u64 {
        self.len() as u64 * self.dtype.bytes() as u64
    }

    /// Whether the bytes are those of a mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::Mapped(_))
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_row_major(&self) -> bool {
        let mut step = 1;
        for (&length, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if length != 1 && stride != step {
                return self.is_empty();
            }
            step *= length;
        }
        true
    }

    /// All bytes of a row-major array; `None` for any other order.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if self.is_empty() {
            return Some(&[]);
        }
        self.is_row_major().then(|| &self.storage.bytes()[self.offset..self.offset + self.n_bytes() as usize])
    }

    /// All values of a row-major array of dtype `T`; `None` for another dtype or order.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.dtype {
            return None;
        }
        if self.is_empty() {
            return Some(&[]);
        }
        let bytes = self.as_bytes()?;
        // SAFETY: `as_bytes` is inside the storage and aligned for the dtype by every constructor, and any bit
        // pattern is a value of an `Element`.
        Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), self.len()) })
    }

    /// The same bytes under another shape and other strides, starting `start` elements after this array's first.
    pub fn view(&self, shape: &[i64], strides: &[i64], start: i64) -> Result<Array, ShapeError> {
        if strides.len() != shape.len() {
            return Err(ShapeError::StrideCount { strides: strides.len(), rank: shape.len() });
        }
        check_shape(self.dtype, shape)?;
        let width = self.dtype.bytes();
        let mut view = Array { shape: shape.to_vec(), strides: strides.to_vec(), ..self.clone() };
        if view.is_empty() {
            return Ok(view);
        }
        let elements = (self.storage.bytes().len() / width) as i128;
        let first = (self.offset / width) as i128 + i128::from(start);
        let (lo, hi) = reach(shape, strides).unwrap_or((i128::MIN, i128::MAX));
        for reached in [first.saturating_add(lo), first.saturating_add(hi)] {
            if reached < 0 || elements <= reached {
                return Err(ShapeError::OutOfBounds { reached, elements });
            }
        }
        view.offset = first as usize * width;
        Ok(view)
    }

    /// The same elements with the axes in the reverse order.
    pub fn transposed(&self) -> Array {
        let axes: Vec<usize> = (0..self.shape.len()).rev().collect();
        self.permuted(&axes)
    }

    /// The same elements with the axes in this order, each named once.
    pub fn permuted(&self, axes: &[usize]) -> Array {
        let [shape, strides] =
            [&self.shape, &self.strides].map(|of| axes.iter().map(|&axis| of[axis]).collect());
        Array { shape, strides, ..self.clone() }
    }

    /// The elements in row-major order.
    pub fn scalars(&self) -> Scalars<'_> {
        Scalars { array: self, index: vec![0; self.shape.len()], position: 0, left: self.len() }
    }

    /// The same elements in row-major order: this array when it is so already, else a copy.
    pub fn to_row_major(&self) -> Result<Array, OutOfMemory> {
        if self.is_row_major() {
            return Ok(self.clone());
        }
        let width = self.dtype.bytes();
        let mut owned = AlignedBytes::zeroed(self.n_bytes() as usize)?;
        let mut walk = self.scalars();
        for chunk in owned.as_mut_slice().chunks_exact_mut(width) {
            chunk.copy_from_slice(self.element_bytes(walk.position));
            walk.step();
        }
        Ok(Array {
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: compact_strides(&self.shape),
            offset: 0,
            storage: Storage::Owned(Arc::new(owned)),
        })
    }

    /// Bytes of the element `position` elements after the first one.
    fn element_bytes(&self, position: i64) -> &[u8] {
        let width = self.dtype.bytes();
        let at = (self.offset as i64 + position * width as i64) as usize;
        &self.storage.bytes()[at..at + width]
    }
}

/// Walks the elements of an array in row-major order.
pub struct Scalars<'a> {
    array: &'a Array,
    index: Vec<i64>,
    /// Current element, counted from the first one in storage order.
    position: i64,
    left: usize,
}

impl Scalars<'_> {
    fn step(&mut self) {
        for axis in (0..self.index.len()).rev() {
            let (length, stride) = (self.array.shape[axis], self.array.strides[axis]);
            self.index[axis] += 1;
            self.position += stride;
            if self.index[axis] < length {
                return;
            }
            self.position -= length * stride;
            self.index[axis] = 0;
        }
    }
}

impl Iterator for Scalars<'_> {
    type Item = Scalar;

    fn next(&mut self) -> Option<Scalar> {
        self.left = self.left.checked_sub(1)?;
        let scalar = decode(self.array.dtype, self.array.element_bytes(self.position));
        self.step();
        Some(scalar)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Scalars<'_> {}

/// The element whose little-endian bytes are `bytes`.
fn decode(dtype: DType, bytes: &[u8]) -> Scalar {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match dtype {
        DType::Bool => Scalar::Bool(bits != 0),
        DType::I8 => Scalar::Int(i64::from(bits as i8)),
        DType::I16 => Scalar::Int(i64::from(bits as i16)),
        DType::I32 => Scalar::Int(i64::from(bits as i32)),
        DType::I64 => Scalar::Int(bits as i64),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::UInt(bits),
        DType::F8E4M3 => Scalar::Float(f64::from(coulis_ir::float8::e4m3_to_f32(bits as u8))),
        DType::F8E5M2 => Scalar::Float(f64::from(coulis_ir::float8::e5m2_to_f32(bits as u8))),
        DType::F16 => Scalar::Float(f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Scalar::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Scalar::Float(f64::from_bits(bits)),
    }
}

/// Strides of a column-major array, in elements: those of a row-major one of the axes in reverse.
pub(crate) fn column_major(shape: &[i64]) -> Vec<i64> {
    let reversed: Vec<i64> = shape.iter().rev().copied().collect();
    let mut strides = compact_strides(&reversed);
    strides.reverse();
    strides
}

/// Checks rank, signs and size.
/// Refuses a shape that no array has: of too many axes, of a negative length, or of more bytes than int64 counts.
pub fn check_shape(dtype: DType, shape: &[i64]) -> Result<(), ShapeError> {
    if shape.len() > MAX_RANK {
        return Err(ShapeError::Rank { rank: shape.len() });
    }
    let mut size = dtype.bytes() as i64;
    for (axis, &length) in shape.iter().enumerate() {
        if length < 0 {
            return Err(ShapeError::Negative { axis, length });
        }
        size = size
            .checked_mul(length.max(1))
            .ok_or_else(|| ShapeError::Overflow { shape: shape.to_vec(), dtype })?;
    }
    Ok(())
}

/// Bytes of an array's elements before the one at that address, which is its first, and from there on: none where it has no
/// elements. Checks what a caller says of memory; whether it is there the caller alone knows.
pub fn bytes_around(
    dtype: DType,
    shape: &[i64],
    strides: &[i64],
    first: usize,
) -> Result<(usize, usize), ShapeError> {
    let n_bytes = size_in_bytes(dtype, shape)?;
    if strides.len() != shape.len() {
        return Err(ShapeError::StrideCount { strides: strides.len(), rank: shape.len() });
    }
    if n_bytes == 0 {
        return Ok((0, 0));
    }
    if first == 0 {
        return Err(ShapeError::NoMemory { dtype, shape: shape.to_vec() });
    }
    let width = dtype.bytes();
    if !first.is_multiple_of(width) {
        return Err(ShapeError::Misaligned { dtype });
    }
    let bytes = |n: i128| usize::try_from(n.checked_mul(width as i128)?).ok();
    let around = reach(shape, strides).and_then(|(lo, hi)| {
        bytes(hi - lo + 1).filter(|&all| all <= isize::MAX as usize)?;
        bytes(-lo).zip(bytes(hi + 1))
    });
    // Addresses end where the first element cannot be that far from the others.
    let is_inside = |&(before, after): &(usize, usize)| before <= first && first.checked_add(after).is_some();
    around.filter(is_inside).ok_or_else(|| ShapeError::Overflow { shape: shape.to_vec(), dtype })
}

/// Bytes of a checked shape.
pub(crate) fn size_in_bytes(dtype: DType, shape: &[i64]) -> Result<usize, ShapeError> {
    check_shape(dtype, shape)?;
    Ok(shape.iter().product::<i64>() as usize * dtype.bytes())
}
