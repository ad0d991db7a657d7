"""The graph that is written: nodes, numbers and names, made call by call from a pair of recordings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy

from .. import _core
from .._core import Tensor
from ..export._pair import Changed, Pair
from ..fx._record import Call, Value, leaves_of
from ..fx._sizes import Computed, Dimension, SymbolicInt, expression
from ._package import package
from .errors import SymbolicValueError, UnsupportedOperatorError


class _Helper:
    """``onnx.helper``, imported when it is first used: the package is optional."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(package("onnx", "onnx.export").helper, name)


helper: Any = _Helper()

Converter = Callable[..., Any]
F = TypeVar("F", bound=Converter)

# The converters by the names of operations, as `name_of` gives them.
TABLE: dict[str, Converter] = {}

# ONNX's numbers of dtypes, from TensorProto.DataType.
TYPES = {
    _core.float32: 1,
    _core.float64: 11,
    _core.float16: 10,
    _core.bfloat16: 16,
    _core.int64: 7,
    _core.int32: 6,
    _core.int16: 5,
    _core.int8: 3,
    _core.uint8: 2,
    _core.uint16: 4,
    _core.uint32: 12,
    _core.uint64: 13,
    _core.bool: 9,
}
_SIZE_OPERATIONS = {"add": "Add", "sub": "Sub", "mul": "Mul"}


def converts(*names: str) -> Callable[[F], F]:
    """Enter a converter under the names of operations. It gets the graph and the arguments, and gives names of ONNX."""

    def enter(function: F) -> F:
        for name in names:
            if name in TABLE:
                raise AssertionError(f"two converters of {name}")
            TABLE[name] = function
        return function

    return enter


def type_of(dtype: Any) -> int:
    """ONNX's number of a dtype.

    Raises:
        UnsupportedOperatorError: It has none.
    """
    found = TYPES.get(dtype)
    if found is None:
        raise UnsupportedOperatorError(f"onnx.export: tensors of {dtype} have no form in ONNX; convert them before")
    return int(found)


def proto_of(tensor: Tensor, name: str) -> Any:
    """A tensor's numbers for a file."""
    kind = type_of(tensor.dtype)
    own = tensor.detach().cpu().contiguous()
    if own.dtype == _core.bfloat16:
        raw = own.view(_core.int16).numpy().tobytes()
    else:
        raw = numpy.ascontiguousarray(own.numpy(force=True)).tobytes()
    return helper.make_tensor(name, kind, tuple(own.shape), raw, raw=True)


