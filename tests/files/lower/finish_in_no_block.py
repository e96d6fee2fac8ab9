# test: lower target=sm_90a
# error lower: a launch is to be done by the last block of the one before it, but its blocks are not those of one index of the launch before it
@T.prim_func(form="Nest")
def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    with T.launch_thread("blockIdx.x", 8) as bx:
        A[bx] = T.float32(1)
    with T.attr(None, "in_last_block", T.bool(True)):
        with T.launch_thread("blockIdx.x", 4) as by:
            B[by] = A[by]
