"""States of models and optimizers under the names of parameters, whatever wraps the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module, _IncompatibleKeys
from ...nn.parallel.distributed import DistributedDataParallel
from ...optim.optimizer import Optimizer
from ._whole import collected, distributed, rank

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

State = dict[str, Any]
Optimizers = Optimizer | Iterable[Optimizer]
# What other wrappers call the module inside of them.
_INSIDE = ("_orig_mod", "_checkpoint_wrapped_module")


@dataclass
class StateDictOptions:
    """How states are collected and given back.

    Args:
        full_state_dict: Whether tensors are whole ones instead of DTensors. With ``cpu_offload`` the first process has
            them, and the others get an empty dict.
        cpu_offload: Whether tensors are copied to host memory.
        ignore_frozen_params: Whether parameters that require no gradient are left out.
        keep_submodule_prefixes: Whether names of ``submodules`` begin with those of the submodules.
        strict: Whether a model must have the same names as its state.
        broadcast_from_rank0: Whether the first process gives a whole state to the others, which need not have it.
        flatten_optimizer_state_dict: Whether the state of an optimizer is one flat dict.
        dsd_fqn_modifiers: Accepted; has no effect.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    found = options or StateDictOptions()
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError(
            "StateDictOptions: full_state_dict must be True with broadcast_from_rank0=True: whole tensors are sent"
        )
    return found


def _clean(model: Module, name: str) -> str:
    """A name of a model's state without the steps into wrappers."""
    kept, here = [], model
    for step in name.split("."):
        inside = (isinstance(here, DistributedDataParallel) and step == "module") or step in _INSIDE
        if not inside:
            kept.append(step)
        here = getattr(here, "_modules", {}).get(step, here)
    return ".".join(kept)


def _names(model: Module) -> dict[Tensor, str]:
    """The name of each parameter; the first one of shared ones."""
    return {parameter: _clean(model, name) for name, parameter in model.named_parameters()}


def _frozen(model: Module) -> set[str]:
    found = model.named_parameters(remove_duplicate=False)
    return {_clean(model, name) for name, parameter in found if not parameter.requires_grad}


def _prefixes(model: Module, submodules: set[Module] | None) -> list[str] | None:
    if submodules is None:
        return None
    return [_clean(model, name) + "." for name, module in model.named_modules() if module in submodules and name]


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> State:
    """The state of a model, with names that do not depend on what wraps it. All processes call it.

    Args:
        model: The model, of any kind: in shards, in :class:`DistributedDataParallel`, or as it is.
        submodules: Only their parameters.
        options: Whole tensors or DTensors, and where.

    Returns:
        Tensors by name.

    Raises:
        ValueError: Options contradict each other.

    Example:
        >>> from rgrad.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    chosen = _checked(options)
    frozen = _frozen(model) if chosen.ignore_frozen_params else set()
    prefixes = _prefixes(model, submodules)
    state: State = {}
    for name, value in model.state_dict().items():
        key = _clean(model, name)
        if key in frozen:
            continue
        if prefixes is not None:
            prefix = next((one for one in prefixes if key.startswith(one)), None)
            if prefix is None:
                continue
            key = key if chosen.keep_submodule_prefixes else key.removeprefix(prefix)
        state[key] = value
    return collected(state, chosen.full_state_dict, chosen.cpu_offload)


def set_model_state_dict(
    model: Module, model_state_dict: State, *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Give a model its state. All processes call it.

    Args:
        model: The model.
        model_state_dict: What :func:`get_model_state_dict` gives; with ``full_state_dict`` whole tensors, and with
            ``broadcast_from_rank0`` that of the first process counts.
        options: What the state has, and whether all names must be there.

    Returns:
        Names that are missing, and names that the model does not have, as ``load_state_dict`` returns them.

    Raises:
        RuntimeError: Names or shapes differ.
        ValueError: Options contradict each other.
    """
    chosen = _checked(options)
    own = {_clean(model, name): name for name in model.state_dict()}
    like = {_clean(model, name): value for name, value in model.state_dict().items()}
    if chosen.full_state_dict:
        model_state_dict = distributed(model_state_dict, like, chosen.broadcast_from_rank0)
    given = {own.get(name, name): value for name, value in model_state_dict.items()}
    frozen = _frozen(model) if chosen.ignore_frozen_params else set()
    strict = chosen.strict
    for name in frozen - set(model_state_dict):
        given[own[name]] = like[name]
    return model.load_state_dict(given, strict=strict)


