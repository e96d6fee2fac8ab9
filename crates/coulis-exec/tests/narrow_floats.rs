//! The float types of 8 and 16 bits, bit by bit: loads, stores and conversions of vectors of all lengths, at every level.

mod common;

use common::{Memory, array, int, iota, kernel, levels, run_at};
use coulis_ir::float8::{e4m3_to_f32, e5m2_to_f32, f64_to_e4m3, f64_to_e5m2};
use coulis_ir::{Buffer, DType, Expr, Stmt, Var};

const NARROW: [DType; 4] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];

/// Vectors that fit registers, those that do not, and those that are no power of two.
const LANES: [usize; 12] = [1, 2, 3, 4, 7, 8, 13, 16, 17, 31, 32, 64];

/// A quiet NaN of the same sign and payload: reading may quiet one.
fn quiet(bits: u32) -> u32 {
    if f32::from_bits(bits).is_nan() { bits | 0x40_0000 } else { bits }
}

fn decoded(code: u16, dtype: DType) -> u32 {
    match dtype {
        // The reference has one NaN.
        DType::F8E4M3 if code & 0x7f == 0x7f => 0x7fc0_0000 | (u32::from(code) >> 7 << 31),
        DType::F8E4M3 => e4m3_to_f32(code as u8).to_bits(),
        DType::F8E5M2 if code & 0x7f > 0x7c => half::f16::from_bits(code << 8).to_f32().to_bits(),
        DType::F8E5M2 => e5m2_to_f32(code as u8).to_bits(),
        DType::F16 => half::f16::from_bits(code).to_f32().to_bits(),
        _ => u32::from(code) << 16,
    }
}

fn encoded(bits: u32, dtype: DType) -> u16 {
    let value = f32::from_bits(bits);
    let wide = f64::from(value);
    match dtype {
        DType::F8E4M3 => f64_to_e4m3(wide).into(),
        DType::F8E5M2 => f64_to_e5m2(wide).into(),
        DType::F16 if value.is_nan() => (bits >> 16 & 0x8000) as u16 | 0x7e00,
        DType::F16 => half::f16::from_f32(value).to_bits(),
        _ if value.is_nan() => (bits >> 16) as u16 | 0x40,
        _ => half::bf16::from_f32(value).to_bits(),
    }
}

fn codes(dtype: DType) -> Vec<u16> {
    if dtype.bytes() == 1 { (0..256).collect() } else { (0..=u16::MAX).collect() }
}

fn memory_of(dtype: DType, codes: &[u16]) -> Memory {
    let bytes: Vec<u8> = codes.iter().flat_map(|c| c.to_ne_bytes()[..dtype.bytes()].to_vec()).collect();
    Memory::of_bytes(dtype, bytes)
}

fn memory_of_f32(bits: &[u32]) -> Memory {
    Memory::of_bytes(DType::F32, bits.iter().flat_map(|b| b.to_ne_bytes()).collect())
}

