"""Hooks on all modules: on calls, on backward, and on the registration of parameters, buffers and submodules."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._core import _watch_modules
from ...utils.hooks import RemovableHandle

Hooks = OrderedDict[int, Callable[..., Any]]

forward_pre: Hooks = OrderedDict()
forward: Hooks = OrderedDict()
forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
forward_always_called: OrderedDict[int, bool] = OrderedDict()
backward_pre: Hooks = OrderedDict()
backward: Hooks = OrderedDict()
# Whether those are full hooks or old ones; None before the first.
backward_is_full: bool | None = None
parameter_registration: Hooks = OrderedDict()
buffer_registration: Hooks = OrderedDict()
module_registration: Hooks = OrderedDict()

_hooked = False


def hooked() -> bool:
    """Whether there is a hook on calls or backward. Where all were removed, calls take the short path from now on."""
    if _hooked and not any((forward_pre, forward, backward_pre, backward)):
        set_hooked(False)
    return _hooked


def set_hooked(on: bool) -> None:
    """Tells calls of modules whether to look for hooks on all of them."""
    global _hooked
    _hooked = on
    _watch_modules(on)


def _register(table: Hooks, hook: Callable[..., Any], *extra: OrderedDict[int, bool]) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=list(extra))
    table[handle.id] = hook
    for marks in extra:
        marks[handle.id] = True
    if any(table is calls for calls in (forward_pre, forward, backward_pre, backward)):
        set_hooked(True)
    return handle


def replaced(table: Hooks, module: object, name: str, value: Any) -> Any:
    """The value to register under ``name``: ``value``, or what a registration hook returned in its place."""
    for hook in list(table.values()):
        other = hook(module, name, value)
        if other is not None:
            value = other
    return value


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module, before the module's own hooks.

    It is state of the whole process, for debugging and profiling.

    Args:
        hook: What it returns, unless None, replaces the arguments.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_forward_pre_hook
        >>> handle = register_module_forward_pre_hook(lambda module, args: print(f"{module} is called"))
        >>> _ = nn.ReLU()(rgrad.ones(2))
        ReLU() is called
        >>> handle.remove()
    """
    return _register(forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module, before the module's own hooks.

    Args:
        hook: What it returns, unless None, replaces the output.
        with_kwargs: Call it as ``hook(module, args, kwargs, output)``.
        always_call: Call it with output None, too, if the call raises.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_forward_hook
        >>> handle = register_module_forward_hook(lambda module, args, output: print(module, output.shape))
        >>> _ = nn.Sequential(nn.Linear(2, 3), nn.ReLU())(rgrad.ones(2))
        Linear(in_features=2, out_features=3, bias=True) rgrad.Size([3])
        ReLU() rgrad.Size([3])
        Sequential(
          (0): Linear(in_features=2, out_features=3, bias=True)
          (1): ReLU()
        ) rgrad.Size([3])
        >>> handle.remove()
    """
    extra = [forward_with_kwargs] * with_kwargs + [forward_always_called] * always_call
    return _register(forward, hook, *extra)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` whenever the gradients of a module's outputs are known.

    Args:
        hook: What it returns, unless None, replaces the gradients.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_full_backward_pre_hook
        >>> handle = register_module_full_backward_pre_hook(lambda module, grad_output: print(module, grad_output))
        >>> nn.ReLU()(rgrad.ones(2, requires_grad=True)).sum().backward()
        ReLU() (tensor([1., 1.]),)
        >>> handle.remove()
    """
    return _register(backward_pre, hook)


def _register_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global backward_is_full
    if backward and backward_is_full is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    backward_is_full = full
    return _register(backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` with the gradients of the last operation in each forward.

    Use :func:`register_module_full_backward_hook`: these are the inputs' gradients only if forward is one operation.

    Args:
        hook: What it returns, unless None, replaces ``grad_input``.

    Returns:
        A handle with ``remove()``.

    Raises:
        RuntimeError: There are hooks of :func:`register_module_full_backward_hook`.

    Example:
        >>> from rgrad.nn.modules.module import register_module_backward_hook
        >>> handle = register_module_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> x = rgrad.ones(2, requires_grad=True).exp()
        >>> nn.ReLU()(x).sum().backward()
        (tensor([1., 1.]),)
        >>> handle.remove()
    """
    return _register_backward(hook, False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` whenever the gradients of a module's inputs are known.

    Args:
        hook: What it returns, unless None, replaces ``grad_input``.

    Returns:
        A handle with ``remove()``.

    Raises:
        RuntimeError: There are hooks of :func:`register_module_backward_hook`.

    Example:
        >>> from rgrad.nn.modules.module import register_module_full_backward_hook
        >>> handle = register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> nn.ReLU()(rgrad.ones(2, requires_grad=True)).sum().backward()
        (tensor([1., 1.]),)
        >>> handle.remove()
    """
    return _register_backward(hook, True)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` for every parameter that a module registers.

    Args:
        hook: What it returns, unless None, replaces the parameter.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_parameter_registration_hook
        >>> handle = register_module_parameter_registration_hook(lambda module, name, param: print(name, param.shape))
        >>> _ = nn.Linear(2, 3)
        weight rgrad.Size([3, 2])
        bias rgrad.Size([3])
        >>> handle.remove()
    """
    return _register(parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` for every buffer that a module registers.

    Args:
        hook: What it returns, unless None, replaces the buffer.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_buffer_registration_hook
        >>> handle = register_module_buffer_registration_hook(lambda module, name, buffer: print(name, buffer))
        >>> nn.Module().register_buffer("mean", rgrad.zeros(2))
        mean tensor([0., 0.])
        >>> handle.remove()
    """
    return _register(buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` for every submodule that a module registers.

    Args:
        hook: What it returns, unless None, replaces the submodule.

    Returns:
        A handle with ``remove()``.

    Example:
        >>> from rgrad.nn.modules.module import register_module_module_registration_hook
        >>> handle = register_module_module_registration_hook(lambda module, name, submodule: print(name, submodule))
        >>> _ = nn.Sequential(nn.ReLU())
        0 ReLU()
        >>> handle.remove()
    """
    return _register(module_registration, hook)
