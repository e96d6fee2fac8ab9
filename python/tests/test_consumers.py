"""Softmax and the norms against NumPy's composed forms in float64, and against PyTorch where it is installed."""

import numpy as np
import pytest

import coulis


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


TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), None])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm"])
def test_rows_of_every_axis_are_mapped(name, axis, dtype):
    x = np.random.default_rng(1).normal(size=(4, 9, 17)).astype(dtype)
    options = {"eps": 1e-5} if name == "rms_norm" else {}
    y = getattr(coulis, name)(x, axis, **options)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype and y.shape == x.shape
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(y, composed(name, x, axis), rtol=tolerance, atol=4 * tolerance)


def test_views_are_read_where_they_are():
    base = np.random.default_rng(2).normal(size=(40, 30)).astype(np.float32)
    for x in (base.T, base[::2, ::-3], np.broadcast_to(base[:, :1], (40, 7)), np.asfortranarray(base)):
        np.testing.assert_allclose(coulis.softmax(x, 1), composed("softmax", x, 1), rtol=2e-5)


def test_weight_and_bias_lie_along_the_row_or_the_channels():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 4, 5))
    weight, bias = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    want = composed("layer_norm", x, (2, 3), weight, bias)
    np.testing.assert_allclose(coulis.layer_norm(x, (2, 3), weight, bias), want, rtol=1e-9)
    by_shape = coulis.layer_norm(x, weight=weight, bias=bias, normalized_shape=(4, 5))
    np.testing.assert_allclose(by_shape, want, rtol=1e-9)
    np.testing.assert_allclose(
        coulis.rms_norm(x, -1, bias[0], 1e-6), composed("rms_norm", x, -1, bias[0], eps=1e-6), rtol=1e-9
    )
    channel = rng.normal(size=3)
    want = composed("batch_norm", x, (0, 2, 3), channel[:, None, None], channel[:, None, None])
    np.testing.assert_allclose(coulis.batch_norm(x, (0, 2, 3), channel, channel), want, rtol=1e-9)


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
    with pytest.raises(ValueError, match="the float types can"):
        coulis.softmax(x, dtype="int32")


def test_tensors_of_pytorch_agree_with_its_own_functions():
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 6, 70, generator=torch.Generator().manual_seed(4))
    weight, bias = torch.randn(70), torch.randn(70)
    close = torch.testing.assert_close
    close(coulis.softmax(x, 1), torch.softmax(x, 1))
    close(coulis.log_softmax(x), torch.log_softmax(x, -1))
    close(coulis.layer_norm(x, -1, weight, bias), torch.nn.functional.layer_norm(x, (70,), weight, bias))
    close(coulis.batch_norm(x, (0, 2)), torch.nn.functional.batch_norm(x, None, None, training=True))
