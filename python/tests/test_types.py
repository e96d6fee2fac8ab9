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
A = te.placeholder((4,), name="A")
s = te.create_schedule(te.compute((4,), lambda i: A[i], name="B").op)
coulis.summ(x)  # type: ignore[attr-defined]
coulis.plan(x)  # type: ignore[call-arg]
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
