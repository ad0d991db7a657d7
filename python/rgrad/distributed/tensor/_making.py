"""DTensors of whole tensors, and modules of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._runtime.layouts import strided
from ..._tensor.parameter import Parameter
from ...nn.modules.module import Module
from .._collectives import broadcast
from ..device_mesh import DeviceMesh
from ._dtensor import DTensor, plain
from ._operations import own_part
from ._spec import Spec, checked_mesh, checked_placements, local_part
from .placement_types import Placement


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A whole tensor, laid on the processes of a mesh. All of them call it.

    Args:
        tensor: The whole tensor, of one shape and dtype in all processes.
        device_mesh: The processes.
        placements: How it is to lie, :class:`Shard` or :class:`Replicate` for each dimension of the mesh; by default
            all processes have the whole tensor.
        src_data_rank: Whose elements count, by its place along each dimension of the mesh; with None each process takes
            its part of its own tensor, and nothing is sent.

    Returns:
        A leaf, of the tensor's ``requires_grad``. A parameter gives a parameter.

    Raises:
        RuntimeError: There is no mesh, the tensor is not a leaf, or a reduction is asked for.
        ValueError: The placements do not fit the mesh, or the tensor is a DTensor with other ones.
        IndexError: The tensor has no such dimension.

    Example:
        >>> import rgrad.distributed.tensor as parts
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = parts.init_device_mesh("cpu", (1,))
        >>> parts.distribute_tensor(rgrad.ones(2), mesh, [parts.Shard(0)]).to_local()
        tensor([1., 1.])
        >>> rgrad.distributed.destroy_process_group()
    """
    name = "distribute_tensor"
    if isinstance(tensor, DTensor):
        if device_mesh is not None and device_mesh != tensor.device_mesh:
            raise ValueError(
                f"{name}: the tensor is a DTensor on {tensor.device_mesh}, which stays its mesh, got {device_mesh}"
            )
        wanted = checked_placements(name, tensor.device_mesh, placements, tensor.dim())
        if wanted != tensor.placements:
            raise ValueError(
                f"{name}: the tensor is a DTensor with {tensor.placements}, got {wanted}; call `redistribute` instead"
            )
        return tensor
    mesh = checked_mesh(name, device_mesh)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(tensor).__name__}")
    if not tensor.is_leaf:
        raise RuntimeError(f"{name}: expected a leaf, got a tensor with a history; give its .detach()")
    places = checked_placements(name, mesh, placements, tensor.dim(), partial=False)
    spec = Spec(mesh, places, tensor.shape)
    whole = plain(tensor).detach()
    if mesh.device_type != whole.device.type and whole.device.type != "meta":
        whole = whole.to(mesh.device_type)
    if src_data_rank is not None and whole.device.type != "meta" and mesh.size() > 1:
        whole = whole.clone()
        for dim in range(mesh.ndim):
            broadcast(whole, group=mesh.get_group(dim), group_src=src_data_rank)
    local = own_part(whole, spec)
    if local.data_ptr() == tensor.data_ptr() and local.numel():
        local = local.clone()
    made = DTensor(local, spec, requires_grad=tensor.requires_grad)
    if isinstance(tensor, Parameter):
        vars(made)["_is_param"] = True
    return made


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], None] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], None] | None = None,
) -> Module:
    """Make DTensors of a module's parameters and buffers, in place. All processes of the mesh call it.

    Args:
        module: The module.
        device_mesh: The processes.
        partition_fn: Called as ``partition_fn(name, submodule, mesh)`` for each submodule; it registers DTensors. What
            it leaves is replicated.
        input_fn: Called as ``input_fn(module, inputs, mesh)`` before forward; what it returns becomes the inputs.
        output_fn: Called as ``output_fn(module, outputs, mesh)`` after forward; what it returns becomes the outputs.

    Returns:
        The module.

    Raises:
        RuntimeError: There is no mesh, or the module was distributed before.
    """
    mesh = checked_mesh("distribute_module", device_mesh)
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module: it can only be called once on a module, and this one has been distributed"
        )
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, param in part._parameters.items():
            if param is not None and not isinstance(param, DTensor):
                part.register_parameter(key, distribute_tensor(param, mesh))  # type: ignore[arg-type]
        for key, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    vars(module)["_distribute_module_applied"] = True
    return module


