//! Small kernels that use everything the GPU dialects spell: each operation, function, conversion, vector width and
//! atom on each type. Each has a twin of plain loops that the executor runs; the two are to give the same results.
//!
//! Buffers that are named `A...` are inputs, `O...` outputs; each has [`N`] elements. Memory `M...` starts as zeros and
//! is read and written.

use coulis_ir::DType;

/// Elements of each buffer, and threads of each launch.
pub const N: usize = 256;

/// A kernel and its twin, as text.
pub struct DeviceKernel {
    /// Name of both.
    pub name: String,
    /// For a machine with threads.
    pub device: String,
    /// For the executor.
    pub host: String,
    /// Units in the last place by which floats may differ: 0 for everything that is rounded once or is coulis' own.
    pub ulps: u32,
}

/// A buffer parameter.
type Param = (&'static str, DType);

fn kernel(
    name: &str,
    params: &[(String, DType)],
    device: &[String],
    host: &[String],
    ulps: u32,
) -> DeviceKernel {
    let head: Vec<String> = params.iter().map(|(p, d)| format!("{p}: T.Buffer(({N},), \"{d}\")")).collect();
    let head = format!("@T.prim_func\ndef {name}({}):\n", head.join(", "));
    let mut on_device = head.clone();
    on_device +=
        "    bx = T.launch_thread(\"blockIdx.x\", 4)\n    tx = T.launch_thread(\"threadIdx.x\", 64)\n";
    let mut on_host = head + "    for bx in range(4):\n        for tx in range(64):\n";
    for line in device {
        on_device += &format!("    {line}\n");
    }
    for line in host {
        on_host += &format!("            {line}\n");
    }
    DeviceKernel { name: name.to_owned(), device: on_device, host: on_host, ulps }
}

/// A kernel that stores one value a thread in each of several outputs: `(type, expression of A, B, C at i)`.
fn elementwise(name: &str, inputs: &[Param], outputs: &[(DType, String)], ulps: u32) -> DeviceKernel {
    let mut params: Vec<(String, DType)> = inputs.iter().map(|(n, d)| ((*n).to_owned(), *d)).collect();
    let mut lines = Vec::new();
    for (position, (dtype, value)) in outputs.iter().enumerate() {
        params.push((format!("O{position}"), *dtype));
        lines.push(format!("O{position}[bx * 64 + tx] = {value}"));
    }
    kernel(name, &params, &lines, &lines, ulps)
}

/// The 8-bit floats are stored, selected and converted, no more.
fn computes(dtype: DType) -> bool {
    !matches!(dtype, DType::F8E4M3 | DType::F8E5M2 | DType::Bool)
}

const A: &str = "A[bx * 64 + tx]";
const B: &str = "A1[bx * 64 + tx]";

/// Every kernel.
pub fn kernels() -> Vec<DeviceKernel> {
    let mut all = Vec::new();
    for dtype in DType::ALL {
        all.push(casts(dtype));
        all.push(choices(dtype));
        for lanes in [2, 3, 4, 8, 16] {
            all.push(vectors(dtype, lanes));
        }
        all.push(shuffles(dtype));
        all.push(clusters(dtype));
        if computes(dtype) {
            all.push(arithmetic(dtype));
            all.push(functions(dtype));
            if dtype.is_float() {
                all.push(exponentials(dtype));
                all.push(libraries(dtype));
            }
        }
    }
    all.extend([DType::I32, DType::U32, DType::I64, DType::U64, DType::F32, DType::F64].map(atomics));
    all.extend([DType::Bool, DType::I8, DType::U8].map(flags));
    all.push(votes());
    all.push(staging());
    all.push(sized_at_launch());
    all.push(named_barriers());
    all.push(wide_indices());
    all.push(unrolled());
    all
}

fn casts(from: DType) -> DeviceKernel {
    let outputs: Vec<(DType, String)> = DType::ALL
        .into_iter()
        .filter(|to| *to != from)
        .map(|to| (to, format!("T.Cast(\"{to}\", {A})")))
        .collect();
    elementwise(&format!("cast_{}", from.short_name()), &[("A", from)], &outputs, 0)
}

fn choices(dtype: DType) -> DeviceKernel {
    let first = if computes(dtype) { format!("{A} < {B}") } else { "tx % 3 == 0".to_owned() };
    let mut outputs = vec![
        (dtype, format!("T.Select({first}, {A}, {B})")),
        (dtype, format!("T.if_then_else(tx + bx * 64 < 255, A[bx * 64 + tx + 1], {A})")),
        (DType::Bool, format!("tx > 3 and not ({first}) or bx == 1")),
    ];
    if dtype == DType::Bool {
        outputs.push((dtype, format!("{A} and {B} or not {A}")));
        outputs.push((dtype, format!("{A} == {B}")));
    }
    elementwise(&format!("choice_{}", dtype.short_name()), &[("A", dtype), ("A1", dtype)], &outputs, 0)
}

fn arithmetic(dtype: DType) -> DeviceKernel {
    let mut outputs: Vec<(DType, String)> =
        ["+", "-", "*"].iter().map(|op| (dtype, format!("{A} {op} {B}"))).collect();
    for op in ["min", "max"] {
        outputs.push((dtype, format!("T.{op}({A}, {B})")));
    }
    for op in ["==", "!=", "<", "<=", ">", ">="] {
        outputs.push((DType::Bool, format!("{A} {op} {B}")));
    }
    if dtype.is_float() {
        outputs.push((dtype, format!("{A} / {B}")));
        outputs.push((dtype, format!("{A} * {B} + {A}")));
    } else {
        let divisor = format!("T.Select({B} == T.{dtype}(0), T.{dtype}(7), {B})");
        for op in ["truncdiv", "truncmod", "floordiv", "floormod"] {
            outputs.push((dtype, format!("T.{op}({A}, {divisor})")));
            outputs.push((dtype, format!("T.{op}({A}, T.{dtype}(10))")));
            outputs.push((dtype, format!("T.{op}({A}, T.{dtype}(16))")));
        }
        for op in ["bitwise_and", "bitwise_or", "bitwise_xor"] {
            outputs.push((dtype, format!("T.{op}({A}, {B})")));
        }
        for op in ["shift_left", "shift_right"] {
            outputs.push((dtype, format!("T.{op}({A}, T.bitwise_and({B}, T.{dtype}(7)))")));
            // By the width and more, and by negative amounts.
            outputs.push((dtype, format!("T.{op}({A}, {B})")));
            outputs.push((dtype, format!("T.{op}({A}, T.floormod({B}, T.{dtype}(70)))")));
        }
        outputs.push((dtype, format!("T.Cast(\"{dtype}\", tx) * {A} + T.{dtype}(100)")));
    }
    elementwise(&format!("arithmetic_{}", dtype.short_name()), &[("A", dtype), ("A1", dtype)], &outputs, 0)
}

/// Functions whose results are the executor's to the bit.
fn functions(dtype: DType) -> DeviceKernel {
    let mut outputs = vec![(dtype, format!("T.fabs({A})"))];
    if dtype.is_float() {
        let whole = ["floor", "ceil", "round", "trunc", "nearbyint"];
        outputs.extend(whole.iter().map(|f| (dtype, format!("T.{f}({A})"))));
        outputs.extend(["isnan", "isinf", "isfinite"].iter().map(|f| (DType::Bool, format!("T.{f}({A})"))));
        outputs.extend(["log", "sigmoid", "sqrt", "rsqrt"].iter().map(|f| (dtype, format!("T.{f}({A})"))));
        outputs.push((dtype, format!("T.fmod({A}, {B})")));
        outputs.push((dtype, format!("T.fma({A}, {B}, {A})")));
        let third = "A[255 - bx * 64 - tx]";
        outputs.extend(["max3", "min3"].iter().map(|f| (dtype, format!("T.{f}({A}, {B}, {third})"))));
    } else {
        outputs.push((dtype, format!("T.popcount({A})")));
    }
    elementwise(&format!("functions_{}", dtype.short_name()), &[("A", dtype), ("A1", dtype)], &outputs, 0)
}

/// The exponential by a power of two, which may be the machine's: two that err by 2 ulp at most.
fn exponentials(dtype: DType) -> DeviceKernel {
    let outputs = vec![(dtype, format!("T.exp({A})"))];
    elementwise(&format!("exponentials_{}", dtype.short_name()), &[("A", dtype), ("A1", dtype)], &outputs, 4)
}

/// Functions that come from the machine's library.
fn libraries(dtype: DType) -> DeviceKernel {
    let mut outputs: Vec<(DType, String)> = ["exp2", "log2", "tanh", "erf", "sin", "cos"]
        .iter()
        .map(|f| (dtype, format!("T.{f}({A})")))
        .collect();
    outputs.push((dtype, format!("T.pow({A}, {B})")));
    elementwise(&format!("libraries_{}", dtype.short_name()), &[("A", dtype), ("A1", dtype)], &outputs, 4)
}

/// Contiguous, strided and reversed vectors; sums of floats take the paired instruction where there is one.
fn vectors(dtype: DType, lanes: usize) -> DeviceKernel {
    let at = |stride: i32, base: &str| format!("T.Ramp({base}, {stride}, {lanes})");
    let name = format!("vector_{}x{lanes}", dtype.short_name());
    let last = N / lanes;
    let spelled = format!("bx * 64 + tx < {last}");
    let first = format!("(bx * 64 + tx) * {lanes}");
    let (whole, back) = (at(1, &first), at(-1, &format!("{first} + {}", lanes - 1)));
    let spread = at(last as i32, "bx * 64 + tx");
    let sum = match dtype {
        d if computes(d) => format!("A[{whole}] + A1[{whole}] + A[{back}]"),
        _ => format!("T.Select(T.Broadcast(tx % 2 == 0, {lanes}), A[{whole}], A1[{back}])"),
    };
    let lines = vec![
        format!("if {spelled}:"),
        format!("    O0[{whole}] = {sum}"),
        format!("    O1[{spread}] = A[{whole}]"),
        format!("    O2[{back}] = A1[{spread}]"),
    ];
    let params: Vec<(String, DType)> =
        ["A", "A1", "O0", "O1", "O2"].iter().map(|p| ((*p).to_owned(), dtype)).collect();
    kernel(&name, &params, &lines, &lines, 0)
}

/// Vectors that only ask whether bytes are zero, and a copy of them.
fn flags(dtype: DType) -> DeviceKernel {
    let place = "T.Ramp((bx * 64 + tx) * 8, 1, 8)";
    let all = |value: String| format!("T.Broadcast({value}, 8)");
    let is_set = match dtype {
        DType::Bool => format!("A[{place}]"),
        _ => format!("A[{place}] != {}", all(format!("T.{dtype}(0)"))),
    };
    let of = |to: DType, set: i32| {
        let (set, zero) = (all(format!("T.{to}({set})")), all(format!("T.{to}(0)")));
        (to, format!("T.Select({is_set}, {set}, {zero})"))
    };
    let mut outputs =
        vec![of(DType::I8, -1), of(DType::I32, 1), of(DType::I64, -1), of(DType::U8, 1), of(DType::U64, 1)];
    outputs.push((dtype, format!("A[{place}]")));
    let is_flag = dtype == DType::Bool;
    outputs.extend(is_flag.then(|| (DType::I16, format!("T.Cast(\"int16x8\", A[{place}])"))));
    let mut params = vec![("A".to_owned(), dtype)];
    let mut lines = vec!["if bx * 64 + tx < 32:".to_owned()];
    for (position, (to, value)) in outputs.into_iter().enumerate() {
        params.push((format!("O{position}"), to));
        lines.push(format!("    O{position}[{place}] = {value}"));
    }
    kernel(&format!("flags_{}", dtype.short_name()), &params, &lines, &lines, 0)
}

fn shuffles(dtype: DType) -> DeviceKernel {
    let place = "bx * 64 + tx";
    let full = "T.uint32(4294967295)";
    let half = "T.shift_left(T.uint32(65535), T.Cast(\"uint32\", tx // 16 % 2 * 16))";
    let mut device = vec![format!("r = T.allocate([1], \"{dtype}\", \"local\")")];
    let mut host = Vec::new();
    let cases = [
        ("down", full, "8", 32, "tx % 32 + 8 < 32", "tx + 8"),
        ("down", half, "4", 16, "tx % 16 + 4 < 16", "tx + 4"),
        ("up", full, "3", 32, "tx % 32 >= 3", "tx - 3"),
        ("xor", full, "5", 32, "tx >= 0", "tx // 32 * 32 + T.bitwise_xor(tx % 32, 5)"),
        ("", half, "tx * 16", 32, "tx >= 0", "tx // 32 * 32 + tx * 16 % 32"),
    ];
    let mut params = vec![("A".to_owned(), dtype)];
    for (position, (kind, mask, lane, width, inside, from)) in cases.iter().enumerate() {
        let suffix = if kind.is_empty() { String::new() } else { format!("_{kind}") };
        device.push(format!("r[0] = T.tvm_warp_shuffle{suffix}({mask}, A[{place}], {lane}, {width}, 32)"));
        device.push(format!("O{position}[{place}] = r[0]"));
        host.push(format!(
            "O{position}[{place}] = T.if_then_else({inside}, A[bx * 64 + ({from})], A[{place}])"
        ));
        params.push((format!("O{position}"), dtype));
    }
    // The last one takes lanes of the other half, so it names all.
    if let Some(line) = device.iter_mut().find(|line| line.contains("shuffle(")) {
        *line = line.replace(half, full);
    }
    kernel(&format!("shuffle_{}", dtype.short_name()), &params, &device, &host, 0)
}

/// Each block reads what the next one of its cluster holds.
fn clusters(dtype: DType) -> DeviceKernel {
    let device = [
        "cx = T.launch_thread(\"clusterCtaIdx.x\", 2)".to_owned(),
        format!("s = T.allocate([64], \"{dtype}\", \"shared\")"),
        format!("r = T.allocate([1], \"{dtype}\", \"local\")"),
        "s[tx] = A[bx * 64 + tx]".to_owned(),
        "T.cuda.cluster_sync()".to_owned(),
        "r[0] = T.cuda.cluster_load(s[63 - tx], 1 - cx)".to_owned(),
        "T.cuda.cluster_sync()".to_owned(),
        "O0[bx * 64 + tx] = r[0]".to_owned(),
    ];
    let host = ["O0[bx * 64 + tx] = A[(bx // 2 * 2 + 1 - bx % 2) * 64 + 63 - tx]".to_owned()];
    let params = [("A".to_owned(), dtype), ("O0".to_owned(), dtype)];
    kernel(&format!("cluster_{}", dtype.short_name()), &params, &device, &host, 0)
}

/// Sums of ones and extrema of small numbers, which do not depend on the order.
fn atomics(dtype: DType) -> DeviceKernel {
    let one = format!("T.{dtype}(1)");
    let value = format!("T.Cast(\"{dtype}\", bx * 64 + tx)");
    let device = vec![
        format!("r = T.allocate([1], \"{dtype}\", \"local\")"),
        format!("T.cuda.atomic_add(M[tx % 3], {one})"),
        format!("T.cuda.atomic_max(M[3], {value})"),
        format!("T.cuda.atomic_min(M[4], {value} - T.{dtype}(0))"),
        format!("r[0] = T.cuda.atomic_exch(M[5 + bx * 2 + tx // 2 % 2], {value} - {value})"),
        format!("r[0] = T.cuda.atomic_cas(M[16 + tx], r[0], T.Cast(\"{dtype}\", tx))"),
        "T.cuda.thread_fence()".to_owned(),
    ];
    let host = vec![
        format!("M[tx % 3] = M[tx % 3] + {one}"),
        format!("M[3] = T.max(M[3], {value})"),
        format!("M[16 + tx] = T.Cast(\"{dtype}\", tx)"),
    ];
    kernel(&format!("atomic_{}", dtype.short_name()), &[("M".to_owned(), dtype)], &device, &host, 0)
}

fn votes() -> DeviceKernel {
    let params = [("A", DType::I32), ("O0", DType::U32), ("O1", DType::Bool), ("O2", DType::Bool)];
    let params: Vec<(String, DType)> = params.iter().map(|(n, d)| ((*n).to_owned(), *d)).collect();
    let full = "T.uint32(4294967295)";
    let device = [
        "m = T.allocate([1], \"uint32\", \"local\")".to_owned(),
        "v = T.allocate([1], \"bool\", \"local\")".to_owned(),
        format!("m[0] = T.cuda.ballot_sync({full}, tx % 3 == 0)"),
        "O0[bx * 64 + tx] = m[0]".to_owned(),
        format!("v[0] = T.cuda.any_sync({full}, tx == 5)"),
        "O1[bx * 64 + tx] = v[0]".to_owned(),
        format!("v[0] = T.cuda.all_sync({full}, tx < 40)"),
        "O2[bx * 64 + tx] = v[0]".to_owned(),
    ];
    let host = [
        "O0[bx * 64 + tx] = T.Select(tx < 32, T.uint32(1227133513), T.uint32(2454267026))".to_owned(),
        "O1[bx * 64 + tx] = tx < 32".to_owned(),
        "O2[bx * 64 + tx] = tx < 32".to_owned(),
    ];
    kernel("votes", &params, &device, &host, 0)
}

fn reversal(name: &str, scope: &str, barrier: &str) -> DeviceKernel {
    let params = [("A".to_owned(), DType::F32), ("O0".to_owned(), DType::F32)];
    let device = [
        format!("s = T.allocate([64], \"float32\", \"{scope}\")"),
        format!("t = T.allocate([64], \"float32\", \"{scope}\")"),
        "s[tx] = A[bx * 64 + tx]".to_owned(),
        "t[63 - tx] = A[bx * 64 + tx]".to_owned(),
        barrier.to_owned(),
        "O0[bx * 64 + tx] = s[63 - tx] + t[tx]".to_owned(),
    ];
    let host = ["O0[bx * 64 + tx] = A[bx * 64 + 63 - tx] + A[bx * 64 + 63 - tx]".to_owned()];
    kernel(name, &params, &device, &host, 0)
}

fn staging() -> DeviceKernel {
    reversal("staging", "shared", "T.cuda.cta_sync()")
}

fn sized_at_launch() -> DeviceKernel {
    reversal("sized_at_launch", "shared.dyn", "T.cuda.cta_sync()")
}

fn named_barriers() -> DeviceKernel {
    reversal("named_barriers", "shared", "T.cuda.named_barrier_sync(3, 64)")
}

/// Indices of 64 bits, quotients of what is not negative and of what may be.
fn wide_indices() -> DeviceKernel {
    let i = "T.Cast(\"int64\", bx * 64 + tx)";
    let outputs = vec![
        (DType::I64, format!("{i} * T.int64(4294967296) // T.int64(12345)")),
        (DType::I64, format!("(T.int64(5) - {i}) // T.int64(3)")),
        (DType::I64, format!("(T.int64(5) - {i}) % T.int64(3)")),
        (DType::F32, format!("A[({i} * T.int64(5) + T.int64(3)) % T.int64({N})]")),
        (DType::I32, "(bx * 64 + tx) // 7 * 100000 + (bx * 64 + tx) % 7".to_owned()),
        (DType::I32, "(bx * 64 + tx) * 16777259".to_owned()),
    ];
    elementwise("wide_indices", &[("A", DType::F32)], &outputs, 0)
}

fn unrolled() -> DeviceKernel {
    let params = [("A".to_owned(), DType::F32), ("O0".to_owned(), DType::F32)];
    let lines = [
        "acc = T.allocate([4], \"float32\", \"local\")".to_owned(),
        "for u in T.unroll(4):".to_owned(),
        "    acc[u] = T.float32(0)".to_owned(),
        "for k in range(8):".to_owned(),
        "    for u in T.unroll(4):".to_owned(),
        "        acc[u] = acc[u] + A[(bx * 64 + tx + k * 4 + u) % 256]".to_owned(),
        "O0[bx * 64 + tx] = acc[0] + acc[1] + (acc[2] + acc[3])".to_owned(),
    ];
    kernel("unrolled", &params, &lines, &lines, 0)
}
