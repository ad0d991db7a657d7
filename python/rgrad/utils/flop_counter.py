"""Counts the floating point operations of a block, by operation and by module."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any, Self
from warnings import warn

from .. import _core
from ..autograd._flops import counted
from ..autograd._profiler_events import Counted, operations
from ..autograd.profiler import Recorder
from ..nn.modules._running_modules import Running, RunningModules

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

Formula = Callable[..., int]

#: Formulas of users, by the name of the operation.
flop_registry: dict[str, Formula] = {}

_SUFFIXES = ("", "K", "M", "B", "T")
_GLOBAL = "Global"


def _operation(name: Any) -> str:
    """``"mm"`` for ``"aten.mm"`` and ``"aten::mm"``."""
    if not isinstance(name, str):
        raise ValueError(
            f"register_flop_formula(targets): expected each target to be the name of an operation, such as 'aten.mm', "
            f"got {type(name).__name__}"
        )
    return name.removeprefix("aten.").removeprefix("aten::")


def register_flop_formula(targets: str | Iterable[str], get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator that makes a function the formula of operations, for every counter.

    The function gets the shapes of the tensors that the operation gets, each a list, and as ``out_shape`` that of its
    first result; it returns a number.

    Args:
        targets: Names of operations as the profiler shows them: ``"aten.tanh"`` or ``"tanh"``.
        get_raw: Must be False: operations are counted after they have run, when their tensors may be gone.

    Raises:
        ValueError: A target is no string, or ``get_raw`` is True.
    """
    if get_raw:
        raise ValueError("register_flop_formula: get_raw=True is not supported; the formula gets shapes")
    names = [
        _operation(t) for t in ([targets] if isinstance(targets, str) or not isinstance(targets, Iterable) else targets)
    ]

    def register(formula: Formula) -> Formula:
        for name in names:
            flop_registry[name] = formula
        return formula

    return register


def _suffix(number: int) -> str:
    """The suffix under which numbers of this size are shown, with one to four digits before the point."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def _with_suffix(number: int, suffix: str) -> str:
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def _share(number: int, total: int) -> str:
    return "0%" if total == 0 else f"{number / total:.2%}"


class _Modules:
    """Which modules were running when, on the thread that made it."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.running: list[tuple[str, ...]] = []
        self._thread = get_ident()
        self._names: dict[int, str] = {}
        # An address stands for an object as long as that lives.
        self._alive: list[object] = []
        self._watch = RunningModules(self._enter, self._leave)

    def _name(self, module: Any) -> str:
        """``Sequential.0`` for the first child of a module that was called from outside."""
        if id(module) not in self._names:
            self._names[id(module)] = type(module).__name__
            self._alive.append(module)
        name = self._names[id(module)]
        for child, inner in module.named_children():
            if id(inner) not in self._names:
                self._names[id(inner)] = f"{name}.{child}"
                self._alive.append(inner)
        return name

    def _note(self, running: tuple[str, ...]) -> None:
        if get_ident() == self._thread:
            self.times.append(_core._profiler_clock()[0])
            self.running.append(running)

    def _enter(self, module: Any, around: Running[tuple[str, ...]] | None) -> tuple[str, ...]:
        running = (*(around.state if around else ()), self._name(module))
        self._note(running)
        return running

    def _leave(self, running: tuple[str, ...]) -> None:
        self._note(running[:-1])

    def stop(self) -> None:
        self._watch.stop()
        self._alive = []

    def at(self, time: int) -> tuple[str, ...]:
        """The modules that were running at a time."""
        i = bisect_right(self.times, time)
        return self.running[i - 1] if i else ()


