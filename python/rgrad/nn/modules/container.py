"""Modules that hold modules or parameters."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, overload

from ..._core import Tensor
from ..._runtime.info import typename
from ..parameter import Parameter
from ._text import indented
from .module import Module


def _position(index: int, length: int) -> int:
    """``index`` counted from the front, with the errors of lists."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Listed(Module):
    """What Sequential and ModuleList share: children named "0", "1", ... or by the user, in order."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def _key(self, index: int) -> str:
        return list(self._modules)[_position(index, len(self._modules))]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        for key in list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]:
            del self._modules[key]
        # Numbers have no gaps.
        self._renumber(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add ``module`` at the end; gives this container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Insert ``module`` before position ``index``.

        Raises:
            AssertionError: ``module`` is no module.
            IndexError: ``index`` is not a position in the container.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module).__name__}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index} for {len(self)} modules")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add the modules of ``sequential`` at the end, in order; gives this container."""
        for module in list(sequential):
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove what stands at ``key``, a position or a slice, and give it back."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError


class Container(Module):
    """The old way to make a module of modules, by name.

    Args:
        kwargs: Modules by the names of the attributes that they become.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     nn.Container(a=nn.Linear(2, 1)).a
        Linear(in_features=2, out_features=1, bias=True)
    """

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn("`nn.Container` is deprecated: subclass `nn.Module`.", FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(_Listed):
    """Modules that are called one after the other, each with the result of the one before.

    Args:
        args: The modules, or one OrderedDict of names and modules.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> net(rgrad.ones(5, 4)).shape
        rgrad.Size([5, 2])
        >>> net[1]
        ReLU()
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: "OrderedDict[str, Module]", /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other: "Sequential") -> "Sequential":
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: "Sequential") -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, other: int) -> "Sequential":
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(list(self) * other))

    def __rmul__(self, other: int) -> "Sequential":
        return self * other

    def forward(self, input: Any) -> Any:
        """Give the result of the last module, or ``input`` itself if there are no modules."""
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Listed):
    """A list of modules. Their parameters count as those of the module that owns the list.

    Args:
        modules: The modules.

    Example:
        >>> layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def insert(self, index: int, module: Module) -> None:
        """Insert ``module`` before position ``index``, as lists do."""
        super().insert(max(-len(self), min(index, len(self))), module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add ``modules`` at the end, in order; gives this list.

        Raises:
            TypeError: ``modules`` cannot be iterated.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __repr__(self) -> str:
        # Equal neighbours are shown once, with their number.
        if not self._modules:
            return self._get_name() + "()"
        runs: list[list[Any]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            indented(f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}", 2)
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules. Their parameters count as those of the module that owns the dict.

    Args:
        modules: A mapping of names and modules, or pairs.

    Example:
        >>> heads = nn.ModuleDict({"left": nn.Linear(2, 1), "right": nn.Linear(2, 3)})
        >>> heads["right"](rgrad.ones(2)).shape
        rgrad.Size([3])
        >>> [name for name, _ in heads.named_parameters()]
        ['left.weight', 'left.bias', 'right.weight', 'right.bias']
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module named ``key`` and give it back.

        Raises:
            KeyError: There is none.
        """
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names and the modules."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace modules from ``modules``, a mapping or pairs.

        Raises:
            TypeError: ``modules`` cannot be iterated, or something in it is no pair.
            ValueError: Something in it has not two entries.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        if isinstance(modules, (Mapping, ModuleDict)):
            pairs = list(modules.items())
        else:
            pairs = _pairs("ModuleDict", modules)
        for name, module in pairs:
            self[name] = module


def _pairs(kind: str, entries: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The pairs of names and values that `update` was given."""
    pairs = []
    for place, pair in enumerate(entries):
        where = f"{kind} update sequence element #{place}"
        if not isinstance(pair, Iterable):
            raise TypeError(f"{where} should be Iterable; is{type(pair).__name__}")
        entry: Any = pair
        if len(entry) != 2:
            raise ValueError(f"{where} has length {len(entry)}; 2 is required")
        pairs.append((entry[0], entry[1]))
    return pairs


def _entry(value: object) -> object:
    """Plain tensors become parameters; anything else stays what it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(key: object, value: object, kind_of: Callable[[Any], Any] = lambda value: value.dtype) -> str:
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"({key}): {kind} containing: [{kind_of(value)} of size {'x'.join(map(str, value.shape))}]"
    return f"({key}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters. Tensors that are put into it become parameters, other values stay as they are.

    Args:
        values: The values.

    Example:
        >>> scales = nn.ParameterList([rgrad.ones(2), rgrad.zeros(3)])
        >>> [p.shape for p in scales.parameters()]
        [rgrad.Size([2]), rgrad.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, self._size)), _entry(value))

    def append(self, value: Any) -> Self:
        """Add ``value`` at the end; gives this list."""
        setattr(self, str(self._size), _entry(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add ``values`` at the end, in order; gives this list.

        Raises:
            TypeError: ``values`` cannot be iterated, or is a tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(i, value) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """It computes nothing.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters in the order of insertion. Tensors that are put into it become parameters.

    Args:
        parameters: A mapping of names and values, or pairs.

    Example:
        >>> weights = nn.ParameterDict({"w": rgrad.ones(2)})
        >>> weights["b"] = rgrad.zeros(1)
        >>> weights
        ParameterDict(
            (w): Parameter containing: [rgrad.FloatTensor of size 2]
            (b): Parameter containing: [rgrad.FloatTensor of size 1]
        )
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict cannot be used as a key as it is not a string: {key!r}")
        if key not in self._keys and hasattr(type(self), key):
            raise KeyError(f"attribute '{key}' already exists")
        self._keys[key] = None
        setattr(self, key, _entry(value))

    def __delitem__(self, key: str) -> None:
        if key not in self._keys:
            raise KeyError(key)
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and the parameters."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter named ``key``, or ``default``."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Remove the parameter named ``key`` and give it back.

        Raises:
            KeyError: There is none.
        """
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def update(self, parameters: Any) -> None:
        """Add or replace parameters from ``parameters``, a mapping or pairs.

        New names are added in the order of an OrderedDict, of another ParameterDict or of pairs; those of other
        mappings are sorted.

        Raises:
            TypeError: ``parameters`` cannot be iterated, or something in it is no pair.
            ValueError: Something in it has not two entries.
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = list(parameters.items())
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = _pairs("ParameterDict", parameters)
        for key, value in pairs:
            self[key] = value

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def copy(self) -> "ParameterDict":
        """Another dict of the same parameters.

        Returns:
            A new dict.
        """
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter named ``key``, which becomes ``default`` if there is none.

        Args:
            key: A name.
            default: A parameter, a tensor or anything else.

        Returns:
            What is there now.
        """
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter and give back its name and itself.

        Returns:
            A pair.

        Raises:
            KeyError: There is none.
        """
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """A dict with one value at all names.

        Args:
            keys: Names.
            default: The value.

        Returns:
            A new dict.
        """
        return ParameterDict((key, default) for key in keys)

    def __or__(self, other: "ParameterDict") -> "ParameterDict":
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: "ParameterDict") -> "ParameterDict":
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: "ParameterDict") -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(key, value, typename) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """It computes nothing.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("ParameterDict should not be called.")
