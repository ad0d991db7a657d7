"""How a tensor is written out: PyTorch's layout, digits and abbreviations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from .. import _core
from .printing import NEVER, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_options", "set_printoptions", "to_string"]


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


_options = _Options()
# PyTorch's name; code that reads the options finds them under it.
PRINT_OPTS = _options


def set_options(
    precision: int | None, threshold: int | None, edgeitems: int | None, linewidth: int | None, sci_mode: bool | None
) -> None:
    """Set what is not None; ``sci_mode`` is always set (None: scientific notation where it is needed)."""
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options of printing, as keyword arguments of ``set_printoptions``."""
    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    found = {name: getattr(_options, name) for name in names}
    if found["threshold"] >= NEVER:
        found["threshold"] = math.inf
    return found


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Generator[None]:
    """A block with other options of printing; the arguments are those of ``set_printoptions``."""
    before = get_printoptions()
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        set_printoptions(**before)


# Stands for the elements that a summary leaves out.
_GAP = object()


def _nested(t: Any, summarize: bool) -> Any:
    """The values as nested lists, with ``_GAP`` where a summary leaves elements out."""
    if t.ndim == 0 or not summarize:
        return t.tolist()
    n, edge = t.shape[0], _options.edgeitems
    cut = n > 2 * edge
    if t.ndim == 1:
        return [*t[:edge].tolist(), _GAP, *t[n - edge :].tolist()] if cut else t.tolist()
    if not cut:
        return [_nested(t[i], summarize) for i in range(n)]
    ends = [*range(edge), *range(n - edge, n)]
    rows = [_nested(t[i], summarize) for i in ends]
    return [*rows[:edge], _GAP, *rows[edge:]]


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for item in data:
            yield from _flat(item)
    elif data is not _GAP:
        yield data


class _Format:
    """One way of writing for all elements of a tensor, so that they stand in columns."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.whole = True
        self.scientific = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        # Zeros and what is not finite fit into any notation.
        telling = [v for v in values if math.isfinite(v) and v != 0]
        if telling:
            sizes = [abs(v) for v in telling]
            largest, smallest = max(sizes), min(sizes)
            self.whole = all(v == math.ceil(v) for v in telling)
            wide_range = largest / smallest > 1000.0 or largest > 1.0e8
            self.scientific = wide_range or (not self.whole and smallest < 1.0e-4)
            if _options.sci_mode is not None:
                self.scientific = _options.sci_mode
            digits = _options.precision
            if self.scientific:
                lengths = (len(f"{v:.{digits}e}") for v in telling)
            elif self.whole:
                lengths = (len(f"{v:.0f}") + 1 for v in telling)
            else:
                lengths = (len(f"{v:.{digits}f}") for v in telling)
            self.width = max(1, *lengths)

    def write(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:.{_options.precision}e}"
        elif self.whole:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{_options.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """One way of writing for the real parts and one for the imaginary parts."""

    def __init__(self, values: list[complex]) -> None:
        self._real = _Format([v.real for v in values], floating=True)
        self._imag = _Format([v.imag for v in values], floating=True)
        # One more for the letter j.
        self.width = self._real.width + self._imag.width + 1

    def write(self, value: complex) -> str:
        imag = self._imag.write(value.imag).lstrip()
        return f"{self._real.write(value.real)}{'' if imag[0] in '+-' else '+'}{imag}j"


def _write(data: Any, dims: int, indent: int, style: _Format | _ComplexFormat) -> str:
    if dims == 0:
        return style.write(data)
    if dims == 1:
        per_line = max(1, (_options.linewidth - indent) // (style.width + 2))
        gap = " ..." if _options.edgeitems else "..."
        words = [gap if v is _GAP else style.write(v) for v in data]
        lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if row is _GAP else _write(row, dims - 1, indent + 1, style) for row in data]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(parts) + "]"


def _to_host(t: Any, summarize: bool) -> Any:
    """The values on the CPU: of a summary only those that it shows, and one more where it leaves some out."""
    if t.device.type == "cpu":
        return t
    edge = _options.edgeitems
    for dim, n in enumerate(t.shape if summarize else ()):
        if n > 2 * edge + 1:
            t = _core.cat([t.narrow(dim, 0, edge + 1), t.narrow(dim, n - edge, edge)], dim)
    return t.cpu()


def _suffixes(t: Any) -> Iterator[str]:
    default = _core.get_default_dtype()
    if t.dtype.is_complex:
        default = default.to_complex()
    if t.device.type != "cpu":
        yield f"device='{t.device}'"
    if t.numel() == 0 or t.is_meta:
        if t.ndim != 1 or t.is_meta:
            yield f"size={tuple(t.shape)}"
        if t.dtype != _core.get_default_dtype():
            yield f"dtype={t.dtype}"
    else:
        if not _options.edgeitems:
            yield f"size={tuple(t.shape)}"
        if t.dtype not in (default, _core.int64, _core.bool):
            yield f"dtype={t.dtype}"
    try:
        fn = t.grad_fn
        name = None if fn is None else type(fn).__name__
    except RuntimeError:
        # A view whose history a write has made invalid can still be looked at.
        name = "Invalid"
    if name is not None:
        yield f"grad_fn=<{name}>"
    elif t.requires_grad:
        yield "requires_grad=True"
    tangent = _core._tangent(t)
    if tangent is not None:
        yield f"tangent={to_string(tangent)}"


def _leveled(t: Any, level: int) -> str:
    """A tensor of a transform: what it wraps, set in."""
    inner, _ = _core._unwrap(t, level)
    head = f"BatchedTensor(lvl={level}, bdim=0" if inner.ndim > t.ndim else f"GradTrackingTensor(lvl={level}"
    return f"{head}, value=\n" + "\n".join("    " + line for line in to_string(inner).splitlines()) + "\n)"


def contents(t: Any, indent: int) -> str:
    """The elements in brackets, with further lines ``indent`` columns in."""
    if t.is_meta:
        return "..."
    if t.numel() == 0:
        return "[]"
    summarize = t.numel() > _options.threshold
    data = _nested(_to_host(_core.Tensor.detach(t), summarize), summarize)
    elements = list(_flat(data))
    style = _ComplexFormat(elements) if t.dtype.is_complex else _Format(elements, t.dtype.is_floating_point)
    return _write(data, t.ndim, indent, style)


def with_suffixes(text: str, suffixes: Iterable[str], indent: int, force_newline: bool = False) -> str:
    """A text with what stands behind the elements, on lines of their own where the first is full, and a bracket."""
    room = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or room + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            room, force_newline = indent + len(suffix), False
        else:
            text += ", " + suffix
            room += len(suffix) + 2
    return text + ")"


def to_string(t: Any, *, tensor_contents: str | None = None) -> str:
    """The text of ``repr``: values, or ``tensor_contents``, and what distinguishes the tensor from an ordinary one."""
    level = _core._level_of(t)
    if level > 0:
        return _leveled(t, level)
    plain = type(t) is _core.Tensor or type(t).__name__ in ("Parameter", "Buffer")
    prefix = "tensor(" if plain else f"{type(t).__name__}("
    body = contents(t, len(prefix)) if tensor_contents is None else tensor_contents
    return with_suffixes(prefix + body, _suffixes(t), len(prefix))
