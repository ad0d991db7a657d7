"""PyTorch's class of version numbers, which compare as numbers do."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]

_NUMBER = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?"
    r"(?:-(?P<bare>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_LAST = ("~",)
_FIRST = ("",)


def _key(version: str) -> tuple[Any, ...]:
    """What versions are sorted by, as PEP 440 says: dev before pre before final before post, and local last.

    Raises:
        ValueError: It is no version.
    """
    found = _NUMBER.fullmatch(version)
    if found is None:
        raise ValueError(f"Invalid version: {version!r}")
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    is_post = found["bare"] is not None or found["post"] is not None
    if found["pre"] is not None:
        kind = found["pre"].lower()
        pre: tuple[Any, ...] = (_PRE.get(kind, kind), int(found["pre_n"] or 0))
    else:
        pre = _FIRST if found["dev"] is not None and not is_post else _LAST
    post = int(found["bare"] or found["post_n"] or 0) if is_post else -1
    dev = (int(found["dev_n"] or 0),) if found["dev"] is not None else (float("inf"),)
    # Numbers come behind letters, and no local part before any.
    local = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    parts = tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in local)
    return int(found["epoch"] or 0), tuple(release), pre, post, dev, parts


def _as_text(other: Any) -> str:
    """A version as text: a text, a version of ``packaging``, or a sequence of numbers.

    Raises:
        ValueError: It is none of these.
    """
    if isinstance(other, str):
        return other
    if isinstance(other, Iterable):
        return ".".join(str(part) for part in other)
    if hasattr(other, "release"):
        return str(other)
    raise ValueError(f"Can't convert {other} to a version")


class TorchVersion(str):
    """A version as text that compares with other versions as PEP 440 says.

    What it is compared with may be a text, a version of ``packaging``, or a sequence of numbers. Where that is no
    version, the texts are compared.

    Example:
        >>> rgrad.torch_version.TorchVersion("1.10.0a") > "1.2"
        True
    """

    __slots__ = ()

    def _compare(self, other: Any, name: str) -> Any:
        try:
            text = _as_text(other)
        except ValueError:
            return NotImplemented
        try:
            mine, theirs = _key(str(self)), _key(text)
        except ValueError:
            mine, theirs = (str(self),), (text,)
        return getattr(operator, name)(mine, theirs)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "lt")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "le")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "gt")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "ge")

    def __eq__(self, other: object) -> Any:
        return self._compare(other, "eq")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, "ne")

    def __hash__(self) -> int:
        return str.__hash__(self)
