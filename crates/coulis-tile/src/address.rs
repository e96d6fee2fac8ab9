//! Where an element of a tile is in memory, as an expression of its coordinates.
//!
//! What `TileLayout::apply` computes of numbers this computes of expressions, for layouts without thread
//! axes. A swizzle exclusive-ors the address, counted in units of `2^per_element` elements: bits `atom_len`
//! and up of it, `swizzle_len` of them, onto the lowest ones.

use coulis_ir::{BinaryOp, Buffer, DType, Expr};
use coulis_layout::{Iter, LayoutError, Swizzle, TileLayout, is_memory_axis};

use crate::facts::is_row_major;

/// Why an element has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A layout that needs constant extents.
    #[error("`{buffer}` has a layout, which needs extents that are constants")]
    Extents {
        /// The buffer.
        buffer: String,
    },
    /// The layout does not fit the shape.
    #[error("`{buffer}`: {error}")]
    Layout {
        /// The buffer.
        buffer: String,
        /// What does not fit.
        error: LayoutError,
    },
    /// A layout that 32-bit positions do not reach.
    #[error("`{buffer}` has a layout of {span} elements, and layouts have at most {}", i32::MAX)]
    Wide {
        /// The buffer.
        buffer: String,
        /// Elements from the first to past the last.
        span: i64,
    },
    /// An axis that is no memory of the calling thread.
    #[error("`{buffer}` is laid out along `{axis}`, which is not memory that a thread can address")]
    Axis {
        /// The buffer.
        buffer: String,
        /// The axis.
        axis: String,
    },
}

/// The position of an element in the memory of its buffer, `int32`; `None` where the layout is row-major, or there is
/// none, and coordinates say it all.
pub fn physical_index(buffer: &Buffer, coords: &[Expr]) -> Result<Option<Expr>, AddressError> {
    let Some(layout) = buffer.layout.as_ref().filter(|_| !is_row_major(buffer)) else { return Ok(None) };
    let name = || buffer.name.clone();
    let extent = |e: &Expr| e.as_int().and_then(|n| i64::try_from(n).ok());
    let shape: Vec<i64> = buffer
        .shape
        .iter()
        .map(extent)
        .collect::<Option<_>>()
        .ok_or_else(|| AddressError::Extents { buffer: name() })?;
    // A layout along `m` alone; tensor memory is not addressed by threads.
    if let Some(axis) = layout.axes().into_iter().find(|axis| !is_memory_axis(axis) || *axis != "m") {
        return Err(AddressError::Axis { buffer: name(), axis: axis.to_owned() });
    }
    let span = physical_size(layout);
    if span > i64::from(i32::MAX) {
        return Err(AddressError::Wide { buffer: name(), span });
    }
    let coords: Vec<Expr> = coords.iter().map(|c| c.clone().cast(DType::I32)).collect();
    let terms = match layout.group(&shape) {
        Ok(groups) => groups.iter().zip(&coords).flat_map(|(iters, c)| split(iters, c)).collect(),
        Err(LayoutError::Boundary { .. }) => {
            let flat = coords
                .iter()
                .zip(&shape)
                .skip(1)
                .fold(coords.first().cloned(), |at, (c, n)| at.map(|at| at * int(*n) + c.clone()));
            split(&layout.shard, &flat.unwrap_or_else(|| int(0)))
        }
        Err(error) => return Err(AddressError::Layout { buffer: name(), error }),
    };
    let offset: i64 = layout.offset.iter().map(|o| o.stride).sum();
    let constant = (offset != 0).then(|| int(offset));
    let address = terms.into_iter().chain(constant).reduce(|a: Expr, b| a + b).unwrap_or_else(|| int(0));
    Ok(Some(match layout.swizzle {
        Some(swizzle) => swizzled(swizzle, address),
        None => address,
    }))
}

/// Number of elements from the first to past the last that a buffer's layout reaches.
pub fn physical_size(layout: &TileLayout) -> i64 {
    let span = layout.memory_span();
    match layout.swizzle {
        // A swizzle permutes whole blocks of this many elements.
        Some(s) => {
            let block = 1i64 << (s.per_element + s.atom_len + s.swizzle_len).min(40);
            span.div_euclid(block) * block + if span % block == 0 { 0 } else { block }
        }
        None => span,
    }
}

fn int(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I32)
}

