"""Custom Functions under transforms: one call is one operation at every level among its arguments.

A tracking level calls ``forward`` on the tensors one level lower. Its own node saves its own tensors, by
``setup_context``. A batching level calls ``vmap``, or the rule that ``generate_vmap_rule`` makes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._transforms.levels import inside_transform, open_level
from .._transforms.tangents import check_dual, fitting, is_differentiable, tangents_hidden
from .._transforms.vmap import restore_vmap, unwrap_batched
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from .function import Function

_MORE = "See the documentation of custom Functions."


class VmapInfo(NamedTuple):
    """What a Function's ``vmap`` is told: the size of the batch, and what random operations shall do."""

    batch_size: int
    randomness: str


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """``cls.apply(*args)`` inside transforms, or with tangents."""
    if not cls._has_setup_context and inside_transform():
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html (here: the documentation of custom Functions; "
            f"{cls.__name__} has a forward that takes ctx)"
        )
    return _apply(cls, args)


def _apply(cls: Any, args: tuple[Any, ...]) -> Any:
    number = max((_core._level_of(x) for x in args if isinstance(x, Tensor)), default=0)
    if number == 0:
        return _apply_at_level(cls, args, number, None)
    level = open_level(number)
    # Native code calls forward with recording off.
    inside = _core.is_grad_enabled()
    if level.size is None:
        return _apply_at_level(cls, args, number, lambda *own: _forward_below(cls, level, inside, own))
    with level.mode_below(inside):
        return _apply_batched(cls, number, VmapInfo(level.size, level.randomness), args)


def _forward_below(cls: Any, level: Any, inside: bool, args: tuple[Any, ...]) -> Any:
    """The outputs as the levels below compute them, as tensors of this level."""
    lower = [_core._unwrap(x, level.number)[0] if isinstance(x, Tensor) else x for x in args]
    with level.mode_below(inside):
        outputs = _apply(cls, tuple(lower))
    return _wrap_outputs(outputs, lower, args, lambda out, _: _core._wrap(out, level.number))


def _wrap_outputs(
    outputs: Any, lower: Any, args: Any, wrap: Callable[[Tensor, Any], Any], dims: list[Any] | None = None
) -> Any:
    """The outputs one level up. An output that is an argument is that same object: ``mark_dirty`` checks identity."""
    own = dict(zip(map(id, tree_flatten(lower)[0]), tree_flatten(args)[0], strict=True))
    flat, spec = tree_flatten(outputs)
    places = dims or [None] * len(flat)
    return tree_unflatten(
        [
            own.get(id(out)) if id(out) in own else wrap(out, dim) if isinstance(out, Tensor) else out
            for out, dim in zip(flat, places, strict=True)
        ],
        spec,
    )


# ------------------------------------------------------------------------------------------------------ tangents


def _apply_at_level(cls: Any, args: tuple[Any, ...], number: int, forward: Callable[..., Any] | None) -> Any:
    """One call at the level of its arguments, with the tangents of the outputs by ``jvp``."""
    tangents = []
    if not _core.is_inference_mode_enabled():
        tangents = [_core._tangent(x, number) if isinstance(x, Tensor) else None for x in args]
    # At this level `forward` and `jvp` see no tangents, since their results are values and tangents of this level.
    with tangents_hidden(number):
        outputs, ctx = _core._function_apply_here(cls, args, forward)
        if all(t is None for t in tangents):
            return outputs
        given = tuple(
            _core.zeros_like(_core._primal(x))
            if t is None and isinstance(x, Tensor) and is_differentiable(x) and ctx.materialize_grads
            else t
            for x, t in zip(args, tangents, strict=True)
        )
        versions = [None if t is None else t._version for t in tangents]
        ctx._begin_jvp()
        try:
            moved = cls.jvp(ctx, *given)
        finally:
            ctx._end_jvp()
    several = isinstance(outputs, tuple)
    outs = outputs if several else (outputs,)
    found = moved if isinstance(moved, tuple) else (moved,)
    if len(found) != len(outs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got "
            f"{len(found)})"
        )
    inputs = list(zip(args, tangents, versions, strict=True))
    for i, (out, tangent, has_derivative) in enumerate(zip(outs, found, ctx._differentiable(), strict=True)):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}.")
        if not isinstance(out, Tensor):
            continue
        if has_derivative:
            _set_output_tangent(out, tangent, inputs)
        elif tangent is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not "
                "a differentiable Tensor.You should return None at that position instead."
            )
    return outputs


