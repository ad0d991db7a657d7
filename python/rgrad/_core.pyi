"""Types of the native module. Written by scripts/make_stubs.py: do not edit."""
# ruff: noqa: PLW0211

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np
from typing_extensions import disjoint_base

from . import return_types as _return_types
from ._tensor.size import Size as Size
from ._tensor.typed_storage import TypedStorage as _TypedStorage
from ._tensor.untyped_storage import UntypedStorage as _UntypedStorage
from .autograd.backward import TensorsOrEdges as _TensorsOrEdges
from .autograd.backward import V as _V

class ArgumentTypeError(RgradError, TypeError):
    """An argument has a type that the function does not take."""

class ArgumentValueError(RgradError, ValueError):
    """An argument has a value that the function does not take."""

class DTypeError(RgradError, RuntimeError):
    """Dtypes do not fit each other or the operation."""

@final
class DisableTorchFunction:
    """A context in which no ``__torch_function__`` is called, neither of subclasses nor of modes."""
    def __enter__(self) -> None: ...
    def __exit__(self, *_exc: Any) -> None: ...
    def __new__(cls) -> Self: ...

@final
class DisableTorchFunctionSubclass:
    """A context in which the ``__torch_function__`` of subclasses is not called."""
    def __enter__(self) -> None: ...
    def __exit__(self, *_exc: Any) -> None: ...
    def __new__(cls) -> Self: ...

@final
class Generator:
    """A generator of random numbers.

    The same seed gives the same numbers on every device and for any number of threads.
    """
    def __new__(cls, device: _Device | None = None) -> Self: ...
    def clone_state(self) -> Generator:
        """A new generator with the same state."""
    @property
    def device(self) -> _DeviceObject:
        """The device of the state: the CPU."""
    def get_state(self) -> Tensor:
        """The state as a uint8 tensor."""
    def initial_seed(self) -> _int:
        """The seed that was set last."""
    def manual_seed(self, seed: _int) -> Generator:
        """Sets the seed and returns this generator."""
    def seed(self) -> _int:
        """Sets a seed from the system's source of randomness and returns it."""
    def set_state(self, new_state: Tensor) -> None:
        """Sets the state to one that `get_state` returned, and returns this generator.

        Raises:
            TypeError: The tensor is not such a state.
        """

class GraphError(RgradError, RuntimeError):
    """A backward pass or a record of operations is not possible."""

@final
class HookHandle:
    """The handle of a registered hook: `remove()` removes the hook, and as a context manager it does so at the end of
    the block.
    """
    def __enter__(self) -> None: ...
    def __exit__(self, *_args: Any) -> None: ...
    @property
    def id(self) -> _int:
        """The number of the registration."""
    def remove(self) -> None:
        """Removes the hook. A second call has no effect."""

class InternalError(RgradError, RuntimeError):
    """A fault of rgrad itself: please report it with the message."""

class LinAlgError(RgradError, RuntimeError):
    """A matrix has no decomposition of the wanted kind, or no inverse."""

class MissingError(RgradError, NotImplementedError):
    """The operation does not exist for this dtype, device or form."""

@disjoint_base
class Node:
    """A node of the autograd graph."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __new__(cls) -> Self: ...
    def __repr__(self) -> _str: ...
    @property
    def call_site(self) -> _str | None:
        """The file, line and function that recorded this node, or None."""
    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for data of the user, which lives as long as the node."""
    def name(self) -> _str:
        """The node's name, e.g. "MulBackward0"."""
    @property
    def next_functions(self) -> _tuple[_tuple[Node | None, _int], ...]:
        """The edges along which the gradients of this node go: `((node, output number), ...)`, with `(None, 0)` for
        inputs without gradient.
        """
    def register_hook(self, fn: Callable[..., Any]) -> HookHandle:
        """Registers `fn(grad_inputs, grad_outputs)`, which is called after the node has run. A tuple that it returns
        replaces the gradients.
        """
    def register_prehook(self, fn: Callable[..., Any]) -> HookHandle:
        """Registers `fn(grad_outputs)`, which is called before the node runs. A tuple that it returns replaces the
        gradients.
        """
    @property
    def requires_grad(self) -> _bool:
        """Whether gradients go through this node: always True."""
    @property
    def variable(self) -> Tensor:
        """The leaf of an `AccumulateGrad` node."""

class OperationError(RgradError, RuntimeError):
    """An operation cannot be done for another reason, which the message says."""

class OutOfMemoryError(RgradError, MemoryError):
    """There is not enough memory on the device."""

class OutOfRangeError(RgradError, IndexError):
    """An index or a dimension is out of range."""

class RgradError(Exception):
    """Base of every error that rgrad itself raises; each also derives from the builtin that PyTorch raises."""

