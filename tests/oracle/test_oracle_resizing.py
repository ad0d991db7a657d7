"""Changes of size and grid_sample beside PyTorch: random configurations, gradients of both orders, bytes, errors."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402

pytestmark = pytest.mark.oracle

TOLERANCE = {"float32": 2e-5, "float64": 1e-9, "float16": 4e-3, "bfloat16": 3e-2}
MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area", "lanczos"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}


def close(ours: Any, theirs: Any, tol: float, strides: bool = True) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    if strides:
        assert visible_strides(ours) == visible_strides(theirs)
    a, b = (t.detach().to(T.float64).numpy() for t, T in ((ours, rgrad), (theirs, torch)))
    np.testing.assert_allclose(np.array(a), b, rtol=tol, atol=tol, equal_nan=True)


def attributes(node: Any) -> dict[str, Any]:
    found = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return {k: tuple(v) if isinstance(v, (tuple, list)) else v for k, v in found.items() if not hasattr(v, "shape")}


def image(T: Any, x: np.ndarray, dtype: str, turned: bool) -> Any:
    t = T.tensor(x, dtype=getattr(T, dtype))
    if turned:
        t = t.transpose(-1, -2).contiguous().transpose(-1, -2)
    return t.requires_grad_()


def resizing(rng: random.Random) -> tuple[list[int], dict[str, Any]]:
    n = rng.choice((1, 2, 2, 3))
    mode = rng.choice(MODES[n])
    antialias = mode == "lanczos" or (mode in ("bilinear", "bicubic") and rng.random() < 0.4)
    # torch's antialiasing reads wrong elements of images of one column.
    least = 2 if antialias else 1
    shape = [rng.randint(1, 2), rng.randint(1, 3), *(rng.randint(least, 7) for _ in range(n))]
    options: dict[str, Any] = {"mode": mode}
    if antialias:
        options["antialias"] = True
    if rng.random() < 0.5:
        options["size"] = rng.choice(([rng.randint(least, 12) for _ in range(n)], rng.randint(least, 9)))
    else:
        each = [round(rng.uniform(0.7 if antialias else 0.3, 3), 2) for _ in range(n)]
        options["scale_factor"] = rng.choice((each, rng.choice((2, 1.5, 2.3, 1, 0.5 if not antialias else 2))))
        if rng.random() < 0.4:
            options["recompute_scale_factor"] = rng.choice((True, False))
    if mode in ("linear", "bilinear", "trilinear", "bicubic") and rng.random() < 0.6:
        options["align_corners"] = rng.choice((True, False))
    return shape, options


@pytest.mark.parametrize("seed", range(500))
def test_random_changes_of_size(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    shape, options = resizing(rng)
    dtype = "float64" if options.get("antialias") else rng.choice(tuple(TOLERANCE))
    x, turned = numbers.standard_normal(shape), len(shape) > 3 and rng.random() < 0.3
    a, b = (image(T, x, dtype, turned) for T in (rgrad, torch))
    mine, theirs = (
        attempt(lambda T=T, t=t: T.nn.functional.interpolate(t, **options)) for T, t in ((rgrad, a), (torch, b))
    )
    assert (mine.error, mine.message.partition("\n")[0]) == (theirs.error, theirs.message.partition("\n")[0]), options
    if theirs.error is not None:
        return
    y, z, tol = mine.value, theirs.value, TOLERANCE[dtype]
    close(y, z, tol)
    assert y.grad_fn.name() == z.grad_fn.name()
    if z.numel() == 0:
        return  # torch's gradient of an empty mean fails
    if options["mode"] != "area":
        assert attributes(y.grad_fn) == attributes(z.grad_fn)
    if "scale_factor" in options and not options.get("recompute_scale_factor"):
        kept = any(a == b for a, b in zip(shape[2:], z.shape[2:], strict=True))
        if options["mode"] == "nearest" or (options.get("antialias") and kept):
            return  # torch's gradient is not the adjoint of its result there
    g, h = numbers.standard_normal(tuple(z.shape)), numbers.standard_normal(shape)
    found = []
    for T, out, leaf in ((rgrad, y, a), (torch, z, b)):
        start = T.tensor(g, dtype=out.dtype, requires_grad=True)
        (first,) = T.autograd.grad(out, leaf, start, create_graph=True)
        (second,) = T.autograd.grad(first, start, T.tensor(h, dtype=out.dtype))
        found.append((first, second))
    for ours, wanted in zip(*found, strict=True):
        close(ours, wanted, 8 * tol, strides=options["mode"] != "area")


@pytest.mark.parametrize("seed", range(60))
def test_bytes(seed: int) -> None:
    """Images of uint8: nearest elements, and weighted sums that are rounded after each axis."""
    rng = random.Random(seed)
    array = np.random.default_rng(seed).integers(0, 256, (2, 3, rng.randint(2, 9), rng.randint(2, 9)))
    mode = rng.choice(("nearest", "nearest-exact", "bilinear", "bicubic"))
    options: dict[str, Any] = {"mode": mode, "size": (rng.randint(2, 12), rng.randint(2, 12))}
    if mode in ("bilinear", "bicubic"):
        options |= {"antialias": rng.random() < 0.5, "align_corners": rng.random() < 0.5}
    a, b = (T.nn.functional.interpolate(T.tensor(array).to(T.uint8), **options) for T in (rgrad, torch))
    # A weight of 15 bits is now and then another one.
    apart = np.abs(np.array(a.tolist()) - np.array(b.tolist()))
    assert apart.max(initial=0) <= 1
    assert apart.mean() < 0.01


@pytest.mark.parametrize("seed", range(240))
def test_random_grids(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    n = rng.choice((2, 2, 3))
    shape = [rng.randint(1, 2), rng.randint(1, 3), *(rng.randint(1, 7) for _ in range(n))]
    mode = rng.choice(("bilinear", "nearest", "bicubic") if n == 2 else ("bilinear", "nearest"))
    padding, corners = rng.choice(("zeros", "border", "reflection")), rng.random() < 0.5
    dtype = rng.choice(("float32", "float64"))
    x = numbers.standard_normal(shape)
    grid = numbers.uniform(-1.7, 1.7, (shape[0], *(rng.randint(1, 4) for _ in range(n)), n))
    found = []
    for T in (rgrad, torch):
        leaves = [T.tensor(v, dtype=getattr(T, dtype), requires_grad=True) for v in (x, grid)]
        out = T.nn.functional.grid_sample(*leaves, mode=mode, padding_mode=padding, align_corners=corners)
        g = T.tensor(np.random.default_rng(1).standard_normal(tuple(out.shape)), dtype=out.dtype)
        plain = T.autograd.grad(out, leaves, g, retain_graph=True)
        recorded = T.autograd.grad(out, leaves, g, create_graph=T is rgrad, retain_graph=True)
        found.append((out, *plain, *recorded))
        names = {f"GridSampler{n}DBackward0"}
        assert {out.grad_fn.name()} == names
    for ours, wanted in zip(*found, strict=True):
        close(ours, wanted, 8 * TOLERANCE[dtype])
    assert attributes(found[0][0].grad_fn) == attributes(found[1][0].grad_fn)


def test_special_places_of_grids() -> None:
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    places = np.array([[[[np.nan, 0.0], [np.inf, 0.0], [0.0, -np.inf], [1e30, 0.0], [-1.0, 1.0]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border"):
            a, b = (
                T.nn.functional.grid_sample(T.tensor(x), T.tensor(places), mode, padding, align_corners=False)
                for T in (rgrad, torch)
            )
            np.testing.assert_allclose(a.numpy(), b.numpy(), equal_nan=True)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "neither": lambda F, x: F.interpolate(x),
    "both": lambda F, x: F.interpolate(x, size=3, scale_factor=2),
    "rank 2": lambda F, x: F.interpolate(x[0, 0], size=3),
    "sizes": lambda F, x: F.interpolate(x, size=(3, 3, 3)),
    "factors": lambda F, x: F.interpolate(x, scale_factor=(3, 3, 3)),
    "mode": lambda F, x: F.interpolate(x, size=3, mode="foo"),
    "linear": lambda F, x: F.interpolate(x, size=3, mode="linear"),
    "bilinear": lambda F, x: F.interpolate(x[0], size=3, mode="bilinear"),
    "trilinear": lambda F, x: F.interpolate(x, size=3, mode="trilinear"),
    "bicubic": lambda F, x: F.interpolate(x[0], size=3, mode="bicubic"),
    "corners": lambda F, x: F.interpolate(x, size=3, align_corners=True),
    "antialias": lambda F, x: F.interpolate(x, size=3, antialias=True),
    "recompute": lambda F, x: F.interpolate(x, size=3, recompute_scale_factor=True),
    "size 0": lambda F, x: F.interpolate(x, size=0),
    "size -1": lambda F, x: F.interpolate(x, size=-1),
    "factor 0.1": lambda F, x: F.interpolate(x, scale_factor=0.1),
    "factor -1": lambda F, x: F.interpolate(x, scale_factor=-1.0),
    "no channels": lambda F, x: F.interpolate(x[:, :0], size=3),
    "no rows": lambda F, x: F.interpolate(x[:, :, :0], size=3),
    "sequence": lambda F, x: F.interpolate(x[0], size=0),
    "volume": lambda F, x: F.interpolate(x[None], size=0),
    "int64": lambda F, x: F.interpolate(x.long(), size=3, mode="bilinear"),
    "int32": lambda F, x: F.interpolate(x[0].int(), size=3),
    "grid batch": lambda F, x: F.grid_sample(x, x[[0, 0], :1, :2, :2].repeat(1, 1, 1, 1), align_corners=False),
    "grid rank": lambda F, x: F.grid_sample(x[0], x[:, :, :2, :2], align_corners=False),
    "grid size": lambda F, x: F.grid_sample(x, x[:, :, :2, :3], align_corners=False),
    "grid mode": lambda F, x: F.grid_sample(x, x[:, :, :2, :2], mode="foo"),
    "grid padding": lambda F, x: F.grid_sample(x, x[:, :, :2, :2], padding_mode="foo"),
    "grid cubic": lambda F, x: F.grid_sample(x[None], x[None, :, :, :2, :3], mode="bicubic", align_corners=False),
    "grid empty": lambda F, x: F.grid_sample(x[:, :, :0], x[:, :, :2, :2], align_corners=False),
    "grid dtype": lambda F, x: F.grid_sample(x.double(), x[:, :, :2, :2], align_corners=False),
    "grid int": lambda F, x: F.grid_sample(x.long(), x.long()[:, :, :2, :2], align_corners=False),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors(what: str) -> None:
    mine, theirs = (attempt(lambda T=T: ERRORS[what](T.nn.functional, T.ones(1, 2, 6, 6))) for T in (rgrad, torch))
    assert theirs.error is not None
    assert mine.error is theirs.error
    a, b = (m.message.partition("\n")[0] for m in (mine, theirs))
    assert a.startswith(b)


def test_old_names_warn() -> None:
    for T in (rgrad, torch):
        F, x = T.nn.functional, T.ones(1, 1, 2, 2)
        for call, shape in (
            (lambda F=F, x=x: F.upsample(x, 3), (1, 1, 3, 3)),
            (lambda F=F, x=x: F.upsample_nearest(x, scale_factor=2), (1, 1, 4, 4)),
            (lambda F=F, x=x: F.upsample_bilinear(x, 3), (1, 1, 3, 3)),
        ):
            with pytest.warns(UserWarning, match="deprecated. Use `nn.functional.interpolate` instead"):
                assert tuple(call().shape) == shape
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rgrad.nn.functional.interpolate(rgrad.ones(1, 1, 2), 3).shape == (1, 1, 3)