/// The steps of iterators that one coordinate is split over, outermost first.
fn split(iters: &[Iter], coord: &Expr) -> Vec<Expr> {
    let iters: Vec<&Iter> = iters.iter().filter(|it| it.extent > 1).collect();
    let mut inner: i64 = iters.iter().map(|it| it.extent).product();
    let mut terms = Vec::with_capacity(iters.len());
    for (at, it) in iters.iter().enumerate() {
        inner /= it.extent;
        let quotient = if inner == 1 { coord.clone() } else { coord.clone().floordiv(int(inner)) };
        let digit = if at == 0 { quotient } else { quotient.floormod(int(it.extent)) };
        terms.push(if it.step.stride == 1 { digit } else { digit * int(it.step.stride) });
    }
    terms
}

fn swizzled(swizzle: Swizzle, address: Expr) -> Expr {
    let Swizzle { per_element, swizzle_len, atom_len } = swizzle;
    let unit = 1i64 << per_element.min(30);
    let (high, low) = match unit {
        1 => (address, None),
        _ => (address.clone().floordiv(int(unit)), Some(address.floormod(int(unit)))),
    };
    let turn = high.clone().floordiv(int(1 << atom_len.min(30))).floormod(int(1 << swizzle_len.min(30)));
    let high = Expr::binary(BinaryOp::BitXor, high, turn);
    match low {
        Some(low) => high * int(unit) + low,
        None => high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::eval::{Env, eval_expr};
    use coulis_ir::{MemScope, Var};
    use coulis_layout::AxisStride;

    fn buffer(shape: &[i64], layout: TileLayout) -> Buffer {
        let extents = shape.iter().map(|n| int(*n)).collect();
        Buffer::new("t", DType::F32, extents, MemScope::Shared).derive(|b| b.layout = Some(layout))
    }

    fn layout(shard: &[(i64, i64)], offset: i64) -> TileLayout {
        let axis = || "m".to_owned();
        let it = |&(extent, stride): &(i64, i64)| Iter { extent, step: AxisStride { stride, axis: axis() } };
        TileLayout {
            shard: shard.iter().map(it).collect(),
            replica: Vec::new(),
            offset: vec![AxisStride { stride: offset, axis: axis() }],
            swizzle: None,
        }
    }

    /// The address of every element of an (a, b) tile, by evaluation.
    fn addresses(buffer: &Buffer, [a, b]: [i64; 2]) -> Vec<i128> {
        let (i, j) = (Var::new("i", DType::I32), Var::new("j", DType::I32));
        let index = physical_index(buffer, &[i.expr(), j.expr()]).unwrap().unwrap();
        let mut found = Vec::new();
        for x in 0..a {
            for y in 0..b {
                let mut env = Env::new();
                env.set(&i, coulis_ir::eval::Value::Int(x.into()));
                env.set(&j, coulis_ir::eval::Value::Int(y.into()));
                found.push(eval_expr(&index, &mut env).unwrap().as_int().unwrap());
            }
        }
        found
    }

    #[test]
    fn addresses_are_what_the_layout_says() {
        for (shape, shard, offset) in [
            ([4, 8], &[(4, 1), (8, 4)][..], 0),
            ([4, 8], &[(2, 64), (2, 1), (2, 8), (4, 2)], 3),
            ([6, 4], &[(4, 6), (6, 1)], 1),
        ] {
            let layout = layout(shard, offset);
            let want: Vec<i128> = (0..shape[0])
                .flat_map(|x| (0..shape[1]).map(move |y| [x, y]))
                .map(|at| i128::from(layout.apply(&at, &shape).unwrap()["m"]))
                .collect();
            assert_eq!(addresses(&buffer(&shape, layout), shape), want);
        }
    }

    #[test]
    fn a_swizzle_permutes_the_elements_of_its_blocks() {
        let mut swizzled = TileLayout::row_major(&[8, 16]);
        swizzled.swizzle = Some(Swizzle { per_element: 1, swizzle_len: 3, atom_len: 3 });
        let mut found = addresses(&buffer(&[8, 16], swizzled.clone()), [8, 16]);
        assert_eq!((found[16], found[17], found[32]), (18, 19, 36));
        found.sort_unstable();
        assert_eq!(found, (0..128).collect::<Vec<i128>>());
        assert_eq!(physical_size(&swizzled), 128);
    }

    #[test]
    fn row_major_tiles_need_no_address() {
        let coords = [int(1), int(2)];
        assert_eq!(physical_index(&buffer(&[4, 8], TileLayout::row_major(&[4, 8])), &coords), Ok(None));
        assert_eq!(physical_index(&buffer(&[4, 8], TileLayout::row_major(&[32])), &coords), Ok(None));
    }
}
