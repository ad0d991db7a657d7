"""Layers, losses and initial values."""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from devices import memory, real, tol
from op_kit import to_numpy
from rgrad import nn

pytestmark = pytest.mark.usefixtures("device")


def check_gradients(func, inputs, second=False):
    """gradcheck; a function that holds device tensors has its differences taken in float32, which are that coarse."""
    fine = real() == rgrad.float64
    options = {"rtol": 1e-5} if fine else {"eps": 1e-2, "atol": 2e-3, "rtol": 1e-2}
    check = rgrad.autograd.gradgradcheck if second else rgrad.autograd.gradcheck
    with warnings.catch_warnings():
        if not fine:
            warnings.filterwarnings("ignore", "Input #0 requires gradient and is not a double precision")
        assert check(func, inputs, **options) is True


def numbers(*shape: int, seed: int = 0) -> rgrad.Tensor:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=real())


# -------------------------------------------------------------------------------------------------------- layers


def test_linear() -> None:
    layer = nn.Linear(3, 2, dtype=real())
    x = numbers(4, 5, 3)
    want = to_numpy(x) @ to_numpy(layer.weight).T + to_numpy(layer.bias)
    np.testing.assert_allclose(layer(x).detach().cpu().numpy(), want, rtol=tol(1e-12), atol=tol(1e-12))
    assert nn.Linear(3, 2, bias=False).bias is None
    bound = 1 / math.sqrt(3)
    for _ in range(3):
        layer.reset_parameters()
        assert layer.weight.abs().max().item() <= bound
    del layer.weight
    layer.weight = rgrad.ones(2, 3, dtype=real())
    np.testing.assert_allclose(
        layer(x).detach().cpu().numpy(),
        to_numpy(x).sum(-1, keepdims=True) + to_numpy(layer.bias),
        rtol=tol(1e-12),
        atol=tol(1e-12),
    )
    pair = nn.Bilinear(2, 3, 4, dtype=real())
    a, b = numbers(5, 2), numbers(5, 3, seed=1)
    want = np.einsum("ni,kij,nj->nk", to_numpy(a), to_numpy(pair.weight), to_numpy(b)) + to_numpy(pair.bias)
    np.testing.assert_allclose(pair(a, b).detach().cpu().numpy(), want, rtol=tol(1e-12), atol=tol(1e-12))
    assert nn.Identity(3, key=1)(x) is x


SMOOTH = ["sigmoid", "tanh", "gelu", "silu", "softplus", "softsign", "logsigmoid", "elu", "leaky_relu"]


def reference(name: str, x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf)
    return {
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
        "gelu": lambda: 0.5 * x * (1 + erf(x / math.sqrt(2))),
        "silu": lambda: x / (1 + np.exp(-x)),
        "softplus": lambda: np.log1p(np.exp(x)),
        "softsign": lambda: x / (1 + np.abs(x)),
        "logsigmoid": lambda: -np.log1p(np.exp(-x)),
        "elu": lambda: np.where(x > 0, x, np.expm1(x)),
        "leaky_relu": lambda: np.where(x > 0, x, 0.01 * x),
    }[name]()


@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name: str) -> None:
    x = numbers(50) * 2
    func = getattr(F, name)
    np.testing.assert_allclose(func(x).cpu().numpy(), reference(name, to_numpy(x)), rtol=tol(1e-12), atol=1e-14)


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "logsigmoid", "elu"])
def test_activations_far_out(name: str) -> None:
    x = rgrad.tensor([-800.0, -40.0, 40.0, 800.0], dtype=real(), requires_grad=True)
    y = getattr(F, name)(x)
    assert y.isfinite().all()
    (g,) = rgrad.autograd.grad(y.sum(), x, create_graph=True)
    assert g.isfinite().all()
    (h,) = rgrad.autograd.grad(g.sum(), x, allow_unused=True, materialize_grads=True)
    assert h.isfinite().all()


