# test: schedule program=row_sum
i_outer, i_inner = s[B].split(i, factor=8)
B_rf = s.rfactor(B, i_inner)  # error schedule: rfactor takes a reduce axis of `B`, and `i_inner` is a data axis; legal are `k`
