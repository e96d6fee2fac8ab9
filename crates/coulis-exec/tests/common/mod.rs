//! A naive model of the lanes, and a way to run one expression over arrays.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by several test files, of which none uses all of it"
)]

use coulis_exec::{ExecError, Level, Pool, Program};
use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args};
use coulis_ir::kernel::{Kernel, Param};
use coulis_ir::math::{erf_f64, exp_f32, exp_f64, log_f32, log_f64, sigmoid_f32, sigmoid_f64};
use coulis_ir::{
    BinaryOp, Buffer, DType, Expr, Form, Intrinsic, LoopKind, MemScope, Node, Stmt, Var, verify,
};

/// One lane: an integer or bool, or a float with the value it has in its type.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    I(i128),
    F(f64),
}

impl Lane {
    pub fn int(self) -> i128 {
        match self {
            Lane::I(v) => v,
            Lane::F(v) => panic!("{v} is a float"),
        }
    }

    pub fn float(self) -> f64 {
        match self {
            Lane::F(v) => v,
            Lane::I(v) => panic!("{v} is an integer"),
        }
    }

    /// Equal bits, all NaNs being one.
    pub fn same(self, other: Lane) -> bool {
        match (self, other) {
            (Lane::I(a), Lane::I(b)) => a == b,
            (Lane::F(a), Lane::F(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => false,
        }
    }

    pub fn to_bytes(self, dtype: DType) -> Vec<u8> {
        use coulis_ir::float8::{f64_to_e4m3, f64_to_e5m2};
        match (dtype, self) {
            (DType::F8E4M3, Lane::F(v)) => vec![f64_to_e4m3(v)],
            (DType::F8E5M2, Lane::F(v)) => vec![f64_to_e5m2(v)],
            (DType::F16, Lane::F(v)) => half::f16::from_f32(v as f32).to_ne_bytes().to_vec(),
            (DType::BF16, Lane::F(v)) => half::bf16::from_f32(v as f32).to_ne_bytes().to_vec(),
            (DType::F32, Lane::F(v)) => (v as f32).to_ne_bytes().to_vec(),
            (_, Lane::F(v)) => v.to_ne_bytes().to_vec(),
            (_, Lane::I(v)) => match dtype.bytes() {
                1 => vec![v as u8],
                2 => (v as u16).to_ne_bytes().to_vec(),
                4 => (v as u32).to_ne_bytes().to_vec(),
                _ => (v as u64).to_ne_bytes().to_vec(),
            },
        }
    }

    pub fn from_bytes(bytes: &[u8], dtype: DType) -> Lane {
        use coulis_ir::float8::{e4m3_to_f32, e5m2_to_f32};
        let mut wide = [0u8; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match dtype {
            DType::F8E4M3 => Lane::F(e4m3_to_f32(bits as u8).into()),
            DType::F8E5M2 => Lane::F(e5m2_to_f32(bits as u8).into()),
            DType::F16 => Lane::F(half::f16::from_bits(bits as u16).to_f64()),
            DType::BF16 => Lane::F(half::bf16::from_bits(bits as u16).to_f64()),
            DType::F32 => Lane::F(f32::from_bits(bits as u32).into()),
            DType::F64 => Lane::F(f64::from_bits(bits)),
            _ => Lane::I(dtype.wrap_int(i128::from(bits))),
        }
    }
}

/// The value of a scalar expression. `load(buffer name, index)` gives the elements.
pub fn model(expr: &Expr, vars: &dyn Fn(&Var) -> Lane, load: &dyn Fn(&str, i128) -> Lane) -> Lane {
    let eval = |e: &Expr| model(e, vars, load);
    let dtype = expr.dtype();
    match expr.node() {
        Node::Int(v) => Lane::I(*v),
        Node::Float(bits) => Lane::F(f64::from_bits(*bits)),
        Node::Var(var) => vars(var),
        Node::Binary(op, a, b) => binary(*op, a.dtype(), eval(a), eval(b)),
        Node::Not(a) => Lane::I(1 - eval(a).int()),
        Node::Cast(a) => convert(eval(a), dtype),
        Node::Select(c, a, b) | Node::IfThenElse(c, a, b) => eval(if eval(c).int() != 0 { a } else { b }),
        Node::Call(f, args) => {
            let args: Vec<Lane> = args.iter().map(eval).collect();
            call(*f, expr.dtype(), &args)
        }
        Node::Load(buffer, index) => load(&buffer.name, eval(&index[0]).int()),
        Node::Let(..) | Node::Ramp(..) | Node::Broadcast(_) => panic!("the model has scalars only"),
    }
}

fn binary(op: BinaryOp, dtype: DType, a: Lane, b: Lane) -> Lane {
    let truth = |t: bool| Lane::I(i128::from(t));
    if let (Lane::F(x), Lane::F(y)) = (a, b) {
        let round = |v: f64| Lane::F(dtype.round_float(v));
        return match op {
            BinaryOp::Add => round(x + y),
            BinaryOp::Sub => round(x - y),
            BinaryOp::Mul => round(x * y),
            BinaryOp::Div => round(x / y),
            BinaryOp::Min => {
                if x < y {
                    a
                } else {
                    b
                }
            }
            BinaryOp::Max => {
                if x > y {
                    a
                } else {
                    b
                }
            }
            BinaryOp::Eq => truth(x == y),
            BinaryOp::Ne => truth(x != y),
            BinaryOp::Lt => truth(x < y),
            BinaryOp::Le => truth(x <= y),
            BinaryOp::Gt => truth(x > y),
            BinaryOp::Ge => truth(x >= y),
            _ => panic!("{op:?} on floats"),
        };
    }
    let (x, y) = (a.int(), b.int());
    let wrap = |v: i128| Lane::I(dtype.wrap_int(v));
    match op {
        BinaryOp::Add => wrap(x + y),
        BinaryOp::Sub => wrap(x - y),
        BinaryOp::Mul => wrap(x.wrapping_mul(y)),
        BinaryOp::Div => wrap(x / y),
        BinaryOp::TruncMod => wrap(x % y),
        BinaryOp::FloorDiv => {
            wrap((x - x.rem_euclid(y.abs()) - if y < 0 && x.rem_euclid(-y) != 0 { y } else { 0 }) / y)
        }
        BinaryOp::FloorMod => {
            let r = x.rem_euclid(y.abs());
            wrap(if y < 0 && r != 0 { r + y } else { r })
        }
        BinaryOp::Min => Lane::I(x.min(y)),
        BinaryOp::Max => Lane::I(x.max(y)),
        BinaryOp::Eq => truth(x == y),
        BinaryOp::Ne => truth(x != y),
        BinaryOp::Lt => truth(x < y),
        BinaryOp::Le => truth(x <= y),
        BinaryOp::Gt => truth(x > y),
        BinaryOp::Ge => truth(x >= y),
        BinaryOp::And | BinaryOp::BitAnd => wrap(x & y),
        BinaryOp::Or | BinaryOp::BitOr => wrap(x | y),
        BinaryOp::BitXor => wrap(x ^ y),
        BinaryOp::Shl | BinaryOp::Shr if !(0..8 * dtype.bytes() as i128).contains(&y) => {
            Lane::I(if op == BinaryOp::Shr && x < 0 { -1 } else { 0 })
        }
        BinaryOp::Shl => wrap(x << y),
        BinaryOp::Shr => wrap(x >> y),
    }
}

fn convert(value: Lane, to: DType) -> Lane {
    match (value, to.int_range()) {
        (Lane::I(v), Some(_)) => Lane::I(to.wrap_int(v)),
        (Lane::F(v), Some(_)) if to == DType::Bool => Lane::I(i128::from(v != 0.0)),
        (Lane::F(v), Some((lo, hi))) => Lane::I((v as i128).clamp(lo, hi)),
        (Lane::I(v), None) if to == DType::F32 => Lane::F((v as f32).into()),
        (Lane::I(v), None) if to == DType::F64 => Lane::F(v as f64),
        (Lane::I(v), None) => Lane::F(to.round_float(coulis_ir::math::i128_to_f64_odd(v))),
        (Lane::F(v), None) => Lane::F(to.round_float(v)),
    }
}

fn call(f: Intrinsic, dtype: DType, args: &[Lane]) -> Lane {
    let truth = |t: bool| Lane::I(i128::from(t));
    if let Lane::I(x) = args[0] {
        return match f {
            Intrinsic::Abs => Lane::I(dtype.wrap_int(x.abs())),
            Intrinsic::Popcount => {
                Lane::I((x as u128 & (u128::MAX >> (128 - 8 * dtype.bytes()))).count_ones().into())
            }
            Intrinsic::Likely => args[0],
            _ => panic!("{f:?} on integers"),
        };
    }
    let x = args[0].float();
    let y = args.get(1).map_or(0.0, |a| a.float());
    let z = args.get(2).map_or(0.0, |a| a.float());
    let narrow = dtype != DType::F64;
    let pick = |wide: fn(f64) -> f64, single: fn(f32) -> f32| {
        if narrow { f64::from(single(x as f32)) } else { wide(x) }
    };
    let by_double = |wide: fn(f64) -> f64| {
        if narrow { f64::from(wide(f64::from(x as f32)) as f32) } else { wide(x) }
    };
    let has_exponents = matches!(dtype, DType::F32 | DType::BF16);
    let flushed = |v: f64| match has_exponents && (v as f32).is_subnormal() {
        true => 0f64.copysign(v),
        false => v,
    };
    let value = match f {
        Intrinsic::Exp => pick(exp_f64, exp_f32),
        Intrinsic::Exp2 => by_double(f64::exp2),
        Intrinsic::Exp2Ftz => flushed(by_double(f64::exp2)),
        Intrinsic::Log => pick(log_f64, log_f32),
        Intrinsic::Log2 => by_double(f64::log2),
        Intrinsic::Sqrt => pick(f64::sqrt, f32::sqrt),
        Intrinsic::Rsqrt => pick(|x| 1.0 / x.sqrt(), |x| 1.0 / x.sqrt()),
        Intrinsic::Tanh => by_double(coulis_ir::math::tanh_f64),
        Intrinsic::Sigmoid => pick(sigmoid_f64, sigmoid_f32),
        Intrinsic::Erf => by_double(erf_f64),
        Intrinsic::Sin => by_double(f64::sin),
        Intrinsic::Cos => by_double(f64::cos),
        Intrinsic::Pow if narrow => f64::from(f64::from(x as f32).powf(f64::from(y as f32)) as f32),
        Intrinsic::Pow => x.powf(y),
        Intrinsic::Fmod => x % y,
        Intrinsic::AddFtz => flushed(flushed(x) + flushed(y)),
        Intrinsic::Fma if dtype == DType::F32 => (x as f32).mul_add(y as f32, z as f32).into(),
        Intrinsic::Fma => x.mul_add(y, z),
        Intrinsic::Max3 | Intrinsic::Min3 if x.is_nan() || y.is_nan() || z.is_nan() => f64::NAN,
        // `total_cmp` orders zeros by their signs.
        Intrinsic::Max3 => [x, y, z].into_iter().max_by(f64::total_cmp).unwrap(),
        Intrinsic::Min3 => [x, y, z].into_iter().min_by(f64::total_cmp).unwrap(),
        Intrinsic::Abs => x.abs(),
        Intrinsic::Floor => x.floor(),
        Intrinsic::Ceil => x.ceil(),
        Intrinsic::Round => x.round(),
        Intrinsic::Trunc => x.trunc(),
        Intrinsic::Nearbyint => x.round_ties_even(),
        Intrinsic::IsNan => return truth(x.is_nan()),
        Intrinsic::IsInf => return truth(x.is_infinite()),
        Intrinsic::IsFinite => return truth(x.is_finite()),
        Intrinsic::Popcount | Intrinsic::Likely => panic!("{f:?} on floats"),
    };
    Lane::F(dtype.round_float(value))
}

/// A global buffer of `n` elements.
pub fn array(name: &str, dtype: DType, n: usize) -> Buffer {
    Buffer::new(name, dtype, vec![int(n as i64)], MemScope::Global)
}

pub fn int(value: i64) -> Expr {
    Expr::int_of(value.into(), DType::I64)
}

pub fn iota(base: Expr, lanes: usize) -> Expr {
    Expr::ramp(base, int(1), lanes as u32)
}

pub fn kernel(buffers: &[Buffer], body: Stmt) -> Kernel {
    let param = |buffer: &Buffer| Param::Buffer { handle: Var::handle(&buffer.name), buffer: buffer.clone() };
    Kernel {
        name: "test".to_owned(),
        params: buffers.iter().map(param).collect(),
        attrs: Default::default(),
        form: Form::Flat,
        body,
    }
}

/// Memory of lanes, aligned to 8.
#[derive(Clone)]
pub struct Memory {
    pub dtype: DType,
    words: Vec<u64>,
    n: usize,
}

impl Memory {
    pub fn new(dtype: DType, lanes: &[Lane]) -> Memory {
        Memory::of_bytes(dtype, lanes.iter().flat_map(|l| l.to_bytes(dtype)).collect())
    }

    pub fn of_bytes(dtype: DType, bytes: Vec<u8>) -> Memory {
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        };
        Memory { dtype, words: bytes.chunks(8).map(word).collect(), n: bytes.len() / dtype.bytes() }
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        bytes.truncate(self.n * self.dtype.bytes());
        bytes
    }

    pub fn lanes(&self) -> Vec<Lane> {
        let bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let size = self.dtype.bytes();
        (0..self.n).map(|i| Lane::from_bytes(&bytes[i * size..(i + 1) * size], self.dtype)).collect()
    }
}

/// Runs a kernel of one-dimensional arrays at a level, as the machine would and in the interpreter, which must agree in
/// every element and error.
pub fn run_at(kernel: &Kernel, arrays: &mut [Memory], level: Level, threads: usize) -> Result<(), ExecError> {
    let info =
        |m: &Memory| ArgInfo::Array(ArrayInfo { dtype: m.dtype, shape: vec![m.n as i64], strides: vec![1] });
    let infos: Vec<ArgInfo> = arrays.iter().map(info).collect();
    let bindings = bind_args(kernel, &infos).unwrap();
    let checked = verify::verify(kernel.clone()).unwrap();
    let mut second: Vec<Memory> = arrays.to_vec();
    let run = |program: &Program, arrays: &mut [Memory]| {
        let buffers: Vec<*mut u8> = arrays.iter_mut().map(|m| m.words.as_mut_ptr().cast()).collect();
        // SAFETY: the arrays are as long as the bindings say.
        unsafe { program.run(&bindings, &buffers, Pool::global(threads)) }
    };
    let result = run(&Program::compile_for(&checked, level)?, arrays);
    let interpreted = run(&Program::interpreted(&checked, level)?, &mut second);
    assert_eq!(result, interpreted, "{level:?}: native code and the interpreter");
    if result.is_ok() {
        for (m, i) in arrays.iter().zip(&second) {
            for (at, (got, want)) in m.lanes().into_iter().zip(i.lanes()).enumerate() {
                assert!(
                    got.same(want),
                    "{level:?} element {at}: native {got:?}, interpreted {want:?} of {:?}",
                    kernel.body
                );
            }
        }
    }
    result
}

pub fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// A float or integer expression with the vector form of its loads: `make(load)` builds it once with scalar loads at
/// a loop index and once with vector loads. Both are run at all levels and compared with the model.
#[track_caller]
pub fn check_lanes(what: &str, out: DType, inputs: &[(DType, Vec<Lane>)], make: &dyn Fn(&[Expr]) -> Expr) {
    let n = inputs[0].1.len();
    let names = ["A", "B", "C"];
    let buffers: Vec<Buffer> = inputs.iter().zip(names).map(|((d, _), name)| array(name, *d, n)).collect();
    let o = array("O", out, n);
    let i = Var::size("i", DType::I64);
    let all: Vec<Buffer> = buffers.iter().cloned().chain([o.clone()]).collect();
    let loads = |index: Expr| buffers.iter().map(|b| b.at(vec![index.clone()])).collect::<Vec<_>>();
    let scalar = make(&loads(i.expr()));
    let vector = make(&loads(iota(int(0), n)));
    let loops = Stmt::range(i.clone(), int(n as i64), Stmt::store(&o, vec![i.expr()], scalar.clone()));
    let whole = Stmt::store(&o, vec![iota(int(0), n)], vector.broadcast_to(n as u32));
    // Vectors that fit machine registers, and what is left over as scalars.
    let pieces = |lanes: usize| {
        let j = Var::size("j", DType::I64);
        let at = iota(j.expr() * int(lanes as i64), lanes);
        let value = make(&loads(at.clone())).broadcast_to(lanes as u32);
        let whole = Stmt::range(j, int((n / lanes) as i64), Stmt::store(&o, vec![at], value));
        let rest = (n - n % lanes) as i64;
        let i = Var::size("i", DType::I64);
        let value = make(&loads(i.expr()));
        let left = Stmt::for_(
            i.clone(),
            int(rest),
            int(n as i64 - rest),
            LoopKind::Serial,
            Stmt::store(&o, vec![i.expr()], value),
        );
        Stmt::seq([whole, left])
    };
    let forms = [
        ("scalar", loops),
        ("vector", whole),
        ("pairs", pieces(2)),
        ("odd pieces", pieces(13)),
        ("pieces", pieces(32)),
    ];
    for (form, body) in forms {
        let is_whole = matches!(form, "scalar" | "vector");
        for level in levels().filter(|level| is_whole || *level != Level::Baseline) {
            let mut arrays: Vec<Memory> = inputs.iter().map(|(d, lanes)| Memory::new(*d, lanes)).collect();
            let empty = if out.is_float() { Lane::F(0.0) } else { Lane::I(0) };
            arrays.push(Memory::new(out, &vec![empty; n]));
            run_at(&kernel(&all, body.clone()), &mut arrays, level, 1)
                .unwrap_or_else(|e| panic!("{what} {form}: {e}"));
            let got = arrays.pop().unwrap().lanes();
            for (at, got) in got.into_iter().enumerate() {
                let load = |name: &str, index: i128| {
                    let which = names.iter().position(|n| *n == name).unwrap();
                    let (dtype, lanes) = &inputs[which];
                    // What memory holds: the value rounded to its type.
                    Lane::from_bytes(&lanes[index as usize].to_bytes(*dtype), *dtype)
                };
                let want = model(&scalar, &|_| Lane::I(at as i128), &load);
                assert!(
                    want.same(got),
                    "{what} {form} {level:?} lane {at}: want {want:?}, got {got:?} of {scalar:?}"
                );
            }
        }
    }
}

/// Values of a type that matter: limits, zeros, ones, ties, specials.
pub fn interesting(dtype: DType) -> Vec<Lane> {
    match dtype.int_range() {
        Some((lo, hi)) => {
            let mut values =
                vec![lo, hi, 0, 1, hi / 2, hi / 3, lo / 3, 7.min(hi), (-5).max(lo), (-1).max(lo)];
            values.push(lo + 1);
            // The last amount of a shift that leaves a bit, and the next.
            let width = 8 * dtype.bytes() as i128;
            values.extend([width - 1, width].map(|v| v.min(hi)));
            values.into_iter().map(Lane::I).collect()
        }
        None => [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.5,
            -3.5,
            1e-3,
            100.25,
            -77.7,
            65504.0,
            1e-7,
            3e38,
            -1e-40,
            1e300,
            5e-324,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1.000_976_562_5,
            0.333_333_333_333,
        ]
        .into_iter()
        .map(|v| Lane::F(dtype.round_float(v)))
        .collect(),
    }
}

/// All pairs of interesting values, as two columns.
pub fn pairs(dtype: DType) -> (Vec<Lane>, Vec<Lane>) {
    let values = interesting(dtype);
    let first = values.iter().flat_map(|a| values.iter().map(move |_| *a)).collect();
    let second = values.iter().flat_map(|_| values.iter().copied()).collect();
    (first, second)
}
