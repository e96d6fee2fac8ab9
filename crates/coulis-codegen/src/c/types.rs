//! Types of values in emitted text.
//!
//! `float16`, `bfloat16` and the 8-bit floats live in memory only: their values are carried as `f32` that a helper
//! rounds to the narrow type after each operation, which is a single rounding since 24 bits are enough for that.
//! A vector of bools is a mask, as wide as what was compared: signed integers, 0 or -1, unless the dialect has
//! better. Text applies `&`, `|`, `^` and `~` to masks; anything else is a helper's work.

use coulis_ir::DType;

/// Type of one value, or of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CTy {
    /// A scalar truth value, 0 or 1.
    Bool,
    /// 8-bit signed.
    I8,
    /// 16-bit signed.
    I16,
    /// 32-bit signed.
    I32,
    /// 64-bit signed.
    I64,
    /// 8-bit unsigned.
    U8,
    /// 16-bit unsigned.
    U16,
    /// 32-bit unsigned.
    U32,
    /// 64-bit unsigned.
    U64,
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// A lane of a mask of 1-byte lanes.
    M8,
    /// Of 2-byte lanes.
    M16,
    /// Of 4-byte lanes.
    M32,
    /// Of 8-byte lanes.
    M64,
}

impl CTy {
    /// The type that carries values of `dtype`.
    pub const fn carrier(dtype: DType) -> CTy {
        match dtype {
            DType::Bool => CTy::Bool,
            DType::I8 => CTy::I8,
            DType::I16 => CTy::I16,
            DType::I32 => CTy::I32,
            DType::I64 => CTy::I64,
            DType::U8 => CTy::U8,
            DType::U16 => CTy::U16,
            DType::U32 => CTy::U32,
            DType::U64 => CTy::U64,
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => CTy::F32,
            DType::F64 => CTy::F64,
        }
    }

    /// The type in which `dtype` stands in memory.
    pub const fn memory(dtype: DType) -> CTy {
        match dtype {
            DType::Bool | DType::F8E4M3 | DType::F8E5M2 => CTy::U8,
            DType::F16 | DType::BF16 => CTy::U16,
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F32
            | DType::F64 => CTy::carrier(dtype),
        }
    }

    /// Bytes of one lane.
    pub const fn bytes(self) -> u32 {
        match self {
            CTy::Bool | CTy::I8 | CTy::U8 | CTy::M8 => 1,
            CTy::I16 | CTy::U16 | CTy::M16 => 2,
            CTy::I32 | CTy::U32 | CTy::F32 | CTy::M32 => 4,
            CTy::I64 | CTy::U64 | CTy::F64 | CTy::M64 => 8,
        }
    }

    /// The short name that every dialect defines: `f32`, `i64`, `b8`.
    pub const fn name(self) -> &'static str {
        match self {
            CTy::Bool => "b8",
            CTy::I8 => "i8",
            CTy::I16 => "i16",
            CTy::I32 => "i32",
            CTy::I64 => "i64",
            CTy::U8 => "u8",
            CTy::U16 => "u16",
            CTy::U32 => "u32",
            CTy::U64 => "u64",
            CTy::F32 => "f32",
            CTy::F64 => "f64",
            CTy::M8 => "m8",
            CTy::M16 => "m16",
            CTy::M32 => "m32",
            CTy::M64 => "m64",
        }
    }

    /// Whether it is `f32` or `f64`.
    pub const fn is_float(self) -> bool {
        matches!(self, CTy::F32 | CTy::F64)
    }

    /// Whether it is a lane of a mask.
    pub const fn is_mask(self) -> bool {
        matches!(self, CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64)
    }

    /// Whether it is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, CTy::I8 | CTy::I16 | CTy::I32 | CTy::I64)
    }

    /// Whether it is an integer of 64 bits.
    pub const fn is_long(self) -> bool {
        matches!(self, CTy::I64 | CTy::U64)
    }

    /// A lane of a mask, of that many bytes (1, 2, 4; else 8).
    pub const fn mask(bytes: u32) -> CTy {
        match bytes {
            1 => CTy::M8,
            2 => CTy::M16,
            4 => CTy::M32,
            _ => CTy::M64,
        }
    }

    /// The signed integer of that many bytes (1, 2, 4; else 8).
    pub const fn signed(bytes: u32) -> CTy {
        match bytes {
            1 => CTy::I8,
            2 => CTy::I16,
            4 => CTy::I32,
            _ => CTy::I64,
        }
    }

    /// The unsigned integer of that many bytes (1, 2, 4; else 8).
    pub const fn unsigned(bytes: u32) -> CTy {
        match bytes {
            1 => CTy::U8,
            2 => CTy::U16,
            4 => CTy::U32,
            _ => CTy::U64,
        }
    }
}

/// A scalar (`lanes` is 0) or a vector value of the text; `f32x1` is a vector of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VTy {
    /// Type of a lane.
    pub ty: CTy,
    /// Lanes, a power of two; 0 for a scalar.
    pub lanes: u32,
}

impl VTy {
    /// A scalar.
    pub const fn scalar(ty: CTy) -> VTy {
        VTy { ty, lanes: 0 }
    }

    /// A vector.
    pub const fn vector(ty: CTy, lanes: u32) -> VTy {
        VTy { ty, lanes }
    }

    /// Bytes of all lanes; 0 of a scalar.
    pub const fn bytes(self) -> u32 {
        self.ty.bytes() * self.lanes
    }

    /// The mask type of vectors of this shape.
    pub const fn mask(self) -> VTy {
        VTy { ty: CTy::mask(self.ty.bytes()), lanes: self.lanes }
    }

    /// Signed integers of this shape.
    pub const fn bits(self) -> VTy {
        VTy { ty: CTy::signed(self.ty.bytes()), lanes: self.lanes }
    }

    /// `f32` or `f32x16`.
    pub fn name(self) -> String {
        if self.lanes == 0 { self.ty.name().to_owned() } else { format!("{}x{}", self.ty.name(), self.lanes) }
    }
}

/// How many lanes each part of a vector has: as many full parts of `vector_bytes` as fit, then descending powers
/// of two. The parts of a narrower type are therefore unions of consecutive parts of a wider one.
pub fn part_lanes(lanes: u32, bytes: u32, vector_bytes: u32) -> Vec<u32> {
    let full = (vector_bytes / bytes).max(1);
    let mut parts = vec![full; (lanes / full) as usize];
    let mut rest = lanes % full;
    while rest > 0 {
        let part = 1 << rest.ilog2();
        parts.push(part);
        rest -= part;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_lanes_and_nest() {
        for lanes in 1..=200 {
            let starts = |bytes| {
                let mut at = 0;
                let mut starts = Vec::new();
                for part in part_lanes(lanes, bytes, 64) {
                    assert!(part.is_power_of_two() && part * bytes <= 64);
                    starts.push(at);
                    at += part;
                }
                assert_eq!(at, lanes);
                starts
            };
            let wide = starts(8);
            for bytes in [1, 2, 4] {
                assert!(
                    starts(bytes).iter().all(|start| wide.contains(start)),
                    "{lanes} lanes, {bytes} bytes"
                );
            }
        }
    }
}
