"""From a model to a file: two recordings, their nodes, names and shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core
from ..export._examples import dynamic_of, input_names, name_of_dim, tensors_of
from ..export._pair import Pair, two_recordings
from ..fx._record import Value
from ..nn import Module
from . import _networks, _pointwise, _recurrent, _reductions, _views
from ._graph import Graph, helper, type_of
from .errors import OnnxExporterError

LEAST, MOST = 18, 23
_TABLES = (_networks, _pointwise, _recurrent, _reductions, _views)


@contextmanager
def _in_eval_mode(model: Any, on: bool) -> Iterator[None]:
    """A block with a model in eval mode; then each module has the mode that it had."""
    if not isinstance(model, Module) or not on:
        yield
        return
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def _axes_of(given: Any, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """``dynamic_axes`` with a name for each dimension."""
    found: dict[str, dict[int, str]] = {}
    for name, axes in (given or {}).items():
        if isinstance(axes, Mapping):
            found[name] = {int(axis): str(own) for axis, own in axes.items()}
        else:
            found[name] = {int(axis): f"{name}_dynamic_axes_{k + 1}" for k, axis in enumerate(axes)}
    return found


def _shape(
    dims: Sequence[int | None],
    sizes: tuple[Sequence[int], Sequence[int]],
    known: Mapping[tuple[int, int], str],
    name: str,
) -> list[int | str]:
    """Sizes, and names for those that the inputs decide: an input's where the sizes are its own."""
    return [
        known.get((sizes[0][k], sizes[1][k]), f"{name}_dim_{k}") if size is None else size
        for k, size in enumerate(dims)
    ]


def build(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    opset: int,
    dynamic_axes: Any,
    dynamic_shapes: Any,
    fold: bool,
    evaluate: bool,
    with_values: bool,
    values_as_inputs: bool,
) -> tuple[Any, Pair]:
    """The model as a protocol buffer, and the recordings that it was made of.

    Raises:
        OnnxExporterError: It has no form in ONNX, or is none that is the same for all inputs.
        ValueError: Names or dimensions do not fit the inputs.
    """
    if not LEAST <= opset <= MOST:
        raise OnnxExporterError(f"onnx.export: opset_version must be from {LEAST} to {MOST}, but got {opset}")
    tensors = tensors_of((args, kwargs))
    own_names = input_names(model, args, kwargs)
    if names is not None:
        if len(names) > len(tensors):
            raise ValueError(f"onnx.export: {len(names)} input_names for {len(tensors)} tensors")
        own_names = [*names, *own_names[len(names) :]]
    if len(set(own_names)) != len(own_names):
        raise ValueError(f"onnx.export: input names must differ, but they are {own_names}")
    axes = _axes_of(dynamic_axes, own_names)
    dynamic = dynamic_of(model, args, kwargs, own_names, dynamic_shapes)
    for k, name in enumerate(own_names):
        given = {axis % tensors[k].dim(): own for axis, own in axes.get(name, {}).items()}
        dynamic[k] = {**dynamic[k], **given}
    with _in_eval_mode(model, evaluate):
        pair = two_recordings(
            model, args, kwargs, own_names, dynamic, lambda name, func: name in _networks.LEAVES, fold
        )
    graph = Graph(pair, opset, [*own_names, *(output_names or ())])
    for at in range(len(pair.first.calls)):
        graph.convert(at)

    known: dict[tuple[int, int], str] = {}
    inputs = []
    for k, (a, b) in enumerate(zip(pair.first.inputs, pair.second.inputs, strict=True)):
        shape: list[int | str] = list(a.shape)
        for axis, dim in dynamic[k].items():
            shape[axis] = name_of_dim(dim)
            known.setdefault((a.shape[axis], b.shape[axis]), name_of_dim(dim))
        inputs.append(helper.make_tensor_value_info(own_names[k], type_of(a.dtype), shape))
    outputs, nodes = _outputs(graph, pair, output_names, axes, known)
    nodes, used = _needed(nodes, {out.name for out in outputs})
    values = {name: proto for name, proto in graph.initializers.items() if name in used}
    if not with_values or values_as_inputs:
        chosen = [name for name in values if values_as_inputs or name in graph.parameters]
        inputs += [helper.make_tensor_value_info(n, values[n].data_type, list(values[n].dims)) for n in chosen]
    if not with_values:
        values = {name: proto for name, proto in values.items() if name not in graph.parameters}
    title = type(model).__name__ if isinstance(model, Module) else getattr(model, "__name__", "main")
    made = helper.make_graph(nodes, title, inputs, outputs, initializer=list(values.values()))
    imports = [helper.make_opsetid("", opset)]
    proto = helper.make_model(made, opset_imports=imports, producer_name="rgrad", producer_version=_core.__version__)
    proto.ir_version = helper.find_min_ir_version_for(imports)
    return proto, pair


def _outputs(
    graph: Graph, pair: Pair, names: Sequence[str] | None, axes: Mapping[str, Mapping[int, str]], known: Any
) -> tuple[list[Any], list[Any]]:
    """What the model gives, and the nodes with the outputs' names."""
    values = [out for out in pair.first.outputs if isinstance(out, Value)]
    others = [out for out in pair.second.outputs if isinstance(out, Value)]
    if not values:
        raise OnnxExporterError("onnx.export: the model gives no tensor")
    own = list(names or ())
    if len(own) > len(values):
        raise ValueError(f"onnx.export: {len(own)} output_names for {len(values)} tensors")
    own += [graph.fresh("output" if len(values) == 1 else f"output_{k}") for k in range(len(own), len(values))]
    renamed: dict[str, str] = {}
    made = []
    produced = {out for node in graph.nodes for out in node.output}
    for value, other, name in zip(values, others, own, strict=True):
        now = graph.name(value)
        if now == name:
            pass
        elif now in produced and now not in renamed and name not in produced:
            renamed[now] = name
        else:
            graph.nodes.append(helper.make_node("Identity", [now], [name], name=f"{name}/Identity"))
        shape = _shape(pair.dims(value), (value.shape, other.shape), known, name)
        for axis, dim in axes.get(name, {}).items():
            shape[axis] = dim
        made.append(helper.make_tensor_value_info(name, type_of(value.dtype), shape))
    for node in graph.nodes:
        for k, x in enumerate(node.input):
            node.input[k] = renamed.get(x, x)
        for k, x in enumerate(node.output):
            node.output[k] = renamed.get(x, x)
    return made, graph.nodes


def _needed(nodes: Sequence[Any], wanted: set[str]) -> tuple[list[Any], set[str]]:
    """The nodes that outputs depend on, and all names that they use."""
    used = set(wanted)
    kept = []
    for node in reversed(nodes):
        if used & set(node.output):
            kept.append(node)
            used |= set(node.input)
    return kept[::-1], used
