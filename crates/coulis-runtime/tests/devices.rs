//! Devices: both run random kernels to the same bits; faults are typed errors; the cache serves and heals.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coulis_ir::args::{ArgInfo, ArrayInfo, Bindings, bind_args};
use coulis_ir::{Buffer, Checked, DType, Expr, Intrinsic, LoopKind, MemScope, Stmt, Var};
use coulis_runtime::{
    CompilerError, Cpu, CpuKind, CpuOptions, Device, Environment, Notice, Origin, RuntimeError,
};
use support::{Random, bits_of, device, encode, flat, launch};

fn int(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I64)
}

fn at(buffer: &Buffer, place: Expr) -> Expr {
    Expr::load(buffer.clone(), vec![place])
}

fn ramp(base: Expr, lanes: u32) -> Expr {
    Expr::ramp(base, int(1), lanes)
}

fn buffer(name: &str, dtype: DType, n: i64, scope: MemScope) -> Buffer {
    Buffer::new(name, dtype, vec![int(n)], scope)
}

fn executor() -> Arc<dyn Device> {
    let options = CpuOptions { kind: CpuKind::Executed, n_threads: Some(2), ..CpuOptions::default() };
    Cpu::open(&options).unwrap().0
}

/// A random kernel: rows in parallel, each with local state at constant places, some of it also at a place that is
/// computed, nested loops, branches, scalars and a temporary.
fn random_kernel(random: &mut Random) -> (Vec<Buffer>, Stmt) {
    let (rows, columns) = (4, 96);
    let lanes = [4u32, 8, 16, 12][random.below(4)];
    let wide = i64::from(lanes);
    let a = buffer("A", DType::F32, rows * columns, MemScope::Global);
    let b = buffer("B", DType::I32, rows * columns, MemScope::Global);
    let o = buffer("O", DType::F64, rows * 64, MemScope::Global);
    let p = buffer("P", DType::I64, rows * 64, MemScope::Global);
    let s = buffer("S", DType::F64, 64, MemScope::Local);
    let c = buffer("C", DType::I64, 64, MemScope::Local);
    let m = buffer("M", DType::Bool, 64, MemScope::Local);
    let (i, k) = (Var::size("i", DType::I64), Var::size("k", DType::I64));
    let row = || i.expr() * int(columns);
    let slots = 1 + random.below(3) as i64;
    let mut init = Vec::new();
    let mut step = Vec::new();
    for slot in 0..slots {
        let place = ramp(int(slot * wide), lanes);
        init.push(Stmt::store(&s, [place.clone()], Expr::float(slot as f64, DType::F64)));
        init.push(Stmt::store(&c, [place.clone()], int(slot)));
        init.push(Stmt::store(&m, [place.clone()], Expr::bool(false)));
        let from = ramp(row() + k.expr() * int(wide), lanes);
        let x = at(&a, from.clone()).cast(DType::F64);
        let n = at(&b, from.clone()).cast(DType::I64);
        let old = at(&s, place.clone());
        let mask = at(&a, from.clone()).gt(Expr::float(0.5, DType::F32)).or(at(&m, place.clone()));
        let value = match random.below(4) {
            0 => old.clone() + x.clone(),
            1 => old.clone().max(x.clone()) - Expr::float(0.25, DType::F64).broadcast_to(lanes),
            2 => Expr::select(mask.clone(), old.clone() + x.clone() * x.clone(), old.clone()),
            _ => old.clone() * Expr::float(0.5, DType::F64).broadcast_to(lanes) + x.clone(),
        };
        let count = match random.below(3) {
            0 => at(&c, place.clone()) + n,
            1 => at(&c, place.clone()) + mask.clone().cast(DType::I64),
            _ => Expr::select(x.gt(old), ramp(k.expr() * int(wide), lanes), at(&c, place.clone())),
        };
        step.push(Stmt::store(&m, [place.clone()], mask));
        step.push(Stmt::store(&c, [place.clone()], count));
        step.push(Stmt::store(&s, [place.clone()], value));
    }
    if random.below(2) == 0 {
        // A place that is not constant keeps the array in memory.
        let place = Expr::binary(coulis_ir::BinaryOp::FloorMod, k.expr(), int(wide));
        step.push(Stmt::store(&s, [place.clone()], at(&s, place) + Expr::float(1.0, DType::F64)));
    }
    if random.below(2) == 0 {
        let inner = Var::size("j", DType::I64);
        let place = ramp(int(0), lanes);
        let add = Stmt::store(&c, [place.clone()], at(&c, place) + inner.expr().broadcast_to(lanes));
        step.push(Stmt::range(inner, Expr::binary(coulis_ir::BinaryOp::FloorMod, k.expr(), int(3)), add));
    }
    let t = Var::new("t", DType::F64);
    let guarded = Expr::if_then_else(
        i.expr().gt(int(0)),
        at(&a, row() - int(1)).cast(DType::F64),
        Expr::float(-1.0, DType::F64),
    );
    let l = Var::size("l", DType::I64);
    let place = || i.expr() * int(64) + l.expr();
    let finish = Stmt::let_(
        t.clone(),
        guarded,
        Stmt::for_(
            l.clone(),
            int(0),
            int(slots * wide),
            if random.below(2) == 0 { LoopKind::Unrolled } else { LoopKind::Serial },
            Stmt::seq([
                Stmt::store(&o, [place()], at(&s, l.expr()) + t.expr()),
                Stmt::If {
                    cond: at(&m, l.expr()).and(at(&c, l.expr()).gt(int(0))),
                    then: Box::new(Stmt::store(&p, [place()], at(&c, l.expr()))),
                    otherwise: Some(Box::new(Stmt::store(&p, [place()], int(-1)))),
                },
            ]),
        ),
    );
    let trips = columns / wide;
    let body = Stmt::seq([Stmt::seq(init), Stmt::range(k, int(trips), Stmt::seq(step)), finish]);
    let local = Stmt::allocate(s, Stmt::allocate(c, Stmt::allocate(m, body)));
    let all = Stmt::for_(i, int(0), int(rows), LoopKind::Parallel, local);
    (vec![a, b, o, p], all)
}

