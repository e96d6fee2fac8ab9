//! CUDA without a GPU: what NVRTC makes of texts, what is kept, and what is said where a part is missing.
//!
//! Tests that need NVRTC or the disassembler print SKIP with their names where `cargo xtask setup cuda` did not fetch them.

use std::time::Instant;

use coulis_ir::Target;
use coulis_runtime::cuda::nvrtc::spilled_bytes;
use coulis_runtime::cuda::{CudaCompiler, Format, LibraryName, Search, disassemble, probe};
use coulis_runtime::{Cuda, CudaError, CudaOptions, Environment, Origin};

/// The search of this process, if it finds NVRTC.
fn nvrtc(test: &str) -> Option<Search> {
    // These tests are about compiling, whatever the rest of the suite runs without.
    let environment = Environment { coulis_cuda_path: None, ..Environment::of_process() };
    let search = Search { environment, ..Search::default() };
    if let Err(error) = search.find_nvrtc() {
        println!("SKIP {test}: {error}");
        return None;
    }
    Some(search)
}

fn nowhere() -> CudaOptions {
    let environment = Environment { coulis_cuda_path: Some("/nonexistent".into()), ..Environment::default() };
    CudaOptions {
        driver: Some("/nonexistent/libcuda.so.1".into()),
        environment: Some(environment),
        ..CudaOptions::default()
    }
}

#[test]
fn without_a_driver_opening_a_gpu_says_what_is_missing_and_where_it_was_looked_for() {
    let error = Cuda::open(0, &nowhere()).map(|_| ()).unwrap_err();
    let CudaError::NotFound { library: LibraryName::Driver, looked } = &error else { panic!("{error}") };
    assert_eq!(looked.len(), 1);
    assert!(error.to_string().contains("/nonexistent"), "{error}");
    assert!(matches!(Cuda::all(&nowhere()), Err(CudaError::NotFound { .. })));
}

#[test]
fn without_nvrtc_compiling_says_what_is_missing_and_where_it_was_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (compiler, _) = CudaCompiler::open(&nowhere().search(), Some(&dir.path().join("c")));
    let error = compiler.cubin("k", "", "sm_90a").unwrap_err();
    assert!(matches!(error, CudaError::NotFound { library: LibraryName::Nvrtc, .. }), "{error}");
    let error = disassemble(&nowhere().search(), b"").unwrap_err();
    assert!(matches!(error, CudaError::NotFound { library: LibraryName::Disassembler, .. }), "{error}");
}

#[test]
fn a_library_that_is_no_driver_is_an_error_that_names_the_function_it_lacks() {
    let Some(search) = nvrtc("a_library_that_is_no_driver") else { return };
    // NVRTC in the driver's place: it loads, and has none of the functions.
    let (file, _) = search.find_nvrtc().unwrap();
    let options = CudaOptions { driver: Some(file), ..nowhere() };
    let error = Cuda::open(0, &options).map(|_| ()).unwrap_err();
    assert!(matches!(error, CudaError::MissingFunction { function: "cuInit", .. }), "{error}");
}

#[test]
fn every_probe_compiles_for_every_architecture() {
    let Some(search) = nvrtc("every_probe_compiles_for_every_architecture") else { return };
    let (compiler, _) = CudaCompiler::open(&search, None);
    for arch in Target::cuda_archs() {
        for (name, module) in probe::modules() {
            let (cubin, _) = compiler.cubin(name, &module.text, arch).unwrap();
            assert_eq!(&cubin[..4], b"\x7fELF", "{name} {arch}");
        }
    }
}

#[test]
fn texts_that_are_compiled_side_by_side_give_their_machine_code_in_order() {
    let Some(search) = nvrtc("texts_that_are_compiled_side_by_side") else { return };
    let dir = tempfile::tempdir().unwrap();
    let open = || CudaCompiler::open(&search, Some(&dir.path().join("c"))).0;
    let text = |n: usize| format!("extern \"C\" __global__ void part_{n}(int *a) {{ a[0] = {n}; }}");
    let texts: Vec<String> = (0..5).map(text).collect();
    let (codes, origin) = open().cubins("parts", &texts, "sm_90a").unwrap();
    assert_eq!((codes.len(), origin), (5, Origin::Compiled));
    for (n, code) in codes.iter().enumerate() {
        let name = format!("part_{n}");
        assert!(code.windows(name.len()).any(|window| window == name.as_bytes()), "{n}");
    }
    assert_eq!(open().cubins("parts", &texts, "sm_90a").unwrap(), (codes, Origin::Disk));
    let more = [texts[0].clone(), "extern \"C\" __global__ void f() { none(); }".to_owned()];
    let error = open().cubins("parts", &more, "sm_90a").unwrap_err();
    assert!(matches!(error, CudaError::Refused { .. }), "{error}");
}

