# test: parse
@T.prim_func
def f(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4,), "float32", alignment=16)  # error parse: `T.match_buffer` has no argument `alignment`; legal: data, strides, elem_offset, scope, align, buffer_type, layout, offset_factor
    A[0] = T.float32(0)
