# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((1, 20), "float32"), B: T.Buffer((1,), "float32")):
        ty = T.launch_thread("threadIdx.y", 1)
        tx = T.launch_thread("threadIdx.x", 20)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        mask = T.allocate([1], "uint32", "local", align=4)
        t0 = T.allocate([1], "float32", "local", align=4)
        A_1 = T.Buffer((20,), data=A.data)
        red_buf0[0] = A_1[tx]
        mask[0] = T.uint32(1048575)
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 16, 32, 32)
        if tx < 4:
            red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 8, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 4, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 2, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        red_buf0[0] = T.tvm_warp_shuffle(mask[0], red_buf0[0], 0, 32, 32)
        if tx == 0:
            B[0] = red_buf0[0]
