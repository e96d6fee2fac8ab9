//! Strided loads that cover contiguous memory together, as contiguous loads and a transposition in registers.
//!
//! `A[base + j + lane * S]` for all `j` in `0..S` and all lanes are the elements `base .. base + S * lanes`, each
//! once. Where a block evaluates all `S` loads, no element is read that they do not read, and the span costs one load
//! a vector instead of one an element.
//!
//! Of longer rows, and of rows that are any way apart, the first few consecutive offsets, a power of two, are such a span but for gaps
//! between its rows, and a load for each row.
//!
//! The transposition: number the elements of `S` vectors of `n` lanes by `log2 S + log2 n` address bits, the
//! vector's number above the lane's. Loaded in order, the place of an element is its address, rows of `S` elements
//! one after another. Wanted is the row in the lane and `j` in the vector's number: the address rotated. A stage
//! takes two vectors at a time and rotates all addresses by one bit: to the right if it gathers every other lane of
//! vectors `2i` and `2i + 1` ("unzip"; `log2 S` stages), to the left if it takes the lanes of vectors `i` and
//! `i + S / 2` by turns ("zip"; `log2 n` stages). Each stage is `S` shuffles of two operands.
//!
//! That is for an `S` that is a power of two. One with an odd factor `T` has as many stages that unzip as it has factors of
//! two, which leave groups of `T` vectors of consecutive elements. Of these, `j + i * T` for all lanes `i` stand in
//! different lanes, as `T` and `n` have no factor in common. So the vectors are blended, each lane from the one that has its
//! element there, and the lanes of the blend are put in order.

use std::collections::BTreeMap;

use coulis_ir::{BinaryOp, Buffer, DType, Expr, Node};

use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::offsets::Offsets;
use crate::c::scalar::is_storage_float;
use crate::c::types::{CTy, VTy, part_lanes};
use crate::c::value::{Part, Parts, Val};
use crate::c::vector::offset;
use crate::c::{Walker, index};

/// The largest stride: more vectors than that leave the registers.
const MAX_STRIDE: i64 = 32;

/// Bytes of a piece of a row that is one load, at least and at most: those of less take as long as single elements, and those of
/// more as many vectors that leave the registers.
const NARROWEST_PIECE: i64 = 8;
const WIDEST_PIECE: i64 = 16;

/// Bytes within which shuffles of two operands are one instruction on every machine.
const BLOCK_BYTES: u32 = 16;

/// A vector load: elements `rest + offset + lane * stride`.
struct Strided {
    buffer: Buffer,
    base: Expr,
    rest: Expr,
    offset: i64,
    stride: Expr,
    lanes: u32,
}

impl Strided {
    fn of(expr: &Expr, offsets: &Offsets) -> Option<Strided> {
        let Node::Load(buffer, indices) = expr.node() else { return None };
        let [at] = indices.as_slice() else { return None };
        let (base, stride) = index::as_ramp(at)?;
        let (rest, offset) = offsets.split(&base)?;
        offsets.split(&stride)?;
        Some(Strided { buffer: buffer.clone(), base, rest, offset, stride, lanes: at.lanes() })
    }

