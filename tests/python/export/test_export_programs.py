"""``export.export``: programs as graphs with signatures, and the modules made of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor, nn
from rgrad.export import Dim, ExportedProgram, InputKind, export
from rgrad.fx._record import record


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.BatchNorm1d(4))
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor, *, k: int = 2) -> dict[str, Any]:
        y = self.first(x.view(-1, x.shape[-1])).reshape(x.size(0), -1, 4)
        z = self.attention(y, y, y)[0]
        z = z + rgrad.arange(x.shape[1])[None, :, None] * k + rgrad.tensor([1.0, 2, 3, 4])
        z[:, 0] = 1
        return {"z": z, "more": (F.pad(z, (1, 1)), z.max(1))}


def program() -> tuple[nn.Module, ExportedProgram]:
    net = Net().eval()
    x = rgrad.randn(2, 3, 4)
    return net, export(net, (x,), {"k": 3}, dynamic_shapes={"x": {0: Dim("batch", max=99), 1: "length"}, "k": None})


def test_the_module_gives_what_the_original_gives() -> None:
    net, exported = program()
    module = exported.module()
    for size in ((2, 3, 4), (5, 7, 4)):
        x = rgrad.randn(*size)
        rgrad.testing.assert_close(module(x, k=3), net(x, k=3))
    rgrad.testing.assert_close(exported.run(x, k=3), net(x, k=3))
    assert set(module.state_dict()) <= set(net.state_dict())
    module(x, k=3)["z"].sum().backward()
    assert net.first[0].weight.grad is not None


def test_calls_that_the_graph_is_not_made_for() -> None:
    _, exported = program()
    module, x = exported.module(), rgrad.randn(2, 3, 4)
    for kind, match, call in (
        (RuntimeError, "Expected the value 3 of the example, but got 4", lambda: module(x, k=4)),
        (ValueError, "input tree spec", lambda: module(x)),
        (RuntimeError, "to be equal to 4, but got 5", lambda: module(rgrad.ones(2, 3, 5), k=3)),
        (RuntimeError, "to have 3 dimensions", lambda: module(rgrad.ones(2, 3), k=3)),
        (RuntimeError, "Unable to call ExportedProgram directly", lambda: exported(x)),
    ):
        with pytest.raises(kind, match=match):
            call()


def test_graph_and_signature() -> None:
    net, exported = program()
    signature = exported.graph_signature
    assert signature.user_inputs == ("x",)
    assert list(signature.parameters) == [
        "first.0.weight",
        "first.0.bias",
        "first.2.weight",
        "first.2.bias",
        "attention.in_proj_weight",
        "attention.in_proj_bias",
        "attention.out_proj.weight",
        "attention.out_proj.bias",
    ]
    assert list(signature.buffers) == ["first.2.running_mean", "first.2.running_var"]
    assert signature.inputs_to_parameters["p_first_0_weight"] == "first.0.weight"
    assert list(exported.constants) == list(signature.lifted_tensor_constants) == ["c_0"]
    kinds = [spec.kind for spec in signature.input_specs]
    assert kinds == sorted(
        kinds, key=[InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.USER_INPUT].index
    )
    assert [n.name for n in exported.graph.nodes if n.op == "placeholder"] == [
        s.arg.name for s in signature.input_specs
    ]
    assert len(signature.user_outputs) == 4
    assert exported.range_constraints == {"batch": (0, 99), "length": (0, None)}
    assert dict(exported.named_parameters()).keys() == dict(net.named_parameters()).keys()
    exported.validate()
    given = [
        exported.state_dict[s.target] if s.target in exported.state_dict else exported.constants[s.target]
        for s in signature.input_specs
        if s.target is not None
    ]
    x = rgrad.randn(2, 3, 4)
    z, padded, largest, where = exported.graph_module(*given, x)
    expected = net(x, k=3)
    rgrad.testing.assert_close(z, expected["z"])
    rgrad.testing.assert_close(padded, expected["more"][0])
    assert rgrad.equal(where, expected["more"][1].indices)
    assert largest.shape == (2, 4)
    assert "class Net(rgrad.nn.Module):" in str(exported)
    assert exported.run_decompositions() is exported


def test_what_is_no_graph() -> None:
    class Looks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", rgrad.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1)
            return x + self.calls

    x = rgrad.ones(2)
    for module, match in ((Looks(), "Tensor.__bool__"), (Counts(), "writes to 'calls'")):
        with pytest.raises(RuntimeError, match=match):
            export(module, (x,))
    with pytest.raises(ValueError, match="Expected `mod`"):
        export(lambda x: x, (x,))
    with pytest.raises(RuntimeError, match="to be a tuple"):
        export(Looks(), [x])  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="not with other sizes"):
        export(nn.Linear(2, 2), (rgrad.ones(3, 2),), dynamic_shapes=({1: "features"},))
    for refused in (lambda: rgrad.export.save(program()[1], "x"), lambda: rgrad.export.load("x")):
        with pytest.raises(NotImplementedError, match="not written to files"):
            refused()


def test_sizes_stay_expressions_where_two_runs_agree_by_chance() -> None:
    class Cut(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.new_zeros(x.shape[0] - y.shape[0] + 1)

    dynamic = ({0: "n"}, {0: "n"})
    module = export(Cut(), (rgrad.ones(3), rgrad.ones(3)), dynamic_shapes=dynamic).module()
    # They are said to be one size, and the graph computes with both.
    assert module(rgrad.ones(9), rgrad.ones(4)).shape == (6,)


def test_dataclasses() -> None:
    @dataclasses.dataclass
    class Pair:
        a: Tensor
        b: Tensor

    rgrad.export.register_dataclass(Pair)

    class Swap(nn.Module):
        def forward(self, pair: Pair) -> Pair:
            return Pair(pair.b * 2, pair.a)

    module = export(Swap(), (Pair(rgrad.ones(2), rgrad.zeros(3)),)).module()
    found = module(Pair(rgrad.ones(2), rgrad.ones(3)))
    assert isinstance(found, Pair)
    assert (found.a.tolist(), found.b.tolist()) == ([2, 2, 2], [1, 1])
    with pytest.raises(AssertionError, match="Only dataclasses"):
        rgrad.export.register_dataclass(int)


def test_the_recorder_takes_apart_what_modes_are_not_asked_about() -> None:
    """A function of Python whose results come from elsewhere is recorded as itself."""
    recording = record(
        lambda x: rgrad.linalg.det(x) + 1, (rgrad.eye(2),), {}, names=["x"], is_leaf=lambda name, func: False
    )
    assert [call.name for call in recording.calls] == ["det", "add"]
