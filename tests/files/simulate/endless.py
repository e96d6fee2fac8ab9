# test: simulate max_steps=100000
# error simulate: kernel `endless` was stopped after the 100000 statements that it may execute, at `B[0] = 1` (line 5)
@T.prim_func
def endless(B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 1)
    for i, j in T.grid(2147483647, 2147483647):
        B[0] = 1
