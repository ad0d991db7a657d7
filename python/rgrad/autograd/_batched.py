"""Backward passes with a batch of cotangents: one pass in which every gradient has a hidden dimension."""

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._transforms.levels import batching


def grad_of_batch(
    outs: tuple[Any, ...], vectors: tuple[Any, ...], run: Callable[[tuple[Tensor, ...]], tuple[Tensor | None, ...]]
) -> tuple[Tensor | None, ...]:
    """The gradients that ``run`` computes for cotangents whose dimension 0 is a batch, with the batch in dimension 0.

    Raises:
        RuntimeError: A cotangent does not have a dimension more than its output.
        ValueError: A cotangent is None, or they differ in the size of the batch.
    """
    if len(outs) != len(vectors):
        raise RuntimeError(f"got {len(outs)} tensors and {len(vectors)} gradients")
    for i, (out, vector) in enumerate(zip(outs, vectors, strict=True)):
        if not isinstance(vector, Tensor):
            raise ValueError(
                f"vmap(autograd.grad)(<inputs>): Got in_dim=0 for an input but the input is of type {type(vector)}: "
                "is_grads_batched=True needs a batch of vectors for every output"
            )
        if vector.dim() == 0:
            raise ValueError(
                "vmap(autograd.grad)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0"
            )
        if isinstance(out, Tensor) and vector.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {vector.shape[1:]} and "
                f"output[{i}] has a shape of {out.shape}. If you only want some tensors in `grad_output` to be "
                "considered batched, consider using vmap."
            )
    sizes = [vector.shape[0] for vector in vectors]
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    with batching(sizes[0], "unsupported", of_gradients=True) as level:
        found = run(tuple(_core._wrap(vector, level, 0) for vector in vectors))
        return tuple(g if g is None else stacked(g, level, sizes[0]) for g in found)


def stacked(value: Tensor, level: int, size: int) -> Tensor:
    """A tensor of a batching level with the batch in dimension 0; a tensor without a batch dimension is expanded."""
    inner, batched = _core._unwrap(value, level)
    return inner if batched else inner.unsqueeze(0).expand(size, *inner.shape)
