//! Whole CUDA texts of kernels in text form, frozen. `BLESS=1` writes them anew; read every line before you keep one.

#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "the twins are run by the tests of devices")]
mod device_kernels;

use std::fs;
use std::path::{Path, PathBuf};

use coulis_codegen::{EmitError, KernelArg, Module, Options, dialect_named, emit, emit_module};
use coulis_ir::verify::verify;
use coulis_script::parse_module;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/emit/cuda")
}

#[track_caller]
fn emitted(text: &str) -> Result<Module, EmitError> {
    let kernel = parse_module(text).unwrap_or_else(|error| panic!("{error}")).remove(0);
    let checked = verify(kernel).unwrap_or_else(|faults| panic!("{faults}"));
    emit_module(&checked, dialect_named("cuda").unwrap())
}

/// Listing 6 of seed 003 as lowering gives it.
fn listing_6() -> PathBuf {
    folder().join("../../lower/listing_6_cross_thread.py")
}

/// The text of listing 6 and of each kernel in the folder is what stands in the folder.
#[test]
fn every_kernel_of_the_folder_is_emitted_as_frozen() {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "py"));
    files.push(listing_6());
    files.sort();
    let mut differing = Vec::new();
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        let module = emitted(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(module.text, emitted(&source).unwrap().text, "the same input gives the same text");
        let frozen = folder().join(path.with_extension("cu").file_name().unwrap());
        if std::env::var_os("BLESS").is_some() {
            fs::write(&frozen, &module.text).unwrap();
        }
        if fs::read_to_string(&frozen).unwrap_or_default() != module.text {
            differing.push(format!("{}:\n{}", frozen.display(), module.text));
        }
    }
    assert!(differing.is_empty(), "these differ; BLESS=1 writes\n{}", differing.join("\n"));
}

#[test]
fn a_launch_lists_its_arguments_in_the_order_of_the_parameters() {
    let source = fs::read_to_string(listing_6()).unwrap();
    let module = emitted(&source).unwrap();
    let [launch] = module.kernels.as_slice() else { panic!("{:?}", module.kernels) };
    let args: Vec<String> = launch
        .args
        .iter()
        .map(|arg| match arg {
            KernelArg::Parameter(position) => format!("parameter {position}"),
            KernelArg::Temporary(position) => format!("temporary {position}"),
            KernelArg::Scalar { value, dtype } => format!("{dtype} {}", value.as_var().unwrap().name()),
        })
        .collect();
    let want =
        ["parameter 0", "parameter 1", "int32 m", "int32 n", "int32 stride", "int32 stride", "int32 stride"];
    assert_eq!(args, want);
    assert_eq!(launch.block.each_ref().map(|e| e.as_int()), [Some(16), Some(32), Some(1)]);
    assert!(launch.grid[0].as_int().is_none() && launch.grid[1].is_int(1));
    assert!(launch.dynamic_shared_bytes.is_int(0));
    assert_eq!(module.alignments, [4, 4]);
}

