"""How NumPy computes a decomposition's values: on the host, for any device, and for batches of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._operation.composed import batched_first, type_name
from ..autograd.function import Function


class LinAlgError(RuntimeError):
    """A matrix has no decomposition of the wanted kind, or no inverse."""


LinAlgError.__module__ = "rgrad.linalg"


def check_matrix(name: str, A: Any, which: str = "A", square: bool = False) -> Tensor:
    """Refuse other tensors than batches of matrices of floats. Under autocast smaller floats become float32.

    Raises:
        RuntimeError: It has fewer than two dimensions, is not square where it should be, or has another dtype than
            float32 and float64.
    """
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {which} must have at least 2 dimensions.")
    if square and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: {which} must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    return check_dtype(name, A)


# The kernels that PyTorch names when it refuses a low precision; other functions refuse it before.
_KERNELS = {
    "lu_cpu": ("linalg.det", "linalg.solve", "linalg.solve_ex", "linalg.lu", "linalg.lu_factor"),
    "linalg_eigh_cpu": ("linalg.eigh", "linalg.eigvalsh"),
    "linalg_svd_cpu": ("linalg.svd", "linalg.svdvals", "linalg.cond", "linalg.matrix_norm"),
    "geqrf_cpu": ("linalg.qr",),
    "cholesky_cpu": ("linalg.cholesky",),
    "cholesky_inverse_out_cpu": ("cholesky_inverse",),
    "cholesky_solve_cpu": ("cholesky_solve",),
    "triangular_solve_cpu": ("linalg.solve_triangular",),
}


def check_dtype(name: str, A: Tensor) -> Tensor:
    """Refuse other dtypes than float32 and float64. Under autocast smaller floats become float32.

    Raises:
        RuntimeError: Low precision (some functions: NotImplementedError, which is one), integers or truth values.
    """
    A = widened(A)
    if A.dtype not in (_core.float32, _core.float64):
        if A.dtype.is_floating_point:
            kernel = next((k for k, names in _KERNELS.items() if name in names), None)
            if kernel is not None:
                raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(A.dtype)}'")
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(A.dtype)}")
        if name in (
            "linalg.eigh",
            "linalg.eigvalsh",
            "linalg.lu",
            "linalg.lu_factor",
            "cholesky_inverse",
            "cholesky_solve",
            "linalg.solve_triangular",
        ):
            kernel = next(k for k, names in _KERNELS.items() if name in names)
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(A.dtype)}'")
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(A.dtype)}")
    return A


def widened(A: Tensor) -> Tensor:
    """The tensor as a function takes it that autocast runs in float32."""
    return _core._autocast_widened(A)[0] if _core._autocasts() else A


def without_autocast(A: Tensor) -> Any:
    """A context in which products inside of a function keep their dtype."""
    from ..amp.autocast_mode import autocast

    return autocast(A.device.type, enabled=False) if _core._autocasts() else nullcontext()


def array(x: Tensor) -> Any:
    """The elements as a NumPy array, which may share their memory."""
    return x.detach().cpu().numpy()


def tensor(values: Any, like: Tensor) -> Tensor:
    """A tensor of its own with these elements, on the device and of the dtype of another tensor."""
    made = _core.from_numpy(np.asarray(values, order="C")).to(like.dtype)
    return made.to(like.device)


@contextmanager
def named(name: str, singular: str) -> Iterator[None]:
    """Let NumPy's errors come out as the function's own; what is infinite or nan gives no warnings."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError as e:
        raise LinAlgError(f"{name}: {singular}") from e


def primitive(
    name: str,
    value: Callable[..., Any],
    vjp: Callable[..., Any],
    jvp: Callable[..., Any],
    without: tuple[int, ...] = (),
    keywords: int = 0,
    shapes: Callable[..., Any] | None = None,
) -> Callable[..., tuple[Tensor, ...]]:
    """A differentiable function of batches of matrices whose values come from NumPy.

    Args:
        name: The name of its node, without the suffix.
        value: Gives a tuple of arrays from arrays (of which all dimensions but the last ones are batches) and options.
        vjp: ``vjp(grads, inputs, outputs, *options)`` gives a gradient for each input, made of differentiable
            functions; a gradient may come as None.
        jvp: ``jvp(tangents, inputs, outputs, *options)`` gives the tangent of each output; a tangent may come as None.
        without: The outputs that have no gradient.
        keywords: How many options stand behind the tensors.
        shapes: Gives the shapes of the outputs from the shapes of the tensors and the options, for the meta device; by
            default there is one output, of the shape of the first tensor.

    Returns:
        A function of tensors and options that gives a tuple of tensors.
    """

    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        count = len(arguments) - keywords
        tensors, options = arguments[:count], arguments[count:]
        if tensors[0].device.type == "meta":
            given = [x.shape for x in tensors]
            like = {"dtype": tensors[0].dtype, "device": "meta"}
            return tuple(_core.empty(shape, **like) for shape in (shapes(*given, *options) if shapes else given[:1]))
        results = value(*(array(x) for x in tensors), *options)
        return tuple(tensor(x, tensors[0]) for x in results)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        count = len(inputs) - keywords
        ctx.count, ctx.options = count, inputs[count:]
        ctx.set_materialize_grads(False)
        if without:
            ctx.mark_non_differentiable(*(output[i] for i in without))
        ctx.save_for_backward(*inputs[:count], *output)
        ctx.save_for_forward(*inputs[:count], *output)

    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        saved = ctx.saved_tensors
        if all(g is None for g in grads):
            return (None,) * (ctx.count + keywords)
        found = vjp(grads, saved[: ctx.count], saved[ctx.count :], *ctx.options)
        return (*found, *(None,) * keywords)

    def forward_mode(ctx: Any, *tangents: Any) -> Any:
        # Inside a transform saved tensors have their own tangents, which would be taken a second time.
        saved = tuple(_core._primal(x) for x in ctx.saved_tensors)
        inputs = saved[: ctx.count]
        zeros = [_core.zeros_like(x) if t is None else t for t, x in zip(tangents[: ctx.count], inputs, strict=True)]
        found = jvp(zeros, inputs, saved[ctx.count :], *ctx.options)
        return tuple(None if i in without else t for i, t in enumerate(found))

    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        results = made.apply(*batched_first(info, in_dims, arguments))
        return results, tuple(0 for _ in results)

    made: Any = type(
        name,
        (Function,),
        {
            "__module__": __name__,
            "_node_name": f"{name}Backward0",
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
            "jvp": staticmethod(forward_mode),
            "vmap": staticmethod(vmap),
        },
    )
    apply: Callable[..., tuple[Tensor, ...]] = made.apply
    return apply


def eye_like(A: Tensor, n: int) -> Tensor:
    """The identity of n rows, of the dtype and device of ``A``."""
    return _core.eye(n, dtype=A.dtype, device=A.device)


def add(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of what there is."""
    return b if a is None else a if b is None else a + b
