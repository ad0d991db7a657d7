"""Pooling and windows as columns beside PyTorch: random configurations, gradients of both orders, modules, errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402

pytestmark = pytest.mark.oracle

TOLERANCE = {"float32": 1e-5, "float64": 1e-10, "float16": 2e-3, "bfloat16": 2e-2}
KINDS = ("max", "max", "avg", "avg", "adaptive_avg", "adaptive_max", "lp", "columns", "fractional", "unpool")


def close(ours: Any, theirs: Any, tol: float, strides: bool = True) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    if strides:
        assert visible_strides(ours) == visible_strides(theirs)
    a, b = (t.detach().to(T.float64).numpy() for t, T in ((ours, rgrad), (theirs, torch)))
    np.testing.assert_allclose(np.array(a), b, rtol=tol, atol=tol, equal_nan=True)


class Pooling:
    """A random call."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.kind = rng.choice(KINDS)
        n = self.n = 2 if self.kind == "columns" else rng.choice((2, 3) if self.kind == "fractional" else (1, 2, 3))
        self.dtype = rng.choice(("float32", "float32", "float64", "float16", "bfloat16"))
        spatial = [rng.randint(1, 9) for _ in range(n)]
        self.shape = [rng.randint(1, 3) for _ in range(rng.choice((1, 2, 2)))] + spatial
        numbers = np.random.default_rng(seed)
        x = numbers.standard_normal(self.shape)
        if rng.random() < 0.4:
            x = np.round(x)  # many equal elements
        if self.kind == "lp":
            x = np.abs(x) + 0.1
        elif self.kind != "unpool":
            for special in (np.nan, -np.inf, np.inf, -0.0):
                if rng.random() < 0.1:
                    x.flat[rng.randrange(x.size)] = special
        self.x = x
        self.turned = n > 1 and rng.random() < 0.3
        self.kernel = [rng.randint(1, 4) for _ in range(n)]
        self.stride = rng.choice((None, [rng.randint(1, 3) for _ in range(n)]))
        self.padding = [rng.randint(0, k // 2) for k in self.kernel]
        self.dilation = [rng.choice((1, 1, 1, 2)) for _ in range(n)]
        self.ceil = rng.random() < 0.4
        self.include, self.divisor = rng.random() < 0.5, rng.choice((None, None, 3, -2))
        self.output = [rng.randint(1, 10) for _ in range(n)]
        if self.kind == "fractional":
            sizes = zip(spatial, self.kernel, strict=True)
            self.output = [max(1, s - k + 1 - rng.randint(0, 2)) for s, k in sizes]
        self.drawn = numbers.uniform(size=(self.shape[0] if len(self.shape) == n + 2 else 1, self.shape[-n - 1], n))

    def __str__(self) -> str:
        return str({k: v for k, v in vars(self).items() if k not in ("rng", "x", "drawn")})

    def input(self, T: Any) -> Any:
        x = T.tensor(self.x, dtype=getattr(T, self.dtype))
        if self.turned:
            x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
        return x.requires_grad_()

    def call(self, T: Any, x: Any) -> tuple[Any, ...]:
        F, n = T.nn.functional, self.n
        windows = (self.kernel, self.stride, self.padding)
        if self.kind == "max":
            made = getattr(F, f"max_pool{n}d")(x, *windows, self.dilation, self.ceil, return_indices=True)
        elif self.kind == "avg":
            more = () if n == 1 else (self.divisor,)
            made = getattr(F, f"avg_pool{n}d")(
                x, self.kernel, self.stride or self.kernel, self.padding, self.ceil, self.include, *more
            )
        elif self.kind == "adaptive_avg":
            made = getattr(F, f"adaptive_avg_pool{n}d")(x, self.output)
        elif self.kind == "adaptive_max":
            made = getattr(F, f"adaptive_max_pool{n}d")(x, self.output, return_indices=True)
        elif self.kind == "lp":
            made = getattr(F, f"lp_pool{n}d")(x, 2, self.kernel[0], self.stride and self.stride[0], self.ceil)
        elif self.kind == "columns":
            made = F.unfold(x, self.kernel, self.dilation, self.padding, self.stride or 1)
            size = x.shape[-2:]
            made = (made, F.fold(made * made, size, self.kernel, self.dilation, self.padding, self.stride or 1))
        elif self.kind == "fractional":
            samples = T.tensor(self.drawn, dtype=x.dtype)
            pool = getattr(F, f"fractional_max_pool{n}d")
            made = pool(x, self.kernel, self.output, return_indices=True, _random_samples=samples)
        else:
            size = self.shape[-n:]
            values, at = getattr(F, f"max_pool{n}d")(x, self.kernel, return_indices=True)
            # A size that PyTorch accepts.
            least = [(v - 1) * k + k for v, k in zip(values.shape[-n:], self.kernel, strict=True)]
            size = [max(a, b) for a, b in zip(size, least, strict=True)]
            made = (getattr(F, f"max_unpool{n}d")(values, at, self.kernel, output_size=size), at)
        return made if isinstance(made, tuple) else (made,)

    def has_empty_windows(self) -> bool:
        """Whether all elements of a window may lie in the padding; torch's positions are outside of the plane then."""
        sizes = zip(self.shape[-self.n :], self.padding, self.dilation, strict=True)
        return self.kind == "max" and any(d > 1 and p >= s for s, p, d in sizes)


@pytest.mark.parametrize("seed", range(600))
def test_random_pooling(seed: int) -> None:
    case = Pooling(seed)
    if case.has_empty_windows():
        return
    x, y = case.input(rgrad), case.input(torch)
    mine, theirs = attempt(lambda: case.call(rgrad, x)), attempt(lambda: case.call(torch, y))
    if theirs.error is NotImplementedError and mine.error is None:
        return  # torch has no average over volumes of 16-bit floats
    assert (mine.error, mine.message.partition("\n")[0]) == (theirs.error, theirs.message.partition("\n")[0]), case
    if theirs.error is not None:
        return
    tol = TOLERANCE[case.dtype]
    for ours, wanted in zip(mine.value, theirs.value, strict=True):
        close(ours, wanted, tol)
    rng = np.random.default_rng(seed + 1)
    ours, wanted = mine.value[0], theirs.value[0]
    if case.kind == "columns":
        ours, wanted = mine.value[1], theirs.value[1]
    g, h = rng.standard_normal(tuple(wanted.shape)), rng.standard_normal(case.shape)
    assert ours.grad_fn.name() == wanted.grad_fn.name()
    # torch's gradient of a mean is dense even if it is recorded.
    strides = "adaptive_avg" not in case.kind
    found = []
    for T, out, leaf in ((rgrad, ours, x), (torch, wanted, y)):
        start = T.tensor(g, dtype=out.dtype, requires_grad=True)
        (first,) = T.autograd.grad(out, leaf, start, create_graph=True)
        (second,) = T.autograd.grad(first, start, T.tensor(h, dtype=out.dtype))
        found.append((first, second))
    for a, b in zip(*found, strict=True):
        close(a, b, 8 * tol, strides)


def test_integers() -> None:
    rng = np.random.default_rng(0)
    for kind in ("uint8", "int8", "int16", "int32", "int64", "bool"):
        array = rng.integers(0, 100, (2, 2, 5, 6))
        for call in (
            lambda F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
            lambda F, x: F.max_pool3d(x, (1, 2, 2)),
            lambda F, x: F.max_pool1d(x[0], 2),
            lambda F, x: F.max_pool1d(x[0], 2, return_indices=True),
            lambda F, x: F.avg_pool2d(x, 2, 1, 1),
            lambda F, x: F.avg_pool3d(x, (1, 3, 2), divisor_override=-7),
            lambda F, x: F.adaptive_avg_pool2d(x, 2),
            lambda F, x: F.adaptive_max_pool2d(x, 2),
            lambda F, x: F.unfold(x, 2),
            lambda F, x: F.max_unpool2d(x, x.long(), 9),
        ):
            mine, theirs = (
                attempt(lambda T=T, f=call, a=array, k=kind: f(T.nn.functional, T.tensor(a).to(getattr(T, k))))
                for T in (rgrad, torch)
            )
            assert mine.error == theirs.error, (kind, mine.message, theirs.message)
            if theirs.error is not None:
                assert theirs.message in mine.message
                continue
            pairs = [(mine.value, theirs.value)]
            if isinstance(theirs.value, tuple):
                pairs = list(zip(mine.value, theirs.value, strict=True))
            for a, b in pairs:
                assert a.tolist() == b.tolist(), kind


ERRORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "kernel of three": lambda F, x, _: F.max_pool2d(x, (2, 2, 2)),
    "stride of three": lambda F, x, _: F.max_pool2d(x, 2, (2, 2, 2)),
    "padding of three": lambda F, x, _: F.max_pool2d(x, 2, 2, (1, 1, 1)),
    "dilation of three": lambda F, x, _: F.max_pool2d(x, 2, 2, 0, (1, 1, 1)),
    "kernel 0": lambda F, x, _: F.max_pool2d(x, 0),
    "kernel -1": lambda F, x, _: F.max_pool2d(x, -1),
    "stride 0": lambda F, x, _: F.max_pool2d(x, 2, 0),
    "stride -1": lambda F, x, _: F.max_pool2d(x, 2, -1),
    "dilation 0": lambda F, x, _: F.max_pool2d(x, 2, 2, 0, 0),
    "padding 2": lambda F, x, _: F.max_pool2d(x, 2, 2, 2),
    "padding -1": lambda F, x, _: F.max_pool2d(x, 2, 2, -1),
    "too small": lambda F, x, _: F.max_pool2d(x, 7),
    "rank": lambda F, x, _: F.max_pool2d(x[0, 0], 2),
    "no channels": lambda F, x, _: F.max_pool2d(x[:, :0], 2),
    "no rows": lambda F, x, _: F.max_pool2d(x[:, :, :0], 2),
    "text": lambda F, x, _: F.max_pool2d(x, "a"),
    "float": lambda F, x, _: F.max_pool2d(x, 2.0),
    "list": lambda F, x, _: F.max_pool2d([1], 2),
    "1d rank": lambda F, x, _: F.max_pool1d(x, 2),
    "1d stride": lambda F, x, _: F.max_pool1d(x[0], 2, 0),
    "1d padding": lambda F, x, _: F.max_pool1d(x[0], 2, 2, 2),
    "1d too small": lambda F, x, _: F.max_pool1d(x[0], 9),
    "1d kernel": lambda F, x, _: F.max_pool1d(x[0], (2, 2)),
    "1d positions": lambda F, x, _: F.max_pool1d(x, 2, return_indices=True),
    "3d kernel": lambda F, _, y: F.max_pool3d(y, (2, 2)),
    "3d too small": lambda F, _, y: F.max_pool3d(y, 5),
    "3d rank": lambda F, _, y: F.max_pool3d(y[0, 0], 2),
    "3d no channels": lambda F, _, y: F.max_pool3d(y[:, :0], 2),
    "mean of three": lambda F, x, _: F.avg_pool2d(x, (2, 2, 2)),
    "mean 1d kernel": lambda F, x, _: F.avg_pool1d(x[0], (2, 2)),
    "mean 1d rank": lambda F, x, _: F.avg_pool1d(x, 2),
    "mean 3d kernel": lambda F, _, y: F.avg_pool3d(y, (2, 2)),
    "mean 3d too small": lambda F, _, y: F.avg_pool3d(y, 9),
    "mean padding": lambda F, x, _: F.avg_pool2d(x, 2, 2, 2),
    "divisor 0": lambda F, x, _: F.avg_pool2d(x, 2, divisor_override=0),
    "adaptive sizes": lambda F, _, y: F.adaptive_avg_pool3d(y, (2, 2)),
    "adaptive dimensions": lambda F, x, _: F.adaptive_avg_pool2d(x, (2, 2, 2, 2)),
    "adaptive negative": lambda F, x, _: F.adaptive_avg_pool2d(x, -1),
    "adaptive max negative": lambda F, x, _: F.adaptive_max_pool2d(x, -1),
    "adaptive rank": lambda F, x, _: F.adaptive_avg_pool2d(x[0, 0], 2),
    "adaptive max rank": lambda F, x, _: F.adaptive_max_pool2d(x[0, 0], 2),
    "adaptive empty": lambda F, x, _: F.adaptive_avg_pool2d(x[:, :, :0], 2),
    "adaptive max empty": lambda F, x, _: F.adaptive_max_pool2d(x[:, :0], 2),
    "adaptive 1d": lambda F, x, _: F.adaptive_max_pool1d(x[0], (2, 2)),
    "columns rank": lambda F, x, _: F.unfold(x[None], 2),
    "columns kernel": lambda F, x, _: F.unfold(x, 0),
    "columns stride": lambda F, x, _: F.unfold(x, 2, stride=0),
    "columns padding": lambda F, x, _: F.unfold(x, 2, padding=-1),
    "columns too small": lambda F, x, _: F.unfold(x, 9),
    "columns of three": lambda F, x, _: F.unfold(x, (2, 2, 2)),
    "fold windows": lambda F, x, _: F.fold(F.unfold(x, 2)[..., 1:], 6, 2),
    "fold channels": lambda F, x, _: F.fold(F.unfold(x, 2)[:, 1:], 6, 2),
    "fold size": lambda F, x, _: F.fold(F.unfold(x, 2), (0, 6), 2),
    "fold rank": lambda F, x, _: F.fold(x, 6, 2),
    "unpool position": lambda F, x, _: F.max_unpool2d(x, x.long() * 400, 2),
    "unpool shape": lambda F, x, _: F.max_unpool2d(x, x.long()[1:], 2),
    "unpool dtype": lambda F, x, _: F.max_unpool2d(x, x.int(), 2),
    "unpool rank": lambda F, x, _: F.max_unpool2d(x[0, 0], x[0, 0].long(), 2),
    "unpool size": lambda F, x, _: F.max_unpool2d(x, x.long(), 2, output_size=(90, 90)),
    "unpool sizes": lambda F, x, _: F.max_unpool2d(x, x.long(), 2, output_size=(1, 6, 6)),
    "fractional nothing": lambda F, x, _: F.fractional_max_pool2d(x, 2),
    "fractional too large": lambda F, x, _: F.fractional_max_pool2d(x, 2, 6),
    "fractional 3d too large": lambda F, _, y: F.fractional_max_pool3d(y, 2, 4),
    "fractional kernel": lambda F, x, _: F.fractional_max_pool2d(x, (2, 2, 2), 2),
    "fractional sizes": lambda F, _, y: F.fractional_max_pool3d(y, 2, (2, 2)),
    "fractional samples": lambda F, x, _: F.fractional_max_pool2d(x, 2, 2, _random_samples=x[:, :, 0, :3]),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors(what: str) -> None:
    outcomes = [
        attempt(lambda T=T: ERRORS[what](T.nn.functional, T.ones(1, 2, 6, 6), T.ones(1, 2, 4, 4, 4)))
        for T in (rgrad, torch)
    ]
    mine, theirs = outcomes
    assert theirs.error is not None
    assert mine.error is theirs.error
    assert mine.message.partition("\n")[0] == theirs.message.partition("\n")[0]


MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "MaxPool1d": (lambda nn: nn.MaxPool1d(3, 2, 1), (2, 3, 8)),
    "MaxPool2d": (lambda nn: nn.MaxPool2d((3, 2), stride=2, dilation=(1, 2), ceil_mode=True), (2, 3, 8, 8)),
    "MaxPool3d": (lambda nn: nn.MaxPool3d(2, return_indices=True), (2, 3, 4, 4, 4)),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(3, 2, 1, True, False), (2, 3, 8)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d((3, 2), divisor_override=3), (2, 3, 8, 8)),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2, 1, 1), (2, 3, 4, 4, 4)),
    "LPPool1d": (lambda nn: nn.LPPool1d(2, 3), (2, 3, 8)),
    "LPPool2d": (lambda nn: nn.LPPool2d(3, (3, 2), stride=1, ceil_mode=True), (2, 3, 8, 8)),
    "LPPool3d": (lambda nn: nn.LPPool3d(1, 2), (2, 3, 4, 4, 4)),
    "AdaptiveMaxPool1d": (lambda nn: nn.AdaptiveMaxPool1d(3, return_indices=True), (2, 3, 8)),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d((None, 3)), (2, 3, 8, 8)),
    "AdaptiveMaxPool3d": (lambda nn: nn.AdaptiveMaxPool3d(3), (2, 3, 4, 4, 4)),
    "AdaptiveAvgPool1d": (lambda nn: nn.AdaptiveAvgPool1d(3), (2, 3, 8)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d((3, None)), (2, 3, 8, 8)),
    "AdaptiveAvgPool3d": (lambda nn: nn.AdaptiveAvgPool3d((1, 2, 3)), (2, 3, 4, 4, 4)),
    "Fold": (lambda nn: nn.Fold((4, 5), 2, stride=1), (2, 8, 12)),
    "Unfold": (lambda nn: nn.Unfold((2, 3), padding=1), (2, 3, 4, 5)),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 5)),
    "Upsample sized": (lambda nn: nn.Upsample((3, 7), mode="bicubic", align_corners=True), (2, 3, 4, 5)),
    "UpsamplingNearest2d": (lambda nn: nn.UpsamplingNearest2d(scale_factor=1.5), (2, 3, 4, 5)),
    "UpsamplingBilinear2d": (lambda nn: nn.UpsamplingBilinear2d(size=(7, 3)), (2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, shape = MODULES[name]
    x = np.abs(np.random.default_rng(0).standard_normal(shape))
    ours, theirs = make(rgrad.nn), make(torch.nn)
    assert repr(ours) == repr(theirs)

    def public(module: Any) -> dict[str, Any]:
        return {k: v for k, v in vars(module).items() if not k.startswith("_") and k != "training"}

    assert public(ours) == public(theirs)
    a, b = ours(rgrad.tensor(x)), theirs(torch.tensor(x))
    for mine, wanted in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
        close(mine, wanted, 1e-10)


def test_unpooling_and_drawn_windows_as_modules() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6))
    for make in (lambda nn: nn.MaxUnpool2d(2), lambda nn: nn.MaxUnpool2d((2, 3), stride=(2, 3))):
        found = []
        for T in (rgrad, torch):
            module = make(T.nn)
            pool = T.nn.MaxPool2d(module.kernel_size, return_indices=True)
            found.append((repr(module), module(*pool(T.tensor(x)))))
        assert found[0][0] == found[1][0]
        close(found[0][1], found[1][1], 1e-12)
    drawn = np.random.default_rng(1).uniform(size=(2, 3, 2))
    for make in (
        lambda T, u: T.nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=u),
        lambda T, u: T.nn.FractionalMaxPool2d((2, 3), output_ratio=0.5, return_indices=True, _random_samples=u),
    ):
        ours, theirs = (make(T, T.tensor(drawn)) for T in (rgrad, torch))
        assert repr(ours) == repr(theirs)
        a, b = ours(rgrad.tensor(x)), theirs(torch.tensor(x))
        for mine, wanted in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
            close(mine, wanted, 1e-12)
    for bad in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        mine, theirs = (attempt(lambda T=T, bad=bad: T.nn.FractionalMaxPool2d(2, **bad)) for T in (rgrad, torch))
        assert (mine.error, mine.message) == (theirs.error, theirs.message)
