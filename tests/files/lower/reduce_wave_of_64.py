# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
        ty = T.launch_thread("threadIdx.y", 4)
        tx = T.launch_thread("threadIdx.x", 64)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        mask = T.allocate([1], "uint64", "local", align=8)
        t0 = T.allocate([1], "float32", "local", align=4)
        A_1 = T.Buffer((256,), data=A.data)
        red_buf0[0] = A_1[ty * 64 + tx]
        mask[0] = T.uint64(18446744073709551615)
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 32, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 16, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 8, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 4, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 2, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 64, 64)
        red_buf0[0] = red_buf0[0] + t0[0]
        red_buf0[0] = T.tvm_warp_shuffle(mask[0], red_buf0[0], 0, 64, 64)
        if tx == 0:
            B[ty] = red_buf0[0]
