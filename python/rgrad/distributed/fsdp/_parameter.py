"""A parameter of which each process has a shard."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from ..._tensor.parameter import Parameter
from ...nn.modules.module import Module
from .._shards import padded, piece, share
from ..device_mesh import DeviceMesh
from ..tensor._dtensor import DTensor, plain
from ..tensor._spec import Spec, coordinate
from ..tensor.placement_types import Placement, Replicate, Shard

#: The modules that have a parameter, with its name there.
Places = list[tuple[Module, str]]


class ShardedParameter:
    """A parameter in shards, and how the whole one is made of them.

    Args:
        places: Who has it.
        parameter: The whole parameter.
        mesh: The processes: shards along the last dimension, the same shards along the first of two.
        dim: The dimension that is cut.
        home: The device of the shard.
    """

    def __init__(self, places: Places, parameter: Parameter, mesh: DeviceMesh, dim: int, home: str) -> None:
        self.places, self.mesh, self.dim = places, mesh, dim
        self.parts = mesh.size(mesh.ndim - 1)
        kept: tuple[Placement, ...] = (Replicate(),) * (mesh.ndim - 1)
        spec = Spec(mesh, (*kept, Shard(dim)), parameter.shape)
        index = coordinate(mesh)[-1]
        local = piece(parameter.detach(), dim, self.parts, index).clone()
        if local.device.type != "meta":
            local = local.to(home)
        self.sharded = DTensor(local.contiguous(), spec, requires_grad=parameter.requires_grad)
        vars(self.sharded).update({k: v for k, v in vars(parameter).items() if k != "_spec"}, _is_param=True)
        self.register(self.sharded)

    def register(self, tensor: Any) -> None:
        """Let the modules have a tensor as this parameter."""
        self.registered = tensor
        for module, name in self.places:
            module._parameters[name] = tensor

    def refresh(self) -> None:
        """Take over the shard that the modules have now: loading and conversion may register another one."""
        module, name = self.places[0]
        found: Any = module._parameters[name]
        if found is self.registered:
            return
        if not isinstance(found, DTensor):
            raise RuntimeError(
                f"fully_shard: the parameter {name!r} of {type(module).__name__} was replaced by "
                f"{'nothing' if found is None else 'an ordinary one'}; write to it, or assign a DTensor with "
                f"{self.sharded.placements}"
            )
        if found.placements != self.sharded.placements or found.shape != self.sharded.shape:
            raise RuntimeError(
                f"fully_shard: the parameter {name!r} of {type(module).__name__} was replaced by one of shape "
                f"{tuple(found.shape)} with {found.placements}, expected {tuple(self.sharded.shape)} with "
                f"{self.sharded.placements}"
            )
        self.sharded = found
        self.register(found)

    def stamp(self) -> tuple[Any, ...]:
        """What differs after the shard has changed."""
        return id(self.sharded), self.sharded._version, self.sharded.data_ptr()

    @property
    def rows(self) -> int:
        """How many rows each shard has, with padding."""
        return share(self.sharded.shape[self.dim], self.parts)

    def given(self, dtype: Any) -> Tensor:
        """What this process gives to the others: its shard with padding, the cut dimension first, in host memory.

        Args:
            dtype: Its dtype; None for that of the shard.
        """
        local = plain(self.sharded).detach()
        if local.device.type == "meta":
            raise RuntimeError(
                f"fully_shard: the parameter {self.places[0][1]!r} is on the meta device and has no elements; call "
                "to_empty(device=...) and initialise the module before forward"
            )
        if dtype is not None and local.is_floating_point():
            local = local.to(dtype)
        return padded(local.cpu().movedim(self.dim, 0), self.rows)

    def whole(self, room: Tensor, device: str) -> Tensor:
        """The whole parameter of gathered shards: a view of their memory where it is on the device already."""
        size = self.sharded.shape[self.dim]
        return room[:size].movedim(0, self.dim).to(device)

    def all_rows(self, gradient: Tensor, dtype: Any) -> Tensor:
        """A gradient as it is reduced: the cut dimension first, with padding, in host memory."""
        front = gradient.detach().to(dtype).cpu().movedim(self.dim, 0)
        return padded(front, self.rows * self.parts)

    def own_rows(self, reduced: Tensor) -> Tensor:
        """The gradient of the shard, of what the reduction gives this process."""
        local = plain(self.sharded)
        rows = local.shape[self.dim]
        return reduced[:rows].movedim(0, self.dim).contiguous().to(local.device, local.dtype)
