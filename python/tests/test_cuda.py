"""Arrays in the memory of a GPU: of PyTorch, CuPy and JAX, on their own streams. SKIP where there is none."""

import numpy as np
import pytest

import coulis

if "cuda:0" not in coulis.machine():
    pytest.skip("no GPU", allow_module_level=True)

X = (np.arange(6 * 5 * 64, dtype=np.float32).reshape(6, 5, 64) * 37) % 101 - 50


def host(x):
    if hasattr(x, "get"):
        return x.get()
    if hasattr(x, "cpu"):
        return x.cpu().numpy()
    return np.asarray(x)


def check(made, library):
    for axis in [None, 0, 1, -1, (0, 2)]:
        found = coulis.reduce(made, ["sum", "max", "mean"], axis)
        for field, result in zip(found._fields, found):
            assert type(result).__module__.startswith(library), type(result)
            np.testing.assert_allclose(host(result), getattr(np, field)(X, axis=axis), rtol=1e-4, atol=1e-4)
    if not isinstance(axis, tuple):
        found = coulis.reduce(made, "argmax", 2)
        np.testing.assert_array_equal(host(found), X.argmax(2))


def test_tensors_of_torch_stay_on_the_gpu():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).cuda()
    check(x, "torch")
    assert coulis.sum(x).device == x.device and coulis.sum(x).shape == ()
    for view in [x.transpose(0, 2), x[:, 1:, ::3], x[1:, :, 1:], x.expand(3, 6, 5, 64), x.flatten()[1:]]:
        for axis in [None, 0, -1]:
            wanted = view.double().sum() if axis is None else view.double().sum(axis)
            assert torch.allclose(coulis.sum(view, axis).double(), wanted, rtol=1e-4, atol=1e-3)
    half = x.to(torch.bfloat16)
    assert coulis.sum(half, 2).dtype == torch.bfloat16 and torch.equal(coulis.max(half, 2), half.amax(2))
    mask = x > 0
    assert torch.allclose(coulis.sum(x, 2, where=mask), (x * mask).sum(2), rtol=1e-4)
    found = coulis.reduce(x, ["max", "argmax"], 2, where=mask)
    assert torch.equal(found.max, x.amax(2))
    with pytest.raises(ValueError, match="empty set"):
        coulis.max(x, 2, where=torch.zeros_like(mask))


def test_columns_of_a_few_elements_and_in_pieces():
    # So many that a thread has several strips of them; chunks of rows in pieces that lie apart.
    torch = pytest.importorskip("torch")
    for shape, dtype, axis in [
        ((3, 17_000_003), torch.float16, 0),
        ((2, 50_331_649), torch.bfloat16, 0),
        ((4, 16_777_216), torch.bfloat16, 0),
        ((3, 34, 4131, 53), torch.float32, (0, 2)),
        ((5, 21, 2053, 65), torch.float16, (0, 2)),
        ((9, 4, 3, 124_275), torch.int8, (0, 3)),
        ((56, 239_309), torch.float16, 1),
    ]:
        x = torch.randint(-9, 10, shape, device="cuda").to(dtype)
        found = coulis.reduce(x, ["sum", "max", "argmax"], axis)
        wide = x.double()
        assert torch.equal(found.sum.double(), wide.sum(axis).to(found.sum.dtype).double()), (shape, dtype)
        assert torch.equal(found.max, x.amax(axis)), (shape, dtype)
        axes = axis if isinstance(axis, tuple) else (axis,)
        kept = [d for d in range(x.dim()) if d not in axes]
        rows = x.permute(*kept, *axes).reshape([x.shape[d] for d in kept] + [-1])
        at = found.argmax.unsqueeze(-1).long()
        assert torch.equal(rows.gather(-1, at).squeeze(-1), found.max), (shape, dtype)
        before = torch.arange(rows.shape[-1], device="cuda") < at
        assert not ((rows == found.max.unsqueeze(-1)) & before).any(), (shape, dtype)


