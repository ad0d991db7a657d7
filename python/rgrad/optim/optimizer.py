"""What all optimizers share: parameter groups, state, hooks, and saving of both."""

import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar

from .. import _core
from .._core import Tensor
from .._runtime.info import typename
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ..utils.hooks import RemovableHandle
from ._borrowed import (  # noqa: F401
    _default_to_fused_or_foreach,
    _get_capturable_supported_devices,
    _get_value,
    _stack_if_compiling,
    _use_grad_for_differentiable,
    _view_as_real,
)
from ._loaded import copied, fitted

Params = Iterable[Any]
ParamsT = Iterable[Any]
Hooks = OrderedDict[int, Callable[..., Any]]
#: What a closure returns.
Loss = TypeVar("Loss")

_global_pre_hooks: Hooks = OrderedDict()
_global_post_hooks: Hooks = OrderedDict()

#: The hooks of one optimizer, by the names that PyTorch gives the attributes.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _registered(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer; it may return both anew."""
    return _registered(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _registered(_global_post_hooks, hook)


def _recorded(name: str) -> AbstractContextManager[object]:
    """A range of the profiler. Its module is imported only where one is on."""
    from ..autograd.profiler import record_function

    return record_function(name)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's ``step`` that calls the hooks of all optimizers and of this one, and is an event of the profiler."""

    @wraps(step)
    def hooked(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if _core._profiler_is_on() and "_in_profile" not in own:
            own["_in_profile"] = True
            try:
                with _recorded(f"Optimizer.step#{type(self).__name__}.step"):
                    return hooked(self, *args, **kwargs)
            finally:
                own.pop("_in_profile", None)
        before, after = own.get("_optimizer_step_pre_hooks"), own.get("_optimizer_step_post_hooks")
        if not (before or after or _global_pre_hooks or _global_post_hooks) or "_in_step" in own:
            return step(self, *args, **kwargs)
        # A step that calls its base's step is one step.
        own["_in_step"] = True
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        try:
            given: tuple[Any, ...] = (self, *args)
            for hook in (*_global_pre_hooks.values(), *before.values()):
                changed = hook(self, given, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    given, kwargs = changed
            result = step(*given, **kwargs)
            for hook in (*after.values(), *_global_post_hooks.values()):
                hook(self, given, kwargs)
            return result
        finally:
            own.pop("_in_step", None)

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


class _Required:
    """The default of an option that groups must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class _Table:
    """Hooks of one kind. An optimizer has the table from the first time on that it is asked for.

    Wrappers of optimizers are subclasses that do not call ``Optimizer.__init__``, which makes the tables of others.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Hooks:
        if optimizer is None:
            raise AttributeError(f"{self.name} belongs to an optimizer, not to its class")
        made: Hooks = optimizer.__dict__.setdefault(self.name, OrderedDict())
        return made


class Optimizer:
    """Base class of optimizers.

    Subclasses define :meth:`step`.

    Args:
        params: Tensors, pairs of names and tensors, or dicts with ``params`` and options of their own (groups).
        defaults: Options of groups that do not give them.

    Raises:
        TypeError: ``params`` is one tensor, or something in it is no tensor.
        ValueError: There are no parameters, a tensor is not a leaf, or one is in two groups.
    """

    _optimizer_step_pre_hooks = _Table()
    _optimizer_step_post_hooks = _Table()
    _optimizer_state_dict_pre_hooks = _Table()
    _optimizer_state_dict_post_hooks = _Table()
    _optimizer_load_state_dict_pre_hooks = _Table()
    _optimizer_load_state_dict_post_hooks = _Table()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if callable(step) and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            self.__dict__[name] = OrderedDict()
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own: ``{"params": [...], "lr": 0.1}``.

        The dict itself becomes the group, and gets the options that it lacks. So optimizers that were given the same
        groups share their options. A dict that is refused stays as it was.

        Raises:
            TypeError: As the constructor.
            ValueError: As the constructor.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        defaults = self._options()
        if isinstance(params, Tensor):
            entries = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        else:
            entries = list(params)
        named = [isinstance(entry, tuple) for entry in entries]
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = [name for name, _ in entries]
            entries = [param for _, param in entries]
        for param in entries:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(param))
            if not defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        ids = {id(param) for param in entries}
        if len(ids) != len(entries):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            kind = "with names" if "param_names" in group else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {kind} to the optimizer"
            )
        if any(id(param) in ids for other in self.param_groups for param in other["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = entries
        param_group.update(group)
        self.param_groups.append(param_group)
        self.__dict__["_is_unchecked"] = True

    def _options(self) -> dict[str, Any]:
        """The options of groups that do not give them; a wrapper may have none."""
        found: dict[str, Any] = getattr(self, "defaults", {})
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        if _core._profiler_is_on():
            with _recorded(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                self._zero_grad(set_to_none)
        else:
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; ``closure`` computes the loss again and is called with grad enabled."""
        raise NotImplementedError

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Let a ``step`` call the hooks and be an event of the profiler. Subclasses have this already."""
        return func if getattr(func, "hooked", False) else _with_hooks(func)

    # What optimizers of other libraries call.

    def _patch_step_function(self) -> None:
        """Let the class's step call the hooks. Wrappers that do not call ``Optimizer.__init__`` ask for it."""
        owner = type(self)
        owner.step = self.profile_hook_step(owner.step)  # type: ignore[method-assign]

    def _cuda_graph_capture_health_check(self) -> None:
        """Do nothing: there are no CUDA graphs."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check
    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    # Hooks.

    def _wrap_step(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        current: Callable[..., Any] | None = self.__dict__.get("step")
        if current is None:
            func = type(self).step
            # Weakly: an optimizer in a reference cycle would keep its state until the garbage collector runs.
            owner = weakref.ref(self)

            @wraps(func)
            def bound(*args: Any, **kwargs: Any) -> Any:
                return func(owner(), *args, **kwargs)  # type: ignore[arg-type]

            current = bound
        self.__dict__["step"] = wrap(current)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        return _registered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _registered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before :meth:`state_dict` reads anything."""
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on what :meth:`state_dict` gives; it may return another dict."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading, with a shallow copy; it may return another dict."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters replaced by their numbers: ``{"state": ..., "param_groups": ...}``."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for at, param in enumerate(group["params"], start):
                numbers.setdefault(id(param), at)
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            start += len(group["params"])
            groups.append(packed)
        state = {(numbers[id(key)] if isinstance(key, Tensor) else key): value for key, value in self.state.items()}
        made: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, made)
            if changed is not None:
                made = changed
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over options and state; tensors of the state are copied to their parameter's device and dtype.

        Raises:
            ValueError: The groups differ in number or size; nothing has changed then.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved_groups = state_dict["param_groups"]
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        pairs = list(zip(self.param_groups, saved_groups, strict=True))
        if any(len(own["params"]) != len(saved["params"]) for own, saved in pairs):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number = {
            number: param for own, saved in pairs for number, param in zip(saved["params"], own["params"], strict=True)
        }
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            param = by_number.get(key)
            if param is None:
                state[key] = value
            else:
                state[param] = fitted(None, value, param)
        groups = []
        for own, saved in pairs:
            group = {key: copied(value) for key, value in saved.items() if key != "params"}
            group["params"] = own["params"]
            if "param_names" in own:
                group["param_names"] = own["param_names"]
            # Options that did not exist when the state was saved keep their present values.
            groups.append({**{key: value for key, value in own.items() if key not in group}, **group})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _is_unchecked=True)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        defaults = self._options()
        for group in self.param_groups:
            for name, default in defaults.items():
                group.setdefault(name, default)
        defaults.setdefault("differentiable", False)
        # States that old versions saved count with numbers.
        for entry in self.state.values():
            for name in self._counters:
                if isinstance(entry, dict) and isinstance(entry.get(name), (int, float)):
                    entry[name] = scalar_state(entry[name])

    #: Which entries of a state are 0-d tensors beside the parameter's own.
    _counters: tuple[str, ...] = ("step",)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines.extend(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return f"{type(self).__name__} (" + "".join(lines) + ")"


def scalar_state(value: float) -> Tensor:
    """A number of a state as PyTorch keeps it: 0-d, float32 (float64 where that is the default), on the CPU.

    float16 would stop counting at 2048, and reading it from another device would wait for that device.
    """
    dtype = _core.float64 if _core.get_default_dtype() == _core.float64 else _core.float32
    return _core.tensor(float(value), dtype=dtype, device="cpu")


def checked_rate(lr: Any, least: str = "Invalid learning rate: {}") -> None:
    """Refuse learning rates that are negative, not a number, or tensors of several elements.

    Raises:
        ValueError: See above.
    """
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(least.format(lr))


def checked_betas(betas: Sequence[Any]) -> None:
    """Refuse decay rates outside [0, 1).

    Raises:
        ValueError: See above.
    """
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def checked(name: str, value: Any) -> None:
    """Refuse a negative option.

    Raises:
        ValueError: See above.
    """
    if not value >= 0.0:
        raise ValueError(f"Invalid {name} value: {value}")


def refuse_complex(name: str, params: Sequence[Tensor]) -> None:
    """Refuse complex parameters.

    Raises:
        RuntimeError: There is one.
    """
    if any(param.dtype.is_complex for param in params):
        raise RuntimeError(f"{name} does not support complex parameters")


def checked_fused(
    fused: bool | None, foreach: bool | None, differentiable: bool, groups: Sequence[dict[str, Any]]
) -> None:
    """Refuse implementations that exclude each other, and complex parameters of fused ones. Here all are the same one.

    Raises:
        RuntimeError: See above.
    """
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    for param in (param for group in groups for param in group["params"]) if fused else ():
        if not param.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"['cpu', 'wgpu'] but {param.dtype} and {param.device.type}"
            )
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def option(value: Any, differentiable: bool) -> Any:
    """An option as a number; in a differentiable step a tensor stays one, since gradients may go to it."""
    if not isinstance(value, Tensor):
        return value
    return value.squeeze() if differentiable else value.item()
