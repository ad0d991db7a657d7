"""Modules that learn the shapes of their parameters from their first input."""

from itertools import chain
from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ..parameter import UninitializedParameter, is_lazy


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


class _LazyLayer(LazyModuleMixin):
    """Base of rgrad's lazy layers: they learn one size, which is the attribute ``_learned``."""

    _learned: str

    def _without_shapes(self, bias: bool, device: Any, dtype: Any) -> None:
        """Have parameters without shapes, in the place of those that the base made for no channels."""
        module: Any = self
        module.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            module.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Reset the parameters, once they have shapes."""
        base: Any = super()
        if not self.has_uninitialized_params() and getattr(self, self._learned) != 0:
            base.reset_parameters()
