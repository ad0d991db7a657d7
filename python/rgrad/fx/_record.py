"""The calls of one run of a program: what exporters read.

A mode of ``__torch_function__`` sees every function that is called. Those that depend on the inputs are recorded, with
values in place of tensors; everything else has run, and is a constant of the program.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.size import Size
from ..autograd.grad_mode import no_grad
from ..overrides import TorchFunctionMode, redispatch_function
from ..utils._pytree import tree_flatten, tree_map
from ._sizes import Dimension, SymbolicInt


class RecordError(RuntimeError):
    """A program that cannot be recorded as a graph, with the reason."""


@dataclass(eq=False)
class Value:
    """A tensor of a recorded program.

    Attributes:
        kind: ``"input"``, ``"named"`` (a parameter or buffer), ``"constant"`` or ``"result"``.
        shape: The sizes in the recorded run.
        dtype: Its dtype.
        name: The name of an input, a parameter or buffer; else empty.
        tensor: The numbers of what is no result.
        number: Its place among all values.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: Any
    name: str = ""
    tensor: Tensor | None = None
    number: int = 0


@dataclass(eq=False)
class Call:
    """A function that was called, with values in place of tensors."""

    func: Any
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    place: str


@dataclass
class Recording:
    """The calls of a run in their order.

    Attributes:
        inputs: A value for each tensor of the arguments.
        named: The parameters and buffers that were used, by name.
        calls: What was called.
        outputs: The leaves of the result: values and other objects.
        spec: The tree of the result.
        values: All values.
    """

    inputs: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    spec: Any = None
    values: list[Value] = field(default_factory=list)


