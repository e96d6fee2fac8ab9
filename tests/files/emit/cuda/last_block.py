# The sum of a vector in one launch: the last of 16 blocks by ticket adds what all left, in order.
@T.prim_func
def total(A: T.Buffer((4096,), "float32"), B: T.Buffer((1,), "float32")):
    partial = T.allocate([16], "float32", "global")
    with T.attr(None, "zeroed", T.bool(True)):
        tickets = T.allocate([1], "uint32", "global")
        bx = T.launch_thread("blockIdx.x", 16)
        tx = T.launch_thread("threadIdx.x", 256)
        mine = T.allocate([1], "float32", "local")
        other = T.allocate([1], "float32", "local")
        warps = T.allocate([8], "float32", "shared")
        last = T.allocate([1], "uint32", "shared")
        ticket = T.allocate([1], "uint32", "local")
        mine[0] = A[bx * 256 + tx]
        for step in T.unroll(5):
            other[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), mine[0], T.shift_right(16, step), 32, 32)
            mine[0] = mine[0] + other[0]
        if tx % 32 == 0:
            warps[tx // 32] = mine[0]
        T.cuda.cta_sync()
        if tx == 0:
            mine[0] = T.float32(0)
            for w in range(8):
                mine[0] = mine[0] + warps[w]
            partial[bx] = mine[0]
            T.cuda.thread_fence()
            ticket[0] = T.cuda.atomic_add(tickets[0], T.uint32(1))
            T.cuda.thread_fence()
            last[0] = ticket[0]
        T.cuda.cta_sync()
        if last[0] == T.uint32(15):
            if tx == 0:
                mine[0] = T.float32(0)
                for b in range(16):
                    mine[0] = mine[0] + partial[b]
                B[0] = mine[0]
                tickets[0] = T.uint32(0)
