//! Strided loads that cover contiguous memory together, as contiguous loads and a transposition in registers.
//!
//! `A[base + j + lane * S]` for all `j` in `0..S` and all lanes are the elements `base .. base + S * lanes`, each
//! once. Where a block evaluates all `S` loads, no element is read that they do not read, and the span costs one load
//! a vector instead of one an element. `S` is a power of two.
//!
//! The transposition: number the elements of `S` vectors of `n` lanes by `log2 S + log2 n` address bits, the
//! vector's number above the lane's. Loaded in order, the place of an element is its address, rows of `S` elements
//! one after another. Wanted is the row in the lane and `j` in the vector's number: the address rotated. A stage
//! takes two vectors at a time and rotates all addresses by one bit: to the right if it gathers every other lane of
//! vectors `2i` and `2i + 1` ("unzip"; `log2 S` stages), to the left if it takes the lanes of vectors `i` and
//! `i + S / 2` by turns ("zip"; `log2 n` stages). Each stage is `S` shuffles of two operands.

use std::collections::BTreeMap;

use coulis_ir::{BinaryOp, Buffer, DType, Expr, Node};

use crate::EmitError;
use crate::c::code::Code;
use crate::c::helper::{Helper, Needs as _};
use crate::c::offsets::Offsets;
use crate::c::scalar::is_storage_float;
use crate::c::types::{CTy, VTy, part_lanes};
use crate::c::value::{Part, Parts, Val};
use crate::c::vector::offset;
use crate::c::{Walker, index};

/// The largest stride: more vectors than that leave the registers.
const MAX_STRIDE: i64 = 32;

/// Bytes within which shuffles of two operands are one instruction on every machine.
const BLOCK_BYTES: u32 = 16;

/// A vector load of constant stride: elements `rest + offset + lane * stride`.
struct Strided {
    buffer: Buffer,
    base: Expr,
    rest: Expr,
    offset: i64,
    stride: i64,
    lanes: u32,
}

impl Strided {
    fn of(expr: &Expr, offsets: &Offsets) -> Option<Strided> {
        let Node::Load(buffer, indices) = expr.node() else { return None };
        let [at] = indices.as_slice() else { return None };
        let (base, stride) = index::as_ramp(at)?;
        let stride = index::constant(&stride)?;
        let (rest, offset) = offsets.split(&base)?;
        Some(Strided { buffer: buffer.clone(), base, rest, offset, stride, lanes: at.lanes() })
    }

    /// Whether both are of one group, their offsets aside.
    fn is_sibling(&self, other: &Strided) -> bool {
        self.stride == other.stride
            && self.lanes == other.lanes
            && self.base.dtype() == other.base.dtype()
            && self.buffer == other.buffer
            && self.rest == other.rest
    }
}

/// The stages that transpose vectors of `lanes` lanes, in blocks of `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    block: u32,
    zip: bool,
    stages: u32,
}

impl Network {
    fn new(ty: CTy, dtype: DType, lanes: u32, stride: u32) -> Network {
        // Vectors of 64 bytes have a shuffle of two operands for wide lanes. Loads that convert do so in one step.
        let whole = (lanes * ty.bytes() > 32 && ty.bytes() >= 4) || is_storage_float(dtype);
        let block = if whole { lanes } else { lanes.min(BLOCK_BYTES / ty.bytes()) };
        let (zips, unzips) = (block.ilog2(), stride.ilog2());
        // Narrow lanes zip in one instruction and unzip in three.
        let zip = zips <= if ty.bytes() < 4 { 3 * unzips } else { unzips };
        Network { block, zip, stages: if zip { zips } else { unzips } }
    }
}

