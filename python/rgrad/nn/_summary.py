"""A model as a table: its layers with the shapes that they give, parameters, memory and multiply-adds."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._runtime.units import bytes_text
from ..autograd._flops import counted
from ..autograd._profiler_events import Counted, operations
from ..autograd._trial import trial_run, watched_calls, with_sizes_to_come
from ..autograd.grad_mode import no_grad
from ..autograd.profiler import Recorder
from .modules import Module
from .parameter import is_lazy

__all__ = ["summary"]

Shapes = tuple[tuple[int, ...], ...]


class Layer(NamedTuple):
    """A row of a summary. Numbers are of what is not in a row of its own below, so that a column adds up to the total.

    Attributes:
        name: The module's full name; of the model itself "".
        kind: The module's class.
        level: How deep it lies; the model itself is 0.
        input_shapes: Shapes of the tensors that the first call was given.
        output_shapes: Shapes of the tensors that the first call gave; empty if it was not called.
        calls: How often it was called; None if the model was not run.
        parameters: Number of elements of its parameters, each parameter counted once.
        trainable: Those that require grad.
        output_bytes: Bytes of the results of all calls; 0 for modules that call others.
        multiply_adds: See :func:`summary`.
        shared: The first name of a module that comes several times; else None.
    """

    name: str
    kind: str
    level: int
    input_shapes: Shapes
    output_shapes: Shapes
    calls: int | None
    parameters: int
    trainable: int
    output_bytes: int
    multiply_adds: int
    shared: str | None


class Summary:
    """What :func:`summary` gives. ``print`` shows the table, and so do notebooks.

    Args:
        layers: The rows.
        model: The name of the model's class.
        input_bytes: Bytes of the input.
        parameter_bytes: Bytes of parameters.
        buffer_bytes: Bytes of buffers.
        was_run: Whether the model was run.

    Attributes:
        layers: The rows.
        total_parameters: Number of elements of all parameters, each counted once.
        trainable_parameters: Those that require grad.
        multiply_adds: Multiply-adds of one forward pass.
        input_bytes: Bytes of the input.
        output_bytes: Bytes of the results of all modules that call no others.
        parameter_bytes: Bytes of the parameters.
        buffer_bytes: Bytes of the buffers.
        was_run: Whether the model was run.
    """

    def __init__(
        self,
        layers: list[Layer],
        model: str,
        input_bytes: int,
        parameter_bytes: int,
        buffer_bytes: int,
        was_run: bool,
    ) -> None:
        self.layers = layers
        self.model = model
        self.total_parameters = sum(row.parameters for row in layers)
        self.trainable_parameters = sum(row.trainable for row in layers)
        self.multiply_adds = sum(row.multiply_adds for row in layers)
        self.output_bytes = sum(row.output_bytes for row in layers)
        self.input_bytes = input_bytes
        self.parameter_bytes = parameter_bytes
        self.buffer_bytes = buffer_bytes
        self.was_run = was_run

    def _columns(self) -> list[str]:
        columns = ["Layer (type)", "Output shape", "Parameters", "Output memory", "Multiply-adds"]
        return columns if self.was_run else [columns[0], columns[2]]

    def _cells(self) -> list[list[str]]:
        rows = []
        for row, start in zip(self.layers, _branches(self.layers), strict=True):
            name = row.name.rpartition(".")[2] if row.level else ""
            title = f"{start}{name} ({row.kind})" if name else f"{start}{row.kind}"
            parameters = f"as {row.shared or 'the model'}" if row.shared is not None else _number(row.parameters)
            if not self.was_run:
                rows.append([title, parameters])
                continue
            shape = _shapes_text(row.output_shapes) if row.calls else "not called"
            if row.shared is not None or (not row.calls and row.kind in ("ModuleList", "ModuleDict")):
                shape = "–"
            elif row.calls and row.calls > 1:
                shape += f" × {row.calls}"
            memory = bytes_text(row.output_bytes) if row.output_bytes else "–"
            rows.append([title, shape, parameters, memory, _number(row.multiply_adds)])
        return rows

    def _totals(self) -> list[tuple[str, str]]:
        fixed = self.total_parameters - self.trainable_parameters
        totals = [
            ("Parameters", f"{self.total_parameters:,}"),
            ("of these trainable", f"{self.trainable_parameters:,}"),
            ("of these fixed", f"{fixed:,}"),
            ("Memory of parameters", bytes_text(self.parameter_bytes)),
            ("Memory of buffers", bytes_text(self.buffer_bytes)),
        ]
        if self.was_run:
            totals += [
                ("Memory of the input", bytes_text(self.input_bytes)),
                ("Memory of layers' outputs", bytes_text(self.output_bytes)),
                ("Multiply-adds", f"{self.multiply_adds:,}"),
            ]
        return totals

    def __str__(self) -> str:
        columns, cells = self._columns(), self._cells()
        widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
        left = 2 if self.was_run else 1

        def line(row: list[str]) -> str:
            words = [w.ljust(n) if i < left else w.rjust(n) for i, (w, n) in enumerate(zip(row, widths, strict=True))]
            return "  ".join(words).rstrip()

        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        totals = self._totals()
        name_width = max(len(name) for name, _ in totals)
        value_width = max(len(value) for _, value in totals)
        return "\n".join(
            [
                line(columns),
                rule,
                *map(line, cells),
                rule,
                *(f"{name.ljust(name_width)}  {value.rjust(value_width)}" for name, value in totals),
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        left = 2 if self.was_run else 1

        def cell(i: int, text: str, tag: str) -> str:
            side = "left" if i < left else "right"
            return f'<{tag} style="text-align:{side};white-space:pre;padding:1px 8px">{escape(text)}</{tag}>'

        head = "".join(cell(i, text, "th") for i, text in enumerate(self._columns()))
        body = "".join(
            "<tr>" + "".join(cell(i, text, "td") for i, text in enumerate(row)) + "</tr>" for row in self._cells()
        )
        totals = "<br>".join(escape(f"{name}: {value}") for name, value in self._totals())
        return (
            '<table style="font-family:monospace;font-size:12px;border-collapse:collapse">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f'<div style="font-family:monospace;font-size:12px;padding:4px 8px">{totals}</div>'
        )


def summary(
    model: Module,
    input: Any = None,
    *,
    input_size: Sequence[int] | Sequence[Sequence[int]] | None = None,
    dtypes: Sequence[Any] | None = None,
    device: Any = None,
    depth: int = 3,
    training: bool = False,
) -> Summary:
    """Run a model once and list its layers.

    The model is left as it was: buffers, training flags, hooks and the random generators are put back, gradients are
    not computed. Lazy layers get their sizes in a copy. A module that comes several times is counted where it comes
    first, and so is a parameter.

    Multiply-adds are those of matrix products, convolutions, attention and recurrence, wherever in the model they are
    called; a FLOP counter says twice as many. Pointwise operations and reductions are not counted.

    Args:
        model: The model.
        input: What it is called with: a tensor, a tuple or list of arguments, or a dict of keyword arguments.
        input_size: In place of ``input`` the shape of a tensor of random numbers (of zeros for integers), or several.
            Without either the model is not run, and the table has names and parameters only.
        dtypes: With ``input_size`` the dtypes; None: the default dtype.
        device: With ``input_size`` the device; None: that of the model's first parameter.
        depth: How many levels of modules have rows; what lies deeper is counted in the row above it.
        training: Run it as in training. Otherwise dropout is off and normalisation uses its running statistics.

    Returns:
        A :class:`Summary`: the rows and totals as attributes, and as text a table.

    Raises:
        TypeError: The model is no module.
        ValueError: Both ``input`` and ``input_size`` are given, or a size, ``dtypes`` or ``depth`` makes no sense.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
        >>> table = rgrad.summary(model, input_size=(16, 8))
        >>> table.total_parameters, table.multiply_adds
        (44, 640)
        >>> print(str(table).splitlines()[3])
        ├─ 0 (Linear)  [16, 4]               36          256 B            512
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary: expected an nn.Module, got {type(model).__name__}")
    if input is not None and input_size is not None:
        raise ValueError("summary: got both input and input_size, expected one of them")
    if isinstance(depth, bool) or not isinstance(depth, int):
        raise TypeError(f"summary: got depth of type {type(depth).__name__}, expected an int")
    if depth < 0:
        raise ValueError(f"summary: got depth={depth}, expected 0 or more")
    if input is None and input_size is None:
        if dtypes is not None or device is not None:
            raise ValueError("summary: dtypes and device are of use only with input_size")
        return _Table(model, depth, None).finish(0)
    args, kwargs = _arguments(input) if input_size is None else (_inputs(model, input_size, dtypes, device), {})
    model = with_sizes_to_come(model)
    calls = _Calls()
    recorder = Recorder(shapes=True)
    with trial_run(model, training), no_grad(), watched_calls(model, calls.before, calls.after):
        recorder.start()
        try:
            model(*args, **kwargs)
        except Exception as error:
            if calls.stack:
                path = calls.failed or calls.stack[-1]
                error.add_note(f"summary: this was raised by layer {path or type(model).__name__!r}")
            raise
        finally:
            recording = recorder.stop()
    calls.count(operations(recording))
    return _Table(model, depth, calls).finish(sum(_size(t) for t in _tensors((args, kwargs))))


