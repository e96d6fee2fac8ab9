# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((4, 8), "int8"), B: T.Buffer((4,), "int8")):
        ty = T.launch_thread("threadIdx.y", 4)
        tx = T.launch_thread("threadIdx.x", 8)
        red_buf0 = T.allocate([1], "int8", "local", align=1)
        mask = T.allocate([1], "uint32", "local", align=4)
        t0 = T.allocate([1], "int32", "local", align=4)
        A_1 = T.Buffer((32,), "int8", data=A.data)
        red_buf0[0] = A_1[ty * 8 + tx]
        mask[0] = T.uint32(4294967295)
        t0[0] = T.tvm_warp_shuffle_down(mask[0], T.Cast("int32", red_buf0[0]), 4, 32, 32)
        red_buf0[0] = T.max(red_buf0[0], T.Cast("int8", t0[0]))
        t0[0] = T.tvm_warp_shuffle_down(mask[0], T.Cast("int32", red_buf0[0]), 2, 32, 32)
        red_buf0[0] = T.max(red_buf0[0], T.Cast("int8", t0[0]))
        t0[0] = T.tvm_warp_shuffle_down(mask[0], T.Cast("int32", red_buf0[0]), 1, 32, 32)
        red_buf0[0] = T.max(red_buf0[0], T.Cast("int8", t0[0]))
        t0[0] = T.tvm_warp_shuffle(mask[0], T.Cast("int32", red_buf0[0]), ty * 8, 32, 32)
        red_buf0[0] = T.Cast("int8", t0[0])
        if tx == 0:
            B[ty] = red_buf0[0]
