"""`coulis.torch`: an operator that PyTorch compiles around and differentiates. SKIP where PyTorch is not there."""

import math

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import coulis  # noqa: E402
import coulis.torch  # noqa: E402
from coulis import te  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if "cuda:0" in coulis.machine() and torch.cuda.is_available() else [])
pytestmark = pytest.mark.parametrize("device", DEVICES)

THEIRS = {
    "sum": lambda x, a, k: x.sum(a, k),
    "mean": lambda x, a, k: x.mean(a, k),
    "var": lambda x, a, k: x.var(a, correction=0, keepdim=k),
    "std": lambda x, a, k: x.std(a, correction=0, keepdim=k),
    "max": lambda x, a, k: x.amax(a, k),
    "min": lambda x, a, k: x.amin(a, k),
    "prod": lambda x, a, k: x.flatten(a[0]).prod(-1) if len(a) > 1 else x.prod(a[0], k),
    "logsumexp": lambda x, a, k: x.logsumexp(a, k),
    "absmax": lambda x, a, k: torch.linalg.vector_norm(x, float("inf"), a, k),
    "norm1": lambda x, a, k: torch.linalg.vector_norm(x, 1, a, k),
    "norm2": lambda x, a, k: torch.linalg.vector_norm(x, 2, a, k),
    "sumsq": lambda x, a, k: (x * x).sum(a, k),
    "meansq": lambda x, a, k: (x * x).mean(a, k),
}


def values(device, *shape):
    made = torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) * 2 - 0.7
    return made.to(device).requires_grad_()


@pytest.mark.parametrize("name", THEIRS)
def test_a_statistic_and_its_gradient_are_those_of_torch(device, name):
    for axis, keepdims in [((1,), False), ((0,), True), ((1, 2), False)]:
        x, y = values(device, 3, 4, 5), values(device, 3, 4, 5)
        ours, theirs = getattr(coulis.torch, name)(x, axis, keepdims=keepdims), THEIRS[name](y, axis, keepdims)
        torch.testing.assert_close(ours, theirs)
        weights = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype, device=device).reshape(ours.shape)
        (ours * weights).sum().backward()
        (theirs * weights).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_gradients_agree_with_differences_to_second_order(device):
    x = values(device, 3, 4)
    several = lambda x: tuple(coulis.torch.reduce(x, list(THEIRS), 1))  # noqa: E731
    assert torch.autograd.gradcheck(several, x)
    assert torch.autograd.gradgradcheck(lambda x: coulis.torch.norm2(x, 1), x)
    assert torch.autograd.gradgradcheck(lambda x: coulis.torch.var(x, 1, ddof=1), x)
    assert torch.autograd.gradgradcheck(lambda x: coulis.torch.logsumexp(x, 0), x)


@pytest.mark.parametrize("name", ["sum", "var", "max", "prod", "logsumexp", "norm2"])
def test_over_no_axes_each_element_has_a_gradient_of_its_own(device, name):
    x = torch.tensor([[1.5, -2.0], [0.25, 3.0]], dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: getattr(coulis.torch, name)(x, ()), x)
    assert torch.autograd.gradcheck(lambda x: coulis.torch.softmax(x, ()), x)
    assert torch.autograd.gradcheck(lambda x: coulis.torch.log_softmax(x, ()), x)


def test_equal_extrema_share_a_gradient_and_zeros_of_a_product_get_their_own(device):
    x = torch.tensor([[1.0, 3.0, 3.0], [0.0, 2.0, 4.0], [0.0, 0.0, 5.0]], device=device, requires_grad=True)
    coulis.torch.max(x, 1).sum().backward()
    assert x.grad.tolist() == [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 1]]
    x.grad = None
    coulis.torch.prod(x, 1).sum().backward()
    assert x.grad.tolist() == [[9, 3, 3], [8, 0, 0], [0, 0, 0]]


