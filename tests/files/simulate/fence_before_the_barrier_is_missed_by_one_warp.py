# test: simulate inout=C
# Only the first warp's threads fence, and the atomic update comes without a barrier in between: what the second warp wrote
# is not published.
@T.prim_func
def bad(B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "uint32")):
    P = T.allocate([128], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    ticket = T.allocate([1], "uint32", "local")
    P[bx * 64 + tx] = tx
    if tx == 0:
        T.cuda.thread_fence()
        ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
        if ticket[0] == T.uint32(1):
            B[0] = P[0] + P[63] + P[64]  # error race between blocks: thread (63, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (1, 0, 0) reads element 63 of `P`, and no fence with an atomic operation orders them
            # error race between warps: thread (63, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 63 of `P`, and no barrier orders them

@T.prim_func
def good(B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "uint32")):
    P = T.allocate([128], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    ticket = T.allocate([1], "uint32", "local")
    P[bx * 64 + tx] = tx
    T.cuda.cta_sync()
    if tx == 0:
        T.cuda.thread_fence()
        ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
        if ticket[0] == T.uint32(1):
            B[0] = P[0] + P[63] + P[64] + P[127]
