"""What programs ask of the exporter while it runs, and the older ways to extend it, which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

__all__ = [
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "unregister_custom_op_symbolic",
]


class _State(local):
    on = False


_state = _State()


@contextmanager
def _exporting() -> Iterator[None]:
    before, _state.on = _state.on, True
    try:
        yield
    finally:
        _state.on = before


def is_in_onnx_export() -> bool:
    """Whether this thread runs a model for :func:`rgrad.onnx.export`."""
    return _state.on


@contextmanager
def select_model_mode_for_export(model: Any, mode: Any) -> Iterator[None]:
    """A context with a model in eval (0) or training mode (2); each module gets its own mode back.

    Args:
        model: The module.
        mode: A :class:`rgrad.onnx.TrainingMode`, or None for eval mode.
    """
    from ..nn import Module

    wanted = None if mode is not None and int(mode) == 1 else mode is not None and int(mode) == 2
    before = [(m, m.training) for m in model.modules()] if isinstance(model, Module) and wanted is not None else []
    if before:
        model.train(wanted)
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


_LATER: dict[tuple[str, int], Callable[..., Any]] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Accepted, so that libraries can be imported; it has no effect: graphs of TorchScript are not made here.

    Args:
        symbolic_name: Has no effect.
        symbolic_fn: Has no effect.
        opset_version: Has no effect.

    Raises:
        OnnxExporterError: The name has no namespace.
    """
    from .errors import OnnxExporterError

    if "::" not in symbolic_name:
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name"
        )
    _LATER[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take back what :func:`register_custom_op_symbolic` was given; it has no effect otherwise.

    Args:
        symbolic_name: Has no effect.
        opset_version: Has no effect.
    """
    _LATER.pop((symbolic_name, opset_version), None)
