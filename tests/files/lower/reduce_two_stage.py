# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((2, 96), "float32"), B: T.Buffer((2,), "float32")):
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 96)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        red_staging0 = T.allocate([6], "float32", "shared", align=16)
        red_result0 = T.allocate([2], "float32", "shared", align=8)
        mask = T.allocate([1], "uint32", "local", align=4)
        t0 = T.allocate([1], "float32", "local", align=4)
        A_1 = T.Buffer((192,), data=A.data)
        red_buf0[0] = A_1[ty * 96 + tx]
        mask[0] = T.uint32(4294967295)
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 16, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 8, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 4, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 2, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        if tx % 32 == 0:
            red_staging0[ty * 3 + tx // 32] = red_buf0[0]
        T.cuda.cta_sync()
        if tx < 3:
            red_buf0[0] = red_staging0[ty * 3 + tx]
            mask[0] = T.uint32(7)
            t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 2, 32, 32)
            if tx < 1:
                red_buf0[0] = red_buf0[0] + t0[0]
            t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 32, 32)
            red_buf0[0] = red_buf0[0] + t0[0]
            if tx == 0:
                red_result0[ty] = red_buf0[0]
        T.cuda.cta_sync()
        red_buf0[0] = red_result0[ty]
        if tx == 0:
            B[ty] = red_buf0[0]
