//! CUDA without headers, for NVRTC and nvcc, in the spelling of seed 003.
//!
//! Types of 8 and 16 bits that C++ lacks are unsigned integers in memory. Text is compiled with [`COMPILER_OPTIONS`]:
//! no contraction of products and sums, no flush of subnormals, IEEE division and root, so that results are those of
//! the executor. What differs between architectures stands behind `__CUDA_ARCH__`: one text serves all of them that
//! have what it uses.
//! A launch has no status, so an integer divided by zero gives 0. Source: CUDA C++ Programming Guide; PTX ISA.

mod atomic;
pub mod bounds;
mod math;
mod memory;
mod scalar;
mod storage;

use std::fmt::Write as _;

use scalar::{add_pair, opaque_product, scientific, special, wrap};

use coulis_ir::{Atom, DType, SyncKind, ThreadTag};

use crate::EmitError;
use crate::c::code::{Code, Prec, push_number};
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::plain;
use crate::c::style::{Overflow, Parentheses, Style, Vectors};
use crate::c::types::{CTy, VTy};
use crate::dialect::{Dialect, DialectKind, GpuDialect, Word};

/// What the compiler of the text has to be told, beside the architecture.
pub const COMPILER_OPTIONS: &[&str] =
    &["--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"];

/// The dialect.
pub struct Cuda;

const STYLE: Style = Style {
    parentheses: Parentheses::Everywhere,
    indent: "  ",
    constant: "",
    long: 2000,
    repeatable: 40,
    vectors: Vectors::Lanes,
    overflow: Overflow::Undefined,
    // A product of narrow integers, made that of 32 bits with a result of 64, is added up wrongly by ptxas of
    // CUDA 13.0: sums of squares of int8 were off by multiples of 2^32 on an H100
    // (bench/results/h100-correctness.md).
    opaque_wide_products: true,
};

/// How helpers begin.
const FN: &str = "static __device__ __forceinline__";

/// Which of the names stand in the text as words.
fn words_in(text: &str, names: &[&str]) -> Vec<bool> {
    let mut found = vec![false; names.len()];
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let (mut begins, mut ends) = ([false; 256], [false; 256]);
    for name in names.iter().map(|name| name.as_bytes()) {
        begins[usize::from(name[0])] = true;
        ends[usize::from(name[name.len() - 1])] = true;
    }
    let text = text.as_bytes();
    let is_in_word = |at: usize| text.get(at).is_some_and(|c| IN_WORDS[usize::from(*c)]);
    for (start, first) in text.iter().enumerate() {
        if !begins[usize::from(*first)] || start > 0 && is_in_word(start - 1) {
            continue;
        }
        let length = (1..=longest).find(|length| !is_in_word(start + length)).unwrap_or(longest + 1);
        let may_be = length <= longest && ends[usize::from(text[start + length - 1])];
        let word = &text[start..start + length.min(longest)];
        if may_be && let Some(at) = names.iter().position(|name| name.as_bytes() == word) {
            found[at] = true;
        }
    }
    found
}

/// Whether each byte is one of a word.
const IN_WORDS: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = (c as u8).is_ascii_alphanumeric() || c as u8 == b'_';
        c += 1;
    }
    table
};

/// Names that functions use and C++ lacks, in the seed's spelling.
const DEFINES: &[(&str, &str)] = &[
    ("uint", "unsigned int"),
    ("uchar", "unsigned char"),
    ("ushort", "unsigned short"),
    ("int64_t", "long long"),
    ("uint64_t", "unsigned long long"),
];

/// Names that helpers use.
const TYPEDEFS: &[(&str, &str)] = &[
    ("b8", "bool"),
    ("i8", "signed char"),
    ("i16", "short"),
    ("i32", "int"),
    ("i64", "long long"),
    ("u8", "unsigned char"),
    ("u16", "unsigned short"),
    ("u32", "unsigned int"),
    ("u64", "unsigned long long"),
    ("f32", "float"),
    ("f64", "double"),
];

