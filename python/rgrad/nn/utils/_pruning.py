"""The methods of pruning: how a mask is made, and how it is put on a parameter."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ... import _core
from ..._core import Tensor
from ..modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
]


class BasePruningMethod(ABC):
    """Base class: subclasses define :meth:`compute_mask` and ``PRUNING_TYPE``.

    The type says what a further method sees of a pruned parameter: ``"unstructured"`` the elements that are left,
    ``"structured"`` the channels (of the attribute ``dim``) of which something is left, ``"global"`` everything.

    Example:
        >>> class Negative(nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t > 0)
        >>> Negative().prune(rgrad.tensor([1.0, -2.0])).abs()
        tensor([1., 0.])
    """

    _tensor_name: str | None = None
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor (or its scores), within the mask that there is.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned values.

        Args:
            module: The module.

        Returns:
            A tensor.

        Raises:
            AssertionError: Nothing is pruned.
        """
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, orig = (getattr(module, self._tensor_name + end) for end in ("_mask", "_orig"))
        pruned: Tensor = mask.to(dtype=orig.dtype) * orig
        return pruned

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> "BasePruningMethod":
        """Prune a parameter of a module, on top of what is pruned of it already.

        Args:
            module: The module.
            name: The parameter's name.
            args: Arguments of the class.
            importance_scores: What tells the important elements, in place of the parameter.
            kwargs: Arguments of the class.

        Returns:
            The method.

        Raises:
            AssertionError: The scores have another shape.
        """
        found = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        orig = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {orig.shape}"
            )
        scores = orig if importance_scores is None else importance_scores
        if found:
            old = found[0][1]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, default_mask=getattr(module, name + "_mask").detach().clone())
            method = container
        else:
            mask = method.compute_mask(scores, default_mask=_core.ones_like(orig.detach()))
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
        # Nothing has changed if the method refused the parameter.
        for key, _ in found:
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor.

        Args:
            t: The tensor.
            default_mask: A mask that there is already.
            importance_scores: What tells the important elements, in place of the tensor.

        Returns:
            A new tensor.

        Raises:
            AssertionError: The scores have another shape.
        """
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        mask = _core.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter.

        Args:
            module: The module.

        Raises:
            AssertionError: Nothing is pruned.
        """
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig: Any = module._parameters.pop(name + "_orig")
        orig.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Several methods, each of which prunes what those before have left.

    Args:
        args: Positional arguments.

    Raises:
        TypeError: Something is no pruning method.
        ValueError: The methods are of different parameters.

    Example:
        >>> len(nn.utils.prune.PruningContainer(nn.utils.prune.Identity()))
        1
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add one more method.

        Args:
            method: The method.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method, which sees what ``default_mask`` has left.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        method: Any = self._pruning_methods[-1]
        rank = t.dim()
        seen: Any = [slice(None)] * rank
        if method.PRUNING_TYPE == "unstructured":
            seen = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            dim = method.dim + rank if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {rank}")
            seen[dim] = default_mask.sum(dim=[d for d in range(rank) if d != dim]) != 0
            seen = tuple(seen)
        elif method.PRUNING_TYPE == "global":
            seen = tuple(seen)
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[seen] = method.compute_mask(t[seen], default_mask=default_mask[seen]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter has a mask of ones.

    Example:
        >>> nn.utils.prune.Identity().prune(rgrad.ones(2))
        tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that there is.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        return default_mask


class _ByAmount(BasePruningMethod):
    """A method that prunes a number or a part of what there is."""

    amount: Any

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, numbers.Integral):
            return round(float(self.amount) * size)
        if int(self.amount) > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class RandomUnstructured(_ByAmount):
    """Prunes random elements: ``amount`` of them, or this part of them.

    Args:
        amount: How many, or which part of them.

    Example:
        >>> nn.utils.prune.RandomUnstructured(0.0).prune(rgrad.ones(2))
        tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without random elements.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        return _without(default_mask, _core.rand_like(t), self._count(t.numel()), largest=True)


class L1Unstructured(_ByAmount):
    """Prunes the elements closest to zero: ``amount`` of them, or this part of them.

    Args:
        amount: How many, or which part of them.

    Example:
        >>> nn.utils.prune.L1Unstructured(0).prune(rgrad.ones(2))
        tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the elements closest to zero.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        return _without(default_mask, t.abs(), self._count(t.numel()), largest=False)


def _without(mask: Tensor, scores: Tensor, count: int, largest: bool) -> Tensor:
    mask = mask.contiguous().clone()
    if count:
        mask.view(-1)[scores.reshape(-1).topk(count, largest=largest).indices] = 0
    return mask


class _Channels(_ByAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _channels(self, t: Tensor) -> tuple[int, int]:
        """How many channels there are, and how many of them to prune."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return t.shape[self.dim], self._count(t.shape[self.dim])

    def _mask(self, t: Tensor, default_mask: Tensor, scores: Tensor, kept: int) -> Tensor:
        seen: list[Any] = [slice(None)] * t.dim()
        seen[self.dim] = scores.topk(kept).indices
        mask = _core.zeros_like(t.detach())
        mask[tuple(seen)] = 1
        return mask.mul_(default_mask.to(dtype=mask.dtype))


class RandomStructured(_Channels):
    """Prunes random channels along ``dim``: ``amount`` of them, or this part of them.

    Args:
        amount: How many, or which part of them.
        dim: The dimension of the channels.

    Example:
        >>> nn.utils.prune.RandomStructured(0, dim=0).prune(rgrad.ones(1, 2))
        tensor([[1., 1.]])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without random channels.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        channels, count = self._channels(t)
        if count == 0:
            return default_mask
        return self._mask(t, default_mask, _core.rand(channels, device=t.device), channels - count)


class LnStructured(_Channels):
    """Prunes the channels along ``dim`` of the least norm of order ``n``: ``amount`` of them, or this part of them.

    Args:
        amount: How many, or which part of them.
        n: The order of the norm.
        dim: The dimension of the channels.

    Example:
        >>> nn.utils.prune.LnStructured(0, n=2, dim=0).prune(rgrad.ones(1, 2))
        tensor([[1., 1.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the channels of the least norm.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        channels, count = self._channels(t)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return self._mask(t, default_mask, t.detach().norm(self.n, others), channels - count)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0.

    Args:
        mask: A tensor of the parameter's shape, 0 where it is pruned.

    Example:
        >>> nn.utils.prune.CustomFromMask(rgrad.ones(2)).prune(rgrad.ones(2))
        tensor([1., 1.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks.

        Args:
            t: The tensor.
            default_mask: The mask that there is already.

        Returns:
            A tensor of 0 and 1.
        """
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)
