# Bytes that only choose between 0 and 1 or all ones are asked by words: three operations say of each whether it is zero, in its
# highest bit, and one repeats that bit. Bools are copied by words that are not taken apart. A choice between other numbers is
# one of each byte.
@T.prim_func
def flags(A: T.Buffer((2048,), "bool"), B: T.Buffer((2048,), "int8"), C: T.Buffer((2048,), "bool"), D: T.Buffer((2048,), "int32"), E: T.Buffer((2048,), "int64")):
    tx = T.launch_thread("threadIdx.x", 256)
    flag = T.allocate([8], "int8", "local")
    flag[T.Ramp(0, 1, 8)] = T.Select(A[T.Ramp(tx * 8, 1, 8)], T.Broadcast(T.int8(-1), 8), T.Broadcast(T.int8(0), 8))
    flag[T.Ramp(0, 1, 8)] = T.bitwise_and(flag[T.Ramp(0, 1, 8)], T.Select(B[T.Ramp(tx * 8, 1, 8)] != T.Broadcast(T.int8(0), 8), T.Broadcast(T.int8(-1), 8), T.Broadcast(T.int8(0), 8)))
    C[T.Ramp(tx * 8, 1, 8)] = A[T.Ramp(tx * 8, 1, 8)]
    D[T.Ramp(tx * 8, 1, 8)] = T.Cast("int32x8", A[T.Ramp(tx * 8, 1, 8)]) + T.Cast("int32x8", flag[T.Ramp(0, 1, 8)])
    E[T.Ramp(tx * 8, 1, 8)] = T.Select(A[T.Ramp(tx * 8, 1, 8)], T.Broadcast(T.int64(1), 8), T.Broadcast(T.int64(0), 8)) + T.Select(A[T.Ramp(tx * 8, 1, 8)], T.Broadcast(T.int64(3), 8), T.Broadcast(T.int64(0), 8))
