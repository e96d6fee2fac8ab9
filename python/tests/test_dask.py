"""`coulis.dask`: one pass over chunks. SKIP where Dask is not there."""

import numpy as np
import pytest

da = pytest.importorskip("dask.array")

import dask  # noqa: E402

import coulis  # noqa: E402
import coulis.dask  # noqa: E402

OPS = ["sum", "var", "argmax", "logsumexp", "maxloc"]
X = (np.arange(7 * 9 * 4).reshape(7, 9, 4) * 37 % 101 / 8 - 3).astype(np.float64)


def close(ours, wanted):
    for field, value in zip(ours._fields, ours):
        if isinstance(value, tuple):
            close(value, getattr(wanted, field))
        else:
            assert value.dtype == np.asarray(getattr(wanted, field)).dtype, field
            np.testing.assert_allclose(value, getattr(wanted, field), rtol=1e-12, err_msg=field)


@pytest.mark.parametrize("axis, chunks", [(None, (3, 4, 2)), (0, (3, 9, 4)), (-1, (7, 9, 4)), ((2, 0), (4, 5, 3))])
def test_any_set_of_statistics_is_what_the_whole_array_gives(axis, chunks):
    x = da.from_array(X, chunks=chunks)
    for keepdims in [False, True]:
        found = coulis.dask.reduce(x, OPS, axis, keepdims=keepdims, split_every=2)
        computed = dask.compute(*found[:-1], *found.maxloc)
        wanted = coulis.reduce(X, OPS, axis, keepdims=keepdims)
        close(type(found)(*computed[:-2], type(found.maxloc)(*computed[-2:])), wanted)
        assert found.sum.shape == np.shape(wanted.sum)


def test_nan_and_integers_and_reducers_of_ones_own():
    holes = np.where(X > 5, np.nan, X)
    found = coulis.dask.reduce(da.from_array(holes, chunks=3), ["mean", "argmax", "count"], 0, nan="ignore")
    close(type(found)(*dask.compute(*found)), coulis.reduce(holes, ["mean", "argmax", "count"], 0, nan="ignore"))
    whole = (X * 8).astype(np.int32)
    assert coulis.dask.reduce(da.from_array(whole, chunks=4), "sum").compute() == whole.sum()
    xor = coulis.reducer(combine=lambda a, b: a ^ b, identity=0, name="xor")
    words = da.from_array(whole.ravel(), chunks=50)
    assert coulis.dask.reduce(words, xor).compute() == np.bitwise_xor.reduce(whole.ravel())
    # A negative result is a position that is not there only where the statistic says so, whatever its name is.
    total = coulis.reducer(combine=lambda a, b: a + b, identity=0, name="argsum")
    assert coulis.dask.reduce(-words, total).compute() == -whole.sum()


def test_infinities_in_chunks_that_are_long_and_short_are_one_state():
    row = np.zeros(1003, np.float32)
    row[[1, 1002]] = np.inf
    for chunks in [(1000, 3), (3, 1000), (64, 64, 3, 872)]:
        x = da.from_array(row, chunks=(chunks,))
        assert coulis.dask.reduce(x, "logsumexp", split_every=2).compute() == np.inf


@pytest.mark.parametrize("axis, chunks", [(None, (3, 4, 2)), (1, (3, 4, 4)), ((0, 2), (4, 9, 3))])
def test_elements_that_a_mask_leaves_out_take_no_part(axis, chunks):
    x = da.from_array(X, chunks=chunks)
    whole = X % 1 < 0.6
    for mask in [whole, da.from_array(whole, chunks=2), whole[0], whole[:, :1, :1] | True]:
        ops = ["sum", "var", "argmax", "count", "min", "maxloc"]
        found = coulis.dask.reduce(x, ops, axis, where=mask, split_every=2)
        computed = dask.compute(*found[:-1], *found.maxloc)
        wanted = coulis.reduce(X, ops, axis, where=np.broadcast_to(np.asarray(mask), X.shape))
        close(type(found)(*computed[:-2], type(found.maxloc)(*computed[-2:])), wanted)


def test_a_broadcast_mask_may_have_chunks_of_no_elements():
    whole = X[:, :1] % 1 < 0.6
    mask = da.from_array(whole, chunks=((3, 0, 4), (0, 1, 0), (0, 4)))
    for chunks in [(3, 4, 2), ((0, 7), (9, 0), (4,))]:
        found = coulis.dask.reduce(da.from_array(X, chunks=chunks), "sum", 0, where=mask).compute()
        np.testing.assert_allclose(found, coulis.reduce(X, "sum", 0, where=np.broadcast_to(whole, X.shape)))


def test_what_a_mask_leaves_nothing_of_is_refused_where_it_has_no_value():
    x = da.from_array(X, chunks=4)
    mask = np.ones(9, bool)[:, None]
    mask[3] = False
    found = coulis.dask.reduce(x, ["sum", "count", "mean"], (0, 2), where=mask)
    total, count, mean = dask.compute(*found)
    assert total[3] == 0 and count[3] == 0 and np.isnan(mean[3]) and count[4] == 28
    for op in ["max", "argmin", "minloc", "absmax"]:
        refused = coulis.dask.reduce(x, op, (0, 2), where=mask)
        with pytest.raises(ValueError, match=f"`{op}` of an empty set"):
            dask.compute(*refused) if isinstance(refused, tuple) else refused.compute()
    with pytest.raises(ValueError, match="hold bool, got float64"):
        coulis.dask.reduce(x, "sum", where=np.ones(4))
    with pytest.raises(ValueError, match=r"shape \(5,\) does not broadcast to the shape of `x`, \(7, 9, 4\)"):
        coulis.dask.reduce(x, "sum", where=np.ones(5, bool))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_other_processes_reduce_chunks():
    x = da.from_array(X, chunks=(4, 9, 4))
    own = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v: v * v, name="squares")
    found = coulis.dask.reduce(x, ["mean", "argmax", own])
    mean, argmax, squares = dask.compute(*found, scheduler="processes", num_workers=2)
    assert argmax == X.argmax() and np.isclose(mean, X.mean()) and np.isclose(squares, (X * X).sum())


