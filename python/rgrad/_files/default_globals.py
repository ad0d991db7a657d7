"""The classes and functions that every pickle may use, and what it may make with them.

Whoever writes a pickle chooses the arguments. So none of these is called as it is: each has a function here that takes
what pickles of `save` give to it, and nothing that costs more than its length in the file.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.parameter import Parameter
from . import rebuild
from .torch_names import plain_values


def _ordered(*items: Any) -> Any:
    if items and (len(items) > 1 or type(items[0]) not in (list, tuple, dict)):
        raise TypeError("expected nothing, or one list of pairs")
    return OrderedDict(*items)


def _counted(*counts: Any) -> Any:
    if counts and (len(counts) > 1 or type(counts[0]) is not dict):
        raise TypeError("expected nothing, or one dict")
    made: Counter[Any] = Counter()
    # Not `update`, which adds the counts.
    dict.update(made, *counts)
    return made


def _encoded(text: Any, encoding: Any) -> bytes:
    # How older protocols write bytes.
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise TypeError("expected a string and 'latin1'")
    return text.encode("latin1")


def _bytearray(*given: Any) -> bytearray:
    if not given:
        return bytearray()
    if len(given) == 2:
        return bytearray(_encoded(*given))
    if len(given) > 1 or type(given[0]) is not bytes:
        raise TypeError("expected bytes")
    return bytearray(given[0])


def _set(*items: Any) -> set[Any]:
    if items and (len(items) > 1 or type(items[0]) not in (list, tuple, set, frozenset)):
        raise TypeError("expected nothing, or one list")
    return set(*items)


def _frozenset(*items: Any) -> frozenset[Any]:
    if items and (len(items) > 1 or type(items[0]) not in (list, tuple, set, frozenset)):
        raise TypeError("expected nothing, or one list")
    return frozenset(*items)


# What a defaultdict may make of nothing.
_FACTORIES = (dict, list, set, tuple, int, float, bool, str, OrderedDict, Counter)


def _default(factory: Any = None) -> Any:
    if factory is not None and all(factory is not kind for kind in _FACTORIES):
        raise TypeError("expected a builtin class that makes an empty object")
    return defaultdict(factory)


def _nothing(kind: Any) -> Callable[..., Any]:
    def make(*given: Any) -> Any:
        if given:
            raise TypeError("expected no arguments")
        return kind()

    return make


def _complex(real: Any, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise TypeError("expected two numbers")
    return complex(real, imag)


def _size(sizes: Any) -> Any:
    if type(sizes) not in (tuple, list) or any(type(size) is not int for size in sizes):
        raise TypeError("expected a tuple of integers")
    return _core.Size(sizes)


def _device(kind: Any, *index: Any) -> Any:
    if type(kind) is not str or len(index) > 1 or any(type(number) is not int for number in index):
        raise TypeError("expected the name of a device")
    try:
        return _core.device(kind, *index)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def _tensor(*_given: Any) -> Any:
    raise TypeError("tensors stand in the header of the file")


def _parameter(data: Any = None, requires_grad: Any = True) -> Any:
    if not (data is None or isinstance(data, Tensor)) or type(requires_grad) is not bool:
        raise TypeError("expected a tensor and a bool")
    try:
        return Parameter(data, requires_grad)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


#: What pickles of untrusted files may do with the classes and functions that need no allowance.
MAKERS: dict[Any, Callable[..., Any]] = {
    OrderedDict: _ordered,
    Counter: _counted,
    codecs.encode: _encoded,
    bytearray: _bytearray,
    set: _set,
    frozenset: _frozenset,
    defaultdict: _default,
    complex: _complex,
    **{kind: _nothing(kind) for kind in _FACTORIES if kind not in (set, OrderedDict, Counter)},
    _core.Size: _size,
    _core.device: _device,
    Tensor: _tensor,
    Parameter: _parameter,
    **{function: function for function in rebuild.FUNCTIONS.values()},
}

#: Those of them that make tensors of what is in a file.
TENSOR_MAKERS: tuple[Any, ...] = tuple(
    function for function in rebuild.FUNCTIONS.values() if function is not rebuild.layout_named
)

#: The same by their full names in files.
DEFAULT: dict[str, Any] = {
    "_codecs.encode": codecs.encode,
    **{f"{kind.__module__}.{kind.__qualname__}": kind for kind in MAKERS if isinstance(kind, type)},
    "torch.Size": _core.Size,
    "torch.device": _core.device,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    # How pickles of protocols up to 3 name a class inside of a class.
    "builtins.getattr": getattr,
    **rebuild.FUNCTIONS,
    **plain_values(),
}

#: Each call of one of these is a new object.
FRESH: tuple[Any, ...] = tuple(
    kind.__new__
    for kind in (
        *(object, dict, list, set, frozenset, tuple, bytes, bytearray, str, int, float, complex, BaseException),
        *(OrderedDict, defaultdict, Tensor, Parameter),
    )
)
