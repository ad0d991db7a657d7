"""ONNX: models in a form that other runtimes read.

:func:`export` needs the package ``onnx``. It records what the model calls, and writes ONNX's operators for it.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..export import ExportedProgram
from ..fx._record import RecordError
from . import errors as errors
from . import symbolic_helper as symbolic_helper
from . import symbolic_opset11 as symbolic_opset11
from . import utils as utils
from ._data_types import TensorProtoDataType
from ._package import package
from ._program import ONNXProgram
from .errors import OnnxExporterError
from .utils import is_in_onnx_export, register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
    "register_custom_op_symbolic",
    "symbolic_helper",
    "unregister_custom_op_symbolic",
    "utils",
]

producer_name = "rgrad"
_DEFAULT_OPSET = 20


class TrainingMode(enum.IntEnum):
    """The mode of a model while it is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """Which operators may be written; always those of ONNX here."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_onnxrt_backend_supported() -> bool:
    """False: :func:`rgrad.compile` has no backend of onnxruntime."""
    return False


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | Any | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Write a model as ONNX.

    The model runs twice, with the example and with other values (and other sizes along the dynamic dimensions): what it
    calls must be the same, and so must every number that is no size of a tensor.

    Args:
        model: A module or a function of tensors, or what :func:`rgrad.export.export` gives.
        args: The example: a tensor, or a tuple of what the model takes.
        f: A path, or a file opened for writing; None writes nothing.
        kwargs: Keyword arguments of the example.
        verbose: Print the graph.
        input_names: A name for each tensor of the example; by default those of the parameters.
        output_names: A name for each tensor of the result.
        opset_version: The version of ONNX's operators, from 18 to 23; 20 by default.
        dynamo: Give an :class:`ONNXProgram`.
        external_data: Write the numbers to a file of their own; None does so above 2 GB.
        dynamic_shapes: For each argument, the dimensions whose sizes may differ: ``{0: "batch"}``, a list with an entry
            for each dimension, or a tree of these. Names are strings or :class:`rgrad.export.Dim`.
        custom_translation_table: Refused.
        report: Has no effect.
        optimize: Has no effect.
        verify: Compare with what onnxruntime computes.
        profile: Has no effect.
        dump_exported_program: Has no effect.
        artifacts_dir: Has no effect.
        export_params: Write the numbers of the parameters; else they are inputs.
        keep_initializers_as_inputs: List the parameters as inputs, too.
        dynamic_axes: The same as ``dynamic_shapes`` by names of inputs: ``{"x": {0: "batch"}}`` or ``{"x": [0]}``.
            Those of outputs name their dimensions.
        training: The mode of the model meanwhile.
        operator_export_type: Only ``ONNX``.
        do_constant_folding: Compute what depends on parameters alone, instead of writing the operations.
        custom_opsets: Refused.
        export_modules_as_functions: Refused.
        autograd_inlining: Has no effect.

    Returns:
        The program, or None with ``dynamo=False``.

    Raises:
        ImportError: The package onnx is not installed.
        OnnxExporterError: An operation has no form in ONNX (``UnsupportedOperatorError``), or none with its arguments
            (``SymbolicValueError``), or the model's graph is not the same for all inputs.
        NotImplementedError: An argument is refused.
        ValueError: Names or dimensions do not fit the inputs.

    Example:
        >>> net = rgrad.nn.Linear(3, 2)
        >>> program = rgrad.onnx.export(net, rgrad.ones(1, 3), dynamic_shapes=({0: "batch"},))  # doctest: +SKIP
        >>> program(rgrad.ones(5, 3))[0].shape  # doctest: +SKIP
        rgrad.Size([5, 2])
    """
    for name, given in (
        ("custom_translation_table", custom_translation_table),
        ("custom_opsets", custom_opsets),
        ("export_modules_as_functions", export_modules_as_functions),
    ):
        if given:
            raise NotImplementedError(f"onnx.export: {name} is not supported: only ONNX's own operators are written")
    if operator_export_type != OperatorExportTypes.ONNX:
        raise NotImplementedError("onnx.export: operator_export_type must be OperatorExportTypes.ONNX")
    onnx = package("onnx", "onnx.export")
    from ._export import build

    own = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    # PyTorch's older form: keyword arguments as a dictionary at the end.
    if kwargs is None and not dynamo and own and isinstance(own[-1], dict):
        own, named = own[:-1], own[-1]
    if isinstance(model, ExportedProgram):
        if args == ():
            own, named = model.example_inputs
        model = model.module()
    try:
        with utils._exporting():
            proto, pair = build(
                model,
                own,
                named,
                names=input_names,
                output_names=output_names,
                opset=_DEFAULT_OPSET if opset_version is None else int(opset_version),
                dynamic_axes=dynamic_axes,
                dynamic_shapes=dynamic_shapes,
                fold=do_constant_folding,
                evaluate=training == TrainingMode.EVAL,
                with_values=export_params,
                values_as_inputs=keep_initializers_as_inputs,
            )
    except RecordError as error:
        raise OnnxExporterError(f"onnx.export: {error}") from error.__cause__
    program = ONNXProgram(proto)
    if verbose:
        print(onnx.printer.to_text(proto.graph))
    if verify:
        from ._verify import compare

        compare(program, pair)
    if f is not None:
        if hasattr(f, "write"):
            f.write(proto.SerializeToString())
        else:
            program.save(f, external_data=external_data)
    return program if dynamo else None


def __getattr__(name: str) -> Any:
    """Modules of symbolic functions by their opset, as :mod:`rgrad.onnx.symbolic_helper`: they are never called."""
    if name.removeprefix("symbolic_opset").isdigit() and name.startswith("symbolic_opset"):
        return symbolic_helper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
