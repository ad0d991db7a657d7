"""``fully_shard``: parameters, gradients and states of optimizers in shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core import Tensor
from ..._tensor.parameter import Parameter
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from .._group import group, init_process_group
from .._members import get_world_size
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._dtensor import DTensor
from ..tensor.placement_types import Shard
from ._module import FSDPModule, unit_of
from ._parameter import Places, ShardedParameter
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._unit import Unit

_HOME = "rgrad.distributed.fsdp"
_classes: dict[type, type] = {}


def _mesh_of(mesh: DeviceMesh | None, modules: Sequence[Module]) -> DeviceMesh:
    if mesh is None:
        if group.WORLD is None:
            init_process_group()
        devices = (p.device.type for module in modules for p in module.parameters() if p.device.type != "meta")
        return init_device_mesh(next(devices, "cpu"), (get_world_size(),))
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"fully_shard: expected a DeviceMesh as mesh, got {type(mesh).__name__}")
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard: the mesh must be 1D or 2D, got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError(
            "fully_shard: a mesh of two dimensions needs names for them; give mesh_dim_names to init_device_mesh"
        )
    return mesh


def _reshard(given: Any, parts: int) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, int):
        raise ValueError(
            f"reshard_after_forward should be a bool or an int representing the group size to reshard to, not {given}"
        )
    if given < 1 or given > parts or parts % given:
        raise ValueError(
            f"fully_shard: reshard_after_forward must be a factor of {parts}, the number of processes, got {given}"
        )
    if given == parts:
        return True
    if given == 1:
        return False
    raise NotImplementedError(
        f"fully_shard: reshard_after_forward={given}: shards among fewer processes after forward are not there; use "
        "True, or False where memory allows it"
    )


def _managed(modules: Sequence[Module]) -> list[Module]:
    """Modules below, without those that belong to other units."""
    found: dict[Module, None] = {}

    def visit(module: Module) -> None:
        if module in found or (module not in modules and unit_of(module) is not None):
            return
        for child in module.children():
            visit(child)
        found[module] = None

    for module in modules:
        visit(module)
    return list(found)


def _checked(name: str, parameter: Tensor) -> None:
    if isinstance(parameter, DTensor):
        raise NotImplementedError(
            f"fully_shard: the parameter {name!r} is a DTensor already; give it in ignored_params, or call fully_shard "
            "with ordinary parameters"
        )
    if parameter.dim() == 0:
        raise ValueError(
            f"fully_shard: {name!r} is a number, and scalar parameters have no rows; give it the shape [1]"
        )
    if not parameter.is_contiguous():
        raise ValueError(f"fully_shard: the parameter {name!r} must be contiguous; assign .contiguous() of it")


def _placed(name: str, parameter: Parameter, place: Callable[[Any], Any] | None, parts: int) -> int:
    found = None if place is None else place(parameter)
    if found is None:
        return 0
    if not isinstance(found, Shard):
        raise ValueError(f"fully_shard: shard_placement_fn must return a Shard or None, got {found!r} for {name!r}")
    dim = found.dim % parameter.dim() if -parameter.dim() <= found.dim < parameter.dim() else -1
    if dim < 0:
        raise ValueError(f"fully_shard: {name!r} of shape {tuple(parameter.shape)} has no dimension {found.dim}")
    if dim > 0 and parameter.shape[dim] % parts:
        raise NotImplementedError(
            f"fully_shard: uneven shards are there for dimension 0 alone; dimension {dim} of {name!r} has the shape "
            f"{tuple(parameter.shape)}, and there are {parts} processes"
        )
    return dim


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Lay the parameters of a module, their gradients and the states of optimizers in shards on several processes.

    The parameters become DTensors, of which each process has a piece along the first dimension. Forward gathers them,
    and so does backward, where it needs them; they are freed after that. Backward reduces gradients to their mean over
    all processes, and each process gets that of its shard, which an optimizer made afterwards steps. Call it with the
    inner modules first: the parameters that are left to one call are gathered together.

    Args:
        module: A module, which changes in place, or a list of modules whose parameters are gathered together. All
            processes have the same one.
        mesh: The processes; by default all of them, on the device of the parameters. With two dimensions parameters are
            in shards along the second one, and along the first one the same shards are there several times.
        reshard_after_forward: Whether forward frees whole parameters, which backward gathers again; by default all but
            those of the outermost module. The number of processes stands for True, 1 for False.
        shard_placement_fn: Called with each parameter; a ``Shard`` that it returns says which dimension is cut.
        mp_policy: Dtypes of parameters in use and of gradients.
        offload_policy: Where shards lie.
        ignored_params: Parameters that stay as they are.
        dp_mesh_dims: None.

    Returns:
        What was given. The class of a module becomes a subclass of its own and of :class:`FSDPModule`.

    Raises:
        ValueError: The module has no forward or has been given before, the mesh has more dimensions, a parameter is a
            number, or ``reshard_after_forward`` divides nothing.
        NotImplementedError: A parameter is a DTensor, or a dimension other than the first cannot be cut evenly.

    Example:
        >>> from rgrad.distributed.fsdp import fully_shard
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> net = fully_shard(nn.Linear(2, 1))
        >>> optimizer = rgrad.optim.SGD(net.parameters(), lr=0.1)
        >>> net(rgrad.ones(1, 2)).sum().backward()
        >>> net.weight.grad.full_tensor()
        tensor([[1., 1.]])
        >>> optimizer.step()
        >>> rgrad.distributed.destroy_process_group()
    """
    modules: list[Module] = list(module) if isinstance(module, (list, tuple)) else [module]
    if not modules:
        raise ValueError("fully_shard: got an empty list of modules")
    for one in modules:
        if not isinstance(one, Module):
            raise TypeError(f"fully_shard: expected a Module or a list of them, got {type(one).__name__}")
        if isinstance(one, (ModuleList, ModuleDict)) and type(one).forward is Module.forward:
            raise ValueError(
                f"fully_shard: {type(one).__name__} is one of the containers without forward; give the modules inside"
            )
        if unit_of(one) is not None:
            raise ValueError(f"fully_shard: {type(one).__name__} has been given to fully_shard before")
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard: dp_mesh_dims is not there; pass the part of the mesh, mesh['name']")
    mesh = _mesh_of(mesh, modules)
    parts = mesh.size(mesh.ndim - 1)
    reshard = _reshard(reshard_after_forward, parts)
    home = "cpu" if isinstance(offload_policy, CPUOffloadPolicy) else mesh.device_type
    ignored = ignored_params or set()
    places: dict[Tensor, Places] = {}
    for part in _managed(modules):
        for name, parameter in part._parameters.items():
            if parameter is not None and all(parameter is not one for one in ignored):
                places.setdefault(parameter, []).append((part, name))
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer.device.type not in (mesh.device_type, "meta"):
                part._buffers[name] = buffer.to(mesh.device_type)
    for whole, found in places.items():
        _checked(found[0][1], whole)
    dims = [_placed(found[0][1], one, shard_placement_fn, parts) for one, found in places.items()]  # type: ignore[arg-type]
    parameters = [
        ShardedParameter(found, one, mesh, dim, home)  # type: ignore[arg-type]
        for (one, found), dim in zip(places.items(), dims, strict=True)
    ]
    groups = (mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None)
    unit = Unit(modules, parameters, mp_policy, reshard, groups, mesh.device_type)
    for one in modules:
        vars(one)["_fsdp_unit"] = unit
        own = type(one)
        if own not in _classes:
            _classes[own] = type(f"FSDP{own.__name__}", (FSDPModule, own), {"__module__": own.__module__})
        one.__class__ = _classes[own]
    modules[0].register_state_dict_pre_hook(lambda *_: unit.before_state())
    return module


fully_shard.__module__ = _HOME
