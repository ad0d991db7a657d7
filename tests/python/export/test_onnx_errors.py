"""What is refused: by name, with the line and with what to do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import rgrad
from onnx_kit import onnx
from rgrad import Tensor, nn
from rgrad.export import Dim
from rgrad.onnx import OnnxExporterError
from rgrad.onnx.errors import SymbolicValueError, UnsupportedOperatorError

assert onnx is not None
X = rgrad.arange(6.0).view(2, 3)


def refused(function: Any, kind: type[Exception], match: str, *args: Any, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        rgrad.onnx.export(function, args or (X,), **options)


def test_operations_without_a_form() -> None:
    refused(lambda x: rgrad.linalg.svdvals(x), UnsupportedOperatorError, "svdvals.*has no form in ONNX")
    refused(lambda x: rgrad.digamma(x), UnsupportedOperatorError, "'_?special_value'|'digamma'|digamma")
    refused(lambda x: rgrad.fft.fft(x), UnsupportedOperatorError, "fft")
    refused(lambda x: rgrad.multinomial(x + 1, 2), UnsupportedOperatorError, "'multinomial'")


def test_arguments_without_a_form() -> None:
    refused(lambda x: x[x > 2], SymbolicValueError, "'__getitem__'.*a mask as an index")
    refused(lambda x: x.view(rgrad.int32), SymbolicValueError, "other|another dtype")
    refused(nn.Dropout(), SymbolicValueError, "eval mode", training=rgrad.onnx.TrainingMode.PRESERVE)
    refused(lambda x: x.argmax(keepdim=True), SymbolicValueError, "keepdim")
    refused(nn.MaxPool1d(2, return_indices=True), OnnxExporterError, "max_pool1d", X[None])


def test_programs_that_look_at_values() -> None:
    refused(
        lambda x: x if x.sum() > 0 else -x, OnnxExporterError, "Tensor.__bool__ of a value that depends on the inputs"
    )
    refused(lambda x: x * x.max().item(), OnnxExporterError, "Tensor.item")
    refused(lambda x: x + rgrad.from_numpy(x.numpy()), OnnxExporterError, "Tensor.numpy")


def test_values_that_bypass_the_recording() -> None:
    outside: list[Tensor] = []

    class Hidden(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            with rgrad._core.DisableTorchFunction():
                return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g

    refused(lambda x: Hidden.apply(x) + x, OnnxExporterError, "not by recorded operations")
    count = iter(range(10))
    refused(lambda x: x + rgrad.tensor(next(count)), OnnxExporterError, "not by recorded operations")
    assert outside == []


def test_calls_that_differ_between_runs() -> None:
    calls = iter(range(10))

    def f(x: Tensor) -> Tensor:
        return x.exp() if next(calls) == 0 else x.sin()

    refused(f, OnnxExporterError, "with other inputs the program calls 'sin' .* where it called 'exp'")


def test_writes() -> None:
    def through_a_view(x: Tensor) -> Tensor:
        y = x * 1
        y[0].add_(1)
        return y * 2

    refused(through_a_view, OnnxExporterError, "changed in place through a view")
    norm = nn.BatchNorm1d(3)
    refused(norm, OnnxExporterError, "writes to 'num_batches_tracked'|writes to 'running", training=2)
    assert norm.training
    x = X.clone()
    program = rgrad.onnx.export(lambda x: x.add_(1), (x,))
    assert program is not None
    assert rgrad.equal(x, X)  # the example is not written to


def test_sizes_that_become_numbers() -> None:
    def f(x: Tensor) -> Tensor:
        return x.reshape(len(x) * 3)

    refused(f, OnnxExporterError, "a number changes with the sizes", dynamic_shapes=({0: "batch"},))
    assert rgrad.onnx.export(f, (X,)) is not None
    refused(
        lambda x: x.split(1),
        OnnxExporterError,
        "makes .* tensors|other inputs|parts of dimension 0",
        dynamic_shapes=({0: "batch"},),
    )
    refused(lambda x: x + rgrad.ones(2, 3), OnnxExporterError, "not with other sizes", dynamic_shapes=({0: "batch"},))


def test_arguments_of_export() -> None:
    net = nn.Linear(3, 2)
    refused(net, OnnxExporterError, "from 18 to 23, but got 17", opset_version=17)
    refused(net, ValueError, "2 input_names for 1 tensors", input_names=["a", "b"])
    refused(net, ValueError, "2 output_names for 1 tensors", output_names=["a", "b"])
    refused(net, ValueError, "there are no arguments \\['y'\\]", dynamic_shapes={"y": {0: "b"}})
    refused(net, ValueError, "has no dimension 2", dynamic_shapes=({2: "b"},))
    refused(net, ValueError, "is said to be 7", dynamic_shapes=({0: 7},))
    refused(net, NotImplementedError, "custom_opsets", custom_opsets={"a": 1})
    refused(lambda x: 3, OnnxExporterError, "gives no tensor")
    refused(lambda x: x.to(rgrad.complex64), UnsupportedOperatorError, "complex64")
    with pytest.raises(NotImplementedError, match="no graph of TorchScript"):
        rgrad.onnx.symbolic_helper.parse_args("v")(rgrad.onnx.symbolic_helper._maybe_get_const)(1, "i")


def test_dimensions() -> None:
    assert repr(Dim("b", min=1, max=4)) == "Dim('b', min=1, max=4)"
    assert (2 * Dim("b") + 1).__name__ == "2*b + 1"
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("a b")
    with pytest.raises(AssertionError, match="inconsistent"):
        Dim("b", min=3, max=2)
    half = rgrad.onnx.export(lambda x: x.view(-1, 2), (rgrad.ones(4),), dynamic_shapes=([2 * Dim("h")],), verify=True)
    assert half is not None
    assert half(rgrad.ones(10))[0].shape == (5, 2)


def test_names_that_libraries_ask_for() -> None:
    from rgrad.onnx import symbolic_opset11

    with pytest.raises(NotImplementedError, match="symbolic_helper.select"):
        symbolic_opset11.select(None, 1)
    with pytest.raises(AttributeError, match="symbolic_opsetx"):
        rgrad.onnx.symbolic_opsetx
    assert not rgrad.onnx.is_in_onnx_export()
    assert not rgrad.onnx.utils.is_in_onnx_export()
    rgrad.onnx.register_custom_op_symbolic("own::name", len, 18)
    rgrad.onnx.unregister_custom_op_symbolic("own::name", 18)
    with pytest.raises(OnnxExporterError, match="domain::name"):
        rgrad.onnx.register_custom_op_symbolic("name", len, 18)
    net = nn.Dropout()
    with rgrad.onnx.utils.select_model_mode_for_export(net, rgrad.onnx.TrainingMode.EVAL):
        assert not net.training
    assert net.training


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["onnx"] = None
import rgrad
import rgrad.onnx._export
try:
    rgrad.onnx.export(rgrad.nn.Linear(1, 1), rgrad.ones(1, 1))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "onnx.export needs the package onnx; install it with 'pip install onnx'\n"
