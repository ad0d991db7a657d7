"""Methods of ``Tensor`` for other devices, shared memory and random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import type_name
from .._operation.options import checked_options
from .._runtime.no_device import refuse

# ------------------------------------------------------------------------------------------------------------ devices


@operation("cuda")
def cuda(
    input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = _core.preserve_format
) -> Tensor:
    """Refuse: there are no CUDA devices. ``tensor.to("wgpu")`` moves to a GPU of any vendor.

    Args:
        input: A tensor.
        device: A CUDA device.
        non_blocking: Has no effect.
        memory_format: Has no effect.

    Raises:
        RuntimeError: Always.
    """
    refuse("Tensor.cuda")


@operation("xpu")
def xpu(
    input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = _core.preserve_format
) -> Tensor:
    """Refuse: there are no XPU devices. ``tensor.to("wgpu")`` moves to a GPU of any vendor.

    Args:
        input: A tensor.
        device: An XPU device.
        non_blocking: Has no effect.
        memory_format: Has no effect.

    Raises:
        AssertionError: Always.
    """
    raise AssertionError('XPU is not enabled: rgrad has tensors on cpu, wgpu and meta; use .to("wgpu") for a GPU')


@operation("is_pinned")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Tell whether memory is page-locked: never.

    Args:
        input: A tensor.
        device: Has no effect.
    """
    return False


@operation("pin_memory")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Refuse: memory is page-locked for transfers to CUDA devices, and there are none.

    Args:
        input: A tensor.
        device: A device.

    Raises:
        RuntimeError: Always.
    """
    refuse("Tensor.pin_memory")


@operation("is_distributed")
def is_distributed(input: Tensor) -> bool:
    """Tell whether a tensor is spread over processes: never.

    Args:
        input: A tensor.
    """
    return False


@operation("is_set_to")
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Tell whether two tensors are the same view of the same memory.

    Args:
        input: A tensor.
        tensor: A tensor.

    Example:
        >>> x = rgrad.ones(2)
        >>> x.is_set_to(x.view(2))
        True
    """
    return bool(
        input.data_ptr() == tensor.data_ptr()
        and input.shape == tensor.shape
        and input.stride() == tensor.stride()
        and input.storage_offset() == tensor.storage_offset()
        and input.dtype == tensor.dtype
    )


