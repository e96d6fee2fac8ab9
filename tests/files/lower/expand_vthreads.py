# test: lower after=expand_vthreads target=sm_90a
# check: tx = T.launch_thread("threadIdx.x", 32)
# check: for v in range(2):
# check: B[v * 32 + tx] = A[v * 32 + tx]
@T.prim_func(form="Nest")
def copy(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    v = T.launch_thread("vthread", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    B[v * 32 + tx] = A[v * 32 + tx]
