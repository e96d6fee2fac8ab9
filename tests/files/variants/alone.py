# A reduced axis of one thread, as a schedule may bind it.
# arch: sm_90a
@T.prim_func
def one_thread_a_row(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    ty = T.launch_thread("threadIdx.y", 6)
    tx = T.launch_thread("threadIdx.x", 1)
    part = T.alloc_buffer([6, 1], "float32", scope="local", layout=TileLayout(S[(6, 1) : (1 @ tx, 1 @ tx)]))
    mine = part.local(1)
    mine[0] = A[ty]
    total = part.view(6, layout=TileLayout(S[(6,) : (1 @ tx,)] + R[(1,) : (1 @ tx,)]))
    Tx.cta.sum(total, part, axes=(1,), accum=False)
    whole = total.local(1)
    B[ty] = whole[0]