const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "uint",
    "uchar",
    "ushort",
    "int64_t",
    "uint64_t",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "dim3",
    "uint2",
    "uint4",
    "int2",
    "int4",
    "float2",
    "float4",
    "double2",
    "longlong2",
    "ulonglong2",
    "make_uint2",
    "make_uint4",
    "make_int2",
    "make_int4",
    "make_float2",
    "make_float4",
    "make_double2",
    "make_longlong2",
    "make_ulonglong2",
    "atomicAdd",
    "atomicMin",
    "atomicMax",
    "atomicExch",
    "atomicCAS",
    "NULL",
    "linux",
    "unix",
    "main",
];

impl Dialect for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn reserved(&self) -> &'static [&'static str] {
        RESERVED
    }

    fn style(&self) -> &'static Style {
        &STYLE
    }

    fn type_name(&self, ty: CTy) -> &'static str {
        match ty {
            CTy::Bool => "bool",
            CTy::I8 => "signed char",
            CTy::I16 => "short",
            CTy::I32 => "int",
            CTy::I64 => "int64_t",
            CTy::U8 => "uchar",
            CTy::U16 => "ushort",
            CTy::U32 => "uint",
            CTy::U64 => "uint64_t",
            CTy::F32 => "float",
            CTy::F64 => "double",
            CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64 => ty.name(),
        }
    }

    /// Registers have 32 bits. A value of a type of 8 or 16 bits stands in one as a number of 32, else it is made one again
    /// before each comparison: half of the instructions of a maximum of `int8`.
    fn held(&self, ty: CTy) -> CTy {
        match ty {
            CTy::I8 | CTy::I16 | CTy::U8 | CTy::U16 => CTy::I32,
            CTy::Bool
            | CTy::I32
            | CTy::I64
            | CTy::U32
            | CTy::U64
            | CTy::F32
            | CTy::F64
            | CTy::M8
            | CTy::M16
            | CTy::M32
            | CTy::M64 => ty,
        }
    }

    fn function(&self) -> &'static str {
        FN
    }

    fn int_literal(&self, value: i128, dtype: DType) -> Code {
        let ty = self.type_name(CTy::carrier(dtype));
        let unary = |text: String| Code { text, prec: Prec::Unary };
        match dtype {
            DType::Bool => Code::primary(if value == 0 { "false" } else { "true" }),
            DType::I32 if value == i128::from(i32::MIN) => Code::primary("(-2147483647 - 1)"),
            DType::I32 if value >= 0 => {
                let mut text = String::with_capacity(12);
                push_number(&mut text, value as u64);
                Code::primary(text)
            }
            DType::I32 => unary((value as i32).to_string()),
            DType::I64 if value == i128::from(i64::MIN) => Code::primary("(-9223372036854775807 - 1)"),
            DType::U64 if value > i128::from(i64::MAX) => unary(format!("({ty}){value}ull")),
            _ => unary(match i64::try_from(value) {
                // Numbers of 128 bits take long to write.
                Ok(short) => {
                    let mut text = String::with_capacity(ty.len() + 24);
                    text.extend(["(", ty, if short < 0 { ")-" } else { ")" }]);
                    push_number(&mut text, short.unsigned_abs());
                    text
                }
                Err(_) => format!("({ty}){value}"),
            }),
        }
    }

    fn float_literal(&self, value: f64, ty: CTy) -> Code {
        if !value.is_finite() {
            return Code::primary(special(value, ty));
        }
        let suffix = if ty == CTy::F32 { "f" } else { "" };
        let text = scientific(value, ty == CTy::F32) + suffix;
        let prec = if value.is_sign_negative() { Prec::Unary } else { Prec::Primary };
        Code { text, prec }
    }

    fn reinterpret(&self, value: &str, from: VTy, to: VTy) -> String {
        let function = match (from.ty, to.ty) {
            (CTy::F32, CTy::I32) => "__float_as_int",
            (CTy::I32, CTy::F32) => "__int_as_float",
            (CTy::F64, _) => "__double_as_longlong",
            _ => "__longlong_as_double",
        };
        format!("{function}({value})")
    }

    fn helper(&self, helper: Helper, needs: &mut dyn Needs) -> Result<String, EmitError> {
        let unsupported = || EmitError::Unsupported { dialect: "cuda", what: format!("`{}`", helper.name()) };
        match helper {
            Helper::Min(ty) if ty.lanes == 0 => Ok(plain::extremum(helper, Comparison::Lt, ty.ty, needs)),
            Helper::Max(ty) if ty.lanes == 0 => Ok(plain::extremum(helper, Comparison::Gt, ty.ty, needs)),
            Helper::Divide(division, ty) if ty.lanes == 0 => plain::divide(division, ty.ty, needs),
            Helper::Saturate(from, to) if from.lanes == 0 => Ok(plain::saturate(from.ty, to, needs)),
            Helper::Odd(from) if from == VTy::scalar(CTy::F64) => Ok(storage::odd()),
            Helper::Odd(from) if from.lanes == 0 => Ok(plain::odd(from.ty, needs)),
            Helper::Round(ty, dtype) if ty.lanes == 0 => storage::round(dtype, needs),
            Helper::Math(intrinsic, ty) if ty.lanes == 0 => math::define(intrinsic, ty, needs),
            Helper::Widen(dtype) => storage::widen(dtype),
            Helper::WidenAll(dtype, 2) => storage::widen_pair(dtype, needs),
            Helper::Narrow(dtype) => storage::narrow(dtype, needs),
            Helper::NarrowAll(dtype, 2) => storage::narrow_pair(dtype),
            Helper::Wrap(op, ty) => wrap(op, ty).ok_or_else(unsupported),
            Helper::OpaqueProduct(ty) => Ok(opaque_product(ty)),
            Helper::Shift(op, ty) if ty.lanes == 0 => Ok(plain::shift(op, ty.ty, needs)),
            Helper::Fma(ty, dtype) if ty.lanes == 0 => storage::fma(dtype, needs),
            Helper::AddPair { ftz } => add_pair(ftz, needs),
            Helper::Byte(ty, byte) => Ok(memory::byte(ty, byte, &helper.name())),
            Helper::NonZero(byte) => Ok(memory::non_zero(byte, &helper.name())),
            Helper::Ones => Ok(memory::ones(&helper.name())),
            Helper::ExtremumPair(of, dtype) => Ok(math::extremum_pair(of, dtype, &helper.name())),
            Helper::OfTwo(intrinsic) => Ok(math::extremum2(intrinsic, &helper.name())),
            Helper::Atomic(atom, dtype) => atomic::define(atom, dtype, needs).ok_or_else(unsupported),
            Helper::ClusterLoad(dtype) => Ok(memory::cluster_load(dtype)),
            Helper::Passing(field, fields) => memory::passing(field, fields).ok_or_else(unsupported),
            Helper::CopyWord(bytes) => memory::copy_word(bytes, &helper.name()).ok_or_else(unsupported),
            Helper::WaitForCopies => Ok(memory::wait_for_copies(&helper.name())),
            Helper::WaitForLaunch => Ok(memory::of_launches(&helper.name(), "griddepcontrol.wait")),
            Helper::LetNextBegin => {
                Ok(memory::of_launches(&helper.name(), "griddepcontrol.launch_dependents"))
            }
            Helper::Load(..)
            | Helper::Store(..)
            | Helper::LoadEvery(..)
            | Helper::Stream(..)
            | Helper::Drain
            | Helper::Splat(_)
            | Helper::Compare(..)
            | Helper::Lane(_)
            | Helper::AnySet(_)
            | Helper::Select(_)
            | Helper::Min(_)
            | Helper::Max(_)
            | Helper::Piece(..)
            | Helper::Keep(_)
            | Helper::Kept(..)
            | Helper::Concat(_)
            | Helper::Zip(..)
            | Helper::Unzip(..)
            | Helper::Blend(..)
            | Helper::Around { .. }
            | Helper::WidenAll(..)
            | Helper::NarrowAll(..)
            | Helper::Convert(..)
            | Helper::Short(_)
            | Helper::Saturate(..)
            | Helper::Round(..)
            | Helper::Odd(_)
            | Helper::Fma(..)
            | Helper::AddExact(_)
            | Helper::Divide(..)
            | Helper::Shift(..)
            | Helper::Math(..)
            | Helper::ExpCapped(_)
            | Helper::ExpBounded(_)
            | Helper::Alloc
            | Helper::Free
            | Helper::Fail => Err(unsupported()),
        }
    }

    fn local_array(&self, element: &str, name: &str, length: u64) -> String {
        format!("{element} {name}[{length}]")
    }

    fn prefetch(&self, _: Atom, address: &str) -> Option<String> {
        Some(format!("asm volatile(\"prefetch.L2 [%0];\" : : \"l\"({address}))"))
    }

    fn kind(&self) -> DialectKind<'_> {
        DialectKind::Gpu(self)
    }
}

