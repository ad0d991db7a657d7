"""Drawings of graphs: what they show, that nothing overlaps, and that drawing leaves everything as it was."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rectangles import inside, overlap
from rgrad import nn
from rgrad.autograd._drawing.place import place
from rgrad.autograd.graph import Drawing, GradientEdge, draw, module_calls
from rgrad.vision import models

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing: Drawing) -> list[str]:
    """All texts of the picture. It is well-formed XML, or this fails."""
    return [t.text or "" for t in ET.fromstring(drawing.svg).iter(f"{SVG}text")]


def nodes(drawing: Drawing) -> dict[str, list[str]]:
    """The lines of each node by its title."""
    return {node.title: node.lines for node in drawing._picture.nodes}


def kinds(drawing: Drawing) -> list[str]:
    return [node.kind for node in drawing._picture.nodes]


def named_edges(drawing: Drawing) -> set[tuple[str, str]]:
    picture = drawing._picture
    return {(picture.nodes[a].title, picture.nodes[b].title) for a, b in picture.edges}


def boxes(drawing: Drawing) -> list[str]:
    found = []
    stack = [drawing._picture.root]
    while stack:
        box = stack.pop()
        for part in box.children:
            if hasattr(part, "children"):
                found.append(part.title)
                stack.append(part)
    return sorted(found)


def check_places(drawing: Drawing) -> None:
    """No two nodes overlap, every node lies in its box and outside of others, and edges point down."""
    picture = drawing._picture
    places = place(picture)
    for i, a in enumerate(places.nodes):
        for b in places.nodes[:i]:
            assert not overlap(a, b)
    rects = {id(box): rect for box, rect in places.boxes}
    for node, rect in zip(picture.nodes, places.nodes, strict=True):
        around = set()
        box = node.box
        while box is not None:
            around.add(id(box))
            box = box.box
        for key, other in rects.items():
            assert inside(rect, other) if key in around else not overlap(rect, other)
        assert rect.x >= 0
        assert rect.x + rect.width <= places.width
        assert rect.y + rect.height <= places.height
    for points, _ in places.edges:
        assert all(y0 <= y1 for (_, y0), (_, y1) in pairwise(points))


def small() -> tuple[rgrad.Tensor, dict[str, rgrad.Tensor]]:
    x = rgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = rgrad.ones(3, 3, requires_grad=True)
    return (w @ (x * 2).exp() + x).sum(), {"x": x, "w": w}


def test_a_small_graph() -> None:
    root, names = small()
    drawing = draw(root, params=names)
    assert named_edges(drawing) == {
        ("x", "MulBackward0"),
        ("MulBackward0", "ExpBackward0"),
        ("ExpBackward0", "MvBackward0"),
        ("w", "MvBackward0"),
        ("MvBackward0", "AddBackward0"),
        ("x", "AddBackward0"),
        ("AddBackward0", "SumBackward0"),
        ("SumBackward0", "output"),
    }
    shown = nodes(drawing)
    assert shown["w"] == ["3×3 float32"]
    assert shown["output"] == ["scalar float32"]
    assert shown["ExpBackward0"][:2] == ["3 float32", "saved 12 B"]
    assert not any("saved" in line for line in shown["AddBackward0"])
    assert drawing.operations == 5
    assert drawing.nodes == 8
    assert repr(drawing) == "<Drawing of 5 operations as 8 nodes>"
    check_places(drawing)


def test_nodes_name_their_lines() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp()  # another line
    drawing = draw(z, params=[("x", x)])
    lines = [line for node in nodes(drawing).values() for line in node if line.startswith("test_drawing.py:")]
    first, second = (int(line.partition(":")[2]) for line in lines)
    assert second == first + 1
    assert (
        f"<title>ExpBackward0\nExpBackward0\n{__file__}:{second} in test_nodes_name_their_lines</title>" in drawing.svg
    )


def test_gradient_norms() -> None:
    root, names = small()
    assert not any("grad" in line for lines in nodes(draw(root, params=names)).values() for line in lines)
    drawing = draw(root, params=names, gradients=True)
    shown = nodes(drawing)
    assert "|grad| 1" in shown["SumBackward0"]
    assert "|grad| 1.73" in shown["AddBackward0"]
    exp = (names["x"] * 2).exp()
    # w @ exp(2x): the gradient at w is exp(2x) in each row.
    assert shown["w"][1] == f"|grad| {float(exp.norm()) * 3**0.5:.3g}"
    assert names["x"].grad is None
    # Nothing was freed, and the pass after it is the ordinary one.
    root.backward()
    after = nodes(draw(root, params=names))
    assert after["x"][1] == f"|grad| {float(names['x'].grad.norm()):.3g}"
    assert after["x"][1] == shown["x"][1]
    assert "saved: freed" in after["ExpBackward0"]
    with pytest.raises(RuntimeError, match="freed"):
        draw(root, gradients=True)


def test_a_model_that_is_run() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    drawing = draw(model, rgrad.ones(4, 2))
    assert boxes(drawing) == ["Sequential"]
    shown = nodes(drawing)
    assert list(shown) == ["input", "0 · Linear", "1 · ReLU", "2 · Linear", "output"]
    assert shown["0 · Linear"][:3] == ["AddmmBackward0", "4×3 float32", "bias 3, weight 3×2"]
    assert named_edges(drawing) == {
        ("input", "0 · Linear"),
        ("0 · Linear", "1 · ReLU"),
        ("1 · ReLU", "2 · Linear"),
        ("2 · Linear", "output"),
    }
    check_places(drawing)


class Shared(nn.Module):
    """One layer called twice, and keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: rgrad.Tensor, *, scale: rgrad.Tensor) -> dict[str, rgrad.Tensor]:
        x = self.drop(self.norm(self.layer(x).tanh())) * scale
        return {"a": self.layer(x), "b": x.sum()}


