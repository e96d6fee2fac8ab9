"""Results, plans and reducers go to other processes, and are copied; what cannot go says why."""

import concurrent.futures
import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import coulis
from coulis import te

X = np.arange(24, dtype=np.float32).reshape(4, 6)
OPS = ["sum", "argmax", "maxloc", "var"]


def same(a, b):
    assert type(a) is type(b)
    for x, y in zip(a, b):
        same(x, y) if isinstance(x, tuple) else np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_results_of_several_statistics_are_pickled(axis, protocol):
    found = coulis.reduce(X, OPS, axis)
    again = pickle.loads(pickle.dumps(found, protocol))
    same(again, found)
    assert again._fields == found._fields and again.maxloc._fields == ("value", "index")


def test_results_are_copied_shallow_and_deep():
    found = coulis.reduce(X, OPS, 1)
    shallow, deep = copy.copy(found), copy.deepcopy(found)
    same(shallow, found)
    same(deep, found)
    assert shallow.sum is found.sum and deep.sum is not found.sum
    deep.sum[0] = -1
    assert found.sum[0] == X[0].sum()
    assert found._replace(sum=None).sum is None and found._asdict()["argmax"] is found.argmax


def total(a, b):
    return a + b


def square(v):
    return v * v


SQUARES = coulis.reducer(combine=total, identity=0, lift=square, name="squares")


def work(x, ops, plan):
    return coulis.reduce(x, ops, 1), plan(x)


def test_other_processes_get_reducers_and_plans_and_give_results():
    plan = coulis.plan(X, ["max", "mean"], 1)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found, planned = pool.submit(work, X, [SQUARES, "argmax"], plan).result()
        np.testing.assert_array_equal(found.squares, (X * X).sum(1))
        same(planned, coulis.reduce(X, ["max", "mean"], 1))
        with pytest.raises(coulis.AxisError, match="legal axes"):
            pool.submit(coulis.sum, X, 2).result()


def test_plans_reducers_devices_and_measurements_are_pickled():
    plan = coulis.plan(X.T, "sum", 0, keepdims=True)
    plan.trace = plan.trace
    for again in [pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)]:
        assert (again.trace, again.name) == (plan.trace, plan.name)
        np.testing.assert_array_equal(again(X.T), plan(X.T))
    assert len(pickle.dumps(coulis.plan(np.zeros(1 << 16), "sum"))) < 1 << 14, "the array is not a part of its plan"
    assert pickle.loads(pickle.dumps(SQUARES)).name == "squares" and copy.deepcopy(SQUARES) is SQUARES
    assert pickle.loads(pickle.dumps(coulis.cuda(1))) == coulis.cuda(1)
    array = pickle.loads(pickle.dumps(coulis.nd.array(X)))
    np.testing.assert_array_equal(array.numpy(), X)
    measured = coulis.bench((8, 8), "sum", seconds=0.001)
    assert pickle.loads(pickle.dumps(measured)) == measured


def test_plans_keep_the_strides_of_their_arrays():
    rng = np.random.default_rng(5)
    x, wide = rng.random((16, 8, 32), np.float32), rng.random((16, 16, 64)) > 0.3
    row, weight = wide[:1, :1, :32], np.repeat(rng.random(256), 2)[::-2].reshape(8, 32)
    masks = [
        wide[:, ::2, :32],
        wide[:, 8:, ::-2],
        wide[::-1, :8].transpose(2, 0, 1)[:32].transpose(1, 2, 0),
        np.ascontiguousarray(wide[:, :8, :32].transpose(1, 0, 2)).transpose(1, 0, 2),
        np.broadcast_to(row, x.shape),
        np.broadcast_to(wide[:, :1, :32], x.shape)[:, ::-1],
    ]
    for axis in (None, 0, 1, 2):
        plans = [coulis.plan(x, ["sum", "count"], axis, where=mask) for mask in masks]
        for plan in [*plans, *(coulis.plan(x, "softmax", axis, where=mask) for mask in masks)]:
            wanted = plan(x)
            for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), copy.copy(plan)):
                same([again(x)] if axis is None else again(x), [wanted] if axis is None else wanted)
                mask, found = plan._options["where"], again._options["where"]
                assert found.strides == mask.strides and (found == mask).all()
                assert again._mapped is None or again._mapped.options["where"] is found
    normed = coulis.plan(x, "layer_norm", (1, 2), weight=weight)
    same(pickle.loads(pickle.dumps(normed))(x), normed(x))
    sparse = np.zeros((64, 64 << 10), bool)[:, ::1024]
    assert len(pickle.dumps(coulis.plan((64, 64), "sum", where=sparse))) < 1 << 14, "what lies between elements is no part of it"


def test_what_cannot_be_pickled_says_so():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    for thing in [n, A, B, schedule, coulis.build(schedule, [A, B])]:
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)
    inline = coulis.reducer(combine=lambda a, b: a + b, identity=0, name="inline")
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(inline)
