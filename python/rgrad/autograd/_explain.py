"""Why a gradient is what it is: the path to a parameter, where it is cut, and what becomes of it on the way."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._runtime.lines import UNKNOWN, Line, line_of, table
from .._runtime.whole_files import text_written_whole
from ._explain_picture import picture
from .backward import grad
from .grad_mode import no_grad

__all__ = ["Cut", "EdgeNorm", "GradientExplanation", "explain"]

# Below this share of the gradient at the root, measured by root mean square, a gradient has vanished; above its
# inverse it has exploded.
_VANISHED = 1e-6
_SHOWN = 10

_ADVICE = {
    "detach": "leave out detach() there, if the gradient should go through",
    "data": "use the tensor itself instead of .data, if the gradient should go through",
    "no_grad": "run that line outside of no_grad, if the gradient should go through",
    "inference_mode": "run that line outside of inference_mode, if the gradient should go through",
    "cast": "integers and truth values have no gradients; keep the value in a floating dtype",
    "no_derivative": "use a differentiable operation in its place, such as softmax for argmax",
}


class Cut(NamedTuple):
    """An operation that ended a path of gradients.

    Attributes:
        reason: "detach", "data", "no_grad", "inference_mode", "cast" or "no_derivative".
        operation: The operation.
        line: The line that called it.
        text: Both as errors say it.
        advice: What to do.

    Example:
        >>> w = rgrad.ones(2, requires_grad=True)
        >>> rgrad.autograd.graph.explain(w.detach().sum(), wrt=w).cut.reason
        'detach'
    """

    reason: str
    operation: str
    line: Line
    text: str
    advice: str


class EdgeNorm(NamedTuple):
    """The gradient on one edge of the graph, in one real backward pass.

    Attributes:
        operation: The name of the node that computed it.
        line: The line that recorded that node.
        to: The name of the node that it goes to; "AccumulateGrad" is a leaf.
        to_line: The line that recorded it.
        shape: The gradient's shape.
        norm: Its Euclidean norm; nan or infinite where an element is.
        rms: Its root mean square.
        nan: How many elements are nan.
        inf: How many are infinite.
        zero: How many are zero.

    Example:
        >>> w = rgrad.tensor([3.0, 0.0], requires_grad=True)
        >>> last = rgrad.autograd.graph.explain((w * w).sum(), wrt=w).path[-1]
        >>> last.operation, last.to, last.shape, last.zero
        ('MulBackward0', 'AccumulateGrad', (2,), 1)
    """

    operation: str
    line: Line
    to: str
    to_line: Line
    shape: tuple[int, ...]
    norm: float
    rms: float
    nan: int
    inf: int
    zero: int

    @property
    def numel(self) -> int:
        """The number of elements."""
        n = 1
        for size in self.shape:
            n *= size
        return n


class GradientExplanation:
    """What :func:`rgrad.autograd.graph.explain` returns.

    As text it says what happens to the gradient, and where; in notebooks it is a picture (:meth:`svg`).

    Args:
        name: What the text calls the other tensor.

    Attributes:
        status: "ok"; "cut", "unused" (the parameter took no part), "no_grad" (it does not require grad); "none" (a node
            gave no gradient); "nan", "overflow", "zero", "vanishing" or "exploding".
        cut: The operation that cut the path, or None.
        other_cuts: Further cuts on the way.
        edges: The gradients on the edges between the two, in the order of backward.
        path: Those along one path, at each node the edge with the largest gradient.
        beside: For each edge of ``path`` the others that leave the same node.
        first: The edge where the trouble begins, or None: where the gradient is nan, infinite, or all zero first, or
            has vanished or exploded.
        saved: What the node before ``first`` has saved that explains it: names with "nan", "inf" or "zero".
        first_infinity: The edge where the gradient is infinite first, or None.
        gradient: The gradient itself, or None.
        norm: Its norm, or None.

    Example:
        >>> w = rgrad.tensor([0.0], requires_grad=True)
        >>> found = rgrad.autograd.graph.explain((w * 1).sqrt().sum(), wrt=w)
        >>> found.status, found.first.operation, found.saved
        ('overflow', 'SqrtBackward0', {'result': 'zero'})
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "ok"
        self.cut: Cut | None = None
        self.other_cuts: list[Cut] = []
        self.edges: list[EdgeNorm] = []
        self.path: list[EdgeNorm] = []
        self.beside: list[list[EdgeNorm]] = []
        self.first: EdgeNorm | None = None
        self.first_infinity: EdgeNorm | None = None
        self._infinity_before: EdgeNorm | None = None
        self.saved: dict[str, str] = {}
        self.gradient: Tensor | None = None
        self.norm: float | None = None
        self.start: EdgeNorm | None = None

    def svg(self, shown: int = 6) -> str:
        """The explanation as a picture: the path from the tensor down to the other one, with the gradient on each edge.

        A bar shows a norm by its order of magnitude, from the smallest to the largest of the path. Where the trouble
        begins is red; a cut is a cross.

        Args:
            shown: Of a long path so many operations are drawn at each end, and around the place of the trouble.

        Returns:
            SVG text, with a white background and dark text.

        Raises:
            TypeError: ``shown`` is not an int.
            ValueError: It is less than 1.

        Example:
            >>> w = rgrad.ones(2, requires_grad=True)
            >>> rgrad.autograd.graph.explain((w * 3).sum(), wrt=w).svg().startswith("<svg")
            True
        """
        if isinstance(shown, bool) or not isinstance(shown, int):
            raise TypeError(f"svg: got shown of type {type(shown).__name__}, expected an int")
        if shown < 1:
            raise ValueError(f"svg: got shown={shown}, expected 1 or more")
        return picture(self, shown)

    def save(self, path: str | PathLike[str], shown: int = 6) -> None:
        """Write the picture to a file.

        Args:
            path: The file; its name ends in ``.svg`` or ``.html``.
            shown: As for :meth:`svg`.

        Raises:
            ValueError: The ending is another one, or ``shown`` is less than 1.
            TypeError: ``shown`` is not an int.
        """
        file = FilePath(path)
        ending = file.suffix.lower()
        if ending not in (".svg", ".html"):
            raise ValueError(
                f"GradientExplanation.save: got a file name that ends in {ending!r}, expected .svg or .html"
            )
        text = self.svg(shown)
        if ending == ".html":
            head = '<head><meta charset="utf-8"><title>gradient</title></head>'
            text = f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>{text}</body></html>\n'
        with text_written_whole(file) as out:
            out.write(text)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:900px">{self.svg()}</div>'

    @property
    def reached(self) -> bool:
        """Whether a gradient arrives."""
        return self.gradient is not None

    def __str__(self) -> str:
        lines = [f"The gradient with respect to {self.name}: {self._verdict()}"]
        if self.cut is not None:
            lines.append(f"  what to do: {self.cut.advice}")
        lines += [f"  another path ends at {cut.text}" for cut in self.other_cuts]
        if self.saved:
            saved = ", ".join(f"{name} ({what})" for name, what in self.saved.items())
            lines.append(f"  what that operation has saved: {saved}")
        if self.path:
            lines.append(self._steps())
        return "\n".join(lines)

    __repr__ = __str__

    def _verdict(self) -> str:
        first = self.first
        at = "" if first is None else f"{first.operation} at {first.line}"
        if self.status == "cut":
            assert self.cut is not None
            return f"none: the path is cut by {self.cut.text}"
        if self.status == "no_grad":
            return "none: it does not require grad" + (f"; it was made by {self.cut.text}" if self.cut else "")
        if self.status == "unused":
            return "none: it took no part in computing the tensor"
        if self.status == "none":
            return "none: an operation on the way returned no gradient"
        if self.status == "nan":
            return f"nan: {at} makes the first nan{self._origin()}"
        if self.status == "overflow":
            return f"infinite: {at} makes the first infinity"
        if self.status == "zero":
            return f"zero: {at} makes every element zero"
        if self.status == "vanishing":
            return f"vanishes: behind {at} it is less than a millionth of that at the start (norm {self.norm:.3g})"
        if self.status == "exploding":
            return f"explodes: behind {at} it is more than a million times that at the start (norm {self.norm:.3g})"
        return f"arrives, with norm {self.norm:.3g}"

    def _origin(self) -> str:
        """What the first nan is made of, if that is known."""
        inf = self._infinity_before
        if inf is not None:
            return f" of an infinity that {inf.operation} at {inf.line} has made"
        for what, article in (("nan", "a nan"), ("inf", "an infinity")):
            names = [name for name, has in self.saved.items() if has == what]
            if names:
                return f" of {article} in what it has saved ({', '.join(names)})"
        return ""

    def _steps(self) -> str:
        begins_at = next((k for k, edge in enumerate(self.path) if edge is self.first), 0)
        rows = []
        skipped = 0
        for k, edge in enumerate(self.path):
            # The two ends, and what is around the first trouble.
            if min(k, len(self.path) - 1 - k, abs(k - begins_at)) >= _SHOWN:
                skipped += 1
                continue
            if skipped:
                rows.append(["...", f"{skipped} steps", "", "", ""])
                skipped = 0
            marks = [f"{n} {what}" for n, what in ((edge.nan, "nan"), (edge.inf, "inf")) if n]
            if edge.zero:
                marks.append(f"{100 * edge.zero / max(edge.numel, 1):.0f} % zero")
            begins = "<- here" if edge is self.first else ""
            rows.append(
                [
                    edge.operation,
                    str(edge.line),
                    f"{edge.norm:.3g}",
                    f"{edge.rms:.3g}",
                    " ".join([*marks, begins]).strip(),
                ]
            )
        return table(("operation", "line", "norm", "rms", ""), rows, left=(0, 1, 4))


