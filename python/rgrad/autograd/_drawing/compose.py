"""From a graph, or a model and its input, to the picture."""

import gc
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from ... import _core
from ..._core import Node, Tensor
from .._trial import trial_run, with_sizes_to_come
from ..backward import grad
from ..grad_mode import enable_grad
from .modules import ModuleCalls, Path, is_module, paths_by_function, paths_by_names
from .picture import Composer, Picture, leaf_norms
from .tree import PARTS, READABLE, build, count_shown, deepest, fold_depth, fold_parts, fold_repeats
from .walk import Graph, collect, gradient_norms, metadata_of


def drawn(
    root: Any, input: Any, params: Any, depth: int | None, group: str | None, gradients: bool
) -> tuple[Picture, int]:
    """The picture of what `draw` was given, and the number of operations. Group and depth have been checked."""
    if not is_module(root) or isinstance(root, type):
        if input is not None:
            raise TypeError(f"draw: input is for a module, and root is of type {type(root).__name__}")
        return _draw(_named(root), [], params, depth, group, gradients)
    if input is None:
        raise TypeError(
            f"draw: {type(root).__name__} is a module, whose graph is made by running it: give its input, too"
        )
    root = with_sizes_to_come(root)
    calls = ModuleCalls(root)
    given, kwargs = arguments_of(input)
    with trial_run(root), enable_grad(), calls:
        result = root(*given, **kwargs)
        roots = _named(result)
        inputs = [(f"input[{i}]" if len(given) > 1 else "input", x) for i, x in enumerate(given)] + list(kwargs.items())
        tensors = [(name, x) for name, x in inputs if isinstance(x, Tensor) and not x.requires_grad]
        names = dict(_names(calls if params is None else params))
        for name, x in inputs:
            if isinstance(x, Tensor) and x.requires_grad:
                names.setdefault(id(x), (name, x))
        return _draw(roots, tensors, calls, depth, group, gradients, names)


def arguments_of(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments and keyword arguments that ``input`` stands for."""
    if isinstance(input, Mapping):
        return (), dict(input)
    if isinstance(input, (tuple, list)):
        return tuple(input), {}
    return (input,), {}


def tensors_by_name(value: Any, name: str = "output") -> list[tuple[str, Tensor]]:
    """The tensors in nested tuples, lists and mappings, each with the path that leads to it."""
    found: list[tuple[str, Tensor]] = []
    stack: list[tuple[str, Any]] = [(name, value)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, Mapping):
            stack += [(str(k), v) for k, v in reversed(list(value.items()))]
        elif isinstance(value, (tuple, list)):
            stack += [(f"{name}[{i}]", v) for i, v in reversed(list(enumerate(value)))]
    return found


def _draw(
    roots: list[tuple[str, Any]],
    inputs: list[tuple[str, Tensor]],
    params: Any,
    depth: int | None,
    group: str | None,
    gradients: bool,
    names: Mapping[int, tuple[str, Tensor]] | None = None,
) -> tuple[Picture, int]:
    names = _names(params) if names is None else names
    nodes, values = [], []
    for _, value in roots:
        node, _ = _core._gradient_edge(value) if isinstance(value, Tensor) else _edge(value)
        nodes.append(node)
        values.append(value if isinstance(value, Tensor) else None)
    with _without_collections():
        graph = collect(nodes)
    for leaf in graph.leaves:
        named = names.get(id(leaf.tensor))
        if named is not None:
            leaf.name = named[0]
    norms: list[float | None] | None = None
    if gradients:
        norms, at_leaves = gradient_norms(graph, [value for _, value in roots], _differentiate)
    else:
        at_leaves = leaf_norms(graph)
    with _without_collections():
        return _composed(graph, roots, values, inputs, params, depth, group, norms, at_leaves)


@contextmanager
def _without_collections() -> Generator[None]:
    """A block without garbage collections: nothing in it makes circles, and they take half of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _composed(
    graph: Graph,
    roots: list[tuple[str, Any]],
    values: list[Tensor | None],
    inputs: list[tuple[str, Tensor]],
    params: Any,
    depth: int | None,
    group: str | None,
    norms: list[float | None] | None,
    at_leaves: list[float | None],
) -> tuple[Picture, int]:
    calls = params if isinstance(params, ModuleCalls) else None
    paths = _paths(graph, params, calls, group)
    tree = build(graph, paths)
    fold_repeats(graph, tree)
    _choose_depth(tree, depth)
    composer = Composer(graph, tree, paths, norms, at_leaves)
    uses = calls._users(graph, [x for _, x in inputs]) if calls is not None and inputs else []
    outputs = [(name, value) for (name, _), value in zip(roots, values, strict=True)]
    return composer.compose(inputs, uses, outputs), len(graph.ops)


def _choose_depth(tree: Any, depth: int | None) -> None:
    if depth is not None:
        fold_depth(tree, depth + 1)
        return
    for level in range(deepest(tree) + 1, 0, -1):
        fold_depth(tree, level)
        if count_shown(tree) <= READABLE:
            return
    fold_parts(tree, PARTS)


def _paths(graph: Graph, params: Any, calls: ModuleCalls | None, group: str | None) -> list[Path]:
    if group == "function":
        return paths_by_function(graph)
    if group is None:
        return [()] * len(graph.ops)
    if calls is not None:
        return calls._paths(graph)
    kinds = {}
    if is_module(params):
        kinds = {name: type(module).__name__ for name, module in params.named_modules()}
    return paths_by_names(graph, kinds)


def _names(params: Any) -> dict[int, tuple[str, Tensor]]:
    """Names of tensors by identity; the tensors themselves are kept so that no other takes their place."""
    if params is None:
        return {}
    if isinstance(params, ModuleCalls):
        params = params.model
    pairs: Iterable[Any]
    if is_module(params):
        pairs = params.named_parameters()
    elif isinstance(params, Mapping):
        pairs = params.items()
    else:
        pairs = params
    found: dict[int, tuple[str, Tensor]] = {}
    wrong = "draw: expected params to be a module, a mapping from names to tensors or pairs of both, got"
    if isinstance(pairs, (str, Tensor)) or not isinstance(pairs, Iterable):
        raise TypeError(f"{wrong} {type(params).__name__}")
    for pair in pairs:
        if not (
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Tensor)
        ):
            raise TypeError(f"{wrong} {type(params).__name__} with an entry of type {type(pair).__name__}")
        found[id(pair[1])] = pair
    return found


