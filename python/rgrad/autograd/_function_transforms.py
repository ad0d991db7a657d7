"""Custom Functions under transforms: one call is one operation at every level among its arguments.

A tracking level calls ``forward`` for the tensors one level lower and makes the node of its own from what
``setup_context`` saves of its own tensors. A batching level calls ``vmap``, or makes a Function of batches.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._transforms.levels import opened
from .._transforms.tangents import check_dual, tangents_enabled
from .._transforms.vmap import restore_vmap, unwrap_batched
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from .forward_ad import _is_fwd_grad_enabled
from .function import Function

_MORE = "See the documentation of custom Functions."


class VmapInfo(NamedTuple):
    """What a Function's ``vmap`` is told: the size of the batch, and what random operations shall do."""

    batch_size: int
    randomness: str


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """``cls.apply(*args)`` inside transforms, or with tangents."""
    if _core._top_level() > 0 and not cls._has_setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod; {cls.__name__} has a forward that takes ctx. {_MORE}"
        )
    return _apply(cls, args)


def _apply(cls: Any, args: tuple[Any, ...]) -> Any:
    number = max((_core._level_of(x) for x in args if isinstance(x, Tensor)), default=0)
    if number == 0:
        return _here(cls, args, number, None)
    level = opened(number)
    # Native code calls forward with recording off.
    inside = _core.is_grad_enabled()
    if level.size is None:
        return _here(cls, args, number, lambda *own: _one_lower(cls, level, inside, own))
    with level.mode_below(inside):
        return _batched(cls, number, VmapInfo(level.size, level.randomness), args)


def _one_lower(cls: Any, level: Any, inside: bool, args: tuple[Any, ...]) -> Any:
    """The outputs as the levels below compute them, as tensors of this level."""
    lower = [_core._unwrap(x, level.number)[0] if isinstance(x, Tensor) else x for x in args]
    with level.mode_below(inside):
        outputs = _apply(cls, tuple(lower))
    return _rewrapped(outputs, lower, args, lambda out, _: _core._wrap(out, level.number))


def _rewrapped(
    outputs: Any, lower: Any, args: Any, wrap: Callable[[Tensor, Any], Any], dims: list[Any] | None = None
) -> Any:
    """Outputs one level up. What is an argument is that argument itself: ``mark_dirty`` asks for identity."""
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


def _here(cls: Any, args: tuple[Any, ...], number: int, forward: Callable[..., Any] | None) -> Any:
    """One call at the level of its arguments, with the tangents of the outputs by ``jvp``."""
    tangents = []
    if _is_fwd_grad_enabled():
        tangents = [_core._tangent(x, number) if isinstance(x, Tensor) else None for x in args]
    if all(t is None for t in tangents):
        return _core._function_apply_here(cls, args, forward)[0]
    # The levels below need the tangents of what `jvp` computes; those that it computes at this level are dropped.
    with tangents_enabled(number > 0):
        outputs, ctx = _core._function_apply_here(cls, args, forward)
        given = tuple(
            _core.zeros_like(_core._primal(x)) if t is None and isinstance(x, Tensor) and ctx.materialize_grads else t
            for x, t in zip(args, tangents, strict=True)
        )
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
        for i, (out, tangent) in enumerate(zip(outs, found, strict=True)):
            if tangent is not None and not isinstance(tangent, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}.")
            if isinstance(out, Tensor):
                _give_tangent(out, tangent, args, given)
    return outputs


def _give_tangent(out: Tensor, tangent: Tensor | None, args: tuple[Any, ...], given: tuple[Any, ...]) -> None:
    for x, t in zip(args, given, strict=True):
        if out is x:
            if tangent is not None and tangent is not t:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                    "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
                )
            if tangent is not None:
                _core._set_tangent(out, tangent)
            return
    if tangent is None:
        return
    if not out.is_floating_point():
        raise RuntimeError(
            f"jvp gave a tangent for an output of {out.dtype}: Expected both tensor and its forward grad to be "
            f"floating "
            "point. Give None for this output."
        )
    check_dual(out, tangent)
    bases = [x._base if x._is_view() else x for x in args if isinstance(x, Tensor)]
    if out._is_view() and any(out._base is base for base in bases) and not tangent._is_view():
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    _core._set_tangent(out, _core._primal(tangent))


# ------------------------------------------------------------------------------------------------------ batches


def _batched(cls: Any, number: int, info: VmapInfo, args: tuple[Any, ...]) -> Any:
    overridden = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if overridden:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden "
                f"vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
                f"ambiguity. {_MORE}"
            )
        return _by_generated_rule(cls, number, info, args)
    if not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            f"implement the "
            f"vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    lower, in_dims = unwrap_batched(args, number)
    result = cls.vmap(info, in_dims, *lower)
    said = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
        "with "
        "the output. "
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
    return _rewrapped(
        outputs, lower, args, lambda out, dim: out if dim is None else _core._wrap(out, number, dim), dims
    )


def _by_generated_rule(cls: Any, number: int, info: VmapInfo, args: tuple[Any, ...]) -> Any:
    lower, in_dims = unwrap_batched(args, number)
    rule = _Rule(cls, info, in_dims)
    outputs = _apply(rule.function(), lower)
    flat, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(rule.out_dims, spec)
    return _rewrapped(
        tree_unflatten(flat, spec),
        lower,
        args,
        lambda out, dim: out if dim is None else _core._wrap(out, number, dim),
        dims,
    )


