"""Derivatives of functions of tensors: Jacobians, Hessians, and their products with vectors.

Everything but Jacobians by ``strategy="forward-mode"`` is computed by backward passes; products ``J v`` take two
(differentiating the vector-Jacobian product by its vector). With ``strict`` a result that is zero because nothing
depends on an input is an error, else zeros.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from .. import _core
from .._core import Tensor
from .._transforms.levels import basis, batching
from ._batched import stacked
from ._functional_arguments import (
    Func,
    _called,
    _prepared,
    _require_curvature,
    _require_history,
    _tensors,
    _vector,
)
from .backward import grad
from .forward_ad import dual_level, make_dual, unpack_dual
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
Inputs = TypeVar("Inputs", Tensor, Tensors)
Outputs = TypeVar("Outputs", Tensor, Tensors)


def _grad(
    outputs: tuple[Tensor | None, ...],
    inputs: tuple[Tensor, ...],
    vectors: tuple[Tensor, ...] | None,
    create_graph: bool,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """``autograd.grad`` that leaves out outputs without history."""
    given = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, given, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, vecs = zip(*pairs, strict=True)
    return grad(
        outs,
        inputs,
        vecs,
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=True,
        is_grads_batched=is_grads_batched,
    )


def _filled(
    grads: tuple[Tensor | None, ...],
    like: tuple[Tensor, ...],
    strict: bool,
    create_graph: bool,
    missing: str,
    constant: str,
) -> tuple[Tensor, ...]:
    """Zeros for None; in strict mode an error for None and, under create_graph, for what is constant."""
    result = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(missing.format(i) + " This is not allowed in strict mode.")
            result.append(_core.zeros_like(x))
        else:
            if strict and create_graph and not g.requires_grad:
                raise RuntimeError(constant.format(i) + " This is not allowed in strict mode when create_graph=True.")
            result.append(g)
    return tuple(result)


_NO_OUTPUT = "The output of the user-provided function is independent of input {}."
_NO_JACOBIAN = "The jacobian of the user-provided function is independent of input {}."
_NO_HESSIAN = "The hessian of the user-provided function is independent of input {}."
_NO_TRICK = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients."
)
_NO_HESSIAN_TRICK = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian, so the double "
    "backward trick cannot replace forward mode AD."
)


def _result(values: tuple[Tensor, ...], create_graph: bool, is_tuple: bool) -> Any:
    done = values if create_graph else tuple(value.detach() for value in values)
    return done if is_tuple else done[0]


def vjp(
    func: Callable[..., Outputs],
    inputs: Inputs,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Inputs]:
    """Compute ``func(inputs)`` and the vector-Jacobian product ``vᵀ J``.

    Args:
        func: A function that takes and gives a tensor or a tuple of tensors.
        inputs: The point, a tensor or a tuple.
        v: The vector, of the shapes of the outputs; it may be None for one output with one element.
        create_graph: Make results differentiable.
        strict: Raise if the outputs do not depend on an input.

    Returns:
        The outputs, and one tensor of the shape of each input; tuples where outputs and inputs are tuples.

    Raises:
        TypeError: An input, an output or a part of ``v`` is no tensor.
        RuntimeError: ``v`` does not fit, or ``strict`` is violated.

    Example:
        >>> x = rgrad.tensor([1.0, 2.0])
        >>> output, product = rgrad.autograd.functional.vjp(lambda x: x**2, x, rgrad.tensor([1.0, 10.0]))
        >>> product
        tensor([ 2., 40.])
    """
    with enable_grad():
        many_in, given = _tensors(inputs, "inputs", "vjp")
        xs = _prepared(given, create_graph)
        many_out, outs = _called(func, xs, "vjp")
        _require_history(outs, strict)
        vector = _vector(
            v, outs, many_out, "vjp", "the user-provided function returns a single Tensor with a single element"
        )
        found = _filled(_grad(outs, xs, vector, create_graph), xs, strict, create_graph, _NO_OUTPUT, _NO_JACOBIAN)
    return _result(outs, create_graph, many_out), _result(found, create_graph, many_in)


def jvp(
    func: Callable[..., Outputs],
    inputs: Tensor | Tensors,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Outputs]:
    """Compute ``func(inputs)`` and the Jacobian-vector product ``J v``, by two backward passes.

    Args:
        func: A function that takes and gives a tensor or a tuple of tensors.
        inputs: The point, a tensor or a tuple.
        v: The vector, of the shapes of the inputs; it may be None for one input with one element.
        create_graph: Make results differentiable.
        strict: Raise if the outputs do not depend on an input.

    Returns:
        The outputs, and one tensor of the shape of each output; tuples where the outputs are a tuple.

    Raises:
        TypeError: An input, an output or a part of ``v`` is no tensor.
        RuntimeError: ``v`` does not fit, or ``strict`` is violated.

    Example:
        >>> x = rgrad.tensor([1.0, 2.0])
        >>> output, product = rgrad.autograd.functional.jvp(lambda x: x**2, x, rgrad.tensor([1.0, 10.0]))
        >>> product
        tensor([ 2., 40.])
    """
    with enable_grad():
        many_in, given = _tensors(inputs, "inputs", "jvp")
        xs = _prepared(given, create_graph)
        vector = _vector(
            v, xs, many_in, "jvp", "the input to the user-provided function is a single Tensor with a single element"
        )
        many_out, outs = _called(func, xs, "jvp")
        _require_history(outs, strict)
        # vᵀ J is linear in v: its derivative by v, applied to a vector, is J times that vector.
        dummies = tuple(_core.zeros_like(out).requires_grad_() for out in outs)
        products = _grad(outs, xs, dummies, True)
        for i, product in enumerate(products):
            if strict and product is None:
                raise RuntimeError(_NO_OUTPUT.format(i) + " This is not allowed in strict mode.")
            if strict and product is not None and not product.requires_grad:
                raise RuntimeError(
                    f"The gradient with respect to input {i} is independent of the inputs of the user-provided "
                    "function. This is not allowed in strict mode."
                )
        found = _filled(
            _grad(products, dummies, vector, create_graph), outs, strict, create_graph, _NO_TRICK, _NO_JACOBIAN
        )
    return _result(outs, create_graph, many_out), _result(found, create_graph, many_out)


def _check_strategy(strategy: str, where: str, name: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". {where} got {name}={strategy!r}. Hint: '
            '"forward-mode" tends to be faster for functions with more outputs than inputs, "reverse-mode" for others.'
        )


@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors: ...
@overload
def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors: ...
@overload
def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[Tensors, ...]: ...
def jacobian(
    func: Func,
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the Jacobian of ``func`` at ``inputs``, by default by one backward pass for each element of the outputs.

    Args:
        func: A function that takes and gives a tensor or a tuple of tensors.
        inputs: The point, a tensor or a tuple.
        create_graph: Make the result differentiable.
        strict: Raise if an output does not depend on an input.
        vectorize: Compute all rows (or columns) in one pass over a batch; not together with ``strict``.
        strategy: ``"reverse-mode"``, or ``"forward-mode"``: by columns, one pass forward. That needs ``vectorize``,
            excludes ``create_graph`` and ``strict``, and the result has the history of ``inputs``.

    Returns:
        For one output and one input a tensor of shape ``output.shape + input.shape``; a tuple over inputs, or over
        outputs, or a tuple over outputs of tuples over inputs where these are tuples.

    Raises:
        TypeError: An input or an output is no tensor.
        RuntimeError: ``strict`` is violated, or given with ``vectorize`` or ``"forward-mode"``.
        NotImplementedError: ``"forward-mode"`` is given with ``create_graph=True`` or ``vectorize=False``.
        AssertionError: ``strategy`` is none of the two.

    Example:
        >>> rgrad.autograd.functional.jacobian(lambda x: x.flip(0) * 2, rgrad.tensor([1.0, 2.0]))
        tensor([[0., 2.],
                [2., 0.]])
    """
    _check_strategy(strategy, "jacobian", "strategy")
    if strategy == "forward-mode":
        return _by_columns(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        many_in, given = _tensors(inputs, "inputs", "jacobian")
        xs = _prepared(given, create_graph)
        many_out, outs = _called(func, xs, "jacobian")
        _require_history(outs, strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "rgrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                    "together. Please either set `strict=False` or `vectorize=False`."
                )
            return _nested(_all_rows(outs, xs, create_graph), create_graph, many_in, many_out)
        rows = [_rows(out, i, xs, create_graph, strict) for i, out in enumerate(outs)]
        blocks = tuple(
            tuple(_block(entries, out, x) for entries, x in zip(per_output, xs, strict=True))
            for per_output, out in zip(rows, outs, strict=True)
        )
    return _nested(blocks, create_graph, many_in, many_out)


def _block(rows: list[Tensor], out: Tensor, x: Tensor) -> Tensor:
    """The rows of a Jacobian as one tensor."""
    stacked_rows = _core.stack(rows, 0) if rows else _core.zeros(0, *x.shape, dtype=x.dtype, device=x.device)
    return stacked_rows.reshape(tuple(out.shape) + tuple(x.shape))


def _nested(blocks: tuple[tuple[Tensor, ...], ...], create_graph: bool, many_in: bool, many_out: bool) -> Any:
    per_output = tuple(_result(block, create_graph, many_in) for block in blocks)
    return per_output if many_out else per_output[0]


def _all_rows(outs: tuple[Tensor, ...], xs: tuple[Tensor, ...], create_graph: bool) -> tuple[tuple[Tensor, ...], ...]:
    """The blocks of the Jacobian by one backward pass over a batch of cotangents."""
    sizes = [out.numel() for out in outs]
    total = sum(sizes)
    found = _grad(outs, xs, tuple(basis(list(outs))), create_graph, None, True) if total else (None,) * len(xs)
    per_input = [
        (_core.zeros_like(x).expand(total, *x.shape) if g is None else g).split(sizes, 0)
        for g, x in zip(found, xs, strict=True)
    ]
    return tuple(
        tuple(rows[o].reshape(tuple(out.shape) + tuple(x.shape)) for rows, x in zip(per_input, xs, strict=True))
        for o, out in enumerate(outs)
    )


def _by_columns(func: Func, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by forward mode over a batch of tangents."""
    if create_graph:
        raise NotImplementedError(
            'rgrad.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            'rgrad.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    many_in, xs = _tensors(inputs, "inputs", "jacobian")
    sizes = [x.numel() for x in xs]
    total = sum(sizes)
    with batching(total, "unsupported", of_gradients=True) as level, dual_level():
        duals = tuple(
            make_dual(x, _core._wrap(tangent, level, 0)) for x, tangent in zip(xs, basis(list(xs)), strict=True)
        )
        many_out, outs = _called(func, duals, "jacobian")
        columns = []
        for out in outs:
            primal, tangent = unpack_dual(out)
            columns.append(stacked(_core.zeros_like(primal) if tangent is None else tangent, level, total))
    blocks = tuple(
        tuple(
            part.reshape(tuple(column.shape[1:]) + tuple(x.shape))
            for part, x in zip(column.movedim(0, -1).split(sizes, -1), xs, strict=True)
        )
        for column in columns
    )
    return _nested(blocks, True, many_in, many_out)


def _rows(
    out: Tensor, position: int, xs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[list[Tensor], ...]:
    """Gradients of every element of one output: for each input a list."""
    rows: tuple[list[Tensor], ...] = tuple([] for _ in xs)
    flat = out.reshape(-1)
    for j in range(out.numel()):
        for i, (row, x, g) in enumerate(zip(rows, xs, _grad((flat[j],), xs, None, create_graph, True), strict=True)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {position} of the user-provided function is independent of input {i}. This is not "
                        "allowed in strict mode."
                    )
                g = _core.zeros_like(x)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    _NO_JACOBIAN.format(i) + " This is not allowed in strict mode when create_graph=True."
                )
            row.append(g)
    return rows


def _single_number(out: Any, where: str, strict: bool) -> Tensor:
    """What a function gave, if it is a tensor with one element, in strict mode one that requires grad."""
    is_tuple, outs = _tensors(out, "outputs of the user-provided function", where)
    _require_history(outs, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {where} should return a single Tensor")
    if outs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")
    return outs[0]


@overload
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> tuple[Tensors, ...]: ...
def hessian(
    func: Func,
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the matrix of second derivatives of a function with one number as result.

    Args:
        func: A function that takes a tensor or a tuple of tensors and gives a tensor with one element.
        inputs: The point, a tensor or a tuple.
        create_graph: Make the result differentiable.
        strict: Raise if the result or the gradient does not depend on an input.
        vectorize: Compute all rows of the derivative of the gradient in one pass over a batch.
        outer_jacobian_strategy: ``"reverse-mode"`` or ``"forward-mode"`` for the derivative of the gradient, as
            ``strategy`` of :func:`jacobian`.

    Returns:
        For one input a tensor of shape ``input.shape + input.shape``; for a tuple a tuple of tuples, block i, j with
        shape ``inputs[i].shape + inputs[j].shape``.

    Raises:
        TypeError: An input or the result is no tensor.
        RuntimeError: The result is not one number, or as :func:`jacobian`.
        NotImplementedError: As :func:`jacobian`.
        AssertionError: ``outer_jacobian_strategy`` is none of the two.

    Example:
        >>> rgrad.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], rgrad.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    _check_strategy(outer_jacobian_strategy, "hessian", "outer_jacobian_strategy")
    many_in, given = _tensors(inputs, "inputs", "hessian")

    def first(*xs: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            # Only what requires grad keeps its tangent in the inner Jacobian.
            xs = tuple(_core._require_grad(x) for x in xs)
        found = jacobian(lambda *args: _single_number(func(*args), "hessian", strict).squeeze(), xs, create_graph=True)
        _require_curvature(found, strict)
        result: tuple[Tensor, ...] = found
        return result

    found = jacobian(
        first,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return found if many_in else found[0][0]


def vhp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """Compute ``func(inputs)`` and ``vᵀ H`` with the Hessian H, by a backward pass over a backward pass.

    Args:
        func: A function that takes a tensor or a tuple of tensors and gives a tensor with one element.
        inputs: The point, a tensor or a tuple.
        v: The vector, of the shapes of the inputs; it may be None for one input with one element.
        create_graph: Make results differentiable.
        strict: Raise if the result or the gradient does not depend on an input.

    Returns:
        The result of ``func``, and one tensor of the shape of each input; a tuple where the inputs are one.

    Raises:
        TypeError: An input, the result or a part of ``v`` is no tensor.
        RuntimeError: ``v`` does not fit, the result is not one number, or ``strict`` is violated.

    Example:
        >>> x, v = rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 0.0])
        >>> rgrad.autograd.functional.vhp(lambda x: x[0] ** 2 * x[1], x, v)
        (tensor(2.), tensor([4., 2.]))
    """
    with enable_grad():
        many_in, given = _tensors(inputs, "inputs", "vhp")
        xs = _prepared(given, create_graph)
        vector = _vector(
            v, xs, many_in, "vhp", "the input to the user-provided function is a single Tensor with a single element"
        )
        out = _single_number(func(*xs), "vhp", strict)
        gradient = _grad((out,), xs, None, True)
        _require_curvature(gradient, strict)
        first = _filled(gradient, xs, strict, True, _NO_OUTPUT, _NO_JACOBIAN)
        second = _grad(first, xs, vector, create_graph)
        found = _filled(second, xs, strict, create_graph, _NO_JACOBIAN, _NO_HESSIAN)
    return _result((out,), create_graph, False), _result(found, create_graph, many_in)


def hvp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """Compute ``func(inputs)`` and ``H v`` with the Hessian H, by three backward passes.

    For twice continuously differentiable functions H is symmetric and :func:`vhp` gives the same for less.

    Args:
        func: A function that takes a tensor or a tuple of tensors and gives a tensor with one element.
        inputs: The point, a tensor or a tuple.
        v: The vector, of the shapes of the inputs; it may be None for one input with one element.
        create_graph: Make results differentiable.
        strict: Raise if the result or the gradient does not depend on an input.

    Returns:
        The result of ``func``, and one tensor of the shape of each input; a tuple where the inputs are one.

    Raises:
        TypeError: An input, the result or a part of ``v`` is no tensor.
        RuntimeError: ``v`` does not fit, the result is not one number, or ``strict`` is violated.

    Example:
        >>> x, v = rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 0.0])
        >>> rgrad.autograd.functional.hvp(lambda x: x[0] ** 2 * x[1], x, v)
        (tensor(2.), tensor([4., 2.]))
    """
    with enable_grad():
        many_in, given = _tensors(inputs, "inputs", "hvp")
        xs = _prepared(given, create_graph)
        vector = _vector(
            v, xs, many_in, "hvp", "the input to the user-provided function is a single Tensor with a single element"
        )
        out = _single_number(func(*xs), "hvp", strict)
        gradient = _grad((out,), xs, None, True)
        _require_curvature(gradient, strict)
        first = _filled(gradient, xs, strict, True, _NO_OUTPUT, _NO_JACOBIAN)
        dummies = tuple(_core.zeros_like(x).requires_grad_() for x in xs)
        second = _grad(first, xs, dummies, True)
        if strict:
            _filled(second, xs, True, True, _NO_JACOBIAN, _NO_HESSIAN)
        third = _grad(second, dummies, vector, create_graph)
        found = _filled(third, xs, strict, create_graph, _NO_HESSIAN_TRICK, _NO_HESSIAN)
    return _result((out,), create_graph, False), _result(found, create_graph, many_in)
