"""Plans, measurements and reducers of one's own."""

import pickle

import numpy as np
import pytest

import coulis
from coulis import te

X = np.arange(4096, dtype=np.float32).reshape(64, 64)


def test_a_plan_prints_explains_itself_and_runs():
    plan = coulis.plan(X, ["sum", "max"], axis=1)
    assert plan.name in repr(plan) and "chosen" in plan.explain() and "bytes" in plan.explain()
    found = plan(X)
    np.testing.assert_array_equal(found.sum, X.sum(1))
    np.testing.assert_array_equal(coulis.reduce(X, ["sum", "max"], 1, plan=plan).max, X.max(1))
    assert plan.source is None or "reduce" in plan.source


def test_a_plan_of_a_shape_is_that_of_an_array():
    by_shape = coulis.plan((64, 64), "sum", 0, keepdims=True)
    assert by_shape.trace == coulis.plan(X, "sum", 0, keepdims=True).trace
    assert by_shape(X).shape == (1, 64)
    assert coulis.plan((10, 10), "sum", x_dtype=np.int8).trace


def test_a_plan_of_an_array_with_nulls_has_their_mask():
    pa = pytest.importorskip("pyarrow")
    values = np.arange(5000, dtype=np.float32)
    nulls, rest = values % 3 == 0, values % 2 == 0
    x = pa.array(values, mask=nulls)
    plan, masked = coulis.plan(x, ["sum", "count"]), coulis.plan(values, ["sum", "count"], where=~nulls)
    assert (plan.trace, plan.source, plan.explain()) == (masked.trace, masked.source, masked.explain())
    assert plan.source is None or plan.source != coulis.plan(values, ["sum", "count"]).source
    found = plan(x)
    assert (found.sum.as_py(), found.count.as_py()) == (values[~nulls].sum(), (~nulls).sum())
    # Nulls of either input, and what a mask leaves out, take no part.
    both = coulis.plan((x, x), "dot", where=rest)
    of_host = coulis.plan((values, values), "dot", where=rest & ~nulls)
    assert both.explain() == of_host.explain()
    assert both((x, x)).as_py() == of_host((values, values))
    whole = coulis.plan(pa.array(values), "sum")
    assert whole.explain() == coulis.plan(values, "sum").explain()
    # What an array of a call says of its nulls counts, whatever the plan was made for.
    for made in (whole, coulis.plan(x, "sum")):
        assert made(x).as_py() == values[~nulls].sum() and made(pa.array(values)).as_py() == values.sum()


def test_a_plan_of_a_normalization_is_that_of_its_function():
    weight = np.linspace(1, 2, 64, dtype=np.float32)
    plan = coulis.plan(X, "layer_norm", axis=1, weight=weight, eps=0.5)
    assert plan.name in repr(plan) and "chosen" in plan.explain() and plan.trace
    assert plan.trace == coulis.plan(X.shape, "layer_norm", 1, weight=(64,), eps=0.5).trace
    assert plan.source is None or "reduce" in plan.source
    wanted = coulis.layer_norm(X, 1, weight, eps=0.5)
    np.testing.assert_array_equal(plan(X), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(plan))(X), wanted)
    np.testing.assert_array_equal(coulis.layer_norm(X, 1, weight, eps=0.5, plan=plan), wanted)
    # A call may give other arrays, numbers and options.
    np.testing.assert_array_equal(plan(X, weight=2 * weight, eps=0.25), coulis.layer_norm(X, 1, 2 * weight, eps=0.25))
    out = np.empty_like(X)
    assert plan(X, out=out) is out and (out == wanted).all()
    assert coulis.plan(X, "softmax").trace == coulis.plan(X, "softmax", None).trace, "all axes, as of a reduction"
    np.testing.assert_array_equal(coulis.plan(X, "softmax", -1)(X), coulis.softmax(X))
    masked = coulis.plan(X.shape, "softmax", -1, where=X % 3 == 0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(masked))(X), coulis.softmax(X, where=X % 3 == 0))
    np.testing.assert_array_equal(masked(X, where=X % 3 > 0), coulis.softmax(X, where=X % 3 > 0))