def test_products_that_hold_zeros_have_right_derivatives_of_second_order(device):
    for row, first, second in [([0.0, 2.0, 3.0], [6, 0, 0], [5, 3, 2]), ([0.0, 0.0, 3.0], [0, 0, 0], [3, 3, 0])]:
        x = torch.tensor(row, dtype=torch.float64, device=device, requires_grad=True)
        (found,) = torch.autograd.grad(coulis.torch.prod(x), x, create_graph=True)
        assert found.tolist() == first
        assert torch.autograd.grad(found.sum(), x)[0].tolist() == second
    x = values(device, 3, 4, 5).detach()
    x[0, :2], x[1, 3, 4], x[2, 0, :3] = 0, 0, 0
    for axis in [None, (1,), (0, 2), ()]:
        assert torch.autograd.gradcheck(lambda x: coulis.torch.prod(x, axis), x.clone().requires_grad_())
        assert torch.autograd.gradgradcheck(lambda x: coulis.torch.prod(x, axis), x.clone().requires_grad_())


def test_gradients_of_products_do_not_leave_the_range_on_the_way(device):
    for dtype, big in [(torch.float32, 2.0**100), (torch.float64, 2.0**800), (torch.bfloat16, 2.0**100)]:
        for n in [1, 5, 300]:
            x = torch.tensor([big] * n + [1 / big] * n, dtype=dtype, device=device, requires_grad=True)
            y = coulis.torch.prod(x)
            y.backward()
            assert y.item() == 1 and x.grad.tolist() == [1 / big] * n + [big] * n
        for row, want in [
            ([big, big, 0.0, 1 / big], [0, 0, big, 0]),
            ([big, big, 3.0], [3 * big, 3 * big, math.inf]),
            ([1 / big, 1 / big, 3.0], [3 / big, 3 / big, 0]),
            ([math.inf, 2.0], [2, math.inf]),
        ]:
            x = torch.tensor(row, dtype=dtype, device=device, requires_grad=True)
            coulis.torch.prod(x).backward()
            assert x.grad.tolist() == want
    least = 2.0**-1074
    x = torch.tensor([least, 2.0**1000], dtype=torch.float64, device=device, requires_grad=True)
    coulis.torch.prod(x).backward()
    assert x.grad.tolist() == [2.0**1000, least]
    x = torch.ones(3, 0, device=device, requires_grad=True)
    coulis.torch.prod(x, 1).sum().backward()
    assert x.grad.shape == (3, 0)