def _measure(g: Tensor, operation: str, line: Line, to: str, to_line: Line) -> EdgeNorm:
    with no_grad():
        x = g.detach()
        x = x.float() if x.element_size() < 4 else x
        shape = tuple(x.shape)
        n = x.numel()
        if n == 0:
            return EdgeNorm(operation, line, to, to_line, shape, 0.0, 0.0, 0, 0, 0)
        size = x.abs()
        nan = int(x.isnan().sum().item())
        inf = int(x.isinf().sum().item())
        zero = int((x == 0).sum().item())
        most = float(size.max().item()) if not nan else float("nan")
        if nan or inf:
            norm = most if nan else float("inf")
        else:
            # Scaled, so that squares neither overflow nor vanish.
            norm = most * float((size / most).square().sum().item()) ** 0.5 if most else 0.0
    return EdgeNorm(operation, line, to, to_line, shape, norm, norm / n**0.5, nan, inf, zero)


def _between(start: Any, end: Any) -> list[Any]:
    """The nodes from which ``end`` can be reached, ``start`` first if it is one of them."""
    order, seen = [start], {start}
    for node in order:
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                order.append(following)
    # A node's number is larger than those of all nodes behind it, but for leaves, which lead nowhere.
    reaches = {end}
    for node in sorted((n for n in order if n is not end), key=_sequence):
        if any(following in reaches for following, _ in node.next_functions):
            reaches.add(node)
    return [node for node in order if node in reaches]


