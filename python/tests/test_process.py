"""Memory, threads and forks."""

import os
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
