//! Properties of kernels for GPUs, V20, V21 and V23 to V37: for each a text that has it and one that has not, and the
//! comment that stands under the faulty line.

mod async_copies;
mod clusters;
mod lanes;
mod stores;

use std::collections::BTreeSet;

use coulis_ir::Target;
use coulis_ir::verify::{FIRST_FOR_A_TARGET, Property, properties, verify_for};
use coulis_script::parse_module;

/// A body in a kernel of a 64-element `A` and `B`, an `n` by `m` array `M` and a `C` of one uint32.
fn kernel(body: &str) -> String {
    let mut text = String::from(
        "@T.prim_func\ndef f(M_ptr: T.handle, A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\"), C: T.Buffer((1,), \"uint32\")):\n    n, m = T.int32(is_size_var=True), T.int32(is_size_var=True)\n    M = T.match_buffer(M_ptr, (n * m,))\n",
    );
    for line in body.lines() {
        text.push_str("    ");
        text.push_str(line.strip_prefix("        ").unwrap_or(line));
        text.push('\n');
    }
    text
}

/// Verifies for sm_90a and compares each fault, `V27: message`, with the line above its comment.
#[track_caller]
fn check(what: &str, body: &str, wanted: &[(&str, &str)]) -> BTreeSet<String> {
    let text = kernel(body);
    let mut kernels = parse_module(&text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
    let target = Target::cuda("sm_90a").expect("a known architecture");
    let faults = match verify_for(kernels.remove(0), &target) {
        Ok(_) => {
            assert!(wanted.is_empty(), "{what}: accepted, wanted {wanted:?}\n{text}");
            return BTreeSet::new();
        }
        Err(faults) => faults,
    };
    let lines: Vec<&str> = faults.listing.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if let Some(fault) = line.strip_prefix("# ^^^^ error ") {
            let under = lines[..i].iter().rev().find(|l| !l.starts_with('#')).copied().unwrap_or_default();
            found.push((under, fault));
        }
    }
    assert_eq!(found, wanted, "{what}:\n{}", faults.listing);
    faults.faults.iter().map(|f| f.code.to_owned()).collect()
}

/// `(property, what, body, faults)`; an empty list of faults is a passing case.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const LAUNCHES: &[Case] = &[
    (
        "V23",
        "two launches, one after the other, over memory of both",
        r#"t = T.allocate([64], "float32", "global")
        with T.launch_thread("threadIdx.x", 64) as tx:
            t[tx] = A[tx]
        with T.launch_thread("threadIdx.x", 64) as ty:
            B[ty] = t[63 - ty]"#,
        &[],
    ),
    (
        "V23",
        "a store that no thread makes",
        "B[0] = T.float32(0)",
        &[(
            "B[0] = T.float32(0)",
            "V23: a store of `f` stands outside every launch; bind an axis of each stage to a block or thread index",
        )],
    ),
    (
        "V23",
        "a launch inside a loop",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        for i in range(4):
            with T.launch_thread("threadIdx.x", 8) as tx:
                B[bx * 32 + i * 8 + tx] = T.float32(0)"#,
        &[(
            "tx = T.launch_thread(\"threadIdx.x\", 8)",
            "V23: `threadIdx.x` of `f` is launched inside other statements of a device kernel",
        )],
    ),
    ("V24", "64 threads along z", "tz = T.launch_thread(\"threadIdx.z\", 64)\nB[tz] = A[tz]", &[]),
    (
        "V24",
        "65 threads along z",
        r#"tz = T.launch_thread("threadIdx.z", 65)
        if tz < 64:
            B[tz] = A[tz]"#,
        &[("tz = T.launch_thread(\"threadIdx.z\", 65)", "V24: `threadIdx.z` has at most 64 values, got 65")],
    ),
    (
        "V24",
        "70000 blocks along y",
        r#"by = T.launch_thread("blockIdx.y", 70000)
        if by < 64:
            B[by] = A[by]"#,
        &[(
            "by = T.launch_thread(\"blockIdx.y\", 70000)",
            "V24: `blockIdx.y` has at most 65535 values, got 70000",
        )],
    ),
    (
        "V20",
        "2048 threads",
        r#"tx = T.launch_thread("threadIdx.x", 512)
        ty = T.launch_thread("threadIdx.y", 4)
        if tx * 4 + ty < 64:
            B[tx * 4 + ty] = A[tx * 4 + ty]"#,
        &[("ty = T.launch_thread(\"threadIdx.y\", 4)", "V20: a block has at most 1024 threads, got 2048")],
    ),
];

