"""The parts of gradient checks that need forward mode or batches."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ..._transforms.levels import batching
from .._batched import stacked
from ..backward import grad
from ..forward_ad import dual_level, make_dual, unpack_dual
from ._error import BadGradient
from ._jacobian import as_tuple, cotangent_of, is_differentiable, part_count, parts_of, quasi_random

if TYPE_CHECKING:
    from ._jacobian import Matrix

_ADVICE = """
{what} failed while testing batched gradient computation{mode}.
The check runs {passes} once for a batch of vectors and compares with one run for each.
It fails for code that uses values of tensors ({code}):
write this with other operations (`where` for a branch), or leave the check out by `{flag}=False`.
""".strip()
_ADVICE_BACKWARD = _ADVICE.format(
    what="gradcheck or gradgradcheck",
    mode="",
    passes="backward",
    code="`.item()`, `if x > 0` in the backward of a custom Function",
    flag="check_batched_grad",
)
_ADVICE_FORWARD = _ADVICE.format(
    what="gradcheck",
    mode=" with forward-mode AD",
    passes="the function in forward mode",
    code="`.item()`, `if x > 0` in the function or in the jvp of a custom Function",
    flag="check_batched_forward_grad",
)


def _is_wanted(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


class ForwardDerivatives:
    """The derivatives of some outputs by some inputs, by forward mode."""

    name = "computed with forward mode "
    # Each part of a complex input is one direction.
    split_by_output = False

    def __init__(
        self,
        fn: Callable[..., Any],
        inputs: Sequence[Any],
        wanted: Sequence[int],
        chosen: Sequence[int],
        outputs: Sequence[Tensor],
    ) -> None:
        self.fn, self.inputs, self.wanted, self.chosen, self.outputs = fn, inputs, wanted, chosen, outputs

    def _push_forward(self, which: int, direction: Any) -> list[Any]:
        """The parts of the tangents of the outputs for the direction (parts, too) in one input.

        The tangents of the other inputs are zero.
        """
        import numpy as np

        with dual_level():
            args = list(self.inputs)
            for k in self.wanted:
                x = args[k]
                tangent = cotangent_of(direction, x) if k == which else _core.zeros_like(x.detach())
                args[k] = make_dual(x.detach(), tangent)
            outs = as_tuple(self.fn(*args))
            found = []
            for o, like in zip(self.chosen, self.outputs, strict=True):
                moved = unpack_dual(outs[o]).tangent
                if moved is None:
                    found.append(np.zeros(part_count(like)))
                    continue
                if moved.shape != like.shape or moved.dtype != like.dtype:
                    raise BadGradient(
                        f"Forward AD gradient has incorrect size or dtype: got {tuple(moved.shape)} of "
                        f"{moved.dtype} for an output of {tuple(like.shape)} of {like.dtype}"
                    )
                found.append(parts_of(moved).astype(np.float64))
        return found

    def jacobians(self) -> list[list["Matrix"]]:
        """For each output a matrix for each input."""
        import numpy as np

        per_input = []
        for k in self.wanted:
            size = part_count(self.inputs[k])
            matrices = [np.zeros((size, part_count(out))) for out in self.outputs]
            direction = np.zeros(size)
            for j in range(size):
                direction[j] = 1.0
                for matrix, column in zip(matrices, self._push_forward(k, direction.copy()), strict=True):
                    matrix[j] = column
                direction[j] = 0.0
            per_input.append(matrices)
        return [list(row) for row in zip(*per_input, strict=True)]

    def along(self, us: Sequence[Any], vs: Sequence[Any]) -> list[list["Matrix"]]:
        """``U J V`` for each output with its columns V and each input with its rows U."""
        import numpy as np

        per_input = [[self._push_forward(k, u) for u in rows] for k, rows in zip(self.wanted, us, strict=True)]
        return [[np.array([column[o] @ v for column in pushed]) for pushed in per_input] for o, v in enumerate(vs)]


def _direction(x: Tensor, seed: int) -> Tensor:
    return cotangent_of(2 * quasi_random(seed, part_count(x)) - 1, x)


def check_undefined_tangents(fn: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """An input without tangent counts as one whose tangent is zero."""
    wanted = [k for k, x in enumerate(inputs) if _is_wanted(x)]
    for missing in wanted:
        found = []
        for zero in (True, False):
            with dual_level():
                args = [_detached(x) for x in inputs]
                for k in wanted:
                    if k != missing:
                        args[k] = make_dual(args[k], _direction(args[k], k))
                    elif zero:
                        args[k] = make_dual(args[k], _core.zeros_like(args[k]))
                outs = [o for o in as_tuple(fn(*args)) if is_differentiable(o)]
                found.append([unpack_dual(o).tangent for o in outs])
        for o, (with_zero, without) in enumerate(zip(*found, strict=True)):
            if with_zero is not None and without is not None and not _close(with_zero, without):
                raise BadGradient(
                    f"Mismatch in tangent values for output with index: {o} when input {missing} has an undefined "
                    f"tangent value. Got: {without} but expected: {with_zero}"
                )


def _close(a: Tensor, b: Tensor) -> bool:
    import numpy as np

    x, y = parts_of(a).astype(np.float64), parts_of(b).astype(np.float64)
    # Sums over a batch may be rounded in another order.
    rough = a.dtype not in (_core.float64, _core.complex128)
    return (
        a.shape == b.shape
        and x.shape == y.shape
        and bool(np.allclose(x, y, rtol=1e-3 if rough else 1e-5, atol=1e-4 if rough else 1e-8, equal_nan=True))
    )


def _compare(
    singles: list[list[Tensor]], batch: Sequence[Tensor], places: Callable[[int], tuple[int, int]], advice: str
) -> None:
    """``places(k)`` are the output and the input that entry k of the batch belongs to."""
    for k, (many, *ones) in enumerate(zip(batch, *singles, strict=True)):
        expected = _core.stack(ones)
        if not _close(many, expected):
            output, input = places(k)
            raise BadGradient(
                f"For output {output} and input {input}:\n\n{advice}\n\nGot:\n{many}\n\nExpected:\n{expected}"
            )


def check_batched_tangents(fn: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Forward mode over a batch of tangents gives what it gives for each."""
    for which, x in enumerate(inputs):
        if not _is_wanted(x):
            continue

        def push(tangent: Tensor, which: int = which) -> tuple[Tensor, ...]:
            with dual_level():
                args = [_detached(y) for y in inputs]
                args[which] = make_dual(args[which], tangent)
                outs = [unpack_dual(o) for o in as_tuple(fn(*args)) if is_differentiable(o)]
                return tuple(
                    _core.zeros_like(primal).detach() if tangent is None else tangent.detach()
                    for primal, tangent in outs
                )

        tangents = [_direction(x, seed) for seed in (1, 2)]
        singles = [list(push(t)) for t in tangents]
        try:
            with batching(len(tangents), "unsupported", of_gradients=True) as level:
                found = push(_core._wrap(_core.stack(tangents), level, 0))
                batch = [stacked(t, level, len(tangents)) for t in found]
        except RuntimeError as error:
            raise BadGradient(f"While computing batched gradients, got: {error}\n\n{_ADVICE_FORWARD}") from error
        _compare(singles, batch, lambda k, which=which: (k, which), _ADVICE_FORWARD)  # type: ignore[misc]


def check_batched_cotangents(fn: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """A backward pass over a batch of cotangents gives what it gives for each."""
    wanted = [x for x in inputs if _is_wanted(x)]
    for o, out in enumerate(out for out in as_tuple(fn(*inputs)) if out.requires_grad):
        vectors = [_direction(out, seed) for seed in (1, 2)]
        singles = [list(grad(out, wanted, v, retain_graph=True, materialize_grads=True)) for v in vectors]
        try:
            stacked = _core.stack(vectors)
            batch = grad(out, wanted, stacked, retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise BadGradient(f"While computing batched gradients, got: {error}\n\n{_ADVICE_BACKWARD}") from error
        filled = [
            _core.zeros(2, *x.shape, dtype=x.dtype, device=x.device) if g is None else g
            for g, x in zip(batch, wanted, strict=True)
        ]
        _compare(singles, filled, lambda k, o=o: (o, k), _ADVICE_BACKWARD)  # type: ignore[misc]