#[test]
fn both_devices_run_random_kernels_to_the_same_bits() {
    for seed in 0..10 {
        let mut random = Random::new(seed + 100);
        let (buffers, body) = random_kernel(&mut random);
        let kernel = flat("random", &buffers, body);
        let small: Vec<f32> = (0..384).map(|_| random.below(2000) as f32 / 512.0 - 2.0).collect();
        let data = [encode(&small), random.array(DType::I32, 384), vec![0; 8 * 256], vec![0; 8 * 256]];
        let mut results = Vec::new();
        for device in [device(), executor()] {
            let mut data = data.to_vec();
            launch(&*device.compile(&kernel).unwrap(), &Bindings::new(), &mut data).unwrap();
            results.push(data);
        }
        assert!(
            results[0] == results[1],
            "seed {seed}:\n{}",
            device().compile(&kernel).unwrap().source().unwrap()
        );
        assert!(results[0][2] != data[2], "seed {seed} writes something");
    }
}

/// `O[0] = sum(T)` with `T[i] = A[i] / d` for `i` below `n`, in memory that is allocated for `n` elements.
fn workspace() -> (Checked, Var, Var) {
    let (n, d) = (Var::size("n", DType::I64), Var::new("d", DType::I64));
    let a = Buffer::new("A", DType::I64, vec![int(16)], MemScope::Global);
    let o = Buffer::new("O", DType::I64, vec![int(1)], MemScope::Global);
    let t = Buffer::new("T", DType::I64, vec![n.expr()], MemScope::Global);
    let (i, j) = (Var::size("i", DType::I64), Var::size("j", DType::I64));
    let sixteen = n.expr().min(int(16));
    let body = Stmt::allocate(
        t.clone(),
        Stmt::seq([
            Stmt::for_(
                i.clone(),
                int(0),
                sixteen.clone(),
                LoopKind::Parallel,
                Stmt::store(&t, [i.expr()], at(&a, i.expr()) / d.expr()),
            ),
            Stmt::store(&o, [int(0)], int(0)),
            Stmt::range(j.clone(), sixteen, Stmt::store(&o, [int(0)], at(&o, int(0)) + at(&t, j.expr()))),
        ]),
    );
    let mut kernel = flat("workspace", &[a, o], Stmt::NOP).kernel().clone();
    kernel.params.push(coulis_ir::Param::Scalar(n.clone()));
    kernel.params.push(coulis_ir::Param::Scalar(d.clone()));
    kernel.body = body;
    (coulis_ir::verify::verify(kernel).unwrap_or_else(|f| panic!("{}", f.listing)), n, d)
}

