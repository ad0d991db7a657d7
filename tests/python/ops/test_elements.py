"""Functions of elements, statistics and writes at positions alone: numeric derivatives, tangents, batches, devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad

INDEX = np.random.default_rng(0).integers(0, 3, size=(4, 4))
ROWS = [0, 0, 2, 1]
REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]

DERIVATIVES: dict[str, Callable[[Any, Any], Any]] = {
    **{
        f"scatter_reduce {reduce} {include}": lambda a, s, reduce=reduce, include=include: a.scatter_reduce(
            0, rgrad.tensor(INDEX), s, reduce, include_self=include
        )
        for reduce in REDUCTIONS
        for include in (True, False)
    },
    **{
        f"index_reduce {reduce} {include}": lambda a, s, reduce=reduce, include=include: a.index_reduce(
            0, rgrad.tensor(ROWS), s, reduce, include_self=include
        )
        for reduce in REDUCTIONS[1:]
        for include in (True, False)
    },
    "put": lambda a, s: a.put(rgrad.tensor([1, 5]), s[0, :2]),
    "as_strided_scatter": lambda a, s: a.as_strided_scatter(s[:2, :2], (2, 2), (1, 2), 1),
    "cov": lambda a, s: (a @ s).cov(),
    "corrcoef": lambda a, s: (a @ s).corrcoef(),
    "frexp": lambda a, s: a.frexp()[0] * s[:3],
    "cross": lambda a, s: a.cross(s[:3], 0),
    "float_power": lambda a, s: (a * a).float_power(s[:3]),
    "fill": lambda a, s: rgrad.fill(a, s[0, 0]),
    "put_": lambda a, s: (a * 1).put_(rgrad.tensor([1, 5]), s[0, :2], accumulate=True),
}


def operands() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rgrad.tensor(rng.normal(size=(3, 4)) + 0.1), rgrad.tensor(rng.normal(size=(4, 4)))


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    a, s = (x.requires_grad_() for x in operands())
    assert rgrad.autograd.gradcheck(DERIVATIVES[name], (a, s), check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(DERIVATIVES[name], (a, s))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_zeros_and_ties(reduce: str) -> None:
    """Products without one factor need no division by zero, and the gradient of a tie is shared."""
    a = rgrad.tensor([0.0, 2.0, 3.0], dtype=rgrad.float64, requires_grad=True)
    s = rgrad.tensor([0.0, 5.0, 2.0, 2.0], dtype=rgrad.float64, requires_grad=True)
    made = a.scatter_reduce(0, rgrad.tensor([0, 0, 1, 1]), s, reduce)
    made.sum().backward()
    wanted = {
        "sum": ([1, 1, 1], [1, 1, 1, 1]),
        "prod": ([0, 4, 1], [0, 0, 4, 4]),
        "mean": ([1 / 3, 1 / 3, 1], [1 / 3, 1 / 3, 1 / 3, 1 / 3]),
        "amax": ([0, 1 / 3, 1], [0, 1, 1 / 3, 1 / 3]),
        "amin": ([1 / 2, 1 / 3, 1], [1 / 2, 0, 1 / 3, 1 / 3]),
    }[reduce]
    np.testing.assert_allclose(a.grad.numpy(), wanted[0])
    np.testing.assert_allclose(s.grad.numpy(), wanted[1])


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_batches(reduce: str) -> None:
    rng = np.random.default_rng(2)
    a, s = rgrad.tensor(rng.normal(size=(2, 3, 4))), rgrad.tensor(rng.normal(size=(2, 4, 4)))
    index = rgrad.tensor(INDEX)
    made = rgrad.func.vmap(lambda x, y: x.scatter_reduce(0, index, y, reduce))(a, s)
    for i in range(2):
        np.testing.assert_allclose(made[i].numpy(), a[i].scatter_reduce(0, index, s[i], reduce).numpy())
    counts = rgrad.func.vmap(rgrad.gcd)(rgrad.tensor([[4, 6], [9, 10]]), rgrad.tensor([[6, 4], [6, 4]]))
    assert counts.tolist() == [[2, 2], [3, 2]]


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_reductions_on_devices(reduce: str, device: str) -> None:
    with rgrad.device("cpu"):
        a, s = (x.float() for x in operands())
    index = rgrad.tensor(INDEX, device="cpu")
    wanted = a.cpu().scatter_reduce(0, index.cpu(), s.cpu(), reduce).numpy()
    got = a.to(device).scatter_reduce(0, index.to(device), s.to(device), reduce)
    assert got.device == rgrad.ones(1, device=device).device
    np.testing.assert_allclose(got.cpu().numpy(), wanted, rtol=1e-6)


def test_elements_on_devices(device: str) -> None:
    x = rgrad.tensor([3.0, -0.0, -1.5], device=device)
    assert rgrad.signbit(x).tolist() == [False, True, True]
    assert rgrad.frexp(x).mantissa.tolist() == [0.75, 0.0, -0.75]
    assert rgrad.heaviside(x, rgrad.tensor([0.5], device=device)).tolist() == [1.0, 0.5, 0.0]
    assert rgrad.histc(x, 3, -2, 4).tolist() == [1.0, 1.0, 1.0]
    assert rgrad.histogram(x, 3, range=(-2.0, 4.0)).hist.tolist() == [1.0, 1.0, 1.0]
    assert rgrad.gcd(rgrad.tensor([12], device=device), rgrad.tensor([18], device=device)).tolist() == [6]
    assert x.clone().put_(rgrad.tensor([0], device=device), rgrad.tensor([7.0], device=device)).tolist()[0] == 7.0


def test_a_write_that_is_refused_changes_nothing() -> None:
    x = rgrad.arange(4.0)
    for call in (
        lambda: x.put_(rgrad.tensor([9]), rgrad.ones(1)),
        lambda: x.scatter_reduce_(0, rgrad.tensor([0, 9]), rgrad.ones(2), "amax"),
        lambda: x.index_reduce_(0, rgrad.tensor([9]), rgrad.ones(1), "prod"),
        lambda: x.heaviside_(rgrad.ones(3)),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            call()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_random_numbers_follow_their_distributions() -> None:
    rgrad.manual_seed(0)
    x = rgrad.empty(20000, dtype=rgrad.float64)
    assert abs(x.cauchy_(2.0, 0.5).median().item() - 2.0) < 0.05
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.02
    assert abs(x.geometric_(0.25).mean().item() - 4.0) < 0.2
    assert x.min().item() == 1.0
    assert abs(rgrad.poisson(x.fill_(3.0)).mean().item() - 3.0) < 0.1
    assert abs(rgrad.binomial(x.fill_(10.0), x.clone().fill_(0.3)).mean().item() - 3.0) < 0.1
    rgrad.manual_seed(7)
    first = rgrad.poisson(x[:50])
    rgrad.manual_seed(7)
    assert first.tolist() == rgrad.poisson(x[:50]).tolist()


def test_copies_do_not_share_memory() -> None:
    x = rgrad.zeros(2, 3)
    for made in (rgrad.t_copy(x), x.narrow_copy(0, 0, 1), rgrad.view_copy(x, (3, 2)), *rgrad.split_copy(x, 1)):
        made.fill_(1)
    assert x.tolist() == [[0.0] * 3] * 2


def test_forms_in_place_on_constants_have_gradients() -> None:
    """What the derivative reads of the target is what it was before the write."""
    s = rgrad.tensor([[2.0, 3.0], [0.5, 4.0]], dtype=rgrad.float64, requires_grad=True)
    index = rgrad.tensor([[0, 1], [1, 1]])
    start = rgrad.tensor([[1.5, 2.5], [3.5, 0.5]], dtype=rgrad.float64)
    for out, into in (
        (lambda s: start.scatter_reduce(0, index, s, "prod"), lambda x, s: x.scatter_reduce_(0, index, s, "prod")),
        (lambda s: start.float_power(s), lambda x, s: x.float_power_(s)),
        (lambda s: start.index_reduce(0, index[0], s, "prod"), lambda x, s: x.index_reduce_(0, index[0], s, "prod")),
    ):
        wanted = rgrad.autograd.grad(out(s).sum(), s)[0]
        got = rgrad.autograd.grad(into(start.clone(), s).sum(), s)[0]
        rgrad.testing.assert_close(got, wanted)


def test_the_next_numbers_of_16_bits() -> None:
    for dtype, step in ((rgrad.float16, 2.0**-10), (rgrad.bfloat16, 2.0**-7)):
        x = rgrad.tensor([1.0, 1.0, 2.0, 0.0], dtype=dtype, requires_grad=True)
        made = rgrad.nextafter(x, rgrad.tensor([2.0, 1.0, 3.0, -1.0], dtype=dtype))
        assert made[:3].tolist() == [1.0 + step, 1.0, 2.0 + 2 * step]
        assert made[3].item() < 0
        made.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_powers_of_two_keep_16_bits() -> None:
    made = rgrad.ldexp(rgrad.tensor([2.0**-14], dtype=rgrad.float16), rgrad.tensor([20]))
    assert made.dtype == rgrad.float16
    assert made.item() == 64.0


def test_numbers_are_not_cut_to_the_integers_beside_them() -> None:
    x = rgrad.tensor([1, 2], dtype=rgrad.uint8)
    assert rgrad.special.chebyshev_polynomial_w(x, -1).tolist() == [0.0, 0.0]
    assert rgrad.special.xlog1py(x, 0.5).tolist() == pytest.approx([np.log(1.5), 2 * np.log(1.5)])


def test_coordinates_of_positions_of_small_integers() -> None:
    """They are int64, as the steps between rows may be more than the dtype of the positions holds."""
    made = rgrad.unravel_index(rgrad.tensor([5, 100], dtype=rgrad.int8), (3, 4, 300))
    assert [m.tolist() for m in made] == [[0, 0], [0, 0], [5, 100]]
    assert {m.dtype for m in made} == {rgrad.int64}
