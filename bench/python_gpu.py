"""The Python package on a GPU: what is right, then what it costs the host. Run it with ``python bench/python_gpu.py``.

It needs PyTorch with CUDA; CuPy and JAX are measured where they are. The tests of ``python/tests`` come before it.
"""

import statistics
import time

import numpy as np
import torch

import coulis
import coulis.torch


def host_time(call, n=2000):
    """Microseconds of the host for a call that only puts work on a stream; the best of five medians."""
    found = []
    for _ in range(5):
        times = []
        for at in range(n // 5):
            begin = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - begin)
            if at % 50 == 49:
                torch.cuda.synchronize()
        found.append(statistics.median(times))
    torch.cuda.synchronize()
    return min(found) / 1000


def errors():
    """Largest error of softmax and the norms against float64, over PyTorch's own; both of float32 inputs."""
    print("\n| map | shape | dtype | error of coulis | error of PyTorch |\n|---|---|---|---|---|")
    functional = torch.nn.functional
    maps = {
        "softmax": (lambda x: coulis.torch.softmax(x), lambda x: x.softmax(-1)),
        "log_softmax": (lambda x: coulis.torch.log_softmax(x), lambda x: x.log_softmax(-1)),
        "layer_norm": (lambda x: coulis.torch.layer_norm(x), lambda x: functional.layer_norm(x, x.shape[-1:])),
        "rms_norm": (lambda x: coulis.torch.rms_norm(x, eps=1e-6), lambda x: functional.rms_norm(x, x.shape[-1:], eps=1e-6)),
    }
    for shape in [(64, 1000), (33, 4097), (8, 50257)]:
        for dtype in [torch.float32, torch.bfloat16, torch.float16]:
            x = torch.randn(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).to(dtype)
            for name, (ours, theirs) in maps.items():
                exact = theirs(x.double())
                error = [((f(x).double() - exact).norm() / exact.norm()).item() for f in (ours, theirs)]
                print(f"| {name} | {shape[0]} x {shape[1]} | {str(dtype)[6:]} | {error[0]:.2e} | {error[1]:.2e} |")
                assert error[0] < max(2 * error[1], {"float32": 1e-6}.get(str(dtype)[6:], 5e-3)), name


def overheads():
    """Time of the host for a call."""
    print("\n| array | call | coulis, us | its library's own, us |\n|---|---|---|---|")
    small, large = torch.rand(64, 64, device="cuda"), torch.rand(8192, 8192, device="cuda")
    five = ["mean", "std", "min", "max", "count"]
    for name, x in [("64 x 64", small), ("8192 x 8192", large)]:
        rows = [
            ("sum, axis 1", lambda: coulis.sum(x, 1), lambda: x.sum(1)),
            ("reduce sum, axis 1", lambda: coulis.reduce(x, "sum", 1), lambda: x.sum(1)),
            ("sum, all", lambda: coulis.reduce(x, "sum"), lambda: x.sum()),
            ("mean and max, axis 1", lambda: coulis.reduce(x, ["mean", "max"], 1), lambda: (x.mean(1), x.amax(1))),
            (
                "five statistics, axis 1",
                lambda: coulis.reduce(x, five, 1),
                lambda: (*torch.std_mean(x, 1, correction=0), *torch.aminmax(x, dim=1)),
            ),
            ("softmax", lambda: coulis.softmax(x), lambda: x.softmax(-1)),
        ]
        for what, ours, theirs in rows:
            n = 2000 if x is small else 250
            print(f"| torch, {name} | {what} | {host_time(ours, n):.1f} | {host_time(theirs, n):.1f} |")
    for name in ["cupy", "jax.numpy"]:
        try:
            module = __import__(name, fromlist=["x"])
        except ImportError:
            print(f"SKIP {name}")
            continue
        x = module.asarray(np.random.default_rng(0).random((64, 64), dtype="float32"))
        ours, theirs = host_time(lambda: coulis.reduce(x, "sum", 1), 500), host_time(lambda: x.sum(1), 500)
        print(f"| {name}, 64 x 64 | reduce sum, axis 1 | {ours:.1f} | {theirs:.1f} |")
    x = np.random.default_rng(0).random((8, 8), dtype="float32")
    for what, ours, theirs in [
        ("sum, axis 1", lambda: coulis.reduce(x, "sum", 1), lambda: x.sum(1)),
        ("sum, all", lambda: coulis.reduce(x, "sum"), lambda: x.sum()),
        ("mean and max, axis 1", lambda: coulis.reduce(x, ["mean", "max"], 1), lambda: (x.mean(1), x.max(1))),
    ]:
        print(f"| numpy, 8 x 8 | {what} | {host_time(ours):.1f} | {host_time(theirs):.1f} |")


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "NumPy", np.__version__)
    errors()
    overheads()
