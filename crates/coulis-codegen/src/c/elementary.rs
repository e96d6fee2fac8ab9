//! exp, log and the logistic function in every dialect: the steps of `coulis_ir::math`, fused where it is
//! fused, so that the executor and all compiled code give the same bits.

use std::fmt::Write as _;

use coulis_ir::{Intrinsic, math};

use crate::EmitError;
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::types::{CTy, VTy};
use crate::dialect::DialectKind;

/// Bytes of vectors that machines multiply by any power of two in one operation.
pub const BYTES_OF_SCALEF: u32 = 64;

/// Ends of the names of builtins and of literals: `f` for `f32`.
pub fn suffix(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "f" } else { "" }
}

/// The literal zero in the type of a lane.
fn zero(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "0.0f" } else { "0.0" }
}

/// The literal one in the type of a lane: vectors take no literal of another type.
pub fn one(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "1.0f" } else { "1.0" }
}

/// What exp and log need to know of a float format, as C literals.
struct Format {
    int: String,
    mantissa_bits: u32,
    bias: u32,
    ln2_hi: String,
    ln2_lo: String,
    inv_ln2: String,
    is_single: bool,
    magic_bits: String,
    exp: Vec<f64>,
    exp_min: String,
    exp_max: String,
    sqrt_half_bits: &'static str,
    one_bits: &'static str,
    mantissa_mask: &'static str,
    least_normal: &'static str,
    tiny_scale: &'static str,
    tiny_bits: &'static str,
}

impl Format {
    fn of(ty: VTy) -> Format {
        let int = ty.bits().name();
        if ty.ty == CTy::F32 {
            Format {
                int,
                mantissa_bits: 23,
                bias: 127,
                ln2_hi: f32_literal(math::LN2_HI_F32),
                ln2_lo: f32_literal(math::LN2_LO_F32),
                inv_ln2: f32_literal(math::INV_LN2_F32),
                is_single: true,
                magic_bits: format!("{:#x}", math::MAGIC_F32.to_bits()),
                exp: math::EXP_F32.map(f64::from).to_vec(),
                exp_min: f32_literal(math::EXP_MIN_F32),
                exp_max: f32_literal(math::EXP_MAX_F32),
                sqrt_half_bits: "0x3f3504f3",
                one_bits: "0x3f800000",
                mantissa_mask: "0x007fffff",
                least_normal: "0x1p-126f",
                tiny_scale: "0x1p25f",
                tiny_bits: "25.0f",
            }
        } else {
            Format {
                int,
                mantissa_bits: 52,
                bias: 1023,
                ln2_hi: f64_literal(math::LN2_HI_F64),
                ln2_lo: f64_literal(math::LN2_LO_F64),
                inv_ln2: f64_literal(math::INV_LN2_F64),
                is_single: false,
                magic_bits: format!("{:#x}LL", math::MAGIC_F64.to_bits()),
                exp: math::EXP_F64.to_vec(),
                exp_min: f64_literal(math::EXP_MIN_F64),
                exp_max: f64_literal(math::EXP_MAX_F64),
                sqrt_half_bits: "0x3fe6a09e667f3bcdLL",
                one_bits: "0x3ff0000000000000LL",
                mantissa_mask: "0x000fffffffffffffLL",
                least_normal: "0x1p-1022",
                tiny_scale: "0x1p54",
                tiny_bits: "54.0",
            }
        }
    }

    /// The number that, added, rounds to an integer, and so much more.
    fn magic(&self, more: u32) -> String {
        let magic = if self.is_single { f64::from(math::MAGIC_F32) } else { math::MAGIC_F64 };
        self.literal(magic + f64::from(more))
    }

    fn literal(&self, value: f64) -> String {
        if self.is_single { f32_literal(value as f32) } else { f64_literal(value) }
    }
}

fn f32_literal(value: f32) -> String {
    format!("{value:?}f")
}

fn f64_literal(value: f64) -> String {
    format!("{value:?}")
}

/// `float` reinterpreted as its integer, and back; `cond ? a : b`.
struct Spelling {
    ty: VTy,
    value: String,
    select: String,
}

