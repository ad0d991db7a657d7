"""What changes a model for quantisation: all of it refuses."""

from typing import Any, NoReturn


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"ao.quantization.{name}: rgrad has no quantised tensors; use the model in floats")


def prepare(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("prepare")


def prepare_qat(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("prepare_qat")


def convert(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("convert")


def quantize(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("quantize")


def quantize_dynamic(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("quantize_dynamic")


def fuse_modules(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("fuse_modules")


def fuse_modules_qat(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("fuse_modules_qat")


def get_default_qconfig(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("get_default_qconfig")


def get_default_qat_qconfig(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("get_default_qat_qconfig")


def default_qconfig(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("default_qconfig")
