//! The demonstration programs of seeds 000 to 002: answers, the variants that they get, and what they are compiled to.

use coulis::text::{CudaBinary, emit_cuda_binary};
use coulis::{Owner, TargetChoice};
use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile};
use crate::run::{Arg, Program, check_declines, check_wins, cuda, uniform};

const SHARED_ROW_SUM: &str = "@T.prim_func
def test_reduction(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4, 8), \"float32\", layout=TileLayout(S[(4, 8)]))
    B = T.match_buffer(B_ptr, (4,),  \"float32\", layout=TileLayout(S[(4,)]))
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    A_smem = T.alloc_buffer((4, 8), \"float32\", scope=\"shared\", layout=TileLayout(S[(4, 8)]))
    B_smem = T.alloc_buffer((4,),  \"float32\", scope=\"shared\", layout=TileLayout(S[(4,)]))
    Tx.cta.copy(A_smem, A); T.cuda.cta_sync()
    Tx.cta.sum(B_smem, A_smem, axes=(-1,), accum=False{dispatch})
    T.cuda.cta_sync()
    Tx.cta.copy(B, B_smem)
";

fn local_sum(n: usize) -> String {
    format!(
        "@T.prim_func
def test_func(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, [{n}], \"float32\", layout=TileLayout(S[({n},)]))
    B = T.match_buffer(B_ptr, [1], \"float32\", layout=TileLayout(S[(1,)]))
    T.device_entry(); T.cta_id([1]); T.thread_id([1])
    A_local = T.alloc_buffer([{n}], \"float32\", scope=\"local\")
    B_local = T.alloc_buffer([1], \"float32\", scope=\"local\")
    for i in T.serial({n}): A_local[i] = A[i]
    Tx.sum(B_local, A_local, accum=False{{dispatch}})
    B[0] = B_local[0]
"
    )
}

fn program(text: &str, shape: &[i64], rows: i64) -> Program {
    let n = shape.iter().product::<i64>() as usize;
    let values = uniform(n, 1, DType::F32);
    let fold = Fold { op: "sum", dtype: DType::F32, accum: false };
    let wants = values.chunks(n / rows as usize).map(|row| fold.want(row, 0.0)).collect();
    let args = vec![
        Arg::In { dtype: DType::F32, shape: shape.to_vec(), values },
        Arg::Out { dtype: DType::F32, shape: vec![rows], wants },
    ];
    Program { text: text.to_owned(), args }
}

#[test]
fn tile_seed_000_rows_are_summed_by_three_shuffles() {
    let program = program(SHARED_ROW_SUM, &[4, 8], 4);
    for warp in [32, 64] {
        check_wins(&program, &Target::simulated(warp), "shared");
    }
    for arch in ["sm_90a", "sm_100a"] {
        let text = cuda(&program, arch);
        let shuffles: Vec<&str> = text.lines().filter(|line| line.contains("__shfl")).collect();
        let want = |distance: u32| format!("__shfl_xor_sync((uint)4294967295, state0[0], {distance}, 8)");
        assert_eq!(shuffles.len(), 3, "{text}");
        for (line, distance) in shuffles.iter().zip([1, 2, 4]) {
            assert!(line.contains(&want(distance)), "{line}");
        }
        assert_eq!(text.matches("__syncthreads").count(), 2, "{text}");
        assert!(!text.contains("activemask"), "{text}");
    }
}

#[test]
fn tile_seed_001_four_registers_are_summed_by_a_loop() {
    let program = program(&local_sum(4), &[4], 1);
    check_wins(&program, &Target::simulated(32), "local");
    for arch in ["sm_90a", "sm_100a"] {
        check_wins(&program, &Target::cuda(arch).unwrap(), "local");
        let text = cuda(&program, arch);
        assert!(text.contains("for (int q = 0; q < 4; ++q)"), "{text}");
        assert!(!text.contains("__shfl") && !text.contains("f32x2"), "{text}");
    }
}

#[test]
fn tile_seed_002_thirty_two_registers_are_summed_in_pairs() {
    let program = program(&local_sum(32), &[32], 1);
    check_wins(&program, &Target::cuda("sm_100a").unwrap(), "sm100_packed");
    let text = cuda(&program, "sm_100a");
    assert!(text.contains("add.rn.f32x2") && !text.contains("ftz"), "{text}");
    let hopper = Target::cuda("sm_90a").unwrap();
    check_wins(&program, &hopper, "local");
    check_declines(
        &program,
        "sm100_packed",
        &hopper,
        "architecture: wanted sm_100a or sm_103a, found sm_90a",
    );
}

/// The machine code of a program, where the compiler and the disassembler are here.
pub fn sass(test: &str, program: &Program, arch: &str) -> Option<String> {
    let target = TargetChoice::Cuda { arch: Some(arch.to_owned()) };
    let text = program.text.replace("{dispatch}", "");
    match emit_cuda_binary(&text, &target, CudaBinary::Sass) {
        Ok(bytes) => Some(String::from_utf8(bytes).unwrap()),
        Err(error) if error.owner == Owner::Unsupported => {
            println!("SKIP {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tile_seed_002_pairs_are_one_instruction() {
    // Four pairs in each of three chunks after the first, and three pairs of the tree.
    for (arch, pairs) in [("sm_100a", 15), ("sm_103a", 15), ("sm_90a", 0)] {
        let program = program(&local_sum(32), &[32], 1);
        let Some(sass) = sass("tile_seed_002_pairs_are_one_instruction", &program, arch) else { return };
        assert_eq!(sass.matches("FADD2").count(), pairs, "{arch}\n{sass}");
    }
}

#[test]
fn tile_5_6_extrema_of_three_are_one_instruction() {
    for (op, arch, least) in [("max", "sm_100a", 13), ("min", "sm_103a", 13), ("max", "sm_90a", 0)] {
        let fold = Fold { op, dtype: DType::F32, accum: false };
        let (src, dst) = (Tile::whole(&[32]), Tile::whole(&[1]));
        let call = Call { src, dst, axes: &[-1], fold, n_threads: 1, scope: "", guard: "", options: "" };
        let Some(sass) = sass("tile_5_6_extrema_of_three_are_one_instruction", &call.in_registers(), arch)
        else {
            return;
        };
        let found = sass.matches("FMNMX3.NAN").count();
        assert!(if least == 0 { found == 0 } else { found >= least }, "{arch}: {found}\n{sass}");
    }
}

#[test]
fn tile_seed_002_packed_sums_flush_exactly_where_the_call_allows_it() {
    let blackwell = Target::cuda("sm_100a").unwrap();
    for (option, flushes) in [("", false), (", ftz=False", false), (", ftz=True", true)] {
        let text = local_sum(32).replace("{dispatch}", &format!("{option}{{dispatch}}"));
        let mut program = program(&text, &[32], 1);
        let cuda = cuda(&program, "sm_100a");
        assert_eq!(cuda.contains("add.rn.ftz.f32x2"), flushes, "{cuda}");
        assert_eq!(cuda.contains(".ftz"), flushes, "{cuda}");
        // Subnormal numbers whose sum is subnormal, too.
        for arg in &mut program.args {
            match arg {
                Arg::In { values, .. } => values.fill(1e-40),
                Arg::Out { wants, .. } => wants.fill(Some((if flushes { 0.0 } else { 32e-40 }, 1e-43))),
            }
        }
        crate::run::counters(&program, "sm100_packed", &blackwell);
        if !flushes {
            check_wins(&program, &blackwell, "sm100_packed");
        }
        if let Some(sass) = sass("tile_seed_002_packed_sums_flush", &program, "sm_100a") {
            assert_eq!(sass.contains("FADD2.FTZ"), flushes, "{sass}");
        }
    }
}
