"""Trees: nested tuples, lists, dicts and named tuples, with anything else as leaves.

What takes and gives trees flattens them to a list of leaves and a :class:`TreeSpec`, and puts them together again.
None is a leaf.
"""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "GetAttrKey",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any


@dataclass(frozen=True, slots=True)
class MappingKey:
    """The place of a child in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The place of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The place of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The child."""
        return getattr(obj, self.name)


class _NodeDef(NamedTuple):
    """How a container is taken apart (children, context) and put together."""

    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]
    #: As `flatten`, with the place of each child beside it.
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None

    # PyTorch's names of these.
    @property
    def flatten_fn(self) -> Callable[[Any], tuple[list[Any], Any]]:
        return self.flatten

    @property
    def unflatten_fn(self) -> Callable[[list[Any], Any], Any]:
        return self.unflatten


def _is_namedtuple(node: Any) -> bool:
    return isinstance(node, tuple) and hasattr(type(node), "_fields") and type(node) is not tuple


def _dict_flatten(node: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(node.values()), list(node)


def _dict_unflatten(values: Iterable[Any], keys: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def _dict_flatten_with_keys(node: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in node.items()], list(node)


def _defaultdict_flatten(node: Any) -> tuple[list[Any], list[Any]]:
    return list(node.values()), [node.default_factory, list(node)]


def _sequence_flatten_with_keys(node: Any) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), child) for i, child in enumerate(node)], None


