"""Writes iris.json beside it: what NumPy says about examples/data/iris.npy, for each set of axes."""

import json
import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
a = np.load(here.parents[3] / "examples" / "data" / "iris.npy")


def statistics(axis):
    """Every op of one input over `axis`, as flat lists."""
    kept = tuple(i for i in range(a.ndim) if axis is not None and i not in axis)
    # Reduced axes last and joined, so that positions count over them.
    joined = np.transpose(a, kept + tuple(i for i in range(a.ndim) if i not in kept))
    x = joined.reshape(tuple(a.shape[i] for i in kept) + (-1,))
    n = x.shape[-1]
    shift = x.max(-1)
    last = lambda position: n - 1 - position
    results = {
        "sum": x.sum(-1),
        "prod": x.prod(-1),
        "min": x.min(-1),
        "max": x.max(-1),
        "absmax": np.abs(x).max(-1),
        "mean": x.mean(-1),
        "var": x.var(-1),
        "std": x.std(-1),
        "sumsq": (x * x).sum(-1),
        "norm1": np.abs(x).sum(-1),
        "meansq": (x * x).mean(-1),
        "norm2": np.sqrt((x * x).sum(-1)),
        "logsumexp": np.log(np.exp(x - shift[..., None]).sum(-1)) + shift,
        "any": x.any(-1),
        "all": x.all(-1),
        "count_nonzero": np.count_nonzero(x, -1),
        "count": np.full(x.shape[:-1], n),
        "argmin": x.argmin(-1),
        "argmax": x.argmax(-1),
        "argmin_last": last(x[..., ::-1].argmin(-1)),
        "argmax_last": last(x[..., ::-1].argmax(-1)),
    }
    flat = {op: np.asarray(value).reshape(-1).tolist() for op, value in results.items()}
    flat["minloc"] = {"value": flat["min"], "index": flat["argmin"]}
    flat["maxloc"] = {"value": flat["max"], "index": flat["argmax"]}
    return flat


cases = [{"axis": axis, "results": statistics(axis)} for axis in [None, [0], [1], [0, 1]]]
(here / "iris.json").write_text(json.dumps(cases, indent=1) + "\n")
