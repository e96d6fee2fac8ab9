# test: lower after=vectorize_loops
# Elements of the loop are elements of `A` whatever its strides are, so that lanes that the mask keeps out may read them too.
# Rows whose extent and distance are constants:
# check: S[0:8] = T.Select(W_1[k * 20 + i * W.strides[0]:k * 20 + i * W.strides[0] + 8], S[0:8] + A_1[
# Steps of two, and rows from the last to the first:
# check: S[0:8] = T.Select(B_1[i * B.strides[0] - k * 16:i * B.strides[0] - k * 16 + 16:2] < T.Broadcast(T.float32(3), 8), S[0:8] + A_1[
# The tile of columns that `m` cuts, in vectors of four and then one by one:
# check: for l_s in range(l_n // 4):
# check: T.Select(V_1[
# check: for l_s in range(l_n % 4):
# check: if V_1[
# Rows up to the least of two bounds that has a name:
# check: for r in range(most):
# check: S[0:8] = T.Select(W_1[
# Rows that may not be there for lanes that are kept out stay under the mask:
# check: for i, l_s in T.grid(n, 8):
# check: if W_1[i * W.strides[0] + l_s]:
@T.prim_func(form="Nest")
def masked(A_ptr: T.handle, W_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle, V_ptr: T.handle, S: T.Buffer((16,), "float32")):
    n, m = T.int32(is_size_var=True), T.int32(is_size_var=True)
    A = T.match_buffer(A_ptr, (n, 5, 8), "float32", strides=("sa", 20, 1))
    W = T.match_buffer(W_ptr, (n, 5, 8), "bool", strides=("sw", 20, 1))
    B = T.match_buffer(B_ptr, (n, 5, 8), "float32", strides=("sb", -16, 2))
    C = T.match_buffer(C_ptr, (n, m), "float32", strides=("sc", 1))
    V = T.match_buffer(V_ptr, (n, m), "bool", strides=("sv", 1))
    A_1 = T.Buffer((A.strides[0] * n,), "float32", data=A.data)
    W_1 = T.Buffer((W.strides[0] * n,), "bool", data=W.data)
    B_1 = T.Buffer((B.strides[0] * n,), "float32", data=B.data)
    C_1 = T.Buffer((C.strides[0] * n,), "float32", data=C.data)
    V_1 = T.Buffer((V.strides[0] * n,), "bool", data=V.data)
    for i, k in T.grid(n, 5):
        for l in T.vectorized(8):
            if W_1[i * W.strides[0] + k * 20 + l]:
                S[l] = S[l] + A_1[i * A.strides[0] + k * 20 + l]
        for l in T.vectorized(8):
            if B_1[i * B.strides[0] + k * -16 + l * 2] < T.float32(3):
                S[l] = S[l] + A_1[i * A.strides[0] + k * 20 + l]
    for i, j in T.grid(n, (m + 15) // 16):
        for l in T.vectorized(16):
            if T.likely(j * 16 + l < m):
                if V_1[i * V.strides[0] + j * 16 + l]:
                    S[l] = S[l] + C_1[i * C.strides[0] + j * 16 + l]
    most: T.int32 = T.max(T.min(m - 2, n), 0)
    for r in range(most):
        for l in T.vectorized(8):
            if W_1[r * W.strides[0] + l]:
                S[l] = S[l] + A_1[r * A.strides[0] + l]
    for i in range(n):
        for l in T.vectorized(8):
            if W_1[i * W.strides[0] + l]:
                S[l] = S[l] + A_1[(i + 1) * A.strides[0] + l]