class Graph:
    """Makes the nodes.

    Args:
        pair: The two recordings.
        opset: The version of ONNX's operators.
        names: A name for each input, and further ones that no other value may have.
    """

    def __init__(self, pair: Pair, opset: int, names: Sequence[str]) -> None:
        self.pair, self.opset = pair, opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.names: dict[int, str] = {}
        self._taken: set[str] = set(names)
        self._numbers: dict[str, int] = {}
        self._constants: dict[tuple[Any, ...], str] = {}
        self._sizes: dict[Any, str] = {}
        self.call: Call | None = None
        for value, name in zip(pair.first.inputs, names, strict=False):
            self.names[value.number] = name

    # ------------------------------------------------------------------------------------------------------- names

    def fresh(self, base: str) -> str:
        """A name that nothing has."""
        number = self._numbers.get(base, 0)
        while True:
            name = base if number == 0 else f"{base}_{number}"
            number += 1
            if name not in self._taken:
                break
        self._numbers[base] = number
        self._taken.add(name)
        return name

    def name(self, x: Any, dtype: Any = None) -> str:
        """The name of a value, a name itself, or a number as a constant of a dtype."""
        if isinstance(x, str):
            return x
        if isinstance(x, Value):
            if x.number not in self.names:
                self.names[x.number] = self._stored(x)
            return self.names[x.number]
        if isinstance(x, SymbolicInt):
            scalar = self.op("Squeeze", self.size(x), self.ints([0]))
            return scalar if dtype in (None, _core.int64) else self.op("Cast", scalar, to=type_of(dtype))
        if isinstance(x, Changed):
            x.refuse()
        return self.number(x, dtype)

    def _stored(self, value: Value) -> str:
        if value.kind == "result":
            self.refuse("one of its tensors is a result that ONNX has in another form (positions of a pool)")
        assert value.tensor is not None
        if value.kind == "named":
            name = value.name if value.name not in self._taken else self.fresh(value.name)
            self._taken.add(name)
            self.parameters.append(name)
            self.initializers[name] = proto_of(value.tensor, name)
            return name
        return self.tensor(value.tensor)

    # --------------------------------------------------------------------------------------------------- constants

    def tensor(self, tensor: Tensor, base: str = "constant") -> str:
        """The name of a constant tensor."""
        proto = proto_of(tensor, "")
        key = proto.data_type, tuple(proto.dims), proto.raw_data
        if key not in self._constants:
            name = self.fresh(base)
            proto.name = name
            self.initializers[name] = proto
            self._constants[key] = name
        return self._constants[key]

    def number(self, x: Any, dtype: Any) -> str:
        """The name of a number as a constant without dimensions."""
        if not isinstance(x, (int, float)):
            self.refuse(f"a {type(x).__name__} where a number or a tensor is expected")
        return self.tensor(_core.tensor(x, dtype=dtype, device="cpu"))

    def ints(self, values: Sequence[int]) -> str:
        """The name of a constant with these integers."""
        return self.tensor(_core.tensor([int(v) for v in values], dtype=_core.int64, device="cpu").reshape(-1))

    # ------------------------------------------------------------------------------------------------------- sizes

    def dims(self, x: Value) -> tuple[int | None, ...]:
        """The sizes of a value, None for those that the inputs decide."""
        return self.pair.dims(x)

    def static(self, x: Value, axis: int, why: str) -> int:
        """A size that must be the same for all inputs.

        Raises:
            SymbolicValueError: The inputs decide it.
        """
        found = self.dims(x)[axis]
        if found is None:
            self.refuse(f"dimension {axis} must be static: {why}")
        return found

    def size_of(self, x: Value, axis: int) -> Any:
        """A size as a number, or as one that the inputs decide."""
        found = self.dims(x)[axis]
        return SymbolicInt(x.shape[axis], Dimension(x, axis % len(x.shape))) if found is None else found

    def size(self, x: Any) -> str:
        """The name of a tensor with one size in it."""
        if isinstance(x, Changed):
            x.refuse()
        if isinstance(x, SymbolicInt):
            return self._computed(x.expression)
        if isinstance(x, Value):
            return self.op("Reshape", self.cast(x, _core.int64), self.ints([1]))
        return self.ints([x])

    def _computed(self, made: Any) -> str:
        if isinstance(made, int):
            return self.ints([made])
        key = (made.value.number, made.axis) if isinstance(made, Dimension) else made
        if key in self._sizes:
            return self._sizes[key]
        found: str
        if isinstance(made, Dimension):
            known = self.dims(made.value)[made.axis]
            if known is not None:
                return self.ints([known])
            found = self.op("Shape", made.value, start=made.axis, end=made.axis + 1, base="size")
        elif made.name == "neg":
            found = self.op("Neg", self._computed(made.terms[0]), base="size")
        else:
            a, b = (self._computed(term) for term in made.terms)
            if made.name in _SIZE_OPERATIONS:
                found = self.op(_SIZE_OPERATIONS[made.name], a, b, base="size")
            else:
                rest = self.op("Mod", a, b, base="size")
                found = rest if made.name == "mod" else self.op("Div", self.op("Sub", a, rest), b, base="size")
        self._sizes[key] = found
        return found

    def sizes(self, all_sizes: Sequence[Any]) -> str:
        """The name of a tensor of sizes, each a number or one that the inputs decide."""
        if not any(isinstance(s, (SymbolicInt, Changed, Value)) for s in all_sizes):
            return self.ints(all_sizes)
        return self.op("Concat", *(self.size(s) for s in all_sizes), axis=0, base="sizes")

    def reshape(self, x: Any, target: Sequence[Any]) -> str:
        """A value in another shape. One size that the inputs decide is left to follow from the others."""
        target = list(target)
        for k, s in enumerate(target):
            # 0 keeps the size that is there.
            if isinstance(x, Value) and isinstance(s, SymbolicInt) and s.expression == Dimension(x, k):
                target[k] = 0
        open_sizes = [k for k, s in enumerate(target) if isinstance(s, SymbolicInt)]
        if len(open_sizes) == 1 and not any(
            isinstance(s, int) and not isinstance(s, SymbolicInt) and s < 0 for s in target
        ):
            target[open_sizes[0]] = -1
        return self.op("Reshape", x, self.sizes(target))

    # ------------------------------------------------------------------------------------------------------- nodes

    def op(self, kind: str, *inputs: Any, base: str | None = None, **attributes: Any) -> str:
        """Add a node with one result.

        Args:
            kind: ONNX's name of the operator.
            inputs: Values or names; None for one that is left out.
            base: What the result's name begins with.
            attributes: The operator's attributes; None leaves one out.

        Returns:
            The name of the result.
        """
        return self.several(1, kind, *inputs, base=base, **attributes)[0]

    def several(
        self, outputs: int, kind: str, *inputs: Any, base: str | None = None, **attributes: Any
    ) -> tuple[str, ...]:
        """Add a node with several results, and give their names."""
        names = ["" if x is None else self.name(x) for x in inputs]
        while names and names[-1] == "":
            names.pop()
        begin = base or (self.call.name.strip("_") if self.call is not None else kind.lower())
        made = tuple(self.fresh(begin) for _ in range(outputs))
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(kind, names, list(made), name=f"{made[0]}/{kind}", **given))
        return made

    def cast(self, x: Any, dtype: Any) -> str:
        """A value or number in a dtype."""
        if isinstance(x, Value):
            return self.name(x) if x.dtype == dtype else self.op("Cast", x, to=type_of(dtype))
        if isinstance(x, str):
            return self.op("Cast", x, to=type_of(dtype))
        return self.name(x, dtype)

    def cast_from(self, name: str, source: Any, target: Any) -> str:
        """What has the dtype ``source``, in another one."""
        return name if source == target else self.cast(name, target)

    def promoted(self, *values: Any) -> Any:
        """The dtype in which values and numbers are compared or computed."""
        found: Any = None
        for x in values:
            one: Any = x
            if isinstance(x, Value):
                one = _core.empty([1] * min(len(x.shape), 1), dtype=x.dtype, device="cpu")
            if isinstance(x, SymbolicInt):
                one = int(x)
            found = one if found is None else _Both(found, one)
        return found.dtype if isinstance(found, (Tensor, _Both)) else _core.tensor(found).dtype

    # ------------------------------------------------------------------------------------------------------- calls

    @property
    def result(self) -> Value:
        """The first result of the call that is converted."""
        assert self.call is not None
        return next(leaf for leaf in leaves_of(self.call.result) if isinstance(leaf, Value))

    def refuse(self, what: str) -> NoReturn:
        """Refuse the call that is converted.

        Raises:
            SymbolicValueError: Always.
        """
        name, place = (self.call.name, self.call.place) if self.call is not None else ("?", "?")
        raise SymbolicValueError(f"onnx.export: {name!r} (at {place}) has no form in ONNX with these arguments: {what}")

    def convert(self, at: int) -> None:
        """Make the nodes of a call.

        Raises:
            UnsupportedOperatorError: The operation has no form in ONNX.
            SymbolicValueError: It has none with these arguments.
        """
        call = self.pair.first.calls[at]
        args, kwargs = self.pair.arguments(at)
        converter = TABLE.get(call.name)
        base = call.name[:-1]
        if converter is None and call.name.endswith("_") and not call.name.startswith("__"):
            converter = TABLE.get(base)
        if converter is None:
            raise UnsupportedOperatorError(
                f"onnx.export: the operation {call.name!r} (at {call.place}) has no form in ONNX that rgrad "
                "writes. Compute it with other operations, or outside of the exported model"
            )
        self.call = call
        try:
            inspect.signature(converter).bind(self, *args, **kwargs)
        except TypeError as error:
            self.refuse(str(error))
        made = converter(self, *args, **kwargs)
        values = [leaf for leaf in leaves_of(call.result) if isinstance(leaf, Value)]
        names = [made] if isinstance(made, str) else list(made)
        if len(names) != len(values):
            self.refuse(f"it gives {len(values)} tensors, of which {len(names)} can be made")
        for value, name in zip(values, names, strict=True):
            if name is not None:
                self.names[value.number] = name
        self.call = None


class _Both:
    """Two operands, for the dtype of what is computed of both."""

    dtype: Any

    def __init__(self, a: Any, b: Any) -> None:
        first = _core.empty(1, dtype=a.dtype) if isinstance(a, _Both) else a
        if not isinstance(first, Tensor) and not isinstance(b, Tensor):
            first = _core.tensor(first)
        self.dtype = _core.result_type(first, b)


__all__ = ["TABLE", "TYPES", "Computed", "Graph", "converts", "expression", "proto_of", "type_of"]
