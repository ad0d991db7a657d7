"""What published tutorials show of whole models and of layout, as tests; see `test_tutorials`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad as torch
import rgrad.nn.functional as F
from rgrad import nn
from rgrad.autograd import Function, gradcheck
from rgrad.autograd.function import once_differentiable

# ------------------------------------------------------------------------------------- batch norm as one Function


def per_channel(t):
    return t[None, :, None, None]


class BatchNorm(Function):
    """(x - mean) / (sqrt(var) + eps) over all but dimension 1, keeping only x for backward."""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        total = x.sum(dim=(0, 2, 3))
        deviation = torch.sqrt(x.var(unbiased=True, dim=(0, 2, 3)))
        ctx.save_for_backward(x)
        ctx.eps, ctx.total, ctx.deviation = eps, total, deviation
        ctx.count = x.numel() / x.size(1)
        out = x - per_channel(total / ctx.count)
        out /= per_channel(deviation + eps)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        n, deviation, scale = ctx.count, ctx.deviation, ctx.deviation + ctx.eps
        centred = x - per_channel(ctx.total / n)
        grad_scale = -(centred * grad_out).sum(dim=(0, 2, 3)) / scale**2
        # The deviation is the root of sum(centred²) / (n - 1), whose gradient is centred / ((n - 1) deviation).
        grad_x = centred * per_channel(grad_scale / ((n - 1) * deviation))
        grad_x += grad_out / per_channel(scale)
        grad_x -= per_channel(grad_out.sum(dim=(0, 2, 3)) / (n * scale))
        return grad_x, None


def test_batch_norm_function() -> None:
    torch.manual_seed(0)
    x = torch.rand(1, 2, 3, 4, requires_grad=True, dtype=torch.double)
    assert gradcheck(BatchNorm.apply, (x,), fast_mode=False) is True
    assert gradcheck(BatchNorm.apply, (x, 0.1)) is True
    y = BatchNorm.apply(x, 0.0).detach().cpu().numpy()
    np.testing.assert_allclose(y.mean(axis=(0, 2, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=(0, 2, 3), ddof=1), 1, rtol=1e-12)


def test_once_differentiable_refuses_the_second_derivative() -> None:
    x = torch.rand(1, 2, 3, 4, requires_grad=True, dtype=torch.double)
    weights = torch.rand(1, 2, 3, 4, requires_grad=True, dtype=torch.double)
    (first,) = torch.autograd.grad((BatchNorm.apply(x) * weights).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


# --------------------------------------------------------------------------------------- a classifier, end to end


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = self.hidden(x.flatten(1))
        x = self.dropout(x)
        F.relu_(x)
        return F.log_softmax(self.out(x), dim=1)


def test_training_and_testing_a_classifier() -> None:
    torch.manual_seed(1)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 240)
    centres = rng.standard_normal((3, 8)) * 3
    points = (centres[labels] + rng.standard_normal((240, 8))).astype(np.float32).reshape(240, 2, 2, 2)
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(points), torch.from_numpy(labels))
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    model.train()
    losses = []
    for _ in range(10):
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 5

    model.eval()
    total, correct = 0.0, 0
    with torch.inference_mode():
        for data, target in loader:
            output = model(data)
            total += F.nll_loss(output, target, reduction="sum").item()
            guess = output.argmax(dim=1, keepdim=True)
            correct += guess.eq(target.view_as(guess)).sum().item()
    assert total / len(dataset) < 0.3
    assert correct / len(dataset) > 0.9


# --------------------------------------------------------------------------------------- what copies and what not


@pytest.mark.parametrize(
    ("name", "change", "shape"),
    [
        ("reshape", lambda t: t.reshape(3, 2), (3, 2)),
        ("view", lambda t: t.view(6), (6,)),
        ("unsqueeze", lambda t: t.unsqueeze(0), (1, 2, 3)),
        ("squeeze", lambda t: t.unsqueeze(0).squeeze(), (2, 3)),
        ("expand", lambda t: t.unsqueeze(0).expand(4, 2, 3), (4, 2, 3)),
        ("expand_as", lambda t: t.expand_as(torch.empty(4, 2, 3)), (4, 2, 3)),
        ("transpose", lambda t: t.transpose(0, 1), (3, 2)),
        ("permute", lambda t: t.permute(1, 0), (3, 2)),
        ("contiguous", lambda t: t.contiguous(), (2, 3)),
        ("detach", lambda t: t.detach(), (2, 3)),
    ],
)
def test_shape_changes_share_memory(name: str, change: Any, shape: tuple[int, ...]) -> None:
    t = torch.arange(6.0).reshape(2, 3)
    changed = change(t)
    assert tuple(changed.shape) == shape
    assert changed.data_ptr() == t.data_ptr(), name
    t[0, 0] = 100.0
    assert changed.max().item() == 100.0


def test_shape_changes_that_copy() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    turned = t.t()
    assert not turned.is_contiguous()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        turned.view(6)
    for copy in (turned.reshape(6), turned.contiguous(), t.clone()):
        assert copy.data_ptr() != t.data_ptr()
    assert turned.contiguous().view(6).tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(RuntimeError, match="must match the existing size"):
        t.expand(4, 3)


def test_numbers_and_zero_dimensions() -> None:
    three = torch.tensor(3)
    assert (three.ndim, tuple(three.shape), three.item(), repr(three)) == (0, (), 3, "tensor(3)")
    assert np.asarray(three).shape == ()
    assert torch.tensor([1, 2]).cpu().numpy().tolist() == [1, 2]
    loss = (torch.ones(3, requires_grad=True) ** 2).mean()
    assert isinstance(loss.item(), float)
    loss.backward()