impl GpuDialect for Cuda {
    fn prelude(&self, text: &str) -> String {
        let names: Vec<&str> = DEFINES.iter().chain(TYPEDEFS).map(|(name, _)| *name).collect();
        let found = words_in(text, &names);
        let (defines, typedefs) = found.split_at(DEFINES.len());
        let mut prelude = String::new();
        prelude.push_str(bounds::definition(text));
        for ((name, meaning), _) in DEFINES.iter().zip(defines).filter(|(_, found)| **found) {
            let _ = writeln!(prelude, "#define {name} {meaning}");
        }
        for ((name, meaning), _) in TYPEDEFS.iter().zip(typedefs).filter(|(_, found)| **found) {
            let _ = writeln!(prelude, "typedef {meaning} {name};");
        }
        prelude
    }

    fn kernel_head(
        &self,
        name: &str,
        threads: Option<i128>,
        blocks: Option<i64>,
        cluster: Option<[i128; 3]>,
        parameters: &[String],
    ) -> String {
        let bounds = bounds::launch_bounds(threads, blocks);
        let cluster =
            cluster.map_or_else(String::new, |[x, y, z]| format!("__cluster_dims__({x}, {y}, {z}) "));
        format!("extern \"C\" __global__ void {cluster}{bounds}{name}({})", parameters.join(", "))
    }

