# Two loops on one index are one launch, outermost, and what stands between is executed by all its threads.
# test: lower after=unify_launches target=sm_90a
# check: bx = T.launch_thread("blockIdx.x", n)
# check: t = T.launch_thread("threadIdx.x", 64)
# check: s[t] = A[bx * 64 + t]
# check-not: launch_thread("threadIdx.x", 64) as
# check: for k in range(2):
# check: B[bx * 64 + t] = s[t]
@T.prim_func(form="Nest")
def copy_twice(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", n)
    s = T.allocate([64], "float32", "shared")
    with T.launch_thread("threadIdx.x", 64) as t:
        s[t] = A[bx * 64 + t]
    for k in range(2):
        with T.launch_thread("threadIdx.x", 64) as u:
            B[bx * 64 + u] = s[u]