def test_a_layer_that_is_called_twice_and_several_results() -> None:
    model = Shared()
    drawing = draw(model, {"x": rgrad.randn(4, 3), "scale": rgrad.ones(3)})
    titles = [node.title for node in drawing._picture.nodes]
    assert titles.count("layer · Linear") == 2
    assert {"a", "b"} <= set(titles)
    # The layer's parameters have two users, so they have nodes of their own.
    assert {"layer.weight", "layer.bias"} <= set(titles)
    assert "norm.weight" not in titles
    check_places(drawing)


def test_drawing_a_model_changes_nothing() -> None:
    model = Shared()
    x = rgrad.randn(4, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    identities = {name: id(b) for name, b in model.named_buffers()}
    rgrad.manual_seed(7)
    expected = rgrad.rand(3)
    rgrad.manual_seed(7)
    draw(model, {"x": x, "scale": rgrad.ones(3)})
    assert rgrad.equal(rgrad.rand(3), expected)
    for name, value in model.state_dict().items():
        assert rgrad.equal(value, before[name]), name
    assert {name: id(b) for name, b in model.named_buffers()} == identities
    assert model.training
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert not module._hooked
    assert all(p.grad is None for p in model.parameters())


def test_lazy_layers_stay_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    drawing = draw(model, rgrad.ones(2, 5))
    assert nodes(drawing)["0 · Linear"][2] == "bias 3, weight 3×5"
    assert type(model[0]) is nn.LazyLinear
    assert model[0].has_uninitialized_params()


def test_hooks_of_the_user_stay() -> None:
    model = nn.Linear(2, 2)
    seen = []
    handle = model.register_forward_hook(lambda *_: seen.append(1))
    draw(model, rgrad.ones(1, 2))
    model(rgrad.ones(1, 2))
    assert len(seen) == 2
    handle.remove()


def test_a_drawing_keeps_no_graph() -> None:
    import gc
    import weakref

    x = rgrad.ones(3, requires_grad=True)
    y = (x * 2).sum()
    node = weakref.ref(y.grad_fn)
    drawing = draw(y)
    del y
    gc.collect()
    assert node() is None
    assert "SumBackward0" in drawing.svg


def test_modules_from_the_names_of_parameters() -> None:
    model = models.resnet18(num_classes=5)
    loss = model(rgrad.randn(2, 3, 32, 32)).logsumexp(1).mean()
    guessed, exact = draw(loss, params=model), draw(model, rgrad.randn(2, 3, 32, 32))
    assert {"layer1 · Sequential", "layer4 · Sequential", "downsample · Sequential"} <= set(boxes(guessed))
    assert {"layer1 · Sequential", "layer4 · Sequential", "downsample · Sequential", "ResNet"} <= set(boxes(exact))
    # A mapping has names, but no classes.
    assert "layer1" in boxes(draw(loss, params=dict(model.named_parameters())))
    check_places(guessed)
    check_places(exact)


def test_modules_of_calls_that_were_watched() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    x = rgrad.ones(2, 3)
    with module_calls(model) as calls:
        loss = (model(x) + model(x * 2)).square().sum()
    drawing = draw(loss, params=calls)
    assert boxes(drawing) == ["Sequential", "Sequential"]
    assert [t for t in nodes(drawing) if "Backward" in t] == ["AddBackward0", "PowBackward0", "SumBackward0"]
    with pytest.raises(TypeError, match=r"module_calls: expected an nn.Module, got int"):
        module_calls(3)
    with calls, pytest.raises(RuntimeError, match="this block was entered already"):
        calls.__enter__()
    # What raises inside of a call leaves no hooks.
    with pytest.raises(RuntimeError), module_calls(model):
        model(rgrad.ones(2, 4))
    assert not any(m._forward_hooks or m._hooked for m in model.modules())


def test_depth() -> None:
    model = models.resnet18(num_classes=5)
    x = rgrad.randn(2, 3, 32, 32)
    whole = draw(model, x, depth=0)
    assert "conv1 · Conv2d" in nodes(whole)
    assert boxes(whole) == ["ResNet"]
    assert nodes(whole)["layer1 · Sequential"][0] == "14 operations"
    assert boxes(draw(model, x, depth=1)) == ["ResNet", *(f"layer{i} · Sequential" for i in range(1, 5))]
    assert "downsample · Sequential" in boxes(draw(model, x, depth=9))
    for depth in (0, 1, 2):
        check_places(draw(model, x, depth=depth))


def test_equal_layers_are_drawn_once() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)) for _ in range(12)))
    drawing = draw(model, rgrad.randn(2, 4, requires_grad=True))
    assert boxes(drawing) == ["0 … 11 · Sequential  × 12", "Sequential"]
    assert drawing.operations == 36
    assert drawing.nodes == 5
    check_places(drawing)
    folded = draw(model, rgrad.randn(2, 4, requires_grad=True), depth=0)
    assert "0 … 11 · Sequential  × 12" in nodes(folded)
    # Another size in the middle is another layer.
    model[5] = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh(), nn.LayerNorm(4))
    drawing = draw(model, rgrad.randn(2, 4, requires_grad=True))
    assert {"0 … 4 · Sequential  × 5", "5 · Sequential", "6 … 11 · Sequential  × 6"} <= set(boxes(drawing))