impl Walker<'_> {
    /// A strided load whose siblings are all evaluated in the same block: all of them become known.
    pub(super) fn transposed(&mut self, expr: &Expr) -> Result<Option<Val>, EmitError> {
        let Node::Load(buffer, _) = expr.node() else { return Ok(None) };
        // 8-bit floats are converted one by one in any case.
        let one_by_one = matches!(buffer.dtype, DType::F8E4M3 | DType::F8E5M2);
        let in_registers = self.f.registers.contains_key(&buffer.data.id());
        if expr.lanes() == 1 || self.f.inline > 0 || one_by_one || in_registers {
            return Ok(None);
        }
        let Some(this) = Strided::of(expr, &self.offsets) else { return Ok(None) };
        if !(2..=MAX_STRIDE).contains(&this.stride) || this.stride & (this.stride - 1) != 0 {
            return Ok(None);
        }
        let Some((start, members)) = self.siblings(&this) else { return Ok(None) };
        let vals = self.load_transposed(&this, start)?;
        let Some(table) = self.f.memo.last_mut() else { return Ok(None) };
        for (spellings, val) in members.into_iter().zip(vals) {
            table.extend(spellings.into_iter().map(|member| (member, val.clone())));
        }
        Ok(self.known(expr))
    }

    /// `stride` loads at consecutive offsets that the block evaluates whatever happens, `this` among them.
    /// Several spellings of one offset are one member.
    fn siblings(&self, this: &Strided) -> Option<(i64, Vec<Vec<Expr>>)> {
        let mut found: BTreeMap<i64, Vec<Expr>> = BTreeMap::new();
        for expr in self.f.uses.last()?.keys() {
            if matches!(expr.node(), Node::Load(buffer, _) if *buffer == this.buffer)
                && expr.lanes() == this.lanes
                && let Some(other) = Strided::of(expr, &self.offsets)
                && this.is_sibling(&other)
            {
                found.entry(other.offset).or_default().push(expr.clone());
            }
        }
        (this.offset - this.stride + 1..=this.offset).find_map(|start| {
            let members: Option<Vec<Vec<Expr>>> =
                (start..start + this.stride).map(|offset| found.get(&offset).cloned()).collect();
            Some((start, members?))
        })
    }

    /// The loads at offsets `start ..`, one a value.
    fn load_transposed(&mut self, this: &Strided, start: i64) -> Result<Vec<Val>, EmitError> {
        let dtype = this.buffer.dtype;
        let ty = if dtype == DType::Bool { CTy::I8 } else { CTy::carrier(dtype) };
        let stride = this.stride as u32;
        let dtype_of_index = this.base.dtype();
        let back = Expr::int_of(i128::from(this.offset - start), dtype_of_index);
        let base = self.code(&index::fold_binary(BinaryOp::Sub, this.base.clone(), back))?;
        let base = self.simple(CTy::carrier(dtype_of_index), base);
        let mut vals = vec![Val { ty, parts: Parts::new(), uniform: None }; stride as usize];
        let mut row = 0;
        for lanes in part_lanes(this.lanes, ty.bytes(), self.options.vector_bytes) {
            let shape = VTy::vector(ty, lanes);
            let network = Network::new(ty, dtype, lanes, stride);
            let mut vectors = Vec::new();
            for vector in 0..stride {
                let code =
                    self.load_blocks(&this.buffer, &base, row, stride, vector, shape, network.block)?;
                vectors.push(self.declare(shape, &code));
            }
            for _ in 0..network.stages {
                vectors = self.stage(&vectors, shape, network)?;
            }
            for (val, code) in vals.iter_mut().zip(vectors) {
                val.parts.push(Part { lanes, code });
            }
            row += lanes;
        }
        Ok(vals)
    }

    /// A vector of which each block begins where the rows of that block do: stages need not cross blocks.
    #[allow(clippy::too_many_arguments, reason = "a place in the span has many coordinates")]
    fn load_blocks(
        &mut self,
        buffer: &Buffer,
        base: &Code,
        row: u32,
        stride: u32,
        vector: u32,
        shape: VTy,
        block: u32,
    ) -> Result<Code, EmitError> {
        let load = self.defs.helper(Helper::Load(buffer.dtype, block))?;
        let mut pieces = Vec::new();
        for first in (0..shape.lanes).step_by(block as usize) {
            let address = self.address(buffer, &offset(base, (row + first) * stride + vector * block))?;
            pieces.push(Code::call(&load, &[&address]));
        }
        let mut lanes = block;
        while pieces.len() > 1 {
            let concat = self.defs.helper(Helper::Concat(VTy { lanes, ..shape }))?;
            pieces =
                pieces.chunks(2).map(|pair| Code::call(&concat, &pair.iter().collect::<Vec<_>>())).collect();
            lanes *= 2;
        }
        Ok(pieces.remove(0))
    }

    /// One stage of the network.
    fn stage(&mut self, vectors: &[Code], shape: VTy, network: Network) -> Result<Vec<Code>, EmitError> {
        let half = vectors.len() / 2;
        let mut outs = [Vec::new(), Vec::new()];
        for pair in 0..half {
            let (a, b) = if network.zip { (pair, pair + half) } else { (2 * pair, 2 * pair + 1) };
            for (out, second) in outs.iter_mut().zip([false, true]) {
                let helper = if network.zip {
                    Helper::Zip(shape, network.block, second)
                } else {
                    Helper::Unzip(shape, network.block, second)
                };
                let name = self.defs.helper(helper)?;
                out.push(self.declare(shape, &Code::call(&name, &[&vectors[a], &vectors[b]])));
            }
        }
        let [low, high] = outs;
        Ok(if network.zip {
            low.into_iter().zip(high).flat_map(|(low, high)| [low, high]).collect()
        } else {
            low.into_iter().chain(high).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_takes_the_fewer_stages() {
        let stages = |ty, dtype, lanes, stride| {
            let network = Network::new(ty, dtype, lanes, stride);
            (network.block, network.zip, network.stages)
        };
        assert_eq!(stages(CTy::F32, DType::F32, 16, 2), (16, false, 1));
        assert_eq!(stages(CTy::F32, DType::F32, 16, 32), (16, true, 4));
        assert_eq!(stages(CTy::F32, DType::F32, 8, 2), (4, false, 1));
        assert_eq!(stages(CTy::F32, DType::F32, 8, 8), (4, true, 2));
        assert_eq!(stages(CTy::F32, DType::F16, 8, 8), (8, true, 3));
        assert_eq!(stages(CTy::U8, DType::U8, 64, 16), (16, true, 4));
        assert_eq!(stages(CTy::F64, DType::F64, 1, 4), (1, true, 0));
    }
}
