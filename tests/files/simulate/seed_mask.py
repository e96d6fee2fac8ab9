# test: simulate n=33 m=17
# Seed 003, as published: the mask of a group shifts past 31 bits from the third group on, and lacks its own lanes there.
@T.prim_func
def bad(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m))
    B = T.match_buffer(B_ptr, (n,))
    bx = T.launch_thread("blockIdx.x", (n + 31) // 32)
    tx = T.launch_thread("threadIdx.x", 16)
    ty = T.launch_thread("threadIdx.y", 32)
    x = T.allocate([1], "float32", "local")
    mask = T.allocate([1], "uint32", "local")
    t0 = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range((m + 15) // 16):
        if bx * 32 + ty < n and k * 16 + tx < m:
            A_1 = T.Buffer((n * m,), data=A.data)
            x[0] = x[0] + A_1[(bx * 32 + ty) * m + (k * 16 + tx)]
    mask[0] = T.tvm_warp_activemask()
    mask[0] = mask[0] & T.uint32(65535) << T.uint32(16) * T.Cast("uint32", ty)
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 8, 32, 32)  # error mask lacks the caller: the mask 0x0 of thread (0, 2, 0) of block (0, 0, 0) lacks its own lane 0 (30 times)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 4, 32, 32)  # error mask lacks the caller: the mask 0x0 of thread (0, 2, 0) of block (0, 0, 0) lacks its own lane 0 (30 times)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 2, 32, 32)  # error mask lacks the caller: the mask 0x0 of thread (0, 2, 0) of block (0, 0, 0) lacks its own lane 0 (30 times)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 1, 32, 32)  # error mask lacks the caller: the mask 0x0 of thread (0, 2, 0) of block (0, 0, 0) lacks its own lane 0 (30 times)
    x[0] = x[0] + t0[0]
    x[0] = T.tvm_warp_shuffle(mask[0], x[0], ty * 16, 32, 32)  # error mask lacks the caller: the mask 0x0 of thread (0, 2, 0) of block (0, 0, 0) lacks its own lane 0 (30 times)
    if tx == 0 and bx * 32 + ty < n:
        B[bx * 32 + ty] = x[0]

@T.prim_func
def good(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m))
    B = T.match_buffer(B_ptr, (n,))
    bx = T.launch_thread("blockIdx.x", (n + 31) // 32)
    tx = T.launch_thread("threadIdx.x", 16)
    ty = T.launch_thread("threadIdx.y", 32)
    x = T.allocate([1], "float32", "local")
    mask = T.allocate([1], "uint32", "local")
    t0 = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range((m + 15) // 16):
        if bx * 32 + ty < n and k * 16 + tx < m:
            A_1 = T.Buffer((n * m,), data=A.data)
            x[0] = x[0] + A_1[(bx * 32 + ty) * m + (k * 16 + tx)]
    mask[0] = T.tvm_warp_activemask()
    mask[0] = mask[0] & T.uint32(65535) << T.uint32(16) * T.Cast("uint32", ty % 2)
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 8, 32, 32)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 4, 32, 32)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 2, 32, 32)
    x[0] = x[0] + t0[0]
    t0[0] = T.tvm_warp_shuffle_down(mask[0], x[0], 1, 32, 32)
    x[0] = x[0] + t0[0]
    x[0] = T.tvm_warp_shuffle(mask[0], x[0], ty * 16, 32, 32)
    if tx == 0 and bx * 32 + ty < n:
        B[bx * 32 + ty] = x[0]