def test_products_of_rows_of_every_length_have_the_gradients_of_exact_products(device):
    for n in [2, 3, 4, 5, 7, 8, 13, 33, 1000]:
        for dtype in (torch.float16, torch.float32, torch.float64):
            x = (values(device, 3, n).detach().clamp(0.5) * 2**0.25).to(dtype)
            x[1, n // 2], x[2, 0], x[2, n - 1] = 0, 0, 0
            x, grad = x.requires_grad_(), torch.tensor([3.0, 5, 7], dtype=dtype, device=device)
            (found,) = torch.autograd.grad(coulis.torch.prod(x, 1), x, grad)
            others = x.detach().double()[:, None].expand(3, n, n).masked_fill(torch.eye(n, dtype=torch.bool, device=device), 1)
            torch.testing.assert_close(found, (others.prod(2) * grad.double()[:, None]).to(dtype), rtol=None, atol=None)


def test_gradients_of_several_directions_are_those_of_each(device):
    x, directions = values(device, 4, 5), torch.eye(4, dtype=torch.float64, device=device)
    for name in THEIRS:
        y = getattr(coulis.torch, name)(x, 1)
        if name == "prod":
            # PyTorch batches no views of numbers as their bits.
            with pytest.raises(RuntimeError, match="Batching rule"):
                torch.autograd.grad(y, x, directions, is_grads_batched=True)
            continue
        at_once = torch.autograd.grad(y, x, directions, is_grads_batched=True, retain_graph=True)[0]
        each = [torch.autograd.grad(y, x, direction, retain_graph=True)[0] for direction in directions]
        torch.testing.assert_close(at_once, torch.stack(each))


def test_each_of_many_results_is_differentiated_alone_and_twice(device):
    names, shapes = [*THEIRS, "argmax"], [lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[0].expand(3, 5)]

    def derivatives(function, x):
        (first,) = torch.autograd.grad(function(x).pow(2).sum(), x, create_graph=True)
        return first, torch.autograd.grad(first.pow(2).sum(), x)[0]

    for name, theirs in THEIRS.items():
        for shape in shapes:
            ours = lambda x: getattr(coulis.torch.reduce(shape(x), names, 1), name)  # noqa: B023, E731
            x = values(device, 4, 5).detach().abs().requires_grad_()
            for found, wanted in zip(derivatives(ours, x), derivatives(lambda x: theirs(shape(x), (1,), False), x)):  # noqa: B023
                torch.testing.assert_close(found, wanted)
    with torch.no_grad():
        assert not any(found.requires_grad for found in coulis.torch.reduce(x, names, 1))


def test_a_graph_is_compiled_in_one_piece(device):
    def normalise(x):
        found = coulis.torch.reduce(x, ["mean", "std", "argmax"], -1, keepdims=True)
        return (x - found.mean) / found.std + found.argmax

    x = values(device, 6, 7)
    whole = torch.compile(normalise, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(whole(x), normalise(x))
    (whole(x) ** 2)[:, 0].sum().backward()
    compiled = x.grad.clone()
    x.grad = None
    (normalise(x) ** 2)[:, 0].sum().backward()
    torch.testing.assert_close(compiled, x.grad)
    product = torch.compile(lambda x: coulis.torch.prod(x, 1), backend="aot_eager", fullgraph=True)
    x.grad = None
    product(x).sum().backward()
    torch.testing.assert_close(x.grad, (x.detach().prod(1, keepdim=True) / x.detach()))
    explained = torch._dynamo.explain(normalise)(x)
    assert explained.graph_break_count == 0


def test_the_operator_is_what_torch_asks_of_one(device):
    for ops, axis, keepdims in [("sum,max", [0], False), ("maxloc,any", None, True), ("var", [-1, 0], False)]:
        torch.library.opcheck(torch.ops.coulis.reduce.default, (values(device, 3, 4), ops, axis, keepdims, 0.0))


def test_results_of_a_permuted_tensor_lie_as_the_operators_say(device):
    x = values(device, 3, 4, 5)
    views = [x.permute(2, 0, 1), x.permute(1, 2, 0), x.mT, x[:, :1].permute(1, 2, 0), x[:, :1].expand(3, 4, 5).permute(2, 1, 0), x[1:1].mT]
    for view in views:
        for axis in [[0], [1], [2], [0, 2], []]:
            for keepdims in [False, True]:
                torch.library.opcheck(torch.ops.coulis.reduce.default, (view, "sum,count", axis, keepdims, 0.0))
            torch.library.opcheck(torch.ops.coulis.normalize.default, (view, "softmax", axis, [], "", [], None))
    for view in views[:3]:
        assert torch.equal(coulis.max(view, 2), view.amax(2))
        assert coulis.softmax(view, 0).stride() == view.stride()


def test_shapes_and_types_are_known_without_elements(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(3, 4, dtype=torch.float16, device=device)
        found = coulis.torch.reduce(x, ["sum", "argmax", "all", "count"], 1)
    assert [tuple(f.shape) for f in found] == [(3,)] * 4
    assert [f.dtype for f in found] == [torch.float16, torch.int64, torch.bool, torch.int64]


def test_mistakes_are_exceptions(device):
    x = values(device, 3, 4)
    with pytest.raises(ValueError, match="legal axes"):
        coulis.torch.sum(x, 2)
    with pytest.raises(ValueError, match="twice"):
        coulis.torch.reduce(x, ["sum", "sum"])
    with pytest.raises(TypeError, match="tensor of PyTorch"):
        coulis.torch.sum([1.0])
    with pytest.raises(TypeError, match="name of a statistic"):
        coulis.torch.reduce(x, [3])


def test_a_statistic_without_a_gradient_says_so(device, monkeypatch):
    monkeypatch.delitem(coulis.torch._GRADIENTS, "norm2")
    with pytest.raises(NotImplementedError, match="`norm2` has no gradient; those of coulis.torch are sum, "):
        coulis.torch.reduce(values(device, 3, 4), "norm2").backward()


def test_a_norm_of_zeros_has_the_gradient_of_torch(device):
    x = torch.zeros(2, 3, device=device, requires_grad=True)
    coulis.torch.norm2(x, 1).sum().backward()
    assert not x.grad.any()


def test_results_are_pickled_and_copied(device):
    import copy
    import pickle

    x = values(device, 3, 4).detach()
    found = coulis.torch.reduce(x, ["sum", "maxloc"], 1)
    for other in [pickle.loads(pickle.dumps(found)), copy.deepcopy(found)]:
        assert type(other) is type(found) and torch.equal(other.maxloc.index, found.maxloc.index)
        assert torch.equal(other.sum, found.sum) and other.sum is not found.sum


MAPS = {
    "softmax": (lambda x, w, b: coulis.torch.softmax(x), lambda x, w, b: x.softmax(-1)),
    "log_softmax": (lambda x, w, b: coulis.torch.log_softmax(x), lambda x, w, b: x.log_softmax(-1)),
    "layer_norm": (
        lambda x, w, b: coulis.torch.layer_norm(x, -1, w, b),
        lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b),
    ),
    "rms_norm": (
        lambda x, w, b: coulis.torch.rms_norm(x, -1, w),
        lambda x, w, b: torch.nn.functional.rms_norm(x, x.shape[-1:], w),
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_softmax_and_the_norms_and_their_gradients_are_those_of_torch(device, name):
    results = []
    for function in MAPS[name]:
        x, w, b = values(device, 3, 4, 7), values(device, 7), values(device, 7)
        y = torch.compile(function, backend="aot_eager", fullgraph=True)(x, w, b)
        (y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype, device=device).reshape(y.shape)).sum().backward()
        results.append([y.detach(), *[t.grad for t in (x, w, b) if t.grad is not None]])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours, theirs)


def test_rows_of_several_axes_are_normalised_with_gradients(device):
    x, w, b = values(device, 3, 4, 2), values(device, 4, 2), values(device, 4, 2)
    assert torch.autograd.gradcheck(lambda *t: coulis.torch.layer_norm(t[0], (1, 2), *t[1:]), (x, w, b))
    assert torch.autograd.gradcheck(lambda x: coulis.torch.softmax(x, (0, 2)), x)
    torch.library.opcheck(torch.ops.coulis.normalize.default, (x, "layer_norm", [1, 2], [w, b], "weight,bias", [1e-5], None))


def test_channels_are_normalised_as_by_torch(device):
    functions = [
        lambda x, w, b: coulis.torch.batch_norm(x, (0, 2, -1), w, b),
        lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
    ]
    results = []
    for function in functions:
        x, w, b = values(device, 4, 3, 5, 2), values(device, 3), values(device, 3)
        y = torch.compile(function, backend="aot_eager", fullgraph=True)(x, w, b)
        (y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype, device=device).reshape(y.shape)).sum().backward()
        results.append([y.detach(), x.grad, w.grad, b.grad])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours, theirs)
    x, w = values(device, 3, 4, 2), values(device, 3, 2)
    assert torch.autograd.gradcheck(lambda x, w: coulis.torch.batch_norm(x, 1, w), (x, w))
    torch.library.opcheck(torch.ops.coulis.normalize.default, (x, "batch_norm", [1], [w], "weight", [1e-5], None))