const MEMORY: &[Case] = &[
    (
        "V25",
        "48 KiB of shared memory",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        s = T.allocate([12288], "float32", "shared")
        s[tx] = A[tx]
        B[tx] = s[tx]"#,
        &[],
    ),
    (
        "V25",
        "48 KiB and 4 bytes of shared memory in two arrays",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        s = T.allocate([12288], "float32", "shared")
        t = T.allocate([1], "float32", "shared")
        s[tx] = A[tx]
        if tx == 0:
            t[0] = s[0]
        B[tx] = s[tx]"#,
        &[(
            "t = T.allocate([1], \"float32\", \"shared\")",
            "V25: a block has at most 49152 bytes of shared memory on sm_90a, and with `t` it has 49156",
        )],
    ),
    (
        "V25",
        "shared memory of n elements",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        s = T.allocate([n], "float32", "shared")
        s[tx] = A[tx]
        B[tx] = s[tx]"#,
        &[(
            "s = T.allocate([n], \"float32\", \"shared\")",
            "V25: shared memory has a constant size, and the extents of `s` are (n)",
        )],
    ),
    (
        "V26",
        "255 registers",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([255], "float32", "local")
        t[tx] = A[tx]
        B[tx] = t[tx]"#,
        &[],
    ),
    (
        "V26",
        "256 registers",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([256], "float32", "local")
        t[tx] = A[tx]
        B[tx] = t[tx]"#,
        &[(
            "t = T.allocate([256], \"float32\", \"local\")",
            "V26: the registers of a thread hold 1020 bytes on sm_90a, and with `t` its local memory has 1024",
        )],
    ),
    (
        "V26",
        "200 registers and 200 others when these are read no more",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([200], "float32", "local")
        u = T.allocate([200], "float32", "local")
        t[tx] = A[tx]
        B[tx] = t[tx]
        u[tx] = A[tx]
        B[tx] = u[tx]"#,
        &[],
    ),
    (
        "V26",
        "200 registers and 200 others at one time",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([200], "float32", "local")
        u = T.allocate([200], "float32", "local")
        t[tx] = A[tx]
        u[tx] = t[tx]
        B[tx] = u[tx]"#,
        &[(
            "u = T.allocate([200], \"float32\", \"local\")",
            "V26: the registers of a thread hold 1020 bytes on sm_90a, and with `u` its local memory has 1600",
        )],
    ),
    (
        "V26",
        "200 registers and 200 others that the next iteration may read",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([200], "float32", "local")
        u = T.allocate([200], "float32", "local")
        for k in range(m):
            t[tx] = A[tx]
            B[tx] = t[tx]
            u[tx] = A[tx]
            B[tx] = u[tx]"#,
        &[(
            "u = T.allocate([200], \"float32\", \"local\")",
            "V26: the registers of a thread hold 1020 bytes on sm_90a, and with `u` its local memory has 1600",
        )],
    ),
    (
        "V29",
        "a sum that starts at 0",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = T.float32(0)
        for k in range(m):
            t[0] = t[0] + M[tx * m + k]
        B[tx] = t[0]"#,
        &[],
    ),
    (
        "V29",
        "a sum that starts at nothing",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        for k in range(m):
            t[0] = t[0] + M[tx * m + k]
        B[tx] = t[0]"#,
        &[("t[0] = t[0] + M[tx * m + k]", "V29: `t[0]` is read, and nothing before writes it")],
    ),
    (
        "V29",
        "the second of two elements, of which the first is written",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([2], "float32", "local")
        t[0] = A[tx]
        B[tx] = t[0] + t[1]"#,
        &[("B[tx] = t[0] + t[1]", "V29: `t[1]` is read, and nothing before writes it")],
    ),
    (
        "V29",
        "what an earlier iteration leaves",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        for k in range(2):
            if k == 1:
                B[tx] = t[0]
            t[0] = A[tx]"#,
        &[],
    ),
];

#[test]
fn each_property_of_gpu_kernels_is_told_from_its_opposite() {
    let (mut passing, mut failing) = (BTreeSet::new(), BTreeSet::new());
    let cases = [
        LAUNCHES,
        MEMORY,
        stores::STORES,
        lanes::BARRIERS,
        lanes::LANES,
        clusters::CLUSTERS,
        async_copies::ASYNC_COPIES,
    ]
    .concat();
    for (property, what, body, wanted) in cases {
        let found = check(&format!("{property}, {what}"), body, wanted);
        if wanted.is_empty() {
            passing.insert(property);
        } else {
            assert!(found.contains(property), "{property}, {what}: {found:?}");
            failing.insert(property);
        }
    }
    for Property { id, .. } in properties().skip_while(|p| p.id != FIRST_FOR_A_TARGET) {
        assert!(passing.contains(id) && failing.contains(id), "{id} lacks a passing or a failing case");
    }
}

#[test]
fn a_target_with_smaller_blocks_has_its_own_limit() {
    let text = kernel("tx = T.launch_thread(\"threadIdx.x\", 64)\n        B[tx] = A[tx]");
    let kernels = parse_module(&text).unwrap();
    let mut target = Target::simulated(32);
    verify_for(kernels[0].clone(), &target).unwrap();
    target.block.threads = 32;
    let faults = verify_for(kernels[0].clone(), &target).unwrap_err();
    assert!(faults.to_string().ends_with("V20: a block has at most 32 threads on sim, got 64"), "{faults}");
}

#[test]
fn a_target_without_clusters_has_neither_their_launches_nor_their_barrier() {
    let text = kernel("cx = T.launch_thread(\"clusterCtaIdx.x\", 1)\n        T.cuda.cluster_sync()");
    let kernels = parse_module(&text).unwrap();
    verify_for(kernels[0].clone(), &Target::cuda("sm_90a").unwrap()).unwrap();
    let faults = verify_for(kernels[0].clone(), &Target::cuda("sm_89").unwrap()).unwrap_err();
    let found: Vec<&str> = faults.faults.iter().map(|f| f.message.as_str()).collect();
    assert_eq!(found, ["sm_89 has no clusters", "sm_89 has no clusters, whose barrier this is"]);
}

#[test]
fn the_listing_that_is_bound_to_threads_has_every_property() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/files/lower/listing_3_bound_to_threads.py");
    let kernels = parse_module(&std::fs::read_to_string(path).unwrap()).unwrap();
    for target in [Target::cuda("sm_80").unwrap(), Target::simulated(64)] {
        verify_for(kernels[0].clone(), &target).unwrap_or_else(|faults| panic!("{}", faults.listing));
    }
}
