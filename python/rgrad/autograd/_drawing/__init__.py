"""Drawing a graph: `draw`, and the object that it gives.

`walk` reads the graph, `modules` says which module recorded a node, `tree` folds what is repeated or deep, `picture`
makes nodes with text, `place` and `layered` give them places, `svg` and `text` write it down. `compose` calls them
in turn. Most of that is imported when something is drawn.
"""

import os
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from ..._runtime.whole_files import text_written_whole
from .modules import ModuleCalls

if TYPE_CHECKING:
    from .picture import Picture

__all__ = ["Drawing", "draw", "module_calls"]

module_calls = ModuleCalls


class Drawing:
    """A graph that was drawn. It holds text only, neither tensors nor the graph.

    Args:
        picture: What is shown.
        operations: Number of operations of the graph.

    Attributes:
        svg: The picture as SVG, with a white background and dark text.
        dot: The picture in Graphviz's language.
        mermaid: The picture as a flowchart of Mermaid.
        operations: Number of operations of the graph.
        nodes: Number of nodes that are shown.

    Example:
        >>> x = rgrad.ones(3, requires_grad=True)
        >>> drawing = rgrad.autograd.graph.draw((x * 2).sum(), params={"x": x})
        >>> drawing
        <Drawing of 2 operations as 4 nodes>
        >>> print(drawing.dot.splitlines()[-2])
          n1 -> n3;
    """

    def __init__(self, picture: "Picture", operations: int) -> None:
        self._picture = picture
        self.operations = operations
        self.nodes = len(picture.nodes)

    @cached_property
    def svg(self) -> str:
        from .svg import render

        return render(self._picture)

    @cached_property
    def dot(self) -> str:
        from .text import to_dot

        return to_dot(self._picture)

    @cached_property
    def mermaid(self) -> str:
        from .text import to_mermaid

        return to_mermaid(self._picture)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file.

        Args:
            path: The file; its ending says the form: ``.svg``, ``.dot`` or ``.gv``, ``.mmd`` or ``.mermaid``,
                ``.html``.

        Raises:
            ValueError: The ending is none of these.
        """
        file = FilePath(path)
        ending = file.suffix.lower()
        if ending == ".svg":
            text = self.svg
        elif ending in (".dot", ".gv"):
            text = self.dot
        elif ending in (".mmd", ".mermaid"):
            text = self.mermaid
        elif ending == ".html":
            head = '<head><meta charset="utf-8"><title>graph</title></head>'
            text = f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>{self.svg}</body></html>\n'
        else:
            raise ValueError(
                f"Drawing.save: got a file name that ends in {ending!r}, expected .svg, .dot, .gv, .mmd, .mermaid or "
                ".html"
            )
        with text_written_whole(file) as out:
            out.write(text)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:900px">{self.svg}</div>'

    def __repr__(self) -> str:
        operations = f"{self.operations} operation" + "s" * (self.operations != 1)
        return f"<Drawing of {operations} as {self.nodes} node" + "s" * (self.nodes != 1) + ">"


def draw(
    root: Any,
    input: Any = None,
    *,
    params: Any = None,
    depth: int | None = None,
    group: Literal["module", "function"] | None = "module",
    gradients: bool = False,
) -> Drawing:
    """Draw the graph of backward, from the leaves at the top down to the result.

    A node is an operation. It says its name, the shape and dtype of its result, the parameters that it takes, the bytes
    that it keeps for backward (parameters are not counted, and a storage once), the norm of the gradient where that is
    known, and the line that recorded it. Modules are boxes. Equal parts in a row are drawn once, with their number.

    Args:
        root: What was computed: a tensor that requires grad, several in a list, tuple or dict, a node, a gradient edge.
            Or an ``nn.Module``, which is then run on ``input``; its buffers and the random generator are put back, and
            of a model with lazy layers a copy is run.
        input: Only for a module: a tensor, a tuple or list of arguments, or a dict of keyword arguments.
        params: Names for leaves: a module, a mapping from names to tensors, pairs of both, or what
            :class:`module_calls` gave, which also knows which module recorded a node. From names alone that is guessed:
            an operation belongs to the module whose parameter it takes, or to what its neighbours have in common.
        depth: How many levels of modules below the model are opened; 0 draws one node for each of its own parts. None
            opens as many as stay readable, and joins neighbours where there are no modules.
        group: What boxes are: ``"module"``, ``"function"`` (of the code that recorded an operation), or None.
        gradients: Run a backward pass for the norm of the gradient at every node, from gradients of ones at the roots.
            It changes no ``.grad`` and frees nothing; hooks of tensors run. Otherwise the norms are those of the
            leaves' ``.grad``.

    Returns:
        A :class:`Drawing`, which notebooks show.

    Raises:
        TypeError: An argument is of another kind, or a module comes without input.
        ValueError: There is no such group, or ``depth`` is negative.
        RuntimeError: No root requires grad, or the graph was freed (with ``gradients``).

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> drawing = rgrad.autograd.graph.draw(model, rgrad.ones(4, 2))
        >>> drawing
        <Drawing of 3 operations as 5 nodes>
        >>> drawing.svg.startswith("<svg")
        True
    """
    if group not in ("module", "function", None):
        raise ValueError(f"draw: got group={group!r}, expected 'module', 'function' or None")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int)):
        raise TypeError(f"draw: got depth of type {type(depth).__name__}, expected an int or None")
    if depth is not None and depth < 0:
        raise ValueError(f"draw: got depth={depth}, expected 0 or more")
    from .compose import drawn

    picture, operations = drawn(root, input, params, depth, group, gradients)
    return Drawing(picture, operations)
