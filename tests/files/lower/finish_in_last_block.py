# A marked launch is done by the last block of the one before it: by all its threads, or by its first warps.
# test: lower target=sm_90a
# check: with T.attr(None, "zeroed", "left"):
# check: sums_counter = T.allocate([1], "uint32", "global")
# check: T.launch_thread("blockIdx.x", 8)
# check: P[bx] = A[bx * 64]
# check: T.cuda.cta_sync()
# check: if tx == 0:
# check: T.cuda.thread_fence()
# check: sums_ticket[0] = T.cuda.atomic_add(sums_counter[0], T.uint32(1))
# check: T.cuda.thread_fence()
# check: sums_is_last[0] = sums_ticket[0] == T.uint32(7)
# check: T.cuda.cta_sync()
# check: if sums_is_last[0]:
# check: if tx < 32:
# check: B[tx] = P[tx % 8]
# check: sums_counter[0] = T.uint32(0)
# check: sums_1_ticket[0] == T.uint32(1)
# check: if sums_1_is_last[0]:
# check: C[ty] = B[ty % 32] + P[ty % 8]
# check-not: if tx < 64
@T.prim_func(form="Nest")
def sums(A: T.Buffer((512,), "float32"), B: T.Buffer((32,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((2,), "float32")):
    P = T.allocate([8], "float32", "global")
    with T.launch_thread("blockIdx.x", 8) as bx:
        with T.launch_thread("threadIdx.x", 64) as tx:
            if tx == 0:
                P[bx] = A[bx * 64]
    with T.attr(None, "in_last_block", T.bool(True)):
        with T.launch_thread("threadIdx.x", 32) as lane:
            B[lane] = P[lane % 8]
    with T.launch_thread("blockIdx.x", 2) as by:
        with T.launch_thread("threadIdx.x", 64) as ty:
            if ty == 0:
                D[by] = T.float32(1)
    with T.attr(None, "in_last_block", T.bool(True)):
        with T.launch_thread("threadIdx.x", 64) as tz:
            C[tz] = B[tz % 32] + P[tz % 8]
