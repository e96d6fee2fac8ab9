"""Softmax and the norms against NumPy's composed forms in float64, and against PyTorch where it is installed."""

import numpy as np
import pytest

import coulis
from coulis import te


def composed(name, x, axis, weight=None, bias=None, eps=1e-5):
    x = np.asarray(x, dtype=np.float64)
    if name.endswith("softmax"):
        shifted = x - x.max(axis=axis, keepdims=True)
        sums = np.exp(shifted).sum(axis=axis, keepdims=True)
        return np.exp(shifted) / sums if name == "softmax" else shifted - np.log(sums)
    if name == "rms_norm":
        y = x / np.sqrt((x * x).mean(axis=axis, keepdims=True) + eps)
    else:
        y = (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


#: Of softmax of elements at most 16 apart with the rounding to the type, as a part of the result; and of the norms of elements at
#: most 8 deviations from 0, by their stated factors.
TOLERANCE = {
    "float16": (2.0**-11 + 72 * 2.0**-23, 296 * 2.0**-20),
    "float32": (73 * 2.0**-23, 56 * 2.0**-20),
    "float64": (80 * 2.0**-52, 1024 * 2.0**-49),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), None])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm"])
def test_rows_of_every_axis_are_mapped(name, axis, dtype):
    x = np.random.default_rng(1).normal(size=(4, 9, 17)).astype(dtype)
    options = {"eps": 1e-5} if name == "rms_norm" else {}
    y = getattr(coulis, name)(x, axis, **options)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype and y.shape == x.shape
    rtol, atol = TOLERANCE[dtype]
    atol = np.finfo(dtype).tiny if name == "softmax" else atol
    np.testing.assert_allclose(y, composed(name, x, axis), rtol=rtol, atol=atol)


@pytest.mark.parametrize("shape", [(4, 9, 17), (9, 17), (4, 1, 1), (17,)])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_elements_under_a_mask_take_no_part_in_the_statistics(name, axis, shape):
    rng = np.random.default_rng(4)
    x, mask = rng.normal(size=(4, 9, 17)), rng.random(shape) < 0.5
    options = {"eps": 1e-5} if name == "rms_norm" else {}
    found = getattr(coulis, name)(x, axis, where=mask, **options)
    axes = (0, 1, 2) if axis is None else np.arange(3)[list(axis) if isinstance(axis, tuple) else [axis]]
    rows = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(-1, np.prod([x.shape[a] for a in axes]))
    flags, results = (np.moveaxis(one, axes, range(-len(axes), 0)).reshape(rows.shape) for one in (np.broadcast_to(mask, x.shape), found))
    for row, taken, result in zip(rows, flags, results):
        if taken.any():
            np.testing.assert_allclose(result[taken], composed(name, row[taken], -1), rtol=1e-12, atol=2e-12)
        if name.endswith("softmax"):
            assert (result[~taken] == (0 if name == "softmax" else -np.inf)).all()
        elif taken.any():
            # Others are mapped by the same statistics: `result` is linear in the element.
            at = np.flatnonzero(taken)
            slope = 1 / np.sqrt((np.var(row[at]) if name == "layer_norm" else np.mean(row[at] ** 2)) + 1e-5)
            np.testing.assert_allclose(result - result[at[0]], (row - row[at[0]]) * slope, rtol=1e-9, atol=1e-9)
        else:
            assert np.isnan(result).all()


