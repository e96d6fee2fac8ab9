# test: schedule program=row_sum
s[B].vectorize(k)  # error schedule: vectorize takes a data axis of `B`, and `k` is a reduce axis; legal are `i`