def test_a_normalization_without_a_gradient_is_computed_and_says_so_in_the_backward_pass(device, monkeypatch):
    monkeypatch.delitem(coulis.torch._GRADIENTS_OF_NORMALIZATIONS, "softmax")
    y = coulis.torch.softmax(values(device, 3, 4))
    torch.testing.assert_close(y.sum(-1), torch.ones(3, dtype=y.dtype, device=device))
    with pytest.raises(NotImplementedError, match="`softmax` has no gradient; those of coulis.torch are log_softmax, "):
        y.sum().backward()


def test_the_functions_are_those_of_the_catalogue(device):
    for name, *_ in coulis._coulis.normalizations():
        assert name in coulis.__all__ and name in coulis.torch.__all__
        assert getattr(coulis.torch, name).__doc__ and getattr(coulis, name).__doc__


def test_eps_of_integers_is_that_of_their_result(device):
    x = torch.zeros(2, 3, dtype=torch.int32, device=device)
    assert torch.equal(coulis.torch.rms_norm(x), torch.zeros(2, 3, dtype=torch.float64, device=device))


def test_a_tensor_without_axes_is_a_row_of_one_element(device):
    for axis in (-1, 0, None):
        x = torch.tensor(3.0, device=device, requires_grad=True)
        y = coulis.torch.softmax(x, axis)
        y.backward()
        assert y.item() == 1 and x.grad.item() == 0
    with pytest.raises(coulis.AxisError):
        coulis.torch.softmax(x, 1)


