# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((2, 5), "float32"), B: T.Buffer((2,), "float32")):
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 5)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        red_shared0 = T.allocate([10], "float32", "shared", align=32)
        A_1 = T.Buffer((10,), data=A.data)
        red_buf0[0] = A_1[ty * 5 + tx]
        red_shared0[ty * 5 + tx] = red_buf0[0]
        T.cuda.cta_sync()
        if tx == 0:
            for member in range(4):
                red_buf0[0] = red_buf0[0] + red_shared0[ty * 5 + member + 1]
            red_shared0[ty * 5] = red_buf0[0]
        T.cuda.cta_sync()
        red_buf0[0] = red_shared0[ty * 5]
        if tx == 0:
            B[ty] = red_buf0[0]
