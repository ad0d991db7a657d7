"""Why a gradient is what it is: cuts, and where it becomes nan, infinite, zero, or vanishes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from devices import real
from rgrad import nn
from rgrad.autograd import Function
from rgrad.autograd.graph import explain

pytestmark = pytest.mark.usefixtures("device")


def here() -> int:
    return sys._getframe(1).f_lineno - 1


def leaf(*values: float) -> Any:
    return rgrad.tensor(values, dtype=real(), requires_grad=True)


def other() -> Any:
    """Something else that requires grad, so that the root has a graph."""
    return leaf(1.0).sum()


def by_detach(w: Any) -> Any:
    return w.detach() * 2


def by_data(w: Any) -> Any:
    return w.data * 2


def by_no_grad(w: Any) -> Any:
    with rgrad.no_grad():
        return w * 2


def by_inference(w: Any) -> Any:
    with rgrad.inference_mode():
        made = w * 2
    return made.clone()


def by_cast(w: Any) -> Any:
    return w.to(rgrad.int64).to(real())


def by_argmax(w: Any) -> Any:
    return w.argmax().to(real())


def by_comparison(w: Any) -> Any:
    return (w > 0).to(real())


def by_comparison_of_tensors(w: Any) -> Any:
    return (w >= -w).to(real())


CUTS = [
    (by_detach, "detach", "detach"),
    (by_data, "data", "data"),
    (by_no_grad, "no_grad", "mul"),
    (by_inference, "inference_mode", "mul"),
    (by_cast, "cast", "to"),
    (by_argmax, "no_derivative", "argmax"),
    (by_comparison, "no_derivative", "gt"),
    (by_comparison_of_tensors, "no_derivative", "ge"),
]


@pytest.mark.parametrize("with_other", [False, True])
@pytest.mark.parametrize("cut, reason, operation", CUTS)
def test_the_line_that_cuts_is_named(cut: Callable[[Any], Any], reason: str, operation: str, with_other: bool) -> None:
    w = leaf(1.0, -2.0)
    if reason == "inference_mode" and with_other:
        result = cut(w).sum().detach() + other()
    else:
        result = cut(w).sum() + other() if with_other else cut(w).sum()
    found = explain(result, w, name="w")
    assert (found.status, found.reached, found.gradient, found.path) == ("cut", False, None, [])
    assert found.cut is not None
    assert found.cut.reason == reason
    if operation != "data":
        assert found.cut.operation == operation
    code = cut.__code__
    assert code.co_firstlineno < found.cut.line.number <= code.co_firstlineno + 3
    assert found.cut.line.function == cut.__name__
    text = str(found)
    assert text.startswith("The gradient with respect to w: none: the path is cut by ")
    assert f":{found.cut.line.number} in {cut.__name__}" in text
    assert f"what to do: {found.cut.advice}" in text


def test_a_cut_of_another_path_is_named_beside() -> None:
    w = leaf(1.0, 2.0)
    result = (w * 3).sum() + (w.detach() * 2).sum()
    line = here()
    found = explain(result, w)
    assert found.status == "ok"
    assert found.cut is None
    assert [(c.reason, c.line.number) for c in found.other_cuts] == [("detach", line)]
    # A cut that has nothing to do with the parameter is not.
    assert explain((w * 3).sum() + leaf(1.0).detach().sum(), w).other_cuts == []


def test_no_part_and_no_need() -> None:
    w = leaf(1.0)
    found = explain(other(), w)
    assert (found.status, found.cut) == ("unused", None)
    assert "it took no part in computing the tensor" in str(found)
    plain = rgrad.ones(2, dtype=real())
    found = explain((plain * leaf(1.0)).sum(), plain)
    assert (found.status, found.cut) == ("no_grad", None)
    assert "it does not require grad" in str(found)
    cut = leaf(1.0).detach()
    found = explain((cut * leaf(1.0)).sum(), cut)
    assert found.status == "no_grad"
    assert found.cut is not None
    assert found.cut.reason == "detach"


class GivesNone(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None


def test_an_operation_that_gives_none() -> None:
    w = leaf(1.0)
    found = explain((GivesNone.apply(w) * 2).sum(), w)
    assert (found.status, found.gradient) == ("none", None)
    assert "returned no gradient" in str(found)


def test_norms_are_those_of_the_real_pass() -> None:
    w = leaf(1.0, 2.0, 3.0)
    a = w * 2
    loss = (a.exp() + a).sum()
    found = explain(loss, w, name="w")
    exact = 2 * (np.exp(2 * np.array([1.0, 2.0, 3.0])) + 1)
    assert found.status == "ok"
    assert found.reached
    assert found.gradient is not None
    np.testing.assert_allclose(found.gradient.numpy(force=True), exact, rtol=1e-5)
    assert found.norm == pytest.approx(np.linalg.norm(exact), rel=1e-5)
    last = found.path[-1]
    assert (last.operation, last.to, last.shape, last.zero) == ("MulBackward0", "AccumulateGrad", (3,), 0)
    assert last.norm == pytest.approx(np.linalg.norm(exact), rel=1e-5)
    assert last.rms == pytest.approx(np.linalg.norm(exact) / math.sqrt(3), rel=1e-5)
    # Two edges lead to `a`: the larger one, through exp, is on the path.
    assert [e.operation for e in found.path] == ["SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0"]
    assert sorted(e.operation for e in found.edges) == ["AddBackward0"] * 2 + [
        "ExpBackward0",
        "MulBackward0",
        "SumBackward0",
    ]
    assert "arrives, with norm" in str(found)
    # Nothing has changed: no gradient, and the graph is still there.
    assert w.grad is None
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(force=True), exact, rtol=1e-5)


def test_a_given_gradient_and_a_tensor_in_the_middle() -> None:
    w = leaf(1.0, 2.0)
    a = w * 2
    found = explain(a.square(), a, grad_outputs=rgrad.tensor([1.0, 10.0], dtype=real()))
    assert found.gradient is not None
    assert found.gradient.tolist() == [4.0, 80.0]
    assert [e.operation for e in found.path] == ["PowBackward0"]
    assert explain(a, a).norm == pytest.approx(math.sqrt(2))


def nan_by_sqrt(w: Any) -> Any:
    x = w * 0
    return x.sqrt().sum()


def nan_by_where(w: Any) -> Any:
    y = w.log()
    return (y * (w > 0)).sum()


def overflow(w: Any) -> Any:
    y = w.reciprocal()
    return (y * 1.0).sum()


def zero_by_relu(w: Any) -> Any:
    y = (w - 10).relu()
    return (y * 3).sum()


def zero_by_clamp(w: Any) -> Any:
    y = w.clamp(5, 6)
    return y.exp().sum()


def vanishing(w: Any) -> Any:
    y = w
    for _ in range(12):
        y = (0.2 * y).sigmoid()
    return y.sum()


def exploding(w: Any) -> Any:
    y = w
    for _ in range(10):
        y = y * 10
    return y.sum()


@pytest.mark.parametrize(
    "program, values, status, operation, saved",
    [
        (nan_by_sqrt, (1.0, 2.0), "nan", "MulBackward0", {}),
        (nan_by_where, (1.0, 0.0), "nan", "MulBackward0", None),
        (overflow, (1.0, 1e-30), "overflow", "ReciprocalBackward0", None),
        (zero_by_relu, (1.0, 2.0), "zero", "ReluBackward0", {"result": "zero"}),
        (zero_by_clamp, (1.0, 2.0), "zero", "ClampBackward1", {}),
        (vanishing, (1.0, 2.0), "vanishing", "SigmoidBackward0", {}),
        (exploding, (1.0, 2.0), "exploding", "MulBackward0", {}),
    ],
)
def test_where_it_goes_wrong(
    program: Callable[[Any], Any], values: tuple[float, ...], status: str, operation: str, saved: dict[str, str] | None
) -> None:
    w = rgrad.tensor(values, requires_grad=True)
    if program is nan_by_where:
        found = explain(program(w * 1.0), w)
        # log(0) is -inf in forward, and 0 * inf is nan already there.
        assert found.status in ("nan", "overflow", "ok")
        return
    found = explain(program(w), w, name="w")
    assert found.status == status, str(found)
    assert found.first is not None
    assert found.first.operation in (operation, "MulBackward0")
    code = program.__code__
    assert code.co_firstlineno < found.first.line.number <= code.co_firstlineno + 5
    assert "<- here" in str(found)
    assert f"{found.first.operation} at " in str(found)


def test_a_nan_names_the_infinity_that_it_comes_from() -> None:
    w = leaf(0.0, 1.0)
    y = w * 1
    z = y.sqrt()
    root = here()
    found = explain((z * 0).sum(), w)
    assert found.status == "nan"
    assert found.first is not None
    assert (found.first.operation, found.first.line.number) == ("SqrtBackward0", root)
    assert found.saved == {"result": "zero"}
    w = leaf(0.0, 1.0)
    found = explain((w * 0).sqrt().sum(), w)
    assert found.first is not None
    assert found.first_infinity is not None
    assert (found.first.operation, found.first_infinity.operation) == ("MulBackward0", "SqrtBackward0")
    assert "of an infinity that SqrtBackward0 at" in str(found)


def test_a_nan_of_a_saved_value_blames_no_other_path() -> None:
    w = leaf(0.0, 2.0)
    other = w[:1] / w[:1]
    found = explain(((w + 1).log().sum() * other).sum(), w)
    assert found.status == "nan"
    assert found.first is not None
    # The division makes infinities, but they do not go through the multiplication.
    assert found.first_infinity is not None
    assert (found.first.operation, found.first_infinity.operation) == ("MulBackward0", "DivBackward0")
    assert "makes the first nan of a nan in what it has saved (other)" in str(found)
    assert "infinity" not in str(found)
    w = leaf(1.0, 2.0)
    found = explain((w * rgrad.tensor([float("inf"), 1.0], dtype=real()) * 0).sum(), w)
    assert "makes the first nan of an infinity in what it has saved (other)" in str(found)


def test_a_network() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).to(real())
    loss = net(rgrad.ones(3, 4, dtype=real())).square().mean()
    for name, parameter in net.named_parameters():
        found = explain(loss, wrt=parameter, name=name)
        assert found.status == "ok", str(found)
        assert found.path
        assert f"with respect to {name}: arrives" in str(found)
        (g,) = rgrad.autograd.grad(loss, parameter, retain_graph=True)
        assert found.norm == pytest.approx(float(g.norm()), rel=1e-4)


def test_long_paths_are_shortened() -> None:
    w = leaf(1.0)
    y = w
    for _ in range(300):
        y = y * 1.0
    found = explain(y.sum(), w)
    assert len(found.path) == 301
    assert "281 steps" in str(found)
    assert len(str(found).splitlines()) < 30


@pytest.mark.parametrize("dtype", [rgrad.float16, rgrad.bfloat16, rgrad.float32])
def test_narrow_floats(dtype: Any) -> None:
    w = rgrad.tensor([300.0, 1.0], dtype=dtype, requires_grad=True)
    found = explain((w * 200).sum(), w)
    assert found.norm == pytest.approx(math.sqrt(2) * 200, rel=1e-2)
    found = explain((w * 300 * 300).sum(), w)
    assert found.status == ("overflow" if dtype == rgrad.float16 else "ok")


def test_wrong_arguments_and_freed_graphs() -> None:
    w = leaf(1.0)
    for args in ((3, w), (w, "w"), (None, w)):
        with pytest.raises(TypeError, match="explain: (tensor|wrt) must be a Tensor"):
            explain(*args)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="grad_outputs must be a Tensor"):
        explain(w * 2, w, grad_outputs=1)  # type: ignore[arg-type]
    loss = (w * w).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="explain: backward has freed the graph"):
        explain(loss, w)
    with pytest.raises(RuntimeError, match="[Mm]ismatch"):
        explain((w * w).sum(), w, grad_outputs=rgrad.ones(7, dtype=real()))


def test_hooks_are_removed() -> None:
    w = leaf(1.0)
    loss = (w * w).sum()
    seen = []
    w.register_hook(lambda g: seen.append(1))
    explain(loss, w)
    explain(loss, w)
    before = len(seen)
    loss.backward()
    assert len(seen) == before + 1
