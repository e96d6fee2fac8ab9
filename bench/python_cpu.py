"""What a call of the Python package costs next to NumPy's own, and how much memory it takes.

Run it with ``python bench/python_cpu.py``."""

import statistics
import subprocess
import sys
import time

import numpy as np

import coulis


def microseconds(call, n=4000):
    """Of one call; the best of nine medians."""
    found = []
    for _ in range(9):
        times = []
        for _ in range(n // 9):
            begin = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - begin)
        found.append(statistics.median(times))
    return min(found) / 1000


def overheads():
    """A row a call: coulis, NumPy, and the difference."""
    x = np.random.default_rng(0).random((8, 8), dtype="float32")
    d = np.random.default_rng(0).random(100)
    five = ["mean", "std", "min", "max", "count"]
    rows = [
        ("8 x 8 float32", "coulis.sum(x)", lambda: coulis.sum(x), "x.sum()", lambda: x.sum()),
        ("8 x 8 float32", "coulis.sum(x, 1)", lambda: coulis.sum(x, 1), "x.sum(1)", lambda: x.sum(1)),
        ("8 x 8 float32", 'coulis.reduce(x, "sum")', lambda: coulis.reduce(x, "sum"), "np.sum(x)", lambda: np.sum(x)),
        ("8 x 8 float32", 'coulis.reduce(x, "sum", 1)', lambda: coulis.reduce(x, "sum", 1), "np.sum(x, 1)", lambda: np.sum(x, 1)),
        ("8 x 8 float32", 'coulis.reduce(x, "sum", axis=1)', lambda: coulis.reduce(x, "sum", axis=1), "np.sum(x, axis=1)", lambda: np.sum(x, axis=1)),
        ("8 x 8 float32", 'coulis.reduce(x, "max", axis=(0, 1))', lambda: coulis.reduce(x, "max", axis=(0, 1)), "np.max(x, axis=(0, 1))", lambda: np.max(x, axis=(0, 1))),
        ("8 x 8 float32", 'coulis.reduce(x, "sum", 1, keepdims=True)', lambda: coulis.reduce(x, "sum", 1, keepdims=True), "np.sum(x, 1, keepdims=True)", lambda: np.sum(x, 1, keepdims=True)),
        ("8 x 8 float32", 'coulis.reduce(x, "argmax", 1)', lambda: coulis.reduce(x, "argmax", 1), "x.argmax(1)", lambda: x.argmax(1)),
        ("8 x 8 float32", 'coulis.std(x, ddof=1)', lambda: coulis.std(x, ddof=1), "x.std(ddof=1)", lambda: x.std(ddof=1)),
        ("100 float64", "coulis.mean(d)", lambda: coulis.mean(d), "d.mean()", lambda: d.mean()),
        ("100 float64", "coulis.reduce(d[::2], 'sum')", lambda: coulis.reduce(d[::2], "sum"), "d[::2].sum()", lambda: d[::2].sum()),
        ("8 x 8 float32", 'coulis.reduce(x, ["mean", "max"], 1)', lambda: coulis.reduce(x, ["mean", "max"], 1), "x.mean(1), x.max(1)", lambda: (x.mean(1), x.max(1))),
        ("8 x 8 float32", "coulis.reduce(x, five, 1)", lambda: coulis.reduce(x, five, 1), "x.mean(1), x.std(1), x.min(1), x.max(1)", lambda: (x.mean(1), x.std(1), x.min(1), x.max(1))),
        ("8 x 8 float32", "coulis.softmax(x)", lambda: coulis.softmax(x), "none", None),
    ]
    print("| array | call | us | NumPy | us | more, us |\n|---|---|---|---|---|---|")
    for array, name, ours, their_name, theirs in rows:
        ours()
        own = microseconds(ours)
        other = microseconds(theirs) if theirs else float("nan")
        print(f"| {array} | `{name}` | {own:.2f} | `{their_name}` | {other:.2f} | {own - other:.2f} |")


MEMORY = """
import resource, sys
import numpy as np, coulis
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
x = np.ones((1 << 13, 1 << 15), np.float32)
view = {view}
call = lambda x: coulis.reduce(x, {ops}, {axis})
call(view[:2, :64])
before = peak()
found = call(view)
found = found if isinstance(found, tuple) else (found,)
print(peak() - before, sum(f.nbytes for f in found))
"""


def memory():
    """What a call on 1 GiB adds to the peak of the process."""
    print("\n| 1 GiB of float32 | call | peak grows by, KiB | results, KiB |\n|---|---|---|---|")
    for view, ops, axis in [
        ("x", "'sum'", "1"),
        ("x", "['sum', 'max', 'var']", "1"),
        ("x", "['mean', 'std', 'min', 'max', 'argmax']", "0"),
        ("x", "'mean'", "None"),
        ("x.T", "['sum', 'max']", "0"),
        ("x[::-1, ::2]", "['sum', 'max']", "1"),
    ]:
        code = MEMORY.format(view=view, ops=ops, axis=axis)
        grown, results = map(int, subprocess.check_output([sys.executable, "-c", code]).split())
        print(f"| `{view}` | `coulis.reduce(x, {ops}, {axis})` | {grown / 1024:.0f} | {results / 1024:.0f} |")


if __name__ == "__main__":
    print("Python", sys.version.split()[0], "NumPy", np.__version__, "coulis", coulis.__version__, coulis.machine()["compiler"].splitlines()[0])
    overheads()
    memory()
