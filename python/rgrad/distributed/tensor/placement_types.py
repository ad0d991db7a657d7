"""How a tensor lies on the processes along one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base class of :class:`Shard`, :class:`Replicate` and :class:`Partial`."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a piece.

        Args:
            dim: Cut along this dimension; None for any.
        """
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is a reduction of what the processes have.

        Args:
            reduce_op: By this operation; None for any.
        """
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True, repr=False)
class Shard(Placement):
    """Each process has a piece along a dimension, as ``chunk`` cuts it: the last ones may be shorter, or empty.

    Args:
        dim: The dimension.

    Raises:
        TypeError: It is no integer.

    Example:
        >>> from rgrad.distributed.tensor import Shard
        >>> Shard(0)
        Shard(dim=0)
    """

    dim: int

    def __post_init__(self) -> None:
        if not isinstance(self.dim, int):
            raise TypeError(f"Shard: dim must be an int, got {type(self.dim).__name__}")

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class Replicate(Placement):
    """Each process has the whole tensor."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


# What each of them does with the tensors of two processes.
_REDUCTIONS = ("sum", "avg", "product", "max", "min")


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """The tensor is a reduction of those of the processes, which has not been made yet.

    Args:
        reduce_op: "sum", "avg", "product", "max" or "min".

    Raises:
        ValueError: It is another one.
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if type(self) is Partial and self.reduce_op not in _REDUCTIONS:
            raise ValueError(f"Partial: reduce_op must be one of {', '.join(_REDUCTIONS)}, got {self.reduce_op!r}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class NormPartial(Partial):
    """The tensor is the norm of the norms that the processes have."""

    reduce_op: str = "sum"
    norm_type: Any = 2

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type})"
