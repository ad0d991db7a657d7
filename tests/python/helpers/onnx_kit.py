"""Exports to ONNX that are checked: by the checker, and against onnxruntime on both examples."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def exported(model: Any, *args: Any, dynamic: bool = True, **options: Any) -> Any:
    """The program of a model. ``verify`` runs it on the example and on another one, with other values.

    Args:
        model: The model.
        args: The example.
        dynamic: The first dimension of each tensor may have another size; the other example has one.
        options: As for ``rgrad.onnx.export``.
    """
    if dynamic:
        options.setdefault("dynamic_shapes", tuple({0: "batch"} if isinstance(x, rgrad.Tensor) else None for x in args))
    program = rgrad.onnx.export(model, args, verify=True, **options)
    assert program is not None
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program


def operators(program: Any) -> list[str]:
    """The operators of its nodes, in their order."""
    return [node.op_type for node in program.model_proto.graph.node]


def shapes(values: Any) -> dict[str, list[Any]]:
    """Names of inputs or outputs with their sizes."""
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