def test_a_long_title_keeps_its_count() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    text = draw(nn.TransformerEncoder(layer, 6), rgrad.ones(2, 5, 16)).svg
    assert "layers.1 … layers.5 · TransformerEncoder…  × 5</text>" in text


def test_loops_are_drawn_once_and_nested_ones_too() -> None:
    x = rgrad.ones(3, requires_grad=True)
    y = x
    for _ in range(7):
        y = y * 2
        for _ in range(5):
            y = y.sin().exp()
    drawing = draw(y, params={"x": x})
    assert drawing.operations == 77
    assert boxes(drawing) == ["× 5", "× 7"]
    assert sorted(nodes(drawing)) == ["ExpBackward0", "MulBackward0", "SinBackward0", "output", "x"]
    # The last operation of the last turn goes to the output, whatever is drawn for it.
    assert ("ExpBackward0", "output") in named_edges(drawing)
    check_places(drawing)


@pytest.mark.parametrize("count", [3000, 30_000])
def test_a_large_graph_without_structure_stays_small(count: int) -> None:
    x = rgrad.ones(3, requires_grad=True)
    y = x
    state = 1
    for _ in range(count):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        y = (y.sin, y.cos, y.tanh, y.exp, y.neg)[(state >> 16) % 5]() + (x if state >> 20 & 1 else y)
    drawing = draw(y)
    assert drawing.operations >= count
    assert drawing.nodes < 150
    assert len(drawing.svg) < 500_000
    check_places(drawing)