#[test]
fn temporaries_work_and_their_faults_are_errors() {
    let (kernel, n, d) = workspace();
    let values: Vec<i64> = (0..16).map(|i| i * 30).collect();
    for device in [device(), executor()] {
        let executable = device.compile(&kernel).unwrap();
        let run = |length: i64, divisor: i64| {
            let mut data = vec![encode(&values), vec![0; 8]];
            let bindings = Bindings::from([(n.id(), length), (d.id(), divisor)]);
            launch(&*executable, &bindings, &mut data)
                .map(|()| i64::from_le_bytes(data[1].as_slice().try_into().unwrap()))
        };
        assert_eq!(run(16, 3).unwrap(), 1200);
        assert_eq!(run(2, -1).unwrap(), -30);
        assert_eq!(run(0, 1).unwrap(), 0);
        assert!(run(16, 0).unwrap_err().to_string().contains("divided by zero"));
        assert!(run(1 << 60, 1).is_err(), "{} runs out of memory", device.name());
        assert!(run(-3, 1).unwrap_err().to_string().contains(" elements"), "{}", device.name());
        let unbound = launch(&*executable, &Bindings::new(), &mut [encode(&values), vec![0; 8]]).unwrap_err();
        assert!(unbound.to_string().contains("has no value"), "{unbound}");
        let few = launch(&*executable, &Bindings::new(), &mut [vec![0; 8]]).unwrap_err();
        assert!(few.to_string().contains("takes 2 buffers, got 1"), "{few}");
    }
}

/// A kernel that is different for each `tag`.
fn tagged(tag: i64) -> Checked {
    let o = Buffer::new("O", DType::I64, vec![int(1)], MemScope::Global);
    flat("tagged", std::slice::from_ref(&o), Stmt::store(&o, [int(0)], int(tag)))
}

fn open(dir: &Path) -> Arc<dyn Device> {
    let options = CpuOptions {
        kind: CpuKind::Compiled,
        cache_dir: Some(dir.to_owned()),
        n_threads: Some(1),
        environment: Some(support::with_compiler()),
        ..CpuOptions::default()
    };
    let (device, notice) = Cpu::open(&options).unwrap();
    assert_eq!(notice, None);
    device
}

fn runs(device: &Arc<dyn Device>, tag: i64) -> Origin {
    let executable = device.compile(&tagged(tag)).unwrap();
    let mut data = vec![vec![0; 8]];
    launch(&*executable, &Bindings::new(), &mut data).unwrap();
    assert_eq!(data[0], tag.to_le_bytes());
    executable.info().origin
}

#[test]
fn a_second_compile_is_a_look_up() {
    let dir = tempfile::tempdir().unwrap();
    let device = open(&dir.path().join("c"));
    assert_eq!(runs(&device, 1001), Origin::Compiled);
    assert_eq!(runs(&device, 1001), Origin::Memory);
    assert_eq!(runs(&device, 1002), Origin::Compiled);
}

/// The only compiled file of a folder.
fn only_file(dir: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "so"));
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Runs this test program again, for one test and with a folder, and gives what that test printed.
fn in_another_process(test: &str, dir: &Path) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("COULIS_TEST_DIR", dir)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

