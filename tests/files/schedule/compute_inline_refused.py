# test: schedule program=scaled_row_sum
s[T].compute_inline()  # error schedule: compute_inline takes a stage without a reduction, and `T` is a reduction