#[test]
fn a_cubin_is_found_on_the_disk_without_loading_the_compiler() {
    let Some(search) = nvrtc("a_cubin_is_found_on_the_disk") else { return };
    let dir = tempfile::tempdir().unwrap();
    let open = || CudaCompiler::open(&search, Some(&dir.path().join("c"))).0;
    let (name, module) = probe::modules().swap_remove(0);
    let (first, origin) = open().cubin(name, &module.text, "sm_90a").unwrap();
    assert_eq!(origin, Origin::Compiled);
    let start = Instant::now();
    let (second, origin) = open().cubin(name, &module.text, "sm_90a").unwrap();
    println!("from the disk in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    assert_eq!((origin, &second), (Origin::Disk, &first));
    for (text, arch) in [(module.text.clone() + "\n", "sm_90a"), (module.text.clone(), "sm_80")] {
        assert_eq!(
            open().cubin(name, &text, arch).unwrap().1,
            Origin::Compiled,
            "another text or architecture"
        );
    }
}

/// Threads that keep 48 numbers, of which a multiprocessor is to hold so many that each has 32 registers; and of which it may hold
/// all without that.
#[test]
fn threads_that_would_spill_registers_have_more_of_them() {
    let Some(search) = nvrtc("threads_that_would_spill_registers") else { return };
    // Machine code that is kept names the folder in which it was compiled.
    let dir = tempfile::tempdir().unwrap();
    let (compiler, _) = CudaCompiler::open(&search, Some(&dir.path().join("c")));
    let nvrtc = compiler.load().unwrap();
    let text = |blocks: u32| {
        let bounds = format!("__launch_bounds__(256 RESIDENT({blocks}))");
        r##"#ifndef RESIDENT
#define RESIDENT(blocks) , blocks
#endif
#define EACH _Pragma("unroll") for (int j = 0; j < 48; ++j)
extern "C" __global__ void BOUNDS f(float* a, int n) {
  float s[48];
  EACH s[j] = a[j * 256 + threadIdx.x];
  for (int i = 0; i < n; ++i) EACH s[j] = s[j] * s[(j + 1) % 48] + a[i];
  EACH a[j * 256 + threadIdx.x] = s[j];
}
"##
        .replace("BOUNDS", &bounds)
    };
    let with = |text: &str, more: Option<&'static str>| {
        let options: Vec<&str> = CudaCompiler::options().into_iter().chain(more).collect();
        nvrtc.compile("f", text, "sm_90a", Format::Cubin, &options).unwrap()
    };
    let many = text(8);
    let (spilled, log) = with(&many, None);
    assert!(spilled_bytes(&log) > 128, "{log}");
    let (_, again) = with(&many, None);
    assert_eq!(spilled_bytes(&again), spilled_bytes(&log), "of a text that was compiled before: {again}");
    let (whole, log) = with(&many, Some(coulis_codegen::CUDA_WITHOUT_RESIDENT));
    assert_eq!(spilled_bytes(&log), 0, "{log}");
    let (found, _) = compiler.cubin("f", &many, "sm_90a").unwrap();
    assert!(found == whole && found != spilled);
    let few = text(2);
    assert!(compiler.cubin("f", &few, "sm_90a").unwrap().0 == with(&few, None).0);
}

#[test]
fn a_refused_text_is_told_with_its_line() {
    let Some(search) = nvrtc("a_refused_text_is_told_with_its_line") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (compiler, _) = CudaCompiler::open(&search, Some(&dir.path().join("c")));
    let text = "extern \"C\" __global__ void f(float* a) {\n  a[0] = missing(1);\n}\n";
    let error = compiler.cubin("f", text, "sm_90a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "NVRTC refused kernel `f` for sm_90a at line 2, `a[0] = missing(1);`: identifier \"missing\" is undefined"
    );
    let CudaError::Refused { line: Some(line), log, .. } = error else { panic!() };
    assert_eq!(line.number, 2);
    assert!(log.contains("f.cu(2)"));
}