def _scaled(x, mean, w):
    return (x - mean) * w


SCALED = {"map": _scaled, "statistics": ["mean"], "beside": {"w": "reduced"}, "name": "scaled"}


def test_a_plan_of_a_normalization_of_ones_own():
    scaled = coulis.normalization(**SCALED)
    w = np.arange(64, dtype=np.float32)
    plan = coulis.plan(X.shape, scaled, 1, w=w.shape)
    assert "chosen" in plan.explain()
    np.testing.assert_array_equal(plan(X, w=w), scaled(X, 1, w=w))
    of_array = pickle.loads(pickle.dumps(coulis.plan(X, coulis.normalization(**SCALED), 1, w=w)))
    np.testing.assert_array_equal(of_array(X), scaled(X, 1, w=w))
    with pytest.raises(TypeError, match="`scaled` reads `w` beside the elements"):
        of_array(X, w=None)
    of_two = coulis.normalization(map=lambda x, y, dot: x * dot + y, statistics=["dot"], name="of_two")
    np.testing.assert_array_equal(coulis.plan(X.shape, of_two, 1)((X, 2 * X)), of_two((X, 2 * X), 1))
    with pytest.raises(TypeError, match="the plan has the shape of `w` only"):
        plan(X)
    with pytest.raises(TypeError, match="`scaled` reads `w` beside the elements"):
        coulis.plan(X, scaled, 1)


def test_what_a_plan_of_a_normalization_does_not_take_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'keepdims'; its options are .*weight"):
        coulis.plan(X, "layer_norm", 1, keepdims=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'ddof'"):
        coulis.plan(X, "softmax", 1, ddof=1)
    with pytest.raises(ValueError, match=r"`weight` of `layer_norm` .* \[64\], got \[3\]"):
        coulis.plan(X, "layer_norm", 1, weight=(3,))
    for several in (["softmax"], ["sum", "softmax"], (coulis.normalization(**SCALED),)):
        with pytest.raises(ValueError, match="is a normalization, which is planned by itself"):
            coulis.plan(X, several, 1)
    with pytest.raises(ValueError, match="nothing is called `Softmax`; legal are the statistics sum, .*, and normalizations .*softmax"):
        coulis.plan(X, "Softmax", 1)
    with pytest.raises(TypeError, match="`weight` .*<U1|<U1.*`weight`"):
        coulis.plan(X, "layer_norm", 1, weight=np.array(["a"] * 64))
    with pytest.raises(TypeError, match=r"softmax\(\) got an unexpected keyword argument 'eps'; its options are"):
        coulis.plan(X, "softmax", 1)(X, eps=1)
    weights = [1.0, 2.0] * 32
    np.testing.assert_array_equal(coulis.plan(X, "layer_norm", 1, weight=weights)(X), coulis.layer_norm(X, 1, weights))
    for name in ("self", "x_dtype"):
        with pytest.raises(ValueError, match=f"cannot be called `{name}`"):
            coulis.normalization(**{**SCALED, "beside": {name: "reduced"}})
    with pytest.raises(ValueError, match=r"\[text\]"):
        edited = coulis.plan(X, "softmax", 1)
        edited.trace += "\nnothing"
        edited(X)


def test_a_plan_takes_what_a_reduction_takes_and_keeps_it():
    mask, out = X % 3 == 0, np.ones(64, np.float32)
    masked = coulis.plan(X, ["sum", "count"], axis=1, where=mask)
    assert masked.trace and "chosen" in masked.explain()
    assert masked.trace == coulis.plan(X.shape, ["sum", "count"], axis=1, where=mask).trace
    np.testing.assert_array_equal(masked(X).sum, X.sum(1, where=mask))
    np.testing.assert_array_equal(masked(X, where=~mask).sum, X.sum(1, where=~mask))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(masked))(X).count, mask.sum(1))
    for everything in (True, None):
        assert coulis.plan(X, "sum", 1, where=everything).trace == coulis.plan(X, "sum", 1).trace
    added = coulis.plan(X, "sum", 1, out=out, beta=2.0)
    assert added(X) is out
    np.testing.assert_array_equal(out, X.sum(1) + 2)
    edited = coulis.plan(X, "sum", 1, plan="")
    assert edited.trace == "" and edited.name == "replayed"
    with pytest.raises(NotImplementedError, match="fast_math"):
        coulis.plan(X, "sum", fast_math=True)
    with pytest.raises(ValueError, match="`where` of shape \\[5\\] does not broadcast"):
        coulis.plan(X, "sum", where=np.ones(5, bool))
    with pytest.raises(ValueError, match="`where` is to be of bool"):
        coulis.plan(X, "sum", where=X)


