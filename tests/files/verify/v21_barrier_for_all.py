# test: verify
@T.prim_func
def all_arrive(A: T.Buffer((256,), "float32")):
    T.device_entry()
    t = T.thread_id([256])
    T.cuda.cta_sync()
    if t < 128:
        A[t] = T.float32(0)
