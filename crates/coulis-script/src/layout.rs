//! Tile layouts: `TileLayout(S[(4, 8) : (8 @ laneid, 1)] + R[32 : 1 @ laneid] + 5 @ warpid)`.

use coulis_layout::{AxisStride, Iter, Swizzle, TileLayout, axis_names};

use crate::error::{ParseErrorKind, Parsed};
use crate::tree::{Sign, Term, TermKind};

const LEGAL: &str =
    "`TileLayout(S[extents : strides] + R[extents : strides] + offset @ axis)` or `ComposeLayout(...)`";

/// Reads a layout.
pub(crate) fn read(term: &Term) -> Parsed<TileLayout> {
    match term.call() {
        Some((path, [sum], [])) if matches!(path.as_str(), "TileLayout" | "T.TileLayout") => {
            let mut layout =
                TileLayout { shard: Vec::new(), replica: Vec::new(), offset: Vec::new(), swizzle: None };
            let mut has_shard = false;
            add(sum, &mut layout, &mut has_shard)?;
            if has_shard { Ok(layout) } else { Err(sum.unexpected("a sum that begins with `S[...]`")) }
        }
        Some((path, [per_element, swizzle_len, atom_len, inner], [])) if path == "ComposeLayout" => {
            let mut layout = read(inner)?;
            if layout.swizzle.is_some() {
                return Err(inner.unexpected("a layout without a swizzle"));
            }
            let exponent = |t: &Term| t.fitting("a power of two", "exponents of 32 bits without sign");
            layout.swizzle = Some(Swizzle {
                per_element: exponent(per_element)?,
                swizzle_len: exponent(swizzle_len)?,
                atom_len: exponent(atom_len)?,
            });
            Ok(layout)
        }
        _ => Err(term.unexpected(LEGAL)),
    }
}

fn add(term: &Term, layout: &mut TileLayout, has_shard: &mut bool) -> Parsed<()> {
    match &term.kind {
        TermKind::Binary(Sign::Add, a, b) => {
            add(a, layout, has_shard)?;
            add(b, layout, has_shard)
        }
        TermKind::Subscript(base, indices) => match base.dotted().as_deref() {
            Some("S" | "T.S") if !*has_shard => {
                *has_shard = true;
                layout.shard = iters(term, indices)?;
                Ok(())
            }
            Some("R" | "T.R") if layout.replica.is_empty() => {
                layout.replica = iters(term, indices)?;
                Ok(())
            }
            _ => Err(term.unexpected("one `S[...]` and at most one `R[...]`")),
        },
        _ => {
            layout.offset.push(stride(term)?);
            Ok(())
        }
    }
}

fn iters(term: &Term, indices: &[Term]) -> Parsed<Vec<Iter>> {
    let (extent_terms, stride_terms) = match indices {
        [Term { kind: TermKind::Slice(Some(extents), Some(strides), None), .. }] => {
            (extents.items(), Some(strides.items()))
        }
        [only] => (only.items(), None),
        more => (more, None),
    };
    let mut extents: Vec<i64> = Vec::new();
    let mut size: i64 = 1;
    for item in extent_terms {
        let legal = "extents of at least 1 with a product of 64 bits";
        let extent: i64 = item.fitting("an extent of a layout", legal)?;
        size = match size.checked_mul(extent) {
            Some(size) if extent >= 1 => size,
            _ => {
                let found = extent.to_string();
                let legal = legal.to_owned();
                return Err(item.fault(ParseErrorKind::Range {
                    what: "an extent of a layout",
                    found,
                    legal,
                }));
            }
        };
        extents.push(extent);
    }
    let Some(stride_terms) = stride_terms else {
        return Ok(TileLayout::row_major(&extents).shard);
    };
    if stride_terms.len() != extents.len() {
        let what = "strides of a layout".to_owned();
        let wanted = extents.len().to_string();
        return Err(term.fault(ParseErrorKind::Count { what, wanted, found: stride_terms.len() }));
    }
    let steps = stride_terms.iter().map(stride).collect::<Parsed<Vec<_>>>()?;
    Ok(extents.into_iter().zip(steps).map(|(extent, step)| Iter { extent, step }).collect())
}

/// `4`, `4 @ laneid` or `"laneid"`.
fn stride(term: &Term) -> Parsed<AxisStride> {
    let number = |t: &Term| t.fitting("a stride of a layout", "64-bit signed integers");
    match &term.kind {
        TermKind::Binary(Sign::At, count, axis) => {
            Ok(AxisStride { stride: number(count)?, axis: axis_of(axis, axis.name()?)? })
        }
        TermKind::Str(axis) => Ok(AxisStride { stride: 1, axis: axis_of(term, axis)? }),
        _ => Ok(AxisStride { stride: number(term)?, axis: "m".to_owned() }),
    }
}

/// The axis of that name, which has to exist: a name that nobody knows would be one more axis of threads.
fn axis_of(term: &Term, name: &str) -> Parsed<String> {
    if axis_names().any(|axis| axis == name) {
        return Ok(name.to_owned());
    }
    let legal = axis_names().collect::<Vec<_>>().join(", ");
    Err(term.fault(ParseErrorKind::Range { what: "an axis of a layout", found: name.to_owned(), legal }))
}