def test_what_is_mapped_may_be_made_of_several_arrays():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(4, 9, 17)).astype(np.float32), rng.normal(size=(9, 1)).astype(np.float32)
    add = lambda v, w: v * 0.5 + w  # noqa: E731
    made = x * np.float32(0.5) + y
    for name in ["softmax", "layer_norm"]:
        for axis in (-1, 0, (1, 2)):
            found = getattr(coulis, name)((x, y), axis, prologue=add)
            np.testing.assert_allclose(found, composed(name, made, axis), rtol=2e-5, atol=2e-6)
    weight = rng.normal(size=17)
    np.testing.assert_allclose(
        coulis.rms_norm((x, y), weight=weight, eps=0.5, prologue=add), composed("rms_norm", made, -1, weight, eps=0.5), rtol=2e-5, atol=2e-6
    )
    by_shape = coulis.layer_norm((x, y), prologue=add, normalized_shape=(9, 17))
    np.testing.assert_array_equal(by_shape, coulis.layer_norm((x, y), (1, 2), prologue=add))
    with pytest.raises(ValueError, match=r"`normalized_shape` is to be the last lengths of \(4, 9, 17\), got \(2, 17\)"):
        coulis.layer_norm((x, y), prologue=add, normalized_shape=(2, 17))
    # A number stands for an array of itself, and accumulators leave the type of the result as it is.
    np.testing.assert_array_equal(coulis.softmax((x, 2), prologue=lambda v, n: v * n), coulis.softmax(x, prologue=lambda v: v * 2.0))
    assert coulis.softmax((x, y), prologue=add, acc_dtype="float64").dtype == np.float32
    assert coulis.softmax(x, prologue=lambda v: v.astype("float64")).dtype == np.float64
    half = x.astype(np.float16)
    found = coulis.softmax(half, prologue=lambda v: v * 8.0)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, composed("softmax", half.astype(float) * 8, -1), rtol=2e-3, atol=1e-7)
    plan = coulis.plan((x, x), "softmax", -1, prologue=add)
    np.testing.assert_array_equal(plan((x, x)), coulis.softmax((x, x), prologue=add))
    with pytest.raises(ValueError, match="2 arrays are given, and `softmax` reads 1"):
        coulis.softmax((x, x))
    with pytest.raises(ValueError, match=r"`softmax` is of 1 value\(s\), and the prologue gives 2"):
        coulis.softmax(x, prologue=lambda v: (v, v))
    two = coulis.normalization(map=lambda v, w, dot: v * w / dot, statistics=["dot"], name="share")
    np.testing.assert_allclose(two(x, prologue=lambda v: (v, v + 1.0)), x * (x + 1) / (x * (x + 1)).sum(-1, keepdims=True), rtol=1e-4)


def test_a_mask_of_a_map_is_of_bools_and_fits():
    x = np.ones((3, 4))
    with pytest.raises(ValueError, match="`where` is to be of bool"):
        coulis.softmax(x, where=np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"`where` of shape \[4, 3\] does not broadcast to the input's shape \[3, 4\]"):
        coulis.softmax(x, where=np.ones((4, 3), bool))
    out = np.empty((3, 4))
    mask = np.array([True, False, True, True])
    assert coulis.softmax(x, where=mask, out=out) is out
    np.testing.assert_allclose(out, np.array([1, 0, 1, 1]) / 3 * np.ones((3, 1)))
    plan = coulis.plan(x, "softmax", -1, where=mask)
    np.testing.assert_array_equal(plan(x, where=mask), out)


def test_an_array_without_axes_is_a_row_of_one_element():
    for x in (np.array(3.0), np.float32(3.0)):
        assert coulis.softmax(x) == 1.0 and coulis.log_softmax(x, 0) == 0.0 and coulis.layer_norm(x) == 0.0
    with pytest.raises(coulis.AxisError, match="the array is a scalar"):
        coulis.softmax(np.array(3.0), 1)
    assert coulis.softmax(np.array(3.0), where=np.array(False)) == 0.0


def test_views_are_read_where_they_are():
    base = np.random.default_rng(2).normal(size=(40, 30)).astype(np.float32)
    for x in (base.T, base[::2, ::-3], np.broadcast_to(base[:, :1], (40, 7)), np.asfortranarray(base)):
        np.testing.assert_allclose(coulis.softmax(x, 1), composed("softmax", x, 1), rtol=2e-5)


