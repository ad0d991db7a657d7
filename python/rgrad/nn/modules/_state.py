"""The state dict of a module: reading it, and loading it, all or nothing, with every mismatch named."""

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..._core import Tensor
from ..._runtime.guards import NoGradGuard
from ..._runtime.info import typename
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy

_EXTRA_STATE = "_extra_state"

# Key in local_metadata under which load_state_dict passes the list of writes that are done once nothing can fail.
_PENDING = "_rgrad_pending_writes"


class IncompatibleKeys(NamedTuple):
    """The result of :meth:`Module.load_state_dict`: names that were missing, and names that were not expected."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _copy(target: Tensor, source: Tensor) -> None:
    with NoGradGuard():
        target.copy_(source)


def _assign(module: "HasState", name: str, old: Tensor, new: Tensor) -> None:
    if isinstance(old, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(old.requires_grad)
        else:
            new = Parameter(new, requires_grad=old.requires_grad)
    setattr(module, name, new)


def _load_into_one(
    module: "HasState",
    state_dict: Mapping[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load what belongs to this module alone; see :meth:`Module._load_from_state_dict`."""
    pending: list[Any] | None = local_metadata.get(_PENDING)
    assign = bool(local_metadata.get("assign_to_params_buffers", False))
    local: dict[str, Tensor] = {k: v for k, v in module._parameters.items() if v is not None}
    local.update(
        (k, v) for k, v in module._buffers.items() if v is not None and k not in module._non_persistent_buffers_set
    )
    for name, mine in local.items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        theirs = state_dict[key]
        if not isinstance(theirs, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected rgrad.Tensor or Tensor-like object from '
                f"checkpoint but received {type(theirs)}"
            )
        elif not is_lazy(mine) and theirs.shape != mine.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {theirs.shape} from checkpoint, "
                f"the shape in current model is {mine.shape}."
            )
        else:
            if mine.is_meta and not theirs.is_meta and not assign:
                warnings.warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                    "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                    "state dictionary to their corresponding key in the module instead of copying them in place?)",
                    stacklevel=2,
                )
            write = (_assign, (module, name, mine, theirs)) if assign else (_copy, (mine, theirs))
            if pending is not None:
                pending.append((key, mine, theirs, write))
            else:
                write[0](*write[1])

    extra_key = prefix + _EXTRA_STATE
    if type(module).set_extra_state is not HasState.set_extra_state:
        if extra_key in state_dict:
            extra = (module.set_extra_state, (state_dict[extra_key],))
            if pending is not None:
                pending.append((extra_key, None, None, extra))
            else:
                module.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)

    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (module._modules if dot else local):
                    unexpected_keys.append(key)


def _load(root: "HasState", state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See :meth:`Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    result = IncompatibleKeys([], [])
    error_msgs: list[str] = []
    pending: list[Any] = []
    metadata: Mapping[str, Any] = getattr(state_dict, "_metadata", None) or {}
    # A copy, because hooks and overridden loaders may rename or remove keys.
    own: OrderedDict[str, Any] = OrderedDict(state_dict)

    def visit(module: "HasState", state: Any, prefix: str) -> None:
        local_metadata = {**metadata.get(prefix[:-1], {}), _PENDING: pending}
        if assign:
            local_metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state, prefix, local_metadata, True, result.missing_keys, result.unexpected_keys, error_msgs
        )
        for name, child in module._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                visit(child, {k: v for k, v in state.items() if k.startswith(inner)}, inner)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, result) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    visit(root, own, "")
    if strict:
        for kind, keys in (("Unexpected", result.unexpected_keys), ("Missing", result.missing_keys)):
            if keys:
                error_msgs.insert(0, f"{kind} key(s) in state_dict: {', '.join(_repr_key(k) for k in keys)}. ")
    if not error_msgs:
        for key, mine, theirs, (write, arguments) in pending:
            try:
                write(*arguments)
            except Exception as error:
                if mine is None:
                    raise
                error_msgs.append(
                    f'While copying the parameter named "{key}", whose dimensions in the model are {mine.shape} and '
                    f"whose dimensions in the checkpoint are {theirs.shape}, an exception occurred : {error.args}."
                )
    if error_msgs:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(root).__name__}:\n\t" + "\n\t".join(error_msgs))
    return result


def _repr_key(key: str) -> str:
    """A key in double quotes, as error messages show it."""
    return f'"{key}"'


class _WithoutModule:
    """A hook that is called without the module."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> None:
        self.hook(*args)


class HasState:
    """The methods of ``Module`` around its state dict."""

    _version: int = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def get_extra_state(self) -> Any:
        """What ``state_dict`` stores besides parameters and buffers.

        Subclasses that have such state override this and ``set_extra_state``.

        Raises:
            RuntimeError: It is not overridden.
        """
        raise RuntimeError(f"get_extra_state: {type(self).__name__} does not define it")

    def set_extra_state(self, state: Any) -> None:
        """Take over ``state``, which ``get_extra_state`` returned.

        Raises:
            RuntimeError: It is not overridden.
        """
        raise RuntimeError(f"set_extra_state: {type(self).__name__} does not define it, but got {typename(state)}")

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not HasState.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and the persistent buffers of the tree by dotted name.

        Args:
            args: ``destination``, ``prefix`` and ``keep_vars`` by position (deprecated).
            destination: A dict to fill and return.
            prefix: What stands before the names.
            keep_vars: Give parameters and buffers themselves; else they are detached.

        Returns:
            A dict of tensors that share memory with the module.

        Example:
            >>> layer = nn.Linear(2, 1)
            >>> list(layer.state_dict())
            ['weight', 'bias']
            >>> nn.Linear(2, 1).load_state_dict(layer.state_dict())
            <All keys matched successfully>
        """
        if args:
            if len(args) > 3:
                raise TypeError(
                    f"state_dict() takes destination, prefix and keep_vars by position, got {len(args)} arguments"
                )
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: destination, prefix, keep_vars.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None:
            metadata[prefix[:-1]] = {"version": self._version}
        for pre_hook in self._state_dict_pre_hooks.values():
            pre_hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            hook(self, destination, prefix, {} if metadata is None else metadata[prefix[:-1]])
        result: dict[str, Any] = destination
        return result

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load what belongs to this module alone (not to its children), appending what is wrong to the lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        _load_into_one(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the values of a state dict into parameters and buffers of the tree.

        A load that raises has changed nothing. (In PyTorch it may have.)

        Args:
            state_dict: Tensors by dotted name.
            strict: Raise if names are missing or unexpected.
            assign: Take the tensors themselves in place of their values.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: ``state_dict`` is no mapping.
            RuntimeError: Names are missing or unexpected (if ``strict``), or shapes differ; all are listed.
        """
        return _load(self, state_dict, strict, assign)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` reads the module; gives a handle."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict`` has read the module.

        Gives a handle.
        """
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before a state dict is loaded into the module.

        Args:
            hook: Is called as ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs)`` and may change the lists and the dict.

        Returns:
            A handle with ``remove()``.
        """
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = hook
        return handle

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """PyTorch's older form: the hook gets the module only if asked for."""
        return self.register_load_state_dict_pre_hook(hook if with_module else _WithoutModule(hook))

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` when the names were compared; it may change the two lists.

        Gives a handle.
        """
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle
