# test: simulate
# Vectors: each thread loads four elements at once.
@T.prim_func
def good(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4] + T.Broadcast(T.float32(1), 4)

@T.prim_func
def bad(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 2:tx * 2 + 4] = A[tx * 4:tx * 4 + 4] + T.Broadcast(T.float32(1), 4)  # error race between lanes: thread (1, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) writes element 2 of `B`, and no barrier orders them (124 times)
    # error race between warps: thread (31, 0, 0) of block (0, 0, 0) writes and thread (32, 0, 0) of block (0, 0, 0) writes element 64 of `B`, and no barrier orders them (2 times)