def test_weight_and_bias_lie_along_the_row_or_the_channels():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 4, 5))
    weight, bias = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    want = composed("layer_norm", x, (2, 3), weight, bias)
    np.testing.assert_allclose(coulis.layer_norm(x, (2, 3), weight, bias), want, rtol=1e-12, atol=2e-12)
    by_shape = coulis.layer_norm(x, weight=weight, bias=bias, normalized_shape=(4, 5))
    np.testing.assert_allclose(by_shape, want, rtol=1e-12, atol=2e-12)
    np.testing.assert_allclose(
        coulis.rms_norm(x, -1, bias[0], 1e-6), composed("rms_norm", x, -1, bias[0], eps=1e-6), rtol=1e-12, atol=2e-12
    )
    channel = rng.normal(size=3)
    want = composed("batch_norm", x, (0, 2, 3), channel[:, None, None], channel[:, None, None])
    np.testing.assert_allclose(coulis.batch_norm(x, (0, 2, 3), channel, channel), want, rtol=1e-12, atol=2e-12)


def test_special_values_are_as_in_the_composed_form():
    inf = np.inf
    x = np.array([[inf, 1.0], [-inf, -inf], [np.nan, 0.0], [-inf, 0.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(coulis.softmax(x), composed("softmax", x, -1))
    assert coulis.softmax(np.zeros((0, 3))).shape == (0, 3)
    assert coulis.softmax(np.zeros((3, 0))).shape == (3, 0)


def test_out_and_dtype_say_where_and_as_what():
    x = np.array([[1, 2, 3]], dtype=np.int32)
    assert coulis.softmax(x).dtype == np.float64
    assert coulis.softmax(x, dtype="float16").dtype == np.float16
    out = np.empty((1, 3))
    assert coulis.softmax(x, out=out) is out
    np.testing.assert_allclose(out, composed("softmax", x, -1))
    y = np.array([[1.0, 2.0, 3.0]])
    assert coulis.softmax(y, out=y) is y
    np.testing.assert_allclose(y, out)


def test_wrong_calls_say_what_is_legal():
    x = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(coulis.AxisError, match="legal axes are -2 to 1"):
        coulis.softmax(x, 2)
    with pytest.raises(ValueError, match=r"the reduced axes, \[3\], got \[2\]"):
        coulis.layer_norm(x, weight=np.zeros(2))
    with pytest.raises(ValueError, match="finite number of at least 0"):
        coulis.rms_norm(x, eps=-1.0)
    with pytest.raises(ValueError, match="last lengths"):
        coulis.layer_norm(x, normalized_shape=(2,))
    for axis in [0, (0, 1), None]:
        with pytest.raises(ValueError, match="name different axes"):
            coulis.layer_norm(x, axis, normalized_shape=x.shape[-1:])
    with pytest.raises(ValueError, match="the float types can"):
        coulis.softmax(x, dtype="int32")


def test_a_map_of_ones_own_reads_statistics_and_arrays_beside_the_elements():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(6, 5, 40)).astype(np.float32)
    calls = []

    def centred(v, mean, most, weight, row):
        calls.append(1)
        return te.if_then_else(v > mean, (v - mean) * weight / most, row)

    own = coulis.normalization(
        map=centred, statistics=["mean", "absmax"], beside={"weight": "reduced", "row": "kept"}, name="centred"
    )
    weight, row = rng.normal(size=40).astype(np.float32), rng.normal(size=(6, 5)).astype(np.float64)
    mean, most = x.mean(-1, keepdims=True), np.abs(x).max(-1, keepdims=True)
    want = np.where(x > mean, (x - mean) * weight / most, row[..., None])
    for _ in range(3):
        found = own(x, weight=weight, row=row)
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6)
    assert found.dtype == np.float32 and len(calls) == 1, "the function is called once"
    np.testing.assert_allclose(own(x.T.copy().T, -1, weight=weight, row=row), want, rtol=2e-5, atol=2e-6)
    out = np.empty_like(x)
    assert own(x, 2, weight=weight, row=row, out=out) is out
    place = coulis.normalization(map=lambda v, value, index: v - value + index * 0.0, statistics=["maxloc"], name="place")
    np.testing.assert_allclose(place(x, 1), x - x.max(1, keepdims=True))
    two = coulis.normalization(map=lambda v, w, dot: v * w / dot, statistics=["dot"], name="share")
    np.testing.assert_allclose(two((x, x)), x * x / (x * x).sum(-1, keepdims=True), rtol=1e-4)


def test_mistakes_in_a_map_of_ones_own_say_what_is_legal():
    x = np.ones((2, 3))
    make = lambda map, **words: coulis.normalization(**{"map": map, "statistics": ["mean"], "name": "mine", **words})  # noqa: E731
    with pytest.raises(TypeError, match="is to be a function"):
        make(3)
    with pytest.raises(ValueError, match="got `median`; legal are absmax"):
        make(lambda v, m: v, statistics=["median"])
    with pytest.raises(ValueError, match="legal are reduced, kept and all"):
        make(lambda v, m, w: v, beside={"w": "rows"})
    with pytest.raises(ValueError, match="cannot be called `axis`"):
        make(lambda v, m, w: v, beside={"axis": "reduced"})
    with pytest.raises(TypeError, match="`map` takes 1 arguments without a default; legal is 2"):
        make(lambda v: v)(x)
    with pytest.raises(TypeError, match="one value an element, got 2"):
        make(lambda v, m: (v, m))(x)
    with pytest.raises(ValueError, match="to give a float scalar, got bool"):
        make(lambda v, m: v > m)(x)
    with pytest.raises(ValueError, match="uses `n`, which is none of its parameters"):
        make(lambda v, m: v * te.var("n", "float64"))(x)
    with pytest.raises(TypeError, match="reads `w` beside the elements"):
        make(lambda v, m, w: v * w, beside={"w": "reduced"})(x)

    def broken(v, m):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        make(broken)(x)


def test_statistics_of_an_expression_are_folded_in_one_read():
    rng = np.random.default_rng(6)
    x, y, z = (rng.normal(size=(7, 30)).astype(np.float32) for _ in range(3))
    found = coulis.reduce((x, y), ["sumsq", "absmax", "argmax"], 1, prologue=lambda a, b: a - b)
    np.testing.assert_allclose(found.sumsq, ((x - y) ** 2).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(found.argmax, (x - y).argmax(1))
    np.testing.assert_allclose(coulis.sum((x, y, z), 0, prologue=lambda a, b, c: a * b * c), (x * y * z).sum(0), rtol=1e-4, atol=1e-5)
    weighted = coulis.reduce(x, "wmean", prologue=lambda a: (a, te.exp(a)))
    np.testing.assert_allclose(weighted, (x * np.exp(x)).sum() / np.exp(x).sum(), rtol=1e-5)
    assert coulis.count_nonzero(x, 1, prologue=lambda a: a > 0).tolist() == (x > 0).sum(1).tolist()
    squares = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v: v * v, name="squares")
    both = coulis.reduce(x.astype("i4"), [squares, "sum"], 1, prologue=lambda a: te.abs(a).astype("float64") + 0.5, where=y > 0)
    want = np.abs(x.astype("i4")) + 0.5
    np.testing.assert_allclose(both.squares, (want**2 * (y > 0)).sum(1))
    np.testing.assert_allclose(coulis.sum(x, prologue=lambda a: a), coulis.sum(x), rtol=1e-5)
    # A tuple of one array is that array.
    one = coulis.sum((x,), 0, prologue=lambda a: a * 2)
    assert one.shape == x.shape[1:] and (one == coulis.sum(x, 0, prologue=lambda a: a * 2)).all()
    assert coulis.plan((x,), "sum", axis=0, prologue=lambda a: a * 2)(x).shape == one.shape
    with pytest.raises(ValueError, match="one of the type of what is folded, bool"):
        coulis.max(x, prologue=lambda a: a > 0, init=0.5)
    with pytest.raises(TypeError, match="`prologue` takes 2 arguments without a default; legal is 1"):
        coulis.sum(x, prologue=lambda a, b: a + b)
    with pytest.raises(ValueError, match="one or two values, got 3"):
        coulis.sum(x, prologue=lambda a: (a, a, a))
    with pytest.raises(ValueError, match="uses `n`, which is none of its elements"):
        coulis.sum(x, prologue=lambda a: a * te.var("n", "float32"))


def test_prologues_and_lifts_see_elements_widened():
    small, bytes_ = np.array([-128, 5], np.int8), np.array([255, 255], np.uint8)
    largest = coulis.reduce(small, "max", prologue=lambda a: te.abs(a))
    assert (largest, largest.dtype) == (128, np.int64)
    squares = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v: v * v, name="squares")
    assert coulis.reduce(bytes_, squares) == 2 * 255**2
    mean = coulis.reduce(np.array([300, 4, 4, 4], np.float16), "mean", prologue=lambda a: a * a)
    assert (mean, mean.dtype) == (22512, np.float16)
    large = coulis.reduce(np.array([1e30, 0], np.float32), "sum", prologue=lambda a: a * a, acc_dtype="float64")
    assert np.isclose(large, 1e60)


