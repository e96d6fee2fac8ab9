# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2,), "float32")):
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 64)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        red_shared0 = T.allocate([128], "float32", "shared")
        A_1 = T.Buffer((128,), data=A.data)
        red_buf0[0] = A_1[ty * 64 + tx]
        red_shared0[ty * 64 + tx] = red_buf0[0]
        T.cuda.cta_sync()
        if tx < 32:
            red_shared0[ty * 64 + tx] = red_shared0[ty * 64 + tx] + red_shared0[ty * 64 + tx + 32]
        T.cuda.warp_sync()
        if tx < 16:
            red_shared0[ty * 64 + tx] = red_shared0[ty * 64 + tx] + red_shared0[ty * 64 + tx + 16]
        T.cuda.warp_sync()
        if tx < 8:
            red_shared0[ty * 64 + tx] = red_shared0[ty * 64 + tx] + red_shared0[ty * 64 + tx + 8]
        T.cuda.warp_sync()
        if tx < 4:
            red_shared0[ty * 64 + tx] = red_shared0[ty * 64 + tx] + red_shared0[ty * 64 + tx + 4]
        T.cuda.warp_sync()
        if tx < 2:
            red_shared0[ty * 64 + tx] = red_shared0[ty * 64 + tx] + red_shared0[ty * 64 + tx + 2]
        T.cuda.warp_sync()
        if tx < 1:
            red_shared0[ty * 64] = red_shared0[ty * 64] + red_shared0[ty * 64 + 1]
        T.cuda.cta_sync()
        red_buf0[0] = red_shared0[ty * 64]
        if tx == 0:
            B[ty] = red_buf0[0]