def _edge(value: Any) -> tuple[Node, int]:
    if isinstance(value, Node):
        return value, 0
    return value.node, value.output_nr


def _named(root: Any, name: str = "output") -> list[tuple[str, Any]]:
    """The roots by name: tensors that require grad, nodes and edges."""
    found: list[tuple[str, Any]] = []
    without = 0
    stack: list[tuple[str, Any]] = [(name, root)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, Tensor):
            if value.requires_grad:
                found.append((name, value))
            else:
                without += 1
        elif isinstance(value, Node) or (isinstance(value, tuple) and hasattr(value, "output_nr")):
            found.append((name, value))
        elif isinstance(value, Mapping):
            stack += [(str(k), v) for k, v in reversed(list(value.items()))]
        elif isinstance(value, (tuple, list)):
            stack += [(f"{name}[{i}]", v) for i, v in reversed(list(enumerate(value)))]
        elif value is not None and name == "output":
            raise TypeError(
                "draw: expected a tensor that requires grad, several of them, a node, a gradient edge or a module, got "
                f"{type(value).__name__}"
            )
    if not found:
        if not without:
            raise RuntimeError("draw: there is no tensor in what was given, so there is no graph")
        what = "the tensor does not require" if without == 1 else f"none of the {without} tensors requires"
        raise RuntimeError(f"draw: {what} grad, so there is no graph")
    return found


def _differentiate(roots: list[Any], leaves: list[Tensor]) -> tuple[Tensor | None, ...]:
    ones: list[Tensor] = []
    edges: list[Any] = []
    for root in roots:
        if isinstance(root, Tensor):
            ones.append(_core.ones_like(root))
            edges.append(root)
        else:
            node, number = _edge(root)
            of = metadata_of(node)[number]
            ones.append(_core.ones(of.shape, dtype=of.dtype, device=of.device))
            edges.append((node, number))
    found = grad(edges, leaves, grad_outputs=ones, retain_graph=True, allow_unused=True)
    return tuple(found)