def _sequence(node: Any) -> int:
    number: int = node._sequence_nr()
    # Leaves have the largest number of all.
    return -1 if number >= 2**64 - 1 else number


def _line(node: Any) -> Line:
    return line_of(_core._node_state(node)[0])


class _Pass:
    """One backward pass with a hook on every node between the two tensors."""

    def __init__(self, nodes: list[Any], end: Any) -> None:
        self.end = end
        self.nodes = set(nodes)
        self.edges: list[tuple[Any, Any, EdgeNorm]] = []
        self.handles = [node.register_hook(self._hook(node)) for node in nodes if node is not end]

    def _hook(self, node: Any) -> Any:
        def after(grad_inputs: Any, grad_outputs: Any) -> None:
            name, line = node.name(), _line(node)
            for (to, _), g in zip(node.next_functions, grad_inputs, strict=False):
                if to in self.nodes and isinstance(g, Tensor):
                    self.edges.append((node, to, _measure(g, name, line, to.name(), _line(to))))

        return after

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def _saved_trouble(node: Any) -> dict[str, str]:
    """Which saved tensors of a node have nan, infinities or zeros."""
    found = {}
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        value = getattr(node, name)
        if (
            not isinstance(value, Tensor)
            or not (value.is_floating_point() or value.dtype.is_complex)
            or value.numel() == 0
        ):
            continue
        with no_grad():
            value = value.detach()
            for what, has in (("nan", value.isnan()), ("inf", value.isinf()), ("zero", value == 0)):
                if has.any().item():
                    found[name.removeprefix("_saved_")] = what
                    break
    return found


