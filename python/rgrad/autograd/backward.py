"""The two ways into the engine: ``backward`` accumulates into ``.grad``, ``grad`` returns gradients."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .._core import GraphError, Tensor

TensorOrTensors = Tensor | Sequence[Tensor]
OptionalTensors = Tensor | Sequence[Tensor | None] | None


def _as_tensors(what: str, value: Any) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        return (value,)
    try:
        tensors = tuple(value)
    except TypeError:
        raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, but got {type(value).__name__}") from None
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what}[{i}] must be a Tensor, but got {type(tensor).__name__}")
    return tensors


def _as_inputs(caller: str, inputs: Any) -> tuple[Tensor, ...]:
    if type(inputs) is dict:
        inputs = tuple(inputs.values())
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    tensors = _as_tensors("inputs", inputs)
    if not tensors:
        raise GraphError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return tensors


def _make_grads(outputs: tuple[Tensor, ...], given: OptionalTensors) -> list[Tensor | None]:
    """One cotangent for each output: the given one if its shape fits, ones for a scalar where none is given."""
    if given is None:
        grads: Sequence[Tensor | None] = (None,) * len(outputs)
    elif isinstance(given, Tensor):
        grads = (given,)
    else:
        grads = tuple(given)
    if len(grads) != len(outputs):
        raise GraphError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[Tensor | None] = []
    for i, (out, grad) in enumerate(zip(outputs, grads, strict=True)):
        if grad is None:
            if not out.requires_grad:
                made.append(None)
                continue
            if out.numel() != 1:
                raise GraphError(
                    "grad can be implicitly created only for scalar outputs; "
                    f"output {i} has shape {tuple(out.shape)}: pass the gradient to start from, or reduce it by sum()"
                )
            if not out.dtype.is_floating_point:
                raise GraphError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            made.append(_core.ones_like(out))
        elif isinstance(grad, Tensor):
            if grad.shape != out.shape:
                raise GraphError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} "
                    f"and output[{i}] has a shape of {out.shape}."
                )
            made.append(grad)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    return made


def backward(
    tensors: TensorOrTensors,
    grad_tensors: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: OptionalTensors = None,
    inputs: Any = None,
) -> None:
    """Add the vector-Jacobian product of ``tensors`` to ``.grad`` of the leaves they were computed from.

    Args:
        tensors: outputs to differentiate; each must require grad.
        grad_tensors: the vectors (cotangents), one of the output's shape for each output; None for a scalar is one.
        retain_graph: keep saved tensors for another pass; default is ``create_graph``.
        create_graph: record the backward pass, so that gradients can be differentiated again.
        grad_variables: old name of ``grad_tensors``.
        inputs: the only leaves (or tensors) to accumulate into; a tensor, a sequence or a dict of tensors.

    Raises:
        RuntimeError: an output is not scalar and has no cotangent, shapes differ, an output has no history, the
            graph was freed by an earlier pass, or a saved tensor was changed in place.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise GraphError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    into = () if inputs is None else _as_inputs("backward", inputs)
    outputs = _as_tensors("tensors", tensors)
    cotangents = _make_grads(outputs, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _core._run_backward(outputs, cotangents, keep, create_graph, into, True, True)


def grad(
    outputs: TensorOrTensors,
    inputs: Any,
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The vector-Jacobian product of ``outputs`` with respect to ``inputs``, without touching ``.grad``.

    Args:
        outputs: tensors to differentiate.
        inputs: tensors to differentiate by: a tensor, a sequence, or a dict (the result is a dict then).
        grad_outputs: the vectors (cotangents), as in :func:`backward`.
        retain_graph: keep saved tensors for another pass; default is ``create_graph``.
        create_graph: record the backward pass, for derivatives of higher order.
        only_inputs: ignored; False warns.
        allow_unused: give None for an input that the outputs do not depend on, in place of an error; default is
            ``materialize_grads``.
        is_grads_batched: not available before ``vmap``.
        materialize_grads: give zeros in place of None.

    Returns:
        A tuple with one gradient (shape and dtype of the input) or None for each input.

    Raises:
        RuntimeError: as :func:`backward`, or an input is not used and ``allow_unused`` is not set.
        ValueError: ``materialize_grads`` together with ``allow_unused=False``.
        NotImplementedError: ``is_grads_batched=True``.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        raise NotImplementedError(
            "autograd.grad: is_grads_batched=True comes with vmap, which this version does not have. "
            "Call grad once for each vector, with retain_graph=True."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use rgrad.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outs = _as_tensors("outputs", outputs)
    ins = _as_inputs("grad", inputs)
    cotangents = _make_grads(outs, grad_outputs)
    unused = materialize_grads if allow_unused is None else allow_unused
    keep = create_graph if retain_graph is None else retain_graph
    result: tuple[Tensor | None, ...] = _core._run_backward(outs, cotangents, keep, create_graph, ins, unused, False)
    if materialize_grads:
        result = tuple(
            _core.zeros_like(x, requires_grad=create_graph) if g is None else g
            for g, x in zip(result, ins, strict=True)
        )
    if type(inputs) is dict:
        return dict(zip(inputs, result, strict=True))
    return result