def test_nothing_behind_an_array_is_read():
    # Rows of the last step of a fold that has no whole number of them; memory that ends with the array, by itself in the address space.
    torch = pytest.importorskip("torch")
    page = 2 << 20
    for shape, dtype, axis in [
        ((2080, 126, 128), torch.int32, (0, 2)),
        ((4096, 6, 682), torch.int64, 2),
        ((1041, 513, 37), torch.bfloat16, (0, 2)),
        ((3001, 4099), torch.float32, 0),
        ((3001, 4099), torch.float32, 1),
    ]:
        n_bytes = torch.empty(shape, dtype=dtype, device="meta").nbytes
        torch.cuda.empty_cache()
        memory = torch.ones(-(-n_bytes // page) * page, dtype=torch.uint8, device="cuda")
        x = memory[memory.numel() - n_bytes :].view(dtype).view(shape)
        x.fill_(3)
        for ops in [["mean", "var"], ["sum", "mean", "var", "min", "max", "argmax"], ["sum"]]:
            found = coulis.reduce(x, ops, axis=axis)
            torch.cuda.synchronize()
            if "mean" in ops:
                assert (found.mean == 3).all() and (found.var == 0).all()


def test_out_may_overlap_the_mask():
    torch = pytest.importorskip("torch")
    mask = torch.ones(100, 100, dtype=torch.bool, device="cuda")
    mask[-1] = False
    x = torch.ones(100, 100, device="cuda")
    found = coulis.reduce(x, ["any", "sum"], 1, where=mask, out={"any": mask[-1]})
    wanted = [True] * 99 + [False]
    assert found.any.tolist() == wanted and found.sum.tolist() == [100 * taken for taken in wanted]


def test_out_beta_and_streams_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).cuda()
    out = torch.ones(6, 5, device="cuda")
    assert coulis.sum(x, 2, out=out) is out and torch.allclose(out, x.sum(2), rtol=1e-4, atol=1e-4)
    before = out.clone()
    coulis.sum(x, 2, out=out, beta=2.0)
    assert torch.allclose(out, x.sum(2) + 2 * before, rtol=1e-4, atol=1e-3)
    wide = torch.zeros(6, 10, device="cuda")
    coulis.sum(x, 2, out=wide[:, ::2])
    assert torch.allclose(wide[:, ::2], x.sum(2), rtol=1e-4, atol=1e-4)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        big = torch.ones(1 << 26, device="cuda")
        big *= 2
        total = coulis.sum(big)
    stream.synchronize()
    assert total.item() == 2 * (1 << 26)
    assert coulis.sum(x, stream=stream) is not None
    torch.cuda.synchronize()
    with pytest.raises(ValueError, match="one place"):
        coulis.sum(x, where=np.ones(64, bool))
    with pytest.raises(ValueError, match="another one"):
        coulis.sum(x, device="cpu")
    with pytest.raises(ValueError, match="not where"):
        coulis.sum(x, out=torch.zeros(()))


def test_no_input_is_copied_on_the_gpu():
    torch = pytest.importorskip("torch")
    x = torch.ones(1 << 28, device="cuda").view(1 << 14, 1 << 14)
    coulis.sum(x, 1)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    found = coulis.sum(x, 1)
    torch.cuda.synchronize()
    assert free - torch.cuda.mem_get_info()[0] < x.nbytes // 16
    assert found[0].item() == 1 << 14


def test_arrays_of_cupy_stay_on_the_gpu():
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(X)
    check(x, "cupy")
    np.testing.assert_allclose(coulis.sum(x[::-1, :, ::2], 0).get(), X[::-1, :, ::2].sum(0), rtol=1e-4, atol=1e-4)
    # CuPy exports strides below 0 as huge ones; a plan by them would take rows for columns.
    backwards = cupy.ones((512, 2048), "f4")[:, ::-1]
    assert coulis.plan(backwards, "sum", axis=1).trace == coulis.plan(backwards[:, ::-1], "sum", axis=1).trace
    out = cupy.zeros((6, 5), "f4")
    assert coulis.max(x, 2, out=out) is out
    np.testing.assert_array_equal(out.get(), X.max(2))


def test_arrays_of_jax_stay_on_the_gpu():
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "cpu":
        pytest.skip("jax sees no GPU")
    x = jax.numpy.asarray(X)
    check(x, "jax")
    assert coulis.sum(x, 0).devices() == x.devices()
    assert coulis.max(x.astype("bfloat16"), 0).dtype == "bfloat16"


def test_arrays_of_the_host_are_sent_where_asked():
    np.testing.assert_allclose(coulis.sum(X, 0, device="cuda"), X.sum(0), rtol=1e-4, atol=1e-4)
    found = coulis.reduce(X, ["max", "argmax"], 2, device="cuda")
    np.testing.assert_array_equal(found.argmax, X.argmax(2))