class FlopCounterMode:
    """Counts floating point operations in a block: matrix products, convolutions, attention, and what has a formula.

    Operations are counted as they run, those of backward with the module whose forward caused them. A multiplication
    and an addition are two. After the block a table is printed::

        with FlopCounterMode() as counter:
            model(x).sum().backward()
        counter.get_total_flops()

    Args:
        mods: Not needed.
        depth: How many levels of modules the table shows.
        display: Whether it is printed when the block ends.
        custom_mapping: Formulas for this counter, as those of :func:`register_flop_formula`, by name.

    Raises:
        ValueError: A key of ``custom_mapping`` is no string.
        RuntimeError: The block is entered twice.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[str, Formula] | None = None,
    ) -> None:
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth = depth
        self.display = display
        self._formulas = {_operation(name): formula for name, formula in (custom_mapping or {}).items()}
        self._recorder: Recorder | None = None
        self._modules: _Modules | None = None
        self._found: list[Counted] = []

    def __enter__(self) -> Self:
        if self._recorder is not None:
            raise RuntimeError("FlopCounterMode: its block is running; make another counter for a block inside")
        self._found = []
        self._modules = _Modules()
        self._recorder = Recorder(shapes=True)
        self._recorder.start()
        return self

    def __exit__(self, *error: object) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            raise AssertionError("FlopCounterMode: its block ends before it has begun")
        if self._modules is not None:
            self._modules.stop()
        self._found = operations(recorder.stop())
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, operation: Counted) -> tuple[str, int] | None:
        formula = self._formulas.get(operation.name) or flop_registry.get(operation.name)
        if formula is None:
            return counted(operation.name, operation.inputs, operation.outputs, operation.flops)
        out = operation.outputs[0] if operation.outputs else None
        return operation.name, formula(*operation.inputs, out_shape=out)

    @property
    def flop_counts(self) -> dict[str, dict[str, int]]:
        """The counts so far: by module, and by operation. ``Global`` has all of them."""
        if self._recorder is not None:
            self._found = operations(self._recorder.so_far())
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        forward: dict[int, tuple[str, ...]] = {}
        for operation in self._found:
            modules = self._modules.at(operation.start) if self._modules is not None else ()
            if operation.is_backward:
                modules = forward.get(operation.sequence, ())
            elif operation.sequence >= 0:
                forward[operation.sequence] = modules
            found = self._count(operation)
            if found is not None:
                for module in {_GLOBAL, *modules}:
                    counts[module][f"aten.{found[0]}"] += found[1]
        return counts

    def get_total_flops(self) -> int:
        """The count of the whole block, or so far."""
        return sum(self.flop_counts[_GLOBAL].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The counts by module (``"Global"`` for all) and by operation (``"aten.mm"``)."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table.

        Args:
            depth: How many levels of modules it shows; by default those of the counter, None there for all.
        """
        depth = self.depth if depth is None else depth
        counts = self.flop_counts
        total = sum(counts[_GLOBAL].values())
        suffix = _suffix(total)

        def rows(module: str, indent: int) -> list[list[str]]:
            pad = " " * indent
            own = sum(counts[module].values())
            lines = [[pad + module, _with_suffix(own, suffix), _share(own, total)]]
            for name, number in counts[module].items():
                lines.append([f"{pad} - {name}", _with_suffix(number, suffix), _share(number, total)])
            return lines

        found: list[list[str]] = []
        whole = False
        for module in sorted(counts):
            level = module.count(".") + 1
            if module == _GLOBAL or (depth is not None and level > depth):
                continue
            whole = whole or sum(counts[module].values()) >= total
            found += rows(module, level - 1)
        if counts[_GLOBAL] and not whole:
            # A line for all stands above only if no module has everything.
            found = rows(_GLOBAL, 0) + [[" " + first, *rest] for first, *rest in found]
        return _table(["Module", "FLOP", "% Total"], found or [[_GLOBAL, "0", "0%"]])


def _table(headers: list[str], rows: list[list[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(len(h) + (2 if i else 0), *(len(r[i]) for r in rows)) for i, h in enumerate(headers)]

    def line(cells: list[str]) -> str:
        first, *rest = cells
        return "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))])

    return "\n".join([line(headers), line(["-" * w for w in widths]), *(line(r) for r in rows)])
