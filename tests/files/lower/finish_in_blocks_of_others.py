# Blocks that read what blocks of another index leave stay a launch of their own.
# test: lower target=sm_90a
# check: T.launch_thread("blockIdx.x", 8)
# check: P[by * 8 + bx] = A[bx * 4 + by]
# check: T.launch_thread("blockIdx.y", 4)
# check: B[group * 32 + lane] = P[group * 8 + lane % 9]
# check-not: atomic_add
@T.prim_func(form="Nest")
def sums(A: T.Buffer((32,), "float32"), B: T.Buffer((128,), "float32")):
    P = T.allocate([33], "float32", "global")
    with T.launch_thread("blockIdx.x", 8) as bx:
        with T.launch_thread("blockIdx.y", 4) as by:
            with T.launch_thread("threadIdx.x", 32) as tx:
                if tx == 0:
                    P[by * 8 + bx] = A[bx * 4 + by]
    with T.attr(None, "in_last_block", T.bool(True)):
        with T.launch_thread("blockIdx.y", 4) as group:
            with T.launch_thread("threadIdx.x", 32) as lane:
                B[group * 32 + lane] = P[group * 8 + lane % 9]
