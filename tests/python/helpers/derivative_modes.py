"""Derivatives of a function once by differences, and by every mode beside that one result.

The differences are our own on purpose: `rgrad.autograd.gradcheck` is itself under test elsewhere. They are central and
in float64 on the CPU; a mode may run elsewhere and in another precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import rgrad
from op_kit import Op, Sample, as_tuple, to_numpy, views
from rgrad.func import jvp, vmap

EPS = 1e-6
# Of the largest number of a result, or of 1.
TOLERANCE = 2e-6

# Takes tensors that can be differentiated, gives the floating outputs.
Function = Callable[..., tuple[Any, ...]]


@dataclass
class Numbers:
    """What differences say of a function at a point, as matrices over the elements of all outputs and all inputs.

    `weights` and `direction` are flat: the cotangents of all outputs, the tangents of all inputs. `hessian` is that of
    the weighted sum of the outputs, or None.
    """

    shapes: list[tuple[int, ...]]
    outputs: list[tuple[int, ...]]
    jacobian: np.ndarray
    hessian: np.ndarray | None
    weights: np.ndarray
    direction: np.ndarray


def function_of(op: Op, sample: Sample, leaf: Sequence[Any]) -> tuple[Function, list[Any]]:
    """The operation as a function of its differentiable arguments alone, and these."""
    which = [k for k, a in enumerate(sample.args) if a.differentiable]

    def call(*args: Any) -> tuple[Any, ...]:
        given = list(leaf)
        for k, x in zip(which, args, strict=True):
            given[k] = x
        outs = as_tuple(op.call(rgrad, *views(sample, given), **sample.params))
        return tuple(o for o in outs if o.dtype.is_floating_point)

    return call, [leaf[k] for k in which]


def flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.asarray(a, np.float64).reshape(-1) for a in arrays)])


def unflat(values: np.ndarray, shapes: Sequence[tuple[int, ...]], like: Any) -> list[Any]:
    """The pieces of the last dimension of `values` as tensors of these shapes, with its other dimensions in front."""
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    pieces = np.split(values, ends[:-1], axis=-1)
    return [
        rgrad.tensor(p.reshape((*values.shape[:-1], *s)).copy(), dtype=like.dtype, device=like.device)
        for p, s in zip(pieces, shapes, strict=True)
    ]


def differences(f: Callable[[Sequence[np.ndarray]], np.ndarray], at: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """The Jacobian of a function of arrays to a vector: a column for each element of the arrays."""
    columns = []
    for k, a in enumerate(at):
        for n in range(a.size):
            values = []
            for step in (EPS, -EPS):
                moved = [x.copy() for x in at]
                moved[k].reshape(-1)[n] += step
                values.append(f(moved))
            columns.append((values[0] - values[1]) / (2 * EPS))
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


def gradients(outs: Sequence[Any], xs: Sequence[Any], cotangents: Sequence[Any], **kw: Any) -> list[Any]:
    """`autograd.grad` with zeros for what does not depend on an input; dtypes and shapes are those of the inputs."""
    lead = tuple(cotangents[0].shape)[: cotangents[0].dim() - outs[0].dim()] if outs else ()
    pairs = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    found: Sequence[Any] = [None] * len(xs)
    if pairs:
        found = rgrad.autograd.grad(
            [o for o, _ in pairs], list(xs), [c for _, c in pairs], allow_unused=True, retain_graph=True, **kw
        )
    for g, x in zip(found, xs, strict=True):
        assert g is None or (g.dtype, tuple(g.shape)) == (x.dtype, (*lead, *x.shape))
    return [
        rgrad.zeros((*lead, *x.shape), dtype=x.dtype, device=x.device) if g is None else g
        for g, x in zip(found, xs, strict=True)
    ]


def numbers(f: Function, xs: Sequence[Any], second: bool) -> Numbers:
    """Differences at a point in float64 on the CPU: of the outputs, and of the gradient that backward gives."""
    at = [to_numpy(x) for x in xs]
    shapes = [a.shape for a in at]
    outs = f(*xs)
    outputs = [tuple(o.shape) for o in outs]
    rng = np.random.default_rng(7)
    weights = rng.uniform(0.5, 1.5, sum(int(np.prod(s)) for s in outputs))
    direction = rng.uniform(0.5, 1.5, sum(a.size for a in at))

    def values(moved: Sequence[np.ndarray]) -> np.ndarray:
        return flat([to_numpy(o) for o in f(*map(rgrad.tensor, moved))])

    def first(moved: Sequence[np.ndarray]) -> np.ndarray:
        own = [rgrad.tensor(a, requires_grad=True) for a in moved]
        outs = f(*own)
        return flat([to_numpy(g) for g in gradients(outs, own, unflat(weights, outputs, xs[0]))])

    return Numbers(
        shapes,
        outputs,
        differences(values, at, weights.size),
        differences(first, at, direction.size) if second else None,
        weights,
        direction,
    )


class Modes:
    """Every mode of differentiation of `f` at `xs`; each gives what it computed and what the numbers say."""

    def __init__(self, f: Function, xs: Sequence[Any], truth: Numbers) -> None:
        self.f, self.truth, self.like = f, truth, xs[0]
        self.xs = [x.detach().requires_grad_() for x in xs]
        self.plain = [x.detach() for x in xs]
        self.weights = unflat(truth.weights, truth.outputs, self.like)
        self.direction = unflat(truth.direction, truth.shapes, self.like)
        self.want_gradient = truth.weights @ truth.jacobian
        self.want_tangent = truth.jacobian @ truth.direction

    def _joined(self, tensors: Sequence[Any]) -> np.ndarray:
        """What a mode gave, flat; a batch stays the first dimension."""
        return flat([to_numpy(t) for t in tensors])

    def _rows(self, tensors: Sequence[Any], rows: int) -> np.ndarray:
        parts = [to_numpy(t).reshape(rows, t.numel() // max(rows, 1)) for t in tensors]
        return np.concatenate([np.zeros((rows, 0)), *parts], axis=1)

    def _weighted(self, *xs: Any) -> Any:
        terms = [(o * w).sum() for o, w in zip(self.f(*xs), self.weights, strict=True)]
        return sum(terms[1:], terms[0])

    # ------------------------------------------------------------------------------------------- first order

    def backward(self) -> tuple[Any, Any]:
        return self._joined(gradients(self.f(*self.xs), self.xs, self.weights)), self.want_gradient

    def backward_with_a_graph(self) -> tuple[Any, Any]:
        found = gradients(self.f(*self.xs), self.xs, self.weights, create_graph=True)
        return self._joined(found), self.want_gradient

    def backward_of_a_batch(self) -> tuple[Any, Any]:
        """All rows of the Jacobian by one backward pass over a batch of cotangents."""
        count = self.truth.weights.size
        if count == 0:
            return np.zeros(0), np.zeros(0)
        batch = unflat(np.eye(count), self.truth.outputs, self.like)
        found = gradients(self.f(*self.xs), self.xs, batch, is_grads_batched=True)
        return self._rows(found, count), self.truth.jacobian

    def backward_of_each_output(self) -> tuple[Any, Any]:
        """The other outputs have no cotangent."""
        got, want, start = [], [], 0
        outs = self.f(*self.xs)
        for out, weight in zip(outs, self.weights, strict=True):
            end = start + weight.numel()
            got.append(self._joined(gradients([out], self.xs, [weight])))
            want.append(self.truth.weights[start:end] @ self.truth.jacobian[start:end])
            start = end
        return flat(got), flat(want)

    def backward_to_each_input(self) -> tuple[Any, Any]:
        """The other inputs need no gradient."""
        got = []
        for k in range(len(self.xs)):
            given = [x if n == k else p for n, (x, p) in enumerate(zip(self.xs, self.plain, strict=True))]
            got += gradients(self.f(*given), [self.xs[k]], self.weights)
        return self._joined(got), self.want_gradient

    def forward(self) -> tuple[Any, Any]:
        _, tangents = jvp(self.f, tuple(self.plain), tuple(self.direction))
        return self._joined(tangents), self.want_tangent

    def forward_of_a_batch(self) -> tuple[Any, Any]:
        """All columns of the Jacobian by one forward pass over a batch of tangents."""
        count = self.truth.direction.size
        if count == 0:
            return np.zeros(0), np.zeros(0)
        batch = unflat(np.eye(count), self.truth.shapes, self.like)
        tangents = vmap(lambda *ts: jvp(self.f, tuple(self.plain), ts)[1])(*batch)
        return self._rows(tangents, count), self.truth.jacobian.T

    def forward_of_each_input(self) -> tuple[Any, Any]:
        """The other inputs have no tangent."""
        got, want, start = [], [], 0
        for k, t in enumerate(self.direction):
            end = start + t.numel()

            def alone(x: Any, k: int = k) -> tuple[Any, ...]:
                return self.f(*[x if n == k else p for n, p in enumerate(self.plain)])

            got += jvp(alone, (self.plain[k],), (t,))[1]
            want.append(self.truth.jacobian[:, start:end] @ self.truth.direction[start:end])
            start = end
        return self._joined(got), flat(want)

    # ------------------------------------------------------------------------------------------ second order

    def _along(self) -> tuple[list[Any], list[Any], Any]:
        """Inputs, cotangents, and the derivative along the direction as a function of both."""
        cotangents = [w.clone().requires_grad_() for w in self.weights]
        first = gradients(self.f(*self.xs), self.xs, cotangents, create_graph=True)
        terms = [(g * d).sum() for g, d in zip(first, self.direction, strict=True)]
        return self.xs, cotangents, sum(terms[1:], terms[0])

    def backward_over_backward(self) -> tuple[Any, Any]:
        """By the inputs, and by the cotangents of the first pass."""
        xs, cotangents, along = self._along()
        one = rgrad.ones_like(along)
        found = gradients([along], [*xs, *cotangents], [one])
        assert self.truth.hessian is not None
        return self._joined(found), flat([self.truth.hessian @ self.truth.direction, self.want_tangent])

    def backward_over_backward_of_a_batch(self) -> tuple[Any, Any]:
        """All rows of the Hessian by one pass over a batch of cotangents."""
        count = self.truth.direction.size
        if count == 0:
            return np.zeros(0), np.zeros(0)
        first = gradients(self.f(*self.xs), self.xs, self.weights, create_graph=True)
        batch = unflat(np.eye(count), self.truth.shapes, self.like)
        return self._rows(gradients(first, self.xs, batch, is_grads_batched=True), count), self.truth.hessian

    def _gradient(self, *args: Any) -> tuple[Any, ...]:
        own = list(args)
        for x in own:
            if not x.requires_grad:
                x.requires_grad = True  # requires_grad_() is refused inside transforms
        return tuple(gradients(self.f(*own), own, self.weights, create_graph=True))

    def forward_over_backward(self) -> tuple[Any, Any]:
        _, found = jvp(self._gradient, tuple(self.plain), tuple(self.direction))
        assert self.truth.hessian is not None
        return self._joined(found), self.truth.hessian @ self.truth.direction

    def backward_over_forward(self) -> tuple[Any, Any]:
        tangents = jvp(self.f, tuple(self.xs), tuple(self.direction))[1]
        assert self.truth.hessian is not None
        found = gradients(tangents, self.xs, self.weights)
        return self._joined(found), self.truth.hessian @ self.truth.direction

    def forward_over_forward(self) -> tuple[Any, Any]:
        def once(*xs: Any) -> Any:
            return jvp(self._weighted, xs, tuple(self.direction))[1]

        _, found = jvp(once, tuple(self.plain), tuple(self.direction))
        assert self.truth.hessian is not None
        return self._joined([found]), flat([self.truth.direction @ self.truth.hessian @ self.truth.direction])


FIRST = (
    "backward",
    "backward_with_a_graph",
    "backward_of_a_batch",
    "backward_of_each_output",
    "backward_to_each_input",
    "forward",
    "forward_of_a_batch",
    "forward_of_each_input",
)
SECOND = (
    "backward_over_backward",
    "backward_over_backward_of_a_batch",
    "forward_over_backward",
    "backward_over_forward",
    "forward_over_forward",
)


def assert_modes(
    f: Function, xs: Sequence[Any], truth: Numbers, modes: Sequence[str] | None = None, tol: float = TOLERANCE
) -> None:
    """Each mode gives what the numbers say; `modes` are all that fit if none are named."""
    found = Modes(f, xs, truth)
    for mode in modes or (FIRST if truth.hessian is None else FIRST + SECOND):
        got, want = getattr(found, mode)()
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol * scale, err_msg=mode.replace("_", " "))
