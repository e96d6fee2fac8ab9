# test: parse canonical form=flat
@I.ir_module
class Module:
    @T.prim_func
    def main(Input: T.handle, Filter: T.Buffer((3, 3), "float32"), Output: T.handle):
        n = T.int32()
        Input_1 = T.match_buffer(Input, (n, n), strides=("stride", "stride"), buffer_type="auto")
        Output_1 = T.match_buffer(Output, (n - 2, n - 2))
        for i, j in T.grid(n - 2, n - 2):
            Output_2 = T.Buffer(((n - 2) * (n - 2),), data=Output_1.data)
            Output_2[i * (n - 2) + j] = T.float32(0)
            for di, dj in T.grid(3, 3):
                Input_2 = T.Buffer((Input_1.strides[0] * n,), data=Input_1.data, buffer_type="auto")
                Filter_1 = T.Buffer((9,), data=Filter.data)
                Output_2[i * (n - 2) + j] = Output_2[i * (n - 2) + j] + Input_2[(i + di) * Input_1.strides[0] + (j + dj) * Input_1.strides[1]] * Filter_1[di * 3 + dj]