fn output_of(child: std::process::Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn child_compiles_and_says_where_it_came_from() {
    if let Some(dir) = std::env::var_os("COULIS_TEST_DIR") {
        println!("origin {:?}", runs(&open(Path::new(&dir)), 2001));
    }
}

#[test]
fn other_processes_find_what_one_compiled_and_heal_what_was_spoiled() {
    let test = "child_compiles_and_says_where_it_came_from";
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("c");
    let origin = |cache: &Path| output_of(in_another_process(test, cache));
    assert!(origin(&cache).contains("origin Compiled"));
    assert!(origin(&cache).contains("origin Disk"));
    let file = only_file(&cache);
    let whole = fs::read(&file).unwrap();
    for spoiled in [&whole[..whole.len() / 2], &whole[..0], &whole[1..], b"not a library".as_slice()] {
        fs::write(&file, spoiled).unwrap();
        assert!(origin(&cache).contains("origin Compiled"));
        assert!(origin(&cache).contains("origin Disk"));
    }
}

/// `O[i] = tag` for `i < n`, which a plan is kept of.
fn filled(tag: i64) -> Checked {
    let (n, i) = (Var::size("n", DType::I64), Var::size("i", DType::I64));
    let o = Buffer::new("O", DType::I64, vec![n.expr()], MemScope::Global);
    let body = Stmt::range(i.clone(), n.expr(), Stmt::store(&o, [i.expr()], int(tag)));
    flat("filled", std::slice::from_ref(&o), body)
}

#[test]
fn child_restores_a_plan_or_makes_it() {
    let Some(dir) = std::env::var_os("COULIS_TEST_DIR") else { return };
    let device = open(Path::new(&dir));
    let plan = "three";
    let (executable, signature, note) = match device.restore(plan) {
        Some(found) => (found.executable, found.signature, found.note),
        None => {
            let kernel = filled(3);
            let made = device.compile_as(&kernel, plan, "of\nthe caller").unwrap();
            (made, kernel.kernel().clone(), "made".to_owned())
        }
    };
    let info = ArrayInfo { dtype: DType::I64, shape: vec![2], strides: vec![1] };
    let bindings = bind_args(&signature, &[ArgInfo::Array(info)]).unwrap();
    let mut data = vec![vec![0; 16]];
    launch(&*executable, &bindings, &mut data).unwrap();
    assert_eq!(data[0], [3i64.to_le_bytes(), 3i64.to_le_bytes()].concat());
    assert!(executable.source().is_some_and(|text| text.contains("filled")));
    println!("origin {:?} note {note:?}", executable.info().origin);
}

#[test]
fn other_processes_restore_a_plan_and_make_what_was_spoiled() {
    let test = "child_restores_a_plan_or_makes_it";
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("c");
    let origin = |cache: &Path| output_of(in_another_process(test, cache));
    let restored = "origin Disk note \"of\\nthe caller\"";
    assert!(origin(&cache).contains("origin Compiled note \"made\""));
    assert!(origin(&cache).contains(restored));
    let spoil = |which: &dyn Fn(&Path) -> bool| {
        for file in fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).filter(|f| which(f)) {
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
    };
    // A spoiled plan is made again from the compiled file, and a spoiled compiled file is compiled again.
    spoil(&|file| file.extension().is_some_and(|e| e == "plan"));
    assert!(origin(&cache).contains("origin Disk note \"made\""));
    assert!(origin(&cache).contains(restored));
    spoil(&|file| file.extension().is_some_and(|e| e == "so"));
    assert!(origin(&cache).contains("origin Compiled note \"made\""));
    assert!(origin(&cache).contains(restored));
}

#[test]
fn processes_at_once_share_a_folder() {
    let test = "child_compiles_and_says_where_it_came_from";
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("c");
    let children: Vec<_> = (0..4).map(|_| in_another_process(test, &cache)).collect();
    for child in children {
        assert!(output_of(child).contains("origin"));
    }
    only_file(&cache);
}

#[test]
fn threads_at_once_compile_a_kernel_once() {
    let dir = tempfile::tempdir().unwrap();
    let device = open(&dir.path().join("c"));
    let origins: Vec<Origin> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| runs(&device, 3001))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(origins.iter().filter(|o| **o == Origin::Compiled).count(), 1);
    assert_eq!(origins.iter().filter(|o| **o == Origin::Memory).count(), 3);
}

/// A compiler that is a shell script.
fn script(dir: &Path, text: &str) -> PathBuf {
    let file = dir.join("fake-cc");
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn a_compiler_that_is_content_and_writes_nothing_is_said_to_have_failed() {
    let dir = tempfile::tempdir().unwrap();
    let fake = script(dir.path(), "exit 0");
    let options = CpuOptions {
        kind: CpuKind::Compiled,
        compiler: Some(fake.into_os_string()),
        cache_dir: Some(dir.path().join("c")),
        environment: Some(support::with_compiler()),
        ..CpuOptions::default()
    };
    let (device, _) = Cpu::open(&options).unwrap();
    let error = device.compile(&tagged(4005)).err().unwrap();
    let RuntimeError::CompileFailed { stderr, .. } = &error else { panic!("{error}") };
    assert_eq!(stderr, "it wrote no library");
}

#[test]
fn a_kernel_that_the_compiler_refuses_is_executed_or_an_error_as_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let fake = script(
        dir.path(),
        "[ \"$1\" = --version ] && { echo fake 1; exit 0; }; echo 'line 7: no such luck' >&2; exit 3",
    );
    let options = |kind| CpuOptions {
        kind,
        compiler: Some(fake.clone().into_os_string()),
        cache_dir: Some(dir.path().join("c")),
        environment: Some(support::with_compiler()),
        ..CpuOptions::default()
    };
    let (device, notice) = Cpu::open(&options(CpuKind::Compiled)).unwrap();
    assert_eq!((device.name(), notice), ("cpu_c", None));
    let error = device.compile(&tagged(4001)).err().unwrap();
    let RuntimeError::CompileFailed { kernel, status, stderr, .. } = &error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), status.as_str()), ("tagged", "exit status: 3"));
    assert_eq!(stderr, "line 7: no such luck");
    assert!(device.take_notices().is_empty());

    let (device, notice) = Cpu::open(&options(CpuKind::Auto)).unwrap();
    assert_eq!((device.name(), notice), ("cpu_c", None));
    let executed = device.compile(&tagged(4001)).unwrap();
    assert_eq!(executed.info().device, "cpu_exec");
    assert_eq!(device.take_notices(), [Notice::NotCompiled(error.to_string())]);
    assert!(device.take_notices().is_empty(), "a notice is given once");
    assert!(device.restore("plan").is_none());
    let again = device.compile_as(&tagged(4001), "plan", "note").unwrap();
    assert_eq!(again.info().device, "cpu_exec");
    assert!(device.restore("plan").is_none(), "what was not compiled is not kept");
}

