"""Where the parts of a tensor lie: mesh, placements and the whole shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor.size import Size
from .._shards import bounds
from ..device_mesh import DeviceMesh
from .placement_types import Placement, Replicate, Shard

Placements = tuple[Placement, ...]


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Those of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Spec:
    """What a DTensor knows beside its own part.

    Args:
        mesh: The processes.
        placements: One for each dimension of the mesh.
        shape: The shape of the whole tensor.
    """

    __slots__ = ("mesh", "placements", "shape")

    def __init__(self, mesh: DeviceMesh, placements: Placements, shape: Sequence[int]) -> None:
        self.mesh, self.placements, self.shape = mesh, placements, Size(shape)

    def __repr__(self) -> str:
        return f"Spec({list(self.shape)}({''.join(map(str, self.placements))}) on {self.mesh})"

    def same_layout(self, other: Spec) -> bool:
        """Whether parts of both lie at the same places."""
        return self.placements == other.placements and self.mesh == other.mesh

    def is_replicated(self) -> bool:
        """Whether each process has the whole tensor."""
        return all(isinstance(p, Replicate) for p in self.placements)

    def is_partial(self) -> bool:
        """Whether a reduction is to be made."""
        return any(p.is_partial() for p in self.placements)

    def replaced(self, placements: Placements | None = None, shape: Sequence[int] | None = None) -> Spec:
        """Another one on the same mesh."""
        return Spec(
            self.mesh, self.placements if placements is None else placements, self.shape if shape is None else shape
        )

    def local(self) -> tuple[Size, tuple[int, ...]]:
        """The shape of this process's part, and where it begins in the whole tensor."""
        return local_part(self.shape, self.mesh, self.placements)


def local_part(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[Size, tuple[int, ...]]:
    """The shape of this process's part of a tensor, and where it begins.

    Raises:
        RuntimeError: This process is not in the mesh.
    """
    sizes, starts = list(shape), [0] * len(shape)
    for dim, (place, index) in enumerate(zip(placements, coordinate(mesh), strict=True)):
        if isinstance(place, Shard):
            start, end = bounds(sizes[place.dim], mesh.size(dim), index)
            sizes[place.dim] = end - start
            starts[place.dim] += start
    return Size(sizes), tuple(starts)


def coordinate(mesh: DeviceMesh) -> list[int]:
    """The place of this process in a mesh.

    Raises:
        RuntimeError: It has none.
    """
    found = mesh.get_coordinate()
    if found is None:
        raise RuntimeError(f"DTensor: this process is not in {mesh}; only its processes have parts")
    return found


def checked_placements(
    name: str, mesh: DeviceMesh, placements: Sequence[Placement] | None, dims: int | None, partial: bool = True
) -> Placements:
    """Placements for a tensor, with dimensions counted from the front; by default it is replicated.

    Args:
        name: The function, for messages.
        mesh: The processes.
        placements: One for each dimension of the mesh.
        dims: How many dimensions the tensor has; None if that is not known.
        partial: Whether reductions that are to be made are allowed.

    Raises:
        ValueError: There are more or fewer than the mesh has dimensions.
        RuntimeError: One is of a kind that is not allowed.
        IndexError: The tensor has no such dimension.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"{name}: `placements` must have the same length as the mesh has dimensions: got {len(placements)} for "
            f"device_mesh.ndim {mesh.ndim}"
        )
    found: list[Placement] = []
    for place in placements:
        if not isinstance(place, Placement) or (place.is_partial() and not partial):
            raise RuntimeError(
                f"{name}: expected {'Shard, Replicate or Partial' if partial else 'Shard or Replicate'} in "
                f"`placements`, got {place!r}"
            )
        if isinstance(place, Shard) and dims is not None:
            if not -dims <= place.dim < max(dims, 1) or dims == 0:
                raise IndexError(
                    f"{name}: Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got "
                    f"{place.dim})"
                )
            place = Shard(place.dim % dims)
        found.append(place)
    return tuple(found)


def checked_mesh(name: str, mesh: Any) -> DeviceMesh:
    """A mesh that was given.

    Raises:
        RuntimeError: None was.
    """
    if not isinstance(mesh, DeviceMesh):
        raise RuntimeError(
            f"{name}: No device mesh is given; pass device_mesh=, for instance of init_device_mesh; got "
            f"{type(mesh).__name__}"
        )
    return mesh