def at_an_odd_address(block):
    memory = np.empty(block.nbytes + 1, np.uint8)
    start = 1 - memory.ctypes.data % 2
    odd = memory[start : start + block.nbytes].view(block.dtype).reshape(block.shape)
    odd[...] = block
    return odd


def test_chunks_at_odd_addresses_as_messages_of_a_cluster_have_them():
    x = da.from_array(X, chunks=(4, 9, 4))
    odd = x.map_blocks(at_an_odd_address, dtype=X.dtype, meta=X[:0, :0, :0])
    assert not at_an_odd_address(X).flags.aligned
    mean, argmax = dask.compute(*coulis.dask.reduce(odd, ["mean", "argmax"], where=x > 0), scheduler="synchronous")
    assert np.isclose(mean, X[X > 0].mean()) and argmax == X.argmax()


def test_the_chunks_are_read_once_for_all_statistics():
    n_read = []
    x = da.from_array(X, chunks=(3, 9, 4)).map_blocks(lambda block: n_read.append(1) or block, dtype=X.dtype, meta=X)
    n_read.clear()
    dask.compute(*coulis.dask.reduce(x, ["var", "argmax", "logsumexp"]), scheduler="synchronous")
    assert len(n_read) == 3


def test_nothing_runs_before_it_is_asked_for():
    def never(block):
        raise AssertionError("a chunk was computed")

    x = da.from_array(X, chunks=4).map_blocks(never, dtype=X.dtype, meta=X)
    assert coulis.dask.reduce(x, ["sum"], 1).sum.shape == (7, 4)


def test_mistakes_are_exceptions():
    x = da.from_array(X, chunks=4)
    with pytest.raises(TypeError, match="Dask array"):
        coulis.dask.reduce(X, "sum")
    with pytest.raises(coulis.AxisError, match="out of range"):
        coulis.dask.reduce(x, "sum", 3)
    with pytest.raises(ValueError, match="legal names|did you mean"):
        coulis.dask.reduce(x, "summ")
    with pytest.raises(ValueError, match="at least 2"):
        coulis.dask.reduce(x, "sum", split_every=1)
    with pytest.raises(ValueError, match="unknown sizes"):
        coulis.dask.reduce(x[x > 0], "sum")
    with pytest.raises(ValueError, match="empty set"):
        coulis.dask.reduce(x[:0], "max")
    empty = coulis.dask.reduce(da.full((4,), np.nan, chunks=2), "argmax", nan="ignore")
    with pytest.raises(ValueError, match="empty set"):
        empty.compute()


def hash_of(modulus=1000003):
    """A fold whose order shows: a polynomial of the elements."""
    m = modulus
    return coulis.reducer(
        combine=lambda a, b: ((a[0] * b[1] + b[0]) % m, (a[1] * b[1]) % m),
        identity=(0, 1),
        lift=lambda v: (v % m, coulis.te.const(31, "int64")),
        finish=lambda s: s[0],
        name="hash",
        commutative=False,
    )


def test_a_reducer_that_is_not_commutative_is_folded_in_order_or_refused():
    whole, own = np.arange(24 * 3).reshape(4, 6, 3), hash_of()
    for chunks, axis in [((2, 6, 3), None), ((1, 2, 3), (0, 1)), ((1, 1, 2), None), ((4, 2, 1), 1), ((2, 3, 3), (1, 2)), ((2, 6, 1), (1, 0))]:
        found = coulis.dask.reduce(da.from_array(whole, chunks=chunks), own, axis, split_every=2).compute()
        np.testing.assert_array_equal(found, coulis.reduce(whole, own, axis), str(chunks))
    for chunks, axis, where in [((2, 3, 3), None, "axis 1"), ((4, 6, 2), (0, 2), "axis 2"), ((1, 2, 2), None, "axis 2")]:
        with pytest.raises(NotImplementedError, match=f"folded in order, .* split {where}"):
            coulis.dask.reduce(da.from_array(whole, chunks=chunks), own, axis)
    assert coulis.dask.reduce(da.from_array(whole, chunks=2), "sum").compute() == whole.sum()


@pytest.mark.parametrize(
    "kind, words, call",
    [
        (NotImplementedError, "`dot` reads two arrays", lambda x: coulis.dask.reduce(x, ["sum", "dot"])),
        (TypeError, "`keepdims` is to be True or False", lambda x: coulis.dask.reduce(x, "sum", keepdims="no")),
        (coulis.AxisError, "legal axes are -2 to 1", lambda x: coulis.dask.reduce(x, "sum", 7)),
        (NotImplementedError, "complex elements", lambda x: coulis.dask.reduce(x.astype(complex), "sum")),
        (TypeError, "`ddof` is to be a real number", lambda x: coulis.dask.reduce(x, "var", ddof="a")),
        (TypeError, "`x` is of Dask.*coulis.dask.reduce", lambda x: coulis.sum(x)),
        (TypeError, "`where` is of Dask", lambda x: coulis.sum(np.ones((4, 6)), where=x > 0)),
    ],
)
def test_what_dask_arrays_are_not_for_is_refused_when_it_is_asked_for(kind, words, call):
    with pytest.raises(kind, match=words):
        call(da.ones((4, 6), chunks=2))