class _Context:
    """A context seen from inside a batch: everything but what is listed here is the real context's."""

    _own = ("_ctx", "_level", "_note", "_saved")

    def __init__(self, ctx: Any, level: int, note: "_Note", saved: tuple[Any, ...] = ()) -> None:
        self._ctx, self._level, self._note, self._saved = ctx, level, note, saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _Context._own:
            object.__setattr__(self, name, value)
        else:
            setattr(self._ctx, name, value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._saved

    def _lowered(self, tensors: tuple[Any, ...]) -> tuple[Any, Any]:
        return unwrap_batched(tensors, self._level)

    def save_for_backward(self, *tensors: Any) -> None:
        lower, self._note.backward_dims = self._lowered(tensors)
        self._ctx.save_for_backward(*lower)

    def save_for_forward(self, *tensors: Any) -> None:
        lower, self._note.forward_dims = self._lowered(tensors)
        self._ctx.save_for_forward(*lower)

    def mark_dirty(self, *tensors: Any) -> None:
        self._ctx.mark_dirty(*self._lowered(tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._ctx.mark_non_differentiable(*self._lowered(tensors)[0])


class _Note:
    """Which of the saved tensors have the batch, and the shapes of the inputs inside it; one for each context."""

    def __init__(self) -> None:
        self.backward_dims: tuple[Any, ...] = ()
        self.forward_dims: tuple[Any, ...] = ()
        self.shapes: tuple[Any, ...] = ()


class _Rule:
    """A Function of batches made of one of single examples: each of its methods runs inside a batch."""

    def __init__(self, cls: Any, info: VmapInfo, in_dims: tuple[Any, ...]) -> None:
        self.cls, self.info, self.in_dims = cls, info, in_dims
        self.out_dims: Any = None

    def _inside(self, func: Callable[..., Any], in_dims: Any) -> Callable[..., Any]:
        return restore_vmap(func, in_dims, self.info.batch_size, self.info.randomness)

    def function(self) -> Any:
        """The Function of batches."""
        methods = {name: staticmethod(getattr(self, name)) for name in ("forward", "setup_context", "backward", "jvp")}
        flags = {"clear_saved_tensors_on_access": self.cls.clear_saved_tensors_on_access, "generate_vmap_rule": True}
        return type(f"Vmapped{self.cls.__name__}", (Function,), {**methods, **flags})

    def forward(self, *args: Any) -> Any:
        outputs, self.out_dims = self._inside(self.cls.forward, self.in_dims)(*args)
        return outputs

    def _notes(self, ctx: Any) -> dict[int, _Note]:
        # A batch in a batch shares the context: each has notes of its own.
        if not hasattr(ctx, "_batch_notes"):
            ctx._batch_notes = {}
        notes: dict[int, _Note] = ctx._batch_notes
        return notes

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        note = self._notes(ctx)[id(self)] = _Note()

        def inner(own: tuple[Any, ...], out: Any) -> None:
            note.shapes = tuple(x.shape if isinstance(x, Tensor) else None for x in own)
            self.cls.setup_context(_Context(ctx, _core._top_level(), note), own, out)

        self._inside(inner, (self.in_dims, self.out_dims))(inputs, output)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        note = self._notes(ctx)[id(self)]
        dims = tuple(None if t is None else dim for t, dim in zip(tangents, self.in_dims, strict=True))

        def inner(saved: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
            return self.cls.jvp(_Context(ctx, _core._top_level(), note, saved), *own)

        saved = ctx.saved_tensors
        found, found_dims = self._inside(inner, (note.forward_dims or None, dims))(saved, tangents)
        several = isinstance(found, tuple)
        result = self._reduced(found, found_dims, self.out_dims)
        return result if several else result[0]

    def backward(self, ctx: Any, *grads: Any) -> Any:
        note = self._notes(ctx)[id(self)]
        out_dims = self.out_dims if isinstance(self.out_dims, tuple) else (self.out_dims,)
        dims = tuple(None if g is None else dim for g, dim in zip(grads, out_dims, strict=True))

        def inner(saved: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
            context = _Context(ctx, _core._top_level(), note, saved)
            method = self.cls.backward if "backward" in _defined(self.cls) else self.cls.vjp
            found = method(context, list(own)) if self.cls.boxed_grads_call else method(context, *own)
            found = found if isinstance(found, tuple) else (found,)
            # A gradient may be of a shape that was broadcast from the input's, which is seen only inside the batch.
            return tuple(
                g.sum_to_size(shape) if isinstance(g, Tensor) and shape is not None and g.shape != shape else g
                for g, shape in zip(found, (*note.shapes, *[None] * len(found)), strict=False)
            )

        saved = ctx.saved_tensors
        found, found_dims = self._inside(inner, (note.backward_dims or None, dims))(saved, grads)
        return self._reduced(found, found_dims, self.in_dims)

    def _reduced(self, values: Any, dims: Any, wanted: Any) -> tuple[Any, ...]:
        """Derivatives with the batch where what they belong to has it, summed over the batch where that has none."""
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


def _defined(cls: Any) -> set[str]:
    return {name for name in ("backward", "vjp") if getattr(cls, name) is not getattr(Function, name)}
