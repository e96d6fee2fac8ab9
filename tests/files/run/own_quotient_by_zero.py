# test: run device=cpu
# test: run device=cpu_exec
# given: A[3] = 6 5 0
# error run/division: an integer is divided by zero in kernel `divide`
@T.prim_func
def divide(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        B[i] = A[i] // A[i]
