"""The two ways into the engine: ``backward`` accumulates into ``.grad``, ``grad`` returns gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from .. import _core
from .._core import GraphError, Node, Tensor

if TYPE_CHECKING:
    from .graph import GradientEdge

#: A tensor, or in its place an edge of the graph: a pair of a node and an output number.
TensorOrEdge: TypeAlias = "Tensor | GradientEdge | tuple[Node, int]"
TensorsOrEdges: TypeAlias = "TensorOrEdge | Sequence[TensorOrEdge] | Iterator[TensorOrEdge]"
OptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None] | None
K = TypeVar("K")
V = TypeVar("V", bound=TensorOrEdge)


def _several(value: Any) -> tuple[Any, ...]:
    # A GradientEdge is a tuple, too.
    return tuple(value) if isinstance(value, (tuple, list)) and not hasattr(value, "output_nr") else (value,)


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: OptionalTensors = None,
    inputs: TensorsOrEdges | dict[str, V] | None = None,
    *,
    strict: bool = False,
) -> None:
    """Add the vector-Jacobian product of ``tensors`` to ``.grad`` of the leaves they were computed from.

    Args:
        tensors: The outputs to differentiate, tensors or GradientEdges; each must require grad.
        grad_tensors: The vectors (cotangents), one of the output's shape for each output; None for a scalar is one.
        retain_graph: Keep saved tensors for another pass; the default is ``create_graph``.
        create_graph: Record the backward pass, so that gradients can be differentiated again.
        grad_variables: Old name of ``grad_tensors``.
        inputs: The only leaves (or tensors, or GradientEdges of leaves) to accumulate into; one, a sequence or a dict.
        strict: Raise if the graph does not lead to one of ``inputs``, before anything is computed. The error names the
            lines where the path was cut (``detach``, ``no_grad``, a cast to integers, an operation without derivative).
            ``inputs=dict(model.named_parameters())`` has the parameters named. Without ``inputs``, strict mode checks
            the leaves at the far end of every recorded cut.

    Raises:
        RuntimeError: An output is not scalar and has no cotangent, shapes differ, an output has no history, the graph
            was freed by an earlier pass, or a saved tensor was changed in place.

    Example:
        >>> x = rgrad.tensor([1.0, 2.0], requires_grad=True)
        >>> rgrad.autograd.backward(x**2, grad_tensors=rgrad.tensor([1.0, 10.0]))
        >>> x.grad
        tensor([ 2., 40.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise GraphError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    _core._run_backward(tensors, grad_tensors, keep, create_graph, inputs, True, True, False, strict)


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[K, V],
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    strict: bool = False,
) -> dict[K, Tensor]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[K, V],
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    *,
    materialize_grads: Literal[True],
    strict: bool = False,
) -> dict[K, Tensor]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[K, V],
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    *,
    allow_unused: Literal[True],
    is_grads_batched: bool = False,
    materialize_grads: Literal[False] = False,
    strict: bool = False,
) -> dict[K, Tensor | None]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[K, V],
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    strict: bool = False,
) -> dict[K, Tensor] | dict[K, Tensor | None]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    strict: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    *,
    materialize_grads: Literal[True],
    strict: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    strict: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges | dict[K, V],
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    strict: bool = False,
) -> dict[K, Tensor] | dict[K, Tensor | None] | tuple[Tensor | None, ...]:
    """Compute the vector-Jacobian product of ``outputs`` with respect to ``inputs``, and leave ``.grad`` as it is.

    Args:
        outputs: The tensors or GradientEdges to differentiate.
        inputs: The tensors or GradientEdges to differentiate by: one, a sequence, or a dict.
        grad_outputs: The vectors (cotangents), as in :func:`backward`.
        retain_graph: Keep saved tensors for another pass; the default is ``create_graph``.
        create_graph: Record the backward pass, for derivatives of higher order.
        only_inputs: Ignored; False warns.
        allow_unused: Give None for an input that the outputs do not depend on, in place of an error; the default is
            ``materialize_grads``.
        is_grads_batched: Dimension 0 of every cotangent is a batch of vectors, and of every result one of gradients.
        materialize_grads: Give zeros in place of None.
        strict: As in :func:`backward`.

    Returns:
        A tuple with one gradient (of the shape and dtype of the input) or None for each input; a dict if ``inputs`` is
        one.

    Raises:
        RuntimeError: As :func:`backward`, or an input is not used and ``allow_unused`` is not set.
        TypeError: ``inputs`` is None.
        ValueError: ``materialize_grads`` is given together with ``allow_unused=False``.

    Example:
        >>> x = rgrad.tensor(3.0, requires_grad=True)
        >>> (first,) = rgrad.autograd.grad(x**3, x, create_graph=True)
        >>> (second,) = rgrad.autograd.grad(first, x)
        >>> first.item(), second.item()
        (27.0, 18.0)
    """
    if _core._has_torch_function_variadic(outputs, inputs) and not isinstance(inputs, dict):
        of, by = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (outputs, inputs))
        named = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "only_inputs": only_inputs,
            "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
            "strict": strict,
        }
        answer: tuple[Tensor | None, ...] = _core._ask_torch_function(grad, of + by, (of, by), named)
        return answer
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use rgrad.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    result: tuple[Tensor | None, ...]
    unused = materialize_grads if allow_unused is None else allow_unused
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        raise TypeError("inputs must be a Tensor or a sequence of Tensors, but got NoneType")
    if is_grads_batched:
        if isinstance(inputs, Iterator):
            inputs = tuple(inputs)
        from ._batched import grad_of_batch

        result = grad_of_batch(
            _several(outputs),
            _several(grad_outputs),
            lambda vectors: _core._run_backward(
                outputs, vectors, keep, create_graph, inputs, unused, False, False, strict
            ),
        )
        if materialize_grads:
            wanted = tuple(inputs.values() if isinstance(inputs, dict) else _several(inputs))
            result = tuple(_core.zeros_like(x) if g is None else g for g, x in zip(result, wanted, strict=True))
    else:
        result = _core._run_backward(
            outputs, grad_outputs, keep, create_graph, inputs, unused, False, materialize_grads, strict
        )
    if type(inputs) is dict:
        return dict(zip(inputs, result, strict=True))
    return result