#[test]
fn everything_that_the_dialect_spells_is_emitted() {
    let mut refused = Vec::new();
    for kernel in device_kernels::kernels() {
        let parsed = parse_module(&kernel.device).map(|mut kernels| kernels.remove(0));
        let checked = parsed.map_err(|e| e.to_string()).and_then(|k| verify(k).map_err(|e| e.to_string()));
        let emitted =
            checked.and_then(|k| emit_module(&k, dialect_named("cuda").unwrap()).map_err(|e| e.to_string()));
        let module = match emitted {
            Ok(module) => module,
            Err(error) => {
                refused.push(format!("{}: {error}\n{}", kernel.name, kernel.device));
                continue;
            }
        };
        if let Some(folder) = std::env::var_os("COULIS_DUMP") {
            fs::write(Path::new(&folder).join(kernel.name + ".cu"), module.text).unwrap();
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[track_caller]
fn check_refused(text: &str, want: &str) {
    let error = emitted(text).map(|module| module.text).unwrap_err();
    assert_eq!(error.to_string(), want);
}

#[test]
fn what_the_machine_has_not_is_refused_by_name() {
    let around = |body: &str| {
        format!(
            "@T.prim_func\ndef f(A: T.Buffer((64,), \"uint64\"), H: T.Buffer((64,), \"float16\"), n: T.int32):\n    \
             tx = T.launch_thread(\"threadIdx.x\", 64)\n{body}"
        )
    };
    let wide_mask = "    A[tx] = T.tvm_warp_shuffle(T.uint64(18446744073709551615), A[tx], 0, 64, 64)\n";
    check_refused(&around(wide_mask), "dialect `cuda` has no `T.tvm_warp_shuffle` with a mask of uint64");
    let half = "    T.cuda.atomic_add(H[tx], T.float16(1))\n";
    check_refused(&around(half), "dialect `cuda` has no `T.cuda.atomic_add` of `float16`");
    let sized = "    x = T.allocate([n], \"uint64\", \"local\")\n    x[0] = A[tx]\n    A[tx] = x[0]\n";
    check_refused(&around(sized), "dialect `cuda` has no array `x` of a size that is not constant");
    let global = "    x = T.allocate([4], \"uint64\", \"global\")\n    x[0] = A[tx]\n    A[tx] = x[0]\n";
    check_refused(&around(global), "dialect `cuda` has no `global` memory inside a launch (buffer `x`)");
}

#[test]
fn a_kernel_without_launches_is_refused_and_each_dialect_keeps_to_its_machine() {
    let text = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.float32(1)\n";
    check_refused(
        text,
        "a store of `f` stands outside every launch; bind an axis of each stage to a block or thread index",
    );
    let kernel = verify(parse_module(text).unwrap().remove(0)).unwrap();
    let refused = emit(
        &kernel,
        dialect_named("cuda").unwrap(),
        Options { vector_bytes: 16, widens_from_memory: false, ends_early: false },
    )
    .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "dialect `cuda` has no functions for a CPU; it gives modules of launches"
    );
    let launches = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    \
                    tx = T.launch_thread(\"threadIdx.x\", 4)\n    A[tx] = T.float32(1)\n";
    let kernel = verify(parse_module(launches).unwrap().remove(0)).unwrap();
    let refused = emit_module(&kernel, dialect_named("c").unwrap()).unwrap_err();
    assert_eq!(refused.to_string(), "dialect `c` has no launches; it gives functions for a CPU");
}

#[test]
fn wide_products_of_values_from_memory_are_not_looked_into() {
    let text = "@T.prim_func\ndef f(A: T.Buffer((32,), \"int8\"), B: T.Buffer((32,), \"int64\")):\n    \
                tx = T.launch_thread(\"threadIdx.x\", 32)\n    \
                B[tx] = T.Cast(\"int64\", A[tx]) * T.Cast(\"int64\", A[tx])\n";
    let module = emitted(text).unwrap();
    assert!(module.text.contains("asm(\"mul.lo.s64 %0, %1, %2;\""), "{}", module.text);
    assert!(module.text.contains("= cx_product_i64("), "{}", module.text);
    let widened = text.replace(
        "T.Cast(\"int64\", A[tx]) * T.Cast(\"int64\", A[tx])",
        "T.Cast(\"int64\", T.Cast(\"int32\", A[tx]) * T.Cast(\"int32\", A[tx]))",
    );
    let module = emitted(&widened).unwrap();
    assert!(module.text.contains("asm(\"mul.lo.s32 %0, %1, %2;\""), "{}", module.text);
    assert!(module.text.contains("((int64_t)cx_product_i32("), "{}", module.text);
}

#[test]
fn temporaries_are_listed_with_their_sizes_and_whether_they_start_as_zeros() {
    let source = fs::read_to_string(folder().join("last_block.py")).unwrap();
    let module = emitted(&source).unwrap();
    let listed: Vec<_> =
        module.temporaries.iter().map(|t| (&*t.buffer.name, t.bytes.as_int(), t.zeroed)).collect();
    assert_eq!(listed, [("partial", Some(64), false), ("tickets", Some(4), true)]);
    assert!(!module.text.contains("__restrict__"), "`partial` is read and written");
}

#[test]
fn words_ask_for_the_alignment_of_what_they_read() {
    let source = fs::read_to_string(folder().join("half_vectors.py")).unwrap();
    assert_eq!(emitted(&source).unwrap().alignments, [16, 16]);
}

#[test]
fn the_parts_of_a_module_are_its_functions_on_lines_of_their_own() {
    let source = fs::read_to_string(folder().join("second_kernel.py")).unwrap();
    let module = emitted(&source).unwrap();
    let parts = module.parts();
    assert_eq!((parts.len(), module.kernels.len()), (2, 2));
    let whole: Vec<&str> = module.text.lines().collect();
    let first = whole.iter().position(|line| line.starts_with("extern")).unwrap();
    let mut seen = vec![0; whole.len()];
    for (part, kernel) in parts.iter().zip(&module.kernels) {
        assert_eq!(part.matches("__global__").count(), 1);
        assert!(part.contains(&format!(" {}(", kernel.name)), "{part}");
        for (nth, line) in part.lines().enumerate() {
            assert!(line.is_empty() || line == whole[nth], "line {nth}: {line}");
            seen[nth] += usize::from(!line.is_empty());
        }
    }
    for (nth, line) in whole.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        assert_eq!(seen[nth], if nth < first { 2 } else { 1 }, "line {nth}: {line}");
    }
    let alone = emitted(&fs::read_to_string(listing_6()).unwrap()).unwrap();
    assert_eq!(alone.parts(), [alone.text]);
}

#[test]
fn compilers_leave_rolled_loops_and_loops_of_many_branches_whole() {
    let around = |body: &str| {
        let text = format!(
            "@T.prim_func\ndef f(A: T.Buffer((64,), \"int32\")):\n    \
             tx = T.launch_thread(\"threadIdx.x\", 64)\n{body}"
        );
        emitted(&text).unwrap().text
    };
    let rolled = "    with T.attr(None, \"rolled\", T.bool(True)):\n        for k in range(5):\n            A[tx] = A[tx] + k\n";
    let plain = "    for k in range(5):\n        A[tx] = A[tx] + k\n";
    assert!(
        around(rolled).contains("  #pragma unroll 1\n  for (int k = 0; k < 5; ++k) {"),
        "{}",
        around(rolled)
    );
    assert!(!around(plain).contains("#pragma"), "{}", around(plain));
    let branches = |n: usize| {
        let one = "        if A[tx] > k:\n            A[tx] = A[tx] + k\n";
        around(&format!("    for k in range(5):\n{}", one.repeat(n)))
    };
    assert!(branches(16).contains("#pragma unroll 1") && !branches(15).contains("#pragma"));
}
