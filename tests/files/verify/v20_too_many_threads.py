# test: verify
@T.prim_func
def crowd(A: T.Buffer((2048,), "float32")):
    T.device_entry()
    t = T.thread_id([2048])  # error V20: a block has at most 1024 threads, got 2048
    A[t] = T.float32(0)
