"""Softmax and the norms of `coulis.torch` under masks, with gradients. SKIP where PyTorch is not there."""

import math

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import coulis.torch  # noqa: E402
from test_torch import DEVICES, values  # noqa: E402

pytestmark = pytest.mark.parametrize("device", DEVICES)

MASKED = {
    "softmax": lambda x, m: x.masked_fill(~m, -math.inf).softmax(-1),
    "log_softmax": lambda x, m: x.masked_fill(~m, -math.inf).log_softmax(-1),
    "layer_norm": lambda x, m: MASKED["rms_norm"](x - (x * m).sum(-1, keepdim=True) / m.expand_as(x).sum(-1, keepdim=True), m, 1e-5),
    "rms_norm": lambda x, m, eps=2.0**-52: (
        x / ((x * m).square().sum(-1, keepdim=True) / m.expand_as(x).sum(-1, keepdim=True) + eps).sqrt()
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_under_a_mask_results_and_gradients_are_those_of_torch(device, name):
    # One function is compiled for each mask and name.
    torch._dynamo.reset()
    mask = torch.rand(4, 7, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[:, 0] = True
    for m in [mask.to(device), mask[:1].to(device)]:
        ours = lambda x: getattr(coulis.torch, name)(x, where=m)  # noqa: B023, E731
        theirs = lambda x: MASKED[name](x, m)  # noqa: B023, E731
        results = []
        for function in [torch.compile(ours, backend="aot_eager", fullgraph=True), theirs]:
            x = values(device, 3, 4, 7)
            y = function(x)
            taken = torch.where(m, y, 0) if name == "log_softmax" else y
            (taken * torch.linspace(-1, 2, y.numel(), dtype=y.dtype, device=device).reshape(y.shape)).sum().backward()
            results.append([y.detach(), x.grad])
        for found, wanted in zip(*results):
            torch.testing.assert_close(found, wanted)
        if name != "log_softmax":
            assert torch.autograd.gradcheck(ours, values(device, 2, 4, 7))
        torch.library.opcheck(torch.ops.coulis.normalize.default, (x, name, [-1], [], "", [1e-5] if "norm" in name else [], m))


def test_what_a_mask_leaves_out_has_no_gradient_of_softmax(device):
    x = torch.tensor([[1.0, math.nan, 3.0], [math.inf, 5.0, 6.0]], device=device, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]], device=device)
    for name in ["softmax", "log_softmax"]:
        x.grad = None
        y = getattr(coulis.torch, name)(x, where=mask)
        y.backward(torch.ones_like(y) * torch.arange(3, device=device))
        assert torch.equal(x.grad[~mask], torch.zeros(4, device=device)) and x.grad[mask].isfinite().all()