_NODE_DEFS: dict[type, _NodeDef] = {
    tuple: _NodeDef(lambda node: (list(node), None), lambda values, _: tuple(values), _sequence_flatten_with_keys),
    list: _NodeDef(lambda node: (list(node), None), lambda values, _: [*values], _sequence_flatten_with_keys),
    dict: _NodeDef(_dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    OrderedDict: _NodeDef(
        _dict_flatten, lambda values, keys: OrderedDict(zip(keys, values, strict=True)), _dict_flatten_with_keys
    ),
    defaultdict: _NodeDef(
        _defaultdict_flatten,
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
        lambda node: (_dict_flatten_with_keys(node)[0], _defaultdict_flatten(node)[1]),
    ),
    deque: _NodeDef(lambda node: (list(node), node.maxlen), deque, _sequence_flatten_with_keys),
}
# One kind for all named tuples: their class is the context.
_NAMED = _NodeDef(
    lambda node: (list(node), type(node)),
    lambda values, kind: kind(*values),
    lambda node: ([(GetAttrKey(name), getattr(node, name)) for name in node._fields], type(node)),
)
_NODE_DEFS[namedtuple] = _NAMED  # type: ignore[index]


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make a class a container.

    ``flatten_fn(node)`` gives ``(children, context)``, ``unflatten_fn(children, context)`` gives a node again, and
    ``flatten_with_keys_fn(node)`` gives ``([(key, child), ...], context)``. What PyTorch writes structures to files
    with (``serialized_type_name`` and the two functions of contexts) has no effect.

    Raises:
        ValueError: The class is one already.
    """
    if cls in _NODE_DEFS:
        raise ValueError(f"{cls} is already registered as pytree node.")

    def flatten(node: Any) -> tuple[list[Any], Any]:
        children, context = flatten_fn(node)
        return list(children), context

    _NODE_DEFS[cls] = _NodeDef(flatten, unflatten_fn, flatten_with_keys_fn)


def _kind(node: Any) -> tuple[type | None, _NodeDef | None]:
    found = _NODE_DEFS.get(type(node))
    if found is not None:
        return type(node), found
    return (tuple, _NAMED) if _is_namedtuple(node) else (None, None)


class TreeSpec:
    """The structure of a tree without its leaves."""

    __slots__ = ("_kind", "children_specs", "context", "num_leaves", "type")

    def __init__(
        self, type: type | None, context: Any, children_specs: list["TreeSpec"], kind: _NodeDef | None = None
    ) -> None:
        #: The class of the container; None for a leaf.
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self._kind = kind
        self.num_leaves: int = sum(c.num_leaves for c in children_specs) if kind is not None else 1

    def is_leaf(self) -> bool:
        """Whether this is the structure of a leaf."""
        return self._kind is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        name = self.context.__name__ if self._kind is _NAMED else getattr(self.type, "__name__", "")
        context = None if self._kind is _NAMED else self.context
        return f"TreeSpec({name}, {context}, [{', '.join(map(repr, self.children_specs))}])"

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves.

        Raises:
            ValueError: They are too many or too few.
        """
        return tree_unflatten(leaves, self)


_LEAF = TreeSpec(None, None, [])

# PyTorch's private names, which libraries import.
SUPPORTED_NODES = _NODE_DEFS
Context = Any
KeyEntry = MappingKey | SequenceKey | GetAttrKey


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return _LEAF


def _get_node_type(tree: PyTree) -> type:
    """The key of a container in ``SUPPORTED_NODES``, or the class of a leaf."""
    return namedtuple if _is_namedtuple(tree) else type(tree)  # type: ignore[return-value]


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    type_, kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = kind.flatten(tree)
    return TreeSpec(type_, context, [_flatten(child, leaves, is_leaf) for child in children], kind)


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its structure; ``is_leaf`` can keep a container whole."""
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def _paths(tree: PyTree, path: tuple[Any, ...], is_leaf: Callable[[Any], bool] | None) -> Iterator[tuple[Any, Any]]:
    type_, kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if kind.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type_}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in kind.flatten_with_keys_fn(tree)[0]:
        yield from _paths(child, (*path, key), is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[Any, Any]], TreeSpec]:
    """As :func:`tree_flatten`, with the path of keys to each leaf beside it.

    Raises:
        ValueError: A container was registered without ``flatten_with_keys_fn``.
    """
    return list(_paths(tree, (), is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[Any, Any]]:
    """The leaves with their paths."""
    return list(_paths(tree, (), is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """As :func:`tree_map`; ``func`` gets the path of the leaf first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*(list(column) for column in zip(*found, strict=True)), *(_flatten_up_to(spec, rest) for rest in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def keystr(kp: Iterable[Any]) -> str:
    """The text of a path, such as ``['a'][0].x``."""
    return "".join(map(str, kp))


# Not a closure: one that calls itself is a reference cycle, and would keep the leaves until the garbage collector runs.
def _build(spec: TreeSpec, leaves: Iterator[Any]) -> PyTree:
    if spec._kind is None:
        return next(leaves)
    return spec._kind.unflatten([_build(child, leaves) for child in spec.children_specs], spec.context)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The reverse of :func:`tree_flatten`.

    Raises:
        TypeError: ``treespec`` is no TreeSpec.
        ValueError: The number of leaves does not fit.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(given)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    return _build(treespec, iter(given))


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves alone."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """The leaves one by one."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """A tree of what ``func`` gives for each leaf, and for what stands at its place in further trees.

    Raises:
        ValueError: The further trees do not have the structure of the first down to its leaves.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_flatten_up_to(spec, rest) for rest in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """Like :func:`tree_map` for what ``func`` does; gives the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: PyTree) -> PyTree:
    """:func:`tree_map` over the leaves of the class ``kind`` (or of one of several); the others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)


def tree_all(predicate: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether ``predicate`` holds for every leaf."""
    return all(map(predicate, tree_leaves(tree)))


def tree_any(predicate: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether ``predicate`` holds for a leaf."""
    return any(map(predicate, tree_leaves(tree)))


def _flatten_up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The subtrees of ``tree`` where ``spec`` has its leaves."""
    if spec._kind is None:
        return [tree]
    type_, kind = _kind(tree)
    if kind is None or (type_, kind) != (spec.type, spec._kind):
        raise ValueError(f"Node type mismatch; expected {spec.type}, but got {type(tree)}.")
    children, context = kind.flatten(tree)
    if len(children) != len(spec.children_specs):
        raise ValueError(
            f"Node arity mismatch; expected {len(spec.children_specs)}, but got {len(children)} for {spec.type}."
        )
    if context != spec.context:
        if isinstance(context, list) and isinstance(tree, dict) and set(context) == set(spec.context):
            children = [tree[key] for key in spec.context]
        else:
            raise ValueError(f"Node context mismatch; expected {spec.context!r}, but got {context!r} for {spec.type}.")
    found: list[Any] = []
    for child_spec, child in zip(spec.children_specs, children, strict=True):
        found += _flatten_up_to(child_spec, child)
    return found


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec) -> list[Any] | None:
    """The leaves of a tree that ends where ``treespec`` does or earlier, each as often as there are leaves below it.

    None if the tree does not fit.
    """
    full = tree_unflatten([0] * treespec.num_leaves, treespec)
    leaves, spec = tree_flatten(tree)
    try:
        subtrees = _flatten_up_to(spec, full)
    except ValueError:
        return None
    return [leaf for leaf, below in zip(leaves, subtrees, strict=True) for _ in tree_leaves(below)]
