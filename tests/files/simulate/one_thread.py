# test: simulate
# A kernel without launches runs as one thread.
@T.prim_func
def good(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    x = T.allocate([4], "float32", "local")
    for i in range(4):
        x[0:4] = A[i * 4:i * 4 + 4] * T.Broadcast(T.float32(2), 4)
        B[i * 4:i * 4 + 4] = x[0:4]
