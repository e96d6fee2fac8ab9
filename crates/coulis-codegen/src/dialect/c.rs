//! C without headers, with the vector extensions that gcc and clang share.
//!
//! Entry: `i32 NAME(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)`; the result is
//! 0, 1 when memory for temporaries ran out, 2 when an integer was divided by zero, or 3 when a temporary was to
//! have less than 0 elements. Where loops end early, `pool` points to the address of the byte that says so. Needs
//! `-fwrapv`: integers wrap. gcc's names of x86 builtins stand behind `CX_GCC_...` macros where its generic
//! conversion is slow; clang's generic conversion is good.

mod arithmetic;
mod convert;
mod mask;
mod math;
mod memory;
mod storage;

use coulis_ir::{Atom, DType};

use crate::EmitError;
use crate::c::code::Code;
use crate::c::elementary::{exp_bounded, exp_capped};
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::scalar::{float_literal, int_literal};
use crate::c::style::{Overflow, Parentheses, Style, Vectors};
use crate::c::types::CTy;
use crate::c::types::VTy;
use crate::dialect::{CpuDialect, Dialect, DialectKind};

/// The dialect.
pub struct C;

const PRELUDE: &str = "\
typedef _Bool b8;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef void (*coulis_body)(void *ctx, i64 begin, i64 end);
typedef void (*coulis_parallel_for)(void *pool, i64 extent, coulis_body body, void *ctx);
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__) && defined(__AVX512BW__) \\
    && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define CX_GCC_AVX512 1
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
#define CX_GCC_AVX2 1
typedef char cx_chars16 __attribute__((vector_size(16)));
typedef char cx_chars32 __attribute__((vector_size(32)));
#endif
#if defined(__x86_64__) && !defined(__AVX512DQ__)
#define CX_LONG_BY_PARTS 1
#endif
";

const STYLE: Style = Style {
    parentheses: Parentheses::AsNeeded,
    indent: "    ",
    constant: "const ",
    long: 96,
    repeatable: 40,
    vectors: Vectors::Values,
    overflow: Overflow::Wraps,
    opaque_wide_products: false,
};

const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constexpr",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "main",
    "nullptr",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "thread_local",
    "true",
    "typedef",
    "typeof",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "linux",
    "unix",
    "buf",
    "scalar",
    "pf",
    "pool",
    "ctx",
    "c",
    "first",
    "failed",
    "context",
    "begin",
    "end",
    "status",
    "interrupt",
    "it",
    "coulis_body",
    "coulis_parallel_for",
    "CX_GCC_AVX512",
    "CX_GCC_AVX2",
    "CX_LONG_BY_PARTS",
    "aligned_alloc",
    "free",
];