def test_an_edited_plan_is_run_and_a_wrong_one_is_refused():
    plan = coulis.plan(X, "sum", 1)
    plan.trace = ""
    np.testing.assert_allclose(plan(X), X.sum(1))
    plan.trace = "s[nothing].unroll(i)"
    with pytest.raises(ValueError):
        plan(X)
    for wrong in (5, None, b"s"):
        with pytest.raises(TypeError, match="`trace` is to be the text of a schedule"):
            plan.trace = wrong
    assert plan.trace == "s[nothing].unroll(i)"
    with pytest.raises(TypeError, match="takes no mask; legal are acc_dtype, alpha, .*, where"):
        coulis.plan(X, "sum", mask=X > 1)
    with pytest.raises(TypeError, match="shape"):
        coulis.plan("abc", "sum")
    with pytest.raises(TypeError, match=r"a shape is of integers, got \(1.5, 3\)"):
        coulis.plan((1.5, 3), "sum")
    plan = coulis.plan(X, "sum", axis=1)
    for option in ("axis", "ops", "plan"):
        with pytest.raises(TypeError, match=f"a plan keeps its `{option}`"):
            plan(X, **{option: 0})
    with pytest.raises(TypeError, match="a call of a plan takes no mask; legal are acc_dtype"):
        plan(X, mask=X > 1)


def test_a_measurement_is_verified_and_has_a_rate():
    found = coulis.bench((256, 256), ["mean", "max"], axis=1, seconds=0.01)
    assert found.verified is True and found.seconds > 0 and found.gb_per_second > 0
    assert found.bytes == 256 * 256 * 4 + 2 * 256 * 4


def test_a_reducer_of_ones_own_runs_beside_others():
    xor = coulis.reducer(combine=lambda a, b: a ^ b, identity=0, name="xor")
    x = np.arange(1000, dtype=np.int32).reshape(10, 100)
    found = coulis.reduce(x, [xor, "sum"], axis=1)
    np.testing.assert_array_equal(found.xor, np.bitwise_xor.reduce(x, 1))
    np.testing.assert_array_equal(found.sum, x.sum(1))
    assert coulis.reduce(x.astype(np.uint64), xor) == np.bitwise_xor.reduce(x.ravel())


def test_a_reducer_has_a_lift_and_a_finish():
    rms = coulis.reducer(
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        identity=(0.0, 0.0),
        lift=lambda x: (x * x, te.const(1.0, "float32")),
        finish=lambda s: te.sqrt(s[0] / s[1]),
        name="rms",
    )
    x = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(coulis.reduce(x, rms, 1), np.sqrt((x * x).mean(1)), rtol=1e-6)


def test_a_lift_may_take_the_position():
    last = coulis.reducer(
        combine=lambda a, b: te.maximum(a, b), identity=-1, lift=lambda x, i: te.if_then_else(x > 0, i, -1), name="last"
    )
    assert coulis.reduce(np.array([0.0, 2.0, 0.0, 5.0, 0.0]), last) == 3


def test_a_claim_that_does_not_hold_is_refused():
    minus = coulis.reducer(combine=lambda a, b: a - b, identity=0, name="minus")
    with pytest.raises(ValueError, match="minus"):
        coulis.reduce(np.arange(4), minus)


