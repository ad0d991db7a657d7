"""The functions that symbolics of custom operators call, as :mod:`rgrad.onnx.symbolic_helper` has them: they refuse."""

from typing import Any

from . import symbolic_helper

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(symbolic_helper, name)