def test_what_torch_keeps_lazy_is_read_as_it_stands(device):
    negated = torch.complex(torch.ones(3), torch.arange(3.0)).to(device).conj().imag
    assert negated.is_neg() and coulis.sum(negated).item() == -3
    assert coulis.sum(values(device, 2, 3).detach()[:, ::2].T, 0).shape == (2,)
    with pytest.raises(NotImplementedError, match="complex"):
        coulis.sum(torch.ones(3, device=device) * 1j)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_short_types_do_not_leave_their_range(device, dtype):
    generator = torch.Generator().manual_seed(3)
    near = {"rtol": 0.02, "atol": 1e-4}
    x = (torch.randn(4, 64, generator=generator) * 300).to(dtype).to(device)
    grad = torch.randn(4, 64, generator=generator).to(dtype).to(device)
    functional = torch.nn.functional
    for ours, theirs in [
        (coulis.torch.layer_norm, lambda v: functional.layer_norm(v, (64,))),
        (lambda v: coulis.torch.rms_norm(v, eps=1e-6), lambda v: functional.rms_norm(v, (64,), eps=1e-6)),
        (coulis.torch.softmax, lambda v: functional.softmax(v, -1)),
        (coulis.torch.log_softmax, lambda v: functional.log_softmax(v, -1)),
        (lambda v: coulis.torch.std(v, 1, keepdims=True) * grad, lambda v: v.std(1, correction=0, keepdim=True) * grad),
    ]:
        a, b = x.clone().requires_grad_(), x.double().requires_grad_()
        ours(a).backward(grad)
        theirs(b).backward(grad.double())
        assert a.grad.dtype == dtype
        torch.testing.assert_close(a.grad.double(), b.grad, **near)


def test_what_is_broadcast_along_a_row_has_the_gradient_of_the_whole_row(device):
    x = torch.arange(15.0, device=device).reshape(3, 5)
    weight, bias = torch.full((1,), 2.0, device=device).requires_grad_(), torch.ones(1, device=device).requires_grad_()
    wide = [array.detach().expand(5).clone().requires_grad_() for array in (weight, bias)]
    coulis.torch.layer_norm(x, -1, weight, bias).pow(2).sum().backward()
    torch.nn.functional.layer_norm(x, (5,), *wide).pow(2).sum().backward()
    torch.testing.assert_close(weight.grad, wide[0].grad.sum(0, keepdim=True))
    torch.testing.assert_close(bias.grad, wide[1].grad.sum(0, keepdim=True))
    whole = torch.arange(10, device=device).reshape(2, 5)
    ones = torch.ones(5, dtype=torch.float64, device=device).requires_grad_()
    coulis.torch.layer_norm(whole, -1, ones)[:, 0].sum().backward()
    assert ones.grad[0] != 0 and ones.grad[1:].abs().max() == 0


