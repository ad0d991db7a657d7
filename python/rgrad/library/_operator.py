"""An operator of one's own: what runs for a call, on which device, recorded by which Function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from threading import local
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.guards import NoGradGuard
from ..amp.autocast_mode import _cast, autocast
from ..autograd.function import Function
from ..ops import OpOverload, OpOverloadPacket
from ._schema import Schema, bind

# Dispatch keys of PyTorch by what they are here.
KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "MPS": "mps",
    "XPU": "xpu",
    "PrivateUse1": "wgpu",
    "CompositeExplicitAutograd": "default",
    "CompositeExplicitAutogradNonFunctional": "default",
    "CompositeImplicitAutograd": "composite",
    "": "composite",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd",
    "AutocastCPU": "autocast cpu",
    "AutocastCUDA": "autocast cuda",
    "AutocastXPU": "autocast xpu",
    "AutocastMPS": "autocast mps",
    "AutocastPrivateUse1": "autocast wgpu",
}


class _Inside(local):
    """The operators whose Autograd or autocast kernel runs on this thread, and the fake implementations that do."""

    def __init__(self) -> None:
        self.operators: list[Any] = []
        self.autocast: list[Any] = []
        self.fake: list[Any] = []


INSIDE = _Inside()


class FakeImplCtx:
    """What :func:`rgrad.library.get_ctx` gives inside a fake implementation."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """Refused: tensors of the meta device have sizes that are numbers.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "library.get_ctx().new_dynamic_size: a result whose size depends on values has no form on the meta device"
        )

    new_dynamic_size_ = create_unbacked_symint = new_dynamic_size


