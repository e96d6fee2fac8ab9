# test: simulate
@T.prim_func
def bad_lacks_the_caller(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.tvm_warp_shuffle_xor(T.uint32(65535), A[tx], 1, 32, 32)  # error mask lacks the caller: the mask 0xffff of thread (16, 0, 0) of block (0, 0, 0) lacks its own lane 16

@T.prim_func
def bad_names_absent(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 16)
    B[tx] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 1, 32, 32)  # error mask names an absent lane: the mask 0xffffffff of thread (0, 0, 0) of block (0, 0, 0) names lane 16, which the block does not have

@T.prim_func
def bad_names_diverged(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    if A[tx] > 0:
        B[tx] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 0, 32, 32)  # error mask names a diverged lane: the mask 0xffffffff of thread (1, 0, 0) of block (0, 0, 0) names thread (0, 0, 0) of block (0, 0, 0), which is elsewhere in the program

@T.prim_func
def bad_differ(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.tvm_warp_shuffle_xor(T.Select(tx < 16, T.uint32(4294967295), T.uint32(4294901760)), A[tx], 0, 32, 32)  # error masks differ: the mask 0xffffffff of thread (0, 0, 0) of block (0, 0, 0) names thread (16, 0, 0) of block (0, 0, 0), whose mask is 0xffff0000

@T.prim_func
def good(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.tvm_warp_shuffle_xor(T.Select(tx < 16, T.uint32(65535), T.uint32(4294901760)), A[tx], 1, 32, 32)

@T.prim_func
def good_part_of_a_warp(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 16)
    if tx < 8:
        B[tx] = T.tvm_warp_shuffle_xor(T.uint32(255), A[tx], 1, 32, 32)