def _optimizers(optimizers: Optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _started(optimizer: Optimizer) -> None:
    """Let an optimizer that has not stepped make its states, by a step that changes no parameter."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    before = [p.detach().clone() for p in parameters]
    rates = [group.get("lr") for group in optimizer.param_groups]
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = _core.zeros_like(parameter)
    for group, lr in zip(optimizer.param_groups, rates, strict=True):
        if lr is not None:
            group["lr"] = _core.zeros_like(lr) if isinstance(lr, Tensor) else 0.0
    try:
        optimizer.step()
    finally:
        for group, lr in zip(optimizer.param_groups, rates, strict=True):
            if lr is not None:
                group["lr"] = lr
        optimizer.zero_grad(set_to_none=True)
        with no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                # Some steps move parameters without a rate.
                parameter.copy_(value)


def _named(optimizer: Optimizer, names: dict[Tensor, str]) -> State:
    """The state of an optimizer, by the names of parameters."""

    def name_of(parameter: Tensor) -> str:
        if parameter not in names:
            raise RuntimeError(
                f"get_optimizer_state_dict: a parameter of {type(optimizer).__name__} of shape "
                f"{tuple(parameter.shape)} "
                "is none of the model's; make the optimizer after the model is wrapped, of model.parameters()"
            )
        return names[parameter]

    numbers = dict(enumerate(p for group in optimizer.param_groups for p in group["params"]))
    found = optimizer.state_dict()
    state = {name_of(numbers[number]): dict(values) for number, values in found["state"].items() if number in numbers}
    groups = [
        {**saved, "params": [name_of(p) for p in group["params"]]}
        for saved, group in zip(found["param_groups"], optimizer.param_groups, strict=True)
    ]
    for group in groups:
        group.pop("param_names", None)
    return {"state": state, "param_groups": groups}


def _flat(state: State) -> State:
    """One flat dict: ``state.NAME.KEY`` and ``param_groups.NAME.KEY``."""
    made = {f"state.{name}.{key}": v for name, values in state["state"].items() for key, v in values.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            made.update({f"param_groups.{name}.{key}": v for key, v in group.items() if key != "params"})
    return made


def _nested(flat: State, names: Iterable[str]) -> State:
    """The state of a flat dict. Each parameter is a group of its own."""
    state: State = {}
    groups: list[State] = []
    for name in names:
        values = {
            key.removeprefix(f"state.{name}."): v
            for key, v in flat.items()
            if key.startswith(f"state.{name}.") and "." not in key.removeprefix(f"state.{name}.")
        }
        if values:
            state[name] = values
        options = {
            key.removeprefix(f"param_groups.{name}."): v
            for key, v in flat.items()
            if key.startswith(f"param_groups.{name}.") and "." not in key.removeprefix(f"param_groups.{name}.")
        }
        if options:
            groups.append({**options, "params": [name]})
    return {"state": state, "param_groups": groups}


def _tensors(state: State) -> State:
    return {f"{name}\n{key}": value for name, values in state["state"].items() for key, value in values.items()}


def _put_back(state: State, tensors: State) -> State:
    made: State = {}
    for path, value in tensors.items():
        name, key = path.split("\n")
        made.setdefault(name, {})[key] = value
    return {**state, "state": made}


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:
    """The state of optimizers, by the names of parameters instead of numbers. All processes call it.

    An optimizer that has not stepped makes its states first.

    Args:
        model: The model.
        optimizers: An optimizer of its parameters, or several.
        submodules: Only the states of their parameters.
        options: Whole tensors or DTensors, and where.

    Returns:
        ``{"state": {name: ...}, "param_groups": [...]}``, or a flat dict with ``flatten_optimizer_state_dict``.

    Raises:
        RuntimeError: An optimizer has a parameter that is none of the model's.
        ValueError: Options contradict each other.
    """
    chosen = _checked(options)
    names, prefixes = _names(model), _prefixes(model, submodules)
    merged: State = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _started(optimizer)
        found = _named(optimizer, names)
        merged["state"].update(found["state"])
        merged["param_groups"] += found["param_groups"]
    if prefixes is not None:
        merged = _part(merged, prefixes, chosen.keep_submodule_prefixes)
    tensors = collected(_tensors(merged), chosen.full_state_dict, chosen.cpu_offload)
    if chosen.full_state_dict and chosen.cpu_offload and rank() != 0:
        return {}
    merged = _put_back(merged, tensors)
    return _flat(merged) if chosen.flatten_optimizer_state_dict else merged


def _part(state: State, prefixes: Sequence[str], keep: bool) -> State:
    def kept(name: str) -> str | None:
        prefix = next((one for one in prefixes if name.startswith(one)), None)
        return None if prefix is None else name if keep else name.removeprefix(prefix)

    groups = [{**group, "params": [n for p in group["params"] if (n := kept(p))]} for group in state["param_groups"]]
    values = {new: v for name, v in state["state"].items() if (new := kept(name))}
    return {"state": values, "param_groups": [group for group in groups if group["params"]]}


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: State, *, options: StateDictOptions | None = None
) -> None:
    """Give optimizers their state. All processes call it.

    Args:
        model: The model.
        optimizers: An optimizer of its parameters, or several.
        optim_state_dict: What :func:`get_optimizer_state_dict` gives.
        options: What the state has.

    Raises:
        RuntimeError: The state has no group for a parameter.
        ValueError: Options contradict each other.
    """
    chosen = _checked(options)
    names = _names(model)
    found = _optimizers(optimizers)
    for optimizer in found:
        _started(optimizer)
    # With `broadcast_from_rank0` the form is that of the first process.
    given = optim_state_dict
    if given and "param_groups" not in given:
        given = _nested(given, names.values())
    given = given or {"state": {}, "param_groups": []}
    if chosen.full_state_dict:
        like = {key: v for one in found for key, v in _tensors(_named(one, names)).items()}
        both = {**_tensors(given), "\nparam_groups": given["param_groups"]}
        both = distributed(both, like, chosen.broadcast_from_rank0)
        given = {"state": {}, "param_groups": both.pop("\nparam_groups")}
        given = _put_back(given, both)
    group_of = {name: group for group in given["param_groups"] for name in group["params"]}
    for optimizer in found:
        own = optimizer.state_dict()
        state: dict[int, Any] = {}
        groups: list[State] = []
        number = 0
        for saved, group in zip(own["param_groups"], optimizer.param_groups, strict=True):
            wanted = [names[p] for p in group["params"]]
            missing = [name for name in wanted if name not in group_of]
            if wanted and len(missing) == len(wanted):
                raise RuntimeError(
                    f"set_optimizer_state_dict: the state has no group for {missing[0]!r}; it has those for "
                    f"{sorted(group_of)[:5]}"
                )
            options_of: State = next((group_of[name] for name in wanted if name in group_of), {})
            groups.append({**saved, **{k: v for k, v in options_of.items() if k != "params"}})
            for name in wanted:
                if name in given["state"]:
                    state[number] = given["state"][name]
                number += 1
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:
    """The states of a model and of its optimizers. All processes call it.

    Args:
        model: The model.
        optimizers: An optimizer, or several.
        submodules: Only the states of their parameters.
        options: Whole tensors or DTensors, and where.

    Returns:
        What :func:`get_model_state_dict` and :func:`get_optimizer_state_dict` return.
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: State,
    optim_state_dict: State,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Give a model and its optimizers their states. All processes call it.

    Args:
        model: The model.
        optimizers: An optimizer, or several.
        model_state_dict: The state of the model.
        optim_state_dict: That of the optimizers.
        options: What the states have.

    Returns:
        What :func:`set_model_state_dict` returns.
    """
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