def test_gelu_keeps_its_digits_for_negative_input() -> None:
    x = rgrad.tensor(-10.0, dtype=real())
    want = -10 * 0.5 * math.erfc(10 / math.sqrt(2))
    assert F.gelu(x).item() == pytest.approx(want, rel=tol(1e-13))


def test_activations_in_place() -> None:
    for name in ("relu", "leaky_relu", "elu", "celu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "relu6"):
        x = numbers(4)
        want = getattr(F, name)(x)
        y = getattr(F, name)(x, inplace=True)
        assert memory(y) == memory(x)
        assert rgrad.equal(x, want)
    x = numbers(4).requires_grad_()
    y = nn.ReLU(inplace=True)(x * 1)
    y.sum().backward()
    assert rgrad.equal(x.grad, (x > 0).to(x.dtype))


def test_softmax() -> None:
    x = numbers(3, 4)
    e = np.exp(to_numpy(x))
    np.testing.assert_allclose(F.softmax(x, 0).cpu().numpy(), e / e.sum(0), rtol=tol(1e-12))
    np.testing.assert_allclose(
        F.log_softmax(x, -1).cpu().numpy(), np.log(e / e.sum(-1, keepdims=True)), rtol=tol(1e-12)
    )
    np.testing.assert_allclose(nn.Softmax(1)(-x).cpu().numpy(), F.softmin(x, 1).cpu().numpy())
    assert F.softmax(x.float(), 1, dtype=real()).dtype == real()
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert rgrad.equal(F.softmax(x), F.softmax(x, 1))


def test_dropout() -> None:
    rgrad.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = rgrad.ones(20_000)
    y = layer(x)
    kept = y != 0
    assert rgrad.allclose(y[kept], rgrad.tensor(1 / 0.75))
    assert abs(kept.float().mean().item() - 0.75) < 0.02
    assert layer.eval()(x) is x
    assert F.dropout(x, 1.0).abs().sum().item() == 0
    z = rgrad.ones(100)
    assert F.dropout(z, 0.5, inplace=True) is z
    assert set(z.tolist()) == {0.0, 2.0}
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        nn.Dropout(1.5)


def test_flatten() -> None:
    x = rgrad.zeros(2, 3, 4, 5)
    assert tuple(nn.Flatten()(x).shape) == (2, 60)
    assert tuple(nn.Flatten(0, 1)(x).shape) == (6, 4, 5)
    assert tuple(nn.Unflatten(1, (3, -1))(nn.Flatten()(x)).shape) == (2, 3, 20)


def test_one_hot() -> None:
    x = rgrad.tensor([[0, 2], [1, 0]])
    assert F.one_hot(x).tolist() == np.eye(3, dtype=int)[to_numpy(x)].tolist()
    assert F.one_hot(x, 5).dtype == rgrad.int64
    assert tuple(F.one_hot(rgrad.zeros(0, dtype=rgrad.int64), 3).shape) == (0, 3)
    for bad, classes in ((x - 1, -1), (x, 2), (rgrad.zeros(0, dtype=rgrad.int64), -1), (x.float(), -1)):
        with pytest.raises(RuntimeError):
            F.one_hot(bad, classes)


# -------------------------------------------------------------------------------------------------------- losses


def picked(loss: np.ndarray, reduction: str) -> np.ndarray:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_regression_losses(reduction: str) -> None:
    a, b = numbers(3, 4).requires_grad_(), numbers(3, 4, seed=1) * 2
    d = to_numpy(a) - to_numpy(b)
    huber = np.where(np.abs(d) < 0.7, 0.5 * d * d, 0.7 * (np.abs(d) - 0.35))
    for loss, want in (
        (nn.MSELoss(reduction=reduction), d * d),
        (nn.L1Loss(reduction=reduction), np.abs(d)),
        (nn.HuberLoss(reduction=reduction, delta=0.7), huber),
        (nn.SmoothL1Loss(reduction=reduction, beta=0.7), huber / 0.7),
        (nn.SmoothL1Loss(reduction=reduction, beta=0.0), np.abs(d)),
    ):
        np.testing.assert_allclose(loss(a, b).detach().cpu().numpy(), picked(want, reduction), rtol=tol(1e-12))
        check_gradients(lambda a, loss=loss: loss(a, b), (a,))
    weight = numbers(3, 4, seed=2).abs()
    w = to_numpy(weight)
    want = {"none": w * d * d, "sum": (w * d * d).sum(), "mean": (w * d * d).sum() / w.sum()}[reduction]
    np.testing.assert_allclose(
        F.mse_loss(a, b, reduction=reduction, weight=weight).detach().cpu().numpy(), want, rtol=tol(1e-12)
    )


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = x - x.max(axis, keepdims=True)
    return e - np.log(np.exp(e).sum(axis, keepdims=True))


@pytest.mark.rotate(take=12)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 5, 2)])
def test_cross_entropy_of_indices(reduction: str, weighted: bool, smoothing: float, shape: tuple[int, ...]) -> None:
    x = numbers(*shape).requires_grad_()
    classes = 5
    axis = 0 if len(shape) == 1 else 1
    sizes = shape[:axis] + shape[axis + 1 :]
    target = np.random.default_rng(1).integers(0, classes, sizes)
    if target.size > 2:
        target.reshape(-1)[1] = -100
    w = np.random.default_rng(2).uniform(0.5, 2, classes) if weighted else np.ones(classes)
    logs = np.moveaxis(log_softmax(to_numpy(x), axis), axis, -1)
    counted = target != -100
    safe = np.where(counted, target, 0)
    picked_log = np.take_along_axis(logs, safe[..., None], -1)[..., 0]
    hard = np.where(counted, -picked_log * w[safe], 0.0)
    spread = np.where(counted, -(logs * w).sum(-1), 0.0)
    loss = (1 - smoothing) * hard + smoothing / classes * spread
    total = np.where(counted, w[safe], 0.0).sum()
    want = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / total}[reduction]
    weight = rgrad.tensor(w, dtype=real()) if weighted else None
    module = nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)
    t = rgrad.tensor(target)
    np.testing.assert_allclose(module(x, t).detach().cpu().numpy(), want, rtol=tol(1e-10))
    check_gradients(lambda x: module(x, t), (x,))
    if smoothing == 0:
        nll = nn.NLLLoss(weight, reduction=reduction)(F.log_softmax(x, axis), t)
        np.testing.assert_allclose(to_numpy(nll), want, rtol=tol(1e-10))


