"""Timings of built functions: ``fn.time_evaluator(fn.entry_name, device)(*args).mean``, as TVM has them."""

from __future__ import annotations

import math
import sys
import time
from collections import namedtuple

Timings = namedtuple("Timings", "results mean median min max std")
Timings.__doc__ = """Seconds of a call: each of `results` is the average of one round."""


class Evaluator:
    """Called with the function's arguments, it times rounds of calls."""

    def __init__(self, function, func_name, dev, number, repeat, min_repeat_ms):
        if func_name not in (function.entry_name, function.__name__):
            raise ValueError(f"there is no function `{func_name}`; legal is {function.entry_name}")
        if number < 1 or repeat < 1:
            raise ValueError(f"`number` and `repeat` are to be at least 1, got {number} and {repeat}")
        dev.check()
        self._function, self._number, self._repeat = function, number, repeat
        self._seconds = min_repeat_ms / 1000

    def __call__(self, *args):
        """Times the calls. Arrays of `coulis.nd` on a GPU are sent there and back by each call; tensors stay there."""
        self._round(args, 1)
        number, results = self._number, []
        while len(results) < self._repeat:
            seconds = self._round(args, number)
            if seconds < self._seconds:
                number = max(number + 1, math.ceil(number * self._seconds / max(seconds, 1e-9) * 1.1))
                continue
            results.append(seconds / number)
        ordered, mean = sorted(results), sum(results) / len(results)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        std = math.sqrt(sum((one - mean) ** 2 for one in results) / len(results))
        return Timings(tuple(results), mean, middle, ordered[0], ordered[-1], std)

    def _round(self, args, number):
        _wait()
        start = time.perf_counter()
        for _ in range(number):
            self._function(*args)
        _wait()
        return time.perf_counter() - start


def _wait():
    """Waits for the GPUs of the libraries that are in use, since calls on their arrays do not."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if cupy is not None:
        cupy.cuda.get_current_stream().synchronize()
