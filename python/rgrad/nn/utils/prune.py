"""Pruning: masks that set parts of a parameter to zero.

A pruned parameter ``<name>`` is computed before each call from the parameter ``<name>_orig`` and the buffer
``<name>_mask``.
"""

from collections.abc import Iterable
from typing import Any

from ... import _core
from ..._core import Tensor
from ..modules.module import Module
from ._pruning import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
)
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones.

    Args:
        module: The module.
        name: The name of the parameter.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "weight")
        >>> int((layer.weight_mask == 0).sum())
        0
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of a parameter.

    Args:
        module: The module.
        name: The parameter's name.
        amount: How many elements, or which part of them.

    Returns:
        The module.

    Raises:
        TypeError: ``amount`` is no number.
        ValueError: It is negative, or more than there is.

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 2), "weight", 0.5)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter that are closest to zero.

    Args:
        module: The module.
        name: The parameter's name.
        amount: How many elements, or which part of them.
        importance_scores: What tells the important elements, in place of the parameter.

    Returns:
        The module.

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> layer.weight.data = rgrad.tensor([[3.0, -1.0]])
        >>> nn.utils.prune.l1_unstructured(layer, "weight", 1).weight
        tensor([[3., -0.]], grad_fn=<MulBackward0>)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random channels of a parameter.

    Args:
        module: The module.
        name: The parameter's name.
        amount: How many channels, or which part of them.
        dim: The dimension of the channels.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 2), "weight", 1, dim=0)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the channels of a parameter that have the least norm.

    Args:
        module: The module.
        name: The parameter's name.
        amount: How many channels, or which part of them.
        n: The order of the norm.
        dim: The dimension of the channels.
        importance_scores: What tells the important channels, in place of the parameter.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Linear(2, 2), "weight", 1, n=2, dim=0)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as one: the least important elements of all of them.

    Args:
        parameters: Pairs of a module and a parameter's name.
        pruning_method: A class of type ``"unstructured"``.
        importance_scores: By pair, what tells the important elements in place of the parameter.
        kwargs: Arguments of the class.

    Raises:
        TypeError: The arguments are of other types, or the method prunes no elements.

    Example:
        >>> layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        >>> method = nn.utils.prune.L1Unstructured
        >>> nn.utils.prune.global_unstructured([(layer, "weight") for layer in layers], method, amount=0.25)
        >>> sum(int((layer.weight_mask == 0).sum()) for layer in layers)
        2
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs, given = list(parameters), importance_scores or {}
    scores = parameters_to_vector([given.get(pair, getattr(*pair)) for pair in pairs])
    ones = (_core.ones_like(getattr(module, name).detach()) for module, name in pairs)
    masks = [getattr(module, name + "_mask", one) for (module, name), one in zip(pairs, ones, strict=True)]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    mask = PruningContainer(method).compute_mask(scores.detach(), parameters_to_vector(masks))
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, mask[start : start + param.numel()].view_as(param))
        start += param.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is 0.

    Args:
        module: The module.
        name: The name of the parameter.
        mask: A tensor of the parameter's shape, 0 where it is pruned.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 2), "weight", rgrad.eye(2))
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the pruned values the parameter, for good.

    Args:
        module: The module.
        name: The name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: The parameter is not pruned.

    Example:
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "weight")
        >>> sorted(dict(nn.utils.prune.remove(layer, "weight").named_parameters()))
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of its children is pruned.

    Args:
        module: The module.

    Returns:
        A truth value.

    Example:
        >>> nn.utils.prune.is_pruned(nn.Linear(2, 2))
        False
    """
    return any(
        isinstance(hook, BasePruningMethod) for child in module.modules() for hook in child._forward_pre_hooks.values()
    )
