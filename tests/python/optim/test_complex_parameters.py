"""Optimizers and modules with complex parameters: each part is stepped as a real parameter would be."""

import copy
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor, nn, optim
from rgrad.nn import Parameter

VALUES = [1 + 2j, -0.5 + 0.1j, 0j]
CASES: list[tuple[type[optim.Optimizer], dict[str, Any]]] = [
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "foreach": True}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, {}),
    (optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "foreach": True}),
    (optim.AdamW, {}),
    (optim.RAdam, {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    (optim.NAdam, {"momentum_decay": 0.01}),
    (optim.Adagrad, {"initial_accumulator_value": 0.3}),
    (optim.Adadelta, {}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (optim.Rprop, {}),
    (optim.ASGD, {}),
    (optim.Adamax, {}),
]


def parts(t: Tensor) -> Tensor:
    return rgrad.view_as_real(t) if t.dtype.is_complex else t


def gradient(step: int) -> Tensor:
    turn = rgrad.tensor([1.5 - 0.3j, -1 + 1j, 0.2j], dtype=rgrad.complex128)
    return rgrad.tensor(VALUES, dtype=rgrad.complex128) * turn + step


@pytest.mark.parametrize("dtype", [rgrad.complex128, rgrad.complex64])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_steps_are_those_of_the_parts(kind: Any, options: dict[str, Any], dtype: Any) -> None:
    given = Parameter(rgrad.tensor(VALUES, dtype=dtype))
    pairs = Parameter(rgrad.view_as_real(given.detach().clone()))
    # A real parameter in the same group.
    other = Parameter(rgrad.tensor([1.0, 2.0], dtype=rgrad.float64))
    steps, expected = kind([given, other], **options), kind([pairs], **options)
    before = [id(given)]
    for i in range(4):
        given.grad = gradient(i).to(dtype)
        pairs.grad = rgrad.view_as_real(given.grad.clone())
        other.grad = other.detach() * 2
        steps.step()
        expected.step()
        assert given.tolist() == rgrad.view_as_complex(pairs.detach()).tolist()
    assert given.dtype == dtype
    assert before == [id(given)]
    for name, value in steps.state[given].items():
        want = expected.state[pairs][name]
        if isinstance(value, Tensor) and value.dim():
            assert value.dtype == dtype, name
            assert parts(value).tolist() == want.tolist(), name
        else:
            assert value == want, name


def test_lbfgs() -> None:
    goal = rgrad.tensor([1j, 2 - 1j, 0.5], dtype=rgrad.complex128)

    def run(search: str | None, paired: bool) -> list[complex]:
        start = rgrad.tensor(VALUES, dtype=rgrad.complex128)
        p = Parameter(rgrad.view_as_real(start) if paired else start)
        steps = optim.LBFGS([p], lr=0.5, max_iter=6, line_search_fn=search)

        def closure() -> Tensor:
            steps.zero_grad()
            x = parts(p)
            loss = (x - rgrad.view_as_real(goal)).square().sum() + x.square().square().sum()
            loss.backward()
            return loss

        for _ in range(2):
            steps.step(closure)
        found = p.detach()
        return (rgrad.view_as_complex(found) if paired else found).tolist()

    for search in (None, "strong_wolfe"):
        assert run(search, False) == run(search, True)


def test_differentiable_steps() -> None:
    x = rgrad.tensor(VALUES[:2], dtype=rgrad.complex128, requires_grad=True)
    q = x.clone()
    steps = optim.Adam([q], differentiable=True, lr=0.1)
    q.grad = x * 2
    steps.step()
    assert steps.state[q]["exp_avg"].dtype == rgrad.complex128
    # Adam's first step has the same length for each part, whatever the gradient.
    (found,) = rgrad.autograd.grad(rgrad.view_as_real(q).sum(), x)
    np.testing.assert_allclose(found.numpy(), [1 + 1j, 1 + 1j], rtol=1e-6)


def test_states_are_saved_and_loaded() -> None:
    p = Parameter(rgrad.tensor(VALUES, dtype=rgrad.complex64))
    steps = optim.Adam([p])
    p.grad = gradient(1).to(rgrad.complex64)
    steps.step()
    saved = copy.deepcopy(steps.state_dict())
    twin = Parameter(p.detach().clone())
    loaded = optim.Adam([twin])
    loaded.load_state_dict(saved)
    for q, o in ((p, steps), (twin, loaded)):
        q.grad = gradient(2).to(rgrad.complex64)
        o.step()
    assert p.tolist() == twin.tolist()
    assert loaded.state[twin]["exp_avg_sq"].dtype == rgrad.complex64


@pytest.mark.parametrize("kind", [optim.Adafactor, optim.Muon])
def test_what_takes_real_parameters_only(kind: Any) -> None:
    p = Parameter(rgrad.tensor([VALUES], dtype=rgrad.complex64))
    steps = kind([p])
    p.grad = p.detach().clone()
    with pytest.raises(RuntimeError, match=f"{kind.__name__} does not support complex parameters"):
        steps.step()
    assert p.tolist() == rgrad.tensor([VALUES], dtype=rgrad.complex64).tolist()


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_fused_steps_take_real_parameters_only(kind: Any) -> None:
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
        kind([Parameter(rgrad.tensor(VALUES, dtype=rgrad.complex64))], lr=0.1, fused=True)
    kind([Parameter(rgrad.tensor([1.0]))], lr=0.1, fused=True)


def test_sparse_adam_names_complex_parameters() -> None:
    real, p = Parameter(rgrad.tensor([1.0])), Parameter(rgrad.tensor(VALUES, dtype=rgrad.complex64))
    with pytest.raises(
        ValueError, match=r"Complex params at indices \[\[0, 1\]\]: SparseAdam does not support complex"
    ):
        optim.SparseAdam([real, p])


def test_grad_scaler_refuses_complex_gradients() -> None:
    real, p = Parameter(rgrad.tensor([1.0])), Parameter(rgrad.tensor(VALUES, dtype=rgrad.complex64))
    steps, scaler = optim.SGD([real, p], lr=0.1), rgrad.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(rgrad.view_as_real(p).sum() + real.sum()).backward()
    with pytest.raises(NotImplementedError, match="_amp_foreach_non_finite_check_and_unscale_cpu.* 'ComplexFloat'"):
        scaler.step(steps)
    assert real.grad is not None
    assert real.grad.item() == 4


def test_schedulers() -> None:
    p = Parameter(rgrad.tensor([1 + 0j], dtype=rgrad.complex128))
    steps = optim.SGD([p], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(steps, 1)
    p.grad = rgrad.tensor([1j], dtype=rgrad.complex128)
    for _ in range(2):
        steps.step()
        schedule.step()
    assert p.tolist() == pytest.approx([1 - 1.1j])


def test_parameters() -> None:
    p = Parameter(rgrad.tensor(VALUES))
    assert p.requires_grad
    assert p.dtype == rgrad.complex64
    module = nn.Module()
    module.gain = p
    module.register_buffer("offset", rgrad.tensor([1.0]))
    for convert in (nn.Module.float, nn.Module.double, nn.Module.half):
        convert(module)
        assert module.gain is p
        assert p.dtype == rgrad.complex64
    with pytest.warns(UserWarning, match="Complex modules are a new feature under active development"):
        module.to(rgrad.complex128)
    assert module.gain.dtype == rgrad.complex128
    assert module.offset.dtype == rgrad.complex128
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        module.to(rgrad.int64)
    other = nn.Module()
    other.gain = Parameter(rgrad.zeros(3, dtype=rgrad.complex64))
    other.register_buffer("offset", rgrad.zeros(1, dtype=rgrad.complex64))
    other.load_state_dict(module.state_dict())
    assert other.gain.tolist() == rgrad.tensor(VALUES).tolist()


@pytest.mark.parametrize("average", ["ema", "swa"])
def test_averages_of_complex_parameters(average: str) -> None:
    module = nn.Module()
    module.gain = Parameter(rgrad.tensor([2 + 4j]))
    made = getattr(optim.swa_utils, f"get_{average}_multi_avg_fn")
    averaged = optim.swa_utils.AveragedModel(module, multi_avg_fn=made(0.5) if average == "ema" else made())
    averaged.update_parameters(module)
    with rgrad.no_grad():
        module.gain.mul_(0)
    averaged.update_parameters(module)
    assert averaged.module.gain.tolist() == [1 + 2j]


def test_initialisations_of_real_tensors_only() -> None:
    for fill in (nn.init.trunc_normal_, nn.init.orthogonal_):
        with pytest.raises(NotImplementedError):
            fill(rgrad.empty(3, 3, dtype=rgrad.complex64))
    filled = nn.init.constant_(rgrad.empty(2, dtype=rgrad.complex64), 1 + 2j)
    assert filled.tolist() == [1 + 2j, 1 + 2j]


def test_parametrizations_keep_the_dtype() -> None:
    class Turn(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 1j

    class Join(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return rgrad.complex(x, x * 2)

        def right_inverse(self, x: Tensor) -> Tensor:
            return x.real

    module = nn.Module()
    module.gain = Parameter(rgrad.tensor([1 + 2j, 3]))
    with pytest.raises(ValueError, match="may not change the dtype"):
        nn.utils.parametrize.register_parametrization(module, "gain", Join())
    nn.utils.parametrize.register_parametrization(module, "gain", Turn())
    assert module.gain.tolist() == [-2 + 1j, 3j]
    rgrad.view_as_real(module.gain).sum().backward()
    assert module.parametrizations.gain.original.grad.tolist() == [1 - 1j, 1 - 1j]
