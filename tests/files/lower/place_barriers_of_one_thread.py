# test: lower after=place_barriers target=sm_90a
# What one thread writes it reads without a barrier, whether one condition says which thread that is or several do.
# check: P[0] = T.float32(1)
# check: P[0] = P[0] + T.float32(2)
# check: T.cuda.cta_sync()
# check: if threadIdx_x == 1:
# check: P[0] = P[0] + T.float32(3)
# check: T.cuda.cta_sync()
# check: B[threadIdx_y, threadIdx_x] = P[0]
@T.prim_func(form="Nest")
def shared(B: T.Buffer((4, 8), "float32")):
    threadIdx_y = T.launch_thread("threadIdx.y", 4)
    threadIdx_x = T.launch_thread("threadIdx.x", 8)
    P = T.allocate([1], "float32", "shared")
    if threadIdx_y == 0:
        if threadIdx_x == 0:
            P[0] = T.float32(1)
    if threadIdx_x == 0 and threadIdx_y == 0:
        P[0] = P[0] + T.float32(2)
    if threadIdx_y == 0:
        if threadIdx_x == 1:
            P[0] = P[0] + T.float32(3)
    B[threadIdx_y, threadIdx_x] = P[0]