@operation("dim_order")
def dim_order(input: Tensor, *, ambiguity_check: bool | Sequence[Any] = False) -> tuple[int, ...]:
    """Give the dimensions in the order of their strides, the widest first.

    Args:
        input: A tensor.
        ambiguity_check: Refuse tensors with several orders.

    Raises:
        RuntimeError: There are several orders, and ``ambiguity_check`` is set.
        TypeError: ``ambiguity_check`` is something else.

    Example:
        >>> rgrad.ones(2, 3).t().dim_order()
        (1, 0)
    """
    if not isinstance(ambiguity_check, (bool, list)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = list(input.stride())
    order = sorted(range(input.dim()), key=lambda d: -strides[d])
    if ambiguity_check:
        if any(strides[a] == strides[b] for a, b in itertools.pairwise(order)) or 1 in input.shape:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    return tuple(order)


@operation("new_empty_strided")
def new_empty_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool | None = False,
    layout: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Make a tensor of any elements with given strides.

    Args:
        input: A tensor, whose dtype and device are the defaults.
        size: The shape.
        stride: The strides, in elements.
        dtype: The dtype.
        device: The device.
        requires_grad: Whether a gradient is wanted.
        layout: Has no effect.
        pin_memory: Has no effect.

    Returns:
        A new tensor.

    Example:
        >>> rgrad.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    dtype, device, grad = checked_options("new_empty_strided", dtype, layout, device, pin_memory, requires_grad)
    return _core.empty_strided(
        size, stride, dtype=dtype or input.dtype, device=input.device if device is None else device, requires_grad=grad
    )


@operation("to_dense")
def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Give the tensor itself, since there are no sparse ones, or convert it.

    Args:
        input: A tensor.
        dtype: The dtype.
        masked_grad: Has no effect.

    Example:
        >>> rgrad.ones(1).to_dense()
        tensor([1.])
    """
    return input if dtype is None else input.to(dtype)


# ------------------------------------------------------------------------------------------------- a call per element


@operation("apply_")
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write what a Python function gives for each element; slow.

    Args:
        input: A tensor on the CPU that requires no gradient.
        callable: Takes and gives a number.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The tensor requires a gradient.
        TypeError: It is not on the CPU.

    Example:
        >>> rgrad.tensor([1.0, 2.0]).apply_(lambda v: v + 1)
        tensor([2., 3.])
    """
    return _each("apply_", input, (), callable)


@operation("map_")
def map_(input: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write what a Python function gives for the elements of two tensors; slow.

    Args:
        input: A tensor on the CPU that requires no gradient.
        other: A tensor that is broadcast to its shape.
        callable: Takes two numbers and gives one.

    Returns:
        The tensor.

    Raises:
        RuntimeError: A tensor requires a gradient.
        TypeError: It is not on the CPU.

    Example:
        >>> rgrad.tensor([1.0, 2.0]).map_(rgrad.tensor([3.0, 4.0]), lambda a, b: a * b)
        tensor([3., 8.])
    """
    return _each("map_", input, (other,), callable)


def _each(name: str, input: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any]) -> Tensor:
    if input.requires_grad or any(x.requires_grad for x in others):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if input.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    columns = [x.expand(input.shape).reshape(-1).tolist() for x in (input, *others)]
    made = [function(*values) for values in zip(*columns, strict=True)]
    return input.copy_(_core.tensor(made, dtype=input.dtype).reshape(input.shape))


# ------------------------------------------------------------------------------------------------------ random numbers


def _uniform(input: Tensor, generator: Any) -> Tensor:
    """Numbers above 0 and below 1, in float64."""
    return _core.rand(input.shape, dtype=_core.float64, device="cpu", generator=generator).clamp(min=2.0**-54)


_C_NAMES = {
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def _need_floats(name: str, input: Tensor) -> None:
    if input.dtype.is_complex and name == "cauchy_":
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {_C_NAMES[str(input.dtype).rpartition('.')[2]]}"
        )
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"{name.rstrip('_')}_cpu\" not implemented for '{type_name(input.dtype)}'")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(input.dtype)}'")


@operation("cauchy_")
def cauchy_(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Tensor:
    """Write random numbers of Cauchy's distribution.

    Args:
        input: A tensor of floats.
        median: The middle.
        sigma: Half of the distance of the quartiles, more than 0.
        generator: Where random numbers come from.

    Returns:
        The tensor.

    Raises:
        RuntimeError: ``sigma`` is not positive, or the tensor has no floats.

    Example:
        >>> rgrad.empty(3).cauchy_().shape
        rgrad.Size([3])
    """
    _need_floats("cauchy_", input)
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    angles = 3.141592653589793 * (_uniform(input, generator) - 0.5)
    return input.copy_(median + sigma * angles.tan())


@operation("log_normal_")
def log_normal_(input: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
    """Write exponentials of normal random numbers.

    Args:
        input: A tensor of floats.
        mean: The mean of the logarithms.
        std: The standard deviation of the logarithms, more than 0.
        generator: Where random numbers come from.

    Returns:
        The tensor.

    Raises:
        RuntimeError: ``std`` is not positive, or the tensor has no floats.

    Example:
        >>> bool((rgrad.empty(3).log_normal_() > 0).all())
        True
    """
    _need_floats("log_normal_", input)
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    made = _core.randn(input.shape, dtype=_core.float64, device="cpu", generator=generator)
    return input.copy_((made * std + mean).exp())


@operation("geometric_")
def geometric_(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Write the numbers of trials up to the first success.

    Args:
        input: A tensor of numbers.
        p: The probability of a success, between 0 and 1.
        generator: Where random numbers come from.

    Returns:
        The tensor.

    Raises:
        RuntimeError: ``p`` is not between 0 and 1.

    Example:
        >>> bool((rgrad.empty(3).geometric_(0.5) >= 1).all())
        True
    """
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"geometric_cpu\" not implemented for '{type_name(input.dtype)}'")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    failing = _core.tensor(1.0 - p, dtype=_core.float64, device="cpu")
    made = (_uniform(input, generator).log() / failing.log()).ceil().clamp(min=1)
    return input.copy_(made)


@operation("poisson")
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Draw random numbers of Poisson's distribution.

    Args:
        input: The rates: a tensor of floats of 0 or more.
        generator: Where random numbers come from.

    Returns:
        A tensor of the same shape and dtype. Its gradient is 0.

    Raises:
        RuntimeError: A rate is negative, or the tensor has no floats.

    Example:
        >>> rgrad.poisson(rgrad.zeros(3))
        tensor([0., 0., 0.])
    """
    return _core._poisson(input, generator)


@operation("binomial")
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Draw numbers of successes.

    Args:
        count: The numbers of trials: a tensor of floats of 0 or more.
        prob: The probabilities of success: a tensor of the same dtype that is broadcast with it.
        generator: Where random numbers come from.

    Returns:
        A tensor of the broadcast shape, without a history.

    Raises:
        RuntimeError: The dtypes differ, or an element is out of range.

    Example:
        >>> rgrad.binomial(rgrad.tensor([5.0]), rgrad.tensor([1.0]))
        tensor([5.])
    """
    return _core._binomial(count, prob, generator)
