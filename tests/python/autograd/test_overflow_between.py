"""Results and derivatives that are normal numbers, of functions whose intermediate values would overflow or vanish."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F

Function = Callable[..., rgrad.Tensor]
KINDS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}


def kind(dtype: str) -> rgrad.dtype:
    found: rgrad.dtype = getattr(rgrad, dtype)
    return found


def slopes(f: Function, *operands: list[float], dtype: str) -> list[np.ndarray]:
    """The result of `f`, and the gradients for the cotangents 1, 2, 3, ..."""
    xs = [rgrad.tensor(x, dtype=kind(dtype), requires_grad=True) for x in operands]
    y = f(*xs)
    weights = rgrad.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)
    found = rgrad.autograd.grad(y, xs, weights)
    return [v.detach().double().numpy() for v in (y, *found)]


def close(got: np.ndarray, want: object, dtype: str, scale: float = 1.0) -> bool:
    return np.allclose(got, np.array(want), rtol=KINDS[dtype] * scale, atol=0)


LARGE = {"float16": [300.0, 6e4], "bfloat16": [3e19, 1e38], "float32": [3e19, 1e38], "float64": [1e200, 1e308]}
SMALL = {"float16": [1e-3], "bfloat16": [1e-22, 1e-36], "float32": [1e-22, 1e-36], "float64": [1e-200, 1e-306]}


@pytest.mark.parametrize("dtype", KINDS)
def test_atan2_has_slopes_of_numbers_whose_squares_are_no_numbers(dtype: str) -> None:
    for v in LARGE[dtype] + SMALL[dtype]:
        v = float(rgrad.tensor(v, dtype=kind(dtype)))
        y, a, b = slopes(rgrad.atan2, [v, v, 0.0, 0.0], [v, -v, v, -v], dtype=dtype)
        want_a, want_b = np.array([0.5, -1.0, 3.0, -4.0]) / v, np.array([-0.5, -1.0, 0.0, 0.0]) / v
        normal = np.finfo(np.float32).tiny if dtype == "bfloat16" else np.finfo(dtype).tiny
        if 0.5 / v >= normal:
            assert close(a, want_a, dtype), v
            assert close(b, want_b, dtype), v
        assert all(np.isfinite(v).all() for v in (y, a, b))


@pytest.mark.parametrize("dtype", KINDS)
def test_atan2_agrees_with_its_definition_in_every_octant(dtype: str) -> None:
    angles = np.linspace(0.1, 6.2, 31)
    a, b = (np.array([float(rgrad.tensor(v, dtype=kind(dtype))) for v in c]) for c in (np.sin(angles), np.cos(angles)))
    _, da, db = slopes(rgrad.atan2, a.tolist(), b.tolist(), dtype=dtype)
    weights = np.arange(1, 32)
    assert close(da, weights * b / (a * a + b * b), dtype, 5)
    assert close(db, -weights * a / (a * a + b * b), dtype, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_atan2_agree_with_differences(dtype: str) -> None:
    a = rgrad.tensor([0.3, -2.0, 1.0, -0.2], dtype=rgrad.float64, requires_grad=True)
    b = rgrad.tensor([1.0, 0.5, -3.0, -0.1], dtype=rgrad.float64, requires_grad=True)
    assert rgrad.autograd.gradgradcheck(rgrad.atan2, (a, b))


@pytest.mark.parametrize("dtype", KINDS)
def test_hypot_has_slopes_of_numbers_whose_squares_are_no_numbers(dtype: str) -> None:
    for v in [LARGE[dtype][0], *SMALL[dtype]]:
        y, a, b = slopes(rgrad.hypot, [v, v], [v, 0.0], dtype=dtype)
        assert close(y / float(rgrad.tensor(v, dtype=kind(dtype))), [2**0.5, 1], dtype)
        assert close(a, [0.5**0.5, 2], dtype)
        assert close(b, [0.5**0.5, 0], dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rsqrt_of_halves_has_slopes_as_long_as_they_are_normal(dtype: str) -> None:
    for v in (0.01, 300.0, 1000.0):
        v = float(rgrad.tensor(v, dtype=kind(dtype)))
        y, g = slopes(rgrad.rsqrt, [v], dtype=dtype)
        assert close(y, [v**-0.5], dtype)
        assert close(g, [-0.5 * v**-1.5], dtype, 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_normalize_of_halves_divides_by_norms_that_are_no_halves(dtype: str) -> None:
    for v in [*LARGE[dtype], 1e-3]:
        v = float(rgrad.tensor(v, dtype=kind(dtype)))
        y, g = slopes(lambda x: F.normalize(x, dim=0), [v, v, -v], dtype=dtype)
        unit = np.array([1, 1, -1]) / 3**0.5
        weights = np.arange(1.0, 4.0)
        want = (weights - unit * (unit @ weights)) / (v * 3**0.5)
        assert close(y, unit, dtype, 2), v
        if abs(want).min() > (6e-5 if dtype == "float16" else 1e-37):
            assert close(g, want, dtype, 4), v
    zeros, _ = slopes(lambda x: F.normalize(x, dim=0), [0.0, 0.0], dtype=dtype)
    assert (zeros == 0).all()
    out = rgrad.empty(2, dtype=kind(dtype))
    F.normalize(rgrad.tensor([3.0, 4.0], dtype=kind(dtype)), dim=0, out=out)
    assert close(out.double().numpy(), [0.6, 0.8], dtype)


def test_the_norm_of_small_halves_has_a_slope() -> None:
    y, g = slopes(lambda x: rgrad.linalg.vector_norm(x), [1e-6, 1e-6, -1e-6], dtype="float16")
    assert np.allclose(abs(g), 3**-0.5, rtol=0.05)
    assert np.isfinite(y)


SHAPE = 40
NORMS: dict[str, Function] = {
    "layer": lambda x, w, b: F.layer_norm(x.T, (SHAPE,), w, b).T,
    "layer without": lambda x, w, b: F.layer_norm(x.T, (SHAPE,)).T * w[:, None] + b[:, None],
    "group": lambda x, w, b: F.group_norm(x.T[:, :, None], 1, w, b)[..., 0].T,
    "group of images": lambda x, w, b: (
        F.group_norm(x.T.reshape(-1, 2, 20), 1).reshape(-1, SHAPE).T * w[:, None] + b[:, None]
    ),
    "batch": lambda x, w, b: F.batch_norm(x, None, None, training=True) * w[:, None] + b[:, None],
    "batch of images": lambda x, w, b: (
        F.batch_norm(x.reshape(2, 20, -1).transpose(1, 2), None, None, training=True).transpose(1, 2).reshape(SHAPE, -1)
        * w[:, None]
        + b[:, None]
    ),
    "instance": lambda x, w, b: F.instance_norm(x.T[None])[0].T * w[:, None] + b[:, None],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", NORMS)
def test_norms_of_huge_numbers_are_those_of_smaller_ones(norm: str, dtype: str) -> None:
    """Beside a column of ordinary numbers, whose bits do not change: each column of `x` is normalised."""
    random = np.random.default_rng(3)
    base = random.standard_normal((SHAPE, 3))
    w, b, g = random.standard_normal(SHAPE), random.standard_normal(SHAPE), random.standard_normal((SHAPE, 3))

    def run(scale: float, kept: float = 1.0) -> list[np.ndarray]:
        made = [rgrad.tensor(v, dtype=kind(dtype), requires_grad=True) for v in (base * [kept, scale, scale], w, b)]
        y = NORMS[norm](*made)
        y.backward(rgrad.tensor(g, dtype=y.dtype))
        return [v.detach().double().numpy() for v in (y, *(m.grad for m in made if m.grad is not None))]

    tame = run(2.0**10)
    for scale in [2.0**100, 2.0**120] if dtype == "float32" else [2.0**100, 2.0**600]:
        found = run(scale)
        # Beside such numbers eps is nothing, as nearly beside a million.
        assert np.allclose(found[0][:, 1:], tame[0][:, 1:], rtol=1e-5, atol=1e-5), scale
        gradient, want = found[1][:, 1:] * scale, tame[1][:, 1:] * 2.0**10
        assert np.allclose(gradient, want, rtol=1e-3, atol=1e-4), scale
        assert np.allclose(found[2], tame[2], rtol=1e-4, atol=1e-4)
        assert np.allclose(found[3], tame[3], rtol=1e-6)
        assert (found[0][:, 0] == tame[0][:, 0]).all()
        assert (found[1][:, 0] == tame[1][:, 0]).all()


@pytest.mark.parametrize("norm", NORMS)
def test_norms_of_rows_far_from_0_keep_the_digits_of_their_spread(norm: str) -> None:
    base = np.random.default_rng(4).integers(-9, 9, (SHAPE, 3)).astype(float)
    ones, zeros = [1.0] * SHAPE, [0.0] * SHAPE
    for mean in (1e5, 1e6, 8e6):
        far = slopes(NORMS[norm], (base + mean).tolist(), ones, zeros, dtype="float32")
        near = slopes(NORMS[norm], base.tolist(), ones, zeros, dtype="float64")
        assert np.allclose(far[0], near[0], rtol=1e-5, atol=1e-5), mean
        assert np.allclose(far[1], near[1], rtol=1e-3, atol=1e-3), mean


def test_rows_of_infinities_and_constant_rows_stay_what_they_were() -> None:
    x = rgrad.tensor([[1.0, float("inf"), 2.0], [1.0, float("nan"), 2.0], [3e38, 3e38, 3e38], [5.0, 5.0, 5.0]])
    y = F.layer_norm(x, (3,))
    assert y[:2].isnan().all()
    assert (y[2:] == 0).all()
