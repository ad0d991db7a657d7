"""A model's graph for TensorBoard: the operations that a forward pass records, in scopes by module."""

from typing import Any

from ...autograd._drawing.compose import arguments_of, tensors_by_name
from ...autograd._drawing.modules import ModuleCalls, is_module
from ...autograd._drawing.walk import collect, metadata_of
from ...autograd._trial import trial_run, with_sizes_to_come
from ...autograd.grad_mode import enable_grad
from ._library import library


def graph_def(model: Any, input: Any) -> Any:
    """The message with all operations of ``model(*input)``, its parameters, inputs and outputs."""
    if is_module(model):
        model = with_sizes_to_come(model)
    calls = ModuleCalls(model)
    args, kwargs = arguments_of(input)
    with trial_run(model), enable_grad(), calls:
        result = model(*args, **kwargs)
        outputs = tensors_by_name(result)
        edges = [(name, t.grad_fn) for name, t in outputs if t.grad_fn is not None]
        if not edges:
            raise RuntimeError("add_graph: no output of the model requires grad, so there is no graph of operations")
        graph = collect([node for _, node in edges])
        inputs = [(f"input/input_{i}", x) for i, (_, x) in enumerate(tensors_by_name([args, kwargs]))]
        uses = calls._users(graph, [x for _, x in inputs])
        paths = calls._paths(graph)
    names = {id(p): name for name, p in model.named_parameters()}
    top = type(model).__name__
    made: dict[str, Any] = {}
    leaf_names = []
    for i, leaf in enumerate(graph.leaves):
        at = next((k for k, (_, x) in enumerate(inputs) if x is leaf.tensor), None)
        if at is not None:
            leaf_names.append(inputs[at][0])
            continue
        known = names.get(id(leaf.tensor))
        name = f"{top}/{known.replace('.', '/')}" if known else f"{top}/leaf_{i}"
        leaf_names.append(name)
        made[name] = _node(name, "Parameter" if known else "Leaf", [], [tuple(leaf.tensor.shape)], leaf.tensor.dtype)
    for name, x in inputs:
        made[name] = _node(name, "IO Node", [], [tuple(x.shape)], x.dtype)
    op_names = []
    for i, name in enumerate(graph.names):
        scope = "/".join(frame.name.replace(".", "/") for frame in paths[i] if frame.name)
        op_names.append("/".join(part for part in (top, scope, f"{name}_{i}") if part))
    for i, node in enumerate(graph.ops):
        takes = [op_names[k] for k in graph.inputs[i]] + [leaf_names[k] for k in graph.leaf_inputs[i]]
        takes += [inputs[k][0] for k, user in uses if user == i]
        metadata = metadata_of(node)
        shapes = [tuple(m.shape) for m in metadata]
        dtype = metadata[0].dtype if metadata else None
        made[op_names[i]] = _node(op_names[i], graph.names[i], takes, shapes, dtype, graph.sites[i])
    for k, (name, _) in enumerate(edges):
        at = graph.outputs[k]
        source = op_names[at] if at >= 0 else leaf_names[~at]
        metadata = metadata_of(edges[k][1])
        made[f"output/{name}"] = _node(
            f"output/{name}", "IO Node", [source], [tuple(m.shape) for m in metadata[:1]], metadata[0].dtype
        )
    versions = library().module("versions").VersionDef(producer=22)
    return library().module("graph").GraphDef(node=list(made.values()), versions=versions)


def _node(
    name: str,
    op: str,
    inputs: list[str],
    shapes: list[tuple[int, ...]],
    dtype: Any,
    site: str | None = None,
) -> Any:
    attr = library().module("attr_value").AttrValue
    shape = library().tensor_shape.TensorShapeProto
    shown = [shape(dim=[shape.Dim(size=n) for n in sizes]) for sizes in shapes]
    attributes = {"_output_shapes": attr(list=attr.ListValue(shape=shown))}
    if dtype is not None:
        attributes["dtype"] = attr(s=str(dtype).rpartition(".")[2].encode())
    if site:
        attributes["line"] = attr(s=site.encode())
    return library().module("node_def").NodeDef(name=name, op=op, input=inputs, attr=attributes)
