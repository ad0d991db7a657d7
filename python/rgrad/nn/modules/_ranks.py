"""Docstrings of layers that exist for several numbers of dimensions, or lazily: what is the same is written once."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._docs import completed
from .module import Module

_Class = TypeVar("_Class", bound=type)


class Ranked(Module):
    """Base of a family of layers. A subclass that says its ``_dims`` has the family's ``_text`` in its docstring.

    See :func:`rgrad.nn._docs.completed` for the words of the text. Besides, ``{name}`` is the subclass, and ``_words``
    has further ones.
    """

    _dims: int
    _text: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_dims" in vars(cls):
            cls.__doc__ = completed(cls.__doc__, cls._text, cls._dims, name=cls.__name__, **cls._words())

    @classmethod
    def _words(cls) -> dict[str, str]:
        return {}


def described_as_lazy(call: str, shape: tuple[int, ...]) -> Callable[[_Class], _Class]:
    """A decorator of a lazy layer: its docstring goes on with that of the class that it becomes.

    Args:
        call: The arguments of an example.
        shape: A shape of an input with 3 channels for the example.
    """

    def complete(cls: _Class) -> _Class:
        layer: Any = cls
        eager, learned = layer.cls_to_become, layer._learned
        if cls.__doc__ is not None and eager.__doc__ is not None:
            cls.__doc__ += f"""

Args:
{_entries_but(learned, inspect.cleandoc(eager.__doc__))}

Shape:
    As :class:`{eager.__name__}`.

Example:
    >>> layer = nn.{cls.__name__}({call})
    >>> y = layer(rgrad.ones({", ".join(map(str, shape))}))
    >>> type(layer).__name__, layer.{learned}
    ('{eager.__name__}', 3)
"""
        return cls

    return complete


def _entries_but(name: str, doc: str) -> str:
    """The entries of the section of arguments but for one."""
    kept: list[str] = []
    for line in doc.partition("Args:\n")[2].partition("\n\n")[0].split("\n"):
        is_continued = line.startswith("     ")
        if is_continued:
            kept[-1] += "\n" + line
        else:
            kept.append(line)
    return "\n".join(entry for entry in kept if not entry.startswith(f"    {name}:"))