@pytest.mark.rotate(take=12)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 5, 2)])
def test_cross_entropy_of_probabilities(
    reduction: str, weighted: bool, smoothing: float, shape: tuple[int, ...]
) -> None:
    x = numbers(*shape).requires_grad_()
    axis = 0 if len(shape) == 1 else 1
    p = np.exp(log_softmax(np.random.default_rng(5).standard_normal(shape), axis))
    w = np.random.default_rng(2).uniform(0.5, 2, 5) if weighted else np.ones(5)
    w_shape = [5 if i == axis else 1 for i in range(len(shape))]
    smooth = p * (1 - smoothing) + smoothing / 5
    loss = -(log_softmax(to_numpy(x), axis) * smooth * w.reshape(w_shape)).sum(axis)
    weight = rgrad.tensor(w, dtype=real()) if weighted else None
    target = rgrad.tensor(p, dtype=real(), requires_grad=True)

    def func(x, target):
        return F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)

    np.testing.assert_allclose(func(x, target).detach().cpu().numpy(), picked(loss, reduction), rtol=tol(1e-10))
    check_gradients(func, (x, target))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_binary_losses(reduction: str) -> None:
    x = numbers(4, 3).requires_grad_()
    t = rgrad.tensor(np.random.default_rng(1).uniform(0, 1, (4, 3)), dtype=real())
    pos = rgrad.tensor([0.5, 1.0, 2.0], dtype=real())
    weight = numbers(4, 3, seed=2).abs()
    p = 1 / (1 + np.exp(-to_numpy(x)))
    plain = -(to_numpy(t) * np.log(p) + (1 - to_numpy(t)) * np.log(1 - p))
    with_pos = -(to_numpy(pos) * to_numpy(t) * np.log(p) + (1 - to_numpy(t)) * np.log(1 - p)) * to_numpy(weight)
    for loss, want in (
        (nn.BCEWithLogitsLoss(reduction=reduction), plain),
        (nn.BCEWithLogitsLoss(weight, reduction=reduction, pos_weight=pos), with_pos),
        (lambda x, t: nn.BCELoss(reduction=reduction)(x.sigmoid(), t), plain),
    ):
        np.testing.assert_allclose(loss(x, t).detach().cpu().numpy(), picked(want, reduction), rtol=tol(1e-10))
        check_gradients(lambda x, loss=loss: loss(x, t), (x,))
    edge = F.binary_cross_entropy(rgrad.tensor([0.0, 1.0]), rgrad.tensor([1.0, 1.0]), reduction="none")
    assert edge.tolist() == [100.0, 0.0]
    far = F.binary_cross_entropy_with_logits(rgrad.tensor([-500.0, 500.0]), rgrad.tensor([1.0, 0.0]), reduction="none")
    assert far.tolist() == [500.0, 500.0]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction: str, log_target: bool) -> None:
    x = F.log_softmax(numbers(4, 5), 1)
    t = F.softmax(numbers(4, 5, seed=1), 1)
    loss = to_numpy(t) * (np.log(to_numpy(t)) - to_numpy(x))
    want = loss.sum() / 4 if reduction == "batchmean" else picked(loss, reduction)
    got = F.kl_div(x, t.log() if log_target else t, reduction=reduction, log_target=log_target)
    np.testing.assert_allclose(to_numpy(got), want, rtol=tol(1e-10))
    assert F.kl_div(x, rgrad.zeros(4, 5, dtype=real()), reduction="sum").item() == 0


