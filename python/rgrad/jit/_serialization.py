"""Files of TorchScript, which are neither written nor read."""

from typing import Any

from ._script import refuse_file


class Error(RuntimeError):
    """The class of errors that PyTorch raises from scripts."""


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: there is no program that could be written.

    Raises:
        NotImplementedError: Always. `rgrad.save` writes parameters, `rgrad.onnx.export` computations.
    """
    refuse_file("jit.save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Refused: programs of TorchScript are not run here.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "jit.load: the file has a program of TorchScript, which rgrad does not run. Build the model in Python and load "
        "its state_dict with rgrad.load; of a script alone PyTorch itself gives it, as jit.load(f).state_dict()"
    )


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused, as :func:`save` is.

    Raises:
        NotImplementedError: Always.
    """
    refuse_file("jit.save_jit_module_to_flatbuffer")


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Refused, as :func:`load` is.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError("jit.jit_module_from_flatbuffer: programs of TorchScript are not run by rgrad")
