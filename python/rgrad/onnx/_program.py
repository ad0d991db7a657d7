"""What an export gives: the model, to be written or run."""

from __future__ import annotations

import os
from typing import Any

from .._core import Tensor, from_numpy
from .._runtime.whole_files import written_whole
from ..utils._pytree import tree_flatten
from ._package import package
from .errors import OnnxExporterError

# What a protocol buffer may have.
_MOST_BYTES = 2**31 - 1


class ONNXProgram:
    """A model in ONNX's form.

    Args:
        model_proto: The model, of ``onnx.ModelProto``.
    """

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto
        self._session: Any = None

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return (
            f"ONNXProgram({graph.name}: inputs {[x.name for x in graph.input]}, outputs "
            f"{[x.name for x in graph.output]}, {len(graph.node)} nodes)"
        )

    def initialize_inference_session(self) -> None:
        """Make the session of onnxruntime that calls use.

        Raises:
            ImportError: onnxruntime is not installed.
        """
        onnxruntime = package("onnxruntime", "running an ONNXProgram")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            self.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def release(self) -> None:
        """Let the session go."""
        self._session = None

    def optimize(self) -> None:
        """Do nothing: what no output needs is left out when the model is made, and a runtime does the rest."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """What onnxruntime computes.

        Args:
            args: As the model takes them; tensors in trees, too.
            kwargs: Likewise.

        Returns:
            A tensor for each output.

        Raises:
            ImportError: onnxruntime is not installed.
            OnnxExporterError: There are more or fewer tensors than inputs.
        """
        if self._session is None:
            self.initialize_inference_session()
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        names = [x.name for x in self._session.get_inputs()]
        if len(names) != len(tensors):
            raise OnnxExporterError(f"ONNXProgram: expected {len(names)} tensors for {names}, but got {len(tensors)}")
        feeds = {name: x.contiguous().numpy(force=True) for name, x in zip(names, tensors, strict=True)}
        return [from_numpy(x) for x in self._session.run(None, feeds)]

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model.

        Args:
            destination: A path.
            include_initializers: Write the numbers of the parameters.
            keep_initializers_as_inputs: List the parameters as inputs, too.
            external_data: Write the numbers to a file of their own, ``<destination>.data``; None does so where one file
                would be larger than 2 GB.

        Raises:
            OSError: It cannot be written.
        """
        onnx = package("onnx", "ONNXProgram.save")
        model = self.model_proto
        if not include_initializers or keep_initializers_as_inputs:
            model = onnx.ModelProto()
            model.CopyFrom(self.model_proto)
            graph = model.graph
            known = {x.name for x in graph.input}
            for proto in graph.initializer:
                if proto.name not in known:
                    graph.input.append(
                        onnx.helper.make_tensor_value_info(proto.name, proto.data_type, list(proto.dims))
                    )
            if not include_initializers:
                del graph.initializer[:]
        path = os.fspath(destination)
        if external_data or (external_data is None and model.ByteSize() > _MOST_BYTES):
            own = onnx.ModelProto()
            own.CopyFrom(model)
            onnx.save_model(
                own, path, save_as_external_data=True, location=f"{os.path.basename(path)}.data", size_threshold=0
            )
            return
        with written_whole(path) as file:
            file.write(model.SerializeToString())
