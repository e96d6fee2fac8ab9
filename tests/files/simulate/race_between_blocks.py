# test: simulate inout=C
# The last block by ticket adds what all blocks left. Without the fence nothing says that it sees it.
@T.prim_func
def bad(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "uint32")):
    P = T.allocate([256], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    ticket = T.allocate([1], "uint32", "shared")
    total = T.allocate([1], "int32", "local")
    P[bx * 64 + tx] = A[bx * 64 + tx]
    T.cuda.cta_sync()
    if tx == 0:
        ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
    T.cuda.cta_sync()
    if ticket[0] == T.uint32(3):
        if tx == 0:
            total[0] = 0
            for i in range(256):
                total[0] = total[0] + P[i]  # error race between blocks: thread (0, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (3, 0, 0) reads element 0 of `P`, and no fence with an atomic operation orders them (192 times)
            B[0] = total[0]
            C[0] = T.uint32(0)

@T.prim_func
def good(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "uint32")):
    P = T.allocate([256], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    ticket = T.allocate([1], "uint32", "shared")
    total = T.allocate([1], "int32", "local")
    P[bx * 64 + tx] = A[bx * 64 + tx]
    T.cuda.thread_fence()
    T.cuda.cta_sync()
    if tx == 0:
        ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
    T.cuda.cta_sync()
    if ticket[0] == T.uint32(3):
        if tx == 0:
            total[0] = 0
            for i in range(256):
                total[0] = total[0] + P[i]
            B[0] = total[0]
            C[0] = T.uint32(0)

@T.prim_func
def good_by_one_thread(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "uint32")):
    P = T.allocate([256], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 64)
    ticket = T.allocate([1], "uint32", "shared")
    total = T.allocate([1], "int32", "local")
    P[bx * 64 + tx] = A[bx * 64 + tx]
    T.cuda.cta_sync()
    if tx == 0:
        T.cuda.thread_fence()
        ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
    T.cuda.cta_sync()
    if ticket[0] == T.uint32(3):
        if tx == 0:
            total[0] = 0
            for i in range(256):
                total[0] = total[0] + P[i]
            B[0] = total[0]
            C[0] = T.uint32(0)