impl Spelling {
    fn new(ty: VTy, needs: &mut dyn Needs) -> Result<Spelling, EmitError> {
        let value = if ty.lanes > 0 { needs.ty(ty) } else { ty.name() };
        if ty.lanes > 0 {
            needs.ty(ty.bits());
        }
        let select = if ty.lanes > 0 { needs.helper(Helper::Select(ty))? } else { String::new() };
        Ok(Spelling { ty, value, select })
    }

    fn bits(&self, value: &str, needs: &dyn Needs) -> String {
        needs.dialect().reinterpret(value, self.ty, self.ty.bits())
    }

    fn float(&self, bits: &str, needs: &dyn Needs) -> String {
        needs.dialect().reinterpret(bits, self.ty.bits(), self.ty)
    }

    /// Two to the number of `shifted`, whose last bits are an exponent.
    fn power_of(&self, format: &Format, needs: &dyn Needs) -> String {
        self.float(&format!("{} << {}", self.bits("shifted", needs), format.mantissa_bits), needs)
    }

    /// By how `a` compares with a constant.
    fn select(
        &self,
        (comparison, bound): (Comparison, &str),
        (yes, no): (&str, &str),
        needs: &mut dyn Needs,
    ) -> Result<String, EmitError> {
        if self.ty.lanes == 0 {
            return Ok(format!("(a {} {bound} ? {yes} : {no})", comparison.operator()));
        }
        let compare = needs.helper(Helper::Compare(comparison, self.ty))?;
        let bound = self.splat(bound, needs)?;
        Ok(format!("{}({compare}(a, {bound}), {yes}, {no})", self.select))
    }

    /// The constant in every lane: adding it to zero would lose the sign of -0.0, so it is listed.
    fn splat(&self, constant: &str, needs: &mut dyn Needs) -> Result<String, EmitError> {
        if self.ty.lanes == 0 {
            return Ok(constant.to_owned());
        }
        Ok(format!("{}({constant})", needs.helper(Helper::Splat(self.ty))?))
    }
}

fn horner(coefficients: &[String], variable: &str) -> String {
    let (last, rest) = match coefficients.split_last() {
        Some((last, rest)) => (last.clone(), rest),
        None => return "0".to_owned(),
    };
    rest.iter().rev().fold(last, |inner, c| {
        let inner = if inner.contains(' ') { format!("({inner})") } else { inner };
        format!("{c} + {variable} * {inner}")
    })
}

/// e to the x, by a function of that name. On CPUs, some of which take a hundred times as long for a product that underflows, none
/// does where the result is 0.
pub fn exp(name: &str, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let (bias, shift, int) = (f.bias, f.mantissa_bits, &f.int);
    let (min, high) = (needs.helper(Helper::Min(ty))?, s.splat(&f.exp_max, needs)?);
    // Two exact factors, since one power of two does not reach the subnormals; the result is rounded once.
    let first = s.float(&format!("(half + {bias}) << {shift}"), needs);
    let mut last = s.float(&format!("(k - half + {bias}) << {shift}"), needs);
    if matches!(needs.dialect().kind(), DialectKind::Cpu(_)) {
        let zero = s.splat(zero(ty), needs)?;
        last = s.select((Comparison::Lt, &f.exp_min), (&zero, &last), needs)?;
    }
    let by_halves = format!("    const {int} half = k >> 1;\n    return p * {first} * {last};\n");
    let frame = ExpFrame {
        least: Some(f.exp_min.clone()),
        argument: format!("{min}({high}, a)"),
        more: 0,
        less: 0,
        power: format!("    const {int} k = {} - {};\n", s.bits("shifted", needs), f.magic_bits),
        scale: if ty.bytes() == BYTES_OF_SCALEF {
            let low = s.splat(&f.exp_min, needs)?;
            // "Not less", which holds of a NaN.
            let kept = format!("__builtin_ia32_cmpp{}512_mask(a, {low}, 21, -1, 4)", letter(ty));
            at_once(&kept, &format!("({}){{0}}", s.value), ty, &by_halves)
        } else {
            by_halves
        },
    };
    frame.function(name, ty, needs)
}