def test_losses_refuse() -> None:
    x, t = numbers(3, 4), rgrad.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, x, reduction="average")
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(x, x[:1])
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.raises(RuntimeError, match="label_smoothing must be between 0.0 and 1.0"):
        F.cross_entropy(x, t, label_smoothing=1.5)
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
        F.cross_entropy(x, x, ignore_index=1)
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 4 classes or no classes"):
        F.cross_entropy(x, x, rgrad.ones(3, dtype=real()))
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(x, x[0])
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(x * 10, x.sigmoid())
    with pytest.raises((RuntimeError, ValueError)):
        F.cross_entropy(x, t[:2])
    with pytest.raises((IndexError, RuntimeError)):
        F.cross_entropy(x, t + 2).item()


# ------------------------------------------------------------------------------------------------ initial values


def test_initial_values() -> None:
    rgrad.manual_seed(0)
    w = rgrad.empty(200, 300, requires_grad=True)
    assert nn.init.uniform_(w, -2, 3) is w
    assert w.grad_fn is None
    assert -2 <= w.min().item() < -1.9
    assert 2.9 < w.max().item() <= 3
    nn.init.normal_(w, 1.0, 2.0)
    assert w.mean().item() == pytest.approx(1, abs=0.05)
    assert w.std().item() == pytest.approx(2, abs=0.05)
    nn.init.constant_(w, 3)
    assert (w == 3).all()
    nn.init.ones_(w)
    nn.init.zeros_(w)
    assert (w == 0).all()
    assert rgrad.equal(nn.init.eye_(rgrad.empty(2, 3)), rgrad.eye(2, 3))
    for fill, deviation in (
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (nn.init.kaiming_uniform_, math.sqrt(2 / 300)),
        (nn.init.kaiming_normal_, math.sqrt(2 / 300)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda t: nn.init.xavier_uniform_(t, nn.init.calculate_gain("tanh")), 5 / 3 * math.sqrt(2 / 500)),
    ):
        fill(w)
        assert w.std().item() == pytest.approx(deviation, rel=0.03)
        assert w.mean().item() == pytest.approx(0, abs=0.1 * deviation)
    nn.init.trunc_normal_(w, 0.5, 1.0, -1.0, 1.0)
    assert w.min().item() >= -1
    assert w.max().item() <= 1
    # Mean of a normal N(0.5, 1) cut to [-1, 1].
    density, low, high = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi), -1.5, 0.5
    mass = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    assert w.mean().item() == pytest.approx(0.5 + (density(low) - density(high)) / mass, abs=0.01)
    assert nn.init._calculate_fan_in_and_fan_out(rgrad.empty(4, 3, 5, 5)) == (75, 100)


