# Of two launches that have an index of blocks in common, the last block of each index does the second: tickets are by index.
# test: lower target=sm_90a
# check: sums_counter = T.allocate([4], "uint32", "global")
# check: T.launch_thread("blockIdx.x", 8)
# check: T.launch_thread("blockIdx.y", 4)
# check: P[by * 8 + bx] = A[bx * 4 + by]
# check: sums_ticket[0] = T.cuda.atomic_add(sums_counter[by], T.uint32(1))
# check: sums_is_last[0] = sums_ticket[0] == T.uint32(7)
# check: if sums_is_last[0]:
# check: B[by * 32 + tx] = P[by * 8 + tx % 8]
# check: sums_counter[by] = T.uint32(0)
@T.prim_func(form="Nest")
def sums(A: T.Buffer((32,), "float32"), B: T.Buffer((128,), "float32")):
    P = T.allocate([32], "float32", "global")
    with T.launch_thread("blockIdx.x", 8) as bx:
        with T.launch_thread("blockIdx.y", 4) as by:
            with T.launch_thread("threadIdx.x", 32) as tx:
                if tx == 0:
                    P[by * 8 + bx] = A[bx * 4 + by]
    with T.attr(None, "in_last_block", T.bool(True)):
        with T.launch_thread("blockIdx.y", 4) as group:
            with T.launch_thread("threadIdx.x", 32) as lane:
                B[group * 32 + lane] = P[group * 8 + lane % 8]
