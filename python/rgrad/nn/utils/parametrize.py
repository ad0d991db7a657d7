"""Parametrizations: a parameter of a module computed from others each time it is read."""

import contextlib
import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, ClassVar

from ... import __future__ as _future
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...utils._swap import swap_tensors
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """Values that were computed while :func:`cached` was open, by module and name."""

    depth = 0
    values: ClassVar[dict[tuple[int, str], Any]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside the block.

    Yields:
        Nothing.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> with nn.utils.parametrize.cached():
        ...     same = layer.weight is layer.weight
        >>> same
        True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if _Cache.depth == 0:
            _Cache.values = {}


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _give(to: Tensor, value: Tensor) -> None:
    """Give a tensor other values, which may have another shape."""
    if _future.get_swap_module_params_on_conversion():
        if isinstance(to, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, requires_grad=to.requires_grad)
        swap_tensors(to, value)
    else:
        to.set_(value)


def _must_agree(what: str, name: str, before: str, after: str, flag: str = "`unsafe` flag is enabled") -> ValueError:
    return ValueError(
        f"Registering a parametrization may not change the {what} of the tensor, unless {flag}.\n{before}\n{after}"
    )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, with the tensors that the first one reads.

    These are ``original``, or ``original0``, ``original1``, ... if ``right_inverse`` gives several.

    Args:
        modules: The parametrizations, at least one.
        original: The tensor as it is now.
        unsafe: Whether dtype and shape may change.

    Raises:
        ValueError: There is no parametrization, or one changes the dtype or the shape.

    Shape:
        That of the tensor, unless ``unsafe``.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> layer.parametrizations.weight.ntensors
        2
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {getattr(original, what)}\n"
                        f"right_inverse(original).{what}: {getattr(new, what)}"
                    )
            with no_grad():
                _give(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                own = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
                own.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", own)
        if unsafe:
            return
        made = self()
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for what, old, now in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
            if old != now:
                raise _must_agree(what, "", f"unparametrized {what}: {old}", f"parametrized {what}: {now}")

    def right_inverse(self, value: Any) -> None:
        """Give the originals the values from which the parametrizations make ``value``.

        Args:
            value: The tensor that the parametrizations are to give.

        Raises:
            RuntimeError: A parametrization has no ``right_inverse``.
            ValueError: The inverses give other tensors than the originals are.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _give(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(value)}."
                )
            for i, part in enumerate(value):
                own = getattr(self, f"original{i}")
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got element {i} of type "
                        f"{type(part).__name__}"
                    )
                if own.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype "
                        f"{own.dtype}"
                    )
                _give(own, part)

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self
        parts = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        x = first(*(getattr(self, part) for part in parts))
        for module in others:
            x = module(x)
        return x


def _with_own_class(module: Module) -> None:
    """Give the module a class of its own, which can have properties."""
    cls = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(made, slot, deepcopy(getattr(self, slot), memo))
        return made

    def state(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): their class is made when "
            "the parametrization is registered"
        )

    members: dict[str, Any] = {"__getstate__": state}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _with_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if _Cache.depth == 0:
            return parametrization()
        key = (id(self), name)
        value = _Cache.values.get(key)
        if value is None:
            value = _Cache.values[key] = parametrization()
        return value

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer by ``parametrization(original)`` each time it is read.

    A second parametrization reads what the first one gives. If they have ``right_inverse``, the tensor keeps its
    values, and can be assigned. ``module.parametrizations.<name>`` is their :class:`ParametrizationList`.

    Args:
        module: A module, whose class is replaced by a subclass of its own.
        tensor_name: The name of a parameter or buffer.
        parametrization: A module that maps tensors to tensors.
        unsafe: Whether it may change dtype and shape.

    Returns:
        The module.

    Raises:
        ValueError: There is no such tensor, or dtype or shape would change.

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> rgrad.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations: Any = module.parametrizations
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        parametrizations[tensor_name].append(parametrization)
        parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _with_own_class(module)
        module.parametrizations = ModuleDict()
    _with_property(module, tensor_name)
    parametrizations = module.parametrizations
    parametrizations[tensor_name] = made
    return module


def _check_another(module: Module, name: str, parametrization: Any) -> None:
    before = getattr(module, name)
    made = parametrization(before)
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    flag = "the `unsafe` flag is enabled"
    for what in ("dtype", "shape"):
        old, now = getattr(before, what), getattr(made, what)
        if old != now:
            lines = f"module.{name}.{what}: {old}", f"parametrization(module.{name}).{what}: {now}"
            raise _must_agree(what, name, *lines, flag)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        old, now = getattr(before, what), getattr(back, what)
        if old != now:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless {flag}.\nmodule.{name}.{what}: {old}\nreturned {what}: {now}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module is parametrized, or this one.

    Args:
        module: The module.
        tensor_name: The name of the tensor.

    Returns:
        A truth value.

    Example:
        >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 2))
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary one again.

    Args:
        module: The module.
        tensor_name: The tensor's name.
        leave_parametrized: Keep the values that it has now, not the original ones.

    Returns:
        The module, with its old class if nothing else is parametrized.

    Raises:
        ValueError: The tensor is not parametrized; or the original values are several tensors.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations: Any = module.parametrizations
    found = parametrizations[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with no_grad():
                _give(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before anything was parametrized.

    Args:
        module: The module.

    Returns:
        A class.

    Example:
        >>> nn.utils.parametrize.type_before_parametrizations(nn.Linear(2, 2)).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give another module the parametrizations of one, and the tensors that these read.

    Args:
        from_module: A module; nothing happens if it is not parametrized.
        to_module: The other one.
        tensor_name: Only this tensor.

    Returns:
        ``to_module``.

    Example:
        >>> layer, other = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)), nn.Linear(2, 2)
        >>> other = nn.utils.parametrize.transfer_parametrizations_and_params(layer, other)
        >>> nn.utils.parametrize.is_parametrized(other, "weight")
        True
    """
    if not is_parametrized(from_module):
        return to_module
    sources: Any = from_module.parametrizations
    for name in list(sources) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in sources[name]:
            register_parametrization(to_module, name, parametrization)
        targets: Any = to_module.parametrizations
        for key in ("original", *(f"original{i}" for i in range(sources[name].ntensors))):
            if hasattr(sources[name], key):
                setattr(targets[name], key, getattr(sources[name], key))
    return to_module
