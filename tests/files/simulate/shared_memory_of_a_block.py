# test: simulate n=58113
# error simulate: a block of `declared` has at most 49152 bytes of shared memory whose size is known when it is compiled, and asks for 49156: `s` of 32768, `t` of 16388
# error simulate: a block of `asked` has at most 232448 bytes of shared memory in all, and asks for 232452: `s` of 232448, `t` of 4
# error simulate: a block of `by_argument` has at most 232448 bytes of shared memory in all, and asks for 232452: `s` of 232452
@T.prim_func
def declared(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([8192], "float32", "shared")
    t = T.allocate([4097], "float32", "shared")
    s[tx] = A[tx]
    t[tx] = A[tx]
    B[tx] = s[tx] + t[tx]

@T.prim_func
def declared_to_the_last_byte(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([8192], "float32", "shared")
    t = T.allocate([4096], "float32", "shared")
    s[tx] = A[tx]
    t[tx] = A[tx]
    B[tx] = s[tx] + t[tx]

@T.prim_func
def asked(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([58112], "float32", "shared.dyn")
    t = T.allocate([1], "float32", "shared")
    s[tx] = A[tx]
    if tx == 0:
        t[0] = A[tx]
    B[tx] = s[tx]

@T.prim_func
def asked_to_the_last_byte(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([58112], "float32", "shared.dyn")
    s[tx] = A[tx]
    B[tx] = s[tx]

@T.prim_func
def by_argument(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([n], "float32", "shared.dyn")
    s[tx] = A[tx]
    B[tx] = s[tx]
