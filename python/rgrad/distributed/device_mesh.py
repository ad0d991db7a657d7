"""Grids of processes, with a group along each line of each dimension."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._group import ProcessGroup, group, init_process_group, new_group
from ._members import get_process_group_ranks, get_rank, get_world_size


class DeviceMesh:
    """A grid of processes. All processes make it at the same time, in the same order with other groups.

    Args:
        device_type: "cpu" or "wgpu".
        mesh: The places of the processes among all, as a tensor or as nested lists.
        mesh_dim_names: A name for each dimension.
        backend_override: Accepted; has no effect.

    Raises:
        ValueError: A place does not exist or is there twice, or the names do not fit.

    Example:
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = rgrad.distributed.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("outer", "inner"))
        >>> mesh["inner"].size()
        1
        >>> rgrad.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _groups: Sequence[ProcessGroup] | None = None,
    ) -> None:
        self.device_type = _core.device(device_type).type
        if group.WORLD is None:
            init_process_group()
        grid = mesh if isinstance(mesh, Tensor) else _core.tensor(mesh, dtype=_core.int64, device="cpu")
        self.mesh = grid.detach().to(dtype=_core.int64, device="cpu")
        ranks = self.mesh.reshape(-1).tolist()
        world = get_world_size()
        if len(set(ranks)) != len(ranks) or any(not 0 <= rank < world for rank in ranks):
            raise ValueError(
                f"DeviceMesh: the mesh must have places below {world}, each once, got {self.mesh.tolist()}"
            )
        if mesh_dim_names is not None and (
            len(mesh_dim_names) != self.mesh.dim() or len(set(mesh_dim_names)) != len(mesh_dim_names)
        ):
            raise ValueError(
                f"DeviceMesh: mesh_dim_names must have one name for each of {self.mesh.dim()} dimensions, none of them "
                f"twice, got {mesh_dim_names}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._place = next((place for place in self._places() if int(self.mesh[place]) == get_rank()), None)
        self._groups = list(_groups) if _groups is not None else self._make_groups()

    def _places(self) -> itertools.product[tuple[int, ...]]:
        return itertools.product(*(range(size) for size in self.mesh.shape))

    def _make_groups(self) -> list[ProcessGroup]:
        own = []
        for dim in range(self.mesh.dim()):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            for line in lines:
                made = new_group(line, sort_ranks=False)
                if get_rank() in line:
                    own.append(made)
        return own

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self.mesh.tolist() == other.mesh.tolist()
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __hash__(self) -> int:
        return hash((self.device_type, repr(self.mesh.tolist()), self.mesh_dim_names))

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, str):
            if self.mesh_dim_names is None or dim not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_name {dim!r}: the mesh has the names {self.mesh_dim_names}")
            return self.mesh_dim_names.index(dim)
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"DeviceMesh: dimension {dim} is out of range of a mesh of {self.ndim} dimensions")
        return dim % self.ndim

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        if self._place is None:
            raise RuntimeError("DeviceMesh: this process is not in the mesh, so it has no part of it")
        dims = [self._dim(name) for name in ((names,) if isinstance(names, str) else names)]
        if sorted(dims) != dims or len(set(dims)) != len(dims):
            raise KeyError(f"DeviceMesh: names must be in the order of the mesh, {self.mesh_dim_names}, got {names}")
        index = tuple(slice(None) if dim in dims else self._place[dim] for dim in range(self.ndim))
        part = (names,) if isinstance(names, str) else tuple(names)
        groups = [self._groups[dim] for dim in dims]
        return DeviceMesh(self.device_type, self.mesh[index], mesh_dim_names=part, _groups=groups)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, of all dimensions or one.

        Args:
            mesh_dim: The dimension.
        """
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[self._dim(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dimension.

        Args:
            mesh_dim: The dimension or its name; needed if there are several.

        Raises:
            RuntimeError: There are several dimensions and none is given, or this process is not in the mesh.
        """
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                f"when "
                "device_mesh.ndim > 1."
            )
        if self._place is None:
            raise RuntimeError("DeviceMesh: this process is not in the mesh, so it has no group in it")
        return self._groups[self._dim(mesh_dim or 0)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of this process along each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """The place of this process among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension.

        Args:
            mesh_dim: The dimension or its name; needed if there are several.
        """
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> list[int] | None:
        """The place of this process along each dimension, or None if it is not in the mesh."""
        return None if self._place is None else list(self._place)

    @staticmethod
    def from_group(
        group: ProcessGroup, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:
        """A mesh of one dimension whose group is there already.

        Args:
            group: The group.
            device_type: "cpu" or "wgpu".
            mesh: Its places; by default those of the group.
            mesh_dim_names: The name of the dimension.

        Returns:
            The mesh.
        """
        ranks = get_process_group_ranks(group) if mesh is None else mesh
        return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A grid of all processes, in their order.

    Args:
        device_type: "cpu" or "wgpu".
        mesh_shape: The size of each dimension.
        mesh_dim_names: A name for each dimension.
        backend_override: Accepted; has no effect.

    Returns:
        The mesh.

    Raises:
        RuntimeError: The grid has more or fewer places than there are processes, or the names do not fit.
    """
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(
            f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
        )
    if mesh_dim_names is not None and len(mesh_shape) != len(mesh_dim_names):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
            f"{len(mesh_dim_names)} and len(mesh_shape): {len(mesh_shape)}."
        )
    if group.WORLD is None:
        init_process_group()
    count = 1
    for size in mesh_shape:
        count *= size
    if count > get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {count} ranks!"
        )
    return DeviceMesh(device_type, _core.arange(count, device="cpu").reshape(mesh_shape), mesh_dim_names=mesh_dim_names)


__all__ = ["DeviceMesh", "init_device_mesh"]
