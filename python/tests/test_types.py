"""The type stubs, judged by a type checker against the package as it runs. SKIP where mypy is not there."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

#: Libraries that need not be there, and classes that are made as the program runs.
CONFIGURATION = """
[mypy]
ignore_missing_imports = True
[mypy-coulis._named,coulis.torch]
ignore_errors = True
"""

#: What is there and is nobody's business; and what stubs cannot say.
ALLOWED = r"""
coulis\.torch
coulis\._named\.named
"""

PROGRAM = """
import coulis
import coulis.torch
import numpy as np
from coulis import te

x = np.ones((3, 4))
total = coulis.sum(x, axis=1)
found = coulis.reduce(x, ["mean", "max"], 0, keepdims=True)
coulis.max(x, np.int64(0)), coulis.reduce(x, "sum", axis=(np.int64(0), 1), device=coulis.cpu())
version: str = coulis.__version__
coulis.torch.logsumexp, coulis.torch.reduce
p: coulis.Plan = coulis.plan(x, "sum", axis=1)
text: str = p.trace
A: te.Tensor = te.placeholder((4, te.var("n")), name="A")
k: te.IterVar = te.reduce_axis((0, A.shape[1]), "k")
te.placeholder([np.int64(3)], dtype=np.float32), te.var("j").astype(np.dtype("int64")) + np.int64(1)
rows: int = A.ndim + A.op.num_outputs
last: te.PrimExpr = te.exp(A[0, k] + 1) * 2 - k // 2 + A[1][k]
below: te.PrimExpr = te.if_then_else(last < 3, last, te.max_value("float32"))
B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] != 0.0), name="B")
s: te.Schedule = te.create_schedule([B.op])
outer, inner = s[B].split(s[B].op.reduce_axis[0], factor=16)
C = s.rfactor(B, inner)
lines: str = s.trace + s.explain() + s.copy().trace + ", ".join(stage.op.name for stage in s.stages)
largest = te.comm_reducer(lambda x, y: te.maximum(x, y), lambda dtype: te.min_value(dtype), name="largest")
coulis.summ(x)  # type: ignore[attr-defined]
coulis.plan(x)  # type: ignore[call-arg]
coulis.sum(x, axis="rows")  # type: ignore[arg-type]
te.exp("A")  # type: ignore[arg-type]
te.placeholder((4,), dtype=3)  # type: ignore[arg-type]
s[3]  # type: ignore[index]
A.shapes  # type: ignore[attr-defined]
k.dom.extent  # type: ignore[union-attr]
wrong: int = te.reduce_axis((0, 4))  # type: ignore[assignment]
"""


def test_the_stubs_say_what_the_package_has(tmp_path):
    (tmp_path / "allowed.txt").write_text(ALLOWED)
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    options = ["--concise", "--ignore-missing-stub", "--ignore-unused-allowlist", "--allowlist", "allowed.txt", "--mypy-config-file", "mypy.ini"]
    command = [sys.executable, "-m", "mypy.stubtest", "coulis", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_type_checker_reads_a_program_and_finds_its_mistakes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
