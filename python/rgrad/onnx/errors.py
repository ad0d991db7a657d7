"""The classes of errors of exporters."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """The class of the exporter's warnings."""


class OnnxExporterError(RuntimeError):
    """A model that cannot be written as ONNX, with the reason."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operation, by its name, that has no form in ONNX."""


class SymbolicValueError(OnnxExporterError):
    """An operation with arguments for which there is no form in ONNX."""