def test_derivatives_forwards_are_refused_and_not_0(device):
    x = torch.ones(3, device=device)
    for function in [lambda v: coulis.torch.reduce(v, "sumsq"), coulis.torch.softmax]:
        with pytest.raises(NotImplementedError, match="no derivatives in forward mode"):
            torch.func.jvp(function, (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        assert coulis.torch.sum(x).item() == 3, "what has no tangent is reduced as ever"


def test_a_tensor_without_memory_is_not_written(device):
    out = torch.zeros(4, device=device)
    out.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="`out` has no memory: its shape is"):
        coulis.sum(torch.ones(4, 5, device=device), 1, out=out)
    with pytest.raises(ValueError, match="`x` has no memory: its shape is"):
        coulis.sum(out)


def test_tensors_that_stand_for_a_shape_alone_are_refused(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, 4, device=device)
        views = [fake, fake[1], fake.T]
        for x in views:
            with pytest.raises(TypeError, match="`x` is traced by PyTorch"):
                coulis.sum(x)
    for x in [*views, torch._to_functional_tensor(torch.ones(3, device=device))]:
        with pytest.raises(TypeError, match="`x` is traced by PyTorch"):
            coulis.softmax(x)
        with pytest.raises(TypeError, match="`out` is traced by PyTorch"):
            coulis.sum(torch.ones(3, 4, device=device), 0, out=x)
    for transform in (torch.func.grad, torch.func.vmap):
        with pytest.raises(TypeError, match="`x` is wrapped by a transform"):
            transform(coulis.sum)(torch.ones(3, device=device))


def test_zeros_that_torch_has_not_made_are_read_and_not_written(device):
    zeros = torch._efficientzerotensor((3, 4), device=device)
    assert coulis.sum(zeros).item() == 0 and coulis.sum(zeros[1], dtype="float64").dtype == torch.float64
    assert coulis.torch.sum(zeros, 0).tolist() == [0] * 4
    with pytest.raises(ValueError, match="zeros that has no memory"):
        coulis.sum(torch.ones(3, 4, device=device), 0, out=zeros[0])


def test_names_and_axes_are_not_taken_for_others(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(ValueError, match="unknown reducer `sum,max`"):
        coulis.torch.reduce(x, "sum,max", 1)
    for axis in (1.5, "1", True, [0, 1.5]):
        with pytest.raises(TypeError, match="`axis` is to be an integer"):
            coulis.torch.reduce(x, "sum", axis)
        with pytest.raises(TypeError, match="`axis` is to be an integer"):
            coulis.torch.softmax(x, axis)
    with pytest.raises(TypeError, match="got an object of type `Reducer`"):
        coulis.torch.reduce(x, coulis.reducer(combine=lambda a, b: a + b, identity=0, name="own"))


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev, torch.vmap])
def test_transforms_of_functions_are_refused_and_not_wrong(device, transform):
    x = torch.ones(3, 4, device=device)
    with pytest.raises(RuntimeError):
        transform(lambda v: coulis.torch.reduce(v, "sumsq"))(x if transform is torch.vmap else x[0])


def test_gradients_of_infinities_and_of_nothing_are_those_of_torch(device):
    for row in [[math.inf, 1.0, -2.0], [math.inf, math.inf], [-math.inf, 1.0], [math.nan, 1.0]]:
        x, y = (torch.tensor(row, device=device, requires_grad=True) for _ in range(2))
        coulis.torch.logsumexp(x).backward()
        torch.logsumexp(y, 0).backward()
        torch.testing.assert_close(x.grad, y.grad, equal_nan=True)
    x = torch.tensor([[math.nan, 1.0], [-3.0, 2.0]], device=device, requires_grad=True)
    coulis.torch.absmax(x, 1).sum().backward()
    torch.testing.assert_close(x.grad, x.new_tensor([[math.nan, 0.0], [-1.0, 0.0]]), equal_nan=True)
    for name in ["mean", "var", "std", "meansq"]:
        x = torch.empty(2, 0, device=device, requires_grad=True)
        getattr(coulis.torch, name)(x, 1).sum().backward()
        assert x.grad.shape == (2, 0)
    x = torch.ones(2, 1, device=device, requires_grad=True)
    coulis.torch.var(x, 1, ddof=1).sum().backward()
    assert x.grad.isnan().all()


def test_what_a_graph_needs_is_not_overwritten(device):
    x = torch.ones(3, 4, device=device)
    leaf = torch.zeros(4, device=device, requires_grad=True)
    for out in [leaf, leaf * 1, torch.zeros(8, device=device, requires_grad=True)[::2]]:
        with pytest.raises(ValueError, match="`out` of `sum` requires a gradient"):
            coulis.sum(x, 0, out=out)
        with pytest.raises(ValueError, match="`out` of `softmax` requires a gradient"):
            coulis.softmax(x[0], out=out)
        assert not out.any()
    with torch.no_grad():
        assert coulis.sum(x, 0, out=leaf).tolist() == [3] * 4
    weight, kept = torch.ones(4, device=device, requires_grad=True), torch.zeros(4, device=device)
    product = (weight * kept).sum()
    coulis.sum(x, 0, out=kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_tensors_that_are_not_written_are_refused(device):
    x = torch.ones(3, 4, device=device)
    with torch.inference_mode():
        made = torch.zeros(4, device=device)
        coulis.sum(x, 0, out=made)
    with pytest.raises(ValueError, match="inference_mode"):
        coulis.sum(x, 0, out=made)
    negated = torch.zeros(4, dtype=torch.complex64, device=device).conj().imag
    with pytest.raises(ValueError, match="negated"):
        coulis.sum(x, 0, out=negated)


def test_functions_write_as_torch_does(device):
    del device  # they are built for the CPU
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="B")
    f = coulis.build(te.create_schedule(b.op), [a, b])
    with pytest.raises(ValueError, match="the output `B` requires a gradient"):
        f(torch.ones(4), torch.zeros(4, requires_grad=True))
    weight, kept = torch.ones(4, requires_grad=True), torch.zeros(4)
    product = (weight * kept).sum()
    f(weight, kept)
    assert kept.tolist() == [2] * 4
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_tensors_that_are_not_dense_are_refused_and_shapes_need_no_elements(device):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device=device)
    for x, kind in [(torch.eye(3, device=device).to_sparse(), "sparse"), (nested, "nested")]:
        for function in [coulis.torch.sum, coulis.torch.softmax]:
            with pytest.raises(TypeError, match=f"`x` is a {kind} tensor"):
                function(x)
    found = coulis.torch.reduce(torch.empty(3, 4, device="meta"), ["sum", "argmax"], 1)
    assert [(f.device.type, f.shape) for f in found] == [("meta", (3,))] * 2