def test_integer_results_of_floats_are_the_nearest():
    x = np.array([[0.5], [1.5], [2.5], [-2.6], [np.nan], [1e30]])
    assert coulis.reduce(x, "mean", 1, dtype="int8").tolist() == [0, 2, 2, -3, 0, 127]


def test_tensors_of_pytorch_agree_with_its_own_functions():
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 6, 70, generator=torch.Generator().manual_seed(4))
    weight, bias = torch.randn(70), torch.randn(70)
    close = torch.testing.assert_close
    close(coulis.softmax(x, 1), torch.softmax(x, 1))
    close(coulis.log_softmax(x), torch.log_softmax(x, -1))
    close(coulis.layer_norm(x, -1, weight, bias), torch.nn.functional.layer_norm(x, (70,), weight, bias))
    close(coulis.batch_norm(x, (0, 2)), torch.nn.functional.batch_norm(x, None, None, training=True))


def test_calls_that_differ_in_their_settings_alone_are_told_apart():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    w, b = np.full(4, 2, np.float32), np.full(4, 1, np.float32)
    plain, wide = coulis.layer_norm(x), coulis.layer_norm(x, eps=100.0)
    for _ in range(2):
        np.testing.assert_array_equal(coulis.layer_norm(x), plain)
        np.testing.assert_array_equal(coulis.layer_norm(x, eps=100.0), wide)
        np.testing.assert_allclose(coulis.layer_norm(x, weight=w), 2 * plain, rtol=1e-6)
        np.testing.assert_allclose(coulis.layer_norm(x, bias=b), plain + 1, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(coulis.softmax(x, 0).sum(0), np.ones(4), rtol=1e-6)
        np.testing.assert_allclose(coulis.softmax(x, 1).sum(1), np.ones(3), rtol=1e-6)
        with pytest.raises(ValueError, match="softmax"):
            coulis.reduce(x, "softmax", 1)
    assert abs(wide).max() < abs(plain).max()


def test_nulls_beside_the_elements_are_refused_of_a_call_that_was_made_before_too():
    pa = pytest.importorskip("pyarrow")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    whole = pa.array([1.0, 2.0, 3.0], pa.float32())
    coulis.layer_norm(x, weight=whole)
    with pytest.raises(ValueError, match="an array has nulls, of which a map has no result"):
        coulis.layer_norm(x, weight=pa.array([1.0, None, 3.0], pa.float32()))
    np.testing.assert_array_equal(coulis.layer_norm(x, weight=whole), coulis.layer_norm(x, weight=np.array(whole)))
