//! What a run is given: arguments in memory, and options.

use std::cell::Cell;

use coulis_ir::Target;
use coulis_ir::args::{ArgInfo, ArrayInfo};
use coulis_ir::target::BlockLimits;

/// One argument, in parameter order.
pub enum SimArg<'a> {
    /// For a buffer parameter.
    Array(SimArray<'a>),
    /// For a scalar parameter.
    Scalar(i64),
}

impl SimArg<'_> {
    /// What the binder of arguments receives.
    pub fn info(&self) -> ArgInfo {
        match self {
            SimArg::Array(array) => ArgInfo::Array(array.info.clone()),
            SimArg::Scalar(value) => ArgInfo::Scalar(*value),
        }
    }
}

/// An array in memory of the caller.
pub struct SimArray<'a> {
    /// Element type, shape and strides.
    pub info: ArrayInfo,
    /// The memory that holds every element.
    pub memory: Memory<'a>,
    /// Bytes from the start of the memory to element `[0, ..., 0]`.
    pub offset: usize,
    /// Whether its elements hold values before the run. Those of an output do not.
    pub initialised: bool,
}

/// Memory of an array.
#[derive(Clone, Copy)]
pub enum Memory<'a> {
    /// Read only.
    Read(&'a [u8]),
    /// Read and written, and perhaps part of the memory of other arrays too.
    Write(&'a [Cell<u8>]),
}

impl Memory<'_> {
    /// First address and length in bytes.
    pub(crate) fn span(&self) -> (usize, usize) {
        match self {
            Memory::Read(bytes) => (bytes.as_ptr().addr(), bytes.len()),
            Memory::Write(cells) => (cells.as_ptr().addr(), cells.len()),
        }
    }

    /// Copies `out.len()` bytes from `at`.
    pub(crate) fn copy_to(&self, at: usize, out: &mut [u8]) {
        match self {
            Memory::Read(bytes) => out.copy_from_slice(&bytes[at..at + out.len()]),
            Memory::Write(cells) => {
                for (byte, cell) in out.iter_mut().zip(&cells[at..]) {
                    *byte = cell.get();
                }
            }
        }
    }
}

impl<'a> SimArray<'a> {
    /// An array that holds values and is only read; element `[0, ..., 0]` is the first of the memory.
    pub fn read(bytes: &'a [u8], info: ArrayInfo) -> SimArray<'a> {
        SimArray { info, memory: Memory::Read(bytes), offset: 0, initialised: true }
    }

    /// An array that holds values and may be written.
    pub fn update(bytes: &'a mut [u8], info: ArrayInfo) -> SimArray<'a> {
        let cells = Cell::from_mut(bytes).as_slice_of_cells();
        SimArray { info, memory: Memory::Write(cells), offset: 0, initialised: true }
    }

    /// An array without values that is written.
    pub fn output(bytes: &'a mut [u8], info: ArrayInfo) -> SimArray<'a> {
        SimArray { initialised: false, ..SimArray::update(bytes, info) }
    }
}

/// How kernels are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Lanes of a warp: 32 or 64.
    pub warp: u32,
    /// Orders of blocks, warps and branches that are tried, at least 1; the results of all are compared. The first is
    /// ascending, the others come from the seed.
    pub warp_orders: u32,
    /// Where the other orders come from.
    pub seed: u64,
    /// Statements that all threads together may execute in one order.
    pub max_steps: u64,
    /// What a block may have. A launch that asks for more is refused, as a GPU's driver does.
    pub block: BlockLimits,
}

impl Default for Options {
    /// Warps of 32 lanes, two orders, at most 2^33 statements, and the blocks of [`Target::simulated`].
    fn default() -> Options {
        let warp = Target::LEAST_WARP;
        let block = Target::simulated(warp).block;
        Options { warp, warp_orders: 2, seed: 1, max_steps: 1 << 33, block }
    }
}