def _set_output_tangent(out: Tensor, tangent: Tensor | None, inputs: list[tuple[Any, Any, Any]]) -> None:
    """Give an output the tangent that ``jvp`` returned; ``inputs`` has each argument, its tangent and that's version.

    A written input keeps its tangent, which ``jvp`` must have written. A view has a view of its input's tangent.
    """
    for x, before, version in inputs:
        if out is not x:
            continue
        if before is None:
            if tangent is not None:
                check_dual(out, tangent)
                _core._write_tangent(out, _core._primal(tangent))
        elif tangent is None or tangent._version == version:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
            )
        elif tangent is not before:
            raise RuntimeError(
                "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is "
                "modifying an input inplace, then the jvp function must modify the gradient inplace and return it "
                "as-is."
            )
        return
    if tangent is not None and not is_differentiable(tangent):
        raise RuntimeError(
            f"Expected both tensor and its forward grad to be floating point or complex, but jvp gave {tangent.dtype}"
        )
    viewed = [
        before for x, before, _ in inputs if out._is_view() and isinstance(x, Tensor) and _base_of(x) is out._base
    ]
    for before in viewed:
        if before is None:
            if tangent is not None:
                check_dual(out, tangent)
                _core._write_tangent(out, _core._primal(tangent))
            return
        if tangent is None or not tangent._is_view():
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a "
                "view."
            )
        if tangent._base is not _base_of(before):
            of = "the same base as the given" if before._is_view() else "the given"
            raise RuntimeError(
                f"A custom Function is returning a view but the jvp is not returning a view of {of} grad input."
            )
    if tangent is not None:
        check_dual(out, tangent)
        _core._set_tangent(out, _core._primal(fitting(out, tangent)))


def _base_of(x: Tensor) -> Any:
    return x._base if x._is_view() else x


# ------------------------------------------------------------------------------------------------------ batches


def _apply_batched(cls: Any, number: int, info: VmapInfo, args: tuple[Any, ...]) -> Any:
    if open_level(number).of_gradients:
        # As without transforms: the methods run on tensors with a hidden dimension.
        return _apply_generated_rule(cls, number, info, args)
    overridden = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if overridden:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden "
                "vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
                f"staticmethod to avoid ambiguity. {_MORE}"
            )
        return _apply_generated_rule(cls, number, info, args)
    if not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            f"implement the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    lower, in_dims = unwrap_batched(args, number)
    result = cls.vmap(info, in_dims, *lower)
    said = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
        "with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(said + f"Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(said + f"Got {len(result)} returns instead")
    outputs, out_dims = result
    spec = tree_structure(outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_structure(out_dims)} but output has structure {spec}. {_MORE}"
        )
    return _wrap_outputs(
        outputs, lower, args, lambda out, dim: out if dim is None else _core._wrap(out, number, dim), dims
    )


def _apply_generated_rule(cls: Any, number: int, info: VmapInfo, args: tuple[Any, ...]) -> Any:
    lower, in_dims = unwrap_batched(args, number)
    rule = _GeneratedRule(cls, info, in_dims, open_level(number).of_gradients)
    outputs = _apply(rule.function(), lower)
    flat, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(rule.out_dims, spec)
    return _wrap_outputs(
        tree_unflatten(flat, spec),
        lower,
        args,
        lambda out, dim: out if dim is None else _core._wrap(out, number, dim),
        dims,
    )


