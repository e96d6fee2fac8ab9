# Sums over the outer axis of a block: the threads of a group lie eight apart.
# arch: sm_90a
@T.prim_func
def sum_of_columns(A: T.Buffer((32,), "float32"), B: T.Buffer((8,), "float32")):
    ty = T.launch_thread("threadIdx.y", 4)
    tx = T.launch_thread("threadIdx.x", 8)
    part = T.alloc_buffer([4, 8], "float32", scope="local", layout=TileLayout(S[(4, 8) : (8 @ tx, 1 @ tx)]))
    mine = part.local(1)
    mine[0] = A[ty * 8 + tx]
    total = part.view(8, layout=TileLayout(S[(8,) : (1 @ tx,)] + R[(4,) : (8 @ tx,)]))
    Tx.cta.sum(total, part, axes=(0,), accum=False)
    whole = total.local(1)
    if ty == 0:
        B[tx] = whole[0]
