"""Jacobians for gradient checks: by central differences, and by the engine.

All matrices are float64 NumPy arrays of shape (parts of the input, parts of the output). A real number is one part; a
complex one is two, the real part before the imaginary one. So the Jacobian of a complex function has real numbers, and
the gradient of PyTorch's convention, ds/dx + i ds/dy, has the parts of a column.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ..._runtime.info import finfo
from ._error import BadGradient

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Outputs or inputs of a function as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_differentiable(value: Any) -> bool:
    """Whether this is a tensor of real or complex floating point numbers."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.dtype.is_complex)


def array_of(tensor: Tensor) -> Any:
    """The tensor's values as an array; on the CPU its memory: writes go to the tensor, past version counters."""
    return tensor.numpy(force=True)


def parts_of(tensor: Tensor, as_complex: bool | None = None) -> Any:
    """The parts of the tensor's values, a flat array; if ``as_complex``, a real tensor has imaginary parts of 0."""
    import numpy as np

    array = array_of(tensor).reshape(-1)
    if as_complex and not tensor.dtype.is_complex:
        array = array.astype(np.complex128)
    return np.ascontiguousarray(array).view(array.real.dtype) if array.dtype.kind == "c" else array


def part_count(tensor: Tensor) -> int:
    """How many real numbers the tensor holds."""
    return tensor.numel() * (2 if tensor.dtype.is_complex else 1)


def _is_double(tensor: Tensor) -> bool:
    return tensor.dtype in (_core.float64, _core.complex128)


def _memory_of(tensor: Tensor) -> Any:
    """The memory of a tensor as an array of parts: of complex numbers with a last dimension of 2."""
    return array_of(_core.view_as_real(tensor.detach().resolve_conj()) if tensor.dtype.is_complex else tensor)