def test_a_hundred_thousand_nodes() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = (y * 0.5).tanh()
    drawing = draw(y.sum(), params={"x": x})
    assert drawing.operations == 100_001
    assert drawing.nodes == 5
    assert boxes(drawing) == ["× 50000"]


def test_resnets_are_small_files() -> None:
    x = rgrad.randn(2, 3, 32, 32)
    for model in (models.resnet18(), models.resnet50()):
        drawing = draw(model, x)
        assert len(drawing.svg.encode()) < 500_000
        assert drawing.nodes <= 100
        check_places(drawing)


def test_dark_text_on_light_ground() -> None:
    """The contrast of WCAG (7 : 1 and more) for all text on everything that it may stand on."""
    svg = draw(models.resnet18(num_classes=3), rgrad.randn(2, 3, 32, 32)).svg

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    ink = {*re.findall(r"<text[^>]*fill=\"(#\w{6})\"", svg), "#1b1f24"}
    ground = set(re.findall(r"<rect[^>]*fill=\"(#\w{6})\"", svg))
    assert len(ink) >= 3
    assert len(ground) >= 4
    for a in ink:
        for b in ground:
            assert (light(b) + 0.05) / (light(a) + 0.05) > 5.5, (a, b)


def test_functions_as_boxes() -> None:
    x = rgrad.ones(2, requires_grad=True)

    def encode(t: rgrad.Tensor) -> rgrad.Tensor:
        t = t.exp()
        return t.tanh()

    def decode(t: rgrad.Tensor) -> rgrad.Tensor:
        t = t.sin()
        return t.cos()

    drawing = draw(decode(encode(x)), group="function")
    assert boxes(drawing) == ["decode", "encode"]
    assert boxes(draw(decode(encode(x)), group=None)) == []


def test_roots_of_all_kinds() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y, z = x * 2, x.exp()
    assert "output[1]" in nodes(draw([y, z]))
    assert {"first", "second"} <= set(nodes(draw({"first": y, "second": z})))
    for root in (y.grad_fn, GradientEdge(y.grad_fn, 0)):
        assert named_edges(draw(root)) == {("leaf", "MulBackward0"), ("MulBackward0", "output")}
        assert "|grad| 1.41" in nodes(draw(root, gradients=True))["MulBackward0"]
    assert named_edges(draw(x, params={"x": x})) == {("x", "output")}
    # Views, in-place writes and several outputs.
    parts = (x * 1).split(1)
    t = rgrad.zeros(2, requires_grad=True) * 1
    t[0] = parts[0].sum()
    drawing = draw(t.sum() + parts[1].sum())
    assert "SplitBackward0" in " ".join(nodes(drawing))
    assert any("+ 1 more" in line for lines in nodes(drawing).values() for line in lines)
    check_places(drawing)


def test_functions_of_the_user_and_pack_hooks() -> None:
    class Twice(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: rgrad.Tensor) -> rgrad.Tensor:
            ctx.save_for_backward(x * 1, None)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: rgrad.Tensor) -> rgrad.Tensor:
            return g * 2

    x = rgrad.ones(4, requires_grad=True)
    assert "saved 16 B" in nodes(draw(Twice.apply(x)))["TwiceBackward"]
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: (t.detach().double(), "note"), lambda p: p[0].float()):
        y = (x * 1).exp()
    assert "saved 32 B" in nodes(draw(y))["ExpBackward0"]


def test_second_derivatives() -> None:
    x = rgrad.ones(2, requires_grad=True)
    (slope,) = rgrad.autograd.grad((x**3).sum(), x, create_graph=True)
    drawing = draw(slope, params={"x": x})
    assert drawing.operations >= 3
    check_places(drawing)


def test_on_devices(device: str) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).to(device)
    drawing = draw(model, rgrad.ones(2, 3), gradients=True)
    assert "|grad|" in drawing.svg
    check_places(drawing)


