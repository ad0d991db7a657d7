"""What all optimizers share: parameter groups, state, hooks, and saving of both."""

import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from .._core import Tensor
from .._info import typename
from ..autograd.grad_mode import enable_grad
from ..utils.hooks import RemovableHandle

Params = Iterable[Any]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


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

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
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

        Raises:
            TypeError: As the constructor.
            ValueError: As the constructor.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
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
            if not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        ids = {id(param) for param in entries}
        if len(ids) != len(entries):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
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
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
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
        raise NotImplementedError(f"{type(self).__name__}.step")

    @staticmethod
    def _loss(closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # Hooks. A step without hooks costs nothing: the first one registered puts a wrapper on the instance.

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

    def _with_hooks(self) -> None:
        if "_step_hooked" in self.__dict__:
            return
        self._step_hooked = True
        owner, before, after = weakref.ref(self), self._pre_hooks, self._post_hooks

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(inner)
            def step(*args: Any, **kwargs: Any) -> Any:
                for pre in list(before.values()):
                    changed = pre(owner(), args, kwargs)
                    if changed is not None:
                        if not (isinstance(changed, tuple) and len(changed) == 2):
                            raise RuntimeError(
                                f"step hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                            )
                        args, kwargs = changed
                result = inner(*args, **kwargs)
                for post in list(after.values()):
                    post(owner(), args, kwargs)
                return result

            return step

        self._wrap_step(wrap)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        self._with_hooks()
        handle = RemovableHandle(self._pre_hooks)
        self._pre_hooks[handle.id] = hook
        return handle

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        self._with_hooks()
        handle = RemovableHandle(self._post_hooks)
        self._post_hooks[handle.id] = hook
        return handle

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters replaced by their numbers: ``{"state": ..., "param_groups": ...}``."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {(numbers[id(key)] if isinstance(key, Tensor) else key): value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over options and state; tensors of the state are copied to their parameter's device and dtype.

        Raises:
            ValueError: The groups differ in number or size; nothing has changed then.
        """
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
                state[param] = {name: _fitted(name, item, param) for name, item in value.items()}
        groups = []
        for own, saved in pairs:
            group = {key: _copied(value) for key, value in saved.items() if key != "params"}
            group["params"] = own["params"]
            if "param_names" in own:
                group["param_names"] = own["param_names"]
            # Options that did not exist when the state was saved keep their present values.
            groups.append({**{key: value for key, value in own.items() if key not in group}, **group})
        self.__setstate__({"state": state, "param_groups": groups})

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_pre_hooks", OrderedDict())
        self.__dict__.setdefault("_post_hooks", OrderedDict())
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines.extend(f"    {key}: {group[key]}\n" for key in sorted(group) if key not in ("params", "param_names"))
        return f"{type(self).__name__} (" + "".join(lines) + ")"


def _fitted(name: str, item: Any, param: Tensor) -> Any:
    """An entry of a parameter's state as that parameter needs it."""
    if not isinstance(item, Tensor):
        return _copied(item)
    # The count of steps stays float32 on the CPU whatever the parameter is: float16 would stop counting at 2048, and
    # reading it from another device would wait for that device.
    if name == "step":
        return item.detach().to("cpu", copy=True)
    kind = param.dtype if param.is_floating_point() else item.dtype
    return item.detach().to(param.device, kind, copy=True)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def number(name: str, value: Any) -> float:
    """A hyperparameter as a Python number; one-element tensors are read."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        return float(value.item())
    result: float = value
    return result


def refuse_differentiable(optimizer: str, differentiable: bool) -> None:
    """Raise NotImplementedError for ``differentiable=True``."""
    if differentiable:
        raise NotImplementedError(
            f"{optimizer}: differentiable=True is not available; update tensors out of place and use autograd.grad "
            "with create_graph=True to differentiate through steps"
        )