    /// The stride, where it is a constant.
    fn known_stride(&self) -> Option<i64> {
        index::constant(&self.stride)
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

/// Rows of which the first so many elements are transposed: all, or those of a tile.
#[derive(Clone, Copy)]
struct Rows {
    first: u32,
    width: u32,
    /// Whether each row begins where the one before it ends.
    follow: bool,
}

impl Rows {
    /// Elements of one load where blocks are that long: those of several rows where these follow each other.
    fn piece(self, block: u32) -> u32 {
        if self.follow { block } else { block.min(self.width) }
    }

    /// Row and place in it of the element that so many of those transposed follow, from a row on.
    fn place(self, row: u32, element: u32) -> (u32, u32) {
        (self.first + row + element / self.width, element % self.width)
    }
}

/// Where the rows of strided loads are.
struct Span {
    /// The first element.
    base: Code,
    /// From one row to the next.
    stride: Code,
}

impl Span {
    fn at(&self, (row, element): (u32, u32)) -> Code {
        let known = self.stride.text.parse::<u32>().ok();
        let Some(stride) = known.filter(|stride| row.checked_mul(*stride).is_some()) else {
            let distance = Code::infix("*", Prec::Product, &Code::primary(row.to_string()), &self.stride);
            let begin =
                if row == 0 { self.base.clone() } else { Code::infix("+", Prec::Sum, &self.base, &distance) };
            return offset(&begin, element);
        };
        offset(&self.base, row * stride + element)
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

    /// The stages before the groups of an odd factor.
    fn before_odd(ty: CTy, lanes: u32, stride: u32) -> Network {
        // One vector's wide lanes are put in any order by one instruction.
        let block = if ty.bytes() >= 4 { lanes } else { lanes.min(BLOCK_BYTES / ty.bytes()) };
        Network { block, zip: false, stages: stride.trailing_zeros() }
    }
}

impl Walker<'_> {
    /// A strided load whose siblings are all evaluated in the same block: all of them become known.
    pub(super) fn transposed(&mut self, expr: &Expr) -> Result<Option<Val>, EmitError> {
        let Node::Load(buffer, _) = expr.node() else { return Ok(None) };
        let in_registers = self.f.registers.contains_key(&buffer.data.id());
        if expr.lanes() == 1 || self.f.inline > 0 || in_registers {
            return Ok(None);
        }
        let Some(this) = Strided::of(expr, &self.offsets) else { return Ok(None) };
        let known = this.known_stride();
        if known
            .is_some_and(|stride| stride < 2 || stride.saturating_mul(this.lanes.into()) > i32::MAX.into())
        {
            return Ok(None);
        }
        let Some((start, members)) = self.siblings(&this) else { return Ok(None) };
        let width = members.len() as u32;
        let vals = if width.is_power_of_two() {
            self.load_transposed(&this, start, width, known == Some(width.into()))?
        } else {
            self.load_blended(&this, start, width)?
        };
        let Some(table) = self.f.memo.last_mut() else { return Ok(None) };
        for (spellings, val) in members.into_iter().zip(vals) {
            table.extend(spellings.into_iter().map(|member| (member, val.clone())));
        }
        Ok(self.known(expr))
    }

    /// `stride` loads at consecutive offsets that the block evaluates whatever happens, `this` among them, or a number of them that
    /// divides pieces of rows into tiles. Several spellings of one offset are one member.
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
        let all = |start: i64, width: i64| -> Option<(i64, Vec<Vec<Expr>>)> {
            let members: Option<Vec<Vec<Expr>>> =
                (start..start + width).map(|offset| found.get(&offset).cloned()).collect();
            Some((start, members?))
        };
        let known = this.known_stride();
        if let Some(stride) = known.filter(|stride| *stride <= MAX_STRIDE)
            && let Some(span) = (this.offset - stride + 1..=this.offset).find_map(|start| all(start, stride))
        {
            return Some(span);
        }
        // Tiles are counted from the first of the loads that have no gap between them and this one.
        let most = known.unwrap_or(i64::MAX);
        let first = (0..most).take_while(|back| found.contains_key(&(this.offset - back))).last()?;
        let bytes = this.buffer.dtype.bytes() as i64;
        let narrowest = (NARROWEST_PIECE / bytes).max(2);
        let widest = WIDEST_PIECE / bytes;
        let widths = std::iter::successors(Some(widest), |width| Some(width / 2));
        widths.take_while(|width| *width >= narrowest).find_map(|width| {
            let start = this.offset - first % width;
            (width < most).then(|| all(start, width)).flatten()
        })
    }

    /// The loads at offsets `start ..`, `width` of them, one a value. `follow`: each row begins where the one before it ends.
    fn load_transposed(
        &mut self,
        this: &Strided,
        start: i64,
        width: u32,
        follow: bool,
    ) -> Result<Vec<Val>, EmitError> {
        let dtype = this.buffer.dtype;
        let ty = if dtype == DType::Bool { CTy::I8 } else { CTy::carrier(dtype) };
        let span = self.span(this, start)?;
        let mut vals =
            vec![Val { ty: moved_as(dtype, ty), parts: Parts::new(), uniform: None }; width as usize];
        let mut row = 0;
        for lanes in part_lanes(this.lanes, ty.bytes(), self.options.vector_bytes) {
            let shape = VTy::vector(ty, lanes);
            let network = Network::new(ty, dtype, lanes, width);
            let rows = Rows { first: row, width, follow };
            let mut vectors = Vec::new();
            for vector in 0..width {
                let code =
                    self.load_blocks((&this.buffer, dtype, &span), rows, vector, shape, network.block)?;
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

    /// Where the rows are, from the element at offset `start` on.
    fn span(&mut self, this: &Strided, start: i64) -> Result<Span, EmitError> {
        let dtype = this.base.dtype();
        let back = Expr::int_of(i128::from(this.offset - start), dtype);
        let base = self.code(&index::fold_binary(BinaryOp::Sub, this.base.clone(), back))?;
        let stride = self.code(&this.stride)?;
        let index_ty = CTy::carrier(dtype);
        Ok(Span { base: self.simple(index_ty, base), stride: self.simple(index_ty, stride) })
    }

    /// The same of a constant stride that is no power of two. Floats of 8 and 16 bits are moved as they are, and converted then.
    fn load_blended(&mut self, this: &Strided, start: i64, stride: u32) -> Result<Vec<Val>, EmitError> {
        let dtype = this.buffer.dtype;
        let converts = is_storage_float(dtype);
        let (loaded, moved) = match dtype {
            DType::Bool => (dtype, CTy::I8),
            _ if converts && dtype.bytes() == 1 => (DType::U8, CTy::U8),
            _ if converts => (DType::U16, CTy::U16),
            _ => (dtype, CTy::carrier(dtype)),
        };
        let ty = if converts { CTy::F32 } else { moved };
        let n_groups = 1 << stride.trailing_zeros();
        let odd = stride / n_groups;
        let span = self.span(this, start)?;
        let mut vals =
            vec![Val { ty: moved_as(dtype, ty), parts: Parts::new(), uniform: None }; stride as usize];
        let mut row = 0;
        for lanes in part_lanes(this.lanes, ty.bytes(), self.options.vector_bytes) {
            let shape = VTy::vector(moved, lanes);
            let network = Network::before_odd(moved, lanes, stride);
            let rows = Rows { first: row, width: stride, follow: true };
            let mut vectors = Vec::new();
            for vector in 0..stride {
                let code =
                    self.load_blocks((&this.buffer, loaded, &span), rows, vector, shape, network.block)?;
                vectors.push(self.declare(shape, &code));
            }
            for _ in 0..network.stages {
                vectors = self.stage(&vectors, shape, network)?;
            }
            for (group, vectors) in vectors.chunks(odd as usize).enumerate() {
                for offset in 0..odd {
                    let mut code = self.blended(vectors, offset, shape, network.block)?;
                    if converts {
                        code = Code::call(&self.defs.helper(Helper::WidenAll(dtype, lanes))?, &[&code]);
                    }
                    let code = self.declare(VTy { ty, ..shape }, &code);
                    vals[group + (offset * n_groups) as usize].parts.push(Part { lanes, code });
                }
            }
            row += lanes;
        }
        Ok(vals)
    }

    /// Elements `first + i * T` of `T` vectors, an odd number, in each block.
    fn blended(&mut self, vectors: &[Code], first: u32, shape: VTy, block: u32) -> Result<Code, EmitError> {
        let step = vectors.len() as u32;
        let mut taken = vec![0u64; vectors.len()];
        for lane in 0..block {
            let element = first + lane * step;
            taken[(element / block) as usize] |= 1 << (element % block);
        }
        let mut blend: Option<Code> = None;
        for (vector, lanes) in vectors.iter().zip(taken).filter(|(_, lanes)| *lanes != 0) {
            blend = Some(match blend {
                None => vector.clone(),
                Some(others) => {
                    let name = self.defs.helper(Helper::Blend(shape, block, lanes))?;
                    self.declare(shape, &Code::call(&name, &[&others, vector]))
                }
            });
        }
        let Some(blend) = blend else { return Err(self.bad_shape("a blend", "no vector")) };
        let name = self.defs.helper(Helper::Around { of: shape, block, step, first: first % block })?;
        Ok(Code::call(&name, &[&blend]))
    }

    /// A vector of which each block begins where the rows of that block do: stages need not cross blocks.
    /// `loaded`: what elements are loaded as.
    fn load_blocks(
        &mut self,
        (buffer, loaded, span): (&Buffer, DType, &Span),
        rows: Rows,
        vector: u32,
        shape: VTy,
        block: u32,
    ) -> Result<Code, EmitError> {
        let piece = rows.piece(block);
        let load = self.defs.helper(Helper::Load(loaded, piece))?;
        let mut pieces = Vec::new();
        for first in (0..shape.lanes).step_by(block as usize) {
            for within in (0..block).step_by(piece as usize) {
                let at = span.at(rows.place(first, vector * block + within));
                let address = self.address(buffer, &at)?;
                pieces.push(Code::call(&load, &[&address]));
            }
        }
        let mut lanes = piece;
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

/// The type of a value whose lanes were moved as `ty`: bytes that were loaded of bools are masks.
fn moved_as(dtype: DType, ty: CTy) -> CTy {
    if dtype == DType::Bool { CTy::M8 } else { ty }
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