def test_text_is_escaped() -> None:
    x = rgrad.ones(2, requires_grad=True)
    name = 'a<b>&"c"\\'
    drawing = draw(x * 2, params={name: x})
    assert name in texts(drawing)
    assert 'label="a<b>&\\"c\\"\\\\\\n2 float32"' in drawing.dot
    assert "a#lt;b#gt;#amp;#quot;c#quot;" in drawing.mermaid


def test_dot_and_mermaid() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    drawing = draw(model, rgrad.ones(4, 2))
    dot, mermaid = drawing.dot, drawing.mermaid
    assert dot.startswith("digraph")
    assert dot.count("{") == dot.count("}") == 3
    edges = [f"n{a} -> n{b};" for a, b in drawing._picture.edges]
    assert [line.strip() for line in dot.splitlines() if "->" in line] == edges
    assert mermaid.startswith("flowchart TB\n")
    assert mermaid.count("subgraph") == 2 == sum(line.strip() == "end" for line in mermaid.splitlines())
    assert [line.strip() for line in mermaid.splitlines() if "-->" in line] == [
        f"n{a} --> n{b}" for a, b in drawing._picture.edges
    ]


def test_save(tmp_path: Path) -> None:
    drawing = draw(*small()[:1])
    for ending, start in (
        ("svg", "<svg"),
        ("dot", "digraph"),
        ("gv", "digraph"),
        ("mmd", "flowchart"),
        ("html", "<!D"),
    ):
        drawing.save(tmp_path / f"graph.{ending}")
        assert (tmp_path / f"graph.{ending}").read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ValueError, match=r"ends in '.png', expected .svg, .dot"):
        drawing.save(str(tmp_path / "graph.png"))
    assert drawing._repr_svg_() == drawing.svg
    assert drawing.svg in drawing._repr_html_()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x, m: draw(x), RuntimeError, "the tensor does not require grad, so there is no graph"),
        (lambda x, m: draw([x, x]), RuntimeError, "none of the 2 tensors requires grad"),
        (lambda x, m: draw([]), RuntimeError, "there is no tensor"),
        (lambda x, m: draw(3), TypeError, "expected a tensor that requires grad, .* got int"),
        (lambda x, m: draw(m), TypeError, "Linear is a module, whose graph is made by running it"),
        (lambda x, m: draw(m(x), x), TypeError, "input is for a module, and root is of type Tensor"),
        (lambda x, m: draw(m(x), depth=-1), ValueError, "got depth=-1, expected 0 or more"),
        (lambda x, m: draw(m(x), depth=1.5), TypeError, "got depth of type float"),
        (lambda x, m: draw(m(x), depth=True), TypeError, "got depth of type bool"),
        (
            lambda x, m: draw(m(x), group="class"),
            ValueError,
            "got group='class', expected 'module'",
        ),
        (lambda x, m: draw(m(x), params=3), TypeError, "expected params to be .* got int"),
        (lambda x, m: draw(m(x), params=[x]), TypeError, "got list with an entry of type Tensor"),
        (lambda x, m: draw(m(x), params={"x": 1}), TypeError, "got dict with an entry of type tuple"),
        (lambda x, m: draw(nn.Linear), TypeError, "got type"),
    ],
)
def test_bad_input(call: Callable[..., Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(rgrad.ones(1, 2), nn.Linear(2, 1))


def test_a_model_that_raises_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(2, 2))
    mean = model[0].running_mean.clone()
    with pytest.raises(RuntimeError):
        draw(model, rgrad.randn(4, 3))
    assert rgrad.equal(model[0].running_mean, mean)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_many_leaves_are_joined() -> None:
    tensors = {f"t{i}": rgrad.ones(2, requires_grad=True) for i in range(500)}
    drawing = draw(rgrad.stack(list(tensors.values())).sum() + tensors["t3"].sum(), params=tensors)
    shown = nodes(drawing)
    assert shown["499 leaves"] == ["t0 … t499", "998 elements"]
    assert ("t3", "StackBackward0") in named_edges(drawing)
    check_places(drawing)
    # Parameters without modules are listed with their operations where they are many.
    model = models.resnet18(num_classes=4)
    loss = model(rgrad.randn(2, 3, 32, 32)).sum()
    assert draw(loss, params=model, group=None).nodes < 100
