# test: verify
@T.prim_func
def full(A: T.Buffer((1024,), "float32")):
    T.device_entry()
    t = T.thread_id([1024])
    A[t] = T.float32(0)
