# test: schedule program=row_sum
k_outer, k_inner = s[B].split(k, factor=0)  # error schedule: split of `k` takes a factor of at least 1, got 0
