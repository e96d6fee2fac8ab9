//! Safe calls of executables: memory is checked against what a kernel assumes of it.

use std::marker::PhantomData;

use coulis_ir::DType;
use coulis_ir::args::{ArrayInfo, Bindings};

use crate::device::{DeviceTimes, Executable, Launched, Parameter, Span, TimeAmount};
use crate::error::RuntimeError;

/// Memory that does not hold the array it is to hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Elements outside of the bytes.
    #[error(
        "an array of {dtype} with shape {shape:?} and strides {strides:?} reaches elements {lo} to {hi}, and the \
         memory holds {held}"
    )]
    OutOfBounds {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<i64>,
        /// Strides in elements.
        strides: Vec<i64>,
        /// First element reached.
        lo: i128,
        /// Last element reached.
        hi: i128,
        /// Elements in the memory, counted from the array's first one.
        held: i128,
    },
    /// A first element at an address that its type does not allow.
    #[error("the memory of an array of {dtype} is not aligned to {} bytes", dtype.bytes())]
    Misaligned {
        /// Element type.
        dtype: DType,
    },
}

/// Memory of one buffer parameter, all of whose elements lie inside it.
pub struct Window<'a> {
    span: Span,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Window<'a> {
    /// Memory to be read; the array's first element is `offset` bytes into it.
    pub fn read(bytes: &'a [u8], offset: usize, info: &ArrayInfo) -> Result<Window<'a>, WindowError> {
        let (before, after) = check(bytes, offset, info)?;
        let first = if after == 0 { nowhere() } else { bytes.as_ptr().wrapping_add(offset).cast_mut() };
        Ok(Window { span: Span { first, before, after, is_written: false }, memory: PhantomData })
    }

    /// Memory to be written; the array's first element is `offset` bytes into it.
    pub fn write(bytes: &'a mut [u8], offset: usize, info: &ArrayInfo) -> Result<Window<'a>, WindowError> {
        let (before, after) = check(bytes, offset, info)?;
        let first = if after == 0 { nowhere() } else { bytes.as_mut_ptr().wrapping_add(offset) };
        Ok(Window { span: Span { first, before, after, is_written: true }, memory: PhantomData })
    }
}

/// Where an array without elements is: aligned for every type, and nothing to be read.
fn nowhere() -> *mut u8 {
    std::ptr::without_provenance_mut(64)
}

/// Bytes of the elements before the first one, and from it on.
fn check(bytes: &[u8], offset: usize, info: &ArrayInfo) -> Result<(usize, usize), WindowError> {
    if info.shape.contains(&0) {
        return Ok((0, 0));
    }
    let width = info.dtype.bytes();
    if !(bytes.as_ptr().addr().wrapping_add(offset)).is_multiple_of(width) {
        return Err(WindowError::Misaligned { dtype: info.dtype });
    }
    let before = (offset / width) as i128;
    let held = (bytes.len() / width) as i128 - before;
    let (lo, hi) = info.reach().unwrap_or((i128::MIN, i128::MAX));
    if -before <= lo && hi < held {
        // Both are within the memory, whose length is a `usize`.
        return Ok((lo.unsigned_abs() as usize * width, (hi.unsigned_abs() as usize + 1) * width));
    }
    let (dtype, shape, strides) = (info.dtype, info.shape.clone(), info.strides.clone());
    Err(WindowError::OutOfBounds { dtype, shape, strides, lo, hi, held })
}

/// Runs an executable once on checked memory.
///
/// `bindings` are those that [`coulis_ir::args::bind_args`] gives for the arrays that the windows were checked for, one
/// window a buffer parameter. Windows that are too few or too many are refused, and those that may not be written where
/// the kernel stores.
pub fn call(executable: &dyn Executable, bindings: &Bindings, windows: &mut [Window<'_>]) -> Launched {
    let spans = spans(executable, windows)?;
    // SAFETY: a verified kernel touches only elements inside the declared shapes, which the windows hold; exclusive
    // borrows back the ones that are written.
    unsafe { executable.launch_on_host(bindings, &spans) }
}

/// The memory of windows that the executable takes.
fn spans(executable: &dyn Executable, windows: &[Window<'_>]) -> Result<Vec<Span>, RuntimeError> {
    let spans: Vec<Span> = windows.iter().map(|w| w.span).collect();
    Parameter::check_spans(&executable.info().kernel, executable.parameters(), &spans)?;
    Ok(spans)
}

/// Address of an array's element `[0, ..., 0]` in the memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePointer(usize);

impl DevicePointer {
    /// # Safety
    /// Until the work that is put on a stream with it is done: the memory of the device that the kernel runs on holds
    /// every element of the array that the kernel was bound to, nobody writes to it meanwhile, and no one else touches
    /// it where the kernel writes.
    pub unsafe fn new(address: usize) -> DevicePointer {
        DevicePointer(address)
    }

    /// Where it points.
    pub fn address(self) -> usize {
        self.0
    }

    /// The address of another element of the same array, so many bytes further, as if [`DevicePointer::new`] had been given it: for
    /// kernels that were bound to the array as it is seen from there.
    #[must_use]
    pub fn moved(self, bytes: isize) -> DevicePointer {
        DevicePointer(self.0.wrapping_add_signed(bytes))
    }
}

/// A stream of a device, in the order of which work is done; by default the device's default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHandle(usize);

impl StreamHandle {
    /// # Safety
    /// The handle is the driver's, of a stream of the device that it is used with, and alive until then; or 0.
    pub unsafe fn new(handle: usize) -> StreamHandle {
        StreamHandle(handle)
    }
}

/// Puts an executable on a stream, to run once on memory of its device, and does not wait.
///
/// `bindings` are as for [`call`]; one pointer a buffer parameter.
pub fn call_on_stream(
    executable: &dyn Executable,
    bindings: &Bindings,
    pointers: &[DevicePointer],
    stream: StreamHandle,
) -> Launched {
    let buffers: Vec<*mut u8> = pointers.iter().map(|p| std::ptr::without_provenance_mut(p.0)).collect();
    // SAFETY: who made the pointers and the stream promised it.
    unsafe { executable.launch_on_stream(bindings, &buffers, stream.0) }
}

/// Waits until everything on a stream of the executable's device is done.
pub fn wait_for_stream(executable: &dyn Executable, stream: StreamHandle) -> Result<(), RuntimeError> {
    // SAFETY: who made the stream promised it.
    unsafe { executable.wait_for_stream(stream.0) }
}

/// As [`call`], and times launches by the device's own clock; `None`, and nothing is run, where it has none.
pub fn time(
    executable: &dyn Executable,
    bindings: &Bindings,
    windows: &mut [Window<'_>],
    amount: &TimeAmount,
) -> Result<Option<DeviceTimes>, RuntimeError> {
    let spans = spans(executable, windows)?;
    // SAFETY: as for `call`.
    unsafe { executable.time_on_host(bindings, &spans, amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(shape: &[i64], strides: &[i64]) -> ArrayInfo {
        ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }
    }

    #[test]
    fn windows_hold_every_element_or_are_refused() {
        let words = [0u32; 12];
        // SAFETY: plain numbers read as bytes.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 48) };
        assert!(Window::read(bytes, 0, &info(&[3, 4], &[4, 1])).is_ok());
        assert!(Window::read(bytes, 4, &info(&[3, 4], &[4, 1])).is_err());
        assert!(Window::read(bytes, 44, &info(&[12], &[-1])).is_ok());
        assert!(Window::read(bytes, 40, &info(&[12], &[-1])).is_err());
        assert!(Window::read(bytes, 0, &info(&[1000], &[0])).is_ok());
        assert!(Window::read(bytes, 0, &info(&[0, 1000], &[1000, 1])).is_ok());
        assert!(Window::read(bytes, 2, &info(&[1], &[1])).is_err());
        assert!(Window::read(bytes, 0, &info(&[(1 << 62) + 1; 16], &[1 << 62; 16])).is_err());
        let empty = Window::read(&bytes[1..1], 0, &info(&[0], &[1])).expect("no element is anywhere");
        assert!(empty.span.first.addr().is_multiple_of(64));
    }
}
