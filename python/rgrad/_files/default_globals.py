"""The classes and functions that every pickle may use, and what it may make with them.

Whoever writes a pickle chooses the arguments. So none of these is called as it is: each has a function here that takes
what pickles of `save` give to it, and nothing that costs more than its length in the file.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.parameter import Parameter


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
    complex: _complex,
    _core.Size: _size,
    _core.device: _device,
    Tensor: _tensor,
    Parameter: _parameter,
}

#: The same by their full names in files.
DEFAULT: dict[str, Any] = {
    "_codecs.encode": codecs.encode,
    **{f"{kind.__module__}.{kind.__qualname__}": kind for kind in MAKERS if isinstance(kind, type)},
}

#: Each call of one of these is a new object.
FRESH: tuple[Any, ...] = tuple(
    kind.__new__
    for kind in (
        *(object, dict, list, set, frozenset, tuple, bytes, bytearray, str, int, float, complex, BaseException),
        *(OrderedDict, Tensor, Parameter),
    )
)