    fn pointer(&self, element: &str, name: &str, alone: bool) -> String {
        if alone { format!("{element}* __restrict__ {name}") } else { format!("{element}* {name}") }
    }

    fn thread_index(&self, tag: ThreadTag, ty: CTy) -> Code {
        Code::primary(format!("(({}){})", self.type_name(ty), tag.name()))
    }

    fn shared_array(&self, element: &str, name: &str, length: u64, align: u32) -> String {
        let align = if align > 1 { format!("__align__({align}) ") } else { String::new() };
        format!("__shared__ {align}{element} {name}[{length}]")
    }

    fn dynamic_shared(&self) -> (&'static str, &'static str) {
        ("extern __shared__ __align__(16) unsigned char cx_shared[]", "cx_shared")
    }

    fn mask(&self) -> DType {
        DType::U32
    }

    fn barrier(&self, kind: SyncKind) -> Result<String, EmitError> {
        let named =
            |id: u32, threads: u32| format!("asm volatile(\"barrier.sync {id}, {threads};\" ::: \"memory\")");
        Ok(match kind {
            // What is written before it is seen after it by all threads of the cluster.
            SyncKind::Cluster => "asm volatile(\"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\" ::: \"memory\")".to_owned(),
            SyncKind::Cta => "__syncthreads()".to_owned(),
            SyncKind::Warp => "__syncwarp()".to_owned(),
            SyncKind::Warpgroup(id) => named(id, 128),
            SyncKind::Named { id, threads } => named(id, threads),
        })
    }

