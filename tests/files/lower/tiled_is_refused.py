# test: lower
# error lower: pass `flatten_buffers` takes a kernel in Nest form, and `tile` is in Tiled form
@T.prim_func
def tile(A: T.Buffer((256,), "float32")):
    T.device_entry()
    t = T.thread_id([256])
    A[t] = T.float32(0)