fn with_environment(environment: Environment) -> CpuOptions {
    CpuOptions { environment: Some(environment), ..CpuOptions::default() }
}

#[test]
fn a_named_compiler_is_decisive_and_its_absence_means_the_executor() {
    let environment = Environment {
        coulis_cc: Some("/nonexistent".into()),
        cc: Some("cc".into()),
        path: std::env::var_os("PATH"),
        ..Environment::default()
    };
    let (device, notice) = Cpu::open(&with_environment(environment.clone())).unwrap();
    assert_eq!(device.name(), "cpu_exec");
    let want = CompilerError::Named {
        command: "/nonexistent".to_owned(),
        origin: "COULIS_CC",
        reason: "/nonexistent is not an executable file".to_owned(),
    };
    assert_eq!(notice, Some(Notice::NoCompiler(want)));
    assert!(matches!(runs(&device, 5001), Origin::Compiled));
    let must = CpuOptions { kind: CpuKind::Compiled, ..with_environment(environment) };
    assert!(matches!(Cpu::open(&must).err(), Some(RuntimeError::NoCompiler(_))));
}

#[test]
fn a_cpu_is_held_to_less_than_it_has_and_to_nothing_that_it_has_not() {
    let held = |word: &str, kind| {
        let environment = Environment { coulis_cpu: Some(word.into()), ..support::with_compiler() };
        Cpu::open(&CpuOptions { kind, ..with_environment(environment) })
    };
    let there = |level: &&coulis_exec::Level| level.is_available();
    for level in coulis_exec::Level::ALL.iter().filter(there) {
        for (n, kind) in [(5101, CpuKind::Executed), (5102, CpuKind::Auto)] {
            let (device, _) = held(level.word(), kind).unwrap();
            let is_native = coulis_exec::is_native(*level);
            let wide = [16, 32, 64][*level as usize];
            if device.name() == "cpu_c" || is_native {
                assert_eq!(device.target().vector_bytes, wide, "{} {}", device.name(), level.name());
            }
            runs(&device, n);
        }
    }
    let error = held("avx", CpuKind::Auto).err().unwrap();
    assert_eq!(
        error.to_string(),
        "COULIS_CPU is to be `baseline`, `avx2` or `avx512`, the most that kernels may use of the CPU; got `avx`"
    );
    if !coulis_exec::Level::Avx512.is_available() {
        let error = held("avx512", CpuKind::Executed).err().unwrap();
        assert_eq!(error.to_string(), "this machine has no AVX-512");
    }
}

/// `O[i] = fma(A[i], B[i], C[i])`, in vectors of 16 or, at 1, one by one.
fn fused(dtype: DType, n: i64, lanes: i64) -> Checked {
    let [a, b, c, o] = ["A", "B", "C", "O"].map(|name| buffer(name, dtype, n, MemScope::Global));
    let i = Var::size("i", DType::I64);
    let first = i.expr() * int(lanes);
    let place = if lanes > 1 { ramp(first, lanes as u32) } else { first };
    let product = [&a, &b, &c].map(|x| at(x, place.clone())).to_vec();
    let store = Stmt::store(&o, [place], Expr::call(Intrinsic::Fma, product));
    let body = Stmt::range(i, int(n / lanes), store);
    flat("fused", &[a, b, c, o], body)
}