fn f32_bits(memory: &Memory) -> Vec<u32> {
    memory.bytes().chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn codes_in(memory: &Memory) -> Vec<u16> {
    let code = |b: &[u8]| b.iter().rev().fold(0, |code, byte| code << 8 | u16::from(*byte));
    memory.bytes().chunks_exact(memory.dtype.bytes()).map(code).collect()
}

/// Every full vector of `n` elements: the index of its first one, and the number of vectors.
fn vectors(n: usize, lanes: usize, body: impl Fn(Expr) -> Stmt) -> Stmt {
    let i = Var::size("i", DType::I64);
    let first = i.expr() * int(lanes as i64);
    Stmt::range(i, int((n / lanes) as i64), body(first))
}

fn lanes_at(first: Expr, stride: i64, lanes: usize) -> Expr {
    if lanes == 1 { first } else { Expr::ramp(first, int(stride), lanes as u32) }
}

/// Runs the vectors of one statement from an array to another one at every level.
#[track_caller]
fn run(
    from: &Memory,
    into: &Memory,
    lanes: usize,
    make: &dyn Fn(&Buffer, &Buffer, Expr) -> Stmt,
) -> Vec<Memory> {
    let (n, n_out) = (from.n(), into.n());
    let (a, o) = (array("A", from.dtype, n), array("O", into.dtype, n_out));
    let body = vectors(n_out.min(n), lanes, |first| make(&a, &o, first));
    let kernel = kernel(&[a.clone(), o.clone()], body);
    let at_level = |level| {
        let mut arrays = [from.clone(), into.clone()];
        run_at(&kernel, &mut arrays, level, 1).unwrap_or_else(|e| panic!("{e}"));
        let [_, out] = arrays;
        out
    };
    levels().map(at_level).collect()
}

#[test]
fn every_code_is_read_at_every_length_and_stride() {
    for dtype in NARROW {
        let all = codes(dtype);
        let n = all.len();
        let given = memory_of(dtype, &all);
        for lanes in LANES.into_iter().filter(|lanes| dtype.bytes() == 1 || *lanes >= 16) {
            for stride in [1i64, 2, -1] {
                let n_out = if stride == 2 { n / 2 } else { n };
                // Where the element is that belongs to an element of the result.
                let place = |at: Expr| match stride {
                    -1 => int(n as i64 - 1) - at,
                    _ => at * int(stride),
                };
                let make = |a: &Buffer, o: &Buffer, first: Expr| {
                    let value = a.at(vec![lanes_at(place(first.clone()), stride, lanes)]);
                    Stmt::store(o, vec![lanes_at(first, 1, lanes)], value.cast(DType::F32))
                };
                for out in run(&given, &memory_of_f32(&vec![0; n_out]), lanes, &make) {
                    let got = f32_bits(&out);
                    for at in 0..n_out / lanes * lanes {
                        let from = if stride == -1 { n - 1 - at } else { at * stride as usize };
                        let want = decoded(all[from], dtype);
                        let got = got[at];
                        assert!(
                            quiet(got) == quiet(want),
                            "{dtype} {:#x}, {lanes} lanes, stride {stride}: {got:#x}, not {want:#x}",
                            all[from]
                        );
                    }
                }
            }
        }
    }
}

/// All upper halves of `f32` with what lies at and beside the ties of a type: in the upper half alone for 8 bits, below it for
/// 16. Subnormals, infinities and NaN are among them.
fn dense(dtype: DType) -> Vec<u32> {
    let lower: &[u32] = match dtype {
        DType::F8E4M3 | DType::F8E5M2 => &[0, 1, 0xffff],
        DType::F16 => &[0, 0x0fff, 0x1000, 0x1001],
        _ => &[0, 0x7fff, 0x8000, 0x8001],
    };
    (0..=u32::from(u16::MAX)).flat_map(|upper| lower.iter().map(move |lower| upper << 16 | lower)).collect()
}

#[test]
fn every_rounding_is_stored_as_one_element_is() {
    for dtype in NARROW {
        let values = dense(dtype);
        let given = memory_of_f32(&values);
        let want: Vec<u16> = values.iter().map(|bits| encoded(*bits, dtype)).collect();
        for lanes in [1, 16] {
            let make = |a: &Buffer, o: &Buffer, first: Expr| {
                let at = lanes_at(first, 1, lanes);
                Stmt::store(o, vec![at.clone()], a.at(vec![at]).cast(dtype))
            };
            for out in run(&given, &memory_of(dtype, &vec![0; values.len()]), lanes, &make) {
                for ((bits, got), want) in values.iter().zip(codes_in(&out)).zip(&want) {
                    assert_eq!(got, *want, "{dtype}, {lanes} lanes: {bits:#x}");
                }
            }
        }
    }
}

#[test]
fn vectors_of_every_length_are_stored_at_every_stride() {
    for dtype in NARROW {
        let values: Vec<u32> = dense(dtype).into_iter().step_by(509).collect();
        let n = values.len();
        let given = memory_of_f32(&values);
        for lanes in LANES {
            for stride in [1i64, 2, -1] {
                let n_out = if stride == 2 { 2 * n } else { n };
                let make = |a: &Buffer, o: &Buffer, first: Expr| {
                    let into = match stride {
                        -1 => int(n as i64 - 1) - first.clone(),
                        _ => first.clone() * int(stride),
                    };
                    let value = a.at(vec![lanes_at(first, 1, lanes)]).cast(dtype);
                    Stmt::store(o, vec![lanes_at(into, stride, lanes)], value)
                };
                for out in run(&given, &memory_of(dtype, &vec![0; n_out]), lanes, &make) {
                    let got = codes_in(&out);
                    let mut want = vec![0; n_out];
                    for (at, value) in values.iter().enumerate().take(n / lanes * lanes) {
                        let into = if stride == -1 { n - 1 - at } else { at * stride as usize };
                        want[into] = encoded(*value, dtype);
                    }
                    assert_eq!(got, want, "{dtype}, {lanes} lanes, stride {stride}");
                }
            }
        }
    }
}

#[test]
fn a_conversion_and_back_is_a_store_and_a_load() {
    for dtype in NARROW {
        let values = dense(dtype);
        let given = memory_of_f32(&values);
        let want: Vec<u32> = values.iter().map(|bits| decoded(encoded(*bits, dtype), dtype)).collect();
        for lanes in [13, 16] {
            let make = |a: &Buffer, o: &Buffer, first: Expr| {
                let at = iota(first, lanes);
                Stmt::store(o, vec![at.clone()], a.at(vec![at]).cast(dtype).cast(DType::F32))
            };
            for out in run(&given, &memory_of_f32(&vec![0; values.len()]), lanes, &make) {
                let whole = values.len() / lanes * lanes;
                for ((bits, got), want) in values.iter().zip(f32_bits(&out)).zip(&want).take(whole) {
                    assert_eq!(quiet(got), quiet(*want), "{dtype}, {lanes} lanes: {bits:#x}");
                }
            }
        }
    }
}
