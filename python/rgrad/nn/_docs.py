"""Docstrings of families of functions and layers: what is the same is written once."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SIZES = ("L", "H, W", "D, H, W")
_FLATTENED = ("L", "H and W", "D, H and W")


def completed(doc: str | None, text: str, dims: int = 0, **words: str) -> str | None:
    """A docstring with the text of its family before its example, or at its end.

    Args:
        doc: The docstring, or None (Python leaves them out with ``-OO``).
        text: In it ``{dims}`` is the number of dimensions, ``{twice}`` two times that, ``{sizes}`` names for their
            sizes, ``{flattened}`` the same in words, and ``{twos}``, ``{threes}`` and so on as many sizes for examples.
        dims: The number of dimensions; 0 for a text without them.
        words: Further words of the text. The words above may be in them.
    """
    if doc is None:
        return None
    known = {"dims": f"{dims}", "twice": f"{2 * dims}", "sizes": _SIZES[dims - 1], "flattened": _FLATTENED[dims - 1]}
    numbers = {"twos": 2, "threes": 3, "fours": 4, "fives": 5, "eights": 8}
    known |= {word: ", ".join([str(n)] * dims) for word, n in numbers.items()}
    own, mark, example = inspect.cleandoc(doc).partition("\n\nExample:\n")
    given = {word: value.format(**known) for word, value in words.items()}
    return f"{own}\n\n{inspect.cleandoc(text).format(**known, **given)}{mark}{example}"


def described(text: str, dims: int = 0, **words: str) -> Callable[[_Function], _Function]:
    """A decorator: the docstring of the function or class has the text of its family, too; see :func:`completed`."""

    def complete(function: _Function) -> _Function:
        function.__doc__ = completed(function.__doc__, text, dims, **words)
        return function

    return complete