def test_a_statistic_that_is_not_differentiated_has_no_part_in_the_gradient(device):
    infinity = math.inf
    for row, used, beside, ddof, want in [
        ([-infinity, 0.0, 0.0], "logsumexp", ["var"], 0, [0, 0.5, 0.5]),
        ([-infinity, 0.0, 0.0], "max", ["mean", "sumsq", "prod"], 0, [0, 0.5, 0.5]),
        ([2.0], "sum", ["std"], 1, [1]),
    ]:
        function = lambda x: getattr(coulis.torch.reduce(x, [used, *beside], ddof=ddof), used)  # noqa: E731, B023
        for call in (function, torch.compile(function, backend="aot_eager")):
            x = torch.tensor(row, device=device, requires_grad=True)
            call(x).backward()
            assert x.grad.tolist() == want, used
        (found,) = torch.autograd.grad(function(x), x, create_graph=True)
        assert found.tolist() == want
    x = torch.tensor([2.0], device=device, requires_grad=True)
    found = coulis.torch.reduce(x, ["std", "sum"], ddof=1)
    found.std.backward()
    assert x.grad.isnan().all(), "where it is differentiated its slope counts"


def test_results_are_changed_in_place_before_the_backward_pass_where_torch_lets_them(device):
    for name, theirs in THEIRS.items():
        refused = []
        for function in (lambda x: coulis.torch.reduce(x, [name], 1)[0], lambda x: theirs(x, (1,), False)):  # noqa: B023
            x = values(device, 4, 5)
            y = function(x)
            y.mul_(2)
            try:
                y.sum().backward()
            except RuntimeError as error:
                assert "inplace" in str(error)
                refused.append(True)
            else:
                refused.append(False)
                changed, x.grad = x.grad, None
                (2 * function(x)).sum().backward()
                torch.testing.assert_close(changed, x.grad)
        # A product of PyTorch divides by elements, and keeps its result.
        assert refused[0] <= refused[1], name
    x = values(device, 4, 5)
    between = x * 1
    found = coulis.torch.reduce(between, ["sum", "mean"], 1)
    between.mul_(2)
    (found.sum + found.mean).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 1.2)), "sums and means keep no elements"
    for function in [coulis.torch.layer_norm, coulis.torch.rms_norm, lambda x: coulis.torch.batch_norm(x, 0)]:
        found = []
        for in_place in (False, True):
            x = values(device, 4, 5)
            torch.nn.functional.relu(function(x), inplace=in_place).pow(2).sum().backward()
            found.append(x.grad)
        torch.testing.assert_close(*found)


@pytest.mark.skipif(not hasattr(torch, "uint4"), reason="PyTorch has no such types yet")
def test_integers_of_less_than_8_bits_are_not_read_as_wider_ones(device):
    for name in ("int4", "uint4", "uint1"):
        if hasattr(torch, name):
            x = torch.ones(4, dtype=torch.uint8, device=device).view(getattr(torch, name))
            with pytest.raises(NotImplementedError, match=f"`x` is of the element type `{name}`"):
                coulis.sum(x)
