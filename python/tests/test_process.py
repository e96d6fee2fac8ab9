"""Memory, threads and forks."""

import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import coulis


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not say what is resident")
def test_no_input_is_copied():
    x = np.ones((1 << 12, 1 << 12), np.float32)
    for view in [x, x.T, x[::-1, ::2]]:
        coulis.reduce(view, ["sum", "max"], 0)
        tracemalloc.start()
        before = resident()
        found = coulis.reduce(view, ["sum", "max"], 0)
        grown, (_, peak) = resident() - before, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.sum[0] == view.shape[0]
        assert peak < x.nbytes // 16 and grown < x.nbytes // 4


BIG = """
import resource
import numpy as np
import coulis

x = np.zeros((1 << 13, 1 << 15), np.float32)
coulis.reduce(x[:2], ["sum", "max", "var"], 1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = coulis.reduce(x, ["sum", "max", "var"], 1)
assert found.max.shape == (1 << 13,) and not found.sum.any()
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 - x.nbytes * {is_resident}
assert grown < 64 << 20, grown
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="the system does not say what is resident")
def test_an_array_of_a_gigabyte_takes_no_more_memory_than_its_results():
    # Pages that were never written are read from one page of zeros, or from large ones where the system is set so.
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
        is_resident = int("[always]" in file.read())
    done = subprocess.run([sys.executable, "-c", BIG.format(is_resident=is_resident)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_threads_reduce_side_by_side():
    x = np.arange(1 << 16, dtype=np.float64).reshape(256, 256)
    wanted = x.sum(0)
    failures = []

    def work():
        for _ in range(20):
            if not np.array_equal(coulis.sum(x, 0), wanted) or coulis.max(x) != x.max():
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_reduces_while_threads_of_the_parent_do():
    x = np.ones(1 << 21)
    coulis.sum(x)
    is_done = threading.Event()

    def work():
        while not is_done.is_set():
            coulis.sum(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                is_right = coulis.sum(x) == x.size and coulis.mean(np.ones((64, 64)), 0).shape == (64,)
                os._exit(0 if is_right else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_done.set()
        thread.join()
    assert coulis.sum(x) == x.size


@pytest.mark.skipif(os.name != "posix", reason="the system has no folders of processes")
def test_a_process_without_a_cache_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "COULIS_CACHE_DIR": str(tmp_path / "file"), "TMPDIR": str(temporary)}
    program = "import coulis, numpy; assert coulis.sum(numpy.ones((3, 4))) == 12"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == []
