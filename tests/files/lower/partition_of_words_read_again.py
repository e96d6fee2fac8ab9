# test: lower after=partition_loops target=sm_90a
@T.prim_func(form="Nest")
def read_again(A: T.Buffer((1000,), "float32"), B: T.Buffer((4, 32), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 32)
    best = T.allocate([1], "float32", "local")
    best[0] = T.float32(0)
    word = T.allocate([4], "float32", "local")
    run = T.allocate([1], "float32", "local")
    run[0] = T.float32(0)
    for k in T.unroll(2):
        for lane in T.vectorized(4):
            if T.likely(bx * 64 + k * 32 + tx < 250):
                word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
        for lane in T.unroll(4):
            if T.likely(bx * 64 + k * 32 + tx < 250):
                run[0] = T.max(run[0], word[lane])
    if best[0] < run[0]:
        for k in T.unroll(2):
            for lane in T.vectorized(4):
                if T.likely(bx * 64 + k * 32 + tx < 250):
                    word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
            for lane in T.unroll(4):
                if T.likely(bx * 64 + k * 32 + tx < 250):
                    if word[lane] == run[0]:
                        best[0] = T.Cast("float32", bx * 256 + k * 128 + tx * 4 + lane)
    B[bx, tx] = best[0]

# prints:
#   @T.prim_func
#   def read_again(A: T.Buffer((1000,), "float32"), B: T.Buffer((4, 32), "float32")):
#       bx = T.launch_thread("blockIdx.x", 4)
#       tx = T.launch_thread("threadIdx.x", 32)
#       B_1 = T.Buffer((128,), data=B.data)
#       if bx < 3:
#           best = T.allocate([1], "float32", "local", align=4)
#           best[0] = T.float32(0)
#           word = T.allocate([4], "float32", "local", align=16)
#           run = T.allocate([1], "float32", "local", align=4)
#           run[0] = T.float32(0)
#           for k in T.unroll(2):
#               for lane in T.vectorized(4):
#                   word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
#               for lane in T.unroll(4):
#                   run[0] = T.max(run[0], word[lane])
#           if best[0] < run[0]:
#               for k in T.unroll(2):
#                   for lane in T.vectorized(4):
#                       word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
#                   for lane in T.unroll(4):
#                       if word[lane] == run[0]:
#                           best[0] = T.Cast("float32", bx * 256 + k * 128 + tx * 4 + lane)
#           B_1[bx * 32 + tx] = best[0]
#       else:
#           best = T.allocate([1], "float32", "local", align=4)
#           best[0] = T.float32(0)
#           word = T.allocate([4], "float32", "local", align=16)
#           run = T.allocate([1], "float32", "local", align=4)
#           run[0] = T.float32(0)
#           for k in T.unroll(2):
#               for lane in T.vectorized(4):
#                   if T.likely(bx * 32 + k * 16 + tx // 2 < 125):
#                       word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
#               if T.likely(bx * 32 + k * 16 + tx // 2 < 125):
#                   for lane in T.unroll(4):
#                       run[0] = T.max(run[0], word[lane])
#           if best[0] < run[0]:
#               for k in T.unroll(2):
#                   for lane in T.vectorized(4):
#                       if T.likely(bx * 32 + k * 16 + tx // 2 < 125):
#                           word[lane] = A[bx * 256 + k * 128 + tx * 4 + lane]
#                   if T.likely(bx * 32 + k * 16 + tx // 2 < 125):
#                       for lane in T.unroll(4):
#                           if word[lane] == run[0]:
#                               best[0] = T.Cast("float32", bx * 256 + k * 128 + tx * 4 + lane)
#           B_1[bx * 32 + tx] = best[0]
