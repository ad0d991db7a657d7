"""``export``: a program as a graph of its calls, with what it needs."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from .._core import Tensor
from ..fx import Graph, GraphModule, Node
from ..fx._record import Call, RecordError, Value, map_arguments
from ..fx._sizes import OPERATIONS, Computed, Dimension, SymbolicInt
from ..fx.graph_module import _assign_attr
from ..nn import Module, Parameter
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from ._dims import Dim
from ._examples import dynamic_of, input_names, name_of_dim
from ._pair import Changed, Pair, two_recordings
from ._signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)


class _Checked(GraphModule):
    """The module of an exported program: takes and gives what the original does, and checks sizes."""

    def forward_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        form: _Form = self.__dict__["_form"]
        leaves = form.check(args, kwargs)
        outs = super().__call__(*leaves)
        return form.give(outs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_of(args, kwargs)


class _Form:
    """The form of the example: its tree, the sizes that are fixed, and the tree of the result."""

    def __init__(
        self, example: Any, sizes: Sequence[Sequence[int | None]], names: Sequence[str], spec: TreeSpec
    ) -> None:
        leaves, self.spec = tree_flatten(example)
        self.fixed = [leaf for leaf in leaves if not isinstance(leaf, Tensor)]
        self.sizes, self.names, self.out_spec = sizes, names, spec

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.spec:
            raise ValueError(
                "Trying to flatten user inputs with exported input tree spec, but the call has other arguments than "
                "the example. Call it as the program was exported"
            )
        tensors, fixed = [], iter(self.fixed)
        at = 0
        for leaf in leaves:
            if at < len(self.sizes) and isinstance(leaf, Tensor):
                name, sizes = self.names[at], self.sizes[at]
                if leaf.dim() != len(sizes):
                    raise RuntimeError(
                        f"Expected input {name!r} to have {len(sizes)} dimensions, but got the shape "
                        f"{tuple(leaf.shape)}"
                    )
                for k, size in enumerate(sizes):
                    if size is not None and leaf.shape[k] != size:
                        raise RuntimeError(
                            f"Expected input {name!r}.shape[{k}] to be equal to {size}, but got {leaf.shape[k]}. "
                            "Export the program with dynamic_shapes, if that size may differ"
                        )
                tensors.append(leaf)
                at += 1
            elif not isinstance(leaf, Tensor):
                wanted = next(fixed, None)
                if leaf is not wanted and leaf != wanted:
                    raise RuntimeError(f"Expected the value {wanted!r} of the example, but got {leaf!r}")
        return tensors

    def give(self, outs: Any) -> Any:
        return tree_unflatten(list(outs), self.out_spec)


class ExportedProgram:
    """What :func:`export` gives: a graph, its signature, and the parameters, buffers and constants in it.

    Attributes:
        graph_module: The graph, with parameters, buffers and constants among its inputs.
        graph_signature: What the inputs and outputs of the graph are.
        state_dict: Parameters and buffers by name.
        constants: Other tensors by name.
        example_inputs: The example: arguments and keyword arguments.
        range_constraints: The bounds of each dimension whose size may differ, by its name.
    """

    def __init__(
        self,
        pair: Pair,
        model: Any,
        example: tuple[tuple[Any, ...], dict[str, Any]],
        names: Sequence[str],
        dynamic: Sequence[dict[int, Any]],
    ) -> None:
        self._pair = pair
        self._names = list(names)
        self.example_inputs = example
        self._sizes = [
            [None if axis in axes else int(size) for axis, size in enumerate(value.shape)]
            for value, axes in zip(pair.first.inputs, dynamic, strict=True)
        ]
        self.range_constraints = {
            name_of_dim(dim): (dim.min, dim.max) if isinstance(dim, Dim) else (0, None)
            for axes in dynamic
            for dim in axes.values()
        }
        self._title = type(model).__name__ if isinstance(model, Module) else getattr(model, "__name__", "main")
        named = pair.first.named
        self.state_dict: dict[str, Any] = {name: v.tensor for name, v in named.items()}
        if isinstance(model, Module):
            self.state_dict = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        constants = [v for v in pair.first.values if v.kind == "constant"]
        self._constant_names = {v.number: f"c_{k}" for k, v in enumerate(constants)}
        self.constants: dict[str, Any] = {self._constant_names[v.number]: v.tensor for v in constants}
        self.graph_signature = ExportGraphSignature()
        graph = self._graph(lifted=True)
        self.graph_module = GraphModule(Module(), graph, self._title)

    @property
    def graph(self) -> Graph:
        """The graph of :attr:`graph_module`."""
        return self.graph_module.graph

    def _graph(self, lifted: bool) -> Graph:
        """The recording as a graph: with parameters as inputs, or as attributes."""
        made = _Maker(self._pair)
        values = self._pair.first.values
        specs: list[InputSpec] = []
        for kind, prefix in ((InputKind.PARAMETER, "p"), (InputKind.BUFFER, "b"), (InputKind.CONSTANT_TENSOR, "c")):
            for value in values:
                if value.kind != ("constant" if kind is InputKind.CONSTANT_TENSOR else "named"):
                    continue
                if value.kind == "named" and isinstance(value.tensor, Parameter) != (kind is InputKind.PARAMETER):
                    continue
                target = value.name or self._constant_names[value.number]
                if lifted:
                    node = made.graph.placeholder(f"{prefix}_{target}".replace(".", "_"))
                    specs.append(InputSpec(kind, TensorArgument(node.name), target))
                    made.nodes[value.number] = node
                else:
                    made.attributes[value.number] = target
        for value, name in zip(self._pair.first.inputs, self._names, strict=True):
            node = made.graph.placeholder(name)
            made.nodes[value.number] = node
            specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name)))
        for at in range(len(self._pair.first.calls)):
            made.add(at)
        outs = tuple(made.node(out) if isinstance(out, Value) else out for out in self._pair.first.outputs)
        made.graph.output(outs)
        made.graph.eliminate_dead_code()
        if lifted:
            self.graph_signature.input_specs = specs
            self.graph_signature.output_specs = [
                OutputSpec(
                    OutputKind.USER_OUTPUT,
                    TensorArgument(out.name) if isinstance(out, Node) else ConstantArgument("", out),
                )
                for out in outs
            ]
        return made.graph

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that is called as the original is. It checks the sizes that the graph is made for.

        Args:
            check_guards: Has no effect: sizes are checked.
        """
        graph = self._graph(lifted=False)
        root = Module()
        for node in graph.find_nodes(op="get_attr"):
            if node.target in self.constants:
                object.__setattr__(root, node.target, self.constants[node.target])
            else:
                _assign_attr(self.state_dict[node.target], root, node.target)
        made: GraphModule = _Checked(root, graph, self._title)
        form = _Form(self.example_inputs, self._sizes, self._names, self._pair.first.spec)
        made.__dict__["_form"] = form
        return made

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives: :meth:`module`, called."""
        return self.module()(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        return ((name, x) for name, x in self.state_dict.items() if isinstance(x, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        return (x for _, x in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        return ((name, x) for name, x in self.state_dict.items() if not isinstance(x, Parameter))

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (x for _, x in self.named_buffers())

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program itself: calls stay what they are.

        Args:
            decomp_table: Has no effect.
            decompose_custom_triton_ops: Has no effect.
        """
        return self

    def validate(self) -> None:
        """Check the graph, as :meth:`rgrad.fx.Graph.lint` does."""
        self.graph.lint()

    def __str__(self) -> str:
        body = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {body}\n\nGraph signature: {self.graph_signature}\n"


