"""A reducer of one's own: the running extent of a signal, and a checksum, beside statistics of the catalogue.

The functions are called once, with symbolic values; what runs over the elements is compiled code.
"""

import numpy as np

import coulis
from coulis import te

# The state is a pair (smallest, largest); the result is one number. Fields have the types that `lift` gives.
extent = coulis.reducer(
    combine=lambda a, b: (te.minimum(a[0], b[0]), te.maximum(a[1], b[1])),
    identity=(float("inf"), float("-inf")),
    lift=lambda x: (x, x),
    finish=lambda s: s[1] - s[0],
    name="extent",
)
signal = np.cumsum(np.random.default_rng(1).normal(size=(4, 10_000)), axis=1).astype(np.float32)
found = coulis.reduce(signal, [extent, "mean"], axis=1)
print("extents", found.extent)
np.testing.assert_allclose(found.extent, np.ptp(signal, axis=1), rtol=1e-6)

# Bits of integers: the exclusive or of all words.
checksum = coulis.reducer(combine=lambda a, b: a ^ b, identity=0, name="checksum")
words = np.frombuffer(signal.tobytes(), np.uint32)
assert coulis.reduce(words, checksum) == np.bitwise_xor.reduce(words)

# A claim is tried before it is believed: subtraction is not associative.
try:
    coulis.reduce(words, coulis.reducer(combine=lambda a, b: a - b, identity=0, name="difference"))
except ValueError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("subtraction is no reducer")
