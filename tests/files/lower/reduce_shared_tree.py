# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((16, 26), "float32"), B: T.Buffer((16,), "float32")):
        ty = T.launch_thread("threadIdx.y", 16)
        tx = T.launch_thread("threadIdx.x", 26)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        red_shared0 = T.allocate([416], "float32", "shared")
        A_1 = T.Buffer((416,), data=A.data)
        red_buf0[0] = A_1[ty * 26 + tx]
        red_shared0[ty * 26 + tx] = red_buf0[0]
        T.cuda.cta_sync()
        if tx < 10:
            red_shared0[ty * 26 + tx] = red_shared0[ty * 26 + tx] + red_shared0[ty * 26 + tx + 16]
        T.cuda.cta_sync()
        if tx < 8:
            red_shared0[ty * 26 + tx] = red_shared0[ty * 26 + tx] + red_shared0[ty * 26 + tx + 8]
        T.cuda.cta_sync()
        if tx < 4:
            red_shared0[ty * 26 + tx] = red_shared0[ty * 26 + tx] + red_shared0[ty * 26 + tx + 4]
        T.cuda.cta_sync()
        if tx < 2:
            red_shared0[ty * 26 + tx] = red_shared0[ty * 26 + tx] + red_shared0[ty * 26 + tx + 2]
        T.cuda.cta_sync()
        if tx < 1:
            red_shared0[ty * 26] = red_shared0[ty * 26] + red_shared0[ty * 26 + 1]
        T.cuda.cta_sync()
        red_buf0[0] = red_shared0[ty * 26]
        if tx == 0:
            B[ty] = red_buf0[0]
