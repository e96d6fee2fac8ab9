//! Compiled expressions against the scalar evaluator: every operation on every type, as scalars and as vectors of
//! friendly and odd lengths.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use coulis_ir::eval::{Env, Value, eval_expr};
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, Var, math};
use coulis_runtime::Device;
use support::{Random, baseline, bits_of, decode, device, encode, run_elementwise};

/// How many random expressions a kernel has.
const N_EXPRS: usize = 12;
/// Elements of each input; a multiple of no vector length that is tested but 1.
const N: usize = 211;

fn random_leaf(random: &mut Random, inputs: &[Var], dtype: DType) -> Expr {
    let fitting: Vec<&Var> = inputs.iter().filter(|v| v.dtype() == dtype).collect();
    if fitting.is_empty() || random.below(4) == 0 {
        return match dtype {
            DType::Bool => Expr::bool(random.below(2) == 1),
            d if d.is_float() => Expr::float([0.0, -0.0, 1.0, -2.5, 1e-3, 77.0][random.below(6)], d),
            d => Expr::int_of([0, 1, -1, 3, 100, -7][random.below(6)], d),
        };
    }
    fitting[random.below(fitting.len())].expr()
}

/// The 8-bit floats are loaded, stored, selected and converted, no more.
fn stored_only(dtype: DType) -> bool {
    matches!(dtype, DType::F8E4M3 | DType::F8E5M2)
}

fn random_expr(random: &mut Random, inputs: &[Var], dtype: DType, depth: u32) -> Expr {
    if depth == 0 {
        return random_leaf(random, inputs, dtype);
    }
    let sub = |random: &mut Random, d| random_expr(random, inputs, d, depth - 1);
    let of_inputs = |random: &mut Random| inputs[random.below(inputs.len())].dtype();
    if random.below(6) == 0 {
        let cond = sub(random, DType::Bool);
        return Expr::select(cond, sub(random, dtype), sub(random, dtype));
    }
    if dtype == DType::Bool {
        return match random.below(5) {
            0 => sub(random, DType::Bool).logical_not(),
            1 => {
                let op = [BinaryOp::And, BinaryOp::Or, BinaryOp::Eq, BinaryOp::Ne][random.below(4)];
                Expr::binary(op, sub(random, DType::Bool), sub(random, DType::Bool))
            }
            2 => {
                let d = of_inputs(random);
                sub(random, d).cast(DType::Bool)
            }
            _ => {
                let op = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
                let d = of_inputs(random);
                if d == DType::Bool || stored_only(d) {
                    return sub(random, DType::Bool);
                }
                Expr::binary(op[random.below(6)], sub(random, d), sub(random, d))
            }
        };
    }
    if random.below(4) == 0 || stored_only(dtype) {
        let d = of_inputs(random);
        return sub(random, d).cast(dtype);
    }
    let shift = |random: &mut Random| {
        let width = 8 * dtype.bytes();
        let amount = match random.below(3) {
            0 => Expr::int_of(random.below(width) as i128, dtype),
            1 => Expr::int_of([width as i128, width as i128 + 9, -1][random.below(3)], dtype),
            _ => sub(random, dtype),
        };
        Expr::binary([BinaryOp::Shl, BinaryOp::Shr][random.below(2)], sub(random, dtype), amount)
    };
    if dtype.is_float() {
        let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
        let calls = [
            Intrinsic::Abs,
            Intrinsic::Sqrt,
            Intrinsic::Floor,
            Intrinsic::Ceil,
            Intrinsic::Round,
            Intrinsic::Trunc,
            Intrinsic::Nearbyint,
        ];
        return match random.below(10) {
            0 | 1 => Expr::call1(calls[random.below(calls.len())], sub(random, dtype)),
            2 => {
                let of_three = [Intrinsic::Fma, Intrinsic::Max3, Intrinsic::Min3][random.below(3)];
                Expr::call(of_three, vec![sub(random, dtype), sub(random, dtype), sub(random, dtype)])
            }
            3 => {
                let test = [Intrinsic::IsNan, Intrinsic::IsInf, Intrinsic::IsFinite][random.below(3)];
                let cond = Expr::call1(test, sub(random, dtype));
                Expr::select(cond, sub(random, dtype), sub(random, dtype))
            }
            _ => Expr::binary(ops[random.below(ops.len())], sub(random, dtype), sub(random, dtype)),
        };
    }
    match random.below(12) {
        0 | 11 => shift(random),
        1 => Expr::call1(Intrinsic::Abs, sub(random, dtype)),
        2 => Expr::call1(Intrinsic::Popcount, sub(random, dtype)),
        3 => {
            // A divisor that is not zero.
            let ops = [BinaryOp::Div, BinaryOp::TruncMod, BinaryOp::FloorDiv, BinaryOp::FloorMod];
            let value = sub(random, dtype);
            let divisor = match random.below(3) {
                0 => Expr::int_of([2, 8, 64, 7, -3][random.below(5)], dtype),
                _ => Expr::binary(BinaryOp::BitOr, sub(random, dtype), Expr::int_of(1, dtype)),
            };
            Expr::binary(ops[random.below(4)], value, divisor)
        }
        _ => {
            let ops = [
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::Min,
                BinaryOp::Max,
                BinaryOp::BitAnd,
                BinaryOp::BitOr,
                BinaryOp::BitXor,
            ];
            Expr::binary(ops[random.below(ops.len())], sub(random, dtype), sub(random, dtype))
        }
    }
}

