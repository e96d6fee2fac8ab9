"""Times what a Python user would pick instead, on the CPU: NumPy, JAX, and PyTorch where installed.

A result as large as the input is written where the peer lets a caller say so (not in JAX), so that no pages are made anew.
It is a server, so that each peer and coulis can be timed in turns over the same milliseconds of the same machine: one JSON
object a line on standard input, one answer a line on standard output.
  {"do": "hello"}                                   -> {"peers": {"numpy": "2.4.6", ...}}
  {"do": "make", "dtype", "shape", "axes", "ops"}   -> {"ok": true}
  {"do": "time", "peer": "numpy"}                   -> {"ms": best of a few samples}
  {"do": "drop"}                                    -> {"ok": true}
"""
import json
import math
import sys
import time

import numpy as np

PEERS = {"numpy": np.__version__}
try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    PEERS["jax"] = jax.__version__
except ImportError:
    jax = None
try:
    import torch

    PEERS["torch"] = torch.__version__
except ImportError:
    torch = None
try:
    import ml_dtypes

    BF16 = ml_dtypes.bfloat16
except ImportError:
    BF16 = None


def make(shape, dtype):
    """Repeated random blocks: values do not matter to speed, only that they are ordinary numbers."""
    n = int(np.prod(shape))
    rng = np.random.default_rng(1)
    block = min(n, 1 << 20)
    if dtype == "int8":
        base = rng.integers(-5, 5, block).astype(np.int8)
    else:
        kind = BF16 if dtype == "bfloat16" else np.dtype(dtype)
        base = rng.standard_normal(block, dtype=np.float32).astype(kind)
    out = np.empty(n, base.dtype)
    for at in range(0, n, block):
        out[at:at + block] = base[:min(block, n - at)]
    return out.reshape(shape)


def numpy_call(x, ops, axes):
    axes = tuple(axes)
    wide = x.dtype if x.dtype in (np.float32, np.float64) else (np.int64 if x.dtype.kind == "i" else np.float32)

    def logsumexp():
        m = x.max(axis=axes, keepdims=True).astype(wide)
        return np.log(np.exp(x.astype(wide) - m).sum(axis=axes)) + m.reshape(m.sum(axis=axes).shape)

    def softmax():
        np.subtract(x, x.max(axis=axes, keepdims=True), out=result)
        np.exp(result, out=result)
        np.divide(result, result.sum(axis=axes, keepdims=True), out=result)

    result = np.empty(x.shape, wide) if "softmax" in ops else None
    table = {
        "sum": lambda: x.sum(axis=axes, dtype=wide),
        "mean": lambda: x.mean(axis=axes, dtype=wide),
        "var": lambda: x.var(axis=axes, dtype=wide),
        "min": lambda: x.min(axis=axes),
        "max": lambda: x.max(axis=axes),
        "meansq": lambda: np.square(x.astype(wide)).mean(axis=axes),
        "argmax": lambda: x.argmax(axis=axes[0]),
        "logsumexp": logsumexp,
        "softmax": softmax,
    }
    return lambda: [table[op]() for op in ops]


def jax_call(x, ops, axes):
    axes = tuple(axes)

    def fn(a):
        wide = a.dtype if a.dtype in (jnp.float32, jnp.float64) else (jnp.int64 if a.dtype == jnp.int8 else jnp.float32)
        table = {
            "sum": lambda: jnp.sum(a, axes, dtype=wide),
            "mean": lambda: jnp.mean(a, axes, dtype=wide),
            "var": lambda: jnp.var(a.astype(wide), axes),
            "min": lambda: jnp.min(a, axes),
            "max": lambda: jnp.max(a, axes),
            "meansq": lambda: jnp.mean(jnp.square(a.astype(wide)), axes),
            "argmax": lambda: jnp.argmax(a, axes[0]),
            "logsumexp": lambda: jax.nn.logsumexp(a.astype(wide), axes),
            "softmax": lambda: jax.nn.softmax(a, axes),
        }
        return [table[op]() for op in ops]

    compiled = jax.jit(fn)
    on_device = jax.device_put(x)
    return lambda: jax.block_until_ready(compiled(on_device))


def torch_call(x, ops, axes):
    axes = tuple(axes)
    t = torch.from_numpy(x) if BF16 is None or x.dtype != BF16 else torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    wide = t.dtype if t.dtype in (torch.float32, torch.float64) else (torch.int64 if t.dtype == torch.int8 else torch.float32)
    result = torch.empty_like(t) if "softmax" in ops else None
    table = {
        "sum": lambda: torch.sum(t, axes, dtype=wide),
        "mean": lambda: torch.mean(t, axes, dtype=wide),
        "var": lambda: torch.var(t.to(wide), axes, correction=0),
        "min": lambda: torch.amin(t, axes),
        "max": lambda: torch.amax(t, axes),
        "meansq": lambda: torch.mean(torch.square(t.to(wide)), axes),
        "argmax": lambda: torch.argmax(t, axes[0]),
        "logsumexp": lambda: torch.logsumexp(t.to(wide), axes),
        "softmax": lambda: torch.softmax(t, axes[0], out=result),
    }
    return lambda: [table[op]() for op in ops]


CALLS = {"numpy": numpy_call, "jax": jax_call, "torch": torch_call}


SAMPLE = 20e-6  # least seconds of a sample
SAMPLES = 1e-3  # seconds of samples in a turn, the best of which counts, and the fewest of them
FEWEST_SAMPLES = 2
LONG = 50e-3  # a call as long as this is no slower for what another library left in the caches


class Timed:
    """A call, made ready, and how many of it are a sample."""

    def __init__(self, call):
        self.call = call
        call()
        self.n_calls = 1
        self.once = self.sample()
        self.n_calls = max(1, math.ceil(SAMPLE / max(self.once, 1e-8)))

    def sample(self):
        start = time.perf_counter()
        for _ in range(self.n_calls):
            self.call()
        return (time.perf_counter() - start) / self.n_calls

    def milliseconds(self):
        fewest = FEWEST_SAMPLES if self.once < LONG else 1
        samples = []
        end = time.perf_counter() + SAMPLES
        while len(samples) < fewest or time.perf_counter() < end:
            samples.append(self.sample())
        return min(samples) * 1e3


def main():
    x, spec, calls = None, None, {}
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "hello":
            answer = {"peers": PEERS}
        elif ask["do"] == "make":
            spec, calls = ask, {}
            x = make(ask["shape"], ask["dtype"])
            answer = {"ok": True}
        elif ask["do"] == "time":
            try:
                if ask["peer"] not in calls:
                    calls[ask["peer"]] = Timed(CALLS[ask["peer"]](x, spec["ops"], spec["axes"]))
                answer = {"ms": calls[ask["peer"]].milliseconds()}
            except Exception as error:  # a peer may lack a dtype; the table says so
                answer = {"error": f"{type(error).__name__}: {error}"}
        else:
            x, calls = None, {}
            answer = {"ok": True}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
