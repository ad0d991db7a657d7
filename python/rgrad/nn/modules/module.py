"""``Module``: a tree of parameters, buffers and submodules with a ``forward``."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Self

from ..._core import Tensor, _define_module, _ModuleCall
from ..._runtime.info import typename
from ..._runtime.missing import missing
from ..._runtime.settings import compile
from ..parameter import Parameter
from . import _global_hooks
from ._call import call_with_hooks
from ._conversions import HasConversions
from ._global_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._module_hooks import HOOK_TABLES, HasHooks
from ._state import _EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from ._state import HasState, IncompatibleKeys
from ._text import indented, render
from ._tree import HasTree

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# PyTorch's names.
_IncompatibleKeys = IncompatibleKeys
_addindent = indented


class _CallSignature:
    """What ``inspect.signature`` says of a module, whose ``__call__`` is native: that of its class is another one."""

    _anything = inspect.Signature(
        [
            inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
        ]
    )

    def __get__(self, module: Any, cls: Any) -> inspect.Signature:
        if module is None:
            raise AttributeError("__signature__")
        return self._anything


class Module(HasHooks, HasState, HasTree, HasConversions, _ModuleCall):
    """Base class of all neural network modules.

    Subclasses call ``super().__init__()``, assign parameters and submodules as attributes, and define ``forward``. A
    call of the module runs ``forward`` and its hooks; without hooks the call costs little more than ``forward``.

    Args:
        args: None; subclasses have their own.
        kwargs: None; subclasses have their own.

    Example:
        >>> class Affine(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = nn.Parameter(rgrad.tensor([2.0, 3.0]))
        ...         self.shift = nn.Parameter(rgrad.zeros(2))
        ...     def forward(self, x):
        ...         return x * self.scale + self.shift
        >>> model = Affine()
        >>> model(rgrad.ones(2)).sum().backward()
        >>> model.scale.grad
        tensor([1., 1.])
    """

    #: Whether ``__init__`` passes its arguments on to the next class, for modules that inherit from others as well.
    call_super_init: bool = False
    __signature__ = _CallSignature()
    training: bool
    _version: int = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, "Module | None"]
    _non_persistent_buffers_set: set[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        if args and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        # Directly into __dict__: __setattr__ reads these tables.
        self.__dict__.update(
            training=True,
            _hooked=False,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent_buffers_set=set(),
            **{table: OrderedDict() for table in HOOK_TABLES},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # A value, not a method, so that type checkers accept any signature in subclasses.
    def _forward_unimplemented(self, *args: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented

    # What ``__call__`` of the native base class does not do itself.
    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked or _global_hooks.hooked():
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def share_memory(self) -> Self:
        """Move parameters, buffers and gradients to memory that other processes can have.

        Raises:
            RuntimeError: One of them is not on the CPU, or the system has no files of memory.
        """
        from ..._files.sharing import move

        tensors = [*self.parameters(), *self.buffers()]
        move([*tensors, *(t.grad for t in tensors if t.is_leaf and t.grad is not None)])
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accept what :func:`rgrad.compile` takes; a call runs as before, with operations fused while they run.

        Args:
            args: Have no effect.
            kwargs: Have no effect.

        Raises:
            RuntimeError: Both ``mode`` and ``options`` are given.
        """
        compile(self._call_impl, *args, **kwargs)

    # Attributes. Parameters, buffers and submodules live in their tables, everything else in __dict__.

    def __getattr__(self, name: str) -> Any:
        tables = self.__dict__
        if "_parameters" in tables:
            for table in ("_modules", "_parameters", "_buffers"):
                found = tables[table]
                if name in found:
                    return found[name]
        return missing(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        params = tables.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if params is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            tables["_modules"][name] = _global_hooks.replaced(_global_hooks.module_registration, self, name, value)
        elif params is None:
            if isinstance(value, Tensor) and getattr(value, "_is_buffer", False):
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (rgrad.nn.Parameter or None expected)"
                )
            params[name] = None
        elif name in tables["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (rgrad.nn.Module or None expected)"
                )
            tables["_modules"][name] = None
        elif isinstance(value, Tensor) and getattr(value, "_is_buffer", False):
            if name not in tables["_buffers"]:
                self._forget(name)
            self.register_buffer(name, value, getattr(value, "persistent", True))
        elif name in tables["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' (rgrad.Tensor or None expected)")
            tables["_buffers"][name] = _global_hooks.replaced(_global_hooks.buffer_registration, self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, ())
            if name in found:
                del found[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _forget(self, name: str, *tables: str) -> None:
        own = self.__dict__
        own.pop(name, None)
        for table in tables:
            own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def _check_name(self, kind: str, name: object, table: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if name in table:
            return
        if hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter.

        Args:
            name: Its name, without dots.
            param: The parameter; None takes the name and stays out of ``state_dict``.

        Raises:
            AttributeError: ``super().__init__()`` was not called.
            KeyError: The name is taken, empty or has a dot.
            TypeError: ``param`` is no Parameter.
            ValueError: ``param`` was computed from other tensors.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(rgrad.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = _global_hooks.replaced(_global_hooks.parameter_registration, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter.

        Args:
            name: Its name, without dots.
            tensor: The tensor; None takes the name and stays out of ``state_dict``.
            persistent: Whether ``state_dict`` has it.

        Raises:
            AttributeError: ``super().__init__()`` was not called.
            KeyError: The name is taken, empty or has a dot.
            TypeError: ``tensor`` is no tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (rgrad Tensor or None required)"
            )
        self._buffers[name] = _global_hooks.replaced(_global_hooks.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Add ``module`` under ``name``; None takes the name.

        Raises:
            KeyError: The name is taken, empty or has a dot.
            TypeError: ``module`` is no module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _global_hooks.replaced(_global_hooks.module_registration, self, name, module)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Another name of :meth:`add_module`, with its ``name`` and ``module``."""
        self.add_module(name, module)

    # Changing the whole tree.

    def apply(self, fn: Callable[["Module"], object]) -> Self:
        """Call ``fn`` on every submodule, children first, then on this module; gives this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, or evaluation mode for ``mode=False``, for the tree; gives this module.

        Raises:
            ValueError: ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for the tree; gives this module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters; gives this module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros for ``set_to_none=False``."""
        for param in self.parameters():
            zero_grad_of(param, set_to_none)

    # Printing.

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What ``repr`` shows besides submodules. Subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): " + indented(repr(child), 2) for name, child in self._modules.items()]
        return render(self._get_name(), extra_lines, child_lines)


def zero_grad_of(param: Tensor, set_to_none: bool) -> None:
    """Drop a tensor's gradient, or fill it with zeros after cutting it from its history."""
    grad = param.grad
    if grad is None:
        return
    if set_to_none:
        param.grad = None
    elif grad.grad_fn is not None:
        grad.detach_()
        grad.zero_()
    else:
        grad.requires_grad_(False)
        grad.zero_()


_define_module(Module)
