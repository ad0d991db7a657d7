"""Programs as graphs: :func:`export` records what a module calls."""

from typing import Any

from ._dims import Dim, dims
from ._program import ExportedProgram, export
from ._signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = [
    "ConstantArgument",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
    "dims",
    "export",
    "load",
    "register_dataclass",
    "save",
]

_REASON = (
    "exported programs are not written to files. Save program.state_dict with rgrad.save and export the module anew, "
    "or write the computation with rgrad.onnx.export"
)


def save(ep: ExportedProgram, f: Any, *, extra_files: Any = None, opset_version: Any = None, **kwargs: Any) -> None:
    """Refused: exported programs are not written to files.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"export.save: {_REASON}")


def load(f: Any, *, extra_files: Any = None, expected_opset_version: Any = None) -> ExportedProgram:
    """Refused: exported programs are not read from files.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"export.load: {_REASON}")


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let arguments and results be of a dataclass.

    Args:
        cls: The class.
        serialized_type_name: Has no effect.

    Raises:
        AssertionError: It is no dataclass.
        ValueError: It is known already.
    """
    import dataclasses

    from ..utils._pytree import register_pytree_node

    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    names = [f.name for f in dataclasses.fields(cls)]
    register_pytree_node(
        cls,
        lambda node: ([getattr(node, name) for name in names], tuple(names)),
        lambda children, context: cls(**dict(zip(context, children, strict=True))),
    )
