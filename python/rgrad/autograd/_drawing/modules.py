"""Which module an operation belongs to: from calls that were watched, or from the names of parameters."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from .._guessed_modules import common, guessed
from .._trial import watched_calls
from ..grad_mode import enable_grad
from .walk import Graph, number_of


class Frame(NamedTuple):
    """One box around an operation.

    Attributes:
        key: What is equal for operations in the same box.
        name: The box's name within the one around it.
        kind: The module's class, or "".
        path: The module's full name.
    """

    key: Any
    name: str
    kind: str
    path: str


Path = tuple[Frame, ...]


def is_module(value: object) -> bool:
    """Whether this is a module. This package lies below `nn`, so it asks for what it needs."""
    return all(hasattr(value, name) for name in ("named_modules", "named_parameters", "register_forward_pre_hook"))


def _next_number() -> int:
    """The number that the next node will have; numbers before it are taken."""
    with enable_grad():
        node = _core.ones(1, requires_grad=True).view(1).grad_fn
    assert node is not None
    return number_of(node) + 1


class _Call(NamedTuple):
    start: int
    end: int
    name: str
    kind: str
    takes: tuple[int, ...]


class ModuleCalls:
    """A block in which the calls of a model's modules are noted, so that a drawing knows which module recorded a node.

    Only this model's modules carry hooks, and only inside the block.

    Args:
        model: The model, an ``nn.Module``.

    Raises:
        TypeError: It is none.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with rgrad.autograd.graph.module_calls(model) as calls:
        ...     loss = model(rgrad.ones(2)).sum()
        >>> picture = rgrad.autograd.graph.draw(loss, params=calls)
        >>> "Linear" in picture.svg
        True
    """

    def __init__(self, model: Any) -> None:
        if not is_module(model):
            raise TypeError(f"module_calls: expected an nn.Module, got {type(model).__name__}")
        self.model = model
        self.calls: list[_Call] = []
        self._open: list[tuple[str, int, tuple[int, ...]]] = []
        self._watch: AbstractContextManager[None] | None = None

    def __enter__(self) -> "ModuleCalls":
        if self._watch is not None:
            raise RuntimeError("module_calls: this block was entered already")
        self._watch = watched_calls(self.model, self._before, self._after)
        self._watch.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        watch, self._watch = self._watch, None
        self._open = []
        if watch is not None:
            watch.__exit__(None, None, None)

    def _before(self, name: str, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        takes = tuple(id(a) for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        self._open.append((name, _next_number(), takes))

    def _after(self, name: str, module: Any, _output: Any) -> None:
        # A call that ended in an exception inside of this one may still be open.
        while self._open:
            opened, start, takes = self._open.pop()
            if opened == name:
                self.calls.append(_Call(start, _next_number(), name, type(module).__name__, takes))
                return

    def _paths(self, graph: Graph) -> list[Path]:
        """For each operation the modules around it, outermost first."""
        # By start, and the longer call first where two start together: then a stack gives the nesting.
        calls = sorted(self.calls, key=lambda c: (c.start, -c.end))
        numbers = graph.numbers
        result: list[Path] = []
        stack: list[tuple[int, Frame]] = []
        path: Path = ()
        at = 0
        for number in numbers:
            changed = False
            while at < len(calls) and calls[at].start <= number:
                call = calls[at]
                while stack and stack[-1][0] <= call.start:
                    stack.pop()
                around = stack[-1][1].path if stack else None
                stack.append((call.end, Frame(at, _below(call.name, around), call.kind, call.name)))
                at += 1
                changed = True
            while stack and stack[-1][0] <= number:
                stack.pop()
                changed = True
            if changed:
                path = tuple(frame for _, frame in stack)
            result.append(path)
        return result

    def _users(self, graph: Graph, tensors: list[Tensor]) -> list[tuple[int, int]]:
        """Pairs (input, operation): which operation takes an input of the model that has no gradient, by all we know.

        The first operation with such an operand in the innermost calls that were given the tensor.
        """
        found: list[tuple[int, int]] = []
        numbers = graph.numbers
        for i, tensor in enumerate(tensors):
            given = [c for c in self.calls if id(tensor) in c.takes]
            inner = [c for c in given if not any(o is not c and c.start <= o.start and o.end <= c.end for o in given)]
            for call in inner:
                inside = [k for k, n in enumerate(numbers) if call.start <= n < call.end]
                users = [k for k in inside if graph.cut[k]] or inside
                if users:
                    found.append((i, users[0]))
        return found


def _below(name: str, around: str | None) -> str:
    """The name of a module within the box of another."""
    if not name:
        return ""
    if around and name.startswith(around + "."):
        return name[len(around) + 1 :]
    return name


def paths_by_names(graph: Graph, kinds: Mapping[str, str]) -> list[Path]:
    """Modules by the names of parameters: a guess for graphs recorded without watching.

    An operation that takes ``layer1.conv.weight`` belongs to ``layer1.conv``; one without parameters to what the
    operations before and after it have in common.
    """
    if not any(leaf.name is not None and "." in leaf.name for leaf in graph.leaves):
        return [()] * len(graph.ops)
    known: list[tuple[str, ...] | None] = []
    for leaves in graph.leaf_inputs:
        owners = [tuple(name.split(".")[:-1]) for i in leaves if (name := graph.leaves[i].name) is not None]
        known.append(common(owners) if owners else None)
    cache: dict[tuple[str, ...], Path] = {}
    result = []
    for own in guessed(known):
        if own not in cache:
            names = [".".join(own[: k + 1]) for k in range(len(own))]
            cache[own] = tuple(
                Frame(full, part, kinds.get(full, ""), full) for full, part in zip(names, own, strict=True)
            )
        result.append(cache[own])
    return result


def paths_by_function(graph: Graph) -> list[Path]:
    """Boxes by the function of the user's code that recorded an operation."""
    cache: dict[str | None, Path] = {None: ()}
    result = []
    for site in graph.sites:
        where, _, function = (site or "").rpartition(" in ")
        key = f"{where.rpartition(':')[0]} {function}" if where else None
        if key not in cache:
            cache[key] = (Frame(key, function, "", function),) if function != "<module>" else ()
        result.append(cache[key])
    return result
