# Column maxima with their rows in two launches of any size; ties keep the first row.
@T.prim_func
def argmax(A: T.handle, value: T.handle, index: T.handle):
    n, m = T.int32(is_size_var=True), T.int32(is_size_var=True)
    A_1 = T.match_buffer(A, (n, m), "float16")
    value_1 = T.match_buffer(value, (m,), "float16")
    index_1 = T.match_buffer(index, (m,), "int64")
    best = T.allocate([8 * m], "float32", "global")
    where = T.allocate([8 * m], "int64", "global")
    A_2 = T.Buffer((n * m,), "float16", data=A_1.data)
    with T.launch_thread("blockIdx.x", (m + 127) // 128) as bx:
        by = T.launch_thread("blockIdx.y", 8)
        tx = T.launch_thread("threadIdx.x", 128)
        v = T.allocate([1], "float32", "local")
        i = T.allocate([1], "int64", "local")
        v[0] = T.float32("-inf")
        i[0] = T.int64(0)
        if bx * 128 + tx < m:
            for k in range((n + 7) // 8):
                if k * 8 + by < n:
                    if T.Cast("float32", A_2[(k * 8 + by) * m + bx * 128 + tx]) > v[0]:
                        i[0] = T.Cast("int64", k * 8 + by)
                    v[0] = T.max(T.Cast("float32", A_2[(k * 8 + by) * m + bx * 128 + tx]), v[0])
            best[by * m + bx * 128 + tx] = v[0]
            where[by * m + bx * 128 + tx] = i[0]
    with T.launch_thread("blockIdx.x", (m + 127) // 128) as bx:
        tx = T.launch_thread("threadIdx.x", 128)
        v = T.allocate([1], "float32", "local")
        i = T.allocate([1], "int64", "local")
        if bx * 128 + tx < m:
            v[0] = best[bx * 128 + tx]
            i[0] = where[bx * 128 + tx]
            for part in range(1, 8):
                if best[part * m + bx * 128 + tx] > v[0] or best[part * m + bx * 128 + tx] == v[0] and where[part * m + bx * 128 + tx] < i[0]:
                    v[0] = best[part * m + bx * 128 + tx]
                    i[0] = where[part * m + bx * 128 + tx]
            value_1[bx * 128 + tx] = T.Cast("float16", v[0])
            index_1[bx * 128 + tx] = i[0]