#[test]
fn fused_products_have_the_same_bits_whether_the_machine_has_them_or_not() {
    const N: usize = 4096;
    let mut random = Random::new(77);
    for dtype in [DType::F32, DType::F64] {
        let width = dtype.bytes();
        let mut data: Vec<Vec<u8>> = (0..3).map(|_| random.array(dtype, N)).collect();
        // A third of the sums cancel, or all but the last digit.
        for i in 0..N {
            let [a, b] = [0, 1].map(|of| bits_of(&data[of], dtype, i));
            let less = match dtype {
                DType::F32 => {
                    let product = -(f32::from_bits(a as u32) * f32::from_bits(b as u32));
                    u64::from(product.to_bits().wrapping_add(i as u32 & 1))
                }
                _ => (-(f64::from_bits(a) * f64::from_bits(b))).to_bits().wrapping_add(i as u64 & 1),
            };
            if i % 3 == 0 {
                data[2][i * width..][..width].copy_from_slice(&less.to_le_bytes()[..width]);
            }
        }
        data.push(vec![0; N * width]);
        for level in coulis_exec::Level::ALL.iter().filter(|level| level.is_available()) {
            let environment =
                Environment { coulis_cpu: Some(level.word().into()), ..support::with_compiler() };
            for kind in [CpuKind::Compiled, CpuKind::Executed] {
                let (device, _) =
                    Cpu::open(&CpuOptions { kind, ..with_environment(environment.clone()) }).unwrap();
                for lanes in [1, 16] {
                    let mut data = data.clone();
                    let executable = device.compile(&fused(dtype, N as i64, lanes)).unwrap();
                    launch(&*executable, &Bindings::new(), &mut data).unwrap();
                    for i in 0..N {
                        let [a, b, c, o] = [0, 1, 2, 3].map(|of| bits_of(&data[of], dtype, i));
                        let is_right = match dtype {
                            DType::F32 => {
                                let [a, b, c, o] = [a, b, c, o].map(|bits| f32::from_bits(bits as u32));
                                let want = a.mul_add(b, c);
                                want.to_bits() == o.to_bits() || want.is_nan() && o.is_nan()
                            }
                            _ => {
                                let [a, b, c, o] = [a, b, c, o].map(f64::from_bits);
                                let want = a.mul_add(b, c);
                                want.to_bits() == o.to_bits() || want.is_nan() && o.is_nan()
                            }
                        };
                        let what = (device.name(), level.name(), lanes);
                        assert!(is_right, "{dtype} on {what:?}: fma({a:x}, {b:x}, {c:x}) is not {o:x}");
                    }
                }
            }
        }
    }
}

#[test]
fn without_any_compiler_the_notice_says_where_it_looked() {
    let (device, notice) = Cpu::open(&with_environment(Environment::default())).unwrap();
    assert_eq!(device.name(), "cpu_exec");
    assert_eq!(
        notice.unwrap().to_string(),
        "kernels are not compiled but executed, which is slower: no C compiler was found; looked for cc, gcc, clang, \
         clang-30, clang-11, zig cc"
    );
}

#[test]
fn the_search_goes_on_after_a_cc_that_does_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let fake = script(dir.path(), "echo fake 1");
    fs::rename(&fake, dir.path().join("gcc")).unwrap();
    let environment = Environment {
        cc: Some("no-such-cc -m64".into()),
        path: Some(dir.path().as_os_str().to_owned()),
        ..Environment::default()
    };
    let found = coulis_runtime::Compiler::find(None, &environment).unwrap();
    assert_eq!(found.identity(), "fake 1\n");
    assert!(found.command().ends_with("/gcc"));
}

#[test]
fn the_cache_folder_comes_from_the_environment() {
    let check = |coulis: Option<&str>, xdg: Option<&str>, home: Option<&str>, want: Option<&str>| {
        let environment = Environment {
            coulis_cache_dir: coulis.map(Into::into),
            xdg_cache_home: xdg.map(Into::into),
            home: home.map(Into::into),
            ..Environment::default()
        };
        assert_eq!(environment.cache_dir(), want.map(PathBuf::from));
    };
    check(Some("/a"), Some("/b"), Some("/c"), Some("/a"));
    check(None, Some("/b"), Some("/c"), Some("/b/coulis"));
    check(None, Some("relative"), Some("/c"), Some("/c/.cache/coulis"));
    check(None, None, None, None);
}

#[test]
fn the_target_tells_the_width_of_this_machine() {
    let target = device().target();
    assert!([16, 32, 64].contains(&target.vector_bytes));
    assert_eq!((target.n_threads, target.arch.as_str()), (2, "native"));
    assert!(target.cache_bytes >= 1 << 15);
}