def _arguments(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(input, Mapping):
        return (), dict(input)
    if isinstance(input, (tuple, list)):
        return tuple(input), {}
    return (input,), {}


def _inputs(model: Module, input_size: Any, dtypes: Sequence[Any] | None, device: Any) -> tuple[Tensor, ...]:
    sizes = list(input_size) if isinstance(input_size, Sequence) else None
    if sizes is None or isinstance(input_size, str):
        raise ValueError(f"summary: got input_size={input_size!r}, expected a shape or several")
    if all(isinstance(n, int) for n in sizes):
        sizes = [sizes]
    for size in sizes:
        if not isinstance(size, Sequence) or not all(isinstance(n, int) and n >= 0 for n in size):
            raise ValueError(f"summary: got input_size={input_size!r}, expected a shape of whole numbers, or several")
    if dtypes is not None and len(dtypes) != len(sizes):
        raise ValueError(f"summary: got {len(dtypes)} dtypes for {len(sizes)} inputs")
    if device is None:
        first = next((p for p in (*model.parameters(), *model.buffers())), None)
        device = first.device if first is not None else _core.get_default_device()
    kinds = list(dtypes) if dtypes is not None else [_core.get_default_dtype()] * len(sizes)
    made = []
    with trial_run(model):  # the generator is put back
        for size, dtype in zip(sizes, kinds, strict=True):
            if dtype.is_floating_point or dtype.is_complex:
                made.append(_core.rand(tuple(size), dtype=dtype, device=device))
            else:
                made.append(_core.zeros(tuple(size), dtype=dtype, device=device))
    return tuple(made)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts, and in objects that hold their tensor as ``data``."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [t for item in value for t in _tensors(item)]


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


class _Calls:
    """What the run told: calls by the module's first name, and multiply-adds by the innermost module around them."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.failed: str | None = None
        self.inputs: dict[str, Shapes] = {}
        self.outputs: dict[str, Shapes] = {}
        self.numbers: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.multiply_adds: dict[str, int] = {}
        # When the innermost running module changed, and which it was then.
        self._times: list[int] = []
        self._innermost: list[str] = []

    def _note(self) -> None:
        self._times.append(_core._profiler_clock()[0])
        self._innermost.append(self.stack[-1] if self.stack else "")

    def before(self, name: str, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.stack.append(name)
        self._note()
        self.numbers[name] = self.numbers.get(name, 0) + 1
        self.inputs.setdefault(name, tuple(tuple(t.shape) for t in _tensors((args, kwargs))))

    def after(self, name: str, _module: Any, output: Any) -> None:
        if output is None and self.failed is None:
            self.failed = name
        if self.stack and self.failed is None:
            self.stack.pop()
            self._note()
        tensors = _tensors(output)
        self.outputs.setdefault(name, tuple(tuple(t.shape) for t in tensors))
        self.bytes[name] = self.bytes.get(name, 0) + sum(map(_size, tensors))

    def count(self, found: list[Counted]) -> None:
        """Adds the multiply-adds of these operations to the modules that ran them."""
        for operation in found:
            known = counted(operation.name, operation.inputs, operation.outputs, operation.flops, vectors=True)
            at = bisect_right(self._times, operation.start)
            if known is not None and at:
                name = self._innermost[at - 1]
                self.multiply_adds[name] = self.multiply_adds.get(name, 0) + known[1] // 2


class _Table:
    def __init__(self, model: Module, depth: int, calls: _Calls | None) -> None:
        self.model = model
        self.depth = depth
        self.calls = calls
        self.layers: list[Layer] = []
        self.first_name: dict[int, str] = {}
        self.counted: set[int] = set()

    def finish(self, input_bytes: int) -> Summary:
        self._add(self.model, "", 0)
        parameters = [p for p in self.model.parameters() if not is_lazy(p)]
        buffers = [b for b in self.model.buffers() if not is_lazy(b)]
        return Summary(
            self.layers,
            type(self.model).__name__,
            input_bytes,
            sum(map(_size, parameters)),
            sum(map(_size, buffers)),
            self.calls is not None,
        )

    def _add(self, module: Module, name: str, level: int) -> None:
        shared = self.first_name.get(id(module))
        if shared is not None:
            self.layers.append(Layer(name, type(module).__name__, level, (), (), None, 0, 0, 0, 0, shared))
            return
        self.first_name[id(module)] = name
        children = [(child_name, child) for child_name, child in module._modules.items() if child is not None]
        below = [module] if level < self.depth else list(module.modules())
        parameters = [p for m in below for p in self._new_parameters(m)]
        calls = self.calls
        names = [name]
        if level >= self.depth:
            names = [f"{name}.{n}" if name and n else name or n for n, _ in module.named_modules()]
            for n, m in zip(names, [m for _, m in module.named_modules()], strict=True):
                self.first_name.setdefault(id(m), n)
        self.layers.append(
            Layer(
                name,
                type(module).__name__,
                level,
                calls.inputs.get(name, ()) if calls else (),
                calls.outputs.get(name, ()) if calls else (),
                calls.numbers.get(name, 0) if calls else None,
                sum(p.numel() for p in parameters),
                sum(p.numel() for p in parameters if p.requires_grad),
                self._output_bytes(module, name, level < self.depth),
                sum(calls.multiply_adds.get(n, 0) for n in names) if calls else 0,
                None,
            )
        )
        if level < self.depth:
            for child_name, child in children:
                self._add(child, f"{name}.{child_name}" if name else child_name, level + 1)

    def _output_bytes(self, module: Module, name: str, alone: bool) -> int:
        """Of this module, or of all in its row, those that have no module inside that was called."""
        if self.calls is None:
            return 0
        total = 0
        for n, m in module.named_modules():
            full = f"{name}.{n}" if name and n else name or n
            if not any(self._was_called(child, full) for child in m.named_modules() if child[0]):
                total += self.calls.bytes.get(full, 0)
            if alone:
                break
        return total

    def _was_called(self, child: tuple[str, Module], name: str) -> bool:
        assert self.calls is not None
        full = f"{name}.{child[0]}" if name else child[0]
        return self.first_name.get(id(child[1]), full) in self.calls.numbers

    def _new_parameters(self, module: Module) -> list[Tensor]:
        found: list[Tensor] = []
        for p in module._parameters.values():
            if p is not None and not is_lazy(p) and id(p) not in self.counted:
                self.counted.add(id(p))
                found.append(p)
        return found


def _branches(layers: list[Layer]) -> list[str]:
    """What stands before each name so that the rows look like a tree."""
    starts = []
    open_below: set[int] = set()
    for row in reversed(layers):
        open_below = {level for level in open_below if level <= row.level}
        if row.level == 0:
            starts.append("")
            continue
        bars = "".join("│  " if level in open_below else "   " for level in range(1, row.level))
        starts.append(bars + ("├─ " if row.level in open_below else "└─ "))
        open_below.add(row.level)
    return starts[::-1]


def _shapes_text(shapes: Shapes) -> str:
    text = ", ".join(str(list(shape)) for shape in shapes[:3])
    return text + (f" + {len(shapes) - 3} more" if len(shapes) > 3 else "") if shapes else "no tensor"


def _number(n: int) -> str:
    return f"{n:,}" if n else "–"
