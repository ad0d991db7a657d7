"""Rows of the operation table: layer, group, instance, batch and root-mean-square norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from op_kit import Op, Sample, arg, normal, uniform

OPS: list[Op] = []

positive = uniform(0.3, 2.0)


def _standardized(x: np.ndarray, axes: tuple[int, ...], eps: float, center: bool = True) -> np.ndarray:
    if x.size == 0:
        return x.copy()
    d = x - x.mean(axes, keepdims=True) if center else x
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + eps)


def _affine(y: np.ndarray, affine: tuple[np.ndarray, ...], channels: bool) -> np.ndarray:
    shaped = [p.reshape(-1, *(1,) * (y.ndim - 2)) if channels else p for p in affine]
    if shaped:
        y = y * shaped[0]
    return y + shaped[1] if len(shaped) > 1 else y


def _last(x: np.ndarray, *affine: np.ndarray, shape: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return _affine(_standardized(x, tuple(range(-len(shape), 0)), eps), affine, False)


def _rms(x: np.ndarray, *affine: np.ndarray, shape: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return _affine(_standardized(x, tuple(range(-len(shape), 0)), eps, center=False), affine, False)


def _group(x: np.ndarray, *affine: np.ndarray, groups: int, eps: float = 1e-5) -> np.ndarray:
    y = _standardized(
        x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]), tuple(range(2, x.ndim + 1)), eps
    )
    return _affine(y.reshape(x.shape), affine, True)


def _batch(x: np.ndarray, *affine: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    return _affine(_standardized(x, (0, *range(2, x.ndim)), eps), affine, True)


def _instance(x: np.ndarray, *affine: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    return _affine(_standardized(x, tuple(range(2, x.ndim)), eps), affine, True)


def _evaluated(x: np.ndarray, mean: np.ndarray, var: np.ndarray, *affine: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    see = (-1, *(1,) * (x.ndim - 2))
    return _affine((x - mean.reshape(see)) / np.sqrt(var.reshape(see) + eps), affine, True)


def _affine_args(rng: np.random.Generator, shape: tuple[int, ...], n: int, layout: str = "dense") -> list[Any]:
    return [arg(normal(rng, shape), layout) for _ in range(n)]


LAST: tuple[tuple[tuple[int, ...], str, int, int], ...] = (
    ((5,), "dense", 1, 2),
    ((2, 3), "dense", 1, 2),
    ((3, 4), "transposed", 1, 1),
    ((2, 2, 3), "strided", 2, 0),
    ((2, 3, 2), "offset", 2, 2),
    ((2, 1, 17), "dense", 1, 2),
    ((3, 4), "expanded", 1, 0),
    ((0, 3), "dense", 1, 2),
)


def _last_samples(most: int) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for n, (shape, layout, dims, affine) in enumerate(LAST):
            over = shape[len(shape) - dims :]
            params = {"shape": over, "eps": 0.1 if n % 2 else 1e-5}
            yield Sample((arg(normal(rng, shape), layout), *_affine_args(rng, over, min(affine, most))), params)

    return samples


CHANNELS: tuple[tuple[tuple[int, ...], str, int], ...] = (
    ((3, 2), "dense", 2),
    ((2, 4, 3), "dense", 2),
    ((2, 4, 3), "transposed", 1),
    ((2, 2, 2, 2), "strided", 0),
    ((2, 2, 17), "dense", 2),
    ((2, 4, 3), "offset", 2),
    ((3, 4, 2), "expanded", 0),
    ((0, 2, 3), "dense", 2),
)


def _channel_samples(
    least: int = 2, groups: bool = False, running: bool = False
) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for n, (shape, layout, affine) in enumerate(CHANNELS):
            # PyTorch goes other ways, or fails, where batch norm has no elements.
            if len(shape) < least or (0 in shape and not groups):
                continue
            # Two elements are at the same distance from their mean: without eps the gradient is rounding errors alone.
            few = int(np.prod(shape[2:])) <= 4
            params: dict[str, Any] = {"eps": 0.1 if n % 2 or few else 1e-5}
            if groups:
                params["groups"] = 2 if n % 3 else 1
            c = shape[1:2]
            kept = [arg(normal(rng, c)), arg(positive(rng, c))] if running else []
            if running:
                kept = [type(k)(k.base, differentiable=False) for k in kept]
            yield Sample((arg(normal(rng, shape), layout), *kept, *_affine_args(rng, c, affine)), params)

    return samples


def _two(affine: tuple[Any, ...]) -> tuple[Any, Any]:
    return (affine[0] if affine else None, affine[1] if len(affine) > 1 else None)


OPS += [
    Op(
        "layer_norm",
        lambda T, x, *a, shape, eps: T.nn.functional.layer_norm(x, shape, *_two(a), eps=eps),
        _last_samples(2),
        _last,
        family="norm",
        tol=8,
    ),
    Op(
        "rms_norm",
        lambda T, x, *a, shape, eps: T.nn.functional.rms_norm(x, shape, *a, eps=eps),
        _last_samples(1),
        _rms,
        family="norm",
        tol=8,
    ),
    Op(
        "group_norm",
        lambda T, x, *a, groups, eps: T.nn.functional.group_norm(x, groups, *_two(a), eps=eps),
        _channel_samples(groups=True),
        _group,
        family="norm",
        tol=8,
    ),
    Op(
        "batch_norm",
        lambda T, x, *a, eps: T.batch_norm(x, *_two(a), None, None, True, 0.1, eps, False),
        _channel_samples(),
        _batch,
        family="norm",
        tol=8,
    ),
    Op(
        "batch_norm_evaluated",
        lambda T, x, mean, var, *a, eps: T.nn.functional.batch_norm(
            x, mean.detach(), var.detach(), *_two(a), training=False, eps=eps
        ),
        _channel_samples(running=True),
        _evaluated,
        family="norm",
        tol=8,
    ),
    Op(
        "instance_norm",
        lambda T, x, *a, eps: T.nn.functional.instance_norm(x, None, None, *_two(a), eps=eps),
        _channel_samples(least=3),
        _instance,
        family="norm",
        tol=8,
    ),
]