class _Maker:
    """Makes the nodes of a graph from a recording."""

    def __init__(self, pair: Pair) -> None:
        self.pair, self.graph = pair, Graph()
        self.nodes: dict[int, Node] = {}
        self.attributes: dict[int, str] = {}
        self._sizes: dict[Any, Node] = {}

    def node(self, value: Value) -> Node:
        if value.number not in self.nodes:
            self.nodes[value.number] = self.graph.get_attr(self.attributes[value.number])
        return self.nodes[value.number]

    def _size(self, made: Any) -> Any:
        if isinstance(made, int):
            return made
        key = (made.value.number, made.axis) if isinstance(made, Dimension) else made
        if key not in self._sizes:
            if isinstance(made, Dimension):
                known = self.pair.dims(made.value)[made.axis]
                if known is not None:
                    return known
                found = self.graph.call_method("size", (self.node(made.value), made.axis))
            else:
                assert isinstance(made, Computed)
                found = self.graph.call_function(OPERATIONS[made.name], tuple(self._size(t) for t in made.terms))
            self._sizes[key] = found
        return self._sizes[key]

    def _argument(self, leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return self.node(leaf)
        if isinstance(leaf, SymbolicInt):
            return self._size(leaf.expression)
        if isinstance(leaf, Changed):
            leaf.refuse()
        return leaf

    def add(self, at: int) -> None:
        """The nodes of a call."""
        call: Call = self.pair.first.calls[at]
        args, kwargs = self.pair.arguments(at)
        args, kwargs = map_arguments(self._argument, args), map_arguments(self._argument, kwargs)
        name = getattr(call.func, "__name__", "")
        if name == "__get__":
            node = self.graph.call_function(getattr, (args[0], call.name))
        elif name == "__getitem__":
            node = self.graph.call_function(operator.getitem, args)
        elif name == "__setitem__":
            self.graph.call_function(operator.setitem, args)
            self._bind(call.result, args[0])
            return
        elif name == "__set__":
            raise RecordError(f"an attribute of a tensor is set (at {call.place}), which a graph does not do")
        elif getattr(Tensor, name, None) is call.func:
            node = self.graph.call_method(name, args, kwargs)
        else:
            node = self.graph.call_function(call.func, args, kwargs, name=name.replace(".", "_") or None)
        node.meta["place"] = call.place
        self._bind(call.result, node)

    def _bind(self, result: Any, node: Node) -> None:
        if isinstance(result, Value):
            self.nodes[result.number] = node
            node.meta["shape"] = self.pair.dims(result)
            return
        if isinstance(result, (tuple, list)):
            for k, part in enumerate(result):
                if isinstance(part, (Value, tuple, list)):
                    self._bind(part, self.graph.call_function(operator.getitem, (node, k)))
        elif isinstance(result, dict):
            for key, part in result.items():
                self._bind(part, self.graph.call_function(operator.getitem, (node, key)))


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """A module as a graph of the functions that it calls.

    It runs twice, with the example and with other values (and other sizes along the dynamic dimensions): what it calls
    must be the same, and so must every number that is no size of a tensor.

    Args:
        mod: The module.
        args: The example.
        kwargs: Its keyword arguments.
        dynamic_shapes: For each argument, the dimensions whose sizes may differ, as in :func:`rgrad.onnx.export`.
        strict: Has no effect.
        preserve_module_call_signature: Has no effect.
        prefer_deferred_runtime_asserts_over_guards: Has no effect.

    Returns:
        An :class:`ExportedProgram`.

    Raises:
        ValueError: ``mod`` is no module, or names of dimensions do not fit.
        RuntimeError: ``args`` is no tuple, or the module is no graph that is the same for all inputs: it looks at
            elements, or writes to its buffers.

    Example:
        >>> program = rgrad.export.export(rgrad.nn.Linear(3, 2), (rgrad.ones(1, 3),))
        >>> print(program.graph_module.code.strip())
        def forward(self, p_weight, p_bias, input):
            input_1 = input
            linear = rgrad.nn.functional.linear(input_1, p_weight, p_bias);  input_1 = p_weight = p_bias = None
            return (linear,)
        >>> program.module()(rgrad.ones(1, 3)).shape
        rgrad.Size([1, 2])
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise RuntimeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    named = dict(kwargs or {})
    names = input_names(mod, args, named)
    dynamic = dynamic_of(mod, args, named, names, dynamic_shapes)
    pair = two_recordings(mod, args, named, names, dynamic, lambda name, func: True, False)
    return ExportedProgram(pair, mod, (args, named), names, dynamic)