    fn atom(
        &self,
        atom: Atom,
        dtype: DType,
        address: Option<&Code>,
        args: &[Code],
        needs: &mut dyn Needs,
    ) -> Result<Code, EmitError> {
        atomic::spell(atom, dtype, address, args, needs)
    }

    fn word(&self, memory: CTy, lanes: u32) -> Option<Word> {
        let bytes = memory.bytes() * lanes;
        let (name, make, field, fields) = match (memory, bytes) {
            (CTy::F32, 16) => ("float4", "make_float4", CTy::F32, 4),
            (CTy::F32, 8) => ("float2", "make_float2", CTy::F32, 2),
            (CTy::I32, 16) => ("int4", "make_int4", CTy::I32, 4),
            (CTy::I32, 8) => ("int2", "make_int2", CTy::I32, 2),
            (CTy::F64, 16) => ("double2", "make_double2", CTy::F64, 2),
            (CTy::I64, 16) => ("longlong2", "make_longlong2", CTy::I64, 2),
            (CTy::U64, 16) => ("ulonglong2", "make_ulonglong2", CTy::U64, 2),
            (_, 16) => ("uint4", "make_uint4", CTy::U32, 4),
            (_, 8) => ("uint2", "make_uint2", CTy::U32, 2),
            (_, 4) => ("uint", "", CTy::U32, 1),
            (_, 2) => ("ushort", "", CTy::U16, 1),
            _ => return None,
        };
        (field.bytes() <= bytes && memory.bytes() <= field.bytes()).then_some(Word {
            name,
            make,
            field,
            fields,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_whole_words() {
        let names = ["uint", "i8", "int64_t", "b8"];
        let check = |text: &str, want: [bool; 4]| assert_eq!(words_in(text, &names), want, "{text}");
        check("", [false; 4]);
        check("uint", [true, false, false, false]);
        check("(i8)x+int64_t", [false, true, true, false]);
        check("i8x16 uint2 _b8 bint64_t i16", [false; 4]);
        check("  b8;\nuint* p; \u{e9}i8", [true, true, false, true]);
    }

    #[test]
    fn integers_are_cast_to_their_type() {
        for (value, dtype, want) in [
            (7, DType::I64, "(int64_t)7"),
            (-7, DType::I64, "(int64_t)-7"),
            (i128::from(i64::MAX), DType::U64, "(uint64_t)9223372036854775807"),
            (i128::from(u64::MAX), DType::U64, "(uint64_t)18446744073709551615ull"),
            (-128, DType::I8, "(signed char)-128"),
            (-3, DType::I32, "-3"),
        ] {
            assert_eq!(Cuda.int_literal(value, dtype).text, want);
        }
    }

    #[test]
    fn floats_have_six_decimals_or_as_many_as_they_need() {
        for (value, ty, want) in [
            (0.0, CTy::F32, "0.000000e+00f"),
            (-1.5, CTy::F32, "-1.500000e+00f"),
            (f64::from(1.0f32 / 3.0), CTy::F32, "3.3333334e-01f"),
            (std::f64::consts::PI, CTy::F64, "3.141592653589793e+00"),
            (1e300, CTy::F64, "1.000000e+300"),
            (f64::INFINITY, CTy::F32, "__uint_as_float(0x7f800000u)"),
            (f64::NEG_INFINITY, CTy::F64, "-__longlong_as_double(0x7ff0000000000000ll)"),
        ] {
            assert_eq!(Cuda.float_literal(value, ty).text, want);
        }
    }

    #[test]
    fn every_literal_of_f32_reads_back() {
        for step in 0..20_000u32 {
            let value = f32::from_bits(step.wrapping_mul(214_013).wrapping_add(2_531_011));
            if value.is_finite() {
                let text = Cuda.float_literal(f64::from(value), CTy::F32).text;
                assert_eq!(
                    text.trim_end_matches('f').parse::<f32>().unwrap().to_bits(),
                    value.to_bits(),
                    "{text}"
                );
            }
        }
    }
}