/// Random expressions over inputs of these types, compiled and evaluated.
fn check(seed: u64, inputs: &[DType], lanes: &[u32]) {
    let mut random = Random::new(seed);
    let vars: Vec<Var> = inputs.iter().map(|d| Var::new(d.short_name(), *d)).collect();
    let exprs: Vec<Expr> = (0..N_EXPRS)
        .map(|n| random_expr(&mut random, &vars, inputs[n % inputs.len()], 1 + (n as u32 % 4)))
        .collect();
    let data: Vec<Vec<u8>> = inputs.iter().map(|d| random.array(*d, N)).collect();
    follow_the_evaluator(&format!("seed {seed}"), &vars, &exprs, &data, N, lanes);
}

/// The expressions of `n` elements, compiled and evaluated.
fn follow_the_evaluator(what: &str, vars: &[Var], exprs: &[Expr], data: &[Vec<u8>], n: usize, lanes: &[u32]) {
    follow_on(&[device()], what, vars, exprs, data, n, lanes);
}

fn follow_on(
    devices: &[Arc<dyn Device>],
    what: &str,
    vars: &[Var],
    exprs: &[Expr],
    data: &[Vec<u8>],
    n: usize,
    lanes: &[u32],
) {
    let mut wanted = Vec::new();
    for expr in exprs {
        let mut column = Vec::new();
        for i in 0..n {
            let mut env = Env::new();
            for (var, bytes) in vars.iter().zip(data) {
                env.set(var, decode(var.dtype(), bytes, i));
            }
            column.push(eval_expr(expr, &mut env).unwrap());
        }
        wanted.push(column);
    }
    for (device, &lanes) in devices.iter().flat_map(|device| lanes.iter().map(move |lanes| (device, lanes))) {
        let outputs = run_elementwise(device, vars, exprs, data, n, lanes);
        for (expr, (column, output)) in exprs.iter().zip(wanted.iter().zip(&outputs)) {
            for (i, want) in column.iter().enumerate() {
                let found = decode(expr.dtype(), output, i);
                let same = match (want, found) {
                    (Value::Float(a), Value::Float(b)) => {
                        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
                    }
                    (a, b) => *a == b,
                };
                let values: Vec<Value> =
                    vars.iter().zip(data).map(|(v, bytes)| decode(v.dtype(), bytes, i)).collect();
                assert!(same, "{what}, {lanes} lanes, {expr:?} of {values:?}: {found:?}, want {want:?}");
            }
        }
    }
}

#[test]
fn floats_follow_the_evaluator() {
    check(1, &[DType::F32, DType::F64, DType::I32], &[16, 5]);
    check(2, &[DType::F64, DType::I64, DType::F32, DType::U64], &[24]);
}

#[test]
fn wide_integers_follow_the_evaluator() {
    check(3, &[DType::I32, DType::I64, DType::F64], &[16, 7]);
    check(4, &[DType::U32, DType::U64, DType::F32], &[32]);
}

