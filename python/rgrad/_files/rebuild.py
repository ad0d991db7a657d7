"""The functions that PyTorch's files name to make tensors: from storages, which are read before.

Files of others choose the arguments, so everything is checked: a tensor must lie in its storage.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.bits import with_lazy_bits
from .._tensor.construct import _as
from .._tensor.parameter import Parameter
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from .torch_names import Missing, StorageType

# More dimensions than this no tensor has that `save` writes.
MOST_DIMENSIONS = 64


class NotHere(NotImplementedError):
    """A kind of tensor that rgrad has not."""


def _refused(what: str, instead: str) -> NotHere:
    return NotHere(f"load: the file has a {what}, which rgrad does not read. Save {instead} in its place")


def _layout(offset: Any, size: Any, stride: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    if type(size) not in (tuple, list, _core.Size) or type(stride) not in (tuple, list):
        raise TypeError("expected the sizes and strides of a tensor as tuples")
    if len(size) != len(stride) or len(size) > MOST_DIMENSIONS:
        raise ValueError(f"a tensor has {len(size)} sizes and {len(stride)} strides")
    if any(type(n) is not int or n < 0 for n in (offset, *size, *stride)):
        raise ValueError(f"a tensor has offset {offset!r}, sizes {tuple(size)!r} and strides {tuple(stride)!r}")
    if math.prod(size) >= 1 << 63:
        raise ValueError(f"a tensor of shape {tuple(size)} has more elements than can be counted")
    return offset, tuple(size), tuple(stride)


def _number_type(dtype: Any) -> Any:
    if isinstance(dtype, Missing):
        raise _refused(f"tensor of dtype {dtype!r}", "it in another dtype")
    if not isinstance(dtype, _core.dtype):
        raise TypeError(f"expected a dtype, got {type(dtype).__name__}")
    return dtype


def _over(memory: Tensor, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor over the elements of a storage."""
    offset, size, stride = _layout(offset, size, stride)
    if 0 in size:
        # It reads nothing, so its place does not matter.
        return memory.as_strided(size, stride, 0).detach() if memory.numel() else _empty(memory, size, stride)
    end = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if end > memory.numel():
        raise ValueError(
            f"a tensor of shape {size} with strides {stride} from element {offset} on ends behind the "
            f"{memory.numel()} elements of its storage"
        )
    return memory.as_strided(size, stride, memory.storage_offset() + offset).detach()


def _empty(memory: Tensor, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    made = _core.empty(size, dtype=memory.dtype, device=memory.device)
    return made.as_strided(size, stride, 0).detach()


def _needs_grad(tensor: Tensor, requires_grad: Any) -> Tensor:
    if type(requires_grad) is not bool and requires_grad not in (0, 1):
        raise TypeError("expected whether a tensor requires grad as a bool")
    if not requires_grad:
        return tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"a tensor of dtype {tensor.dtype} cannot require grad")
    return tensor.requires_grad_()


def _with_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """A lazy conjugate or negative, if the metadata of a tensor say so."""
    if not metadata:
        return tensor
    if type(metadata) is not dict:
        raise TypeError("expected the metadata of a tensor as a dict")
    names = [name for name in ("conj", "neg") if metadata.get(name)]
    if ("conj" in names and not tensor.is_complex()) or (names and tensor.dtype == _core.bool):
        raise ValueError(f"a tensor of dtype {tensor.dtype} is read as {names!r}")
    return with_lazy_bits(tensor, names)


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """``torch._utils._rebuild_tensor``, of versions before 0.4."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"expected a storage of numbers, got {type(storage).__name__}")
    return _over(storage._values(), offset, size, stride)


def rebuild_tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any, metadata: Any = None
) -> Tensor:
    """``torch._utils._rebuild_tensor_v2``. Hooks are not kept; files have an empty dict of them."""
    plain = rebuild_tensor(storage, offset, size, stride)
    made = _with_bits(plain, metadata)
    return _needs_grad(made, requires_grad)


def rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """``torch._utils._rebuild_tensor_v3``: a tensor of a dtype that had no class of storages, over bytes."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"expected a storage, got {type(storage).__name__}")
    untyped, dtype = storage.untyped(), _number_type(dtype)
    if untyped.device.type in ("cpu", "meta"):
        memory = untyped._as(dtype)
    else:
        # There the elements have the form of their dtype, which bytes have not.
        memory = untyped.cpu()._as(dtype).to(untyped.device)
    plain = _over(memory, offset, size, stride)
    made = _with_bits(plain, metadata)
    return _needs_grad(made, requires_grad)


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    """``torch._utils._rebuild_parameter``."""
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise TypeError("expected a tensor and a bool for a parameter")
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise ValueError(f"a parameter of dtype {data.dtype} cannot require grad")
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Any:
    """``torch._utils._rebuild_parameter_with_state``: one with attributes of its own."""
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """``torch._utils._rebuild_meta_tensor_no_storage``."""
    _, size, stride = _layout(0, size, stride)
    span = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if span >= 1 << 60:
        raise ValueError(f"a tensor of shape {size} has more elements than can be counted")
    memory = _core.empty(span, dtype=_number_type(dtype), device="meta")
    return _needs_grad(memory.as_strided(size, stride, 0).detach(), requires_grad)


