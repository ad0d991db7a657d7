"""From one placement to another: what processes exchange."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from .._group import ProcessGroup
from .._reducing import all_reduce
from .._reductions import ReduceOp
from .._shards import gathered, piece
from ._spec import Placements, Spec, coordinate
from .placement_types import NormPartial, Partial, Placement, Replicate, Shard

_OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "product": ReduceOp.PRODUCT,
    "max": ReduceOp.MAX,
    "min": ReduceOp.MIN,
}


def _reduced(local: Tensor, place: Partial, group: ProcessGroup) -> Tensor:
    made = local.detach().clone()
    if not isinstance(place, NormPartial):
        all_reduce(made, _OPS[place.reduce_op], group)
        return made
    order = float(place.norm_type)
    if order in (float("inf"), float("-inf")):
        all_reduce(made, ReduceOp.MAX if order > 0 else ReduceOp.MIN, group)
        return made
    if order == 0.0:
        all_reduce(made, ReduceOp.SUM, group)
        return made
    made = made**order
    all_reduce(made, ReduceOp.SUM, group)
    return made ** (1.0 / order)


@no_grad()
def moved(local: Tensor, source: Spec, placements: Placements) -> Tensor:
    """This process's part for other placements, without a history. All processes of the mesh call it.

    Args:
        local: Its part now.
        source: Where the parts lie.
        placements: Where they are to lie; a reduction that is to be made stays one, or comes of none.
    """
    mesh, now = source.mesh, list(source.placements)
    local = local.detach()
    # A dimension that is cut along several dimensions of the mesh is put together from the innermost cut on.
    changed = set[int]()
    leave = [False] * mesh.ndim
    for dim in range(mesh.ndim):
        old, new = now[dim], placements[dim]
        cuts = {p.dim for p in (old, new) if isinstance(p, Shard)}
        leave[dim] = old != new or (isinstance(old, Shard) and old.dim in changed)
        if leave[dim]:
            changed |= cuts
    for dim in reversed(range(mesh.ndim)):
        old = now[dim]
        if not leave[dim]:
            continue
        group = mesh.get_group(dim)
        if isinstance(old, Partial):
            local = _reduced(local, old, group)
        elif isinstance(old, Shard):
            # The whole size along it, as the dimensions of the mesh before this one leave it.
            before = source.replaced((*now[:dim], *([Replicate()] * (mesh.ndim - dim)))).local()[0]
            local = gathered(local, old.dim, before[old.dim], group)
        now[dim] = Replicate()
    place = coordinate(mesh)
    for dim in range(mesh.ndim):
        new = placements[dim]
        if not leave[dim]:
            continue
        if isinstance(new, Shard):
            local = piece(local, new.dim, mesh.size(dim), place[dim])
        elif isinstance(new, Partial):
            local = _partial(local, new, place[dim])
        now[dim] = new
    return local.contiguous()


def _partial(local: Tensor, place: Partial, index: int) -> Tensor:
    """What a process has of a whole tensor of which a reduction is to be made."""
    if place.reduce_op != "sum" or isinstance(place, NormPartial):
        return local
    return local if index == 0 else _core.zeros_like(local)


def gradient_placements(placements: Placements) -> Placements:
    """Where the gradient of a tensor lies: that of a sum is the same everywhere."""
    return tuple(Replicate() if isinstance(place, Partial) else place for place in placements)


class Redistribute(Function):
    """Parts at other places; the gradient goes back to where the parts were."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, source: Spec, placements: Placements) -> Tensor:
        ctx.source, ctx.placements = source, placements
        made = moved(local, source, placements)
        return made.clone() if made.data_ptr() == local.data_ptr() else made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        here = ctx.source.replaced(gradient_placements(ctx.placements))
        return Redistribute.apply(gradient, here, gradient_placements(ctx.source.placements)), None, None


class GradientLies(Function):
    """The same part; its gradient, which lies elsewhere, goes to where the part is."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, source: Spec, placements: Placements) -> Tensor:
        ctx.source, ctx.placements = source, placements
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        here = ctx.source.replaced(ctx.placements)
        return Redistribute.apply(gradient, here, gradient_placements(ctx.source.placements)), None, None


def summed_gradient(local: Tensor, source: Spec, result: Spec) -> Tensor:
    """A whole tensor that meets pieces of others: its gradient is the sum of what the processes have."""
    places: list[Placement] = [
        Partial() if isinstance(old, Replicate) and isinstance(new, Shard) else old
        for old, new in zip(source.placements, result.placements, strict=True)
    ]
    if tuple(places) == source.placements or not local.requires_grad:
        return local
    made: Tensor = GradientLies.apply(local, source, tuple(places))
    return made