impl Dialect for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn reserved(&self) -> &'static [&'static str] {
        RESERVED
    }

    fn style(&self) -> &'static Style {
        &STYLE
    }

    fn type_name(&self, ty: CTy) -> &'static str {
        ty.name()
    }

    fn function(&self) -> &'static str {
        memory::FN
    }

    fn int_literal(&self, value: i128, dtype: DType) -> Code {
        int_literal(value, dtype)
    }

    fn float_literal(&self, value: f64, ty: CTy) -> Code {
        float_literal(value, ty)
    }

    fn reinterpret(&self, value: &str, from: VTy, to: VTy) -> String {
        if to.lanes > 0 {
            let value = if value.contains(' ') { format!("({value})") } else { value.to_owned() };
            return format!("({}){value}", to.name());
        }
        let letter = |ty: CTy| if ty.is_float() { 'f' } else { 'i' };
        let (f, t) = (letter(from.ty), letter(to.ty));
        format!("((union {{ {} {f}; {} {t}; }}){{ .{f} = {value} }}).{t}", from.name(), to.name())
    }

    fn helper(&self, helper: Helper, needs: &mut dyn Needs) -> Result<String, EmitError> {
        match helper {
            Helper::Load(dtype, lanes) => memory::load(dtype, lanes, needs),
            Helper::LoadEvery(dtype, lanes, step) => memory::load_every(dtype, lanes, step, needs),
            Helper::Store(dtype, lanes) => memory::store(dtype, lanes, needs),
            Helper::Stream(dtype, lanes) => memory::stream(dtype, lanes, needs),
            Helper::Drain => Ok(memory::DRAIN.to_owned()),
            Helper::Splat(ty) => Ok(memory::splat(ty, needs)),
            Helper::Alloc => Ok(memory::ALLOC.to_owned()),
            Helper::Free => Ok(memory::FREE.to_owned()),
            Helper::Fail => Ok(memory::FAIL.to_owned()),
            Helper::Piece(piece, of, index) => Ok(convert::piece(piece, of, index, needs)),
            Helper::Keep(ty) => Ok(convert::keep(ty, needs)),
            Helper::Kept(piece, of, index) => Ok(convert::kept(piece, of, index, needs)),
            Helper::Concat(half) => Ok(convert::concat(half, needs)),
            Helper::Zip(ty, block, high) => Ok(convert::zip(ty, block, high, needs)),
            Helper::Unzip(ty, block, odd) => Ok(convert::unzip(ty, block, odd, needs)),
            Helper::Blend(ty, block, lanes) => Ok(convert::blend(ty, block, lanes, needs)),
            Helper::Around { of, block, step, first } => Ok(convert::around(of, block, [step, first], needs)),
            Helper::WidenAll(dtype, lanes) => storage::widen_all(dtype, lanes, needs),
            Helper::NarrowAll(dtype, lanes) => storage::narrow_all(dtype, lanes, needs),
            Helper::Convert(from, to) => convert::convert(from, to, needs),
            Helper::Short(ty) => Ok(convert::short(ty, needs)),
            Helper::Saturate(from, to) => convert::saturate(from, to, needs),
            Helper::Round(ty, dtype) => convert::round(ty, dtype, needs),
            Helper::Odd(from) => convert::odd(from, needs),
            Helper::Fma(ty, dtype) => convert::fma(ty, dtype, needs),
            Helper::AddExact(ty) => Ok(math::add_exact(ty, needs)),
            Helper::Compare(comparison, ty) => Ok(mask::compare(comparison, ty, needs)),
            Helper::Lane(ty) => Ok(mask::lane(ty, needs)),
            Helper::AnySet(ty) => Ok(mask::any_set(ty, needs)),
            Helper::Select(ty) => Ok(mask::select(ty, needs)),
            Helper::Min(ty) => arithmetic::extremum("min", Comparison::Lt, ty, needs),
            Helper::Max(ty) => arithmetic::extremum("max", Comparison::Gt, ty, needs),
            Helper::Divide(division, ty) => arithmetic::divide(division, ty, needs),
            Helper::Math(intrinsic, ty) => math::define(intrinsic, ty, needs),
            Helper::ExpCapped(ty) => exp_capped(&helper.name(), ty, needs),
            Helper::ExpBounded(ty) => exp_bounded(&helper.name(), ty, needs),
            Helper::Shift(op, ty) => arithmetic::shift(op, ty, needs),
            Helper::Widen(_)
            | Helper::Narrow(_)
            | Helper::Wrap(..)
            | Helper::OpaqueProduct(_)
            | Helper::AddPair { .. }
            | Helper::Byte(..)
            | Helper::NonZero(_)
            | Helper::Ones
            | Helper::ExtremumPair(..)
            | Helper::OfTwo(_)
            | Helper::Atomic(..)
            | Helper::ClusterLoad(_)
            | Helper::Passing(..)
            | Helper::CopyWord(_)
            | Helper::WaitForCopies
            | Helper::WaitForLaunch
            | Helper::LetNextBegin => {
                Err(EmitError::Unsupported { dialect: "c", what: format!("`{}`", helper.name()) })
            }
        }
    }

    fn local_array(&self, element: &str, name: &str, length: u64) -> String {
        format!("{element} {name}[{length}] __attribute__((aligned(64)))")
    }

    fn prefetch(&self, hint: Atom, address: &str) -> Option<String> {
        let locality = if hint == Atom::PrefetchL2 { ", 0, 2" } else { "" };
        Some(format!("__builtin_prefetch({address}{locality})"))
    }

    fn kind(&self) -> DialectKind<'_> {
        DialectKind::Cpu(self)
    }
}

impl CpuDialect for C {
    fn prelude(&self) -> &'static str {
        PRELUDE
    }

    fn vector_type(&self, ty: VTy) -> String {
        if ty.ty.is_mask() {
            return mask::definition(ty);
        }
        let bytes = ty.bytes();
        format!("typedef {} {} __attribute__((vector_size({bytes})));", ty.ty.name(), ty.name())
    }

    fn unaligned_type(&self, ty: VTy, name: &str) -> String {
        format!("typedef {} {name} __attribute__((aligned({}), may_alias));", ty.name(), ty.ty.bytes())
    }

    fn entry_head(&self, name: &str) -> String {
        format!("i32 {name}(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)")
    }

    fn body_head(&self, name: &str) -> String {
        format!("static void {name}(void *context, i64 begin, i64 end)")
    }

    fn parallel_call(&self, body: &str, extent: &str, context: &str) -> String {
        format!("pf(pool, {extent}, {body}, {context})")
    }
}
