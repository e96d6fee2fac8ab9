# test: parse canonical
@T.prim_func
def row_sum(A: T.handle, O: T.handle, n: T.int64(is_size_var=True)):
    m = T.int64(is_size_var=True)
    A_1 = T.match_buffer(A, (n, m))
    O_1 = T.match_buffer(O, (n,))
    for i in T.parallel(n):
        S_rf = T.allocate([64], "float64", "local")
        for u in T.unroll(4):
            S_rf[u * 16:u * 16 + 16] = T.Broadcast(T.float64(0), 16)
        for ko in range(m // T.int64(64)):
            A_2 = T.Buffer((n * m,), data=A_1.data)
            S_rf[0:16] = S_rf[0:16] + T.Cast("float64x16", A_2[i * m + ko * T.int64(64):i * m + ko * T.int64(64) + T.int64(16)])
            S_rf[16:32] = T.max(S_rf[16:32], T.Broadcast(T.float64("-inf"), 16))
        O_1[i] = T.Cast("float32", S_rf[0])