def test_an_identity_is_exactly_what_was_given_or_is_refused():
    small, x = np.array([3, -7, 5], np.int8), np.array([1e300, 1e-300])
    top = lambda identity: coulis.reducer(combine=te.maximum, identity=identity, name="top")  # noqa: E731
    assert coulis.reduce(small, top(-128)) == 5
    for identity in [-129, 1 << 40, 1 << 80, float("-inf"), 0.5]:
        with pytest.raises(ValueError, match=r"identity 0 of reducer `top` is .*, which int8 does not hold; .* -128 to 127"):
            coulis.reduce(small, top(identity))
    assert coulis.reduce(np.zeros(3, np.uint64), top(0)) == 0
    whole = coulis.reducer(combine=lambda a, b: a & b, identity=(1 << 64) - 1, name="whole")
    assert coulis.reduce(np.array([6, 12], np.uint64), whole) == 4
    least = coulis.reducer(combine=te.minimum, identity=1.7976931348623157e308, name="least")
    assert coulis.reduce(x, least) == 1e-300
    with pytest.raises(ValueError, match="float16 does not hold; legal are the numbers that do not round to an infinity"):
        coulis.reduce(np.ones(3, np.float16), top(-1e6))
    with pytest.raises(ValueError, match="field 0 of what `combine` of reducer `far` gives is 300, which int8"):
        far = coulis.reducer(combine=lambda a, b: 300, identity=0, name="far")
        coulis.reduce(small, far)
    with pytest.raises(ValueError, match="names no field"):
        coulis.reducer(combine=te.maximum, identity=0, name="class")


@pytest.mark.parametrize(
    "identity, kind, words",
    [
        ("0", TypeError, "identity 0 of reducer `own` is to be a number, got an object of type `str`; legal is a number, or a constant of float32"),
        (lambda t: 0, TypeError, "identity 0 of reducer `own` is to be a number, got an object of type `function`; legal is"),
        (te.var("n"), ValueError, "identity 0 of reducer `own` is `n`, which is no constant; legal is"),
        ((0, 1), ValueError, "the identity of reducer `own` is to be a number for each field of a state, of which there are 1, got 2"),
        ((), ValueError, "a number for each field of a state, of which there are 1, got 0"),
    ],
)
def test_an_identity_is_a_number_for_each_field(identity, kind, words):
    own = coulis.reducer(combine=lambda a, b: a + b, identity=identity, name="own")
    with pytest.raises(kind, match=words):
        coulis.reduce(np.ones(3, np.float32), own)


def test_mistakes_in_the_functions_are_the_callers_exceptions():
    def broken(a, b):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        coulis.reduce(X, coulis.reducer(combine=broken, identity=0, name="broken"))
    for functions in [{"combine": lambda a, b: None}, {"combine": lambda a, b: a, "finish": lambda a: None}]:
        words = f"`{list(functions)[-1]}` of reducer `none` is to give an expression or a number for each field, got NoneType"
        with pytest.raises(TypeError, match=words):
            coulis.reduce(X, coulis.reducer(identity=0, name="none", **functions))
    with pytest.raises(TypeError, match="takes 1 arguments"):
        coulis.reducer(combine=lambda a: a, identity=0, name="one")
    with pytest.raises(TypeError, match="a function"):
        coulis.reducer(combine=3, identity=0, name="three")
    with pytest.raises(ValueError, match="catalogue"):
        coulis.reduce(X, coulis.reducer(combine=lambda a, b: a + b, identity=0, name="sum"))
    with pytest.raises(ValueError, match="folds"):
        typed = coulis.reducer(combine=lambda a, b: a + b, identity=0, dtypes="int32", name="typed")
        coulis.reduce(X, typed)


def test_plans_of_two_arrays_and_of_prologues():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    p = coulis.plan((x, y), "dot", 1, device=coulis.cpu())
    np.testing.assert_array_equal(p((x, y)), (x * y).sum(1))
    assert coulis.plan((3, 4), "dot", 1, x_dtype="float64")((x, x)).tolist() == (x * x).sum(1).tolist()
    doubled = coulis.plan((x, y), "sum", 0, prologue=lambda v, w: v * w)
    np.testing.assert_array_equal(doubled((x, y)), (x * y).sum(0))
    assert "s[" in doubled.trace