/// e to the x, the same bits, where x is at most [`math::EXP_CAP`] or NaN: that power of two, and what a subnormal needs more,
/// fit into the exponent. They and its bias are added where `x / ln 2` is rounded to an integer, which leaves the
/// exponent in place; the coefficients are as much smaller, and the one product rounds. Of what is far below the least argument that power is
/// 0.
pub fn exp_capped(name: &str, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let less = if f.is_single { 27 } else { 57 };
    // Even, so that a tie between two powers goes to the same one.
    let more = f.bias + less;
    let frame = ExpFrame {
        least: Some(f.literal(-f64::from(more) * std::f64::consts::LN_2)),
        argument: "a".to_owned(),
        more,
        less,
        power: String::new(),
        scale: format!("    return p * {};\n", s.power_of(&f, needs)),
    };
    frame.function(name, ty, needs)
}

/// The same of what is also at least [`math::EXP_FLOOR_F32`], or that of `f64`: its power is that of a normal number.
pub fn exp_bounded(name: &str, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let by_product = format!("    return p * {};\n", s.power_of(&f, needs));
    let frame = ExpFrame {
        least: None,
        argument: "a".to_owned(),
        // No argument is a tie between two powers, so it may be odd.
        more: f.bias,
        less: 0,
        power: String::new(),
        scale: if ty.bytes() == BYTES_OF_SCALEF { at_once("-1", "p", ty, &by_product) } else { by_product },
    };
    frame.function(name, ty, needs)
}

/// The line that multiplies `p` by two to the `n` in the lanes of a mask, and gives what else is said in others, by the one operation of
/// machines that have it, or else other lines.
fn at_once(kept: &str, others: &str, ty: VTy, lines: &str) -> String {
    let scaled = format!("__builtin_ia32_scalefp{}512_mask(p, n, {others}, {kept}, 4)", letter(ty));
    format!("#ifdef CX_GCC_AVX512\n    return {scaled};\n#else\n{lines}#endif\n")
}

/// The letter of a lane in the names of builtins.
fn letter(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "s" } else { "d" }
}

/// In what exponentials differ.
struct ExpFrame {
    /// What arguments are brought to from below, where they may be less.
    least: Option<String>,
    /// The argument, brought into range from above.
    argument: String,
    /// What is added to the power that is rounded.
    more: u32,
    /// How many powers of two less the polynomial is.
    less: u32,
    /// The line that takes the power from `shifted`.
    power: String,
    /// The line that multiplies `p` by it.
    scale: String,
}

impl ExpFrame {
    /// A function of that name.
    fn function(self, name: &str, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
        let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
        let value = &s.value;
        let x = match &self.least {
            Some(least) => {
                format!("{}({}, {})", needs.helper(Helper::Max(ty))?, s.splat(least, needs)?, self.argument)
            }
            None => self.argument.clone(),
        };
        let fma = needs.helper(Helper::Math(Intrinsic::Fma, ty))?;
        let mut constant = |literal: &str| s.splat(literal, needs);
        let (inv, magic) = (constant(&f.inv_ln2)?, constant(&f.magic(self.more))?);
        let (hi, lo) = (constant(&format!("-{}", f.ln2_hi))?, constant(&format!("-{}", f.ln2_lo))?);
        let scale = 0.5f64.powi(self.less as i32);
        let mut scaled = |c: f64| constant(&f.literal(c * scale));
        let one = scaled(1.0)?;
        let coefficients = f.exp.iter().map(|&c| scaled(c)).collect::<Result<Vec<_>, _>>()?;
        let (last, rest) = (&coefficients[f.exp.len() - 1], &coefficients[..f.exp.len() - 1]);
        let mut steps = format!(
            "    const {value} shifted = {fma}(x, {inv}, {magic});
    const {value} n = shifted - {magic};
{power}    const {value} r = {fma}(n, {lo}, {fma}(n, {hi}, x));
    {value} q = {last};
",
            power = self.power,
        );
        for c in rest.iter().rev().chain([&one]) {
            let _ = writeln!(steps, "    q = {fma}(r, q, {c});");
        }
        let _ = writeln!(steps, "    const {value} p = {fma}(r, q, {one});");
        Ok(format!(
            "{function} {value} {name}({value} a)
{{
    const {value} x = {x};
{steps}{scale}}}
",
            scale = self.scale,
            function = needs.dialect().function(),
        ))
    }
}

