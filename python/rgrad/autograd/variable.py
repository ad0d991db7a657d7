"""``Variable``, the name that tensors with history had before PyTorch 0.4; old tutorials still use it."""

import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

#: What is said where a program sets ``volatile``.
VOLATILE = "volatile was removed and now has no effect. Use `with rgrad.no_grad():` instead."


class _ExecutionEngine:
    """The engine as an object, for code that asks for ``Variable._execution_engine``."""

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Call ``callback()`` once the backward pass that this thread is inside of has ended.

        What the callback raises comes out of the call of backward.

        Raises:
            RuntimeError: The thread is not inside a pass.
        """
        _core._queue_callback(callback)

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = None,
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Tensor | None, ...]:
        """What :func:`rgrad.autograd.backward` and :func:`rgrad.autograd.grad` call."""
        return _core._run_backward(
            tensors, grad_tensors, keep_graph, create_graph, inputs or None, allow_unreachable, accumulate_grad
        )


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """A name of old tutorials for tensors.

    A call gives a leaf tensor that shares memory with ``data``. Every tensor is an instance.

    Args:
        data: The tensor.
        requires_grad: Whether backward accumulates into ``.grad``.
        volatile: Old form of :class:`rgrad.no_grad`; it has no effect but a warning.

    Raises:
        TypeError: ``data`` is no tensor.
        ValueError: ``requires_grad`` and ``volatile`` are both set.

    Example:
        >>> x = rgrad.autograd.Variable(rgrad.ones(2), requires_grad=True)
        >>> isinstance(x, rgrad.autograd.Variable), x.requires_grad
        (True, True)
    """

    _execution_engine = _ExecutionEngine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warnings.warn(VOLATILE, stacklevel=2)
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        return data.detach().requires_grad_(requires_grad)