# They tell of a tensor what is no tensor and no element of one.
_REFLECTED = {
    "add": "add",
    "radd": "add",
    "rsub": "rsub",
    "mul": "mul",
    "rmul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "rand": "bitwise_and",
    "or": "bitwise_or",
    "ror": "bitwise_or",
    "xor": "bitwise_xor",
    "rxor": "bitwise_xor",
    "invert": "bitwise_not",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
# They look at elements, and give what is no tensor.
_REVEALING = {
    "__bool__",
    "__complex__",
    "__contains__",
    "__float__",
    "__index__",
    "__int__",
    "allclose",
    "equal",
    "is_nonzero",
    "item",
    "numpy",
    "__array__",
    "tolist",
}
RANDOM = {
    "alpha_dropout",
    "bernoulli",
    "dropout",
    "dropout2d",
    "feature_dropout",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "rrelu",
}


def name_of(func: Any) -> str:
    """The name of what a mode is asked about: ``"add"`` for ``x + 1``, ``"T"`` for the property."""
    name: str = getattr(func, "__name__", type(func).__name__)
    if name in ("__get__", "__set__"):
        name = func.__self__.__name__ + ("" if name == "__get__" else ".setter")
    if name.startswith("__") and name.endswith("__"):
        plain = name.strip("_")
        if plain in _REFLECTED:
            return _REFLECTED[plain]
        if plain.startswith("i") and plain[1:] in _REFLECTED:
            return _REFLECTED[plain[1:]] + "_"
        if plain in ("eq", "ne", "lt", "le", "gt", "ge", "abs", "neg", "pow", "matmul"):
            return plain
    return name


class Recorder(TorchFunctionMode):
    """The mode that records.

    Args:
        named: Parameters and buffers with their names.
        is_leaf: Whether a function of Python is recorded as one call; else those that it calls are.
        fold: What depends on no input is computed; else what depends on parameters is recorded as well.
    """

    def __init__(self, named: Iterable[tuple[str, Tensor]], is_leaf: Callable[[str, Any], bool], fold: bool) -> None:
        super().__init__()
        self.is_leaf, self.fold = is_leaf, fold
        self.recording = Recording()
        # By identity; the tensor is held, so that no other gets its address.
        self._bound: dict[int, tuple[Tensor, Value, int]] = {}
        self._names: dict[int, tuple[Tensor, str, int]] = {}
        for name, tensor in named:
            self._names.setdefault(id(tensor), (tensor, name, tensor._version))

    def value(
        self, kind: str, tensor: Tensor, name: str = "", keeps: bool = True, shape: tuple[int, ...] | None = None
    ) -> Value:
        made = Value(
            kind,
            tuple(int(s) for s in (tuple(tensor.shape) if shape is None else shape)),
            tensor.dtype,
            name,
            tensor if keeps else None,
            len(self.recording.values),
        )
        self.recording.values.append(made)
        self._bound[id(tensor)] = tensor, made, tensor._version
        return made

    def add_input(self, tensor: Tensor, name: str) -> None:
        """Take a tensor for an input."""
        self.recording.inputs.append(self.value("input", tensor, name))

    def find(self, tensor: Tensor) -> Value:
        """The value of a tensor; a constant if it is new."""
        found = self._bound.get(id(tensor))
        if found is not None:
            _, value, version = found
            if tensor._version != version and value.kind != "constant":
                raise RecordError(
                    f"a tensor of shape {tuple(value.shape)} was changed in place through a view of it, or by what is "
                    f"no operation, and is used again (at {_place()}). A graph has no such writes: use the form of the "
                    "operation that gives a new tensor"
                )
            if tensor._version == version:
                return value
        known = self._names.get(id(tensor))
        if known is not None:
            value = self.value("named", tensor, known[1])
            self.recording.named[known[1]] = value
            return value
        # A copy: what is written to it later is none of the value that is used here.
        with _core.DisableTorchFunction():
            copied = tensor.detach().clone()
        value = self.value("constant", tensor)
        value.tensor = copied
        return value

    def depends(self, leaf: Any) -> bool:
        """Whether an argument is made of inputs; of parameters, too, if those are not folded."""
        if isinstance(leaf, SymbolicInt):
            return True
        if not isinstance(leaf, Tensor):
            return False
        found = self._bound.get(id(leaf))
        if found is not None and found[1].kind in ("input", "result"):
            return True
        return not self.fold and id(leaf) in self._names

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        leaves = _leaves((args, kwargs))
        dependent = any(map(self.depends, leaves)) or name in RANDOM
        if not dependent:
            return func(*args, **kwargs)
        if name in ("shape", "size"):
            return self._sizes(func, args, kwargs)
        if name == "numel":
            return Size(self._sizes(Tensor.size, args[:1], {})).numel()
        if name in _REVEALING and any(isinstance(leaf, Tensor) and self.depends(leaf) for leaf in leaves):
            raise RecordError(
                f"Tensor.{name} of a value that depends on the inputs (at {_place()}): what the program does then may "
                "differ from input to input, and a graph is the same for all. Compute with tensors instead (where, "
                "masked_fill)"
            )
        if _is_python(func) and not self.is_leaf(name, func):
            return self._inside(func, name, types, args, kwargs)
        # Before the call, which may write to them.
        own_args, own_kwargs = self._with_values((args, kwargs))
        place = _place()
        result = func(*args, **kwargs)
        written = self._written(name, args, result)
        if written is not None:
            made: Any = self.value("result", written, keeps=False)
        elif any(isinstance(leaf, Tensor) for leaf in _leaves(result)):
            made = tree_map(self._result, result)
        else:
            return result
        self.recording.calls.append(Call(func, name, own_args, own_kwargs, made, place))
        return result

    def _inside(self, func: Any, name: str, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record what a function of Python calls; itself, if its results come from what no mode is asked about."""
        own_args, own_kwargs = self._with_values((args, kwargs))
        before = len(self.recording.calls)
        with self:
            result = redispatch_function(func, types, args, kwargs)
        tensors = [leaf for leaf in _leaves(result) if isinstance(leaf, Tensor)]
        if all(id(tensor) in self._bound or id(tensor) in self._names for tensor in tensors):
            return result
        del self.recording.calls[before:]
        made = tree_map(self._result, result)
        self.recording.calls.append(Call(func, name, own_args, own_kwargs, made, _place()))
        return result

    def _result(self, leaf: Any) -> Any:
        return self.value("result", leaf, keeps=False) if isinstance(leaf, Tensor) else leaf

    def _with_values(self, tree: Any) -> Any:
        return _map(lambda leaf: self.find(leaf) if isinstance(leaf, Tensor) else leaf, tree)

    def _written(self, name: str, args: tuple[Any, ...], result: Any) -> Tensor | None:
        """The tensor that a call has written in place."""
        if name == "__setitem__" or name.endswith(".setter"):
            target: Tensor = args[0]
            return target
        if name.endswith("_") and not name.startswith("__") and args and result is args[0]:
            return args[0] if isinstance(args[0], Tensor) else None
        return None

    def _sizes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        found = func(*args, **kwargs)
        if not self.depends(tensor):
            return found
        value = self.find(tensor)
        if isinstance(found, tuple):
            return Size(SymbolicInt(s, Dimension(value, axis)) for axis, s in enumerate(found))
        axis = args[1] if len(args) > 1 else kwargs["dim"]
        return SymbolicInt(found, Dimension(value, axis % len(value.shape)))

    def check_names(self) -> None:
        """Refuse a program that has written to its parameters or buffers."""
        for tensor, name, version in self._names.values():
            if tensor._version != version:
                raise RecordError(
                    f"the program writes to {name!r} while it runs, which a graph cannot do. Export it in eval mode "
                    "(model.eval()), or keep the new value as a result"
                )


def _is_python(func: Any) -> bool:
    return isinstance(func, types.FunctionType)


def _place() -> str:
    return _core._describe_call_site() or "an unknown line"


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of arguments with slices inside; tuples of other classes, such as Size, become plain ones."""
    if isinstance(tree, slice):
        return slice(*(_map(function, part) for part in (tree.start, tree.stop, tree.step)))
    if isinstance(tree, (tuple, list)):
        made = [_map(function, part) for part in tree]
        return made if isinstance(tree, list) else tuple(made)
    if isinstance(tree, dict):
        return {key: _map(function, part) for key, part in tree.items()}
    return function(tree)


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    _map(found.append, tree)
    return found


map_arguments, leaves_of = _map, _leaves


def record(
    run: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    named: Iterable[tuple[str, Tensor]] = (),
    names: Iterable[str] = (),
    is_leaf: Callable[[str, Any], bool] = lambda name, func: True,
    fold: bool = True,
) -> Recording:
    """Run a program, and give its calls.

    Args:
        run: The function or module.
        args: Its arguments.
        kwargs: Its keyword arguments.
        named: Parameters and buffers with their names.
        names: A name for each tensor among the arguments.
        is_leaf: Whether a function of Python, by its name, is recorded as one call.
        fold: Compute what depends on no input; else what depends on parameters is recorded as well.

    Raises:
        RecordError: What the program does is no graph: it looks at elements, writes through views, or to parameters.
    """
    recorder = Recorder(named, is_leaf, fold)
    with no_grad():
        # Copies: the program may write to its inputs.
        own, named_own = tree_map(lambda x: x.detach().clone() if isinstance(x, Tensor) else x, (args, kwargs))
        tensors = [leaf for leaf in tree_flatten((own, named_own))[0] if isinstance(leaf, Tensor)]
        given = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        for tensor, example, name in zip(tensors, given, names, strict=True):
            recorder.add_input(tensor, name)
            recorder.recording.inputs[-1].tensor = example
        with recorder:
            result = run(*own, **named_own)
    recording = recorder.recording
    outputs, recording.spec = tree_flatten(result)
    recording.outputs = [recorder.find(leaf) if isinstance(leaf, Tensor) else leaf for leaf in outputs]
    for out, leaf in zip(recording.outputs, outputs, strict=True):
        if isinstance(out, Value) and out.kind == "result":
            out.tensor = leaf
    recorder.check_names()
    return recording
