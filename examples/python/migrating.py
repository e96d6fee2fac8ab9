"""A program for TVM's tensor expressions, which TVM took out in 2025, on coulis: one import changes.

It is the matrix product of TVM's own tutorials, with its schedule for the CPU and one for a GPU. What changes beside the
import is what becomes possible: arrays are taken as they are, and mistakes are told where they are made.
"""

import numpy as np

import coulis as tvm  # was: import tvm
from coulis import te  # was: from tvm import te

M, N, K = 64, 48, 80
k = te.reduce_axis((0, K), "k")
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")

s = te.create_schedule(C.op)
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
ko, ki = s[C].split(k, factor=4)
s[C].reorder(mo, no, ko, mi, ki, ni)
s[C].vectorize(ni)
s[C].parallel(mo)
print(tvm.lower(s, [A, B, C], simple_mode=True))

# As it was written for TVM, by arrays of `nd`.
generator = np.random.default_rng(2)
a = generator.random((M, K), dtype="float32")
b = generator.random((K, N), dtype="float32")
product = tvm.build(s, [A, B, C], target="llvm", name="product")
device = tvm.device("llvm", 0)
c = tvm.nd.array(np.zeros((M, N), dtype="float32"), device)
product(tvm.nd.array(a, device), tvm.nd.array(b, device), c)
tvm.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)

# As it may be written now: the caller's arrays, read and written where they are.
out = np.zeros((M, N), "float32")
product(a, b, out)
np.testing.assert_array_equal(out, c.numpy())

# A function built for other shapes says which.
try:
    product(a[:, 1:], b, out)
except ValueError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("the shapes do not fit")

# A fold that TVM would have run in parallel as a race is refused by the primitive.
try:
    s[C].parallel(ko)
except ValueError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("a parallel fold is a race")
