"""DTensor: one process's part of a tensor that lies on several processes.

Note: the object's own elements are the part, so history, gradients, hooks and optimizers work on parts without knowing
of it; what Python asks about the shape is answered for the whole tensor. An operation sees parts, and must give the
part of its result (``_operations`` says for which that holds). The gradient of a reduction that is to be made is the
same in all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self, cast

from ... import _core
from ..._core import Tensor
from ..._tensor.size import Size
from ..device_mesh import DeviceMesh
from ._redistribute import GradientLies, Redistribute, gradient_placements, moved
from ._spec import Placements, Spec, checked_mesh, checked_placements, local_part, strides_of
from .placement_types import Partial, Placement, Replicate, Shard


def plain(tensor: Tensor) -> Tensor:
    """The part as an ordinary tensor of the same memory and history."""
    with _core.DisableTorchFunctionSubclass():
        return tensor.as_subclass(Tensor) if type(tensor) is not Tensor else tensor


class DTensor(Tensor):
    """A tensor that lies on the processes of a mesh: in pieces, replicated, or as something that is to be reduced.

    :func:`distribute_tensor` and :meth:`from_local` make one. Its shape is that of the whole tensor. Operations of
    elements work on tensors with the same placements, reductions of all elements on all, and every operation on
    replicated ones; the others are refused by name, and :meth:`full_tensor` gives the whole tensor for them.

    Args:
        local_tensor: This process's part.
        spec: Where the parts lie.
        requires_grad: Whether backward accumulates into ``.grad``.

    Raises:
        NotImplementedError: An operation cannot be computed from the parts.
        RuntimeError: Ordinary tensors are mixed with it.

    Example:
        >>> import rgrad.distributed.tensor as parts
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = parts.init_device_mesh("cpu", (1,))
        >>> x = parts.distribute_tensor(rgrad.arange(4.0), mesh, [parts.Shard(0)])
        >>> (2 * x).full_tensor()
        tensor([0., 2., 4., 6.])
        >>> rgrad.distributed.destroy_process_group()
    """

    __module__ = "rgrad.distributed.tensor"
    _spec: Spec
    #: Set by the module that has the rules for operations.
    _run: ClassVar[Callable[..., Any]]

    def __new__(cls, local_tensor: Tensor, spec: Spec, *, requires_grad: bool = False) -> Self:
        made = Tensor._make_subclass(cls, plain(local_tensor), requires_grad)
        made._spec = spec
        return cast("Self", made)

    @classmethod
    def _with_history(cls, local: Tensor, spec: Spec) -> DTensor:
        with _core.DisableTorchFunctionSubclass():
            made: DTensor = local.as_subclass(cls)
        made._spec = spec
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return DTensor._run(func, args, kwargs or {})

    # What it is.

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> Tensor:
        return plain(self).detach()

    @property
    def shape(self) -> Size:
        """The shape of the whole tensor."""
        return self._spec.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole tensor, or its size along a dimension.

        Args:
            dim: The dimension.
        """
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The strides that the whole tensor would have.

        Args:
            dim: Only that of this dimension.
        """
        strides = strides_of(self.shape)
        return strides if dim is None else strides[dim]

    def numel(self) -> int:
        """The number of elements of the whole tensor."""
        return self.shape.numel()

    def nelement(self) -> int:
        """As :meth:`numel`."""
        return self.numel()

    @property
    def nbytes(self) -> int:
        """The bytes of the whole tensor's elements."""
        return self.numel() * self.element_size()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    # Gradients and data. Those of the core are parts.

    @property
    def grad(self) -> Any:
        """The gradient, which lies as this tensor does, or None."""
        with _core.DisableTorchFunctionSubclass():
            found = Tensor.grad.__get__(self)
            if found is None or type(found) is DTensor:
                return found
            places = gradient_placements(self.placements)
            made = DTensor(found, self._spec.replaced(places))
            # From now on it is the same object.
            Tensor.grad.__set__(self, made)  # type: ignore[attr-defined]
        return made

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, Tensor) and not isinstance(value, DTensor):
            raise TypeError(
                f"grad: the gradient of a DTensor must be a DTensor, got {type(value).__name__}; distribute_tensor "
                "makes one"
            )
        if isinstance(value, DTensor) and not value._spec.same_layout(self._spec):
            raise RuntimeError(
                f"grad: the gradient must lie as its tensor does: got {value.placements}, expected {self.placements}; "
                "use .redistribute()"
            )
        with _core.DisableTorchFunctionSubclass():
            Tensor.grad.__set__(self, value)  # type: ignore[attr-defined]

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def data(self) -> Any:
        """The same elements without a history. What is assigned must be a DTensor."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(
                f"data: expected a DTensor, got {type(value).__name__}; distribute_tensor makes one of a whole tensor"
            )
        with _core.DisableTorchFunctionSubclass():
            Tensor.data.__set__(self, plain(value))  # type: ignore[attr-defined]
        self._spec = value._spec

    def register_hook(self, hook: Any) -> Any:
        """Call ``hook(gradient)`` with the gradient as a DTensor, when it is computed; it may return another one.

        Args:
            hook: The function.
        """
        places = gradient_placements(self.placements)

        def of_part(gradient: Tensor) -> Tensor | None:
            changed = hook(DTensor._with_history(gradient, self._spec.replaced(places)))
            return None if changed is None else plain(changed)

        with _core.DisableTorchFunctionSubclass():
            return super().register_hook(of_part)

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) in memo:
            known: DTensor = memo[id(self)]
            return known
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy: only graph leaves are copied, and this DTensor has a history; copy x.detach()"
            )
        made = DTensor(self._local_tensor.clone(), self._spec, requires_grad=self.requires_grad)
        memo[id(self)] = made
        gradient = self.grad
        if gradient is not None:
            made.grad = deepcopy(gradient, memo)
        vars(made).update({name: deepcopy(value, memo) for name, value in vars(self).items() if name != "_spec"})
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotImplementedError(
            "DTensor: a pickle would have this process's part alone; write it with distributed.checkpoint.save, or "
            "save the whole tensor, .full_tensor()"
        )

    def _filled_whole(self, fill: Callable[..., Tensor], args: Any, kwargs: Any) -> DTensor:
        """Take this process's part of what a function writes to a whole tensor."""
        local = plain(self)
        if local.device.type != "meta":
            whole = _core.empty(tuple(self.shape), dtype=local.dtype, device=local.device)
            whole.copy_(self.full_tensor())
            fill(whole, *args[1:], **{key: value for key, value in kwargs.items() if key != "tensor"})
            local.copy_(moved(whole, self._spec.replaced((Replicate(),) * self.device_mesh.ndim), self.placements))
        return self

    # From parts, to parts.

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """A DTensor of parts that the processes have. Gradients go through it.

        Args:
            local_tensor: This process's part.
            device_mesh: The processes.
            placements: How the parts lie; by default all processes have the whole tensor.
            run_check: Whether to send the first process's part to the others where it is replicated.
            shape: The shape of the whole tensor; by default pieces are taken to have the same size everywhere.
            stride: Accepted; has no effect.
            grad_placements: How the gradient of the part is to lie; by default as the part does.

        Returns:
            The tensor.

        Raises:
            TypeError: ``local_tensor`` is no tensor, or is a DTensor.
            RuntimeError: There is no mesh, or the part has not the shape that ``shape`` and ``placements`` say.
            ValueError: The placements do not fit the mesh.
        """
        mesh = checked_mesh("DTensor.from_local", device_mesh)
        if not isinstance(local_tensor, Tensor) or isinstance(local_tensor, DTensor):
            raise TypeError(f"DTensor.from_local: expected an ordinary Tensor, got {type(local_tensor).__name__}")
        places = checked_placements("DTensor.from_local", mesh, placements, local_tensor.dim())
        whole = list(local_tensor.shape)
        for dim, place in enumerate(places):
            if isinstance(place, Shard):
                whole[place.dim] *= mesh.size(dim)
        spec = Spec(mesh, places, whole if shape is None else shape)
        expected = local_part(spec.shape, mesh, places)[0]
        if shape is not None and tuple(expected) != tuple(local_tensor.shape):
            raise RuntimeError(
                f"DTensor.from_local: the part of a tensor of shape {tuple(spec.shape)} with {places} has the shape "
                f"{tuple(expected)} here, got {tuple(local_tensor.shape)}"
            )
        if run_check:
            from .._collectives import broadcast

            local_tensor = local_tensor.clone()
            for dim, place in enumerate(places):
                if isinstance(place, Replicate):
                    broadcast(local_tensor.detach(), group=mesh.get_group(dim), group_src=0)
        local = plain(local_tensor)
        if local.requires_grad:
            local = local.view_as(local)
            if grad_placements is not None:
                wanted = checked_placements("DTensor.from_local", mesh, grad_placements, local.dim())
                local = GradientLies.apply(local, spec.replaced(wanted), places)
        return DTensor._with_history(local, spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part, an ordinary tensor of the same memory. Gradients go through it.

        Args:
            grad_placements: How its gradient will lie; by default as the part does, and for a reduction that is to be
                made, the same everywhere.

        Returns:
            The part.
        """
        local = plain(self)
        if grad_placements is not None and local.requires_grad:
            places = checked_placements("DTensor.to_local", self.device_mesh, grad_placements, self.dim())
            local = GradientLies.apply(local, self._spec, places)
        return local

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements. All processes of the mesh call it. Gradients go through it.

        Args:
            device_mesh: The mesh, which must be that of the tensor.
            placements: How the parts are to lie.
            async_op: Accepted; has no effect.
            forward_dtype: The dtype of the result; by default that of the tensor.
            backward_dtype: The dtype in which the gradient is sent; by default that of the gradient.

        Returns:
            The tensor.

        Raises:
            RuntimeError: No placements are given, or they have a reduction that is to be made where there is none yet.
            ValueError: The placements do not fit the mesh.
            NotImplementedError: The mesh is another one.
        """
        name = "DTensor.redistribute"
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError(f"{name}: between meshes is not there; use .full_tensor() and distribute_tensor")
        if placements is None:
            raise RuntimeError(f"{name}: placements must be given")
        wanted = checked_placements(name, self.device_mesh, placements, self.dim())
        for old, new in zip(self.placements, wanted, strict=True):
            if isinstance(new, Partial) and old != new:
                raise RuntimeError(
                    f"{name}: from {old} to {new} there is no way: placements to be reduced are for internal use only"
                )
        return self._redistributed(wanted, forward_dtype, backward_dtype)

    def _redistributed(self, wanted: Placements, forward: Any = None, backward: Any = None) -> DTensor:
        local = plain(self)
        if backward is not None and local.requires_grad:
            local = local.to(local.dtype).view_as(local)
            kind = local.dtype
            local.register_hook(lambda gradient: gradient.to(kind))
        if forward is not None:
            local = local.to(forward)
        if wanted != self.placements:
            local = Redistribute.apply(local, self._spec, wanted)
        if backward is not None and local.requires_grad:
            local = local.view_as(local)
            local.register_hook(lambda gradient: gradient.to(backward).to(gradient.dtype))
        return DTensor._with_history(local, self._spec.replaced(wanted))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, an ordinary one, in all processes; all of the mesh call it. Gradients go through it.

        Args:
            grad_placements: How its gradient will lie; by default it is the same in all processes.

        Returns:
            The tensor.
        """
        whole = self._redistributed((Replicate(),) * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)
