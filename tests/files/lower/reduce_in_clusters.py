# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def sum_of_long_rows(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (2, 4096))
        B = T.match_buffer(B_ptr, (2,))
        bx = T.launch_thread("blockIdx.x", 8)
        part = T.launch_thread("clusterCtaIdx.x", 4)
        tx = T.launch_thread("threadIdx.x", 128)
        red_staging0 = T.allocate([4], "float32", "shared", align=16)
        cluster_state0 = T.allocate([1], "float32", "shared", align=4)
        t0 = T.allocate([1], "float32", "local", align=4)
        state0 = T.allocate([1], "float32", "local", align=4)
        vector = T.allocate([4], "float32", "local", align=16)
        remote0 = T.allocate([1], "float32", "local", align=4)
        state0[0] = T.float32(0)
        for t in range(2):
            A_1 = T.Buffer((8192,), data=A.data)
            vector[0:4] = A_1[bx // 4 * 4096 + part * 1024 + t * 512 + tx * 4:bx // 4 * 4096 + part * 1024 + t * 512 + tx * 4 + 4]
            state0[0] = state0[0] + vector[0]
            state0[0] = state0[0] + vector[1]
            state0[0] = state0[0] + vector[2]
            state0[0] = state0[0] + vector[3]
        t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 1, 32, 32)
        state0[0] = state0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 2, 32, 32)
        state0[0] = state0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 4, 32, 32)
        state0[0] = state0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 8, 32, 32)
        state0[0] = state0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 16, 32, 32)
        state0[0] = state0[0] + t0[0]
        if tx % 32 == 0:
            red_staging0[tx // 32] = state0[0]
        T.cuda.cta_sync()
        if tx < 32:
            state0[0] = T.float32(0)
            if tx < 4:
                state0[0] = state0[0] + red_staging0[tx]
            t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 1, 32, 32)
            state0[0] = state0[0] + t0[0]
            t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 2, 32, 32)
            state0[0] = state0[0] + t0[0]
            t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 4, 32, 32)
            state0[0] = state0[0] + t0[0]
            t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 8, 32, 32)
            state0[0] = state0[0] + t0[0]
            t0[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), state0[0], 16, 32, 32)
            state0[0] = state0[0] + t0[0]
            if tx == 0:
                cluster_state0[0] = state0[0]
        T.cuda.cluster_sync()
        if part == 0:
            if tx < 1:
                state0[0] = T.float32(0)
                for block in range(4):
                    remote0[0] = T.cuda.cluster_load(cluster_state0[0], block)
                    state0[0] = state0[0] + remote0[0]
                B[bx // 4] = state0[0]
        T.cuda.cluster_sync()