/// `1 / (1 + exp(-x))`, where a function of the name `exp` is the exponential.
pub fn sigmoid(exp: &str, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let s = Spelling::new(ty, needs)?;
    let (value, suffix) = (&s.value, suffix(ty));
    let abs = needs.helper(Helper::Math(Intrinsic::Abs, ty))?;
    let fma = needs.helper(Helper::Math(Intrinsic::Fma, ty))?;
    let one = s.splat(one(ty), needs)?;
    let below = (Comparison::Lt, &*format!("0.0{suffix}"));
    let top = s.select(below, ("e", &one), needs)?;
    let reciprocal = s.select(below, ("rest_of_one", "quotient"), needs)?;
    Ok(format!(
        "{function} {value} {name}({value} a)
{{
    const {value} one = {one};
    const {value} e = {exp}(-{abs}(a));
    const {value} sum = one + e;
    const {value} top = {top};
    const {value} quotient = top / sum;
    const {value} rest = {fma}(-quotient, sum, top) - quotient * (e - (sum - one));
    const {value} rest_of_one = one - quotient;
    return quotient + rest * {reciprocal};
}}
",
        function = needs.dialect().function(),
        name = Helper::Math(Intrinsic::Sigmoid, ty).name(),
    ))
}

/// The natural logarithm.
pub fn log(ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let (value, int) = (&s.value, &f.int);
    let zero = s.splat("0", needs)?;
    let tiny_bits = s.splat(f.tiny_bits, needs)?;
    let suffix = suffix(ty);
    let constant = |value: f64, needs: &dyn Needs| needs.dialect().float_literal(value, ty.ty).text;
    let minus_inf = s.splat(&constant(f64::NEG_INFINITY, needs), needs)?;
    let nan = s.splat(&constant(f64::NAN, needs), needs)?;
    let series = if ty.ty == CTy::F32 {
        horner(&math::LOG_F32.map(f32_literal), "z")
    } else {
        horner(&math::LOG_F64.map(f64_literal), "z")
    };
    let tiny = (Comparison::Lt, f.least_normal);
    let scaled = s.select(tiny, (&format!("a * {}", f.tiny_scale), "a"), needs)?;
    let tiny = s.select(tiny, (&tiny_bits, &zero), needs)?;
    let at_zero = s.select((Comparison::Eq, &format!("0.0{suffix}")), (&minus_inf, "y"), needs)?;
    let infinity = constant(f64::INFINITY, needs);
    let at_inf = s.select((Comparison::Eq, &infinity), ("a", "finite"), needs)?;
    let at_nan = s.select((Comparison::Ge, &format!("0.0{suffix}")), ("positive", &nan), needs)?;
    // The exponent becomes a float by the magic number's low bits, since few machines convert 64-bit integers.
    let (shift, bias) = (f.mantissa_bits, f.bias);
    Ok(format!(
        "{function} {value} {name}({value} a)
{{
    const {value} scaled = {scaled};
    const {int} bits = {raw} + ({one_bits} - {sqrt_half});
    const {value} k = ({exponent} - {magic}) - {tiny};
    const {value} f = {mantissa} - {one};
    const {value} s = f / (2.0{suffix} + f);
    const {value} z = s * s;
    const {value} r = z * ({series});
    const {value} square = 0.5{suffix} * f * f;
    const {value} y = k * {hi} - ((square - (s * (square + r) + k * {lo})) - f);
    const {value} finite = {at_zero};
    const {value} positive = {at_inf};
    return {at_nan};
}}
",
        function = needs.dialect().function(),
        name = Helper::Math(Intrinsic::Log, ty).name(),
        raw = s.bits("scaled", needs),
        one_bits = f.one_bits,
        sqrt_half = f.sqrt_half_bits,
        exponent = s.float(&format!("((bits >> {shift}) - {bias}) + {}", f.magic_bits), needs),
        magic = f.magic(0),
        mantissa = s.float(&format!("(bits & {}) + {}", f.mantissa_mask, f.sqrt_half_bits), needs),
        hi = f.ln2_hi,
        lo = f.ln2_lo,
        one = one(ty),
    ))
}
