"""How elements lie in memory. Tensors of rgrad are strided; the other layouts are names to compare with."""

from __future__ import annotations

from typing import Any

from .._core import Tensor


class layout:
    """The kind of a tensor's memory, as ``Tensor.layout`` tells it.

    Raises:
        TypeError: It is called: there are only those that are names of ``rgrad``.
    """

    __slots__ = ("_name",)
    _name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> layout:
        raise TypeError("cannot create 'layout' instances: use rgrad.strided")

    def __repr__(self) -> str:
        return f"rgrad.{self._name}"

    def __reduce__(self) -> str:
        return self._name


layout.__module__ = "rgrad"


def _made(name: str) -> layout:
    made = object.__new__(layout)
    made._name = name
    return made


strided = _made("strided")
sparse_coo = _made("sparse_coo")
sparse_csr = _made("sparse_csr")
sparse_csc = _made("sparse_csc")
sparse_bsr = _made("sparse_bsr")
sparse_bsc = _made("sparse_bsc")
jagged = _made("jagged")
_mkldnn = _made("_mkldnn")


def layout_of(tensor: Tensor) -> layout:
    """The layout of a tensor: always ``rgrad.strided``."""
    return strided