def _made(
    name: str,
    fill: Callable[..., Tensor],
    size: Sequence[Any],
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    requires_grad: bool,
    random: bool = False,
) -> DTensor:
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else tuple(size)
    mesh = checked_mesh(name, device_mesh)
    spec = Spec(mesh, checked_placements(name, mesh, placements, len(shape), partial=False), shape)
    if random:
        local = own_part(fill(shape, device=mesh.device_type), spec)
    else:
        local = fill(tuple(local_part(shape, mesh, spec.placements)[0]), device=mesh.device_type)
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Zeros, laid on the processes of a mesh.

    Args:
        size: The shape of the whole tensor.
        requires_grad: Whether backward accumulates into ``.grad``.
        dtype: The dtype; by default that of ``rgrad.zeros``.
        layout: ``rgrad.strided``.
        device_mesh: The processes.
        placements: How it lies; by default all processes have the whole tensor.

    Returns:
        The tensor.

    Raises:
        RuntimeError: There is no mesh.
        ValueError: The placements do not fit the mesh.
    """
    fill = _filled(_core.zeros, "zeros", dtype, layout)
    return _made("zeros", fill, size, device_mesh, placements, requires_grad)


def ones(
    *size: Any,
    dtype: Any = None,
    layout: Any = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Ones; otherwise as :func:`zeros`.

    Args:
        size: The shape of the whole tensor.
        dtype: The dtype.
        layout: ``rgrad.strided``.
        requires_grad: Whether backward accumulates into ``.grad``.
        device_mesh: The processes.
        placements: How it lies.

    Returns:
        The tensor.
    """
    fill = _filled(_core.ones, "ones", dtype, layout)
    return _made("ones", fill, size, device_mesh, placements, requires_grad)


def empty(
    *size: Any,
    dtype: Any = None,
    layout: Any = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Memory as it was found; otherwise as :func:`zeros`.

    Args:
        size: The shape of the whole tensor.
        dtype: The dtype.
        layout: ``rgrad.strided``.
        requires_grad: Whether backward accumulates into ``.grad``.
        device_mesh: The processes.
        placements: How it lies.

    Returns:
        The tensor.
    """
    fill = _filled(_core.empty, "empty", dtype, layout)
    return _made("empty", fill, size, device_mesh, placements, requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """One number everywhere; otherwise as :func:`zeros`.

    Args:
        size: The shape of the whole tensor.
        fill_value: The number.
        dtype: The dtype.
        layout: ``rgrad.strided``.
        requires_grad: Whether backward accumulates into ``.grad``.
        device_mesh: The processes.
        placements: How it lies.

    Returns:
        The tensor.
    """
    made = _filled(_core.full, "full", dtype, layout)

    def fill(shape: Any, device: Any) -> Tensor:
        return made(shape, fill_value, device=device)

    return _made("full", fill, (tuple(size),), device_mesh, placements, requires_grad)


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Uniform random numbers: those that one process draws with the same seed. Otherwise as :func:`zeros`.

    Args:
        size: The shape of the whole tensor.
        requires_grad: Whether backward accumulates into ``.grad``.
        dtype: The dtype.
        layout: ``rgrad.strided``.
        device_mesh: The processes.
        placements: How it lies.

    Returns:
        The tensor.
    """
    fill = _filled(_core.rand, "rand", dtype, layout)
    return _made("rand", fill, size, device_mesh, placements, requires_grad, random=True)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Normal random numbers: those that one process draws with the same seed. Otherwise as :func:`zeros`.

    Args:
        size: The shape of the whole tensor.
        requires_grad: Whether backward accumulates into ``.grad``.
        dtype: The dtype.
        layout: ``rgrad.strided``.
        device_mesh: The processes.
        placements: How it lies.

    Returns:
        The tensor.
    """
    fill = _filled(_core.randn, "randn", dtype, layout)
    return _made("randn", fill, size, device_mesh, placements, requires_grad, random=True)


def _filled(function: Any, name: str, dtype: Any, layout: Any) -> Callable[..., Tensor]:
    if layout is not strided:
        raise NotImplementedError(f"{name}: only layout=strided is there for DTensors, got {layout}")

    def fill(*args: Any, device: Any) -> Tensor:
        made: Tensor = function(*args, dtype=dtype, device=device)
        return made

    return fill