def rebuild_on_device(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    """``torch._utils._rebuild_device_tensor_from_cpu_tensor``, and ``..._from_numpy``."""
    if not isinstance(data, Tensor):
        import numpy as np

        if type(data) is not np.ndarray:
            raise TypeError(f"expected a tensor or an array, got {type(data).__name__}")
        data = _core.from_numpy(data)
    if type(device) is not str:
        raise TypeError("expected the name of a device")
    # A kind of device that rgrad has not: the elements are here, on the CPU.
    return _needs_grad(data.to(_number_type(dtype)).detach(), requires_grad)


def rebuild_quantized(*_given: Any) -> Any:
    """``torch._utils._rebuild_qtensor``.

    Raises:
        NotHere: Always.
    """
    raise _refused("quantized tensor", "`tensor.dequantize()`")


def rebuild_sparse(layout: Any, *_given: Any) -> Any:
    """``torch._utils._rebuild_sparse_tensor``.

    Raises:
        NotHere: Always.
    """
    raise _refused(f"sparse tensor (layout {layout!r})", "`tensor.to_dense()`, or its indices and values,")


def rebuild_nested(*_given: Any) -> Any:
    """``torch._utils._rebuild_nested_tensor``.

    Raises:
        NotHere: Always.
    """
    raise _refused("nested tensor", "the list `tensor.unbind()`")


def rebuild_wrapper(*_given: Any) -> Any:
    """``torch._utils._rebuild_wrapper_subclass``.

    Raises:
        NotHere: Always.
    """
    raise _refused("tensor of a wrapper subclass without memory", "the tensors that it wraps")


def layout_named(name: Any) -> Any:
    """``torch.serialization._get_layout``."""
    found = getattr(_core, str(name).removeprefix("torch."), None)
    return found if found is not None and not callable(found) else Missing(str(name).removeprefix("torch."))


def as_type(made: Any, cls: Any, state: Any) -> Any:
    """The end of ``torch._tensor._rebuild_from_type_v2``: a tensor as one of a class, with attributes.

    Raises:
        TypeError: The class is no class of tensors.
    """
    if not isinstance(made, Tensor) or not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError("expected a tensor and its class")
    if type(made) is not cls:
        made = _as(cls, made.detach(), made.requires_grad, {})
    own = getattr(cls, "__setstate__", None)
    if own is not None:
        own(made, state)
        return made
    return set_state(made, state)


def set_state(made: Any, state: Any) -> Any:
    """Give a new tensor its attributes: a dict, or a pair of that and a dict of slots.

    Raises:
        TypeError: It is neither.
    """
    pairs = state if type(state) is tuple else (state, None)
    if len(pairs) != 2 or any(part is not None and not isinstance(part, dict) for part in pairs):
        raise TypeError("expected the attributes of a tensor as a dict")
    vars(made).update(pairs[0] or {})
    for name, value in (pairs[1] or {}).items():
        setattr(made, name, value)
    return made


def from_type(function: Any, cls: Any, args: Any, state: Any) -> Any:
    """``torch._tensor._rebuild_from_type_v2`` in trusted files."""
    return as_type(function(*args), cls, state)


#: Functions by the names that files give them.
FUNCTIONS: dict[str, Any] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild_on_device,
    "torch._utils._rebuild_device_tensor_from_numpy": rebuild_on_device,
    "torch._utils._rebuild_xla_tensor": rebuild_on_device,
    "torch._utils._rebuild_qtensor": rebuild_quantized,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    "torch._utils._rebuild_sparse_csr_tensor": rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": rebuild_nested,
    "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper,
    "torch.serialization._get_layout": layout_named,
    "torch._tensor._rebuild_from_type_v2": from_type,
    # Names of versions before.
    "torch._tensor._rebuild_from_type": from_type,
    "torch.tensor._rebuild_from_type_v2": from_type,
    "torch.tensor._rebuild_from_type": from_type,
}


def storage_of(numel: int, kind: Any) -> tuple[int, Any]:
    """The bytes and the dtype of a storage that a file describes.

    Raises:
        TypeError: The number or the class of storages is none.
        NotHere: The class is of numbers that rgrad has not.
    """
    if type(numel) is not int or numel < 0:
        raise TypeError(f"a storage has {numel!r} elements")
    if kind is UntypedStorage:
        return numel, _core.uint8
    if not isinstance(kind, StorageType):
        raise TypeError("a storage is of no class of storages")
    try:
        dtype = kind.dtype
    except NotImplementedError as error:
        raise NotHere(str(error)) from None
    return numel * dtype.itemsize, dtype
