"""Ctrl-C while a kernel is compiled or runs."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the system has no signals")

# Every kernel here would run for hours. A second thread stands for the user, which also shows that the interpreter's lock is free.
PROGRAM = """
import os, signal, threading, time
import numpy as np
import coulis

long = '''
@T.prim_func
def long(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for p in T.{kind}(64):
        for q in T.serial(2000000000):
            for r in T.serial(2000000):
                B[p] = B[p] * T.float32(0.5) + A[(q + r + p) % 64]
'''
f = coulis.compile(long, {target!r})
# Programs that a shell starts in the background begin without this handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
a, b = np.ones(64, "float32"), np.zeros(64, "float32")
# This thread runs while the kernel does.
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.process_time()  # of this process: others may have the machine
try:
    f(a, b)
except KeyboardInterrupt:
    took = time.process_time() - begin
    assert took < 10, took
    # What is called next runs as ever.
    assert coulis.sum(np.ones((300, 300))) == 90000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("stopped")
"""


@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("target, compiler", [("cpu", None), ("cpu", "/nonexistent"), ("sim", None)])
def test_a_kernel_that_runs_for_hours_is_stopped(target, compiler, kind):
    program = PROGRAM.format(kind=kind, target=target)
    environment = {**os.environ, **({"COULIS_CC": compiler} if compiler else {})}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == "stopped\n", done.stderr


HANDLED = """
import os, signal, threading, time
import numpy as np
import coulis

heard = []
x = np.ones((2000, 100))
signal.signal(signal.SIGINT, lambda *_: heard.append(1))

def tell():
    for _ in range(10):
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

thread = threading.Thread(target=tell)
thread.start()
while thread.is_alive():
    assert coulis.sum(x, device="sim") == x.size
assert heard
print("went on")
"""


def test_a_handler_of_ones_own_decides_itself():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(HANDLED)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "went on\n", done.stderr


COMPILED = """
import os, signal, threading, time
import numpy as np
import coulis

signal.signal(signal.SIGINT, signal.default_int_handler)
log = os.environ["LOG"]

def tell():
    while not os.path.exists(log):
        time.sleep(0.02)
    os.kill(0 if {whole_group} else os.getpid(), signal.SIGINT)

threading.Thread(target=tell).start()
try:
    coulis.reduce(np.ones((3, 4)), ["sum", "var", "argmax"])
except KeyboardInterrupt:
    print("stopped", open(log).read().count("compile"))
"""


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_compiler_is_ended_and_not_started_again(tmp_path, whole_group):
    compiler, log, cache = tmp_path / "cc", tmp_path / "log", tmp_path / "cache"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *--version*) exec echo slow;; esac\necho compile >> {log}\nsleep 300\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "COULIS_CC": str(compiler), "COULIS_CACHE_DIR": str(cache), "LOG": str(log)}
    program = COMPILED.format(whole_group=whole_group)
    # A session of its own, as under a terminal, whose Ctrl-C is sent to every process of the group.
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        start_new_session=True,
    )
    assert done.stdout == "stopped 1\n", done.stderr
    assert not list((cache / "cpu").glob(".build-*"))


NESTED = """
import os, signal
import numpy as np
import coulis

signal.signal(signal.SIGINT, signal.default_int_handler)
x = np.ones((30, 40), np.float32)

def away(v, mean):
    # Called where a kernel is made, which is work that Ctrl-C ends too.
    assert coulis.sum(np.ones((300, 300))) == 90000
    os.kill(os.getpid(), signal.SIGINT)
    return v - mean

try:
    coulis.normalization(map=away, statistics=["mean"], name="away")(x)
except KeyboardInterrupt:
    print("stopped")
assert coulis.sum(x) == x.size
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_work_inside_of_work_hears_of_an_interrupt_once():
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "stopped\n", (done.returncode, done.stderr)
