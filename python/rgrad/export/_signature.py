"""What the inputs and outputs of an exported graph are."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ConstantArgument",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
]


class InputKind(enum.Enum):
    """What an input of a graph is."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output of a graph is."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is no tensor."""

    name: str
    value: Any


@dataclass
class InputSpec:
    """An input of a graph: its kind, its node, and the name of the parameter, buffer or constant that it is."""

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """An output of a graph."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph.

    Attributes:
        input_specs: The inputs in their order: parameters, buffers, constants, and those of the user.
        output_specs: The outputs.
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target is not None}

    @property
    def parameters(self) -> Collection[str]:
        """The names of parameters."""
        return tuple(self._targets(InputKind.PARAMETER).values())

    @property
    def buffers(self) -> Collection[str]:
        """The names of buffers."""
        return tuple(self._targets(InputKind.BUFFER).values())

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """The names of constants."""
        return tuple(self._targets(InputKind.CONSTANT_TENSOR).values())

    @property
    def user_inputs(self) -> Collection[Any]:
        """The nodes of the user's inputs."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> Collection[Any]:
        """The nodes of the outputs, and the values of those that are no tensors."""
        return tuple(s.arg.name if isinstance(s.arg, TensorArgument) else s.arg.value for s in self.output_specs)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The parameter that each input is."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The buffer that each input is."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The constant that each input is."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Empty: an exported program writes to no buffer."""
        return {}

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Empty: writes to inputs are no outputs of the graph."""
        return {}
