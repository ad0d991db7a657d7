"""Modules as functions of their parameters: ``functional_call`` and ``stack_module_state``."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor

if TYPE_CHECKING:
    from ..nn.modules.module import Module

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]

_MISSING: Any = object()


def _tied(module: "Module", given: dict[str, Any]) -> dict[str, Any]:
    """The given tensors, and each again under the other names of the parameter that it replaces."""
    names_of: dict[int, list[str]] = {}
    for members in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        for name, tensor in members:
            names_of.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for names in names_of.values():
        values = [given[name] for name in names if name in given]
        if len(names) < 2 or not values:
            continue
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        result.update(dict.fromkeys(names, values[0]))
    return result


def _check_names(module: "Module", given: dict[str, Any]) -> None:
    own = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    own |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    said = []
    if unexpected := [name for name in given if name not in own]:
        said.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing := sorted(own - set(given)):
        said.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if said:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(said))


def _swap(module: "Module", path: str, tensor: Any) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute; gives what stood there."""
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"functional_call: expected a Tensor for {path!r}, got {type(tensor).__name__}")
    prefix, _, name = path.rpartition(".")
    owner: Any = module
    for part in prefix.split(".") if prefix else ():
        inner = getattr(owner, part, None)
        if inner is None:
            raise AttributeError(f"{owner._get_name()} has no attribute `{part}`")
        owner = inner
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            table[name] = tensor
            return before
    before = getattr(owner, name, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"functional_call: attribute {path!r} is of type {type(before).__name__}, expected a Tensor")
    if tensor is _MISSING:
        if before is not _MISSING:
            delattr(owner, name)
    else:
        setattr(owner, name, tensor)
    return before


@contextmanager
def _with_tensors(module: "Module", given: dict[str, Any], tie_weights: bool, strict: bool) -> Generator[None]:
    tensors = _tied(module, given) if tie_weights else given
    if strict:
        _check_names(module, tensors)
    before: dict[str, Any] = {}
    try:
        for path, tensor in tensors.items():
            before[path] = _swap(module, path, tensor)
        yield
    finally:
        left = {path: _swap(module, path, tensor) for path, tensor in reversed(before.items())}
        # If the module replaced a tensor (a running mean, for example), the caller's dict gets the new one.
        for path in given:
            if path in left:
                given[path] = left[path]


def functional_call(
    module: "Module",
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Args:
        module: The module. Afterwards it is as before.
        parameter_and_buffer_dicts: Tensors by their names in ``module``, a dict or several with different keys. Those
            that are not named stay. A tensor that the module replaces during the call is replaced in the dict.
        args: The positional arguments, a tuple; what is no tuple is the only one.
        kwargs: The keyword arguments.
        tie_weights: What the module knows by several names is replaced at all of them.
        strict: Raise unless the names are those of all parameters and buffers.

    Returns:
        What the module gives.

    Raises:
        ValueError: There are no dicts, or a name is in two of them.
        RuntimeError: ``strict`` is violated.
        TypeError: A value is no tensor.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> weights = {"weight": rgrad.ones(1, 2), "bias": rgrad.zeros(1)}
        >>> rgrad.func.functional_call(layer, weights, rgrad.tensor([3.0, 4.0]))
        tensor([7.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in parameter_and_buffer_dicts for name in d]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for d in parameter_and_buffer_dicts for name, tensor in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _with_tensors(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    if len({t.requires_grad for t in tensors}) != 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = _core.stack(tensors)
    return _core._require_grad(result.detach()) if tensors[0].requires_grad else result


def stack_module_state(models: "Sequence[Module]") -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, stacked for :func:`vmap`.

    Args:
        models: The modules.

    Returns:
        ``(params, buffers)``, dicts by name; entry i of dimension 0 is that of model i. Parameters are new leaves.

    Raises:
        RuntimeError: There are no models, they have different classes or modes, or parameters differ in
            ``requires_grad``.

    Example:
        >>> models = [nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = rgrad.func.stack_module_state(models)
        >>> params["weight"].shape
        rgrad.Size([3, 1, 2])
        >>> def call(params, x):
        ...     return rgrad.func.functional_call(models[0], params, x)
        >>> rgrad.func.vmap(call, in_dims=(0, None))(params, rgrad.ones(2)).shape
        rgrad.Size([3, 1])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return (
        {name: _stacked(name, [p[name] for p in params]) for name in params[0]},
        {name: _stacked(name, [b[name] for b in buffers]) for name in buffers[0]},
    )


def replace_all_batch_norm_modules_(root: "Module") -> "Module":
    """Take the running statistics off all batch norms in a module, so that they write nothing.

    They then normalise by the statistics of their input in evaluation mode, too.

    Args:
        root: The module, which is changed.

    Returns:
        The module.

    Example:
        >>> net = rgrad.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> list(net.buffers())
        []
    """
    norms: list[Any] = [m for m in root.modules() if getattr(m, "_is_over_batch", False)]
    for norm in norms:
        if norm.track_running_stats:
            norm.running_mean = norm.running_var = norm.num_batches_tracked = None
            norm.track_running_stats = False
    return root
