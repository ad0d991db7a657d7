"""How tensors of several processes become one."""

from __future__ import annotations

import enum
from collections.abc import Generator
from typing import Any

from .. import _core
from .._core import Tensor
from ._buffers import bytes_of, name_of, room_for
from ._mpi import NATIVE, Link


class ReduceOp(enum.IntEnum):
    """How tensors of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class Premultiplied:
    """The sum of the tensors times a factor.

    Args:
        factor: A number, or a tensor of one element.
    """

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __str__(self) -> str:
        return "RedOpType.PREMUL_SUM"


AnyOp = ReduceOp | Premultiplied

_MPI_OPS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PREMUL_SUM: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
# Bools are bytes of 0 and 1.
_BOOL_OPS = {"SUM": "BOR", "MAX": "BOR", "BOR": "BOR", "PROD": "BAND", "MIN": "BAND", "BAND": "BAND", "BXOR": "BXOR"}
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
# What MPI does not know is computed in these.
_WIDER = {"float16": "float32", "bfloat16": "float32", "complex32": "complex64"}


def supports_complex(reduceOp: AnyOp) -> bool:
    """Whether complex tensors can be combined so.

    Args:
        reduceOp: How.
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM) or isinstance(reduceOp, Premultiplied)


class Reduction:
    """An operation on elements of a dtype. The arguments are checked here, before anything is sent.

    Args:
        name: The function that was called.
        op: How.
        tensor: One of the tensors.

    Raises:
        TypeError: ``op`` is no :class:`ReduceOp`.
        ValueError: Complex numbers cannot be combined so.
        RuntimeError: Elements of this dtype cannot be combined so.
    """

    def __init__(self, name: str, op: Any, tensor: Tensor) -> None:
        if not isinstance(op, (ReduceOp, Premultiplied)):
            raise TypeError(f"{name}: `op` must be a torch.distributed.ReduceOp, got {type(op).__name__}")
        self.op, self.dtype = op, tensor.dtype
        if self.dtype.is_complex and not supports_complex(op):
            raise ValueError(f"{name} does not support {op} on complex tensors")
        real = self.dtype.is_floating_point or self.dtype.is_complex
        if real and op in _BITS:
            raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
        if not real and (op is ReduceOp.AVG or isinstance(op, Premultiplied)):
            raise RuntimeError(
                f"{name}: result type Float can't be cast to the desired output type {name_of(self.dtype)}: {op} needs "
                "floating point or complex elements"
            )
        if op is ReduceOp.PREMUL_SUM:
            raise RuntimeError(f"{name}: ReduceOp.PREMUL_SUM needs a factor: distributed._make_nccl_premul_sum(factor)")
        self._mpi_op = _MPI_OPS[ReduceOp.SUM if isinstance(op, Premultiplied) else op]
        stored = name_of(self.dtype)
        self._kind = _WIDER.get(stored, stored)
        if stored == "bool":
            self._kind, self._mpi_op = "uint8", _BOOL_OPS[self._mpi_op]
        if self._kind not in NATIVE:
            raise RuntimeError(f"{name}: Invalid scalar type {stored}: tensors of this dtype cannot be combined")
        self._widens = stored in _WIDER

    def _before(self, flat: Tensor) -> Tensor:
        """What is sent: wider elements, times the factor. A new tensor unless there is nothing to do."""
        if self._widens:
            flat = flat.to(getattr(_core, self._kind))
        if isinstance(self.op, Premultiplied):
            factor = self.op.factor
            flat = flat * (factor.to(flat.dtype) if isinstance(factor, Tensor) else factor)
        return flat

    def _after(self, flat: Tensor, members: int) -> None:
        if self.op is ReduceOp.AVG:
            flat.div_(members)

    def all(self, link: Link, flat: Tensor) -> Generator[Any, None, None]:
        """Combine in place, for all members."""
        sent = self._before(flat)
        yield link.all_reduce(bytes_of(sent), self._kind, self._mpi_op)
        self._after(sent, link.size)
        if sent is not flat:
            flat.copy_(sent)

    def one(self, link: Link, flat: Tensor, root: int) -> Generator[Any, None, None]:
        """Combine in place, for one member."""
        sent = self._before(flat)
        yield link.reduce(bytes_of(sent), self._kind, self._mpi_op, root)
        if link.rank == root:
            self._after(sent, link.size)
            if sent is not flat:
                flat.copy_(sent)

    def parts(self, link: Link, given: Tensor, got: Tensor) -> Generator[Any, None, None]:
        """Combine; each member gets its part, in order."""
        sent = self._before(given)
        room = got if sent.dtype == got.dtype else room_for(got.numel(), sent.dtype)
        yield link.reduce_scatter(bytes_of(sent), bytes_of(room), self._kind, self._mpi_op)
        self._after(room, link.size)
        if room is not got:
            got.copy_(room)
