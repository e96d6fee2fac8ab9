# test: simulate
@T.prim_func
def bad(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "uint32")):
    tx = T.launch_thread("threadIdx.x", 32)
    if A[tx] > 0:
        B[tx] = T.cuda.ballot_sync(T.uint32(4294967295), A[tx] > 2)  # error mask names a diverged lane: the mask 0xffffffff of thread (1, 0, 0) of block (0, 0, 0) names thread (0, 0, 0) of block (0, 0, 0), which is elsewhere in the program

@T.prim_func
def good(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "uint32")):
    tx = T.launch_thread("threadIdx.x", 32)
    any_ = T.allocate([1], "bool", "local")
    B[tx] = T.cuda.ballot_sync(T.uint32(4294967295), A[tx] > 2)
    any_[0] = T.cuda.any_sync(T.uint32(4294967295), A[tx] > 2)
    if any_[0]:
        T.cuda.warp_sync()
