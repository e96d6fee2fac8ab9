# Memory whose size hangs on a loop's variable, in a loop of one step, which is left out, and in one of two.
# test: run device=cpu
# test: run device=cpu_exec
# given: A[9] = 1 2 3 4 5 6 7 8 9
@T.prim_func
def sums(A: T.Buffer((9,), "float32"), B: T.Buffer((3,), "float32")):
    for i in range(1):
        some = T.allocate([i + 4], "float32", "global")
        for k in range(i + 4):
            some[k] = A[k] + T.float32(1)
        B[i] = T.float32(0)
        for k in range(i + 4):
            B[i] = B[i] + some[k]
    for i in range(2):
        more = T.allocate([i + 5], "float32", "global")
        for k in range(i + 5):
            more[k] = A[k] * T.float32(2)
        B[i + 1] = T.float32(0)
        for k in range(i + 5):
            B[i + 1] = B[i + 1] + more[k]

# prints:
#   B float32 [3]: 14 30 42
