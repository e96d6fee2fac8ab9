"""Sums of rows as a tensor expression: written, scheduled, looked at, and run.

A walk through the same ground as the reduction tutorial of TVM. Run it with ``python examples/python/tutorial.py``; it
needs NumPy, and a GPU for the last part only, which it leaves out where there is none.
"""

import numpy as np

import coulis
from coulis import te

# What is computed. An axis to fold over has a domain and a name, and the tensor that is computed says how it is used.
n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), "k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")

# How it is computed, to begin with: one loop a row, one loop over it.
s = te.create_schedule(B.op)
print(coulis.lower(s, [A, B], simple_mode=True))

# Axes that are folded are split as any other. Points past the end of an uneven split are guarded.
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
xo, xi = s[B].split(B.op.axis[0], factor=32)
print(coulis.lower(s, [A, B], simple_mode=True))

# The rows of a block of 32 may go to threads of the CPU; every schedule computes the same sums.
s[B].parallel(xo)
print(s.explain())
rows = coulis.build(s, [A, B], "cpu", name="rows")
a = np.random.default_rng(0).random((100, 77), dtype="float32")
b = np.zeros(100, dtype="float32")
rows(a, b)
coulis.testing.assert_allclose(b, a.sum(axis=1), rtol=1e-5)

# A reduction may be factored: 16 partial sums a row, which a second stage folds. Sums of one row then run side by side.
s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
print(coulis.lower(s, [A, B], simple_mode=True))
print(s[B].op.body)

# On a GPU the parts belong to 16 threads that stand beside each other; one of them stores the sum.
xo, xi = s[B].split(s[B].op.axis[0], factor=32)
s[B].bind(xo, te.thread_axis("blockIdx.x"))
s[B].bind(xi, te.thread_axis("threadIdx.y"))
tx = te.thread_axis("threadIdx.x")
s[B].bind(s[B].op.reduce_axis[0], tx)
s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
s[B].set_store_predicate(tx.var.equal(0))
on_gpu = coulis.build(s, [A, B], "cuda")
print(on_gpu.imported_modules[0].get_source())

# The simulator runs the threads of a GPU one after another and tells of races. It needs no GPU.
small = a[:40, :20].copy()
simulated = np.zeros(40, dtype="float32")
coulis.build(s, [A, B], "sim")(small, simulated)
coulis.testing.assert_allclose(simulated, small.sum(axis=1), rtol=1e-5)

if coulis.cuda(0).exist:
    there = coulis.nd.array(a, coulis.cuda(0)), coulis.nd.empty(100, device=coulis.cuda(0))
    on_gpu(*there)
    coulis.testing.assert_allclose(there[1].numpy(), a.sum(axis=1), rtol=1e-5)
else:
    print("SKIP: the part that runs on a GPU")

# Several axes are folded at once: a convolution of an image with a filter of 3 by 3.
Image = te.placeholder((n, n), name="Image")
Filter = te.placeholder((3, 3), name="Filter")
di, dj = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj")
Output = te.compute(
    (n - 2, n - 2),
    lambda i, j: te.sum(Image[i + di, j + dj] * Filter[di, dj], axis=[di, dj]),
    name="Output",
)
convolve = coulis.build(te.create_schedule(Output.op), [Image, Filter, Output])
image, kernel = np.ones((8, 8), "float32"), np.arange(9, dtype="float32").reshape(3, 3)
out = np.zeros((6, 6), "float32")
convolve(image, kernel, out)
coulis.testing.assert_allclose(out, np.full((6, 6), 36.0))

# A reducer of one's own: what two states become, and the state that changes nothing. Here it is the position and the
# value of the largest element, the first of equal ones.
def larger(x, y):
    first = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))
    return te.select(first, x[0], y[0]), te.select(first, x[1], y[1])


argmax = te.comm_reducer(larger, lambda *t: (te.max_value(t[0]), te.const(float("-inf"), t[1])), name="argmax")
k = te.reduce_axis((0, m), "k")
where, value = te.compute((n,), lambda i: argmax((k.var, A[i, k]), axis=k), name="T")
found = np.zeros(100, "int32"), np.zeros(100, "float32")
coulis.build(te.create_schedule(where.op), [A, where, value])(a, *found)
np.testing.assert_array_equal(found[0], a.argmax(axis=1))
np.testing.assert_array_equal(found[1], a.max(axis=1))
print("every result agrees with NumPy's")