#[test]
fn an_architecture_that_nvrtc_does_not_know_is_an_error() {
    let Some(search) = nvrtc("an_architecture_that_nvrtc_does_not_know") else { return };
    let (compiler, _) = CudaCompiler::open(&search, None);
    let error = compiler.cubin("f", "extern \"C\" __global__ void f() {}", "sm_35").unwrap_err();
    assert!(matches!(error, CudaError::Nvrtc { name: "NVRTC_ERROR_INVALID_OPTION", .. }), "{error}");
}

#[test]
fn ptx_and_disassembly_are_text() {
    let Some(search) = nvrtc("ptx_and_disassembly_are_text") else { return };
    let (compiler, _) = CudaCompiler::open(&search, None);
    let (name, module) = probe::modules().swap_remove(1);
    let ptx = compiler.ptx(name, &module.text, "sm_90a").unwrap();
    assert!(ptx.contains(".visible .entry sum_kernel") && ptx.contains("shfl.sync.down.b32"), "{ptx}");
    assert!(!ptx.contains('\0'));
    if let Err(error) = search.find_disassembler() {
        println!("SKIP ptx_and_disassembly_are_text: {error}");
        return;
    }
    let (cubin, _) = compiler.cubin(name, &module.text, "sm_90a").unwrap();
    let sass = disassemble(&search, &cubin).unwrap();
    assert!(sass.contains("SHFL.DOWN"), "{sass}");
    let error = disassemble(&search, b"no cubin").unwrap_err();
    assert!(matches!(error, CudaError::Disassembler { .. }), "{error}");
}

/// The kernel that adds pairs and takes extrema of three: one instruction each where the machine has it.
#[test]
fn pairs_and_three_inputs_are_one_instruction_where_the_machine_has_them() {
    let test = "pairs_and_three_inputs_are_one_instruction_where_the_machine_has_them";
    let Some(search) = nvrtc(test) else { return };
    if let Err(error) = search.find_disassembler() {
        println!("SKIP {test}: {error}");
        return;
    }
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/emit/cuda/three_inputs.cu");
    let text = std::fs::read_to_string(file).unwrap();
    let (compiler, _) = CudaCompiler::open(&search, None);
    for (arch, want) in [("sm_90a", [0; 2]), ("sm_100a", [2, 2]), ("sm_103a", [2, 2])] {
        let (cubin, _) = compiler.cubin("three_inputs", &text, arch).unwrap();
        let sass = disassemble(&search, &cubin).unwrap();
        let found = ["FADD2 ", "FMNMX3.NAN "].map(|name| sass.matches(name).count());
        assert_eq!(found, want, "{arch}\n{sass}");
    }
}

#[test]
fn probes_pass_on_the_first_gpu() {
    match Cuda::open(0, &CudaOptions::default()) {
        Err(error) => println!("SKIP probes_pass_on_the_first_gpu: {error}"),
        Ok((cuda, _)) => {
            for probe in probe::PROBES {
                (probe.run)(&cuda).unwrap_or_else(|error| panic!("{}: {error}", probe.name));
            }
        }
    }
}

/// Every frozen CUDA text, for every architecture that has what it uses. Cubins are kept by the hash of their
/// text, so that only a text that changed costs time.
#[test]
fn every_frozen_text_compiles_for_every_architecture() {
    let Some(search) = nvrtc("every_frozen_text_compiles_for_every_architecture") else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/emit/cuda");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "cu") {
            let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
            texts.push((name, std::fs::read_to_string(entry.path()).unwrap()));
        }
    }
    assert!(!texts.is_empty());
    let (compiler, _) = CudaCompiler::open(&search, None);
    std::thread::scope(|scope| {
        for arch in Target::cuda_archs() {
            let (texts, compiler) = (&texts, &compiler);
            let has_clusters = Target::cuda(arch).unwrap().cluster_blocks > 1;
            scope.spawn(move || {
                for (name, text) in
                    texts.iter().filter(|(_, t)| has_clusters || !t.contains("__cluster_dims__"))
                {
                    if let Err(error) = compiler.cubin(name, text, arch) {
                        panic!("{name}: {error}");
                    }
                }
            });
        }
    });
}