/// Integers that need all of 64 bits, or lie where a conversion by halves would round twice or carry, as `f64`; and expressions of
/// them of which it is known that they are short, to the last integer that is.
#[test]
fn integers_of_64_bits_are_rounded_once() {
    let mut numbers: Vec<u64> = vec![0, 1, u64::MAX];
    for bit in [1, 11, 12, 31, 32, 33, 50, 51, 52, 53, 54, 62, 63] {
        let power = 1u64 << bit;
        numbers.extend([power - 1, power, power + 1, power | power >> 53, power | 3 << (bit.max(53) - 53)]);
    }
    let mut random = Random::new(11);
    numbers.extend((0..60).map(|_| (random.below(usize::MAX) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    numbers.extend(numbers.clone().iter().map(|n| n.wrapping_neg()));
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    for dtype in [DType::I64, DType::U64] {
        let x = Var::new("x", dtype);
        let of = |op, amount: i128| Expr::binary(op, x.expr(), Expr::int_of(amount, dtype));
        let halves = [of(BinaryOp::Shr, 32), of(BinaryOp::BitAnd, 0xffff_ffff)];
        let mut exprs = vec![x.expr(), x.expr().cast(DType::U32)];
        exprs.extend([11, 12, 13].map(|amount| of(BinaryOp::Shr, amount)));
        exprs.extend([(1 << 51) - 1, 1 << 51, (1 << 52) - 1].map(|mask| of(BinaryOp::BitAnd, mask)));
        exprs.extend([halves[0].clone() - halves[1].clone(), halves[1].clone() - halves[0].clone()]);
        exprs.push(of(BinaryOp::BitAnd, 1 << 51) + of(BinaryOp::BitAnd, 1 << 50));
        let exprs: Vec<Expr> = exprs.into_iter().map(|e| e.cast(DType::F64)).collect();
        follow_the_evaluator(
            "as f64",
            &[x],
            &exprs,
            std::slice::from_ref(&bytes),
            numbers.len(),
            &[1, 4, 6, 16],
        );
    }
}

#[test]
fn narrow_integers_follow_the_evaluator() {
    check(5, &[DType::I8, DType::I16, DType::I64, DType::F32], &[1, 16]);
    check(6, &[DType::U8, DType::U16, DType::F64, DType::Bool], &[12]);
}

#[test]
fn masks_of_every_width_become_each_other() {
    check(9, &[DType::Bool, DType::F32, DType::F64], &[2, 6, 32]);
    check(10, &[DType::Bool, DType::I64, DType::I8, DType::U32], &[4, 16]);
}

#[test]
fn narrow_floats_round_once() {
    check(7, &[DType::F16, DType::F32, DType::I64], &[1, 16]);
    check(8, &[DType::BF16, DType::F64, DType::U64], &[8, 5]);
    check(9, &[DType::F8E4M3, DType::F8E5M2, DType::F32, DType::I32], &[2]);
}

/// Every number of 8 and 16 bits as `f32`; and as such numbers, `f32` of every exponent that are one of them, lie half way between two,
/// or next to that. With the machine's conversion of binary16 and without.
#[test]
fn all_bits_of_narrow_floats_follow_the_evaluator() {
    let devices = [device(), baseline()];
    let lanes = [1, 2, 4, 8, 16];
    let formats = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];
    for dtype in formats {
        let x = Var::new("x", dtype);
        let n = 1usize << (8 * dtype.bytes());
        let bytes: Vec<u8> =
            (0..n as u64).flat_map(|bits| bits.to_le_bytes()[..dtype.bytes()].to_vec()).collect();
        let exprs = [x.expr().cast(DType::F32), x.expr()];
        follow_on(&devices, "as f32", &[x], &exprs, &[bytes], n, &lanes);
    }
    let low = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let highs = (0..1 << 16).step_by(7).chain([0x7f80, 0xff80]);
    let numbers: Vec<f32> = highs
        .flat_map(|high: u32| low.map(|low| f32::from_bits(high << 16 | low)))
        // Ties of each format lie elsewhere.
        .chain((0..1 << 12).map(|i| f32::from_bits((i << 19) | 1 << 12)))
        .chain((0..1 << 16).step_by(3).map(|i| f32::from_bits((i << 16) | 0x1000)))
        .collect();
    let x = Var::new("x", DType::F32);
    let exprs = formats.map(|dtype| x.expr().cast(dtype));
    follow_on(&devices, "from f32", &[x], &exprs, &[encode(&numbers)], numbers.len(), &lanes);
}

#[test]
fn exp_and_log_have_the_bits_of_the_shared_algorithms() {
    let (x, y) = (Var::new("x", DType::F32), Var::new("y", DType::F64));
    let floor = math::EXP_FLOOR_F32;
    let capped = |v: &Var| Expr::float(math::EXP_CAP, v.dtype()).min(v.expr());
    let exprs = [
        Expr::call1(Intrinsic::Exp, x.expr()),
        Expr::call1(Intrinsic::Log, x.expr()),
        Expr::call1(Intrinsic::Exp, y.expr()),
        Expr::call1(Intrinsic::Log, y.expr()),
        // These are known not to reach the greatest powers.
        Expr::call1(Intrinsic::Exp, capped(&x)),
        Expr::call1(Intrinsic::Exp, capped(&y)),
        // And these neither the least.
        Expr::call1(Intrinsic::Exp, Expr::float(floor.into(), DType::F32).max(capped(&x))),
        Expr::call1(Intrinsic::Exp, Expr::float(math::EXP_FLOOR_F64, DType::F64).max(capped(&y))),
    ];
    let n = 40_000;
    let singles: Vec<f32> = (0..n)
        .map(|i| match i % 4 {
            0 => f32::from_bits((i as u32).wrapping_mul(107_374)),
            1 => i as f32 * 0.005 - 105.0,
            2 => 0.5 + i as f32 * 4e-5,
            _ => [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45][i % 32 / 4],
        })
        .collect();
    let doubles: Vec<f64> = (0..n)
        .map(|i| match i % 4 {
            0 => f64::from_bits((i as u64).wrapping_mul(461_168_601_842_739)),
            1 => i as f64 * 0.037 - 745.5,
            2 => 0.5 + i as f64 * 4e-5,
            _ => [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324][i % 32 / 4],
        })
        .collect();
    let data = vec![encode(&singles), encode(&doubles)];
    for lanes in [1, 16, 6] {
        let outputs = run_elementwise(&device(), &[x.clone(), y.clone()], &exprs, &data, n, lanes);
        for i in 0..n {
            let (a, b) = (singles[i], doubles[i]);
            let single = |f: f32| u64::from(if f.is_nan() { f32::NAN.to_bits() } else { f.to_bits() });
            let double = |f: f64| if f.is_nan() { f64::NAN.to_bits() } else { f.to_bits() };
            let found = |k: usize| {
                let bits = bits_of(&outputs[k], exprs[k].dtype(), i);
                if exprs[k].dtype() == DType::F32 {
                    single(f32::from_bits(bits as u32))
                } else {
                    double(f64::from_bits(bits))
                }
            };
            assert_eq!(found(0), single(math::exp_f32(a)), "{lanes} lanes, exp({a:e})");
            assert_eq!(found(1), single(math::log_f32(a)), "{lanes} lanes, log({a:e})");
            assert_eq!(found(2), double(math::exp_f64(b)), "{lanes} lanes, exp({b:e})");
            assert_eq!(found(3), double(math::log_f64(b)), "{lanes} lanes, log({b:e})");
            let cap = math::EXP_CAP;
            let (a, b) = (if a > cap as f32 { cap as f32 } else { a }, if b > cap { cap } else { b });
            assert_eq!(found(4), single(math::exp_f32(a)), "{lanes} lanes, exp(min(64, {a:e}))");
            assert_eq!(found(5), double(math::exp_f64(b)), "{lanes} lanes, exp(min(64, {b:e}))");
            let low = math::EXP_FLOOR_F64;
            let (a, b) = (if a < floor { floor } else { a }, if b < low { low } else { b });
            assert_eq!(
                found(6),
                single(math::exp_f32(a)),
                "{lanes} lanes, exp(max({floor}, min(64, {a:e})))"
            );
            assert_eq!(found(7), double(math::exp_f64(b)), "{lanes} lanes, exp(max({low}, min(64, {b:e})))");
        }
    }
}

#[test]
fn other_functions_are_within_a_few_units_of_the_evaluator() {
    let (x, y) = (Var::new("x", DType::F32), Var::new("y", DType::F64));
    let unary = [
        Intrinsic::Exp2,
        Intrinsic::Exp2Ftz,
        Intrinsic::Log2,
        Intrinsic::Rsqrt,
        Intrinsic::Tanh,
        Intrinsic::Sigmoid,
        Intrinsic::Erf,
        Intrinsic::Sin,
        Intrinsic::Cos,
    ];
    let mut exprs: Vec<Expr> = Vec::new();
    for var in [&x, &y] {
        exprs.extend(unary.map(|f| Expr::call1(f, var.expr())));
        let constant = Expr::float(1.75, var.dtype());
        exprs.push(Expr::call(Intrinsic::Pow, vec![var.expr(), constant.clone()]));
        exprs.push(Expr::call(Intrinsic::Fmod, vec![var.expr(), constant]));
    }
    let singles: Vec<f32> = (0..N).map(|i| i as f32 * 0.07 - 3.0).collect();
    let doubles: Vec<f64> = (0..N).map(|i| i as f64 * 0.07 - 3.0).collect();
    let data = vec![encode(&singles), encode(&doubles)];
    for lanes in [1, 16] {
        let outputs = run_elementwise(&device(), &[x.clone(), y.clone()], &exprs, &data, N, lanes);
        for (expr, output) in exprs.iter().zip(&outputs) {
            let eps =
                if expr.dtype() == DType::F32 { 4.0 * f64::from(f32::EPSILON) } else { 8.0 * f64::EPSILON };
            for i in 0..N {
                let mut env = Env::new();
                env.set(&x, Value::Float(f64::from(singles[i])));
                env.set(&y, Value::Float(doubles[i]));
                let want = eval_expr(expr, &mut env).unwrap().as_f64();
                let found = decode(expr.dtype(), output, i).as_f64();
                let close = (want - found).abs() <= eps * want.abs().max(f64::MIN_POSITIVE);
                assert!(
                    want == found || close || (want.is_nan() && found.is_nan()),
                    "{expr:?}: {found}, want {want}"
                );
            }
        }
    }
}

#[test]
fn strided_reversed_repeated_and_arbitrary_places_are_read_and_written() {
    use coulis_ir::{LoopKind, Stmt};
    let n = 64i64;
    for (dtype, lanes) in
        [(DType::F32, 4u32), (DType::I8, 16), (DType::F16, 11), (DType::Bool, 16), (DType::F64, 11)]
    {
        {
            let a = Buffer::new("A", dtype, vec![Expr::int(256)], coulis_ir::MemScope::Global);
            let o = Buffer::new("O", dtype, vec![Expr::int(256)], coulis_ir::MemScope::Global);
            let index = |v: i64| Expr::int_of(i128::from(v), DType::I64);
            let ramp = |base: i64, stride: i64| Expr::ramp(index(base), index(stride), lanes);
            let load = |at: Expr| Expr::load(a.clone(), vec![at]);
            type Place = (Expr, Box<dyn Fn(i64) -> i64>);
            let places: Vec<Place> = vec![
                (ramp(3, 1), Box::new(|l| 3 + l)),
                (ramp(1, 3), Box::new(|l| 1 + 3 * l)),
                (ramp(40, -1), Box::new(|l| 40 - l)),
                (index(7).broadcast_to(lanes), Box::new(|_| 7)),
                (
                    Expr::binary(BinaryOp::FloorMod, ramp(0, 5) * ramp(1, 1), index(n).broadcast_to(lanes)),
                    Box::new(move |l| (5 * l * (1 + l)).rem_euclid(n)),
                ),
            ];
            let mut stmts = Vec::new();
            for (k, (at, _)) in places.iter().enumerate() {
                stmts.push(Stmt::store(&o, [ramp(k as i64 * 16, 1)], load(at.clone())));
            }
            // Strided and reversed stores.
            stmts.push(Stmt::store(&o, [ramp(100, 2)], load(ramp(0, 1))));
            stmts.push(Stmt::store(&o, [ramp(199, -1)], load(ramp(0, 1))));
            let body = Stmt::for_(
                Var::new("once", DType::I64),
                index(0),
                index(2),
                LoopKind::Serial,
                Stmt::seq(stmts),
            );
            let mut random = Random::new(17);
            let input = random.array(dtype, 256);
            let output = support::run_kernel(
                &device(),
                &[a, o],
                body,
                vec![input.clone(), vec![0; 256 * dtype.bytes()]],
            )
            .remove(1);
            let same = |at: i64, from: i64| {
                let (x, y) = (decode(dtype, &output, at as usize), decode(dtype, &input, from as usize));
                assert!(x.same(y), "{dtype} {lanes} lanes: element {at} is {x:?}, want {y:?} from {from}");
            };
            for l in 0..i64::from(lanes) {
                for (k, (_, place)) in places.iter().enumerate() {
                    same(k as i64 * 16 + l, place(l));
                }
                same(100 + 2 * l, l);
                same(199 - l, l);
            }
        }
    }
}