class _Call:
    """How the arguments of a call were flattened; its results, once they are there."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.counts = [len(a) if _is_tensors(a) else None for a in args]
        self.kwargs = kwargs
        self.outputs: list[int | None] = []
        self.single = True

    def flatten(self, args: Sequence[Any]) -> list[Any]:
        flat: list[Any] = []
        for a, count in zip(args, self.counts, strict=True):
            flat.extend(a) if count is not None else flat.append(a)
        return flat

    def unflatten(self, flat: Sequence[Any]) -> list[Any]:
        return _grouped(flat, self.counts)

    def take_outputs(self, result: Any) -> Any:
        """The results as a flat tuple."""
        self.single = not isinstance(result, tuple)
        outs = (result,) if self.single else result
        self.outputs = [len(o) if isinstance(o, list) else None for o in outs]
        flat: list[Any] = []
        for o in outs:
            flat.extend(o) if isinstance(o, list) else flat.append(o)
        return tuple(flat)

    def give_outputs(self, flat: Any) -> Any:
        grouped = _grouped(flat, self.outputs)
        return grouped[0] if self.single else tuple(grouped)


def _is_tensors(x: Any) -> bool:
    return isinstance(x, list) and any(isinstance(one, Tensor) for one in x)


def _grouped(flat: Sequence[Any], counts: Sequence[int | None]) -> list[Any]:
    made, at = [], 0
    for count in counts:
        if count is None:
            made.append(flat[at])
            at += 1
        else:
            made.append(list(flat[at : at + count]))
            at += count
    return made


class _Context:
    """The context that formulas see: ``needs_input_grad`` has the form of the arguments."""

    def __init__(self, ctx: Any, call: _Call) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_call", call)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ctx, name)
        return tuple(self._call.unflatten(found[1:])) if name == "needs_input_grad" else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ctx, name)


class Operator(OpOverload):
    """One operator: ``ops.namespace.name.overload``.

    Args:
        packet: The name with all overloads.
        schema: What it takes and gives.
        recorded: Whether calls are recorded as one Function even without a formula, as those of ``custom_op`` are.
    """

    __slots__ = (
        "_autocast_dtypes",
        "_autograd",
        "_backward",
        "_disabled",
        "_fake",
        "_function",
        "_kernels",
        "_recorded",
        "_schema",
        "_setup_context",
        "_vmap",
        "tags",
    )

    def __init__(self, packet: OpOverloadPacket, schema: Schema, recorded: bool) -> None:
        super().__init__(packet, schema.overload_name or "default")
        self._schema = schema
        self._recorded = recorded
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._disabled: set[str] = set()
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._autograd: Callable[..., Any] | None = None
        self._autocast_dtypes: dict[str, Any] = {}
        self._function: Any = None
        self.tags: list[Any] = []

    @property
    def qualname(self) -> str:
        """``"namespace::name"``."""
        return f"{self.namespace}::{self.overloadpacket.__name__}"

    # -------------------------------------------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = [*args, *kwargs.values()]
        leaves += [one for leaf in leaves if isinstance(leaf, (list, tuple)) for one in leaf]
        if _core._has_torch_function(leaves):
            return _core._ask_torch_function(self, leaves, args, kwargs)
        own, named = bind(self.qualname, self._schema, args, kwargs)
        device = self._device_of(own, named)
        autocasts = self._kernels.get(f"autocast {device}")
        if autocasts is not None and _core.is_autocast_enabled(device) and self not in INSIDE.autocast:
            INSIDE.autocast.append(self)
            try:
                return autocasts(*own, **named)
            finally:
                INSIDE.autocast.pop()
        if device in self._autocast_dtypes and _core.is_autocast_enabled(device):
            to = self._autocast_dtypes[device]
            with autocast(device_type=device, enabled=False):
                return self._dispatch(_cast(own, device, to), _cast(named, device, to), device)
        return self._dispatch(own, named, device)

    def _dispatch(self, args: list[Any], kwargs: dict[str, Any], device: str) -> Any:
        needs = _core.is_grad_enabled() and any(t.requires_grad for t in _tensors(args, kwargs))
        if self._autograd is not None and needs and self not in INSIDE.operators:
            INSIDE.operators.append(self)
            try:
                return self._autograd(*args, **kwargs)
            finally:
                INSIDE.operators.pop()
        if self._schema.is_mutable:
            with NoGradGuard() if self._recorded else contextlib.nullcontext():
                return self._with_event(args, kwargs, device)
        if self._recorded or self._backward is not None or self._vmap is not None:
            call = _Call(args, kwargs)
            flat = self._as_function().apply(call, *call.flatten(args))
            return call.give_outputs(flat if isinstance(flat, tuple) else (flat,))
        return self._with_event(args, kwargs, device)

    def _with_event(self, args: list[Any], kwargs: dict[str, Any], device: str) -> Any:
        event = _core._profiler_range(self.qualname)
        try:
            return self._run(args, kwargs, device)
        finally:
            if event is not None:
                event.close()

    def _device_of(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        kinds = [t.device.type for t in _tensors(args, kwargs)]
        if "meta" in kinds:
            return "meta"
        if kinds:
            return str(next((kind for kind in kinds if kind != "cpu"), "cpu"))
        given = next((x for x in (*args, *kwargs.values()) if isinstance(x, _core.device)), None)
        return "cpu" if given is None else str(given.type)

    def _run(self, args: list[Any], kwargs: dict[str, Any], device: str) -> Any:
        """What the kernel of a device gives, checked."""
        written = [
            (t, t._version)
            for a, x in zip(self._schema.arguments, [*args, *kwargs.values()], strict=True)
            if a.is_write
            for t in (x if isinstance(x, list) else [x])
            if isinstance(t, Tensor) and not t.is_inference()
        ]
        result = self._kernel(device)(*args, **kwargs)
        for t, version in written:
            if t._version == version:
                _core._increment_version(t)
        return self._checked(result, args, kwargs)

    def _kernel(self, device: str) -> Callable[..., Any]:
        if device == "meta" and "meta" not in self._kernels:
            if self._fake is not None:
                return self._faked
            if "composite" in self._kernels:
                return self._kernels["composite"]
            if not self._schema.returns:
                return lambda *args, **kwargs: None
            raise RuntimeError(
                f"There was no fake impl registered for {self.qualname}. This is necessary for tensors of the meta "
                f"device, and for torch.compile/export/fx tracing to work. Please use register_fake to add an fake "
                "impl."
            )
        for key in (device, "default", "composite"):
            if key in self._kernels and key not in self._disabled:
                return self._kernels[key]
        there = ", ".join(sorted(self._kernels)) or "none"
        raise NotImplementedError(
            f"Could not run '{self.qualname}' with arguments from the '{device.upper()}' backend: it has no kernel for "
            f"it, only for {there}. Register one with register_kernel or Library.impl"
        )

    def _faked(self, *args: Any, **kwargs: Any) -> Any:
        assert self._fake is not None
        INSIDE.fake.append(FakeImplCtx())
        try:
            return self._fake(*args, **kwargs)
        finally:
            INSIDE.fake.pop()

    def _checked(self, result: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A result of the schema's form, which is nothing of the arguments unless the schema says so."""
        wanted = self._schema.returns
        if not wanted:
            if result is not None:
                raise RuntimeError(
                    f"{self.qualname}: expected the kernel to return None, but got {type(result).__name__}"
                )
            return None
        if len(wanted) > 1:
            if not isinstance(result, (tuple, list)) or len(result) != len(wanted):
                raise RuntimeError(
                    f"{self.qualname}: expected the kernel to return a tuple of {len(wanted)}, but got {result!r:.100}"
                )
            outs = list(result)
        else:
            outs = [result]
        for k, (out, kind) in enumerate(zip(outs, wanted, strict=True)):
            outs[k] = list(out) if kind.is_list and isinstance(out, (list, tuple)) else out
            tensors = outs[k] if kind.is_list else [out]
            if kind.base == "Tensor" and not (
                isinstance(tensors, list) and all(isinstance(t, Tensor) for t in tensors)
            ):
                raise RuntimeError(f"{self.qualname}: Unable to cast {out!r:.100} to {kind.type}, its return type")
        if self._recorded and not any(r.alias for r in wanted):
            self._check_aliases(outs, args, kwargs)
        return outs[0] if len(wanted) == 1 else tuple(outs)

    def _check_aliases(self, outs: list[Any], args: list[Any], kwargs: dict[str, Any]) -> None:
        seen = {_memory(t) for t in _tensors(args, kwargs)} - {None}
        for out in _tensors(outs, {}):
            at = _memory(out)
            if at is not None and at in seen:
                raise RuntimeError(
                    f"{self.overloadpacket.__name__} (of {self.qualname}): The output of this custom operator (1) must "
                    "not also be an input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. The most common way to trigger this error is if we have y = "
                    "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                )
            seen.add(at)

    def _accepts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        try:
            bind(self.qualname, self._schema, args, kwargs)
        except RuntimeError:
            return False
        return True

    # ---------------------------------------------------------------------------------------------- autograd

    def take_over(self, other: Operator) -> None:
        """Register what was registered with another one."""
        self._kernels.update(other._kernels)
        self._fake, self._vmap, self._autograd = other._fake, other._vmap, other._autograd
        self._backward, self._setup_context = other._backward, other._setup_context
        self._autocast_dtypes.update(other._autocast_dtypes)
        self.changed()

    def changed(self) -> None:
        """Forget the Function, whose methods are made from what is registered."""
        self._function = None

    def _as_function(self) -> Any:
        if self._function is None:
            self._function = _function_of(self)
        return self._function


def _tensors(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Tensor]:
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            for one in x:
                if isinstance(one, Tensor):
                    yield one


def _memory(t: Tensor) -> Any:
    """What tells tensors that share memory: where their storage is."""
    if t.device.type == "meta" or t.numel() == 0 or _core._level_of(t):
        return None
    return t.device, t.untyped_storage().data_ptr()


def _function_of(op: Operator) -> Any:
    """The Function of an operator: its node, its batching rule, its place in transforms."""
    keyword_only = any(a.kwarg_only for a in op._schema.arguments)

    def forward(call: _Call, *flat: Any) -> Any:
        args = call.unflatten(flat)
        made = call.take_outputs(op._run(args, call.kwargs, op._device_of(args, call.kwargs)))
        return made[0] if len(made) == 1 else made

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        call, *flat = inputs
        ctx._operator_call = call
        if op._setup_context is None:
            return
        given: dict[str, Any] = {"inputs": tuple(call.unflatten(flat))}
        if keyword_only:
            given["keyword_only_inputs"] = call.kwargs
        outs = call.give_outputs(output if isinstance(output, tuple) else (output,))
        op._setup_context(ctx=_Context(ctx, call), output=outs, **given)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use register_autograd "
                "to add one."
            )
        call = ctx._operator_call
        found = op._backward(_Context(ctx, call), *_grouped(grads, call.outputs))
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(call.counts):
            raise RuntimeError(
                f"{op.qualname}: expected its backward to return {len(call.counts)} gradients, one for each argument "
                f"that is given by position, but got {len(found)}"
            )
        flat: list[Any] = [None]
        for gradient, count in zip(found, call.counts, strict=True):
            if count is None:
                flat.append(gradient)
            elif gradient is None:
                flat += [None] * count
            elif isinstance(gradient, (list, tuple)) and len(gradient) == count:
                flat += gradient
            else:
                raise RuntimeError(
                    f"{op.qualname}: expected the return from backward to be of the same structure as the inputs: a "
                    f"list of {count} for a list of tensors, but got {gradient!r:.100}"
                )
        return tuple(flat)

    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *flat: Any) -> Any:
        args, dims = call.unflatten(flat), tuple(call.unflatten(in_dims[1:]))
        if op._vmap is not None:
            result, out_dims = op._vmap(info, dims, *args, **call.kwargs)
            made = call.take_outputs(result)
            return (made[0] if len(made) == 1 else made), _flat_dims(call, out_dims, len(made))
        rows = []
        for k in range(info.batch_size):
            one = [x if d is None else x.select(d, k) for x, d in zip(flat, in_dims[1:], strict=True)]
            rows.append(call.take_outputs(op(*call.unflatten(one), **call.kwargs)))
        if not rows:
            raise RuntimeError(
                f"vmap: {op.qualname} has no batching rule, and a batch of size 0 has nothing to run it on"
            )
        joined = tuple(_core.stack(list(column)) for column in zip(*rows, strict=True))
        return (joined[0], 0) if len(joined) == 1 else (joined, (0,) * len(joined))

    node = f"GeneratedBackwardFor_{op.namespace}_{op.overloadpacket.__name__}_{op._overloadname}Backward"
    methods: dict[str, Any] = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": vmap}
    return type(op.qualname, (Function,), {k: staticmethod(v) for k, v in methods.items()} | {"_node_name": node})


def _flat_dims(call: _Call, out_dims: Any, count: int) -> Any:
    """The batch dimensions of results, flattened as the results are."""
    if out_dims is None or isinstance(out_dims, int):
        return out_dims if count == 1 else (out_dims,) * count
    flat: list[Any] = []
    outer = (out_dims,) if call.single else out_dims
    for dims, many in zip(outer, call.outputs, strict=True):
        if many is None:
            flat.append(dims)
        else:
            flat += list(dims) if isinstance(dims, (list, tuple)) else [dims] * many
    return flat[0] if count == 1 else tuple(flat)
