"""The slow path of a module's call: forward and backward hooks around ``forward``.

Backward hooks are two identity Functions. One is applied to the outputs: its backward sees the gradients with
respect to the outputs. The other is applied to the inputs: its backward sees, later, those with respect to the inputs.
"""

import warnings
from typing import TYPE_CHECKING, Any

from ..._core import Tensor, is_grad_enabled
from ...autograd.function import Function
from . import _global_hooks as global_hooks

if TYPE_CHECKING:
    from .module import Module

Grads = tuple[Tensor | None, ...]


def _replaced(what: str, old: Grads, new: Any) -> Grads:
    """The gradients after a hook, which may have returned others."""
    if new is None:
        return old
    grads: Grads = new if isinstance(new, tuple) else (new,)
    if len(grads) != len(old):
        raise RuntimeError(f"{what}, got {len(grads)}, but expected {len(old)}")
    return grads


class _HookState:
    """The state of a module's backward hooks between one forward and its backward."""

    def __init__(self, module: "Module") -> None:
        self.module = module
        self.pre_hooks = [*global_hooks.backward_pre.values(), *module._backward_pre_hooks.values()]
        own = module._backward_hooks.values() if module._is_full_backward_hook is not False else ()
        of_all_modules = global_hooks.backward.values() if global_hooks.backward_is_full else ()
        self.hooks = [*of_all_modules, *own]
        self.grad_output: Grads | None = None
        # Positions of the arguments that passed through the input Function, and the number of arguments.
        self.input_positions: list[int] = []
        self.inputs = 0
        self.output_positions: list[int] = []
        self.outputs = 0

    def on_output(self, grads: Grads) -> Grads:
        full: list[Tensor | None] = [None] * self.outputs
        for position, grad in zip(self.output_positions, grads, strict=True):
            full[position] = grad
        grad_output: Grads = tuple(full)
        for pre_hook in self.pre_hooks:
            grad_output = _replaced(
                "Backward pre hook returned an invalid number of grad_output",
                grad_output,
                pre_hook(self.module, grad_output),
            )
        self.grad_output = grad_output
        if not self.input_positions:
            nothing: Grads = (None,) * self.inputs
            if self.hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since "
                    "no inputs require gradients.",
                    stacklevel=2,
                )
            for hook in self.hooks:
                given = hook(self.module, nothing, grad_output)
                if given is not None and not (isinstance(given, tuple) and all(g is None for g in given)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None "
                        "or None for all gradients."
                    )
        return tuple(grad_output[position] for position in self.output_positions)

    def on_input(self, grads: Grads) -> Grads:
        if self.grad_output is None:
            # The outputs took no part in this backward pass, so there is nothing to tell the hooks.
            return grads
        full: list[Tensor | None] = [None] * self.inputs
        for position, grad in zip(self.input_positions, grads, strict=True):
            full[position] = grad
        grad_input: Grads = tuple(full)
        for hook in self.hooks:
            grad_input = _replaced(
                "Backward hook returned an invalid number of grad_input",
                grad_input,
                hook(self.module, grad_input, self.grad_output),
            )
        self.grad_output = None
        return tuple(grad_input[position] for position in self.input_positions)


class BackwardHookFunction(Function):
    """Identity whose backward hands the gradients to a function and passes on what that returns."""

    @staticmethod
    def forward(ctx: Any, on_backward: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.on_backward = on_backward
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, *ctx.on_backward(grads))


def _apply_identity(on_backward: Any, values: tuple[Any, ...], positions: list[int]) -> tuple[Any, ...]:
    """``values`` with every tensor that requires grad passed through the identity; notes their positions."""
    positions.extend(i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad)
    if not positions:
        return values
    passed = BackwardHookFunction.apply(on_backward, *[values[i] for i in positions])
    result = list(values)
    for position, tensor in zip(positions, passed, strict=True):
        result[position] = tensor
    return tuple(result)


def call_with_hooks(module: "Module", args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run forward pre-hooks, ``forward`` and forward hooks, and set up backward hooks, in PyTorch's order."""
    called: set[int] = set()
    # What forward gave; None for hooks that are called although it raised.
    results: list[Any] = [None]
    try:
        return _call(module, args, kwargs, called, results)
    except Exception:
        for key, hook in (*global_hooks.forward.items(), *module._forward_hooks.items()):
            always = key in global_hooks.forward_always_called or key in module._forward_hooks_always_called
            if always and key not in called:
                try:
                    result = results[-1]
                    hook(module, args, kwargs, result) if _takes_kwargs(module, key) else hook(module, args, result)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=3,
                    )
        raise


def _takes_kwargs(module: "Module", key: int) -> bool:
    return key in global_hooks.forward_with_kwargs or key in module._forward_hooks_with_kwargs


def _call(module: "Module", args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int], results: list[Any]) -> Any:
    for key, hook in (*global_hooks.forward_pre.items(), *module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)

    state: _HookState | None = None
    old = [
        *(() if global_hooks.backward_is_full else global_hooks.backward.values()),
        *(module._backward_hooks.values() if module._is_full_backward_hook is False else ()),
    ]
    hooked = module._backward_pre_hooks or global_hooks.backward_pre
    if (
        hooked
        or (global_hooks.backward and global_hooks.backward_is_full)
        or (module._backward_hooks and module._is_full_backward_hook is not False)
    ) and is_grad_enabled():
        state = _HookState(module)
        state.inputs = len(args)
        args = _apply_identity(state.on_input, args, state.input_positions)

    result = module.forward(*args, **kwargs)
    results.append(result)

    for key, hook in (*global_hooks.forward.items(), *module._forward_hooks.items()):
        called.add(key)
        if _takes_kwargs(module, key):
            changed = hook(module, args, kwargs, result)
        else:
            changed = hook(module, args, result)
        if changed is not None:
            result = changed
            results.append(result)

    if state is not None:
        if isinstance(result, Tensor):
            state.outputs = 1
            result = _apply_identity(state.on_output, (result,), state.output_positions)[0]
        elif isinstance(result, tuple):
            state.outputs = len(result)
            passed = _apply_identity(state.on_output, result, state.output_positions)
            result = type(result)(*passed) if hasattr(result, "_fields") else passed
        else:
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=4,
            )
    if old:
        _hook_last_node(module, old, args, result)
    return result


def _hook_last_node(module: "Module", hooks: list[Any], args: tuple[Any, ...], result: Any) -> None:
    """The old backward hooks: hooks on the node of the first tensor in the result, wherever its edges lead."""
    first = result
    while first is not None and not isinstance(first, Tensor):
        values = list(first.values()) if isinstance(first, dict) else list(first)
        first = next((v for v in values if isinstance(v, Tensor)), None) if isinstance(first, dict) else values[0]
    node = first.grad_fn if first is not None else None
    if node is None:
        return
    from_inputs = {x.grad_fn for x in args if isinstance(x, Tensor) and x.grad_fn is not None}
    if {edge[0] for edge in node.next_functions} != from_inputs:
        warnings.warn(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated. This "
            "hook will be missing some grad_input. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )
    for hook in hooks:

        def with_module(grad_input: Any, grad_output: Any, hook: Any = hook) -> Any:
            return hook(module, grad_input, grad_output)

        node.register_hook(with_module)
