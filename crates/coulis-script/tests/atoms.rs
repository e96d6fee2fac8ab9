//! Atoms and named barriers read back as they print.

use coulis_ir::print::print_kernel;
use coulis_script::parse_module;

const TEXT: &str = r#"
@T.prim_func
def warp(A: T.Buffer((64,), "float32"), C: T.Buffer((1,), "uint32")):
    bx = T.launch_thread("blockIdx.x", 2)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    x = T.allocate([1], "float32", "local")
    m = T.allocate([1], "uint32", "local")
    any_ = T.allocate([1], "bool", "local")
    s = T.allocate([64], "float32", "shared")
    s[tx] = A[tx]
    T.cuda.cluster_sync()
    x[0] = T.cuda.cluster_load(s[63 - tx], 1 - cx)
    T.cuda.cluster_sync()
    m[0] = T.tvm_warp_activemask()
    x[0] = T.tvm_warp_shuffle_down(m[0], A[tx], 8, 32, 32)
    x[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), x[0], 1, 32, 32)
    x[0] = T.tvm_warp_shuffle(T.uint32(4294967295), x[0], tx // 16 * 16, 32, 32)
    m[0] = T.cuda.ballot_sync(m[0], A[tx] < T.float32(0))
    any_[0] = T.cuda.any_sync(m[0], A[tx] < T.float32(0))
    T.cuda.named_barrier_sync(1, 64)
    T.cuda.thread_fence()
    m[0] = T.cuda.atomic_add(C[0], T.uint32(1))
    T.cuda.atomic_max(C[0], T.uint32(7))
    T.prefetch(A[tx + 64])
    T.prefetch_l2(A[tx + 128])
    m[0] = T.cuda.atomic_cas(C[0], T.uint32(1), T.uint32(2))
"#;

#[test]
fn atoms_read_back_as_they_print() {
    let first = parse_module(TEXT).unwrap();
    let text = print_kernel(&first[0]);
    let second = parse_module(&text).unwrap();
    assert_eq!(first[0], second[0], "{text}");
    assert_eq!(text, print_kernel(&second[0]));
    coulis_ir::verify::verify(first[0].clone()).unwrap();
}

#[test]
fn an_atom_with_a_wrong_operand_is_refused_by_the_verifier() {
    let text = TEXT.replace("T.tvm_warp_shuffle_down(m[0], A[tx]", "T.tvm_warp_shuffle_down(A[tx], A[tx]");
    let kernels = parse_module(&text).unwrap();
    let faults = coulis_ir::verify::verify(kernels[0].clone()).unwrap_err();
    assert!(faults.to_string().contains("does not take (float32, float32"), "{faults}");
}
