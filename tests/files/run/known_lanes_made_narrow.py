# test: run device=cpu
# test: run device=cpu_exec
@T.prim_func
def ten_from_five(B: T.Buffer((10,), "int32")):
    for i in range(T.int64(10)):
        B[i] = T.Cast("int32", i + T.int64(5))

# prints:
#   B int32 [10]: 5 6 7 8 9 10 11 12 13 14