class _BatchedContext:
    """The context that a method sees inside a batch; what is not defined here is passed on to the real context."""

    _own = ("_ctx", "_level", "_dims_of_saved", "_saved")

    def __init__(self, ctx: Any, level: int, dims_of_saved: "_SavedBatchDims", saved: tuple[Any, ...] = ()) -> None:
        self._ctx, self._level, self._dims_of_saved, self._saved = ctx, level, dims_of_saved, saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _BatchedContext._own:
            object.__setattr__(self, name, value)
        else:
            setattr(self._ctx, name, value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._saved

    def _unwrapped(self, tensors: tuple[Any, ...]) -> tuple[Any, Any]:
        return unwrap_batched(tensors, self._level)

    def save_for_backward(self, *tensors: Any) -> None:
        lower, self._dims_of_saved.backward_dims = self._unwrapped(tensors)
        self._ctx.save_for_backward(*lower)

    def save_for_forward(self, *tensors: Any) -> None:
        lower, self._dims_of_saved.forward_dims = self._unwrapped(tensors)
        self._ctx.save_for_forward(*lower)

    def mark_dirty(self, *tensors: Any) -> None:
        self._ctx.mark_dirty(*self._unwrapped(tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._ctx.mark_non_differentiable(*self._unwrapped(tensors)[0])


class _SavedBatchDims:
    """The batch dimensions of saved tensors, and the shapes of the inputs without the batch; one for each context."""

    def __init__(self) -> None:
        self.backward_dims: tuple[Any, ...] = ()
        self.forward_dims: tuple[Any, ...] = ()
        self.shapes: tuple[Any, ...] = ()


class _GeneratedRule:
    """The Function of batches that ``generate_vmap_rule`` makes: its methods are the original ones inside a batch."""

    def __init__(self, cls: Any, info: VmapInfo, in_dims: tuple[Any, ...], of_gradients: bool) -> None:
        self.cls, self.info, self.in_dims, self.of_gradients = cls, info, in_dims, of_gradients
        self.out_dims: Any = None

    def _inside(self, func: Callable[..., Any], in_dims: Any) -> Callable[..., Any]:
        return restore_vmap(func, in_dims, self.info.batch_size, self.info.randomness, self.of_gradients)

    def function(self) -> Any:
        """The Function of batches."""
        methods = {name: staticmethod(getattr(self, name)) for name in ("forward", "setup_context", "backward", "jvp")}
        if not self.cls._has_setup_context:
            methods["forward"] = staticmethod(self.forward_with_context)
            del methods["setup_context"]
        flags = {"clear_saved_tensors_on_access": self.cls.clear_saved_tensors_on_access, "generate_vmap_rule": True}
        return type(f"Vmapped{self.cls.__name__}", (Function,), {**methods, **flags})

    def forward(self, *args: Any) -> Any:
        outputs, self.out_dims = self._inside(self.cls.forward, self.in_dims)(*args)
        return outputs

    def forward_with_context(self, ctx: Any, *args: Any) -> Any:
        dims_of_saved = self._dims_of(ctx)[id(self)] = _SavedBatchDims()

        def inner(*own: Any) -> Any:
            dims_of_saved.shapes = tuple(x.shape if isinstance(x, Tensor) else None for x in own)
            return self.cls.forward(_BatchedContext(ctx, _core._top_level(), dims_of_saved), *own)

        outputs, self.out_dims = self._inside(inner, self.in_dims)(*args)
        return outputs

    def _dims_of(self, ctx: Any) -> dict[int, _SavedBatchDims]:
        # Nested batches share the context: each rule has an entry of its own. The attribute may not begin with
        # `_saved`: such names are looked up among the saved tensors.
        if not hasattr(ctx, "_batch_dims"):
            ctx._batch_dims = {}
        by_rule: dict[int, _SavedBatchDims] = ctx._batch_dims
        return by_rule

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        dims_of_saved = self._dims_of(ctx)[id(self)] = _SavedBatchDims()

        def inner(own: tuple[Any, ...], out: Any) -> None:
            dims_of_saved.shapes = tuple(x.shape if isinstance(x, Tensor) else None for x in own)
            self.cls.setup_context(_BatchedContext(ctx, _core._top_level(), dims_of_saved), own, out)

        self._inside(inner, (self.in_dims, self.out_dims))(inputs, output)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        dims_of_saved = self._dims_of(ctx)[id(self)]
        dims = tuple(None if t is None else dim for t, dim in zip(tangents, self.in_dims, strict=True))

        def inner(saved: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
            return self.cls.jvp(_BatchedContext(ctx, _core._top_level(), dims_of_saved, saved), *own)

        saved = ctx.saved_tensors
        found, found_dims = self._inside(inner, (dims_of_saved.forward_dims or None, dims))(saved, tangents)
        several = isinstance(found, tuple)
        result = self._summed_where_unbatched(found, found_dims, self.out_dims)
        return result if several else result[0]

    def backward(self, ctx: Any, *grads: Any) -> Any:
        dims_of_saved = self._dims_of(ctx)[id(self)]
        out_dims = self.out_dims if isinstance(self.out_dims, tuple) else (self.out_dims,)
        dims = tuple(None if g is None else dim for g, dim in zip(grads, out_dims, strict=True))

        def inner(saved: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
            context = _BatchedContext(ctx, _core._top_level(), dims_of_saved, saved)
            method = self.cls.backward if "backward" in _own_methods(self.cls) else self.cls.vjp
            found = method(context, list(own)) if self.cls.boxed_grads_call else method(context, *own)
            found = found if isinstance(found, tuple) else (found,)
            # A gradient may have a shape that was broadcast from the input's. That is visible only inside the batch.
            return tuple(
                g.sum_to_size(shape) if isinstance(g, Tensor) and shape is not None and g.shape != shape else g
                for g, shape in zip(found, (*dims_of_saved.shapes, *[None] * len(found)), strict=False)
            )

        saved = ctx.saved_tensors
        found, found_dims = self._inside(inner, (dims_of_saved.backward_dims or None, dims))(saved, grads)
        return self._summed_where_unbatched(found, found_dims, self.in_dims)

    def _summed_where_unbatched(self, values: Any, dims: Any, wanted: Any) -> tuple[Any, ...]:
        """Derivatives with a batch dimension where their inputs have one, else summed over the batch."""
        flat = values if isinstance(values, tuple) else (values,)
        have = dims if isinstance(dims, tuple) else (dims,)
        want = wanted if isinstance(wanted, tuple) else (wanted,)
        result = []
        for value, dim, target in zip(flat, have, (*want, *[None] * len(flat)), strict=False):
            if not isinstance(value, Tensor) or (dim is None and target is None):
                result.append(value)
            elif target is None:
                result.append(value.sum(0))
            elif dim is None:
                result.append(value.unsqueeze(0).expand(self.info.batch_size, *value.shape))
            else:
                result.append(value)
        return tuple(result)


def _own_methods(cls: Any) -> set[str]:
    return {name for name in ("backward", "vjp") if getattr(cls, name) is not getattr(Function, name)}
