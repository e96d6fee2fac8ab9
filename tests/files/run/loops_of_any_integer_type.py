# test: run device=cpu
# test: run device=cpu_exec
@T.prim_func
def counted(A: T.Buffer((5,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "uint32"), D: T.Buffer((3,), "int16")):
    for a in range(T.uint8(5)):
        A[a] = 0
    for b in range(T.int8(-2), T.int8(2)):
        B[b + T.int8(2)] = T.Cast("int32", b)
    for c in T.parallel(T.uint32(4)):
        C[c] = c - T.uint32(2)
    for d in range(T.uint64(3)):
        D[d] = T.Cast("int16", d)

# prints:
#   A int32 [5]: 0 0 0 0 0
#   B int32 [4]: -2 -1 0 1
#   C uint32 [4]: 4294967294 4294967295 0 1
#   D int16 [3]: 0 1 2