@final
class SavedTensor:
    """A value that a node saves for backward."""
    def __new__(cls) -> Self: ...
    @property
    def data(self) -> Tensor:
        """What is kept: what the pack hook returned, or the tensor."""
    def register_hooks(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        """Packs this value by `pack_hook(tensor)` now; `unpack_hook` makes a tensor of the result when backward
        asks.

        Raises RuntimeError if nothing is saved here, if it has hooks already, or after the graph was freed.
        """
    def unpack(self) -> Any:
        """The saved tensor, or None. Raises RuntimeError after the graph was freed, or if it was written in place
        since.
        """
    @property
    def unpack_hook(self) -> Any:
        """The hook that `data` will be given to, or None."""

class ShapeError(RgradError, RuntimeError):
    """Sizes do not fit each other or the operation."""

@disjoint_base
class Tensor:
    """A multi-dimensional array with a history through which gradients flow back."""
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def T(self) -> Tensor:
        """A view with all dimensions in reverse order."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, value: _Operand, /) -> Tensor: ...
    def __and__(self, value: _Operand, /) -> Tensor: ...
    def __array__(self, dtype: _DType | None = None, copy: _bool | None = None) -> np.ndarray[Any, np.dtype[Any]]: ...
    __array_priority__: _int
    def __array_wrap__(self, array: np.ndarray[Any, Any], *_context: Any) -> Any: ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __contains__(self, key: Any, /) -> _bool: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: _int | None | None = None,
        max_version: tuple[_int, _int] | None | None = None,
        dl_device: tuple[_int, _int] | None | None = None,
        copy: _bool | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple[_int, _int]: ...
    def __eq__(self, value: object, /) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> _float: ...
    def __floordiv__(self, value: _Operand, /) -> Tensor: ...
    def __format__(self, spec: _str) -> _str: ...
    def __ge__(self, value: _Operand, /) -> Tensor: ...
    def __getitem__(self, key: _Index, /) -> Tensor: ...
    def __gt__(self, value: _Operand, /) -> Tensor: ...
    def __hash__(self) -> _int: ...
    def __iadd__(self, value: _Operand, /) -> Self: ...
    def __iand__(self, value: _Operand, /) -> Self: ...
    def __ifloordiv__(self, value: _Operand, /) -> Self: ...
    def __ilshift__(self, value: _Operand, /) -> Self: ...
    def __imod__(self, value: _Operand, /) -> Self: ...
    def __imul__(self, value: _Operand, /) -> Self: ...
    def __index__(self) -> _int: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, value: _Operand, /) -> Self: ...
    def __ipow__(self, value: _Operand, /) -> Self: ...  # type: ignore[misc]
    def __irshift__(self, value: _Operand, /) -> Self: ...
    def __isub__(self, value: _Operand, /) -> Self: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, value: _Operand, /) -> Self: ...
    def __ixor__(self, value: _Operand, /) -> Self: ...
    def __le__(self, value: _Operand, /) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, value: _Operand, /) -> Tensor: ...
    def __lt__(self, value: _Operand, /) -> Tensor: ...
    def __matmul__(self, value: Tensor, /) -> Tensor: ...
    def __mod__(self, value: _Operand, /) -> Tensor: ...
    def __mul__(self, value: _Operand, /) -> Tensor: ...
    def __ne__(self, value: object, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def __or__(self, value: _Operand, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...
    def __radd__(self, value: _Operand, /) -> Tensor: ...
    def __rand__(self, value: _Operand, /) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> Any: ...
    def __repr__(self) -> _str: ...
    def __reversed__(self) -> Tensor: ...
    def __rfloordiv__(self, value: _Operand, /) -> Tensor: ...
    def __rlshift__(self, value: _Operand, /) -> Tensor: ...
    def __rmatmul__(self, value: Tensor, /) -> Tensor: ...
    def __rmod__(self, value: _Operand, /) -> Tensor: ...
    def __rmul__(self, value: _Operand, /) -> Tensor: ...
    def __ror__(self, value: _Operand, /) -> Tensor: ...
    def __rpow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...
    def __rrshift__(self, value: _Operand, /) -> Tensor: ...
    def __rshift__(self, value: _Operand, /) -> Tensor: ...
    def __rsub__(self, value: _Operand, /) -> Tensor: ...
    def __rtruediv__(self, value: _Operand, /) -> Tensor: ...
    def __rxor__(self, value: _Operand, /) -> Tensor: ...
    def __setitem__(self, key: _Index, value: _Operand, /) -> None: ...
    def __sub__(self, value: _Operand, /) -> Tensor: ...
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any: ...
    def __truediv__(self, value: _Operand, /) -> Tensor: ...
    def __xor__(self, value: _Operand, /) -> Tensor: ...
    @property
    def _base(self) -> Tensor | None:
        """The tensor of which this one is a view, or None."""
    @property
    def _grad(self) -> Tensor | None:
        """`grad` without the warning for tensors that are no leaves."""
    def _is_view(self) -> _bool:
        """Whether this tensor is a view whose history depends on its base."""
    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, require_grad: _bool = False) -> Any:
        """A tensor of class `cls` that shares `data`'s memory, without history. This is how Parameter is
        constructed.
        """
    def _neg_view(self) -> Tensor:
        """The negative: a view of the same memory, whose elements are negated when they are read."""
    def _repr_html_(self) -> _str:
        """What a notebook shows: shape, dtype, device, a small picture of the values, and the text of `repr`."""
    def _use_count(self) -> _int:
        """The number of holders of the tensor: variables, graphs, other tensors."""
    @property
    def _version(self) -> _int:
        """How often the memory has been written in place."""
    def abs(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def abs_(self) -> Self:
        """In-place form of `abs`."""
    def absolute(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def absolute_(self) -> Self:
        """In-place form of `absolute`."""
    def acos(self) -> Tensor:
        """The angle, in radians, whose cosine is the input."""
    def acos_(self) -> Self:
        """In-place form of `acos`."""
    def acosh(self) -> Tensor:
        """The inverse of the hyperbolic cosine."""
    def acosh_(self) -> Self:
        """In-place form of `acosh`."""
    def add(self, other: _Operand, *, alpha: _Number = 1) -> Tensor:
        """This tensor plus `alpha * other`."""
    def add_(self, other: _Operand, *, alpha: _Number = 1) -> Self:
        """Adds `alpha * other` to this tensor in place."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`beta * input + alpha * (batch1 @ batch2).sum(0)`, with the input broadcast to the shape of a product."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """Write the result of ``addbmm(batch1, batch2, *, beta=1, alpha=1)`` to this tensor."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor:
        """`x + value * a / b`."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Self:
        """In-place form of `addcdiv`."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor:
        """`x + value * a * b`."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Self:
        """In-place form of `addcmul`."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`beta * input + alpha * (mat1 @ mat2)`, with the input broadcast to the shape of the product."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """Write the result of ``addmm(mat1, mat2, *, beta=1, alpha=1)`` to this tensor."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`beta * input + alpha * (mat @ vec)`, with the input broadcast to the shape of the product."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """Write the result of ``addmv(mat, vec, *, beta=1, alpha=1)`` to this tensor."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`beta * input + alpha * outer(vec1, vec2)`, with the input broadcast to the shape of the product."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """Write the result of ``addr(vec1, vec2, *, beta=1, alpha=1)`` to this tensor."""
    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged, conjugated."""
    def all(self, dim: _Dims | None = None, keepdim: _bool = False) -> Tensor:
        """Whether all elements along `dim` (all without) are true."""
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether `isclose` is true for all elements."""
    def amax(self, dim: _Dims = (), keepdim: _bool = False) -> Tensor:
        """The largest elements over `dim` (all without). Equal ones share the gradient evenly."""
    def amin(self, dim: _Dims = (), keepdim: _bool = False) -> Tensor:
        """The smallest elements over `dim` (all without). Equal ones share the gradient evenly."""
    def aminmax(
        self, *, dim: _int | None = None, keepdim: _bool = False, out: Tensor | None = None
    ) -> _return_types.aminmax:
        """The smallest and the largest elements along `dim`, or of all, as (min, max)."""
    def angle(self) -> Tensor:
        """The angle of the input in radians: 0 for positive real numbers and zero, pi for negative ones (nan for
        nan).
        """
    def any(self, dim: _Dims | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any element along `dim` (all without) is true."""
    def apply_(self, callable: Callable[[Any], Any]) -> Self:
        """Write what a Python function gives for each element; slow."""
    def arccos(self) -> Tensor:
        """The angle, in radians, whose cosine is the input."""
    def arccos_(self) -> Self:
        """In-place form of `arccos`."""
    def arccosh(self) -> Tensor:
        """The inverse of the hyperbolic cosine."""
    def arccosh_(self) -> Self:
        """In-place form of `arccosh`."""
    def arcsin(self) -> Tensor:
        """The angle, in radians, whose sine is the input."""
    def arcsin_(self) -> Self:
        """In-place form of `arcsin`."""
    def arcsinh(self) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def arcsinh_(self) -> Self:
        """In-place form of `arcsinh`."""
    def arctan(self) -> Tensor:
        """The angle, in radians, whose tangent is the input."""
    def arctan2(self, other: _Operand) -> Tensor:
        """The angle, in radians, of the point with the ordinate `a` and the abscissa `b`."""
    def arctan2_(self, other: _Operand) -> Self:
        """In-place form of `arctan2`."""
    def arctan_(self) -> Self:
        """In-place form of `arctan`."""
    def arctanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def arctanh_(self) -> Self:
        """In-place form of `arctanh`."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the largest element stands along `dim`, or in the flattened tensor; the first of equals."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the smallest element stands along `dim`, or in the flattened tensor; the first of equals."""
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The positions of elements in sorted order along `dim`; always stable, nan counts as the largest."""
    def argwhere(self) -> Tensor:
        """The indices of the elements that are not zero, one row for each."""
    def as_strided(self, size: _Sizes, stride: _Sizes, storage_offset: _int | None = None) -> Tensor:
        """A view of the tensor's storage with the given sizes, and strides and offset in elements.

        Raises:
            RuntimeError: The view reaches beyond the storage.
        """
    def as_strided_scatter(
        self, src: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None
    ) -> Tensor:
        """Give a copy with the elements of a strided view replaced."""
    def as_subclass(self, cls: _type[Tensor]) -> Any:
        """This tensor as an object of class `cls`, with the same memory and history.

        Raises:
            TypeError: `cls` is not a subclass of Tensor.
        """
    def asin(self) -> Tensor:
        """The angle, in radians, whose sine is the input."""
    def asin_(self) -> Self:
        """In-place form of `asin`."""
    def asinh(self) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def asinh_(self) -> Self:
        """In-place form of `asinh`."""
    def atan(self) -> Tensor:
        """The angle, in radians, whose tangent is the input."""
    def atan2(self, other: _Operand) -> Tensor:
        """The angle, in radians, of the point with the ordinate `a` and the abscissa `b`."""
    def atan2_(self, other: _Operand) -> Self:
        """In-place form of `atan2`."""
    def atan_(self) -> Self:
        """In-place form of `atan`."""
    def atanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def atanh_(self) -> Self:
        """In-place form of `atanh`."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _bool | None = None,
        create_graph: _bool = False,
        inputs: _TensorsOrEdges | dict[_str, _V] | None = None,
        *,
        strict: _bool = False,
    ) -> None:
        """Adds the gradients of this tensor with respect to the leaves, or to `inputs`, to their `.grad`.

        Args:
            gradient: The gradient of this tensor, of its shape. It may be missing for a tensor of one element.
            retain_graph: Whether the graph is kept for another backward; by default the value of `create_graph`.
            create_graph: Whether the operations of backward are recorded, for derivatives of higher order.
            inputs: The tensors whose `.grad` is written; all leaves by default. A dict, such as
            `dict(model.named_parameters())`, also names
                them in errors.
            strict: Whether a missing gradient is an error, raised before anything is computed: of one of
            `inputs`, or without them of a leaf
                from which a recorded cut separates this tensor. The error names the lines of the cut.

        Raises:
            RuntimeError: There is no graph, the graph was freed, `gradient` has another shape, or `strict` finds
            a missing gradient.
        """
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`beta * input + alpha * (batch1 @ batch2)` for each matrix of a batch, with the input broadcast to the
        shape of the product.
        """
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """Write the result of ``baddbmm(batch1, batch2, *, beta=1, alpha=1)`` to this tensor."""
    def bernoulli(self, p: _float | None = None, *, generator: Generator | None = None) -> Tensor:
        """A tensor of ones and zeros; each element of this tensor, or `p`, is the probability of a one."""
    def bernoulli_(self, p: _float | Tensor = 0.5, *, generator: Generator | None = None) -> Self:
        """Fills this tensor with ones and zeros; `p`, a number or a tensor, is the probability of a one."""
    def bfloat16(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype bfloat16; itself if it has this dtype."""
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """The number of times that each of 0, 1, 2, ... occurs in a vector of non-negative integers, or the sum of
        its `weights`.
        """
    def bitwise_and(self, other: _Operand) -> Tensor:
        """The bits that both inputs have."""
    def bitwise_and_(self, other: _Operand) -> Self:
        """In-place form of `bitwise_and`."""
    def bitwise_left_shift(self, other: _Operand) -> Tensor:
        """The first input's bits moved up by the second; 0 where that is negative or too much."""
    def bitwise_left_shift_(self, other: _Operand) -> Self:
        """In-place form of `bitwise_left_shift`."""
    def bitwise_not(self) -> Tensor:
        """The input with all its bits changed."""
    def bitwise_not_(self) -> Self:
        """In-place form of `bitwise_not`."""
    def bitwise_or(self, other: _Operand) -> Tensor:
        """The bits that one of the inputs has."""
    def bitwise_or_(self, other: _Operand) -> Self:
        """In-place form of `bitwise_or`."""
    def bitwise_right_shift(self, other: _Operand) -> Tensor:
        """The first input's bits moved down by the second, keeping the sign."""
    def bitwise_right_shift_(self, other: _Operand) -> Self:
        """In-place form of `bitwise_right_shift`."""
    def bitwise_xor(self, other: _Operand) -> Tensor:
        """The bits that just one of the inputs has."""
    def bitwise_xor_(self, other: _Operand) -> Self:
        """In-place form of `bitwise_xor`."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices."""
    def bool(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype bool; itself if it has this dtype."""
    def broadcast_to(self, *size: _int | _Sizes, **kwargs: Any) -> Tensor:
        """A view that is broadcast to the given shape."""
    def byte(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype uint8; itself if it has this dtype."""
    def cauchy_(self, median: _float = 0, sigma: _float = 1, *, generator: Generator | None = None) -> Self:
        """Write random numbers of Cauchy's distribution."""
    def cdouble(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype complex128; itself if it has this dtype."""
    def ceil(self) -> Tensor:
        """The smallest whole number not below the input."""
    def ceil_(self) -> Self:
        """In-place form of `ceil`."""
    def celu(self, alpha: _Number = 1.0) -> Tensor:
        """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""
    def celu_(self, alpha: _Number = 1.0) -> Self:
        """In-place form of `celu`."""
    def cfloat(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype complex64; itself if it has this dtype."""
    def chalf(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype complex32; itself if it has this dtype."""
    def char(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype int8; itself if it has this dtype."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """Compute Cholesky factors; see :func:`rgrad.linalg.cholesky`."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """Compute the inverse of a matrix from its Cholesky factor."""
    def cholesky_solve(self, input2: Tensor, upper: _bool = False) -> Tensor:
        """Solve ``A @ X = B`` with the Cholesky factor of ``A``."""
    def chunk(self, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """Splits along `dim` into at most `chunks` parts of equal size, of which the last may be smaller."""
    def clamp(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """This tensor with every element limited to `[min, max]`. The bounds are numbers or tensors, and one may be
        missing.
        """
    def clamp_(self, min: _Operand | None = None, max: _Operand | None = None) -> Self:
        """Limits every element to `[min, max]` in place. The bounds are numbers or tensors, and one may be missing."""
    def clamp_max(self, max: _Operand) -> Tensor:
        """This tensor with every element limited to at most `max`."""
    def clamp_max_(self, max: _Operand) -> Self:
        """Limits every element to at most `max`, in place."""
    def clamp_min(self, min: _Operand) -> Tensor:
        """This tensor with every element limited to at least `min`."""
    def clamp_min_(self, min: _Operand) -> Self:
        """Limits every element to at least `min`, in place."""
    def clip(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """The same as `clamp`."""
    def clip_(self, min: _Operand | None = None, max: _Operand | None = None) -> Self:
        """Limits every element to `[min, max]` in place. The bounds are numbers or tensors, and one may be missing."""
    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """A copy with a history: gradients go to the original."""
    def conj(self) -> Tensor:
        """The complex conjugate: a view of the same memory, whose elements are conjugated when they are read. A real
        tensor is returned as it is.
        """
    def conj_physical(self) -> Tensor:
        """The complex conjugate, computed at once. A real tensor is returned as it is."""
    def conj_physical_(self) -> Self:
        """In-place form of `conj_physical`."""
    def contiguous(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor if its elements lie in the order of `memory_format` (row-major by default), else a copy whose
        elements do.

        Raises:
            RuntimeError: The format is for tensors of another rank.
        """
    def copy_(self, other: Tensor, non_blocking: _bool = False) -> Self:
        """Overwrites this tensor with `other`, which is broadcast to this shape and converted to this dtype."""
    def copysign(self, other: _Operand) -> Tensor:
        """The magnitude of the first input with the sign of the second."""
    def copysign_(self, other: _Operand) -> Self:
        """In-place form of `copysign`."""
    def corrcoef(self) -> Tensor:
        """Compute the correlation coefficients of variables (Pearson)."""
    def cos(self) -> Tensor:
        """The cosine of an angle in radians."""
    def cos_(self) -> Self:
        """In-place form of `cos`."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def cosh_(self) -> Self:
        """In-place form of `cosh`."""
    def count_nonzero(self, dim: _Dims | None = None) -> Tensor:
        """How many elements along `dim` (all without) are not 0, as int64."""
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Compute the covariances of variables."""
    def cpu(self, memory_format: memory_format | None = None) -> Tensor:
        """This tensor on the CPU; itself if it is there."""
    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """Compute the cross products of vectors of three elements; see :func:`rgrad.linalg.cross`."""
    def cuda(
        self, device: _Device | None = None, non_blocking: _bool = False, memory_format: memory_format = ...
    ) -> Tensor:
        """Refuse: there are no CUDA devices. ``tensor.to("wgpu")`` moves to a GPU of any vendor."""
    def cummax(self, dim: _int) -> _return_types.cummax:
        """The largest element so far along `dim` and where it stands (the last of equals)."""
    def cummin(self, dim: _int) -> _return_types.cummin:
        """The smallest element so far along `dim` and where it stands (the last of equals)."""
    def cumprod(self, dim: _int, *, dtype: _DType | None = None, out: Tensor | None = None) -> Tensor:
        """The cumulative products along `dim`. Integers and bool give int64 unless `dtype` is given."""
    def cumprod_(self, dim: _int, *, dtype: _DType | None = None) -> Self:
        """Replaces this tensor by its cumulative products along `dim`."""
    def cumsum(self, dim: _int, *, dtype: _DType | None = None, out: Tensor | None = None) -> Tensor:
        """The cumulative sums along `dim`. Integers and bool give int64 unless `dtype` is given."""
    def cumsum_(self, dim: _int, *, dtype: _DType | None = None) -> Self:
        """Replaces this tensor by its cumulative sums along `dim`."""
    @property
    def data(self) -> Tensor:
        """A tensor without history that shares this tensor's memory but has a version counter of its own."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def data_ptr(self) -> _int:
        """The address of the first element, 0 if there is none. For memory of a device, a number that no other
        memory has, to compare.

        Raises:
            RuntimeError: The tensor belongs to a function transform.
        """
    def deg2rad(self) -> Tensor:
        """An angle in degrees as one in radians."""
    def deg2rad_(self) -> Self:
        """In-place form of `deg2rad`."""
    def det(self) -> Tensor:
        """Compute determinants; see :func:`rgrad.linalg.det`."""
    def detach(self) -> Tensor:
        """A tensor without history that shares this tensor's memory and version counter."""
    def detach_(self) -> Self:
        """Removes this tensor's history.

        Raises:
            RuntimeError: The tensor is a view.
        """
    @property
    def device(self) -> _DeviceObject:
        """The device on which the memory is."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """A square matrix with a vector on its diagonal, or a copy of the diagonal of a matrix."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices in dimensions `dim1` and `dim2` with the last dimension of the tensor on a diagonal, and zeros
        elsewhere.
        """
    def diagflat(self, offset: _int = 0) -> Tensor:
        """A square matrix with all elements of the tensor on a diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A diagonal of dimensions `dim1` and `dim2`, as a new last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A copy with a diagonal of the dimensions `dim1` and `dim2` replaced by `src`, whose last dimension lies
        along it.
        """
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences of neighbors along `dim`, taken `n` times, after `prepend` and `append` are joined to the
        ends of the tensor.
        """
    def digamma(self) -> Tensor:
        """The derivative of the logarithm of the gamma function, infinite at 0 and nan at the negative integers."""
    def digamma_(self) -> Self:
        """In-place form of `digamma`."""
    def dim(self) -> _int:
        """The number of dimensions."""
    def dim_order(self, *, ambiguity_check: _bool | Sequence[Any] = False) -> _tuple[_int, ...]:
        """Give the dimensions in the order of their strides, the widest first."""
    def dist(self, other: Tensor, p: _float = 2.0) -> Tensor:
        """The norm of order `p` of the difference."""
    def div(self, other: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """This tensor divided by `other`; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def div_(self, other: _Operand, *, rounding_mode: _str | None = None) -> Self:
        """Divides this tensor by `other` in place; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def divide(self, other: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """This tensor divided by `other`; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def divide_(self, other: _Operand, *, rounding_mode: _str | None = None) -> Self:
        """Divides this tensor by `other` in place; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The dot product of two vectors."""
    def double(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype float64; itself if it has this dtype."""
    def dsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor, *more: _int) -> _tuple[Tensor, ...]:
        """Splits along dimension 2: into a number of equal parts, or at a list of positions. Positions may be given
        one by one.
        """
    @property
    def dtype(self) -> _DType:
        """The dtype of the elements."""
    def eig(
        self, eigenvectors: _bool = False, *, e: Tensor | None = None, v: Tensor | None = None
    ) -> _tuple[Tensor, Tensor]:
        """Refuse: removed in favor of :func:`rgrad.linalg.eig`, which gives complex numbers."""
    def element_size(self) -> _int:
        """The bytes of one element."""
    def elu(self, alpha: _Number = 1.0, scale: _Number = 1.0, input_scale: _Number = 1.0) -> Tensor:
        """`scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))`."""
    def elu_(self, alpha: _Number = 1.0, scale: _Number = 1.0, input_scale: _Number = 1.0) -> Self:
        """In-place form of `elu`."""
    def eq(self, other: _Operand) -> Tensor:
        """Whether both inputs are equal."""
    def eq_(self, other: _Operand) -> Self:
        """In-place form of `eq`."""
    def equal(self, other: Tensor) -> _bool:
        """Whether the shapes and all elements are equal."""
    def erf(self) -> Tensor:
        """The error function."""
    def erf_(self) -> Self:
        """In-place form of `erf`."""
    def erfc(self) -> Tensor:
        """One minus the error function, accurate where that is small."""
    def erfc_(self) -> Self:
        """In-place form of `erfc`."""
    def erfinv(self) -> Tensor:
        """The inverse of the error function, infinite at -1 and 1 and nan outside."""
    def erfinv_(self) -> Self:
        """In-place form of `erfinv`."""
    def exp(self) -> Tensor:
        """e to the power of the input."""
    def exp2(self) -> Tensor:
        """2 to the power of the input."""
    def exp2_(self) -> Self:
        """In-place form of `exp2`."""
    def exp_(self) -> Self:
        """In-place form of `exp`."""
    def expand(self, *size: _int | _Sizes, implicit: _bool = False, **kwargs: Any) -> Tensor:
        """A view with dimensions of size 1 expanded to the given sizes; -1 leaves a size unchanged."""
    def expand_as(self, other: Tensor) -> Tensor:
        """A view of this tensor expanded to the shape of `other`."""
    def expit(self) -> Tensor:
        """`1 / (1 + exp(-x))`."""
    def expit_(self) -> Self:
        """In-place form of `expit`."""
    def expm1(self) -> Tensor:
        """e to the power of the input, minus 1, accurate near 0."""
    def expm1_(self) -> Self:
        """In-place form of `expm1`."""
    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills this tensor with numbers of the exponential distribution of rate `lambd`."""
    def fill_(self, value: _Operand) -> Self:
        """Overwrites every element with `value`, a number or a 0-d tensor.

        Raises:
            RuntimeError: `value` is a tensor with dimensions.
            TypeError: `value` is neither a tensor nor a number.
        """
    def fill_diagonal_(self, fill_value: _float, wrap: _bool = False) -> Self:
        """Write a number to the main diagonal."""
    def fix(self) -> Tensor:
        """The whole part, towards zero."""
    def fix_(self) -> Self:
        """In-place form of `fix`."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """The dimensions from `start_dim` to `end_dim` merged into one."""
    def flip(self, *dims: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The elements in reverse order along `dims`."""
    def fliplr(self) -> Tensor:
        """The columns in reverse order."""
    def flipud(self) -> Tensor:
        """The rows in reverse order."""
    def float(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype float32; itself if it has this dtype."""
    def float_power(self, exponent: Tensor | _float) -> Tensor:
        """Compute powers in float64; in complex128, if one operand is complex."""
    def float_power_(self, exponent: Tensor | _float) -> Self:
        """Write powers that are computed in float64 to a float64 tensor."""
    def floor(self) -> Tensor:
        """The largest whole number not above the input."""
    def floor_(self) -> Self:
        """In-place form of `floor`."""
    def floor_divide(self, other: _Operand) -> Tensor:
        """The quotient rounded towards minus infinity, without derivative."""
    def floor_divide_(self, other: _Operand) -> Self:
        """In-place form of `floor_divide`."""
    def fmax(self, other: _Operand) -> Tensor:
        """The larger input, or the one that is not nan."""
    def fmin(self, other: _Operand) -> Tensor:
        """The smaller input, or the one that is not nan."""
    def fmod(self, other: _Operand) -> Tensor:
        """The remainder of the division truncated towards zero; it has the sign of the dividend."""
    def fmod_(self, other: _Operand) -> Self:
        """In-place form of `fmod`."""
    def frac(self) -> Tensor:
        """The part after the decimal point, with the input's sign."""
    def frac_(self) -> Self:
        """In-place form of `frac`."""
    def freeze_(self) -> Self:
        """Makes every later in-place write to this tensor's memory a RuntimeError at the line that writes.

        This includes writes through views, detached tensors, `out=`, optimizers and all other tensors that share
        the memory. NumPy arrays made
        later are read-only.
        """
    def frexp(self) -> _return_types.frexp:
        """Split floats into fractions and powers of 2: ``input = mantissa * 2 ** exponent``."""
    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """The elements along `dim` at `index`, which has the shape of the result."""
    def gcd(self, other: Tensor) -> Tensor:
        """Compute the greatest common divisors of integers."""
    def gcd_(self, other: Tensor) -> Self:
        """Write the result of ``gcd(other)`` to this tensor."""
    def ge(self, other: _Operand) -> Tensor:
        """Whether the first input is greater or equal."""
    def ge_(self, other: _Operand) -> Self:
        """In-place form of `ge`."""
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Self:
        """Write the numbers of trials up to the first success."""
    def geqrf(self) -> _return_types.geqrf:
        """Compute the reflections of a QR factorisation, which :func:`rgrad.orgqr` takes."""
    def ger(self, vec2: Tensor) -> Tensor:
        """The same as `outer`."""
    def get_device(self) -> _int:
        """The number of the tensor's device: 0 on wgpu, -1 on the CPU."""
    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of this tensor, or None."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    @property
    def grad_dtype(self) -> _DType | None:
        """The dtype that gradients of this leaf are converted to; None if they keep their own."""
    @grad_dtype.setter
    def grad_dtype(self, value: _DType | None) -> None: ...
    @grad_dtype.deleter
    def grad_dtype(self) -> None: ...
    @property
    def grad_fn(self) -> Node | None:
        """The node that computed this tensor; None for a leaf."""
    def greater(self, other: _Operand) -> Tensor:
        """Whether the first input is greater."""
    def greater_(self, other: _Operand) -> Self:
        """In-place form of `greater`."""
    def greater_equal(self, other: _Operand) -> Tensor:
        """Whether the first input is greater or equal."""
    def greater_equal_(self, other: _Operand) -> Self:
        """In-place form of `greater_equal`."""
    def gt(self, other: _Operand) -> Tensor:
        """Whether the first input is greater."""
    def gt_(self, other: _Operand) -> Self:
        """In-place form of `gt`."""
    def half(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype float16; itself if it has this dtype."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """The input, but 0 where its magnitude is not above `lambd`."""
    def hardsigmoid(self) -> Tensor:
        """`clamp(x + 3, 0, 6) / 6`."""
    def hardsigmoid_(self) -> Self:
        """In-place form of `hardsigmoid`."""
    def hardswish(self) -> Tensor:
        """`x * clamp(x + 3, 0, 6) / 6`."""
    def hardswish_(self) -> Self:
        """In-place form of `hardswish`."""
    def hardtanh(self, min_val: _Number = -1.0, max_val: _Number = 1.0) -> Tensor:
        """The input kept between two numbers; the derivative at both is 0."""
    def hardtanh_(self, min_val: _Number = -1.0, max_val: _Number = 1.0) -> Self:
        """In-place form of `hardtanh`."""
    def heaviside(self, values: Tensor) -> Tensor:
        """Give 0 for negative elements, 1 for positive ones, and an element of ``values`` at 0."""
    def heaviside_(self, values: Tensor) -> Self:
        """Write the result of ``heaviside(values)`` to this tensor."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """Count elements in bins of one width. It has no derivative."""
    def histogram(
        self,
        bins: _int | Tensor = 100,
        *,
        range: Sequence[_float] | None = None,
        weight: Tensor | None = None,
        density: _bool = False,
    ) -> _return_types.histogram:
        """Count elements in bins, or add up their weights. It has no derivative."""
    def hsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor, *more: _int) -> _tuple[Tensor, ...]:
        """Splits along dimension 1, or 0 of a vector: into a number of equal parts, or at a list of positions.
        Positions may be given one by one.
        """
    def hypot(self, other: _Operand) -> Tensor:
        """The length of the hypotenuse, without needless overflow; its derivative at 0 is 0."""
    def hypot_(self, other: _Operand) -> Self:
        """In-place form of `hypot`."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""
    def i0_(self) -> Self:
        """In-place form of `i0`."""
    def igamma(self, other: _Operand) -> Tensor:
        """The lower incomplete gamma function of `input` at `other`, divided by the gamma function."""
    def igamma_(self, other: _Operand) -> Self:
        """In-place form of `igamma`."""
    def igammac(self, other: _Operand) -> Tensor:
        """The upper incomplete gamma function of `input` at `other`, divided by the gamma function."""
    def igammac_(self, other: _Operand) -> Self:
        """In-place form of `igammac`."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part of a complex tensor, a view of the same memory; RuntimeError for a real one."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1) -> Tensor:
        """A copy with `alpha * source` added to the slices along `dim` at `index`."""
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1) -> Self:
        """Adds `alpha * source` to the slices along `dim` at `index`."""
    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """A copy with the slices along `dim` at `index` replaced by those of `source`."""
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Self:
        """Replaces the slices along `dim` at `index` by those of `source`."""
    def index_fill(self, dim: _int, index: Tensor, value: _Operand) -> Tensor:
        """A copy with the slices along `dim` at `index` filled with a value."""
    def index_fill_(self, dim: _int, index: Tensor, value: _Operand) -> Self:
        """Fills the slices along `dim` at `index` with a value."""
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """A copy with `values` written at the index tensors, or added with `accumulate`."""
    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Self:
        """Writes `values` at the index tensors, or adds them with `accumulate`."""
    def index_reduce(
        self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True
    ) -> Tensor:
        """Combine slices of ``source`` at positions along a dimension."""
    def index_reduce_(
        self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True
    ) -> Self:
        """Write the result of ``index_reduce(dim, index, source, reduce, *, include_self=True)`` to this tensor."""
    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """The slices along `dim` at a vector of indices."""
    def inner(self, other: Tensor) -> Tensor:
        """The sums of products over the last dimension of both tensors."""
    def int(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype int32; itself if it has this dtype."""
    def inverse(self) -> Tensor:
        """Compute the inverses of square matrices; see :func:`rgrad.linalg.inv`."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def is_conj(self) -> _bool:
        """Whether the tensor is a lazy conjugate: a view whose elements are conjugated when they are read."""
    def is_contiguous(self, memory_format: memory_format | None = None) -> _bool:
        """Whether the elements lie in the order of `memory_format` (row-major by default) without gaps."""
    @property
    def is_cpu(self) -> _bool:
        """Whether the tensor is on the CPU."""
    @property
    def is_cuda(self) -> _bool:
        """Whether the tensor is on a CUDA device: always False."""
    def is_distributed(self) -> _bool:
        """Tell whether a tensor is spread over processes: never."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is a floating point dtype."""
    def is_frozen(self) -> _bool:
        """Whether this tensor's memory is frozen."""
    def is_inference(self) -> _bool:
        """Whether this tensor was made in inference mode."""
    @property
    def is_ipu(self) -> _bool:
        """Whether the tensor is on an IPU: always False."""
    @property
    def is_leaf(self) -> _bool:
        """Whether no recorded operation computed this tensor."""
    @property
    def is_maia(self) -> _bool:
        """Whether the tensor is on a MAIA device: always False."""
    @property
    def is_meta(self) -> _bool:
        """Whether the tensor is on the meta device: it has a shape and a dtype, but no elements."""
    @property
    def is_mkldnn(self) -> _bool:
        """Whether the tensor has a layout of oneDNN: always False."""
    @property
    def is_mps(self) -> _bool:
        """Whether the tensor is on a device of Metal: always False."""
    @property
    def is_mtia(self) -> _bool:
        """Whether the tensor is on an MTIA device: always False."""
    def is_neg(self) -> _bool:
        """Whether the tensor is a lazy negative: a view whose elements are negated when they are read."""
    @property
    def is_nested(self) -> _bool:
        """Whether the tensor is a nested one: always False."""
    def is_nonzero(self) -> _bool:
        """Tell whether the one element of a tensor is not 0."""
    def is_pinned(self, device: _Device | None = None) -> _bool:
        """Tell whether memory is page-locked: never."""
    @property
    def is_quantized(self) -> _bool:
        """Whether the tensor is quantized: always False."""
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether `other` has the same shape."""
    def is_set_to(self, tensor: Tensor) -> _bool:
        """Tell whether two tensors are the same view of the same memory."""
    def is_shared(self) -> _bool:
        """Tell whether other processes can have this tensor's memory; see :meth:`Tensor.share_memory_`."""
    def is_signed(self) -> _bool:
        """Whether the elements can be negative."""
    @property
    def is_sparse(self) -> _bool:
        """Whether the tensor is sparse: always False."""
    @property
    def is_vulkan(self) -> _bool:
        """Whether the tensor is on a Vulkan device of PyTorch: always False."""
    @property
    def is_wgpu(self) -> _bool:
        """Whether the tensor is on the wgpu device."""
    @property
    def is_xla(self) -> _bool:
        """Whether the tensor is on an XLA device: always False."""
    @property
    def is_xpu(self) -> _bool:
        """Whether the tensor is on an XPU: always False."""
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Where `|input - other| <= atol + rtol * |other|`. With `equal_nan`, NaN equals NaN."""
    def isfinite(self) -> Tensor:
        """Whether the input is neither nan nor infinite."""
    def isinf(self) -> Tensor:
        """Whether the input is infinite."""
    def isnan(self) -> Tensor:
        """Whether the input is nan."""
    def isneginf(self) -> Tensor:
        """Whether the input is minus infinity."""
    def isposinf(self) -> Tensor:
        """Whether the input is plus infinity."""
    def isreal(self) -> Tensor:
        """Tell which elements are real: all but complex numbers whose imaginary part is not 0."""
    def istft(
        self,
        n_fft: _int,
        hop_length: _int | None = None,
        win_length: _int | None = None,
        window: Tensor | None = None,
        center: _bool = True,
        normalized: _bool = False,
        onesided: _bool | None = None,
        length: _int | None = None,
        return_complex: _bool = False,
    ) -> Tensor:
        """Find the signal whose :func:`stft` is nearest to this one (Griffin and Lim 1984)."""
    def item(self) -> _Number:
        """The element of a tensor with one element, as a Python number.

        Raises:
            RuntimeError: The tensor has more or less than one element, or it is on the meta device.
        """
    @property
    def itemsize(self) -> _int:
        """The bytes of one element."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: a block matrix of the products of each element with `other`."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> _return_types.kthvalue:
        """The `k`-th smallest element along `dim`, counted from 1, and where it stands."""
    @property
    def layout(self) -> Any:
        """The layout of a tensor: always ``rgrad.strided``."""
    def lcm(self, other: Tensor) -> Tensor:
        """Compute the least common multiples of integers."""
    def lcm_(self, other: Tensor) -> Self:
        """Write the result of ``lcm(other)`` to this tensor."""
    def ldexp(self, other: Tensor) -> Tensor:
        """The input times 2 to the power of `other`."""
    def ldexp_(self, other: Tensor) -> Self:
        """Write the result of ``ldexp(other)`` to this tensor."""
    def le(self, other: _Operand) -> Tensor:
        """Whether the first input is less or equal."""
    def le_(self, other: _Operand) -> Self:
        """In-place form of `le`."""
    def leaky_relu(self, negative_slope: _Number = 0.01) -> Tensor:
        """The input where it is positive, else the input times a slope."""
    def leaky_relu_(self, negative_slope: _Number = 0.01) -> Self:
        """In-place form of `leaky_relu`."""
    def lerp(self, end: Tensor, weight: _Operand) -> Tensor:
        """`a + w * (b - a)`, computed from the end that `w` is nearer to."""
    def lerp_(self, end: Tensor, weight: _Operand) -> Self:
        """In-place form of `lerp`."""
    def less(self, other: _Operand) -> Tensor:
        """Whether the first input is less."""
    def less_(self, other: _Operand) -> Self:
        """In-place form of `less`."""
    def less_equal(self, other: _Operand) -> Tensor:
        """Whether the first input is less or equal."""
    def less_equal_(self, other: _Operand) -> Self:
        """In-place form of `less_equal`."""
    def lgamma(self) -> Tensor:
        """The logarithm of the magnitude of the gamma function, infinite at 0 and at the negative integers."""
    def lgamma_(self) -> Self:
        """In-place form of `lgamma`."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log10_(self) -> Self:
        """In-place form of `log10`."""
    def log1p(self) -> Tensor:
        """The natural logarithm of 1 plus the input, accurate near 0."""
    def log1p_(self) -> Self:
        """In-place form of `log1p`."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def log2_(self) -> Self:
        """In-place form of `log2`."""
    def log_(self) -> Self:
        """In-place form of `log`."""
    def log_normal_(self, mean: _float = 1, std: _float = 2, *, generator: Generator | None = None) -> Self:
        """Write exponentials of normal random numbers."""
    def log_softmax(self, dim: _int, dtype: _DType | None = None) -> Tensor:
        """`x - log(sum(exp(x)))` along `dim`, without overflow."""
    def logaddexp(self, other: _Operand) -> Tensor:
        """The logarithm of the sum of the exponentials of both inputs."""
    def logaddexp2(self, other: _Operand) -> Tensor:
        """The logarithm to base 2 of the sum of 2 to the power of both inputs."""
    def logcumsumexp(self, dim: _int) -> Tensor:
        """The logarithm of the running sum of `exp(x)` along `dim`, without overflow. Floats and complex numbers
        only.
        """
    def logdet(self) -> Tensor:
        """Compute the logarithms of the determinants of square matrices."""
    def logical_and(self, other: _Operand) -> Tensor:
        """Whether both inputs are true (not zero)."""
    def logical_and_(self, other: _Operand) -> Self:
        """In-place form of `logical_and`."""
    def logical_not(self) -> Tensor:
        """Whether the input is zero."""
    def logical_not_(self) -> Self:
        """In-place form of `logical_not`."""
    def logical_or(self, other: _Operand) -> Tensor:
        """Whether one of the inputs is true (not zero)."""
    def logical_or_(self, other: _Operand) -> Self:
        """In-place form of `logical_or`."""
    def logical_xor(self, other: _Operand) -> Tensor:
        """Whether just one of the inputs is true (not zero)."""
    def logical_xor_(self, other: _Operand) -> Self:
        """In-place form of `logical_xor`."""
    def logit(self, eps: _Number | None = None) -> Tensor:
        """The logarithm of the odds, `log(x / (1 - x))`, of the input kept in `eps..=1 - eps` unless `eps` is
        negative.
        """
    def logit_(self, eps: _Number | None = None) -> Self:
        """In-place form of `logit`."""
    def logsigmoid(self) -> Tensor:
        """`log(sigmoid(x))`."""
    def logsumexp(self, dim: _Dims, keepdim: _bool = False) -> Tensor:
        """`log(sum(exp(x)))` over `dim`, without overflow."""
    def long(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype int64; itself if it has this dtype."""
    def lstsq(self, A: Tensor) -> _tuple[Tensor, Tensor]:
        """Refuse: removed in favor of :func:`rgrad.linalg.lstsq`, whose arguments are in the other order."""
    def lt(self, other: _Operand) -> Tensor:
        """Whether the first input is less."""
    def lt_(self, other: _Operand) -> Self:
        """In-place form of `lt`."""
    @overload
    def lu(self, pivot: _bool = True, get_infos: Literal[False] = False) -> _tuple[Tensor, Tensor]:
        """Compute LU factorisations; see :func:`rgrad.linalg.lu_factor`."""
    @overload
    def lu(self, pivot: _bool = True, *, get_infos: Literal[True]) -> _tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def lu(self, pivot: _bool, get_infos: Literal[True]) -> _tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def lu(
        self, pivot: _bool = True, get_infos: _bool = False
    ) -> _tuple[Tensor, Tensor] | _tuple[Tensor, Tensor, Tensor]: ...
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Solve with an LU factorisation; see :func:`rgrad.linalg.lu_solve`."""
    @property
    def mH(self) -> Tensor:
        """A view with the last two dimensions exchanged, conjugated."""
    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged."""
    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Self:
        """Write what a Python function gives for the elements of two tensors; slow."""
    def masked_fill(self, mask: Tensor, value: _Operand) -> Tensor:
        """A copy with a value where the mask is true."""
    def masked_fill_(self, mask: Tensor, value: _Operand) -> Self:
        """Writes a value where the mask is true."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy with consecutive elements of `source` where the mask is true."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self:
        """Writes consecutive elements of `source` where the mask is true."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the mask is true, in one dimension."""
    def matmul(self, other: Tensor) -> Tensor:
        """The product of two tensors by the rules of `@`: of vectors, matrices, or batches of matrices, which are
        broadcast.
        """
    def matrix_exp(self) -> Tensor:
        """Compute the exponentials of square matrices; see :func:`rgrad.linalg.matrix_exp`."""
    def matrix_power(self, n: _int) -> Tensor:
        """Compute the powers of square matrices; see :func:`rgrad.linalg.matrix_power`."""
    @overload
    def max(self, dim: None = None, keepdim: _bool = False, *, other: None = None, out: Tensor | None = None) -> Tensor:
        """The largest of all elements; with `dim`, (values, indices) along it; with a tensor, the maximum of both."""
    @overload
    def max(
        self, dim: _int, keepdim: _bool = False, *, other: None = None, out: _tuple[Tensor, Tensor] | None = None
    ) -> _return_types.max: ...
    @overload
    def max(self, dim: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def max(self, *, other: Tensor, out: Tensor | None = None) -> Tensor: ...
    def maximum(self, other: _Operand) -> Tensor:
        """The larger input; where both are equal each gets half of the gradient."""
    def mean(
        self,
        dim: _Dims | None = None,
        keepdim: _bool = False,
        *,
        dtype: _DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """The mean over `dim`, or of all elements. The tensor, or `dtype`, is floating point."""
    @overload
    def median(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """The lower median of all elements, or with `dim` (values, indices) along it. NaN if there is one."""
    @overload
    def median(
        self, dim: _int, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
    ) -> _return_types.median: ...
    @overload
    def min(self, dim: None = None, keepdim: _bool = False, *, other: None = None, out: Tensor | None = None) -> Tensor:
        """The smallest of all elements; with `dim`, (values, indices) along it; with a tensor, the minimum of both."""
    @overload
    def min(
        self, dim: _int, keepdim: _bool = False, *, other: None = None, out: _tuple[Tensor, Tensor] | None = None
    ) -> _return_types.min: ...
    @overload
    def min(self, dim: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def min(self, *, other: Tensor, out: Tensor | None = None) -> Tensor: ...
    def minimum(self, other: _Operand) -> Tensor:
        """The smaller input; where both are equal each gets half of the gradient."""
    def mish(self) -> Tensor:
        """`x * tanh(softplus(x))`."""
    def mish_(self) -> Self:
        """In-place form of `mish`."""
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> _return_types.mode:
        """The most frequent element along `dim` (the smallest of equally frequent ones) and where it stands last."""
    def moveaxis(self, source: _Dims, destination: _Dims) -> Tensor:
        """The dimensions `source` moved to `destination`; the others keep their order."""
    def movedim(self, source: _Dims, destination: _Dims) -> Tensor:
        """The dimensions `source` moved to `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        """The values sorted along dimension 0."""
    def mul(self, other: _Operand) -> Tensor:
        """The product of both inputs."""
    def mul_(self, other: _Operand) -> Self:
        """In-place form of `mul`."""
    def multinomial(
        self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Indices that are drawn with the probabilities in each row of this tensor, which need not sum to 1."""
    def multiply(self, other: _Operand) -> Tensor:
        """The product of both inputs."""
    def multiply_(self, other: _Operand) -> Self:
        """In-place form of `multiply`."""
    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _int) -> Tensor:
        """Compute the logarithm of the multivariate gamma function of dimension ``p``."""
    def mvlgamma_(self, p: _int) -> Self:
        """Write the result of ``mvlgamma(p)`` to this tensor."""
    def nan_to_num(
        self, nan: _Number | None = None, posinf: _Number | None = None, neginf: _Number | None = None
    ) -> Tensor:
        """The input with numbers in place of nan, plus and minus infinity."""
    def nan_to_num_(
        self, nan: _Number | None = None, posinf: _Number | None = None, neginf: _Number | None = None
    ) -> Self:
        """In-place form of `nan_to_num`."""
    def nanmean(
        self,
        dim: _Dims | None = None,
        keepdim: _bool = False,
        *,
        dtype: _DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """The mean over `dim`, or of all elements, of those that are not NaN."""
    @overload
    def nanmedian(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """The lower median of all elements that are not NaN, or with `dim` (values, indices) along it."""
    @overload
    def nanmedian(
        self, dim: _int, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
    ) -> _return_types.nanmedian: ...
    def nanquantile(
        self,
        q: _float | Sequence[_float] | Tensor,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        interpolation: _str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        """As `quantile`, but NaN is ignored."""
    def nansum(self, dim: _Dims | None = None, keepdim: _bool = False, *, dtype: _DType | None = None) -> Tensor:
        """The sum over `dim` (all without), with nan counted as 0."""
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor:
        """The `length` slices along `dim` that begin at `start`."""
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """Give a copy of what :func:`narrow` views."""
    @property
    def nbytes(self) -> _int:
        """The bytes of all elements."""
    @property
    def ndim(self) -> _int:
        """The number of dimensions."""
    def ndimension(self) -> _int:
        """The number of dimensions."""
    def ne(self, other: _Operand) -> Tensor:
        """Whether the inputs differ (true where one is nan)."""
    def ne_(self, other: _Operand) -> Self:
        """In-place form of `ne`."""
    def neg(self) -> Tensor:
        """The input with its sign changed."""
    def neg_(self) -> Self:
        """In-place form of `neg`."""
    def negative(self) -> Tensor:
        """The input with its sign changed."""
    def negative_(self) -> Self:
        """In-place form of `negative`."""
    def nelement(self) -> _int:
        """The number of elements."""
    def new(self, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of this one's dtype and device, of sizes or of data: `new_empty` and `new_tensor` in one.

        Args:
            *args: Sizes, a tensor of the same dtype (an alias of it), a storage, or a sequence of numbers.
            **kwargs: `size` or `data`, in place of `*args`; `device`, which must be of this tensor's kind.

        Raises:
            TypeError: An argument is none of these, or a tensor of another dtype.
        """
    def new_empty(
        self,
        *size: _int | _Sizes,
        dtype: _DType | None = None,
        layout: Any = None,
        device: _Device | None = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A tensor with uninitialized memory, and this tensor's dtype and device as defaults."""
    def new_empty_strided(
        self,
        size: Sequence[_int],
        stride: Sequence[_int],
        dtype: _DType | None = None,
        device: _Device | None = None,
        requires_grad: _bool | None = False,
        layout: Any | None = None,
        pin_memory: _bool | None = False,
    ) -> Tensor:
        """Make a tensor of any elements with given strides."""
    def new_full(
        self,
        size: _Sizes,
        fill_value: _Operand,
        *,
        dtype: _DType | None = None,
        layout: Any = None,
        device: _Device | None = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A tensor filled with `fill_value`, with this tensor's dtype and device as defaults."""
    def new_ones(
        self,
        *size: _int | _Sizes,
        dtype: _DType | None = None,
        layout: Any = None,
        device: _Device | None = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A tensor of ones with this tensor's dtype and device as defaults."""
    def new_tensor(
        self,
        data: Any,
        *,
        dtype: _DType | None = None,
        layout: Any = None,
        device: _Device | None = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A tensor with a copy of `data`, with this tensor's dtype and device as defaults."""
    def new_zeros(
        self,
        *size: _int | _Sizes,
        dtype: _DType | None = None,
        layout: Any = None,
        device: _Device | None = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A tensor of zeros with this tensor's dtype and device as defaults."""
    def nextafter(self, other: Tensor) -> Tensor:
        """Give the next float from ``input`` towards ``other``. The derivative is that of ``input``."""
    def nextafter_(self, other: Tensor) -> Self:
        """Write the result of ``nextafter(other)`` to this tensor."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The indices of the elements that are not zero: one row for each, or with `as_tuple` one vector for each
        dimension.
        """
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> _tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """Give the positions of what is not 0 in a tensor of a known number of rows."""
    def norm(
        self,
        p: _Number | _str = "fro",
        dim: _Dims | None = None,
        keepdim: _bool = False,
        out: Tensor | None = None,
        dtype: _DType | None = None,
    ) -> Tensor:
        """The vector norm of order `p` over `dim`, or of all elements; 'fro' is order 2, 'nuc' the nuclear norm of
        matrices.
        """
    def normal_(self, mean: _Operand = 0.0, std: _Operand = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills this tensor with numbers of a normal distribution."""
    def not_equal(self, other: _Operand) -> Tensor:
        """Whether the inputs differ (true where one is nan)."""
    def not_equal_(self, other: _Operand) -> Self:
        """In-place form of `not_equal`."""
    def numel(self) -> _int:
        """The number of elements."""
    def numpy(self, *, force: _bool = False) -> np.ndarray[Any, np.dtype[Any]]:
        """A NumPy array that shares this tensor's memory.

        Args:
            force: Detaches a tensor that requires grad, and copies a tensor that is not on the CPU or a lazy
            conjugate or negative.

        Raises:
            RuntimeError: The tensor requires grad or is a lazy conjugate or negative, and `force` is False.
            TypeError: The tensor is not on the CPU, and `force` is False.
        """
    def orgqr(self, input2: Tensor) -> Tensor:
        """Compute products of Householder's reflections; see :func:`rgrad.linalg.householder_product`."""
    def ormqr(self, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor:
        """Multiply matrices by a product of Householder's reflections."""
    def outer(self, vec2: Tensor) -> Tensor:
        """The outer product of two vectors: a matrix of the products of their elements."""
    @property
    def output_nr(self) -> _int:
        """The index of this tensor among the outputs of `grad_fn`."""
    def permute(self, *dims: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The dimensions in another order."""
    def pin_memory(self, device: _Device | None = None) -> Tensor:
        """Refuse: memory is page-locked for transfers to CUDA devices, and there are none."""
    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """Compute the pseudo-inverses of matrices; see :func:`rgrad.linalg.pinv`."""
    def polygamma(self, n: _int) -> Tensor:
        """Compute the ``n``-th derivative of :func:`digamma`."""
    def polygamma_(self, n: _int) -> Self:
        """Write the result of ``polygamma(n)`` to this tensor."""
    def positive(self) -> Tensor:
        """Give the tensor itself."""
    def pow(self, exponent: _Operand) -> Tensor:
        """This tensor to the power of `exponent`."""
    def pow_(self, exponent: _Operand) -> Self:
        """Raises this tensor to a power in place."""
    def prelu(self, weight: Tensor) -> Tensor:
        """The input where it is positive, else the input times a weight: one for all, or one for each channel."""
    def prod(
        self, dim: _int | None = None, keepdim: _bool = False, *, dtype: _DType | None = None, out: Tensor | None = None
    ) -> Tensor:
        """The product over one dimension, or of all elements. Integers and bool give int64 unless `dtype` is given."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """Give a copy with elements replaced at positions in the flattened tensor."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Self:
        """Write the result of ``put(index, source, accumulate=False)`` to this tensor."""
    def qr(self, some: _bool = True) -> _return_types.qr:
        """Compute QR factorisations; see :func:`rgrad.linalg.qr`."""
    def quantile(
        self,
        q: _float | Sequence[_float] | Tensor,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        interpolation: _str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        """The `q`-quantiles of all elements, or along `dim`. If there is a NaN, the quantiles are NaN.

        Args:
            q: A number between 0 and 1, or a tensor of them, whose quantiles form a new first dimension.
            dim: The dimension; by default the tensor is flattened.
            keepdim: Whether the result keeps the dimension, with size 1.
            interpolation: How a quantile between two elements is computed: 'linear', 'lower', 'higher',
            'midpoint' or 'nearest'.
        """
    def rad2deg(self) -> Tensor:
        """An angle in radians as one in degrees."""
    def rad2deg_(self) -> Self:
        """In-place form of `rad2deg`."""
    def random_(
        self, from_: _int | None = None, /, to: _int | None = None, *, generator: Generator | None = None
    ) -> Self:
        """Fills this tensor with integers of the uniform distribution on [from, to), on [0, from) with one bound, or
        on all that the dtype represents.
        """
    def ravel(self) -> Tensor:
        """All elements in one dimension."""
    @property
    def real(self) -> Tensor:
        """The real part of a complex tensor, a view of the same memory. A real tensor is returned as it is."""
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self) -> Tensor:
        """One over the input."""
    def reciprocal_(self) -> Self:
        """In-place form of `reciprocal`."""
    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Registers `hook(grad)`, which is called with each gradient of this tensor.

        A tensor that the hook returns replaces the gradient.

        Raises:
            RuntimeError: The tensor does not require grad.
        """
    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Registers `hook(leaf)`, which is called each time after a gradient was added to this leaf's `.grad`.

        Raises:
            RuntimeError: The tensor does not require grad, or it is not a leaf.
        """
    def reinforce(self, reward: object) -> Tensor:
        """Refuse: removed in favor of :mod:`rgrad.distributions`."""
    def relu(self) -> Tensor:
        """The input where it is positive, else 0; the derivative at 0 is 0."""
    def relu_(self) -> Self:
        """In-place form of `relu`."""
    def remainder(self, other: _Operand) -> Tensor:
        """The remainder of the division rounded towards minus infinity; it has the sign of the divisor."""
    def remainder_(self, other: _Operand) -> Self:
        """In-place form of `remainder`."""
    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """Each slice along `dim` scaled to a norm of order `p` of `maxnorm`, where its norm is larger."""
    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Self:
        """Write the result of ``renorm(p, dim, maxnorm)`` to this tensor."""
    def repeat(self, *repeats: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The tensor repeated along each dimension; more numbers than dimensions add dimensions at the front."""
    def repeat_interleave(
        self, repeats: _int | Sequence[_int] | Tensor, dim: _int | None = None, *, output_size: _int | None = None
    ) -> Tensor:
        """Each slice along `dim` repeated next to itself; without `dim` the tensor is flattened."""
    @property
    def requires_grad(self) -> _bool:
        """Whether operations on this tensor are recorded."""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Self:
        """Switches the recording of operations on this tensor on or off, in place.

        Raises:
            RuntimeError: The tensor is not a leaf, its dtype is not floating point, or a function transform runs.
        """
    def reshape(self, *shape: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The same elements in another shape: a view if possible, else a copy. One size may be -1.

        Raises:
            RuntimeError: The shape has another number of elements.
        """
    def reshape_as(self, other: Tensor) -> Tensor:
        """This tensor in the shape of `other`: a view if possible, else a copy."""
    def resize(self, *sizes: _int | _Sizes) -> Tensor:
        """Give the elements with another shape, with a warning; use :meth:`Tensor.reshape` or
        :meth:`Tensor.resize_`.

        Args:
            sizes: The new shape, of as many elements.

        Returns:
            A tensor with the same elements.

        Raises:
            RuntimeError: The number of elements differs.
        """
    def resize_(self, *size: _int | _Sizes, **kwargs: Any) -> Self:
        """Gives this tensor other sizes in place, in row-major order or that of a memory format. Elements that were
        not there before are not initialised.

        The memory grows if it is too small.

        Args:
            *size: The sizes, one by one or as a sequence.
            **kwargs: `size`, in place of `*size`; `memory_format`, whose strides the tensor gets.

        Raises:
            RuntimeError: The tensor requires grad, its memory would have to grow and other tensors use it, too,
            or the format is for
                tensors of another rank.
        """
    def resize_as(self, tensor: Tensor) -> Tensor:
        """Give the elements with the shape of another tensor, with a warning; use :meth:`Tensor.reshape`."""
    def resize_as_(self, the_template: Tensor, *, memory_format: memory_format | None = None) -> Self:
        """As `resize_`, with the sizes of `the_template`.

        Raises:
            RuntimeError: As for `resize_`.
        """
    def resolve_conj(self) -> Tensor:
        """The tensor itself, or, of a lazy conjugate, a copy whose elements are computed."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself, or, of a lazy negative, a copy whose elements are computed."""
    def retain_grad(self) -> None:
        """Makes backward store the gradient of this non-leaf tensor in `.grad`.

        Raises:
            RuntimeError: The tensor does not require grad, or a function transform runs.
        """
    @property
    def retains_grad(self) -> _bool:
        """Whether this is a non-leaf tensor whose gradient backward stores in `.grad`."""
    def roll(self, shifts: _Dims, dims: _Dims = ()) -> Tensor:
        """The elements shifted along `dims` by `shifts`; elements beyond one end reappear at the other."""
    def rot90(self, k: _int = 1, dims: _Dims = (0, 1)) -> Tensor:
        """The tensor rotated `k` times by 90 degrees in the plane of two dimensions."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """This tensor rounded to `decimals` digits after the decimal point, or before it if `decimals` is negative."""
    def round_(self, *, decimals: _int = 0) -> Self:
        """Rounds every element to `decimals` digits after the decimal point, in place."""
    def rsqrt(self) -> Tensor:
        """One over the square root."""
    def rsqrt_(self) -> Self:
        """In-place form of `rsqrt`."""
    def scatter(
        self,
        dim: _int,
        index: Tensor,
        src: _Operand | None = None,
        *,
        value: _Number | None = None,
        reduce: _str | None = None,
    ) -> Tensor:
        """A copy with `src`, a tensor or a number, written at `index` along `dim`; `reduce` is None, 'add' or
        'multiply'.
        """
    def scatter_(
        self,
        dim: _int,
        index: Tensor,
        src: _Operand | None = None,
        *,
        value: _Number | None = None,
        reduce: _str | None = None,
    ) -> Self:
        """Writes `src`, a tensor or a number, at `index` along `dim`; `reduce` is None, 'add' or 'multiply'."""
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """A copy with `src` added at `index` along `dim`, in the order of the index."""
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Self:
        """Adds `src` at `index` along `dim`."""
    def scatter_reduce(
        self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True
    ) -> Tensor:
        """Combine elements of ``src`` at positions along a dimension."""
    def scatter_reduce_(
        self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True
    ) -> Self:
        """Write the result of ``scatter_reduce(dim, index, src, reduce, *, include_self=True)`` to this tensor."""
    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice at `index` along `dim`, without that dimension."""
    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """A copy with the slice at `index` along `dim` replaced by `src`."""
    def set_(
        self,
        source: Tensor | None = None,
        storage_offset: _int = 0,
        size: _Sizes | None = None,
        stride: _Sizes | None = None,
    ) -> Self:
        """Make the tensor use the memory of another one, or a storage."""
    def sgn(self) -> Tensor:
        """The input divided by its absolute value: -1, 0 or 1 for real numbers (0 for nan)."""
    def sgn_(self) -> Self:
        """In-place form of `sgn`."""
    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
    def share_memory_(self) -> Self:
        """Move the tensor's elements to memory that other processes can have, and return the tensor."""
    def short(self, *, memory_format: memory_format | None = None) -> Tensor:
        """This tensor with dtype int16; itself if it has this dtype."""
    def sigmoid(self) -> Tensor:
        """`1 / (1 + exp(-x))`."""
    def sigmoid_(self) -> Self:
        """In-place form of `sigmoid`."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 (0 for nan)."""
    def sign_(self) -> Self:
        """In-place form of `sign`."""
    def signbit(self) -> Tensor:
        """Tell whether the sign bit of each element is set; it is for -0.0."""
    def silu(self) -> Tensor:
        """`x * sigmoid(x)`."""
    def silu_(self) -> Self:
        """In-place form of `silu`."""
    def sin(self) -> Tensor:
        """The sine of an angle in radians."""
    def sin_(self) -> Self:
        """In-place form of `sin`."""
    def sinc(self) -> Tensor:
        """Compute ``sin(pi * x) / (pi * x)``, and 1 at 0."""
    def sinc_(self) -> Self:
        """Write the result of ``sinc()`` to this tensor."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Self:
        """In-place form of `sinh`."""
    @overload
    def size(self, dim: None = None) -> Size:
        """The sizes of all dimensions, or of dimension `dim`.

        Raises:
            IndexError: The tensor has no dimension `dim`.
        """
    @overload
    def size(self, dim: _int) -> _int: ...
    def slice_scatter(
        self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1
    ) -> Tensor:
        """A copy with the slices `start` to `end` along `dim`, every `step`, replaced by those of `src`."""
    def slogdet(self) -> _return_types.slogdet:
        """Compute the signs and logarithms of determinants; see :func:`rgrad.linalg.slogdet`."""
    def softmax(self, dim: _int, dtype: _DType | None = None) -> Tensor:
        """`exp(x) / sum(exp(x))` along `dim`, without overflow."""
    def softplus(self, beta: _Number = 1.0, threshold: _Number = 20.0) -> Tensor:
        """`log(1 + exp(beta * x)) / beta`, and the input itself where `beta * x` is above the threshold."""
    def softshrink(self, lambd: _float = 0.5) -> Tensor:
        """The input moved towards 0 by `lambd`."""
    def solve(self, A: Tensor) -> _tuple[Tensor, Tensor]:
        """Refuse: removed in favor of :func:`rgrad.linalg.solve`, whose arguments are in the other order."""
    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool | None = None) -> _return_types.sort:
        """Sorted values along `dim` and where they came from; always stable, nan counts as the largest."""
    def split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
        """Splits along `dim` into parts of one size, of which the last may be smaller, or of the sizes in a list."""
    def split_with_sizes(self, split_sizes: _Sizes, dim: _int = 0) -> _tuple[Tensor, ...]:
        """Splits along `dim` into parts of the given sizes."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def sqrt_(self) -> Self:
        """In-place form of `sqrt`."""
    def square(self) -> Tensor:
        """The input times itself."""
    def square_(self) -> Self:
        """In-place form of `square`."""
    def squeeze(self, dim: _Dims | None = None, *more: _int) -> Tensor:
        """The tensor without dimensions of size 1: all of them, or those of `dim`, which may be given one by one."""
    def squeeze_(self, dim: _Dims | None = None, *more: _int) -> Self:
        """Removes dimensions of size 1 from this tensor in place."""
    def std(
        self,
        dim: _Dims | _bool | None = None,
        unbiased: _bool = True,
        keepdim: _bool = False,
        *,
        correction: _Number | None = None,
    ) -> Tensor:
        """The standard deviation, which is the square root of `var`."""
    def stft(
        self,
        n_fft: _int,
        hop_length: _int | None = None,
        win_length: _int | None = None,
        window: Tensor | None = None,
        center: _bool = True,
        pad_mode: _str = "reflect",
        normalized: _bool = False,
        onesided: _bool | None = None,
        return_complex: _bool | None = None,
        align_to_window: _bool | None = None,
    ) -> Tensor:
        """Transform a signal's short times: of frames of ``n_fft`` elements, times a window, the frequencies."""
    def storage(self) -> _TypedStorage:
        """The memory of the tensor as a typed storage. Use ``untyped_storage`` in new programs."""
    def storage_offset(self) -> _int:
        """The offset of the first element in the storage, in elements."""
    def storage_type(self) -> _type[_TypedStorage]:
        """The old class of storages of the tensor's dtype."""
    @overload
    def stride(self, dim: None = None) -> _tuple[_int, ...]:
        """The strides of all dimensions, or of dimension `dim`, in elements.

        Raises:
            IndexError: The tensor has no dimension `dim`.
        """
    @overload
    def stride(self, dim: _int) -> _int: ...
    def sub(self, other: _Operand, *, alpha: _Number = 1) -> Tensor:
        """This tensor minus `alpha * other`."""
    def sub_(self, other: _Operand, *, alpha: _Number = 1) -> Self:
        """Subtracts `alpha * other` from this tensor in place."""
    def subtract(self, other: _Operand, *, alpha: _Number = 1) -> Tensor:
        """This tensor minus `alpha * other`."""
    def subtract_(self, other: _Operand, *, alpha: _Number = 1) -> Self:
        """Subtracts `alpha * other` from this tensor in place."""
    def sum(
        self,
        dim: _Dims | None = None,
        keepdim: _bool = False,
        *,
        dtype: _DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """The sum over `dim`, or of all elements. Integers and bool give int64 unless `dtype` is given."""
    def sum_to_size(self, *size: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The sum over the dimensions that broadcasting from `size` to this tensor's shape adds or expands."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> _return_types.svd:
        """Compute singular value decompositions, ``input = U @ diag(S) @ V.mH``; see :func:`rgrad.linalg.svd`."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Two dimensions exchanged."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Self:
        """Exchanges two dimensions of this tensor in place."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions exchanged."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Self:
        """Exchanges two dimensions of this tensor in place."""
    def symeig(self, eigenvectors: _bool = False, upper: _bool = True) -> _tuple[Tensor, Tensor]:
        """Refuse: removed in favor of :func:`rgrad.linalg.eigh`, which reads the lower triangle by default."""
    def t(self) -> Tensor:
        """The transpose of a matrix. Vectors and 0-d tensors are unchanged."""
    def t_(self) -> Self:
        """Transposes this matrix in place."""
    def take(self, index: Tensor) -> Tensor:
        """The elements at indices into the flattened tensor."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """The elements along `dim` at `indices`. Both tensors are broadcast in the other dimensions; without `dim`
        the tensor is flattened.
        """
    def tan(self) -> Tensor:
        """The tangent of an angle in radians."""
    def tan_(self) -> Self:
        """In-place form of `tan`."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Self:
        """In-place form of `tanh`."""
    def tensor_split(self, indices_or_sections: _int | Sequence[_int] | Tensor, dim: _int = 0) -> _tuple[Tensor, ...]:
        """Splits along `dim` into a number of parts whose sizes differ by at most one, or at a list of positions."""
    def threshold(self, threshold: _Number, value: _Number) -> Tensor:
        """The input where it is above the threshold, else the value."""
    def threshold_(self, threshold: _Number, value: _Number) -> Self:
        """In-place form of `threshold`."""
    def tile(self, *dims: _int | _Sizes, **kwargs: Any) -> Tensor:
        """The tensor repeated `dims` times along each dimension; missing numbers at the front count as 1."""
    @overload
    def to(
        self,
        dtype: _DType,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor: ...
    @overload
    def to(
        self,
        device: _Device | None = None,
        dtype: _DType | None = None,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor: ...
    @overload
    def to(
        self,
        other: Tensor,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor: ...
    def to_dense(self, dtype: _DType | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """Give the tensor itself, since there are no sparse ones, or convert it."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> _return_types.topk:
        """The `k` largest (or smallest) elements along `dim`, in order, and where they stand."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions exchanged."""
    def transpose_(self, dim0: _int, dim1: _int) -> Self:
        """Exchanges two dimensions of this tensor in place."""
    def triangular_solve(
        self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False
    ) -> _return_types.triangular_solve:
        """Solve with triangular matrices; see :func:`rgrad.linalg.solve_triangular`."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of each matrix, up to `diagonal`, and zeros elsewhere."""
    def tril_(self, diagonal: _int = 0) -> Self:
        """Writes zeros above `diagonal` of each matrix."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of each matrix, from `diagonal` on, and zeros elsewhere."""
    def triu_(self, diagonal: _int = 0) -> Self:
        """Writes zeros below `diagonal` of each matrix."""
    def true_divide(self, other: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """This tensor divided by `other`; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def true_divide_(self, other: _Operand, *, rounding_mode: _str | None = None) -> Self:
        """Divides this tensor by `other` in place; `rounding_mode` is None for true division, 'floor' or 'trunc'."""
    def trunc(self) -> Tensor:
        """The whole part, towards zero."""
    def trunc_(self) -> Self:
        """In-place form of `trunc`."""
    @overload
    def type(
        self, dtype: None = None, non_blocking: _bool = False, *, memory_format: memory_format | None = None
    ) -> _str:
        """The name of the tensor's type; with `dtype` (a dtype or such a name) the tensor converted to it."""
    @overload
    def type(
        self, dtype: _DType | _str, non_blocking: _bool = False, *, memory_format: memory_format | None = None
    ) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor:
        """This tensor with the dtype and device of `other`."""
    def unbind(self, dim: _int = 0) -> _tuple[Tensor, ...]:
        """All slices along `dim`, without that dimension, as a tuple."""
    def unflatten(self, dim: _int, sizes: _Sizes) -> Tensor:
        """One dimension split into several; one size may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """A view of the windows of `size` elements along a dimension, `step` apart, as a new last dimension."""
    def unfreeze_(self) -> Self:
        """Allows writes to this tensor's memory again."""
    def uniform_(self, from_: _float = 0.0, /, to: _float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills this tensor with numbers of the uniform distribution on [from, to)."""
    @overload
    def unique(
        self,
        sorted: _bool = True,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: _int | None = None,
    ) -> Tensor:
        """The unique elements, or slices along `dim`, in ascending order. The result has no derivative.

        Args:
            sorted: Has no effect; the result is always sorted.
            return_inverse: Whether to return also the index of each input element in the result.
            return_counts: Whether to return also the number of times each element occurs.
            dim: The dimension; by default the tensor is flattened.
        """
    @overload
    def unique(
        self,
        sorted: _bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[False] = False,
        dim: _int | None = None,
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self,
        sorted: _bool,
        return_inverse: Literal[True],
        return_counts: Literal[False] = False,
        dim: _int | None = None,
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self,
        sorted: _bool = True,
        return_inverse: Literal[False] = False,
        *,
        return_counts: Literal[True],
        dim: _int | None = None,
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self, sorted: _bool, return_inverse: Literal[False], return_counts: Literal[True], dim: _int | None = None
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self,
        sorted: _bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[True],
        dim: _int | None = None,
    ) -> _tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique(
        self, sorted: _bool, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
    ) -> _tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique(
        self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Tensor | _tuple[Tensor, ...]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None
    ) -> Tensor:
        """The elements, or slices along `dim`, that differ from the previous one. The other arguments are as in
        `unique`.
        """
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False], return_counts: Literal[True], dim: _int | None = None
    ) -> _tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
    ) -> _tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Tensor | _tuple[Tensor, ...]: ...
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """As `chunk`, but the parts are no views: writing to one in place leaves the history of the others as it is."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """As `split` with one size, but the parts are no views: writing to one in place leaves the history of the
        others as it is.
        """
    def unsafe_split_with_sizes(self, split_sizes: _Sizes, dim: _int = 0) -> _tuple[Tensor, ...]:
        """As `split_with_sizes`, but the parts are no views: writing to one in place leaves the history of the
        others as it is.
        """
    def unsqueeze(self, dim: _int) -> Tensor:
        """A new dimension of size 1 at `dim`."""
    def unsqueeze_(self, dim: _int) -> Self:
        """Adds a dimension of size 1 to this tensor in place."""
    def untyped_storage(self) -> _UntypedStorage:
        """The memory of the tensor, which all its views share, as a storage of bytes."""
    def var(
        self,
        dim: _Dims | _bool | None = None,
        unbiased: _bool = True,
        keepdim: _bool = False,
        *,
        correction: _Number | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """The variance over `dim`, or of all elements, with divisor `n - correction`. `unbiased=False` is a
        correction of 0, the default is 1.
        """
    def vdot(self, other: Tensor) -> Tensor:
        """The dot product of two vectors, the first of which is conjugated if it is complex."""
    @overload
    def view(self, *shape: _int | _Sizes) -> Tensor:
        """A view of the same elements in another shape, of which one size may be -1.

        With a dtype: the same bytes as elements of that dtype, without a history. If these have another size, the
        last dimension gets longer or
        shorter.

        Raises:
            RuntimeError: The shape has another number of elements, or the strides do not allow a view. With a dtype
            of another size: the tensor
                has no dimension, the stride of the last one is not 1, or sizes, strides and offset are no multiples
                of the ratio.
        """
    @overload
    def view(self, *, size: _Sizes) -> Tensor: ...
    @overload
    def view(self, dtype: _DType) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """This tensor as a view in the shape of `other`."""
    @property
    def volatile(self) -> _bool:
        """Old form of :class:`rgrad.no_grad`: always False, with a warning."""
    @volatile.setter
    def volatile(self, value: _bool) -> None: ...
    def vsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor, *more: _int) -> _tuple[Tensor, ...]:
        """Splits along dimension 0: into a number of equal parts, or at a list of positions. Positions may be given
        one by one.
        """
    def wgpu(self, device: _Device | None = None, non_blocking: _bool = False) -> Tensor:
        """This tensor on the wgpu device; itself if it is there.

        Args:
            device: None, or a name of the wgpu device.
            non_blocking: Has no effect; uploads never block.

        Raises:
            RuntimeError: `device` is another device.
        """
    def where(self, condition: Tensor, other: _Operand) -> Tensor:
        """The elements of this tensor where `condition` is true, and of `other` elsewhere."""
    def xlogy(self, other: _Operand) -> Tensor:
        """`a * log(b)`, and 0 where `a` is 0 and `b` is not nan."""
    def xlogy_(self, other: _Operand) -> Self:
        """In-place form of `xlogy`."""
    def xpu(
        self, device: _Device | None = None, non_blocking: _bool = False, memory_format: memory_format = ...
    ) -> Tensor:
        """Refuse: there are no XPU devices. ``tensor.to("wgpu")`` moves to a GPU of any vendor."""
    def zero_(self) -> Self:
        """Overwrites every element with 0."""

@final
class UntypedStorage:
    """The memory of a tensor, which views share."""
    def __len__(self) -> _int: ...
    def __repr__(self) -> _str: ...
    def data_ptr(self) -> _int:
        """The address of the first byte. For memory of a device, a number that no other memory has, to compare; 0
        for meta.
        """
    def nbytes(self) -> _int:
        """The size in bytes."""
    def size(self) -> _int:
        """The size in bytes, which are the elements of an untyped storage."""

@final
class _FunctionClass:
    """A Function's class, as calls see it."""
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...

@disjoint_base
class _FunctionCtx(Node):
    """The context that `forward` and `backward` share; also the node of the Function in the graph."""
    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self: ...
    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs `forward` has written in place; each must be returned."""
    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs have no gradient."""
    @property
    def materialize_grads(self) -> _bool: ...
    @property
    def needs_input_grad(self) -> _tuple[_bool, ...]:
        """For each argument of `forward`, whether its gradient is wanted."""
    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves tensors (or None) for `backward`, which finds them in `saved_tensors`. They are checked for writes
        in between.
        """
    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Saves tensors (or None) for `jvp`, which finds them in `saved_tensors`."""
    @property
    def saved_tensors(self) -> _tuple[Tensor | Any, ...]:
        """What was saved. Raises RuntimeError after the graph was freed, or if a saved tensor was written since."""
    @property
    def saved_variables(self) -> _tuple[Tensor | Any, ...]:
        """The same values under an older name."""
    def set_materialize_grads(self, value: _bool) -> None:
        """Whether missing gradients come to `backward` as zeros (the default) or as None."""
    @property
    def to_save(self) -> _tuple[Tensor | None, ...] | None: ...

@final
class _GraphNodes:
    """The operations behind some nodes, each after those that it takes results from. A sequence of nodes, whose objects
    are made when they are asked for.
    """
    def __getitem__(self, key: Any, /) -> Any: ...
    def __len__(self) -> _int: ...
    @property
    def cut(self) -> Any:
        """For each whether an operand has no gradient."""
    @property
    def inputs(self) -> Any:
        """For each the operations that it takes."""
    @property
    def leaf_inputs(self) -> Any:
        """For each the leaves that it takes."""
    @property
    def leaves(self) -> Any:
        """The nodes of the leaves."""
    @property
    def names(self) -> Any:
        """The nodes' names."""
    @property
    def numbers(self) -> Any:
        """Their numbers in the order of recording."""
    @property
    def outputs(self) -> Any:
        """For each root its position, or `~position` of its leaf."""
    def saved(self, start: _int, end: _Operand) -> Any:
        """What these nodes have saved, as pairs of a storage's number and bytes; and those of them whose object has
        to be asked.
        """
    @property
    def sites(self) -> Any:
        """Where they were recorded, as "file:line in function"; None where that is unknown."""

class _ModuleCall:
    """The base class of modules: their calls."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class _PassesWanted:
    """While one of these lives, backward passes can tell what they are going to run: for instance how many of these
    tensors' gradients.
    """
    def __new__(cls, *tensors: Tensor | Sequence[Tensor]) -> Self: ...
    def count(self) -> Any:
        """How many of the tensors' gradients the pass computes that this thread is inside of."""

@final
class _UpdateFormula:
    """A short program of pointwise operations that overwrites some of its inputs, for lists of tensors.

    `rows` are tuples (name, operands, parameters). An operand below `arity` is an input, one from there on the result
    of a row, and a negative
    one, -1 - k, number k; parameters are numbers. `writes` are pairs (input, row): the row's result overwrites the
    input.
    """
    def __new__(cls, arity: Any, rows: Any, writes: Any) -> Self: ...
    def apply(self, lists: Any, numbers: Any) -> Any:
        """Applies the formula to the first tensors of all lists, the second, and so on. Gives the places that it has
        left as they were, because
        their tensors need the operations one by one.
        """

@final
class device:
    """Where a tensor's memory is: `cpu`, `wgpu` or `meta`. Other names of PyTorch make devices that can only be
    compared.
    """
    def __enter__(self) -> None: ...
    def __eq__(self, value: object, /) -> _bool: ...
    def __exit__(self, *_error: Any) -> None: ...
    def __ge__(self, value: Any, /) -> _bool: ...
    def __gt__(self, value: Any, /) -> _bool: ...
    def __hash__(self) -> _int: ...
    def __le__(self, value: Any, /) -> _bool: ...
    def __lt__(self, value: Any, /) -> _bool: ...
    def __ne__(self, value: object, /) -> _bool: ...
    def __new__(cls, type: _str | _int | device, index: _int | None = None) -> Self: ...
    def __repr__(self) -> _str: ...
    @property
    def index(self) -> _int | None:
        """The number of the device among those of its kind, or None."""
    @property
    def type(self) -> _str:
        """The kind of device, without the index."""

@final
class dtype:
    """The type of a tensor's elements."""
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, _memo: Any) -> Any: ...
    def __eq__(self, value: object, /) -> _bool: ...
    def __ge__(self, value: Any, /) -> _bool: ...
    def __gt__(self, value: Any, /) -> _bool: ...
    def __hash__(self) -> _int: ...
    def __le__(self, value: Any, /) -> _bool: ...
    def __lt__(self, value: Any, /) -> _bool: ...
    def __ne__(self, value: object, /) -> _bool: ...
    def __repr__(self) -> _str: ...
    @property
    def is_complex(self) -> _bool:
        """Whether the elements are complex numbers."""
    @property
    def is_floating_point(self) -> _bool:
        """Whether the elements are floating point numbers."""
    @property
    def is_signed(self) -> _bool:
        """Whether the elements can be negative."""
    @property
    def itemsize(self) -> _int:
        """The bytes of one element."""
    def to_complex(self) -> _DType:
        """The dtype of complex numbers whose parts hold numbers of this one; of a complex dtype itself.

        Raises:
            RuntimeError: The dtype is one of integers, or bool.
        """
    def to_real(self) -> _DType:
        """The dtype of real and imaginary parts; of a dtype without an imaginary part itself."""

@final
class memory_format:
    """The order of an image's dimensions in memory: `contiguous_format` (row-major), `channels_last`,
    `channels_last_3d`, or `preserve_format`.
    """
    def __repr__(self) -> _str: ...

_Number: TypeAlias = _bool | _int | _float
_Operand: TypeAlias = Tensor | _Number | _complex
_Sizes: TypeAlias = Sequence[_int]
_Dims: TypeAlias = _int | Sequence[_int]
_DType: TypeAlias = dtype
_DeviceObject: TypeAlias = device
_Device: TypeAlias = device | _str | _int
_Index: TypeAlias = Any

_REGISTERED: _int
__version__: _str

def _after_fork(child: _bool) -> None: ...
def _airy_ai_prime(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of Airy's function Ai."""

def _ask_below(number: _int) -> _int:
    """Makes the mutation guard check in-place writes only for levels below `number`, and returns the previous
    number.
    """

def _ask_torch_function(func: Any, relevant_args: Any, args: Any, kwargs: Any) -> Any:
    """Calls the overrides of modes and of the elements of ``relevant_args``, in PyTorch's order."""

def _autocast_widened(*args: Any) -> _tuple[Any, ...]:
    """The arguments, with tensors as an operation takes them that autocast runs in float32."""

def _autocasts() -> _bool:
    """Whether a context is open on this thread, for any device."""

_autograd: Any

def _before_fork() -> None: ...
def _binomial(count: Any, prob: Any, generator: Generator | None = None) -> Tensor:
    """Random numbers of successes among `count` trials, each with the probability `prob`. They have no history."""

def _call_site() -> _int:
    """The call site of the caller, as errors name it."""

def _check_recorded_write(t: Any) -> None:
    """Refuses a recorded write to a tensor whose history forbids it."""

def _cholesky_inverse(input: Tensor, upper: Any = False) -> Tensor:
    """Inverses from Cholesky factors."""

def _cholesky_solve(input: Tensor, input2: Any, upper: Any = False) -> Tensor:
    """Solutions from Cholesky factors."""

def _convolution_input(
    size: _Sizes,
    weight: Tensor,
    grad_output: Any,
    stride: _int | _Sizes,
    padding: Any,
    dilation: _int | _Sizes,
    groups: _int,
) -> Tensor:
    """The gradient of a convolution with respect to its input, of the shape `size`."""

def _convolution_weight(
    input: Tensor,
    size: _Sizes,
    grad_output: Any,
    stride: _int | _Sizes,
    padding: Any,
    dilation: _int | _Sizes,
    groups: _int,
) -> Tensor:
    """The gradient of a convolution with respect to its weight, of the shape `size`."""

def _crc32(data: Any, value: _Number = 0, /) -> _int:
    """The CRC-32 of zip archives of some bytes, like `zlib.crc32`, by vector instructions where there are some."""

def _current_graph_task_id() -> _int:
    """The id of the graph task that this thread runs, or -1."""

_declared_functions: dict[_str, Any]

def _define_module(module: Any) -> None:
    """Tells the class `Module`, once it is defined."""

def _describe_call_site() -> _str | None:
    """The file, line and function of the operation that is being called now, or None."""

def _dirichlet_grad(input: Tensor, alpha: Tensor, total: Tensor, *, out: Tensor | None = None) -> Tensor:
    """How a component `input` of a sample of Dirichlet's distribution moves with its parameter `alpha` at a constant
    probability, over one minus itself; `total` is the sum of all parameters.
    """

def _disabled_torch_function_impl(func: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of classes that override nothing: calls ``func``."""

def _enter_dual() -> _int:
    """Opens a level of dual numbers, and returns the number of open ones."""

def _enter_level(kind: Any, size: _int | None = None, randomness: Any = "error") -> _int:
    """Enters a transform level: of a derivative (kind "track"), or of a batch of `size` elements (kind "batch").
    Returns its number.
    """

def _enter_module(number: _int) -> _int:
    """Makes the module of this number the one whose forward runs on this thread (0: none). Returns the number
    before.
    """

def _exit_dual(_number: _int) -> None:
    """Closes the innermost level of dual numbers and removes its tangents."""

def _exit_level(number: _int) -> None:
    """Leaves a transform level, and all open levels inside it."""

def _expect_unused_totals(on: Any) -> None:
    """From now on, or no longer, one caller more drops totals that no backward pass has used, on purpose."""

def _fail_allocation_in(n: _int, panic: Any = False) -> None:
    """Makes the n-th allocation from now on fail (0 is the next one), or panic. A negative number switches this off.
    For tests.
    """

def _fft_c2c(input: Tensor, dim: _Dims, normalization: _int, forward: _bool) -> Tensor:
    """The discrete Fourier transform of a complex tensor along ``dim``, as PyTorch's function of this name:
    ``normalization`` is 0 (none), 1 (by the root of the number of points) or 2 (by their number);
    ``forward`` gives exponents a negative sign.
    """

def _fft_c2r(input: Tensor, dim: _Dims, normalization: _int, last_dim_size: _int) -> Tensor:
    """The inverse transform of half a spectrum, with ``last_dim_size`` elements along the last of the
    dimensions.
    """

def _fft_r2c(input: Tensor, dim: _Dims, normalization: _int, onesided: _bool) -> Tensor:
    """The discrete Fourier transform of a real tensor along ``dim``; of the last one the first ``n // 2 + 1``
    frequencies if ``onesided``.
    """

def _frexp_exponent(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponent of that power, as a float."""

def _frexp_mantissa(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The float of magnitude from 0.5 to 1 that, times a power of 2, is the input."""

def _from_dlpack(capsule: Any) -> Tensor:
    """The tensor in a DLPack capsule, which can be taken once. It shares the memory with the library that made the
    capsule.

    Raises:
        RuntimeError: The capsule has been taken already, or its device, dtype or strides are none of rgrad's.
    """

def _from_old_form(
    name: Any, is_method: Any, args: Any, kwargs: Any
) -> _tuple[_tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call in an old form as the function takes them today, after PyTorch's warning about the
    caller's caller's line.

    Args:
        name: The name of a function or method.
        is_method: Whether the first argument is the tensor of a method.
        args: The arguments by position.
        kwargs: The arguments by name.

    Returns:
        The arguments by position and by name; None if the call is in no old form.
    """

def _function_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`cls.apply(*args)`: at the level of plain tensors, unless tangents have to come along."""

def _function_apply_here(cls: Any, args: Any, forward: Any = None) -> _tuple[Any, Any]:
    """One call at the level of its arguments, with `forward` in the place of the class's own if it is given: the
    outputs, and the context.
    """

def _fusion_counts() -> _tuple[_int, _int, _int]:
    """The programs run, the steps in them, and the bytes that were never written, since the process started."""

def _fusion_enabled() -> _bool:
    """Whether operations may be deferred."""

def _gamma_density(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """`exp(-x) * x ** (a - 1) / gamma(a)`, the density of the gamma distribution."""

def _geqrf(input: Tensor) -> _return_types.geqrf:
    """The reflections of a QR factorisation, and their factors."""

def _get_cpu_capability() -> _str:
    """PyTorch's name of the instruction set that kernels use."""

def _gradient_edge(tensor: Tensor) -> _tuple[Node, _int]:
    """The edge along which a gradient of the tensor goes: `(node, output number)`."""

def _graph_memory(
    nodes: Any,
) -> _tuple[
    list[_tuple[_int, _str, _int, _bool, list[_tuple[_str, _int]], list[_int], list[Any], Any]],
    list[_tuple[_int, _str, _int | None, _int, _int, _bool, _bool]],
]:
    """The nodes behind some nodes, those first, and the memory that they hold.

    Returns:
        For each node (sequence number, name, call site's number, whether a pass has run and freed it, [(kind,
        index of a storage)], [index of a
        node], objects that hooks have packed, the context of a custom Function or None); and for each storage
        (number, device, key or None,
        allocator's bytes, size, whether something outside of the graph holds it, whether it is a result that is
        not computed yet).
    """

def _graph_nodes(nodes: Any, most: Any) -> _GraphNodes | None:
    """The operations behind some nodes in the order of recording; None if there are more than ``most``."""

def _has_old_form(name: Any) -> _bool:
    """Whether a function has forms that are deprecated."""

def _has_torch_function(relevant_args: Any) -> _bool:
    """Whether an element of ``relevant_args`` has an override, or a mode is active."""

def _has_torch_function_variadic(*args: Any) -> _bool:
    """Whether one of the arguments has an override, or a mode is active."""

def _heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, 1 above, and an element of `values` at 0."""

def _hide_tangents(level: _int, below: _bool = False) -> _int:
    """Hides the tangents of tensors of `level`, or with `below` those of all lower levels. Returns what
    `_unhide_tangents` takes to undo it.
    """

def _increment_version(tensor_or_list: Any) -> None:
    """Adds one to the version counters of one or several tensors, as an in-place write does."""

def _is_checkpoint_valid() -> _bool:
    """Whether no pass that this thread is inside of is after certain inputs only."""

def _is_multithreading_enabled() -> _bool:
    """Whether graph tasks of this thread may use other threads."""

def _is_torch_function_enabled() -> _bool:
    """Whether overrides of subclasses are called on this thread."""

def _leaf_hooks(tensor: Tensor) -> list[Any]:
    """The hooks that `register_hook` has added to a leaf."""

def _level_of(t: Any) -> _int:
    """The transform level of a tensor; 0 for a plain tensor."""

def _linalg_cholesky(A: Any, upper: Any = False) -> Tensor:
    """Cholesky factors; an error where there are none."""

def _linalg_cholesky_ex(A: Any, upper: Any = False, check_errors: Any = False) -> _return_types.linalg_cholesky_ex:
    """Cholesky factors, and the orders of the first leading minors that are not positive."""

def _linalg_det(A: Any) -> Tensor:
    """Determinants."""

def _linalg_eig(A: Any) -> _return_types.linalg_eig:
    """Eigenvalues and eigenvectors of general matrices."""

def _linalg_eigh(A: Any, UPLO: Any = "L") -> _return_types.linalg_eigh:
    """Eigenvalues and eigenvectors of symmetric matrices."""

def _linalg_eigvals(A: Any) -> Tensor:
    """Eigenvalues of general matrices."""

def _linalg_eigvalsh(A: Any, UPLO: Any = "L") -> Tensor:
    """Eigenvalues of symmetric matrices."""

def _linalg_floats(name: Any, A: Any) -> Tensor:
    """As `_linalg_matrices`, of any shape."""

def _linalg_householder_product(A: Any, tau: Any) -> Tensor:
    """The first columns of a product of reflections."""

def _linalg_inv(A: Any) -> Tensor:
    """Inverses; an error where there are none."""

def _linalg_inv_ex(A: Any, check_errors: Any = False) -> _return_types.linalg_inv_ex:
    """Inverses, and the first pivots that are 0."""

def _linalg_ldl_factor(A: Any, hermitian: Any = False) -> _return_types.linalg_ldl_factor:
    """Factors of symmetric or Hermitian matrices, and pivots; an error where a block is 0."""

def _linalg_ldl_factor_ex(
    A: Any, hermitian: Any = False, check_errors: Any = False
) -> _return_types.linalg_ldl_factor_ex:
    """Factors of symmetric or Hermitian matrices, pivots, and the first blocks that are 0."""

def _linalg_ldl_solve(LD: Any, pivots: Any, B: Any, hermitian: Any = False) -> Tensor:
    """Solutions from factors of symmetric or Hermitian matrices."""

def _linalg_lu(A: Any, pivot: Any = True) -> _return_types.linalg_lu:
    """Permutations and both factors."""

def _linalg_lu_factor(A: Any, pivot: Any = True) -> _return_types.linalg_lu_factor:
    """LU factors and pivots; an error where a pivot is 0."""

def _linalg_lu_factor_ex(A: Any, pivot: Any = True, check_errors: Any = False) -> _return_types.linalg_lu_factor_ex:
    """LU factors, pivots, and the first pivots that are 0."""

def _linalg_lu_solve(LU: Any, pivots: Any, B: Any, left: Any = True, adjoint: Any = False) -> Tensor:
    """Solutions from LU factors."""

def _linalg_matrices(name: Any, A: Any, which: Any = "A", square: Any = False) -> Tensor:
    """The tensor, in float32 if autocast is on; an error unless it is a batch of matrices of floats or complex
    numbers of 32 or 64 bits a part.
    """

def _linalg_matrix_exp(A: Any) -> Tensor:
    """Exponentials of square matrices."""

def _linalg_pinv(A: Any, limits: Any, hermitian: Any) -> Tensor:
    """Pseudo-inverses, with a limit for each matrix up to which singular values count as 0."""

def _linalg_qr(A: Any, mode: Any = "reduced") -> _return_types.linalg_qr:
    """QR factors."""

def _linalg_slogdet(A: Any) -> _return_types.linalg_slogdet:
    """Signs of determinants and logarithms of their magnitudes."""

def _linalg_solve(A: Any, B: Any, left: Any = True) -> Tensor:
    """Solutions; an error where there are none."""

def _linalg_solve_ex(A: Any, B: Any, left: Any = True, check_errors: Any = False) -> _return_types.linalg_solve_ex:
    """Solutions, and the first pivots that are 0."""

def _linalg_solve_triangular(A: Any, B: Any, upper: Any, left: Any = True, unitriangular: Any = False) -> Tensor:
    """Solutions of triangular systems."""

def _linalg_svd(A: Any, full_matrices: Any = True) -> _return_types.linalg_svd:
    """Singular values and vectors."""

def _linalg_svdvals(A: Any, name: Any = "linalg.svdvals") -> Tensor:
    """Singular values."""

def _live_memory() -> list[_tuple[_str, _int, _int, _int, _int]]:
    """Every buffer of at least `_REGISTERED` bytes that is alive, and smaller ones that a recording has seen."""

def _lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: Any = True, unpack_pivots: Any = True
) -> _return_types.lu_unpack:
    """Permutations and both factors from those in one matrix."""

def _make_dual(t: Any, tangent: Any) -> Tensor:
    """A view of `t` with a tangent."""

def _make_saved_tensor(tensor: Tensor) -> SavedTensor:
    """A tensor saved as an operation would save it: packed by the hooks in force, checked for writes in between."""

def _memory_idle() -> _int:
    """The bytes of CPU memory that are cached for reuse."""

def _memory_recording() -> (
    _tuple[list[_tuple[_str, _int, _int, _int, _int]], list[_tuple[_int, _str, _int, _int, _int, _bool]], _int] | None
):
    """What was alive when the recording began, its events, and how many of the oldest events are left out; None if
    none runs.
    """

def _module_number(name: Any) -> _int:
    """A number for the name of a module."""

def _neg_view(input: Tensor) -> Tensor:
    """The negative: a view of the same memory, whose elements are negated when they are read."""

def _nextafter(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The next float from `input` towards `other`, of float32 and float64."""

def _node_state(node: Any) -> _tuple[_int, _bool]:
    """The number of the call site that recorded a node, and whether a pass has run the node and freed its graph."""

def _ormqr(input: Tensor, tau: Any, other: _Operand, left: Any = True, transpose: Any = False) -> Tensor:
    """Products of reflections with matrices."""

def _panic(what: Any) -> None:
    """Panics. For tests."""

def _path_cuts(
    tensor: Tensor, wrt: Tensor
) -> _tuple[_bool, _tuple[_str, _str, _int, _str] | None, list[_tuple[_str, _str, _int, _str]]]:
    """Where the paths from a tensor to another one end.

    Returns:
        Whether a path is whole; if not, the cut through which the other tensor would be reached, or None; other
        cuts through which it would be.
        A cut is (reason, operation, call site's number, text). If the other tensor needs no gradient, the last
        are what it was made by.
    """

def _poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Random numbers of Poisson's distribution, whose rate each element of `input` is. The gradient is 0."""

def _polygamma_of(input: Tensor | _int, self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `digamma` of the order `n`, which has no derivative."""

def _pop_operation_watcher() -> None:
    """Takes the innermost watcher of operations away."""

def _pop_saved_tensors_hooks() -> None:
    """Takes the innermost pair of hooks away."""

def _pop_torch_function_mode() -> Any:
    """Removes the innermost mode of this thread and returns it."""

def _primal(t: Any, level: _int | None = None) -> Tensor:
    """The same value and history without the tangent. With `level`, only a tangent that is visible at that level is
    removed.
    """

def _profiler_clock() -> _tuple[_int, _int]:
    """The recorder's clock in nanoseconds, and the nanoseconds from 1970 to its zero."""

def _profiler_device_runs(first: Any) -> list[_tuple[_int | None, _str, _int, _int, _bool]]:
    """Waits for what devices have been asked for, and returns what they ran for this thread's events from number
    ``first`` on: the event (or None), a name,
    start and end in nanoseconds, and whether these are times of the host. A second call does not return it again.
    """

def _profiler_events(first: Any) -> _tuple[list[_tuple[Any, ...]], _int]:
    """This thread's events from number ``first`` on, and the time. An event is a tuple: kind, name, start and end in
    nanoseconds (0 while it is open),
    thread, the number of the event around it (or None), sequence number (or -1), site, inputs (shapes and dtypes,
    or None), shapes of the outputs (or None), floating point
    operations (0 where the shapes tell them), bytes held (CPU and
    devices, at the start and at the end), steps of a program (names and sites, or None), names of kernels.
    """

def _profiler_is_on() -> _bool:
    """Whether this thread records."""

def _profiler_range(name: Any) -> Any:
    """Begins a named range on this thread; None if it does not record."""

def _profiler_stack(site: Any) -> _tuple[_str, ...]:
    """The frames that lead to a site, innermost first, each as "file(line): function"."""

def _profiler_start(options: Any) -> _tuple[_int, _int]:
    """Begins to record on this thread. ``options`` is a sum: 1 shapes, 2 memory, 4 stacks, 8 times of devices.
    Returns the number of events so far, and the time.
    """

def _profiler_stop() -> None:
    """Ends what one `_profiler_start` of this thread began."""

def _push_operation_watcher(f: Any) -> None:
    """Adds a function that sees every operation of this thread: `f(name, node_name, kind, inputs, outputs)`. Before
    an operation that makes new
    values `outputs` is None, and a list of tensors that it returns is taken for the results; after any operation
    they are a list.
    """

def _push_saved_tensors_hooks(pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
    """Adds a pair of hooks for what this thread saves from now on."""

def _push_torch_function_mode(mode: Any) -> None:
    """Makes ``mode`` the innermost one of this thread."""

def _queue_callback(callback: Callable[..., Any]) -> None:
    """Registers `callback()`, which is called when the graph task that this thread runs has ended."""

def _refuse_saved_tensors_hooks(message: Any) -> _str | None:
    """Refuses further hooks with this message, or with None allows them; gives the message that was in force before."""

def _require_grad(t: Any, on: _bool = True) -> Tensor:
    """As `Tensor.requires_grad_`, which is an error inside transforms."""

def _run_backward(
    tensors: _TensorsOrEdges,
    grad_tensors: Any,
    retain_graph: _bool,
    create_graph: _bool,
    inputs: _TensorsOrEdges | dict[Any, _V] | None = None,
    allow_unreachable: _bool = False,
    accumulate_grad: _bool = False,
    materialize: _bool = False,
    strict: _bool = False,
) -> _tuple[Tensor | None, ...]:
    """The engine behind `autograd.backward` and `autograd.grad`; see there."""

def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Random points of Dirichlet's distribution, whose parameters lie along the last dimension of `input`."""

def _search_rows(input: Tensor, values: Tensor, right: _bool) -> Tensor:
    """For each of `values` how many elements of the same row of `input`, which is sorted, come before it: less ones,
    and equal ones, too, if `right`. The dtypes are the same, and the dimensions before the last.
    """

def _set_before_write(f: Any) -> None:
    """Sets the function that sees every tensor before this thread writes it in place; None takes it away."""

def _set_fast_path(on: _bool) -> _bool:
    """Switches the fast path of operations on few elements on or off for this thread, and returns the previous
    setting. For tests.
    """

def _set_fusion(enabled: _bool) -> _bool:
    """Switches deferred programs on or off in the whole process, and returns the previous setting."""

def _set_fusion_least(elements: _int) -> _int:
    """Sets the least number of elements of a deferred operation, and returns the previous setting. For tests."""

def _set_grad_enabled(on: _bool) -> None:
    """Switches the recording of operations on this thread on or off."""

def _set_inference_mode(on: _bool) -> None:
    """Switches inference mode on or off for this thread."""

def _set_multithreading_enabled(on: _bool) -> None:
    """Sets whether graph tasks of this thread may use other threads."""

def _set_printoptions(precision: Any, threshold: _int | None, edgeitems: Any, linewidth: Any, sci_mode: Any) -> None:
    """Sets the options of `repr`; None leaves an option unchanged, except for `sci_mode`."""

def _set_tangent(t: Any, tangent: Any) -> None:
    """Sets the tangent of a tensor."""

def _set_tangents_enabled(on: _bool) -> _bool:
    """Sets whether operations compute tangents, and returns the previous setting."""

def _set_torch_function_enabled(on: _bool) -> _bool:
    """Sets whether overrides of subclasses are called on this thread, and returns the previous setting."""

def _sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`sin(pi * x) / (pi * x)`, and 1 at 0, of real numbers."""

def _site_bench(n: _int) -> _float:
    """The mean seconds per record of the current call site, over `n` records from this frame."""

def _site_module(site: _int) -> _str | None:
    """The module whose forward made the call of a site, if that was recorded."""

def _site_place(site: _int) -> _tuple[_str, _int, _str] | None:
    """File, line and function of a call site, if they are known."""

def _skip_torch_function_once(on: _bool) -> None:
    """Makes the next `_has_torch_function` return False."""

def _spherical_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind of order 1."""

def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Random numbers of the gamma distribution with scale 1, whose order each element of `input` is. The gradient
    follows a number at a constant
    probability.
    """

def _standard_gamma_grad(input: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
    """How a sample `output` of the gamma distribution moves with its parameter `input` at a constant probability."""

def _start_memory_recording(most: _int, modules: _bool) -> None:
    """Begins to record allocations and frees, the latest `most` of them.

    Raises:
        RuntimeError: A recording runs.
    """

def _stop_memory_recording() -> None:
    """Ends the recording, if one runs."""

def _support_table(devices: Any) -> list[_tuple[_str, _bool, _str, _str, _str]]:
    """What each backend supports: a row for each request, dtype and device."""

def _swap_tensor_impl(a: Tensor, b: Tensor) -> None:
    """Exchanges the tensors of two objects, which keep their classes and attributes. Waits for operations of other
    threads.
    """

def _take_slow_rules() -> _tuple[list[_str], list[_str]]:
    """The names of the operations whose tangents were computed by transposing their vjp, and of those that ran in a
    loop over a batch, since the
    last call on this thread.
    """

def _tangent(t: Any, level: _int | None = None) -> Tensor | None:
    """The tangent, or None. With `level`, only a tangent that is visible at that level."""

def _tangents_enabled() -> _bool:
    """Whether operations of the innermost transform compute tangents; outside transforms, whether those of plain
    tensors do.
    """

def _tensor_memory(tensor: Tensor) -> _tuple[_int, _str, _int | None, _int, _int]:
    """The memory below a tensor: the storage's number, device, the allocator's key and bytes (None and 0: it counts
    nothing), and the storage's size.
    """

def _top_level() -> _int:
    """The number of open transform levels of this thread."""

def _torch_function_modes() -> list[Any]:
    """The active modes of this thread, outermost first."""

def _tracked_graph_task_id() -> _int:
    """The id of the graph task that this thread runs, if the task lists the nodes that it is going to run; else -1."""

def _unfold_backward(input: Tensor, input_sizes: _Dims, dim: _int, size: _int, step: _int) -> Tensor:
    """The adjoint of ``unfold``: a tensor of ``input_sizes`` to whose elements those of all windows that have
    them are added.
    """

def _unhide_tangents(before: _int) -> None:
    """Undoes `_hide_tangents`."""

def _unrelated(t: Any) -> Tensor:
    """The tensor, a view of a result that nobody else has, as no view of it."""

def _unused_total(node: Any) -> None:
    """Reports a node that will not be used any more if it is the last one of a total that no backward pass has used."""

def _unwrap(t: Any, number: _int) -> _tuple[Tensor, _bool]:
    """The tensor that a tensor of a level wraps, with the batch dimension first, and True; the tensor itself and
    False if it is of another level.
    """

def _watch_modules(on: _bool) -> None:
    """Whether calls of all modules are watched by hooks."""

def _wgpu_check_process() -> None:
    """Raises RuntimeError in a child of a process that has used a device."""

def _wgpu_counts() -> _tuple[_int, _int, _int, _int]:
    """The command buffers submitted, shaders compiled and dispatches on the current device so far, and the compiled
    shaders in the cache.
    """

def _wgpu_description() -> dict[_str, Any]:
    """The C interface for which the core was compiled.

    Returns:
        {"structs": {name: (size, [(field, offset, type)])}, "constants": {name: value}, "functions": {name:
        signature},
        "version": major version of wgpu-native}.
    """

def _wgpu_empty_cache() -> None:
    """Frees the cached memory of the device."""

def _wgpu_fail_in(n: _int) -> None:
    """Makes the n-th request for device memory from now on fail (0 is the next one). A negative number switches this
    off. For tests.
    """

def _wgpu_install(
    owner: Any, addresses: Any, device: _Device, queue: Any, limits: Any, features: Any, name: Any, opengl: Any
) -> None:
    """Makes a device the current one.

    Args:
        owner: The wgpu-py device, which is kept alive.
        addresses: The address of each described function in the loaded library. The caller has compared the
        library's layouts with the
            description.
        device: The address of the library's device.
        queue: The address of the library's queue.
        limits: The limits that the device reports, by wgpu-py's names.
        features: The features that the device reports, by wgpu-py's names.
        name: The name of the adapter.
        opengl: Whether the library drives it by OpenGL.

    Raises:
        RuntimeError: The library lacks a function, or the device reports no value for a limit.
        ValueError: The device has been released.
    """

def _wgpu_installed() -> _bool:
    """Whether a device is installed."""

def _wgpu_keep_pipelines(many: _int | None = None) -> None:
    """Sets after how many new shaders unused ones leave the cache; None restores the default. For tests."""

def _wgpu_memory() -> _tuple[_int, _int, _int]:
    """The bytes that tensors hold, the largest number so far, and the cached bytes; zeros if no device is installed."""

def _wgpu_reset_peak() -> None:
    """Resets the largest number of bytes to the bytes held now."""

def _wgpu_synchronize() -> None:
    """Submits all recorded commands and waits until the device has run them."""

def _wrap(t: Any, number: _int, dim: _int | None = None) -> Tensor:
    """Wraps `t` in a tensor of an open level. For a level of a batch, `dim` is the batch dimension."""

def _write_tangent(t: Any, tangent: Any) -> None:
    """Gives a tensor without a tangent one as a write in place would: its base has it too."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose cosine is the input."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic cosine."""

def adaptive_avg_pool1d(input: Tensor, output_size: _Dims) -> Tensor:
    """The means of windows that divide the last dimension into so many parts."""

def adaptive_avg_pool2d(input: Tensor, output_size: _Dims) -> Tensor:
    """The means of windows that divide the last two dimensions."""

def adaptive_avg_pool3d(input: Tensor, output_size: _Dims) -> Tensor:
    """The means of windows that divide the last three dimensions."""

def adaptive_max_pool1d(input: Tensor, output_size: _Dims) -> _tuple[Tensor, Tensor]:
    """The largest elements of windows that divide the last dimension into so many parts, and their positions."""

def adaptive_max_pool2d(input: Tensor, output_size: _Dims) -> _tuple[Tensor, Tensor]:
    """The largest elements of windows that divide the last two dimensions, and their positions in the flattened
    plane.
    """

def adaptive_max_pool3d(input: Tensor, output_size: _Dims) -> _tuple[Tensor, Tensor]:
    """The largest elements of windows that divide the last three dimensions, and their positions in the flattened
    volume.
    """

def add(input: _Operand, other: _Operand, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """`input + alpha * other`."""

def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2).sum(0)`, with the input broadcast to the shape of a product."""

def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`x + value * a / b`."""

def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`x + value * a * b`."""

def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`, with the input broadcast to the shape of the product."""

def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`, with the input broadcast to the shape of the product."""

def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`, with the input broadcast to the shape of the product."""

def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, conjugated."""

def all(input: Tensor, dim: _Dims | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether all elements along `dim` (all without) are true."""

def allclose(
    input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> _bool:
    """Whether `isclose` is true for all elements."""

def amax(input: Tensor, dim: _Dims = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest elements over `dim` (all without). Equal ones share the gradient evenly."""

def amin(input: Tensor, dim: _Dims = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The smallest elements over `dim` (all without). Equal ones share the gradient evenly."""

def aminmax(
    input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Tensor | None = None
) -> _return_types.aminmax:
    """The smallest and the largest elements along `dim`, or of all, as (min, max)."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the input in radians: 0 for positive real numbers and zero, pi for negative ones (nan for nan)."""

def any(input: Tensor, dim: _Dims | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether any element along `dim` (all without) is true."""

@overload
def arange(
    end: _Operand,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """The numbers `start`, `start + step`, ... that are less than `end` (greater, for a negative step):
    `arange(end)` or
    `arange(start, end, step)`.
    """

@overload
def arange(
    start: _Operand,
    end: _Operand,
    step: _Operand = 1,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose cosine is the input."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic cosine."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose sine is the input."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic sine."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose tangent is the input."""

def arctan2(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, of the point with the ordinate `a` and the abscissa `b`."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic tangent."""

def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the largest element stands along `dim`, or in the flattened tensor; the first of equals."""

def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the smallest element stands along `dim`, or in the flattened tensor; the first of equals."""

def argsort(
    input: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The positions of elements in sorted order along `dim`; always stable, nan counts as the largest."""

def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, one row for each."""

def as_strided(input: Tensor, size: _Sizes, stride: _Sizes, storage_offset: _int | None = None) -> Tensor:
    """A view of the tensor's storage with the given sizes, and strides and offset in elements.

    Raises:
        RuntimeError: The view reaches beyond the storage.
    """

def as_tensor(data: Any, dtype: _DType | None = None, device: _Device | None = None) -> Tensor:
    """The data as a tensor, without a copy where that is possible.

    Args:
        data: As in `tensor`. Tensors and NumPy arrays of the same dtype and device share their memory with the
        result.
        dtype: The dtype; by default that of `data`.
        device: The device; by default that of `data`.

    Raises:
        RuntimeError: As in `tensor`.
        TypeError: As in `tensor`.
        ValueError: As in `tensor`.
    """

def asarray(
    obj: Any,
    *,
    dtype: _DType | None = None,
    device: _Device | None = None,
    copy: _bool | None = None,
    requires_grad: _bool = False,
) -> Tensor:
    """The data as a tensor, with or without a copy.

    Args:
        obj: As `data` in `tensor`.
        dtype: The dtype; by default that of `obj`.
        device: The device; by default that of `obj`.
        copy: True always copies, False never does; None copies if it is necessary.
        requires_grad: Whether operations on the tensor are recorded.

    Raises:
        ValueError: `copy` is False, but a copy is necessary. Further errors are those of `tensor`.
    """

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose sine is the input."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic sine."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, whose tangent is the input."""

def atan2(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, of the point with the ordinate `a` and the abscissa `b`."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the hyperbolic tangent."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """The tensor with dimensions of size 1 added to this number of dimensions; a tuple for several tensors."""

@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]: ...
@overload
def atleast_1d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> _tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """The tensor with dimensions of size 1 added to this number of dimensions; a tuple for several tensors."""

@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> _tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """The tensor with dimensions of size 1 added to this number of dimensions; a tuple for several tensors."""

@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> _tuple[Tensor, ...]: ...
def autocast_decrement_nesting() -> _int:
    """Notes that a context closes. Returns how many are open."""

def autocast_increment_nesting() -> _int:
    """Notes that a context opens. Returns how many are open."""

def avg_pool1d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
) -> Tensor:
    """The mean of each window of the last dimension."""

def avg_pool2d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor:
    """The mean of each window of the last two dimensions."""

def avg_pool3d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor:
    """The mean of each window of the last three dimensions."""

def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)` for each matrix of a batch, with the input broadcast to the shape
    of the product.
    """

def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _Number,
    cudnn_enabled: _bool,
) -> Tensor:
    """Subtract the mean and divide by the deviation of each channel (Ioffe and Szegedy 2015).

    Args:
        input: A float tensor of shape (N, C, *).
        weight: A factor for each channel, or None.
        bias: A summand for each channel, or None.
        running_mean: The running means, or None. They are written in training.
        running_var: The running variances, or None. They are written in training.
        training: Whether the statistics are those of `input`; else the running ones are used.
        momentum: How much the statistics of `input` count for the running ones.
        eps: Added to the variance.
        cudnn_enabled: Ignored.

    Raises:
        RuntimeError: A tensor does not have an element for each channel, or there are no running statistics
        outside of training.
    """

def bernoulli(
    input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """A tensor of ones and zeros; each element of `input`, or `p`, is the probability of a one."""

bfloat16: dtype

def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _str = "mean"
) -> Tensor:
    """The cross entropy of probabilities and targets between 0 and 1."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: _str = "mean",
) -> Tensor:
    """The cross entropy of `sigmoid(input)` and targets between 0 and 1.

    Args:
        input: The logits.
        target: The targets, of the shape of `input`.
        weight: A weight for each element; it is broadcast.
        pos_weight: A weight for the positive part; it is broadcast.
        reduction: 'none', 'mean' or 'sum'.
    """

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """The number of times that each of 0, 1, 2, ... occurs in a vector of non-negative integers, or the sum of its
    `weights`.
    """

def bitwise_and(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The bits that both inputs have."""

def bitwise_left_shift(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The first input's bits moved up by the second; 0 where that is negative or too much."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input with all its bits changed."""

def bitwise_or(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The bits that one of the inputs has."""

def bitwise_right_shift(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The first input's bits moved down by the second, keeping the sign."""

def bitwise_xor(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The bits that just one of the inputs has."""

def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """A matrix with the given matrices as blocks on its diagonal and zeros elsewhere. A vector is one row, a 0-d
    tensor a 1 x 1 matrix.
    """

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices."""

bool: dtype

def broadcast_shapes(*shapes: _int | _Sizes) -> Size:
    """The shape that several shapes broadcast to."""

def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> _tuple[Tensor, ...]:
    """All tensors expanded to their common broadcast shape, as a tuple."""

def broadcast_to(input: Tensor, size: _Sizes) -> Tensor:
    """A view that is broadcast to the given shape."""

def can_cast(from_: _DType, to: _DType) -> _bool:
    """Whether a result of dtype `from_` may be written to a tensor of dtype `to`: not a float to an integer, for
    example.
    """

def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension `dim`."""

cdouble: dtype

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest whole number not below the input."""

def celu(input: Tensor, alpha: _Number = 1.0, *, out: Tensor | None = None) -> Tensor:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""

cfloat: dtype
chalf: dtype
channels_last: memory_format
channels_last_3d: memory_format

def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """Splits along `dim` into at most `chunks` parts of equal size, of which the last may be smaller."""

def clamp(
    input: Tensor, min: _Operand | None = None, max: _Operand | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Limits every element to `[min, max]`. The bounds are numbers or tensors, and one may be missing.

    Raises:
        RuntimeError: Both bounds are missing.
    """

def clamp_max(input: Tensor, max: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Limits every element to at most `max`."""

def clamp_min(input: Tensor, min: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Limits every element to at least `min`."""

def clear_autocast_cache() -> None:
    """Forgets converted weights."""

def clip(
    input: Tensor, min: _Operand | None = None, max: _Operand | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Limits every element to `[min, max]`. The bounds are numbers or tensors, and one may be missing.

    Raises:
        RuntimeError: Both bounds are missing.
    """

def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy with a history: gradients go to the original."""

def col2im(
    input: Tensor, output_size: _Dims, kernel_size: _Dims, dilation: _Dims, padding: _Dims, stride: _Dims
) -> Tensor:
    """The adjoint of `im2col`: an image that is the sum of its windows."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension 1, with vectors as columns."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers with these real and imaginary parts.

    Args:
        real: The real parts: float16, float32 or float64.
        imag: The imaginary parts, of the same dtype; the shapes broadcast.
        out: The tensor that is written.

    Raises:
        RuntimeError: The parts are of two dtypes, or of another one.
    """

complex128: dtype
complex32: dtype
complex64: dtype

def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension `dim`."""

def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension `dim`."""

def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view of the same memory, whose elements are conjugated when they are read. A real
    tensor is returned as it is.
    """

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate, computed at once. A real tensor is returned as it is."""

contiguous_format: memory_format

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes | _str = 0,
    dilation: _int | _Sizes = 1,
    groups: _int = 1,
) -> Tensor:
    """The sums of the products of the weight with each stretch of the input.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (out_channels, C / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many zeros there are at both ends of each dimension, or 'valid' (none) or 'same' (the output
        is as large as the input).
        dilation: How far the elements of a patch lie apart.
        groups: The groups of channels, each of which is convolved with weights of its own.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes | _str = 0,
    dilation: _int | _Sizes = 1,
    groups: _int = 1,
) -> Tensor:
    """The sums of the products of the weight with each patch of the input.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (out_channels, C / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many zeros there are at both ends of each dimension, or 'valid' (none) or 'same' (the output
        is as large as the input).
        dilation: How far the elements of a patch lie apart.
        groups: The groups of channels, each of which is convolved with weights of its own.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes | _str = 0,
    dilation: _int | _Sizes = 1,
    groups: _int = 1,
) -> Tensor:
    """The sums of the products of the weight with each box of the input.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (out_channels, C / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many zeros there are at both ends of each dimension, or 'valid' (none) or 'same' (the output
        is as large as the input).
        dilation: How far the elements of a patch lie apart.
        groups: The groups of channels, each of which is convolved with weights of its own.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0) -> Tensor:
    """A convolution of sequences whose dimensions are time, batch and channels.

    Args:
        input: A tensor of shape (time, batch, in_channels).
        weight: A tensor of shape (kernel, in_channels, out_channels).
        bias: A number for each output channel.
        pad: How many zeros there are before and after the sequence.

    Raises:
        RuntimeError: The shapes or dtypes do not match.
    """

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes = 0,
    output_padding: _int | _Sizes = 0,
    groups: _int = 1,
    dilation: _int | _Sizes = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its input: each element of the input adds a multiple of the weight.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (C, out_channels / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many elements at both ends of each dimension are left out.
        output_padding: How many elements more there are at the end of each dimension; less than the stride or the
        dilation.
        groups: The groups of channels, each of which has weights of its own.
        dilation: How far the elements of a patch lie apart.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes = 0,
    output_padding: _int | _Sizes = 0,
    groups: _int = 1,
    dilation: _int | _Sizes = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input: each element of the input adds a multiple of the weight.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (C, out_channels / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many elements at both ends of each dimension are left out.
        output_padding: How many elements more there are at the end of each dimension; less than the stride or the
        dilation.
        groups: The groups of channels, each of which has weights of its own.
        dilation: How far the elements of a patch lie apart.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | _Sizes = 1,
    padding: _int | _Sizes = 0,
    output_padding: _int | _Sizes = 0,
    groups: _int = 1,
    dilation: _int | _Sizes = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input: each element of the input adds a multiple of the weight.

    Args:
        input: A tensor of shape (N, C, *), or (C, *) without a batch.
        weight: A tensor of shape (C, out_channels / groups, *kernel).
        bias: A number for each output channel.
        stride: How far the patches lie apart; a number for all dimensions or one for each.
        padding: How many elements at both ends of each dimension are left out.
        output_padding: How many elements more there are at the end of each dimension; less than the stride or the
        dilation.
        groups: The groups of channels, each of which has weights of its own.
        dilation: How far the elements of a patch lie apart.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: _int | _Sizes,
    padding: _int | _Sizes,
    dilation: _int | _Sizes,
    transposed: _bool,
    output_padding: _int | _Sizes,
    groups: _int,
) -> Tensor:
    """A convolution over as many dimensions as the weight has spatial ones, of a batch; or the transposed one.

    Args:
        input: A tensor of shape (N, C, *).
        weight: A tensor of shape (out_channels, C / groups, *kernel), or (C, out_channels / groups, *kernel) of
        the transposed one.
        bias: A number for each output channel, or None.
        stride: How far the patches lie apart; a number for each dimension, or one.
        padding: How many zeros there are at both ends of each dimension.
        dilation: How far the elements of a patch lie apart.
        transposed: Whether it is the transposed convolution.
        output_padding: How many elements more a transposed convolution has at the end of each dimension.
        groups: The groups of channels.

    Raises:
        RuntimeError: The shapes, dtypes or parameters do not match.
    """

def copysign(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The magnitude of the first input with the sign of the second."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of an angle in radians."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def count_nonzero(input: Tensor, dim: _Dims | None = None) -> Tensor:
    """How many elements along `dim` (all without) are not 0, as int64."""

def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: _str = "mean",
    ignore_index: _int = -100,
    label_smoothing: _float = 0.0,
) -> Tensor:
    """The cross entropy of `softmax(input)` and the targets.

    Args:
        input: The logits of the classes, in dimension 1 (0 without a batch).
        target: The index of a class for each element, or probabilities of the shape of `input`.
        weight: A weight for each class.
        reduction: 'none', 'mean' (weighted) or 'sum'.
        ignore_index: A target that does not count.
        label_smoothing: The probability that is distributed over all classes.

    Raises:
        IndexError: A target is not the index of a class.
        RuntimeError: The shapes do not match.
    """

def cummax(input: Tensor, dim: _int, *, out: _tuple[Tensor, Tensor] | None = None) -> _return_types.cummax:
    """The largest element so far along `dim` and where it stands (the last of equals)."""

def cummin(input: Tensor, dim: _int, *, out: _tuple[Tensor, Tensor] | None = None) -> _return_types.cummin:
    """The smallest element so far along `dim` and where it stands (the last of equals)."""

def cumprod(input: Tensor, dim: _int, *, dtype: _DType | None = None, out: Tensor | None = None) -> Tensor:
    """The cumulative products along `dim`. Integers and bool give int64 unless `dtype` is given."""

def cumsum(input: Tensor, dim: _int, *, dtype: _DType | None = None, out: Tensor | None = None) -> Tensor:
    """The cumulative sums along `dim`. Integers and bool give int64 unless `dtype` is given."""

default_generator: Generator

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """An angle in degrees as one in radians."""

def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """A square matrix with a vector on its diagonal, or a copy of the diagonal of a matrix."""

def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Matrices in dimensions `dim1` and `dim2` with the last dimension of the tensor on a diagonal, and zeros
    elsewhere.
    """

def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """A square matrix with all elements of the tensor on a diagonal."""

def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """A diagonal of dimensions `dim1` and `dim2`, as a new last dimension."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """A copy with a diagonal of the dimensions `dim1` and `dim2` replaced by `src`, whose last dimension lies along
    it.
    """

def diff(
    input: Tensor,
    n: _int = 1,
    dim: _int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The differences of neighbors along `dim`, taken `n` times, after `prepend` and `append` are joined to the ends
    of the tensor.
    """

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of the logarithm of the gamma function, infinite at 0 and nan at the negative integers."""

def dist(input: Tensor, other: Tensor, p: _float = 2.0) -> Tensor:
    """The norm of order `p` of the difference."""

def div(input: _Operand, other: _Operand, *, rounding_mode: _str | None = None, out: Tensor | None = None) -> Tensor:
    """`input / other`; `rounding_mode` is None for true division, 'floor' or 'trunc'.

    Raises:
        RuntimeError: `rounding_mode` is something else.
    """

def divide(input: _Operand, other: _Operand, *, rounding_mode: _str | None = None, out: Tensor | None = None) -> Tensor:
    """`input / other`; `rounding_mode` is None for true division, 'floor' or 'trunc'.

    Raises:
        RuntimeError: `rounding_mode` is something else.
    """

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors."""

double: dtype

def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """A copy with each element set to 0 with probability `p`, and the others scaled by `1 / (1 - p)`; the input
    itself if `train` is False.
    """

def dsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> _tuple[Tensor, ...]:
    """Splits along dimension 2: into a number of equal parts, or at a list of positions."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension 2."""

def einsum(*args: Any) -> Tensor:
    """The sum of products of operands whose dimensions an equation names, as in `einsum('ij,jk->ik', a, b)`."""

def elu(
    input: Tensor, alpha: _Number = 1.0, scale: _Number = 1.0, input_scale: _Number = 1.0, *, out: Tensor | None = None
) -> Tensor:
    """`scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))`."""

def empty(
    *size: _int | _Sizes,
    out: Tensor | None = None,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor with uninitialized memory."""

def empty_cache() -> None:
    """Returns cached CPU memory that no tensor uses to the system."""

def empty_like(
    input: Tensor,
    *,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As the function without `_like`, with the shape, dtype and device of `input` as defaults."""

def empty_strided(
    size: _Sizes,
    stride: _Sizes,
    *,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor with the given strides, in elements, and uninitialized memory."""

def eq(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether both inputs are equal."""

def equal(input: Tensor, other: Tensor) -> _bool:
    """Whether the shapes and all elements are equal."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """One minus the error function, accurate where that is small."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the error function, infinite at -1 and 1 and nan outside."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of the input."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of the input."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of the input, minus 1, accurate near 0."""

def eye(
    n: _int,
    m: _int | None = None,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """An `n` x `m` matrix with ones on the main diagonal and zeros elsewhere; `m` is `n` by default."""

def fft_fft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The discrete Fourier transform along one dimension: ``sum(input[j] * exp(-2j * pi * j * k / n))``.

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_fft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The discrete Fourier transform along two dimensions.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_fftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform along several dimensions (without ``dim`` all, or as many of the last as
    there are lengths).

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_hfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The transform of a signal that is its own mirrored conjugate, of which the first half is given: ``n``
    real frequencies (None: ``2 * (size - 1)``).

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_hfft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The transform along two dimensions of a signal that is its own mirrored conjugate, of which the first
    half is given along the last: real frequencies.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_hfftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along several dimensions (without ``dim`` all, or as many of the last as there are
    lengths) of a signal that is its own mirrored conjugate, of which the first half is given along the
    last: real frequencies.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_ifft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``fft``.

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_ifft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``fft2``.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_ifftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``fftn``.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_ihfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``hfft``: of real frequencies the first half of the signal.

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_ihfft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``hfft2``.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_ihfftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``hfftn``.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_irfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``rfft``, with ``n`` real elements (None: ``2 * (size - 1)``).

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_irfft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of ``rfft2``, with ``s[-1]`` real elements along the last dimension (None: ``2 * (size -
    1)``).

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_irfftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``rfftn``, with ``s[-1]`` real elements along the last dimension (None: ``2 * (size -
    1)``).

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_rfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The first ``n // 2 + 1`` frequencies of the transform of a real tensor; the others are their conjugates.

    The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    floats.
    """

def fft_rfft2(
    input: Tensor, s: _Dims | None = None, dim: _Dims = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The transform of a real tensor along two dimensions; along the last of them the first ``n // 2 + 1``
    frequencies.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fft_rfftn(
    input: Tensor,
    s: _Dims | None = None,
    dim: _Dims | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of a real tensor along several dimensions (without ``dim`` all, or as many of the last as
    there are lengths); along the last of them the first ``n // 2 + 1`` frequencies.

    The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    """

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The whole part, towards zero."""

def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` merged into one."""

def flip(input: Tensor, dims: _Dims) -> Tensor:
    """The elements in reverse order along `dims`."""

def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""

float: dtype
float16: dtype
float32: dtype
float64: dtype

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest whole number not above the input."""

def floor_divide(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The quotient rounded towards minus infinity, without derivative."""

def fmax(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The larger input, or the one that is not nan."""

def fmin(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The smaller input, or the one that is not nan."""

def fmod(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The remainder of the division truncated towards zero; it has the sign of the dividend."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The part after the decimal point, with the input's sign."""

def fractional_max_pool2d(
    input: Tensor, kernel_size: _Dims, output_size: _Dims, random_samples: Tensor
) -> _tuple[Tensor, Tensor]:
    """The largest elements of windows whose places are drawn (Graham 2014), and their positions: `random_samples`
    has a number from 0 to 1 for each plane and axis.
    """

def fractional_max_pool3d(
    input: Tensor, kernel_size: _Dims, output_size: _Dims, random_samples: Tensor
) -> _tuple[Tensor, Tensor]:
    """As `fractional_max_pool2d`, over the last three dimensions."""

def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares its memory with a NumPy array, so that each sees writes to the other.

    Raises:
        TypeError: `ndarray` is not an array, or rgrad has no dtype like its own.
        ValueError: The array has negative strides, foreign byte order, or is not aligned to its elements.
    """

def full(
    size: _Sizes,
    fill_value: _Operand,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor filled with `fill_value`. Its dtype is that of the number: bool, int64, the default dtype or its
    complex dtype.
    """

def full_like(
    input: Tensor,
    fill_value: _Operand,
    *,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor filled with `fill_value`, with the shape, dtype and device of `input` as defaults."""

def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """The elements along `dim` at `index`, which has the shape of the result."""

def ge(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is greater or equal."""

def gelu(input: Tensor, *, approximate: _str = "none") -> Tensor:
    """The Gaussian error linear unit; `approximate` is 'none' for the exact function or 'tanh'.

    Raises:
        RuntimeError: `approximate` is something else.
    """

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `outer`."""

def get_autocast_dtype(device_type: _str) -> _DType:
    """The smaller float type of a kind of device."""

def get_default_device() -> device:
    """The default device of this thread's new tensors."""

def get_default_dtype() -> _DType:
    """The default dtype of new floating point tensors."""

def get_device(input: Tensor) -> _int:
    """The number of a tensor's device: 0 on wgpu, -1 on the CPU."""

def get_num_threads() -> _int:
    """The number of threads that kernels use."""

def get_rng_state() -> Tensor:
    """The default generator's state as a uint8 tensor."""

def greater(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is greater."""

def greater_equal(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is greater or equal."""

def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """Images read at the places of a grid: see `nn.functional.grid_sample`. Interpolation modes: 0 linear, 1
    nearest, 2 cubic; padding modes: 0 zeros, 1 border, 2 reflection.
    """

def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """As `grid_sampler`, of images."""

def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """As `grid_sampler`, of volumes."""

def group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _Number = 1e-05,
    cudnn_enabled: _bool = True,
) -> Tensor:
    """Subtract the mean and divide by the deviation over each group of channels (Wu and He 2018).

    Args:
        input: A float tensor of shape (N, C, *).
        num_groups: How many groups the channels form.
        weight: A factor for each channel.
        bias: A summand for each channel.
        eps: Added to the variance.
        cudnn_enabled: Ignored.

    Raises:
        RuntimeError: The channels cannot be divided into so many groups, or the shapes do not match.
    """

def gru(*args: Any) -> _tuple[Tensor, Tensor]:
    """A network of gated recurrent units (Cho et al. 2014): all steps, layers and directions.

    Args:
        args: As for `lstm`, but that hx is one tensor.

    Returns:
        The result of each step, and the last states.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """

def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a gated recurrent unit.

    Args:
        input: The input, of shape (N, features) or (features).
        hx: The state, of shape (N, size) or (size).
        w_ih: Weights of the input, of shape (3 * size, features).
        w_hh: Weights of the state, of shape (3 * size, size).
        b_ih: Biases of shape (3 * size), or None.
        b_hh: The same.

    Returns:
        The new state.

    Raises:
        RuntimeError: Shapes do not fit.
    """

def gt(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is greater."""

half: dtype

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The input, but 0 where its magnitude is not above `lambd`."""

def hardsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`clamp(x + 3, 0, 6) / 6`."""

def hardswish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x * clamp(x + 3, 0, 6) / 6`."""

def hardtanh(input: Tensor, min_val: _Number = -1.0, max_val: _Number = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The input kept between two numbers; the derivative at both is 0."""

def hsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> _tuple[Tensor, ...]:
    """Splits along dimension 1, or 0 of a vector: into a number of equal parts, or at a list of positions."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension 1, or 0 for vectors."""

def huber_loss(input: Tensor, target: Tensor, reduction: _str = "mean", delta: _float = 1.0) -> Tensor:
    """A loss that is quadratic for differences below `delta` and linear with slope `delta` above."""

def hypot(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The length of the hypotenuse, without needless overflow; its derivative at 0 is 0."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def igamma(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The lower incomplete gamma function of `input` at `other`, divided by the gamma function."""

def igammac(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The upper incomplete gamma function of `input` at `other`, divided by the gamma function."""

def im2col(input: Tensor, kernel_size: _Dims, dilation: _Dims, padding: _Dims, stride: _Dims) -> Tensor:
    """The windows of the last two dimensions as columns."""

def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, a view of the same memory.

    Raises:
        RuntimeError: The tensor is real.
    """

def index_add(
    input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1, out: Tensor | None = None
) -> Tensor:
    """A copy with `alpha * source` added to the slices along `dim` at `index`."""

def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with the slices along `dim` at `index` replaced by those of `source`."""

def index_fill(input: Tensor, dim: _int, index: Tensor, value: _Operand) -> Tensor:
    """A copy with the slices along `dim` at `index` filled with a value."""

def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """A copy with `values` written at the index tensors, or added with `accumulate`."""

def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices along `dim` at a vector of indices."""

def initial_seed() -> _int:
    """The seed of the default generator."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sums of products over the last dimension of both tensors."""

def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: _bool,
    momentum: _float,
    eps: _Number,
    cudnn_enabled: _bool,
) -> Tensor:
    """Subtract the mean and divide by the deviation of each channel of each element of the batch (Ulyanov et al.
    2016).

    Args:
        input: A float tensor of shape (N, C, *).
        weight: A factor for each channel, or None.
        bias: A summand for each channel, or None.
        running_mean: The running means, or None.
        running_var: The running variances, or None.
        use_input_stats: Whether the statistics are those of `input`; else the running ones are used.
        momentum: How much the statistics of `input` count for the running ones.
        eps: Added to the variance.
        cudnn_enabled: Ignored.

    Raises:
        RuntimeError: A tensor does not have an element for each channel, or there are no statistics to use.
    """

int: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype

def is_anomaly_check_nan_enabled() -> _bool:
    """Whether a NaN in a gradient is an error in anomaly mode."""

def is_anomaly_enabled() -> _bool:
    """Whether anomaly mode is on."""

def is_autocast_cache_enabled() -> _bool:
    """Whether weights that autocast has converted are kept until the outermost context ends."""

def is_autocast_enabled(device_type: _str = "wgpu") -> _bool:
    """Whether autocast is on for a kind of device; without one, for wgpu."""

def is_complex(input: Tensor) -> _bool:
    """Whether a tensor's dtype is complex."""

def is_conj(input: Tensor) -> _bool:
    """Whether the tensor is a lazy conjugate: a view whose elements are conjugated when they are read."""

def is_floating_point(input: Tensor) -> _bool:
    """Whether a tensor's dtype is a floating point dtype."""

def is_grad_enabled() -> _bool:
    """Whether operations are recorded on this thread."""

def is_inference(input: Tensor) -> _bool:
    """Whether the tensor was made in inference mode."""

def is_inference_mode_enabled() -> _bool:
    """Whether this thread is in inference mode."""

def is_neg(input: Tensor) -> _bool:
    """Whether the tensor is a lazy negative: a view whose elements are negated when they are read."""

def is_warn_always_enabled() -> _bool:
    """Whether `set_warn_always` is on."""

def isclose(
    input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> Tensor:
    """Where `|input - other| <= atol + rtol * |other|`. With `equal_nan`, NaN equals NaN."""

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is neither nan nor infinite."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is infinite."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is nan."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is minus infinity."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is plus infinity."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: a block matrix of the products of each element with `other`."""

def kthvalue(
    input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.kthvalue:
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands."""

def l1_loss(input: Tensor, target: Tensor, reduction: _str = "mean") -> Tensor:
    """The absolute differences of input and target."""

def layer_norm(
    input: Tensor,
    normalized_shape: _Sizes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _Number = 1e-05,
    cudnn_enable: _bool = True,
) -> Tensor:
    """Subtract the mean and divide by the deviation over the last dimensions (Ba et al. 2016).

    Args:
        input: A float tensor whose last sizes are `normalized_shape`.
        normalized_shape: The sizes of the last dimensions.
        weight: Factors of this shape.
        bias: Summands of this shape.
        eps: Added to the variance.
        cudnn_enable: Ignored.

    Raises:
        RuntimeError: The shapes do not match.
    """

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input times 2 to the power of `other`."""

def le(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is less or equal."""

def leaky_relu(input: Tensor, negative_slope: _Number = 0.01, *, out: Tensor | None = None) -> Tensor:
    """The input where it is positive, else the input times a slope."""

def lerp(input: Tensor, end: Tensor, weight: _Operand, *, out: Tensor | None = None) -> Tensor:
    """`a + w * (b - a)`, computed from the end that `w` is nearer to."""

def less(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is less."""

def less_equal(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is less or equal."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the magnitude of the gamma function, infinite at 0 and at the negative integers."""

def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """The cross products of vectors of three elements along `dim`; the tensors are broadcast."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, over the last dimension of the input."""

def linspace(
    start: _Operand,
    end: _Operand,
    steps: _int,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, including both. With a complex end the result is complex."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of 1 plus the input, accurate near 0."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def log_softmax(input: Tensor, dim: _int, dtype: _DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """`x - log(sum(exp(x)))` along `dim`, without overflow."""

def logaddexp(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of the exponentials of both inputs."""

def logaddexp2(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2 of the sum of 2 to the power of both inputs."""

def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of `exp(x)` along `dim`, without overflow. Floats and complex numbers only."""

def logical_and(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether both inputs are true (not zero)."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the input is zero."""

def logical_or(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether one of the inputs is true (not zero)."""

def logical_xor(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether just one of the inputs is true (not zero)."""

def logit(input: Tensor, eps: _Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the odds, `log(x / (1 - x))`, of the input kept in `eps..=1 - eps` unless `eps` is negative."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log(sigmoid(x))`."""

def logspace(
    start: _Operand,
    end: _Operand,
    steps: _int,
    base: _float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """`base` to the powers of `steps` evenly spaced numbers from `start` to `end`, including both."""

def logsumexp(input: Tensor, dim: _Dims, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """`log(sum(exp(x)))` over `dim`, without overflow."""

long: dtype

def lstm(*args: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """A network of long short-term memory (Hochreiter and Schmidhuber 1997): all steps, layers and directions.

    Args:
        args: Either input (L, N, features), hx (two tensors (layers * directions, N, size)), params, has_biases,
        num_layers, dropout,
            train, bidirectional, batch_first; or data (n, features), batch_sizes, hx, params, has_biases,
            num_layers, dropout, train,
            bidirectional.

    Returns:
        The result of each step, and the last states and cells.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """

def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> _tuple[Tensor, Tensor]:
    """One step of long short-term memory.

    Args:
        input: The input, of shape (N, features) or (features).
        hx: State and cell, of shape (N, size) or (size).
        w_ih: Weights of the input, of shape (4 * size, features).
        w_hh: Weights of the state, of shape (4 * size, size).
        b_ih: Biases of shape (4 * size), or None.
        b_hh: The same.

    Returns:
        The new state and cell.

    Raises:
        RuntimeError: Shapes do not fit.
    """

def lt(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the first input is less."""

def manual_seed(seed: _int) -> Generator:
    """Sets the seed of the default generator, and returns the generator."""

def masked_fill(input: Tensor, mask: Tensor, value: _Operand) -> Tensor:
    """A copy with a value where the mask is true."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with consecutive elements of `source` where the mask is true."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is true, in one dimension."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two tensors by the rules of `@`: of vectors, matrices, or batches of matrices, which are
    broadcast.
    """

def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The product of `n` times each square matrix of a batch; the identity for 0."""

@overload
def max(
    input: Tensor, dim: None = None, keepdim: _bool = False, *, other: None = None, out: Tensor | None = None
) -> Tensor:
    """The largest of all elements; with `dim`, (values, indices) along it; with a tensor, the maximum of both."""

@overload
def max(
    input: Tensor, dim: _int, keepdim: _bool = False, *, other: None = None, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.max: ...
@overload
def max(input: Tensor, dim: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor, out: Tensor | None = None) -> Tensor: ...
def max_memory_allocated() -> _int:
    """The largest number of bytes that CPU tensors have held since the last `reset_peak_memory_stats`."""

def max_pool1d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> Tensor:
    """The largest element of each window of the last dimension."""

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> _tuple[Tensor, Tensor]:
    """The largest element of each window of the last dimension, and its position."""

def max_pool2d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> Tensor:
    """The largest element of each window of the last two dimensions."""

def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> _tuple[Tensor, Tensor]:
    """The largest element of each window of the last two dimensions, and its position in the flattened plane."""

def max_pool3d(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> Tensor:
    """The largest element of each window of the last three dimensions."""

def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _Dims,
    stride: _Dims = (),
    padding: _Dims = 0,
    dilation: _Dims = 1,
    ceil_mode: _bool = False,
) -> _tuple[Tensor, Tensor]:
    """The largest element of each window of the last three dimensions, and its position in the flattened volume."""

def max_unpool2d(input: Tensor, indices: Tensor, output_size: _Dims) -> Tensor:
    """Zeros, with the elements of the input at their positions in the flattened plane."""

def max_unpool3d(input: Tensor, indices: Tensor, output_size: _Dims, stride: _Dims, padding: _Dims) -> Tensor:
    """Zeros, with the elements of the input at their positions in the flattened volume."""

def maximum(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The larger input; where both are equal each gets half of the gradient."""

def mean(
    input: Tensor,
    dim: _Dims | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over `dim`, or of all elements. The tensor, or `dtype`, is floating point."""

@overload
def median(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The lower median of all elements, or with `dim` (values, indices) along it. NaN if there is one."""

@overload
def median(
    input: Tensor, dim: _int, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.median: ...
def memory_allocated() -> _int:
    """The bytes that CPU tensors hold now."""

def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: _str | None = None) -> _tuple[Tensor, ...]:
    """The coordinates of a grid, from one vector for each dimension; `indexing` is 'ij' or 'xy'.

    Raises:
        RuntimeError: `indexing` is something else.
    """

@overload
def min(
    input: Tensor, dim: None = None, keepdim: _bool = False, *, other: None = None, out: Tensor | None = None
) -> Tensor:
    """The smallest of all elements; with `dim`, (values, indices) along it; with a tensor, the minimum of both."""

@overload
def min(
    input: Tensor, dim: _int, keepdim: _bool = False, *, other: None = None, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.min: ...
@overload
def min(input: Tensor, dim: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor, out: Tensor | None = None) -> Tensor: ...
def minimum(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The smaller input; where both are equal each gets half of the gradient."""

def mish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x * tanh(softplus(x))`."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""

def mode(
    input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.mode:
    """The most frequent element along `dim` (the smallest of equally frequent ones) and where it stands last."""

def moveaxis(input: Tensor, source: _Dims, destination: _Dims) -> Tensor:
    """The dimensions `source` moved to `destination`; the others keep their order."""

def movedim(input: Tensor, source: _Dims, destination: _Dims) -> Tensor:
    """The dimensions `source` moved to `destination`; the others keep their order."""

def mse_loss(input: Tensor, target: Tensor, reduction: _str = "mean") -> Tensor:
    """The squared differences of input and target."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The values sorted along dimension 0."""

def mul(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The product of both inputs."""

def multinomial(
    input: Tensor,
    num_samples: _int,
    replacement: _bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices that are drawn with the probabilities in each row of `input`, which need not sum to 1."""

def multiply(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The product of both inputs."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""

def nan_to_num(
    input: Tensor,
    nan: _Number | None = None,
    posinf: _Number | None = None,
    neginf: _Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The input with numbers in place of nan, plus and minus infinity."""

def nanmean(
    input: Tensor,
    dim: _Dims | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over `dim`, or of all elements, of those that are not NaN."""

@overload
def nanmedian(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The lower median of all elements that are not NaN, or with `dim` (values, indices) along it."""

@overload
def nanmedian(
    input: Tensor, dim: _int, keepdim: _bool = False, *, out: _tuple[Tensor, Tensor] | None = None
) -> _return_types.nanmedian: ...
def nanquantile(
    input: Tensor,
    q: _float | Sequence[_float] | Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """As `quantile`, but NaN is ignored."""

def nansum(
    input: Tensor,
    dim: _Dims | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` (all without), with nan counted as 0."""

def narrow(input: Tensor, dim: _int, start: _int, length: _int) -> Tensor:
    """The `length` slices along `dim` that begin at `start`."""

def ne(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the inputs differ (true where one is nan)."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input with its sign changed."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input with its sign changed."""

def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _str = "mean", ignore_index: _int = -100
) -> Tensor:
    """The negative log-likelihood of the target classes.

    Args:
        input: The log-probabilities of the classes, in dimension 1 (0 without a batch).
        target: The index of a class for each element.
        weight: A weight for each class.
        reduction: 'none', 'mean' (weighted) or 'sum'.
        ignore_index: A target that does not count.

    Raises:
        IndexError: A target is not the index of a class.
        RuntimeError: The shapes do not match.
    """

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor:
    """The indices of the elements that are not zero: one row for each, or with `as_tuple` one vector for each
    dimension.
    """

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> _tuple[Tensor, ...]: ...
def norm(
    input: Tensor,
    p: _Number | _str = "fro",
    dim: _Dims | None = None,
    keepdim: _bool = False,
    out: Tensor | None = None,
    dtype: _DType | None = None,
) -> Tensor:
    """The vector norm of order `p` over `dim`, or of all elements; 'fro' is order 2, 'nuc' the nuclear norm of
    matrices.
    """

@overload
def normal(
    mean: Tensor,
    std: Tensor | _float = 1.0,
    size: None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A tensor of numbers with normal distributions.

    Args:
        mean: The mean: a number, or a tensor with one for each element.
        std: The standard deviation: a number, or a tensor.
        size: The shape, if both are numbers.
    """

@overload
def normal(
    mean: _float, std: Tensor, size: None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def normal(
    mean: _float,
    std: _float,
    size: _Sizes,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def not_equal(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the inputs differ (true where one is nan)."""

def numel(input: Tensor) -> _int:
    """The number of elements of a tensor."""

def ones(
    *size: _int | _Sizes,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor filled with ones."""

def ones_like(
    input: Tensor,
    *,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As the function without `_like`, with the shape, dtype and device of `input` as defaults."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product of two vectors: a matrix of the products of their elements."""

def permute(input: Tensor, dims: _Dims) -> Tensor:
    """The dimensions in another order."""

pointwise_functions: _tuple[_str, ...]
pointwise_names: _tuple[_str, ...]

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers with these absolute values and angles in radians.

    Args:
        abs: The absolute values: float16, float32 or float64.
        angle: The angles, of the same dtype; the shapes broadcast.
        out: The tensor that is written.

    Raises:
        RuntimeError: Both are of two dtypes, or of another one.
    """

def pow(input: _Operand, exponent: _Operand, *, out: Tensor | None = None) -> Tensor:
    """`input` to the power of `exponent`, of which one may be a number."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The input where it is positive, else the input times a weight: one for all, or one for each channel."""

preserve_format: memory_format

def prod(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The product over one dimension, or of all elements. Integers and bool give int64 unless `dtype` is given."""

def promote_types(type1: _DType, type2: _DType) -> _DType:
    """The smallest dtype to which both types can be converted."""

def quantile(
    input: Tensor,
    q: _float | Sequence[_float] | Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The `q`-quantiles of all elements, or along `dim`. If there is a NaN, the quantiles are NaN.

    Args:
        q: A number between 0 and 1, or a tensor of them, whose quantiles form a new first dimension.
        dim: The dimension; by default the tensor is flattened.
        keepdim: Whether the result keeps the dimension, with size 1.
        interpolation: How a quantile between two elements is computed: 'linear', 'lower', 'higher', 'midpoint' or
        'nearest'.
    """

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """An angle in radians as one in degrees."""

def rand(
    *size: _int | _Sizes,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of numbers with the uniform distribution on [0, 1)."""

def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As the function without `_like`, with the shape, dtype and device of `input`."""

@overload
def randint(
    high: _int,
    size: _Sizes,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of integers with the uniform distribution on [low, high): `randint(high, size)` or `randint(low,
    high, size)`. The default dtype
    is int64.
    """

@overload
def randint(
    low: _int,
    high: _int,
    size: _Sizes,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def randint_like(
    input: Tensor,
    *args: Any,
    generator: Generator | None = None,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As `randint`, with the shape, dtype and device of `input`."""

def randn(
    *size: _int | _Sizes,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of numbers with the standard normal distribution."""

def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As the function without `_like`, with the shape, dtype and device of `input`."""

def randperm(
    n: _int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A random permutation of the integers from 0 to `n - 1`."""

def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""

def real(input: Tensor) -> Tensor:
    """The real part of a complex tensor, a view of the same memory. A real tensor is returned as it is."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """One over the input."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input where it is positive, else 0; the derivative at 0 is 0."""

def remainder(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """The remainder of the division rounded towards minus infinity; it has the sign of the divisor."""

def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """Each slice along `dim` scaled to a norm of order `p` of `maxnorm`, where its norm is larger."""

def repeat_interleave(
    input: Tensor,
    repeats: _int | Sequence[_int] | Tensor | None = None,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
) -> Tensor:
    """Each slice along `dim` repeated next to itself; without `dim` the tensor is flattened. With one argument, each
    index of that tensor repeated
    as often as its element.
    """

def reset_peak_memory_stats() -> None:
    """Resets `max_memory_allocated` to the bytes held now."""

def reshape(input: Tensor, shape: _Sizes) -> Tensor:
    """The same elements in another shape: a view if possible, else a copy. One size may be -1.

    Raises:
        RuntimeError: The shape has another number of elements.
    """

def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, or, of a lazy conjugate, a copy whose elements are computed."""

def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, or, of a lazy negative, a copy whose elements are computed."""

def result_type(tensor: _Operand, other: _Operand) -> _DType:
    """The dtype of the result of a pointwise operation on two tensors or numbers."""

def rms_norm(
    input: Tensor, normalized_shape: _Sizes, weight: Tensor | None = None, eps: _Number | None = None
) -> Tensor:
    """Divide by the root of the mean of squares over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: A float tensor whose last sizes are `normalized_shape`.
        normalized_shape: The sizes of the last dimensions.
        weight: Factors of this shape.
        eps: Added to the mean of squares; None takes the dtype's epsilon.

    Raises:
        RuntimeError: The shapes do not match.
    """

def rnn_relu(*args: Any) -> _tuple[Tensor, Tensor]:
    """As `rnn_tanh`, with `max(x, 0)` in the place of the hyperbolic tangent.

    Args:
        args: As for `gru`.

    Returns:
        The result of each step, and the last states.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """

def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """As `rnn_tanh_cell`, with `max(x, 0)` in the place of the hyperbolic tangent.

    Args:
        input: The input, of shape (N, features) or (features).
        hx: The state, of shape (N, size) or (size).
        w_ih: Weights of the input, of shape (size, features).
        w_hh: Weights of the state, of shape (size, size).
        b_ih: Biases of shape (size), or None.
        b_hh: The same.

    Returns:
        The new state.

    Raises:
        RuntimeError: Shapes do not fit.
    """

def rnn_tanh(*args: Any) -> _tuple[Tensor, Tensor]:
    """A network with `tanh(W x + b + U h + c)` as its step (Elman 1990): all steps, layers and directions.

    Args:
        args: As for `gru`.

    Returns:
        The result of each step, and the last states.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """

def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step `tanh(W x + b + U h + c)`.

    Args:
        input: The input, of shape (N, features) or (features).
        hx: The state, of shape (N, size) or (size).
        w_ih: Weights of the input, of shape (size, features).
        w_hh: Weights of the state, of shape (size, size).
        b_ih: Biases of shape (size), or None.
        b_hh: The same.

    Returns:
        The new state.

    Raises:
        RuntimeError: Shapes do not fit.
    """

def roll(input: Tensor, shifts: _Dims, dims: _Dims = ()) -> Tensor:
    """The elements shifted along `dims` by `shifts`; elements beyond one end reappear at the other."""

def rot90(input: Tensor, k: _int = 1, dims: _Dims = (0, 1)) -> Tensor:
    """The tensor rotated `k` times by 90 degrees in the plane of two dimensions."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Rounds to `decimals` digits after the decimal point, or before it if `decimals` is negative. Halves are
    rounded to even.
    """

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension 0, with vectors as rows."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """One over the square root."""

def rsub(input: _Operand, other: _Operand, alpha: _Number = 1) -> Tensor:
    """`other - alpha * input`."""

def scalar_tensor(
    s: _Operand,
    *,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A 0-d tensor with the value of a number."""

def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: _float = 0.0,
    is_causal: _bool = False,
    *,
    scale: _Number | None = None,
    enable_gqa: _bool = False,
) -> Tensor:
    """Weigh values by the softmax of the products of queries and keys: `softmax(query @ key.mT * scale + attn_mask)
    @ value` (Vaswani et al.
    2017).

    The matrix of weights is never in memory, forward or backward (Dao et al. 2022), unless there is dropout, a
    gradient of the mask,
    a graph of the gradient or a tangent.

    Args:
        query: Queries, of shape (..., L, E) and a float dtype.
        key: Keys, of shape (..., S, E).
        value: Values, of shape (..., S, V).
        attn_mask: A mask that broadcasts to (..., L, S): bool, where True allows attention, or numbers that are
        added to the scores.
        dropout_p: The probability that a weight is set to 0; the others are multiplied by `1 / (1 - p)`.
        is_causal: Whether query i attends to keys 0 to i alone.
        scale: The factor of the products; by default `1 / sqrt(E)`.
        enable_gqa: Whether key and value may have fewer heads (dimension -3), which divide the heads of the
        queries.

    Returns:
        A tensor of shape (..., L, V). A query whose keys are all masked gives zeros.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> q = k = v = rgrad.ones(1, 2, 3, 4)
        >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
        rgrad.Size([1, 2, 3, 4])
    """

def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: _Operand | None = None,
    *,
    value: _Number | None = None,
    reduce: _str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with `src`, a tensor or a number, written at `index` along `dim`; `reduce` is None, 'add' or
    'multiply'.
    """

def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with `src` added at `index` along `dim`, in the order of the index."""

def seed() -> _int:
    """Sets the seed of the default generator from the system's source of randomness, and returns the seed."""

def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """The slice at `index` along `dim`, without that dimension."""

def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int) -> Tensor:
    """A copy with the slice at `index` along `dim` replaced by `src`."""

def set_anomaly_enabled(enabled: _bool, check_nan: _bool = True) -> None:
    """Switches anomaly mode on or off, for all threads.

    Args:
        enabled: Whether anomaly mode is on.
        check_nan: Whether a NaN in a gradient is an error.
    """

def set_autocast_cache_enabled(enabled: _bool) -> None:
    """Switches the keeping of converted weights on or off."""

def set_autocast_dtype(device_type: _str, dtype: _DType) -> None:
    """Sets the smaller float type of a kind of device, on this thread."""

def set_autocast_enabled(device_type: _str, enabled: _bool) -> None:
    """Switches autocast on or off for a kind of device, on this thread."""

def set_default_device(device: _Device) -> None:
    """Sets the default device of this thread's new tensors; None removes the setting.

    `from_numpy` and the `*_like` functions do not use it.

    Raises:
        RuntimeError: rgrad has no tensors on this device.
    """

def set_default_dtype(d: _DType) -> None:
    """Sets the default dtype of new floating point tensors: float32 or float64.

    Raises:
        TypeError: `d` is not a dtype, or not one of these two.
    """

def set_memory_limit(bytes: _int) -> None:
    """Limits the bytes that all CPU tensors together may hold. 0 sets the limit to the machine's memory."""

def set_num_threads(num: _int) -> None:
    """Sets the number of threads that kernels use.

    Raises:
        RuntimeError: `num` is not a positive integer.
    """

def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state to one that `get_rng_state` returned."""

def set_warn_always(b: _bool, /) -> None:
    """Sets whether warnings that are otherwise shown once in a process are shown each time."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input divided by its absolute value: -1, 0 or 1 for real numbers (0 for nan)."""

short: dtype

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 (0 for nan)."""

def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x * sigmoid(x)`."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of an angle in radians."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with the slices `start` to `end` along `dim`, every `step`, replaced by those of `src`."""

def smooth_l1_loss(input: Tensor, target: Tensor, reduction: _str = "mean", beta: _float = 1.0) -> Tensor:
    """A loss that is quadratic for differences below `beta` and linear above."""

def softmax(input: Tensor, dim: _int, dtype: _DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along `dim`, without overflow."""

def softplus(input: Tensor, beta: _Number = 1.0, threshold: _Number = 20.0, *, out: Tensor | None = None) -> Tensor:
    """`log(1 + exp(beta * x)) / beta`, and the input itself where `beta * x` is above the threshold."""

def softshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The input moved towards 0 by `lambd`."""

def sort(
    input: Tensor,
    dim: _int = -1,
    descending: _bool = False,
    stable: _bool | None = None,
    *,
    out: _tuple[Tensor, Tensor] | None = None,
) -> _return_types.sort:
    """Sorted values along `dim` and where they came from; always stable, nan counts as the largest."""

def special_airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function Ai."""

def special_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0, zero at infinity."""

def special_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1, zero at infinity."""

def special_bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0: minus infinity at 0, nan below."""

def special_bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1: minus infinity at 0, nan below."""

def special_chebyshev_polynomial_t(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind of degree `n`, and 0 for negative degrees."""

def special_chebyshev_polynomial_u(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind of degree `n`, and 0 for negative degrees."""

def special_chebyshev_polynomial_v(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind of degree `n`, and 0 for negative degrees."""

def special_chebyshev_polynomial_w(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind of degree `n`, and 0 for negative degrees."""

def special_entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-x * log(x)`: 0 at 0, minus infinity below."""

def special_erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`exp(x ** 2) * erfc(x)`, which neither overflows nor vanishes for large elements."""

def special_hermite_polynomial_h(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The physicists' Hermite polynomial of degree `n`, and 0 for negative degrees."""

def special_hermite_polynomial_he(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The probabilists' Hermite polynomial of degree `n`, and 0 for negative degrees."""

def special_i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i0` times `exp(-abs(input))`."""

def special_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def special_i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`special.i1` times `exp(-abs(input))`."""

def special_laguerre_polynomial_l(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomial of degree `n`, and 0 for negative degrees."""

def special_legendre_polynomial_p(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomial of degree `n`, and 0 for negative degrees."""

def special_log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of `special.ndtr`, accurate where that vanishes."""

def special_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0: infinite at 0, nan below."""

def special_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1: infinite at 0, nan below."""

def special_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The area under the normal density up to each element."""

def special_ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `special.ndtr`, infinite at 0 and 1 and nan outside."""

def special_scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`special.modified_bessel_k0` times `exp(input)`."""

def special_scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`special.modified_bessel_k1` times `exp(input)`."""

def special_shifted_chebyshev_polynomial_t(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind at `2 * input - 1`."""

def special_shifted_chebyshev_polynomial_u(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind at `2 * input - 1`."""

def special_shifted_chebyshev_polynomial_v(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind at `2 * input - 1`."""

def special_shifted_chebyshev_polynomial_w(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind at `2 * input - 1`."""

def special_spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind of order 0, `sin(input) / input`."""

def special_xlog1py(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """`a * log1p(b)`, and 0 where `a` is 0 and `b` is not nan."""

def special_zeta(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function, the sum of `(other + k) ** -input` over `k` from 0; there is a gradient for `other`
    alone.
    """

def split(tensor: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
    """Splits along `dim` into parts of one size, of which the last may be smaller, or of the sizes in a list."""

def split_with_sizes(input: Tensor, split_sizes: _Sizes, dim: _int = 0) -> _tuple[Tensor, ...]:
    """Splits along `dim` into parts of the given sizes."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input times itself."""

def squeeze(input: Tensor, dim: _Dims | None = None) -> Tensor:
    """The tensor without dimensions of size 1: all of them, or those of `dim`."""

def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors, which have the same shape, stacked in a new dimension `dim`."""

def std(
    input: Tensor,
    dim: _Dims | _bool | None = None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    correction: _Number | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation, which is the square root of `var`."""

def std_mean(
    input: Tensor,
    dim: _Dims | None = None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    correction: _Number | None = None,
) -> _tuple[Tensor, Tensor]:
    """The standard deviation and the mean over `dim`, or of all elements, as a tuple."""

def sub(input: _Operand, other: _Operand, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """`input - alpha * other`."""

def subtract(input: _Operand, other: _Operand, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor:
    """`input - alpha * other`."""

def sum(
    input: Tensor,
    dim: _Dims | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `dim`, or of all elements. Integers and bool give int64 unless `dtype` is given."""

def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """Two dimensions exchanged."""

def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions exchanged."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix. Vectors and 0-d tensors are unchanged."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at indices into the flattened tensor."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The elements along `dim` at `indices`. Both tensors are broadcast in the other dimensions; without `dim` the
    tensor is flattened.
    """

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of an angle in radians."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def tensor(
    data: Any,
    *,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
    pin_memory: _bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`.

    Args:
        data: Numbers, nested sequences of them, NumPy arrays or tensors.
        dtype: The dtype; by default that of `data`: the default dtype for floats, int64 for ints, bool for bools.
        device: The device; by default that of `data` if it is a tensor, else the default device.
        requires_grad: Whether operations on the tensor are recorded.
        pin_memory: Has no effect.

    Raises:
        RuntimeError: No dtype can be inferred, a number does not fit into `dtype`, or the device is not
        available.
        TypeError: An element is not a number.
        ValueError: Sequences of one level have different lengths, or an int does not fit into 64 bits.
    """

def tensor_split(
    input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor, dim: _int = 0
) -> _tuple[Tensor, ...]:
    """Splits along `dim` into a number of parts whose sizes differ by at most one, or at a list of positions."""

def tensordot(a: Tensor, b: Tensor, dims: _int | Sequence[Sequence[_int]] = 2, out: Tensor | None = None) -> Tensor:
    """The sums of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of
    dimensions.

    Raises:
        RuntimeError: `dims` is negative or greater than the rank of `a` or `b`, or the sizes of the dimensions
        differ.
    """

def threshold(input: Tensor, threshold: _Number, value: _Number, *, out: Tensor | None = None) -> Tensor:
    """The input where it is above the threshold, else the value."""

def tile(input: Tensor, dims: _Dims) -> Tensor:
    """The tensor repeated `dims` times along each dimension; missing numbers at the front count as 1."""

def topk(
    input: Tensor,
    k: _int,
    dim: _int = -1,
    largest: _bool = True,
    sorted: _bool = True,
    *,
    out: _tuple[Tensor, Tensor] | None = None,
) -> _return_types.topk:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they stand."""

def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""

def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions exchanged."""

def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of each matrix, up to `diagonal`, and zeros elsewhere."""

def tril_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """The indices of a triangle of a `row` x `col` matrix: a row of row indices above a row of column indices."""

def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of each matrix, from `diagonal` on, and zeros elsewhere."""

def triu_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """The indices of a triangle of a `row` x `col` matrix: a row of row indices above a row of column indices."""

def true_divide(
    input: _Operand, other: _Operand, *, rounding_mode: _str | None = None, out: Tensor | None = None
) -> Tensor:
    """`input / other`; `rounding_mode` is None for true division, 'floor' or 'trunc'.

    Raises:
        RuntimeError: `rounding_mode` is something else.
    """

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The whole part, towards zero."""

uint16: dtype
uint32: dtype
uint64: dtype
uint8: dtype

def unbind(input: Tensor, dim: _int = 0) -> _tuple[Tensor, ...]:
    """All slices along `dim`, without that dimension, as a tuple."""

def unflatten(input: Tensor, dim: _int, sizes: _Sizes) -> Tensor:
    """One dimension split into several; one size may be -1."""

@overload
def unique(
    input: Tensor,
    sorted: _bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> Tensor:
    """The unique elements, or slices along `dim`, in ascending order. The result has no derivative.

    Args:
        sorted: Has no effect; the result is always sorted.
        return_inverse: Whether to return also the index of each input element in the result.
        return_counts: Whether to return also the number of times each element occurs.
        dim: The dimension; by default the tensor is flattened.
    """

@overload
def unique(
    input: Tensor,
    sorted: _bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _bool,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _bool = True,
    return_inverse: Literal[False] = False,
    *,
    return_counts: Literal[True],
    dim: _int | None = None,
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor, sorted: _bool, return_inverse: Literal[False], return_counts: Literal[True], dim: _int | None = None
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: _int | None = None,
) -> _tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor, sorted: _bool, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
) -> _tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _bool = True,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
) -> Tensor | _tuple[Tensor, ...]: ...
@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> Tensor:
    """The elements, or slices along `dim`, that differ from the previous one. The other arguments are as in
    `unique`.
    """

@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[False], return_counts: Literal[True], dim: _int | None = None
) -> _tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
) -> _tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
) -> Tensor | _tuple[Tensor, ...]: ...
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """As `chunk`, but the parts are no views: writing to one in place leaves the history of the others as it is."""

def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """As `split` with one size, but the parts are no views: writing to one in place leaves the history of the others
    as it is.
    """

def unsafe_split_with_sizes(input: Tensor, split_sizes: _Sizes, dim: _int = 0) -> _tuple[Tensor, ...]:
    """As `split_with_sizes`, but the parts are no views: writing to one in place leaves the history of the others as
    it is.
    """

def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """A new dimension of size 1 at `dim`."""

def upsample(
    input: Tensor,
    output_size: _Dims,
    mode: _str,
    align_corners: _bool = False,
    antialias: _bool = False,
    scales_d: _float | None = None,
    scales_h: _float | None = None,
    scales_w: _float | None = None,
) -> Tensor:
    """The input with its last dimensions of another size: `mode` is nearest, nearest-exact, linear, bilinear,
    trilinear, bicubic or lanczos. `scales_d`, `scales_h` and `scales_w` are factors that count instead of the
    ratios of sizes.
    """

def var(
    input: Tensor,
    dim: _Dims | _bool | None = None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    correction: _Number | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over `dim`, or of all elements, with divisor `n - correction`. `unbiased=False` is a correction
    of 0, the default is 1.
    """

def var_mean(
    input: Tensor,
    dim: _Dims | None = None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    correction: _Number | None = None,
) -> _tuple[Tensor, Tensor]:
    """The variance and the mean over `dim`, or of all elements, as a tuple."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors, the first of which is conjugated if it is complex."""

def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers in a last dimension of 2 as complex ones: a view of the same memory.

    Raises:
        RuntimeError: The tensor is none of float16, float32 and float64, has no last dimension of 2, or the parts
        do not lie side by side.
    """

def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones in a last dimension of 2: a view of the same memory.

    Raises:
        RuntimeError: The tensor is real, or a lazy conjugate.
    """

def vsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> _tuple[Tensor, ...]:
    """Splits along dimension 0: into a number of equal parts, or at a list of positions."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along dimension 0, with vectors as rows."""

@overload
def where(condition: Tensor, input: None = None, other: None = None, *, out: None = None) -> _tuple[Tensor, ...]:
    """The elements of `input` where `condition` is true, and of `other` elsewhere. With `condition` alone, the
    indices where it is true.
    """

@overload
def where(condition: Tensor, input: _Operand, other: _Operand, *, out: Tensor | None = None) -> Tensor: ...
def xlogy(input: Tensor, other: _Operand, *, out: Tensor | None = None) -> Tensor:
    """`a * log(b)`, and 0 where `a` is 0 and `b` is not nan."""

def zeros(
    *size: _int | _Sizes,
    out: Tensor | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor filled with zeros."""

def zeros_like(
    input: Tensor,
    *,
    memory_format: memory_format | None = None,
    dtype: _DType | None = None,
    layout: Any = None,
    device: _Device | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor:
    """As the function without `_like`, with the shape, dtype and device of `input` as defaults."""

__all__ = [
    "_REGISTERED",
    "ArgumentTypeError",
    "ArgumentValueError",
    "DTypeError",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "GraphError",
    "HookHandle",
    "InternalError",
    "LinAlgError",
    "MissingError",
    "Node",
    "OperationError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "RgradError",
    "SavedTensor",
    "ShapeError",
    "Size",
    "Tensor",
    "UntypedStorage",
    "_FunctionClass",
    "_FunctionCtx",
    "_GraphNodes",
    "_ModuleCall",
    "_PassesWanted",
    "_UpdateFormula",
    "__version__",
    "_after_fork",
    "_airy_ai_prime",
    "_ask_below",
    "_ask_torch_function",
    "_autocast_widened",
    "_autocasts",
    "_autograd",
    "_before_fork",
    "_binomial",
    "_call_site",
    "_check_recorded_write",
    "_cholesky_inverse",
    "_cholesky_solve",
    "_convolution_input",
    "_convolution_weight",
    "_crc32",
    "_current_graph_task_id",
    "_declared_functions",
    "_define_module",
    "_describe_call_site",
    "_dirichlet_grad",
    "_disabled_torch_function_impl",
    "_enter_dual",
    "_enter_level",
    "_enter_module",
    "_exit_dual",
    "_exit_level",
    "_expect_unused_totals",
    "_fail_allocation_in",
    "_fft_c2c",
    "_fft_c2r",
    "_fft_r2c",
    "_frexp_exponent",
    "_frexp_mantissa",
    "_from_dlpack",
    "_from_old_form",
    "_function_apply",
    "_function_apply_here",
    "_fusion_counts",
    "_fusion_enabled",
    "_gamma_density",
    "_geqrf",
    "_get_cpu_capability",
    "_gradient_edge",
    "_graph_memory",
    "_graph_nodes",
    "_has_old_form",
    "_has_torch_function",
    "_has_torch_function_variadic",
    "_heaviside",
    "_hide_tangents",
    "_increment_version",
    "_is_checkpoint_valid",
    "_is_multithreading_enabled",
    "_is_torch_function_enabled",
    "_leaf_hooks",
    "_level_of",
    "_linalg_cholesky",
    "_linalg_cholesky_ex",
    "_linalg_det",
    "_linalg_eig",
    "_linalg_eigh",
    "_linalg_eigvals",
    "_linalg_eigvalsh",
    "_linalg_floats",
    "_linalg_householder_product",
    "_linalg_inv",
    "_linalg_inv_ex",
    "_linalg_ldl_factor",
    "_linalg_ldl_factor_ex",
    "_linalg_ldl_solve",
    "_linalg_lu",
    "_linalg_lu_factor",
    "_linalg_lu_factor_ex",
    "_linalg_lu_solve",
    "_linalg_matrices",
    "_linalg_matrix_exp",
    "_linalg_pinv",
    "_linalg_qr",
    "_linalg_slogdet",
    "_linalg_solve",
    "_linalg_solve_ex",
    "_linalg_solve_triangular",
    "_linalg_svd",
    "_linalg_svdvals",
    "_live_memory",
    "_lu_unpack",
    "_make_dual",
    "_make_saved_tensor",
    "_memory_idle",
    "_memory_recording",
    "_module_number",
    "_neg_view",
    "_nextafter",
    "_node_state",
    "_ormqr",
    "_panic",
    "_path_cuts",
    "_poisson",
    "_polygamma_of",
    "_pop_operation_watcher",
    "_pop_saved_tensors_hooks",
    "_pop_torch_function_mode",
    "_primal",
    "_profiler_clock",
    "_profiler_device_runs",
    "_profiler_events",
    "_profiler_is_on",
    "_profiler_range",
    "_profiler_stack",
    "_profiler_start",
    "_profiler_stop",
    "_push_operation_watcher",
    "_push_saved_tensors_hooks",
    "_push_torch_function_mode",
    "_queue_callback",
    "_refuse_saved_tensors_hooks",
    "_require_grad",
    "_run_backward",
    "_sample_dirichlet",
    "_search_rows",
    "_set_before_write",
    "_set_fast_path",
    "_set_fusion",
    "_set_fusion_least",
    "_set_grad_enabled",
    "_set_inference_mode",
    "_set_multithreading_enabled",
    "_set_printoptions",
    "_set_tangent",
    "_set_tangents_enabled",
    "_set_torch_function_enabled",
    "_sinc",
    "_site_bench",
    "_site_module",
    "_site_place",
    "_skip_torch_function_once",
    "_spherical_bessel_j1",
    "_standard_gamma",
    "_standard_gamma_grad",
    "_start_memory_recording",
    "_stop_memory_recording",
    "_support_table",
    "_swap_tensor_impl",
    "_take_slow_rules",
    "_tangent",
    "_tangents_enabled",
    "_tensor_memory",
    "_top_level",
    "_torch_function_modes",
    "_tracked_graph_task_id",
    "_unfold_backward",
    "_unhide_tangents",
    "_unrelated",
    "_unused_total",
    "_unwrap",
    "_watch_modules",
    "_wgpu_check_process",
    "_wgpu_counts",
    "_wgpu_description",
    "_wgpu_empty_cache",
    "_wgpu_fail_in",
    "_wgpu_install",
    "_wgpu_installed",
    "_wgpu_keep_pipelines",
    "_wgpu_memory",
    "_wgpu_reset_peak",
    "_wgpu_synchronize",
    "_wrap",
    "_write_tangent",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "adjoint",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "batch_norm",
    "bernoulli",
    "bfloat16",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "can_cast",
    "cat",
    "cdouble",
    "ceil",
    "celu",
    "cfloat",
    "chalf",
    "channels_last",
    "channels_last_3d",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clear_autocast_cache",
    "clip",
    "clone",
    "col2im",
    "column_stack",
    "complex",
    "complex32",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "contiguous_format",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross_entropy",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "default_generator",
    "deg2rad",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "double",
    "dropout",
    "dsplit",
    "dstack",
    "dtype",
    "einsum",
    "elu",
    "empty",
    "empty_cache",
    "empty_like",
    "empty_strided",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expit",
    "expm1",
    "eye",
    "fft_fft",
    "fft_fft2",
    "fft_fftn",
    "fft_hfft",
    "fft_hfft2",
    "fft_hfftn",
    "fft_ifft",
    "fft_ifft2",
    "fft_ifftn",
    "fft_ihfft",
    "fft_ihfft2",
    "fft_ihfftn",
    "fft_irfft",
    "fft_irfft2",
    "fft_irfftn",
    "fft_rfft",
    "fft_rfft2",
    "fft_rfftn",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "from_numpy",
    "full",
    "full_like",
    "gather",
    "ge",
    "gelu",
    "ger",
    "get_autocast_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_device",
    "get_num_threads",
    "get_rng_state",
    "greater",
    "greater_equal",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "group_norm",
    "gru",
    "gru_cell",
    "gt",
    "half",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hsplit",
    "hstack",
    "huber_loss",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "im2col",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "initial_seed",
    "inner",
    "instance_norm",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_warn_always_enabled",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kron",
    "kthvalue",
    "l1_loss",
    "layer_norm",
    "ldexp",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg_cross",
    "linear",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsigmoid",
    "logspace",
    "logsumexp",
    "long",
    "lstm",
    "lstm_cell",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_power",
    "max",
    "max_memory_allocated",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool2d",
    "max_unpool3d",
    "maximum",
    "mean",
    "median",
    "memory_allocated",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "mse_loss",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nll_loss",
    "nonzero",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "outer",
    "permute",
    "pointwise_functions",
    "pointwise_names",
    "polar",
    "pow",
    "prelu",
    "preserve_format",
    "prod",
    "promote_types",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reset_peak_memory_stats",
    "reshape",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "rms_norm",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "seed",
    "select",
    "select_scatter",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_memory_limit",
    "set_num_threads",
    "set_rng_state",
    "set_warn_always",
    "sgn",
    "short",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "slice_scatter",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "softshrink",
    "sort",
    "special_airy_ai",
    "special_bessel_j0",
    "special_bessel_j1",
    "special_bessel_y0",
    "special_bessel_y1",
    "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v",
    "special_chebyshev_polynomial_w",
    "special_entr",
    "special_erfcx",
    "special_hermite_polynomial_h",
    "special_hermite_polynomial_he",
    "special_i0e",
    "special_i1",
    "special_i1e",
    "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
    "special_log_ndtr",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_ndtr",
    "special_ndtri",
    "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1",
    "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w",
    "special_spherical_bessel_j0",
    "special_xlog1py",
    "special_zeta",
    "split",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "threshold",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unbind",
    "unflatten",
    "unique",
    "unique_consecutive",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "upsample",
    "var",
    "var_mean",
    "vdot",
    "view_as_complex",
    "view_as_real",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "zeros",
    "zeros_like",
]
