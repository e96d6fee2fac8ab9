@T.prim_func
def test_func(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4,), "float32", layout=TileLayout(S[4]))
    B = T.match_buffer(B_ptr, (1,), "float32", layout=TileLayout(S[1]))
    T.device_entry()
    T.cta_id([1])
    T.thread_id([1])
    A_local = T.alloc_buffer((4,), "float32", scope="local")
    B_local = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(4):
        A_local[i] = A[i]
    Tx.sum(B_local, A_local, axes=(-1,), accum=False)
    B[0] = B_local[0]
