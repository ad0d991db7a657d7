"""Modules that learn the shapes of their parameters from their first input."""

from itertools import chain
from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from ._channel_norm import ChannelNorm
from ._ranks import described_as_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear


class LazyModuleMixin:
    """Base of lazy modules, before the class that they become.

    Subclasses make uninitialized parameters and define ``initialize_parameters(*inputs)``, which is called with the
    inputs of the first call and gives them shapes. Then the module becomes an instance of ``cls_to_become``. A state
    dict that is loaded before gives shapes too.
    """

    cls_to_become: type[Any] | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._load_hook = module._register_load_state_dict_pre_hook(_shapes_of_state, with_module=True)
        self._initialize_hook = module.register_forward_pre_hook(_infer, with_kwargs=True)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        module: Any = self
        for name, value in chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in module._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters the shapes that the inputs of a call need.

        Args:
            args: The inputs.
            kwargs: The inputs that are given by name.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet.

        Returns:
            A truth value.
        """
        return any(is_lazy(value) for value in chain(self._parameters.values(), self._buffers.values()))


def _infer(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {type(module).__name__} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _shapes_of_state(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    for name, value in chain(module._parameters.items(), module._buffers.items()):
        found = state_dict.get(prefix + name)
        if is_lazy(value) and isinstance(found, Tensor) and not is_lazy(found):
            with no_grad():
                value.materialize(found.shape)


@described_as_lazy("in_features", "2", (5, 3))
class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` whose ``in_features`` are those of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_features`` from the input.

        Args:
            input: The input of the first call.
        """
        weight: Any = self.weight
        bias: Any = self.bias
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                weight.materialize((self.out_features, self.in_features))
                if bias is not None:
                    bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            # A state dict gave the shapes.
            if input.shape[-1] != weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyChannelNorm(LazyModuleMixin, ChannelNorm):
    def __init__(
        self,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name in ("weight", "bias"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Reset statistics and parameters, once they have shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``num_features`` from the input.

        Args:
            input: The input of the first call.
        """
        if not self.has_uninitialized_params():
            # A state dict gave the shapes.
            self.num_features = self.num_features or self._channels_of(input)
            return
        self.num_features = self._channels_of(input)
        for value in chain(self._parameters.values(), self._buffers.values()):
            if is_lazy(value):
                value.materialize((self.num_features,))
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        return int(input.shape[1])


@described_as_lazy("num_features", "", (2, 3, 4))
class LazyBatchNorm1d(_LazyChannelNorm, BatchNorm1d):
    """A :class:`BatchNorm1d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm1d


@described_as_lazy("num_features", "", (2, 3, 4, 4))
class LazyBatchNorm2d(_LazyChannelNorm, BatchNorm2d):
    """A :class:`BatchNorm2d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm2d


@described_as_lazy("num_features", "", (2, 3, 2, 2, 2))
class LazyBatchNorm3d(_LazyChannelNorm, BatchNorm3d):
    """A :class:`BatchNorm3d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm3d


@described_as_lazy("num_features", "", (2, 3, 4))
class LazyInstanceNorm1d(_LazyChannelNorm, InstanceNorm1d):
    """A :class:`InstanceNorm1d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm1d


@described_as_lazy("num_features", "", (2, 3, 4, 4))
class LazyInstanceNorm2d(_LazyChannelNorm, InstanceNorm2d):
    """A :class:`InstanceNorm2d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm2d


@described_as_lazy("num_features", "", (2, 3, 2, 2, 2))
class LazyInstanceNorm3d(_LazyChannelNorm, InstanceNorm3d):
    """A :class:`InstanceNorm3d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm3d
