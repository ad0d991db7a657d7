"""Loading a state dict: all or nothing, with every mismatch named."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _core
from ..._core import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

EXTRA_STATE = "_extra_state"

# Key in local_metadata under which load_state_dict passes the list of writes that are done once nothing can fail.
_PENDING = "_rgrad_pending_writes"


class IncompatibleKeys(NamedTuple):
    """What :meth:`Module.load_state_dict` found no partner for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _copy(target: Tensor, source: Tensor) -> None:
    grad_mode = _core.is_grad_enabled()
    _core._set_grad_enabled(False)
    try:
        target.copy_(source)
    finally:
        _core._set_grad_enabled(grad_mode)


def _assign(module: "Module", name: str, old: Tensor, new: Tensor) -> None:
    if isinstance(old, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(old.requires_grad)
        else:
            new = Parameter(new, requires_grad=old.requires_grad)
    setattr(module, name, new)


def load_into_one(
    module: "Module",
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
                f'While copying the parameter named "{key}", expected rgrad.Tensor from checkpoint but received '
                f"{type(theirs)}"
            )
        elif theirs.shape != mine.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {theirs.shape} from checkpoint, "
                f"the shape in current model is {mine.shape}."
            )
        else:
            write = (_assign, (module, name, mine, theirs)) if assign else (_copy, (mine, theirs))
            if pending is not None:
                pending.append((key, mine, theirs, write))
            else:
                write[0](*write[1])

    extra_key = prefix + EXTRA_STATE
    if _overrides(module, "set_extra_state"):
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


def _overrides(module: "Module", method: str) -> bool:
    from .module import Module

    return getattr(type(module), method) is not getattr(Module, method)


def has_extra_state(module: "Module") -> bool:
    """Whether the module's class defines ``get_extra_state``."""
    return _overrides(module, "get_extra_state")


def load(root: "Module", state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See :meth:`Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    result = IncompatibleKeys([], [])
    error_msgs: list[str] = []
    pending: list[Any] = []
    metadata: Mapping[str, Any] = getattr(state_dict, "_metadata", None) or {}
    # A copy, because hooks and overridden loaders may rename or remove keys.
    own: OrderedDict[str, Any] = OrderedDict(state_dict)

    def visit(module: "Module", state: Any, prefix: str) -> None:
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
                error_msgs.insert(0, f"{kind} key(s) in state_dict: {', '.join(repr_key(k) for k in keys)}. ")
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


def repr_key(key: str) -> str:
    """A key in double quotes, as error messages show it."""
    return f'"{key}"'
