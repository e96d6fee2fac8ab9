//! Memory that several threads see: bytes, which elements exist, and what is remembered of each.

use crate::args::{Memory, SimArg, SimArray};
use crate::code::{RegionInfo, RegionKind};
use crate::error::SimError;
use crate::order::each;
use crate::shadow::Shadow;

/// What memory holds that nothing wrote. As a float it is NaN, as an integer the largest or -1.
const NOTHING: u8 = 0xff;

/// One region.
pub(crate) struct Region {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of an element.
    pub(crate) width: usize,
    /// Elements; where several blocks have one each, those of one block, and the blocks' follow one another.
    pub(crate) len: usize,
    pub(crate) before: i64,
    /// Elements that exist, one bit each; `None` where all do.
    pub(crate) exists: Option<Vec<u64>>,
    /// What is remembered of each element; `None` where the kernel only reads.
    pub(crate) shadow: Option<Shadow>,
    /// Whether it held values at the start.
    pub(crate) is_initialised: bool,
    pub(crate) is_shared: bool,
}

impl Region {
    /// The element at an index, if there is one.
    #[inline(always)]
    pub(crate) fn element(&self, index: i64) -> Option<usize> {
        let at = index.wrapping_add(self.before) as u64;
        if at >= self.len as u64 {
            return None;
        }
        let at = at as usize;
        match &self.exists {
            Some(bits) if bits[at / 64] >> (at % 64) & 1 == 0 => None,
            _ => Some(at),
        }
    }

    /// Where the elements of the block of that number in its cluster begin.
    #[inline(always)]
    pub(crate) fn first_of(&self, block: usize) -> usize {
        if self.is_shared { block * self.len } else { 0 }
    }

