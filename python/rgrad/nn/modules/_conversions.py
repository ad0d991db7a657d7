"""Moving a module's tensors to another device, dtype or layout, in place."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

from ... import __future__, _core
from ..._core import Tensor, dtype
from ..._runtime.guards import NoGradGuard
from ..parameter import Parameter
from ._convert import parse_to


def _converted(param: Parameter, fn: Callable[[Tensor], Tensor], swap: bool) -> Parameter:
    """A new parameter, or for ``swap`` the old object with the new values; see ``rgrad.__future__``."""
    grad = param.grad
    new = Parameter(fn(param.detach()), param.requires_grad)
    if grad is not None:
        new_grad = fn(grad).requires_grad_(grad.requires_grad)
        new.grad = new_grad
    if not swap:
        return new
    from ...utils._swap import swap_tensors

    del grad
    swap_tensors(param, new)
    return param


class HasConversions:
    """The part of ``Module`` that changes what its tensors are."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    children: Callable[[], Iterator[Any]]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if recurse:
            for child in self.children():
                child._apply(fn, recurse)
        swap = __future__.get_swap_module_params_on_conversion()
        overwrite = __future__.get_overwrite_module_params_on_conversion()
        with NoGradGuard():
            for name, param in self._parameters.items():
                if param is None:
                    continue
                if swap or overwrite:
                    self._parameters[name] = _converted(param, fn, swap)
                    continue
                # The Parameter object stays the same, since optimizers hold it, and so does that of its gradient, which
                # is dropped first: shapes and dtypes of the two must always agree.
                grad, param.grad = param.grad, None
                param.data = fn(param.data)
                if grad is not None:
                    grad.data = fn(grad.data)
                    param.grad = grad
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, cast those that are floating point, or both, in place.

        Args:
            args: A device, a dtype, a device and a dtype, or a tensor, whose device and dtype are taken.
            kwargs: ``device``, ``dtype``, ``tensor``, ``memory_format`` of parameters of 4 and 5 dimensions;
                ``non_blocking`` has no effect.

        Returns:
            This module. Its parameters are the same objects as before.

        Raises:
            TypeError: The dtype is neither floating point nor complex, or an argument is none of these.
            RuntimeError: ``copy`` is given.

        Example:
            >>> layer = nn.Linear(2, 1).to(rgrad.float64)
            >>> layer.weight.dtype
            rgrad.float64
        """
        device, kind, form = parse_to(args, kwargs)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")
        if kind is not None and kind.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t: Tensor) -> Tensor:
            if device is not None:
                t = t.to(device)
            if kind is not None and (t.is_floating_point() or t.dtype.is_complex):
                t = t.to(kind)
            # Only images have such formats.
            return t.to(memory_format=form) if form is not None and t.dim() in (4, 5) else t

        return self._apply(convert)

    def type(self, dst_type: dtype | str | Any) -> Self:
        """Cast all parameters and buffers, in place.

        Args:
            dst_type: A dtype, or a type of old code such as ``"torch.DoubleTensor"``.

        Returns:
            This module.
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating point parameters and buffers to float32, in place; gives this module."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating point parameters and buffers to float64, in place; gives this module."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating point parameters and buffers to float16, in place; gives this module."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating point parameters and buffers to bfloat16, in place; gives this module."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU, in place; gives this module."""
        return self._apply(lambda t: t.to("cpu"))

    def wgpu(self, device: Any = None) -> Self:
        """Move all parameters and buffers to the wgpu ``device``, as PyTorch's ``cuda()`` does; gives this module."""
        return self._apply(lambda t: t.wgpu(device))

    def cuda(self, device: Any = None) -> Self:
        """Refuse: there are no CUDA devices; :meth:`wgpu` moves to a GPU of any vendor.

        Args:
            device: Has no effect.

        Returns:
            This module, if it has neither parameters nor buffers.

        Raises:
            RuntimeError: Always, for a module with parameters or buffers.
        """
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Refuse: there are no XPU devices; :meth:`wgpu` moves to a GPU of any vendor.

        Args:
            device: Has no effect.

        Returns:
            This module, if it has neither parameters nor buffers.

        Raises:
            AssertionError: Always, for a module with parameters or buffers.
        """
        return self._apply(lambda t: t.xpu(device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give all parameters and buffers uninitialised memory on ``device``; their values are lost.

        It is for modules that were made on ``device="meta"``, which have shapes but no memory. Submodules are left out
        unless ``recurse``.
        """
        return self._apply(lambda t: _core.empty_like(t, device=device), recurse=recurse)