def explain(
    tensor: Tensor, wrt: Tensor, *, grad_outputs: Tensor | None = None, name: str | None = None
) -> GradientExplanation:
    """Explain the gradient of a tensor with respect to another one.

    If nothing leads from ``tensor`` to ``wrt``, the explanation names the line that cut the path: ``detach``, a
    ``no_grad`` block, a cast to integers, an operation without derivative. If something does, one backward pass runs,
    which changes no ``.grad`` and keeps the graph, and the gradient on every edge between the two is measured: where it
    is nan, infinite or zero first, where it has vanished or exploded. Hooks of the user on the way are called.

    Args:
        tensor: The tensor that would be differentiated, before ``backward`` has freed its graph.
        wrt: A parameter or any other tensor of its graph.
        grad_outputs: The gradient at ``tensor``, of its shape; by default ones.
        name: What the text calls ``wrt``.

    Returns:
        The explanation: print it, or read its attributes.

    Raises:
        TypeError: An argument is not a tensor.
        RuntimeError: The graph has been freed, or an operation fails in backward.

    Example:
        >>> w = rgrad.tensor([1.0, 2.0], requires_grad=True)
        >>> loss = (w.detach() * 3).sum() + rgrad.ones(1, requires_grad=True).sum()
        >>> rgrad.autograd.graph.explain(loss, wrt=w).status
        'cut'
        >>> round(rgrad.autograd.graph.explain((w * 3).sum(), wrt=w).norm, 4)
        4.2426
    """
    for value, argument in ((tensor, "tensor"), (wrt, "wrt")):
        if not isinstance(value, Tensor):
            raise TypeError(f"explain: {argument} must be a Tensor, not {type(value).__name__}")
    if grad_outputs is not None and not isinstance(grad_outputs, Tensor):
        raise TypeError(f"explain: grad_outputs must be a Tensor or None, not {type(grad_outputs).__name__}")
    made = GradientExplanation(name or f"a tensor of shape {tuple(wrt.shape)}")
    whole, before, others = _core._path_cuts(tensor, wrt)
    made.other_cuts = [_cut(row) for row in others]
    if not wrt.requires_grad:
        made.status = "no_grad"
        made.cut, made.other_cuts = next(iter(made.other_cuts), None), []
        return made
    if not whole:
        made.cut = None if before is None else _cut(before)
        made.status = "unused" if before is None else "cut"
        return made
    if tensor is wrt:
        made.gradient = _ones(tensor) if grad_outputs is None else grad_outputs
        made.norm = _measure(made.gradient, "", UNKNOWN, "", UNKNOWN).norm
        return made
    _run(made, tensor, wrt, grad_outputs)
    return made


def _cut(row: tuple[str, str, int, str]) -> Cut:
    reason, operation, site, text = row
    line = line_of(site)
    whole = f"{line.file}:{line.number} in {line.function}"
    return Cut(reason, operation, line, text.replace(whole, str(line)), _ADVICE[reason])


def _ones(tensor: Tensor) -> Tensor:
    return _core.ones_like(tensor.detach())