def test_initial_values_refuse() -> None:
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(rgrad.empty(3))
    with pytest.raises(ValueError, match="Mode middle not supported"):
        nn.init.kaiming_uniform_(rgrad.empty(3, 3), mode="middle")
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("unknown")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        nn.init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        nn.init.eye_(rgrad.empty(3))
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.init.kaiming_uniform_(rgrad.empty(0, 3))


# ------------------------------------------------------------------------------------------------------ utilities


def test_clipping() -> None:
    a, b = nn.Parameter(rgrad.ones(2, dtype=real())), nn.Parameter(rgrad.ones(1, dtype=real()))
    unused = nn.Parameter(rgrad.ones(1))
    a.grad, b.grad = rgrad.tensor([3.0, 0.0], dtype=real()), rgrad.tensor([4.0], dtype=real())
    norm = nn.utils.clip_grad_norm_([a, b, unused], 10.0)
    assert norm.item() == pytest.approx(5)
    assert a.grad.tolist() == [3, 0]
    assert nn.utils.clip_grad_norm_(iter([a, b]), 0.5).item() == 5
    np.testing.assert_allclose(to_numpy(a.grad), [0.3, 0], rtol=1e-6)
    np.testing.assert_allclose(to_numpy(b.grad), [0.4], rtol=1e-6)
    assert nn.utils.clip_grad_norm_([a, b], 0.1, norm_type=math.inf).item() == pytest.approx(0.4, rel=1e-6)
    nn.utils.clip_grad_value_(b, 0.05)
    assert b.grad.item() == pytest.approx(0.05)
    b.grad[0] = math.inf
    with pytest.raises(RuntimeError, match="is non-finite"):
        nn.utils.clip_grad_norm_(b, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([unused], 1.0).item() == 0


def test_vectors_of_parameters() -> None:
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (8,)
    assert vector.requires_grad
    nn.utils.vector_to_parameters(rgrad.arange(8.0), net.parameters())
    assert net.bias.tolist() == [6, 7]
    with pytest.raises(ValueError, match=r"got a vector of shape \(7,\), expected \(8,\)"):
        nn.utils.vector_to_parameters(rgrad.ones(7), net.parameters())
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


# -------------------------------------------------------------------------------------------- the package itself


def test_package_names() -> None:
    for name in rgrad.__all__:
        assert hasattr(rgrad, name), name
    for module in (nn, rgrad.optim, rgrad.utils.data, rgrad.autograd):
        for name in module.__all__:
            assert hasattr(module, name), name
    assert rgrad.finfo(rgrad.float32).eps == np.finfo(np.float32).eps
    assert rgrad.finfo(rgrad.float64).max == np.finfo(np.float64).max
    assert rgrad.finfo(rgrad.float32).tiny == np.finfo(np.float32).tiny
    assert rgrad.finfo(rgrad.float32).resolution == pytest.approx(np.finfo(np.float32).resolution)
    assert rgrad.finfo().bits == 32
    assert (rgrad.iinfo(rgrad.uint8).min, rgrad.iinfo(rgrad.int64).max) == (0, 2**63 - 1)
    assert (rgrad.iinfo(rgrad.int8).min, rgrad.iinfo(rgrad.int16).max) == (-128, 32767)
    for call in (lambda: rgrad.finfo(rgrad.int64), lambda: rgrad.iinfo(rgrad.float64)):
        with pytest.raises(TypeError):
            call()
    assert rgrad.device("cuda" if rgrad.cuda.is_available() else "cpu").type == "cpu"
    assert rgrad.cuda.device_count() == 0
    assert rgrad.is_tensor(nn.Parameter(rgrad.ones(1)))
    assert not rgrad.is_tensor(3)
    assert rgrad.typename(nn.Linear(1, 1)) == "rgrad.nn.modules.linear.Linear"
    assert rgrad.typename(3) == "int"


def test_print_options() -> None:
    x = rgrad.tensor([1 / 3, 2.0])
    try:
        rgrad.set_printoptions(precision=2)
        assert "0.33" in repr(x)
        assert "0.333" not in repr(x)
        rgrad.set_printoptions(profile="full", linewidth=40)
        assert "..." not in repr(rgrad.zeros(2000))
        for bad in ({"precision": -1}, {"edgeitems": 1.5}, {"profile": "wide"}, {"threshold": math.nan}):
            with pytest.raises(ValueError, match="set_printoptions"):
                rgrad.set_printoptions(**bad)
    finally:
        rgrad.set_printoptions(profile="default")
    assert "0.3333" in repr(x)


def test_assert_close() -> None:
    close = rgrad.testing.assert_close
    close(rgrad.ones(2), rgrad.ones(2) + 1e-7)
    close({"a": [1.0, rgrad.ones(1)]}, {"a": (1.0, rgrad.ones(1))})
    close(rgrad.tensor([math.nan]), rgrad.tensor([math.nan]), equal_nan=True)
    close(np.ones(2), np.ones(2))
    close(rgrad.tensor([2**53 + 1]), rgrad.tensor([2**53 + 1]))
    for actual, expected, said in (
        (rgrad.ones(3), rgrad.tensor([1.0, 2.0, 1.0]), r"Mismatched elements: 1 / 3 \(33.3%\)"),
        (rgrad.ones(3), rgrad.tensor([1.0, 2.0, 1.0]), r"Greatest absolute difference: 1.0 at index \(1,\)"),
        (rgrad.tensor([2**53]), rgrad.tensor([2**53 + 1]), "Tensor-likes are not equal!"),
        (rgrad.tensor([math.nan]), rgrad.tensor([math.nan]), "not close"),
        (rgrad.ones(3), rgrad.ones(2), "attribute 'shape' do not match"),
        (rgrad.ones(3), rgrad.ones(3, dtype=rgrad.int32), "attribute 'dtype' do not match"),
        ([1.0], [1.0, 2.0], "length of the sequences mismatch"),
        ({"a": 1}, {"b": 1}, "keys of the mappings do not match"),
        ({"a": [1, 2]}, {"a": [1, 3]}, r"for item \['a'\]\[1\]"),
        (1.0, 1, "types do not match"),
    ):
        with pytest.raises(AssertionError, match=said):
            close(actual, expected)
    with pytest.raises(AssertionError, match="^mine$"):
        close(1, 2, msg="mine")
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        close(1, 2, rtol=1)


def test_a_model_learns() -> None:
    rgrad.manual_seed(0)
    x = rgrad.linspace(-1, 1, 64).unsqueeze(1)
    y = (3 * x).sin()
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = rgrad.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(300):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2
    file = io.BytesIO()
    rgrad.save(net.state_dict(), file)
    assert file.tell() > 0