class FiniteDifferences:
    """A function at a point, to be evaluated around it.

    Tensors of less than double precision or on another device are replaced by float64 copies on the CPU, unless the
    function does not take them or does not answer in float64: then :attr:`promoted` is False and :attr:`obstacle`
    says why.

    :attr:`arrays` has the memory of the wanted inputs, of complex numbers as pairs in a last dimension.

    Perturbations are written into the memory of the inputs, so that a function that reaches them by another way than
    its arguments sees them too; the values are put back whatever happens. Inputs on a device are written by copies of
    :attr:`arrays`.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        inputs: Sequence[Any],
        wanted: Sequence[int],
        outputs: Sequence[int],
        like: Sequence[Tensor],
        eps: float,
    ) -> None:
        self.fn = fn
        self.inputs = tuple(inputs)
        # Positions of the inputs to differentiate by, and of the outputs to differentiate.
        self.wanted = tuple(wanted)
        self.outputs = tuple(outputs)
        # What is known of these outputs where nothing is perturbed: elements, parts.
        self.counts = tuple(out.numel() for out in like)
        self.sizes = tuple(part_count(out) for out in like)
        self.complex_inputs = tuple(inputs[i].dtype.is_complex for i in wanted)
        self.complex_outputs = tuple(out.dtype.is_complex for out in like)
        self.eps = eps
        self.promoted = False
        self.obstacle = ""
        kinds = [x.dtype for x in inputs if is_differentiable(x)]
        # Unit roundoff of what the function computes with.
        self.roundoff = max((finfo(kind.to_real()).eps for kind in kinds), default=finfo(_core.float64).eps)
        self.low_precision = any(not _is_double(self.inputs[i]) for i in wanted)
        self.low_roundoff = self.roundoff if self.low_precision else 0.0
        if self.low_precision or any(self.inputs[i].device.type != "cpu" for i in wanted):
            self._promote()
        if not self.promoted:
            # Memory that must not be written is copied.
            self.inputs = tuple(
                x.detach().clone().requires_grad_(x.requires_grad)
                if i in self.wanted
                and x.device.type == "cpu"
                and (x.is_conj() or x.is_neg() or not array_of(x).flags.writeable)
                else x
                for i, x in enumerate(self.inputs)
            )
        self.arrays = [_memory_of(self.inputs[i]) for i in self.wanted]
        self._remote = [
            (self.inputs[i].data, array)
            for i, array in zip(self.wanted, self.arrays, strict=True)
            if self.inputs[i].device.type != "cpu"
        ]

    def _promote(self) -> None:
        copies = tuple(
            x.detach()
            .cpu()
            .to(_core.complex128 if x.dtype.is_complex else _core.float64, copy=True)
            .requires_grad_(x.requires_grad)
            if is_differentiable(x)
            else x.cpu()
            if isinstance(x, Tensor)
            else x
            for x in self.inputs
        )
        try:
            outs = as_tuple(self.fn(*copies))
            chosen = [outs[i] for i in self.outputs]
        except Exception as error:
            self.obstacle = f"it raised {type(error).__name__} for float64 copies of its inputs on the CPU: {error}"
            return
        for i, out, size in zip(self.outputs, chosen, self.sizes, strict=True):
            if not isinstance(out, Tensor) or not _is_double(out) or part_count(out) != size:
                self.obstacle = f"for float64 copies of its inputs, output {i} is {getattr(out, 'dtype', type(out))}"
                return
        self.promoted = True
        self.inputs = copies
        self.roundoff = finfo(_core.float64).eps

    def _upload(self) -> None:
        for memory, array in self._remote:
            values = _core.from_numpy(array)
            memory.copy_(_core.view_as_complex(values) if memory.dtype.is_complex else values)

    def _outputs(self) -> list[Tensor]:
        self._upload()
        outs = as_tuple(self.fn(*self.inputs))
        if self.outputs and len(outs) <= max(self.outputs):
            raise IndexError(
                f"list index out of range: the function gives {len(outs)} outputs where its inputs are perturbed, and "
                f"more where they are not"
            )
        return [outs[i] for i in self.outputs]

    def _values(self) -> list[Any]:
        values = [parts_of(out) for out in self._outputs()]
        self._check_sizes(values)
        return values

    def _check_sizes(self, values: Sequence[Any]) -> None:
        for i, value, count, size in zip(self.outputs, values, self.counts, self.sizes, strict=True):
            if value.size != size:
                raise RuntimeError(
                    f"gradcheck: output {i} of the function has {count} elements, but {value.size * count // size} "
                    "where the inputs are perturbed"
                    if size
                    else f"gradcheck: output {i} of the function has elements only where the inputs are perturbed"
                )

    def _both(self, move: Callable[[float], None], index: Any = None) -> tuple[list[Any], list[Any]]:
        """The values with the inputs moved by ``-eps`` and by ``eps``.

        Raises:
            AssertionError: Shapes or dtypes differ.
        """
        import numpy as np

        sides = []
        for step in (-self.eps, self.eps):
            move(step)
            # Kept as they are: the function may give memory that it writes again.
            sides.append([(out.shape, out.dtype, np.array(parts_of(out))) for out in self._outputs()])
        where = "" if index is None else f"on index {index} "
        for low, high in zip(*sides, strict=True):
            for what, a, b in (("shape", low[0], high[0]), ("dtype", low[1], high[1])):
                if a != b:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by "
                        f"{self.eps}, but got: {what}s {a} and {b}."
                    )
        values = [[value for _, _, value in side] for side in sides]
        self._check_sizes(values[0])
        return values[0], values[1]

    def jacobians(self) -> list[list["Matrix"]]:
        """Central differences with step ``eps``: for each output, one matrix for each wanted input."""
        import numpy as np

        per_input = []
        for array, paired in zip(self.arrays, self.complex_inputs, strict=True):
            rows = [np.empty((array.size, size)) for size in self.sizes]
            for k, index in enumerate(np.ndindex(array.shape)):
                with np.errstate(all="ignore"):
                    step = self._central(array, index, rows, k, paired)
                    for row in rows:
                        row[k] /= step
            per_input.append(rows)
        return [list(matrices) for matrices in zip(*per_input, strict=True)] if per_input else []

    def _central(self, array: Any, index: Any, rows: list["Matrix"], k: int, paired: bool) -> float:
        middle = array[index]
        made = []

        def move(step: float) -> None:
            array[index] = middle + step
            made.append(float(array[index]))

        try:
            for row, low, high in zip(rows, *self._both(move, index[:-1] if paired else index), strict=True):
                row[k] = high
                row[k] -= low
        finally:
            array[index] = middle
            self._upload()
        # The step that was really made: eps itself is not representable at most points.
        return made[1] - made[0]

    def directional(self, which: int, direction: Any) -> list[Any]:
        """Central differences along ``direction`` (shape of the memory): for each output a vector."""
        import numpy as np

        array = self.arrays[which]
        middle = array.copy()

        def move(step: float) -> None:
            array[...] = middle + step * direction

        try:
            low, high = self._both(move)
        finally:
            array[...] = middle
            self._upload()
        return [(b.astype(np.float64) - a.astype(np.float64)) / (2 * self.eps) for a, b in zip(low, high, strict=True)]

    def probe(self, which: int, index: Any, output: int, entry: int, step: float) -> tuple[float, float]:
        """One entry of one output with one element moved by ``step``; and the step that was really made."""
        array = self.arrays[which]
        middle = array[index]
        try:
            array[index] = middle + step
            made = float(array[index]) - float(middle)
            return float(self._values()[output][entry]), made
        finally:
            array[index] = middle
            self._upload()


def vjp(output: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor | None, ...]:
    """One backward pass that keeps the graph."""
    result: tuple[Tensor | None, ...] = _core._run_backward(
        (output,), (cotangent,), True, False, tuple(inputs), True, False
    )
    return result


def analytical(output: Tensor, inputs: Sequence[Tensor], check_dtypes: bool) -> list["Matrix"]:
    """The Jacobian of one output by one backward pass for each of its parts, over one graph.

    The cotangent of a real part is 1, that of an imaginary one is i. Raises BadGradient for gradients of another size,
    or of another dtype if ``check_dtypes``.
    """
    import numpy as np

    rows = [np.zeros((part_count(output), part_count(x))) for x in inputs]
    basis = _core.zeros(tuple(output.shape), dtype=output.dtype, device="cpu")
    cotangent = _memory_of(basis).reshape(-1)
    for j in range(cotangent.size):
        cotangent[j] = 1.0
        for row, x, grad in zip(rows, inputs, vjp(output, inputs, basis.to(output.device)), strict=True):
            if grad is not None:
                check_gradient(grad, x, check_dtypes)
                row[j] = parts_of(grad, x.dtype.is_complex)
        cotangent[j] = 0.0
    return [row.T for row in rows]


def check_gradient(grad: Tensor, x: Tensor, check_dtypes: bool) -> None:
    """Raise BadGradient unless ``grad`` has the size (and dtype) of ``x``."""
    if check_dtypes and grad.dtype != x.dtype:
        raise BadGradient(f"Gradient has dtype mismatch: got {grad.dtype} for an input of {x.dtype}")
    if grad.shape != x.shape:
        raise BadGradient(
            f"Analytical gradient has incorrect size: got {tuple(grad.shape)} for an input of {tuple(x.shape)}"
        )


def quasi_random(seed: int, size: int) -> Any:
    """``size`` quasi-random numbers in [0, 1): multiples of the golden ratio without their whole part."""
    import numpy as np

    return (np.arange(1, size + 1) * 0.6180339887498949 + seed * 0.7548776662466927) % 1.0


def nondeterminism(output: Tensor, inputs: Sequence[Tensor], dense_only: bool = False) -> float:
    """The largest difference between backward passes that should be equal, for several cotangents."""
    import numpy as np

    worst = 0.0
    size = part_count(output)
    patterns = [2 * quasi_random(0, size) - 1]
    if not dense_only and size:
        patterns += [np.eye(1, size, j)[0] for j in sorted({0, size - 1})]
    for pattern in patterns:
        cotangent = cotangent_of(pattern, output)
        first, second = vjp(output, inputs, cotangent), vjp(output, inputs, cotangent)
        for a, b in zip(first, second, strict=True):
            if (a is None) != (b is None):
                return float("inf")
            if a is None or b is None or a.numel() == 0:
                continue
            x, y = parts_of(a), parts_of(b)
            equal = x == y
            if equal.all():
                continue
            x, y = x.astype(np.float64), y.astype(np.float64)
            same = equal | (np.isnan(x) & np.isnan(y))
            if not same.all():
                worst = max(worst, float(np.nanmax(np.where(same, 0.0, np.abs(x - y)), initial=0.0)) or float("inf"))
    return worst


def cotangent_of(values: Any, output: Tensor) -> Tensor:
    """A float64 array of parts as a tensor of the shape, dtype and device of ``output``."""
    import numpy as np

    if output.dtype.is_complex:
        values = np.ascontiguousarray(values).reshape(-1).view(np.complex128)
    made = _core.from_numpy(values.reshape(tuple(output.shape)))
    if made.dtype != output.dtype:
        made = made.to(output.dtype)
    return made if output.device.type == "cpu" else made.to(output.device)
