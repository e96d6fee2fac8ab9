# test: run device=cpu
# test: run device=cpu_exec
# given: A[12] = 5 5 5 5 5 5 -5 -5 -5 -5 -5 -5
# given: N[12] = 0 1 31 32 63 -1 0 1 31 32 63 -1
# given: S[12] = 1 1 1 1 1 1 -1 -1 -1 -1 -1 -1
# given: M[12] = 0 1 7 8 9 -1 0 1 7 8 9 -1
@T.prim_func
def shifts(A: T.Buffer((12,), "int32"), N: T.Buffer((12,), "int32"), S: T.Buffer((12,), "int8"), M: T.Buffer((12,), "int8"), L: T.Buffer((12,), "int32"), R: T.Buffer((12,), "int32"), U: T.Buffer((12,), "uint64"), P: T.Buffer((12,), "int8"), Q: T.Buffer((12,), "int8"), C: T.Buffer((4,), "int32")):
    for i in range(12):
        L[i] = A[i] << N[i]
        R[i] = A[i] >> N[i]
        U[i] = T.Cast("uint64", A[i]) >> T.Cast("uint64", N[i])
        P[i] = S[i] << M[i]
        Q[i] = S[i] >> M[i]
    C[0] = A[6] << 40
    C[1] = A[6] >> 40
    C[2] = A[0] >> -1
    C[3] = 1 << 32

# prints:
#   L int32 [12]: 5 10 -2147483648 0 0 0 -5 -10 -2147483648 0 0 0
#   R int32 [12]: 5 2 0 0 0 0 -5 -3 -1 -1 -1 -1
#   U uint64 [12]: 5 2 0 0 0 0 18446744073709551611 9223372036854775805 8589934591 4294967295 1 0
#   P int8 [12]: 1 2 -128 0 0 0 -1 -2 -128 0 0 0
#   Q int8 [12]: 1 0 0 0 0 0 -1 -1 -1 -1 -1 -1
#   C int32 [4]: 0 -1 0 0