    /// The bytes of an element as a number.
    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> u64 {
        let bytes = &self.bytes[at * self.width..][..self.width];
        match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// The bytes of the elements of some lanes as numbers.
    #[inline(always)]
    pub(crate) fn gather<const W: usize>(&self, lanes: u64, places: &[usize; W], to: &mut [u64; W]) {
        match self.width {
            4 => {
                let (words, _) = self.bytes.as_chunks::<4>();
                for lane in each(lanes) {
                    to[lane as usize] = u64::from(u32::from_le_bytes(words[places[lane as usize]]));
                }
            }
            _ => each(lanes).for_each(|lane| to[lane as usize] = self.get(places[lane as usize])),
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, bits: u64) {
        let width = self.width;
        self.bytes[at * width..][..width].copy_from_slice(&bits.to_le_bytes()[..width]);
    }
}

/// All regions at the start of a run.
pub(crate) fn regions(infos: &[RegionInfo], args: &[SimArg<'_>]) -> Result<Vec<Region>, SimError> {
    infos.iter().enumerate().map(|(n, info)| region(n as u32, info, args)).collect()
}

fn region(n: u32, info: &RegionInfo, args: &[SimArg<'_>]) -> Result<Region, SimError> {
    let width = info.dtype.bytes();
    let size = || SimError::Size { buffer: info.name.clone(), elements: info.len as i128 };
    let n_elements = info.len.checked_mul(info.copies).ok_or_else(size)?;
    let total = n_elements.checked_mul(width).ok_or_else(size)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(total).map_err(|_| size())?;
    bytes.resize(total, NOTHING);
    let mut exists = None;
    let is_initialised = match &info.kind {
        RegionKind::Argument { n, shape, strides } => {
            let Some(SimArg::Array(array)) = args.get(*n) else {
                return Err(SimError::Undeclared { name: info.name.clone() });
            };
            let first = first_byte(info, array)?;
            if info.is_written && matches!(array.memory, Memory::Read(_)) {
                return Err(SimError::ReadOnly { name: info.name.clone() });
            }
            array.memory.copy_to(first, &mut bytes);
            exists = holes(info, shape, strides);
            array.initialised
        }
        RegionKind::Temporary { zeroed, .. } => {
            if *zeroed {
                bytes.fill(0);
            }
            *zeroed
        }
        RegionKind::Shared { .. } => false,
    };
    let shadow = info.is_written.then(|| Shadow::new(n, info.is_shared(), n_elements, is_initialised));
    let (len, before, is_shared) = (info.len, info.before, info.is_shared());
    Ok(Region { bytes, width, len, before, exists, shadow, is_initialised, is_shared })
}

/// Where in its memory the first element of an argument lies that has the lowest address.
fn first_byte(info: &RegionInfo, array: &SimArray<'_>) -> Result<usize, SimError> {
    let width = info.dtype.bytes() as i128;
    let first = array.offset as i128 - i128::from(info.before) * width;
    let last = first + info.len as i128 * width;
    let (_, held) = array.memory.span();
    if info.len > 0 && (first < 0 || last > held as i128) {
        return Err(SimError::Memory { name: info.name.clone(), held, first, last });
    }
    Ok(if info.len == 0 { 0 } else { first as usize })
}

/// One bit an element that exists, where strides leave gaps.
fn holes(info: &RegionInfo, shape: &[i64], strides: &[i64]) -> Option<Vec<u64>> {
    let n: i128 = shape.iter().map(|n| i128::from(*n)).product();
    if info.len == 0 || n == info.len as i128 {
        // As many elements as places: with strides that reach exactly that far, none is left out unless some coincide,
        // which then leave others out.
        let mut axes: Vec<(i64, i64)> =
            shape.iter().zip(strides).filter(|(n, _)| **n > 1).map(|(n, s)| (s.abs(), *n)).collect();
        axes.sort_unstable();
        let mut next = 1;
        if axes.iter().all(|(stride, extent)| std::mem::replace(&mut next, stride * extent) == *stride) {
            return None;
        }
    }
    let mut bits = vec![0u64; info.len.div_ceil(64)];
    for_each_element(shape, strides, info.before, &mut |at| bits[at / 64] |= 1 << (at % 64));
    Some(bits)
}

/// Calls `f` with the place of each element.
fn for_each_element(shape: &[i64], strides: &[i64], at: i64, f: &mut impl FnMut(usize)) {
    match (shape, strides) {
        ([], _) | (_, []) => f(at as usize),
        ([extent, shape @ ..], [stride, strides @ ..]) => {
            // A stride of 0 leads to the same elements again.
            let extent = if *stride == 0 { (*extent).min(1) } else { *extent };
            for i in 0..extent {
                for_each_element(shape, strides, at + i * stride, f);
            }
        }
    }
}

/// Writes back the elements that threads wrote.
pub(crate) fn write_back(
    infos: &[RegionInfo],
    regions: &[Region],
    args: &mut [SimArg<'_>],
) -> Result<(), SimError> {
    for (info, region) in infos.iter().zip(regions) {
        let (RegionKind::Argument { n, .. }, Some(shadow)) = (&info.kind, &region.shadow) else { continue };
        let Some(SimArg::Array(array)) = args.get(*n) else { continue };
        let Memory::Write(cells) = array.memory else { continue };
        let first = first_byte(info, array)?;
        for at in (0..region.len).filter(|at| shadow.writer(*at).is_some()) {
            let bytes = &region.bytes[at * region.width..][..region.width];
            for (cell, byte) in cells[first + at * region.width..].iter().zip(bytes) {
                cell.set(*byte);
            }
        }
    }
    Ok(())
}

/// Pairs of arguments of which the first is written and which share bytes of elements.
pub(crate) fn overlaps(infos: &[RegionInfo], regions: &[Region], args: &[SimArg<'_>]) -> Vec<(usize, usize)> {
    let place = |at: usize| match &infos[at].kind {
        RegionKind::Argument { n, .. } => match args.get(*n) {
            Some(SimArg::Array(array)) => {
                first_byte(&infos[at], array).ok().map(|first| array.memory.span().0 + first)
            }
            _ => None,
        },
        RegionKind::Temporary { .. } | RegionKind::Shared { .. } => None,
    };
    let mut found = Vec::new();
    for a in 0..infos.len() {
        for b in 0..infos.len() {
            let counts = infos[a].is_written && (a < b || (a != b && !infos[b].is_written));
            if let (true, Some(p), Some(q)) = (counts, place(a), place(b))
                && share_bytes((p, &regions[a]), (q, &regions[b]))
            {
                found.push((a, b));
            }
        }
    }
    found
}

fn share_bytes((p, a): (usize, &Region), (q, b): (usize, &Region)) -> bool {
    let (from, to) = (p.max(q), (p + a.bytes.len()).min(q + b.bytes.len()));
    let exists = |start: usize, region: &Region, byte: usize| {
        region.element(((byte - start) / region.width) as i64 - region.before).is_some()
    };
    if a.exists.is_none() && b.exists.is_none() {
        return from < to;
    }
    (from..to).any(|byte| exists(p, a, byte) && exists(q, b, byte))
}
