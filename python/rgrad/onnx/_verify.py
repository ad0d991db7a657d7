"""What onnxruntime computes beside what the model gave when it was recorded."""

from __future__ import annotations

from typing import Any

from ..export._pair import Pair
from ..fx._record import Value
from ..testing import assert_close
from ._program import ONNXProgram
from .errors import OnnxExporterError


def compare(program: ONNXProgram, pair: Pair, expected: Any = None) -> None:
    """Run the exported model on both examples.

    Raises:
        OnnxExporterError: A result differs.
        ImportError: onnxruntime is not installed.
    """
    for recording in (pair.first, pair.second):
        given = [value.tensor for value in recording.inputs]
        found = program(*given)
        wanted = [out.tensor for out in recording.outputs if isinstance(out, Value)]
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if b is None:
                continue
            try:
                assert_close(a, b.detach().cpu(), rtol=1e-3, atol=1e-4, equal_nan=True)
            except AssertionError as error:
                raise OnnxExporterError(f"onnx.export: output {k} of onnxruntime differs: {error}") from None
