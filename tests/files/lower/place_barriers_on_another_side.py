# The other side of a branch is not done by the thread that its condition names.
# test: lower target=sm_90a
# error lower: threads share `P` under `threadIdx_x == 0`, where a barrier would not be reached by all of them
@T.prim_func(form="Nest")
def shared(B: T.Buffer((8,), "float32")):
    threadIdx_x = T.launch_thread("threadIdx.x", 8)
    P = T.allocate([1], "float32", "shared")
    if threadIdx_x == 0:
        P[0] = T.float32(1)
    else:
        B[threadIdx_x] = P[0]