def _run(made: GradientExplanation, tensor: Tensor, wrt: Tensor, grad_outputs: Tensor | None) -> None:
    start, end = _core._gradient_edge(tensor)[0], _core._gradient_edge(wrt)[0]
    nodes = _between(start, end)
    seed = _ones(tensor) if grad_outputs is None else grad_outputs
    measured = _Pass(nodes, end)
    try:
        (gradient,) = grad([tensor], [wrt], [seed], retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "backward through the graph a second time" in str(error):
            raise RuntimeError(
                "explain: backward has freed the graph of the tensor already, so no pass can run through it. "
                "Call explain before backward, or backward(retain_graph=True)"
            ) from error
        raise
    finally:
        measured.remove()
    made.edges = [edge for _, _, edge in measured.edges]
    made.first_infinity = next((edge for edge in made.edges if edge.inf), None)
    made.start = _measure(seed, "", UNKNOWN, start.name(), _line(start))
    made.gradient = gradient
    if gradient is None:
        made.status = "none"
        return
    last = _measure(gradient, "", UNKNOWN, "", UNKNOWN)
    made.norm = last.norm
    made.path, made.beside = _path(measured.edges, start, end)
    _judge(made, measured.edges, last)


def _path(edges: list[tuple[Any, Any, EdgeNorm]], start: Any, end: Any) -> tuple[list[EdgeNorm], list[list[EdgeNorm]]]:
    """From the start, at each node along the edge with the largest gradient; nan counts as the largest.

    Returns:
        The edges of the path, and for each of them the others that leave the same node.
    """
    leaving: dict[Any, list[tuple[Any, EdgeNorm]]] = {}
    for node, to, edge in edges:
        leaving.setdefault(node, []).append((to, edge))
    path, beside, at = [], [], start
    while at is not end and at in leaving:
        choices = leaving[at]
        at, edge = max(choices, key=lambda pair: (pair[1].nan > 0, pair[1].norm))
        path.append(edge)
        beside.append([other for _, other in choices if other is not edge])
    return path, beside


def _judge(made: GradientExplanation, edges: list[tuple[Any, Any, EdgeNorm]], last: EdgeNorm) -> None:
    begin = made.start
    assert begin is not None
    tests: list[tuple[str, bool, Callable[[EdgeNorm], bool]]] = [
        ("nan", last.nan > 0, lambda e: e.nan > 0),
        ("overflow", last.inf > 0, lambda e: e.inf > 0),
        ("zero", last.norm == 0 and last.numel > 0 and begin.norm > 0, lambda e: e.norm == 0),
        ("vanishing", last.rms < _VANISHED * begin.rms, lambda e: e.rms < _VANISHED * begin.rms),
        ("exploding", last.rms * _VANISHED > begin.rms, lambda e: e.rms * _VANISHED > begin.rms),
    ]
    for status, holds, is_bad in tests:
        if not holds:
            continue
        made.status = status
        # Edges of all paths, in the order of backward: a nan may come from beside the path with the largest norm.
        on_path = {id(edge) for edge in made.path}
        ranked = edges if status in ("nan", "overflow") else [e for e in edges if id(e[2]) in on_path]
        found = next(((node, edge) for node, _, edge in ranked if is_bad(edge)), None)
        if found is not None:
            made.first = found[1]
            if status in ("nan", "overflow", "zero"):
                made.saved = _saved_trouble(found[0])
            if status == "nan":
                made._infinity_before = _infinity_into(found[0], edges)
        return


def _infinity_into(node: Any, edges: list[tuple[Any, Any, EdgeNorm]]) -> EdgeNorm | None:
    """The edge where an infinity that reaches ``node`` has begun; None if no infinite gradient arrives there."""
    arriving: dict[Any, tuple[Any, EdgeNorm]] = {}
    for source, to, edge in edges:
        if edge.inf:
            arriving.setdefault(to, (source, edge))
    found = None
    while node in arriving:
        # A graph has no cycles.
        node, found = arriving[node]
    return found
