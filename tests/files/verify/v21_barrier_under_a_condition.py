# test: verify
@T.prim_func
def late_use(A: T.Buffer((256,), "float32")):
    T.device_entry()
    t = T.thread_id([256])
    if t < 128:
        T.cuda.cta_sync()  # error V21: cta barrier under a condition that differs between threads
    A[t] = T.float32(0)
