"""The choice of CUDA's kernels by measurement: its settings are kept, and there is nothing to measure."""

from typing import Any

from .._runtime.no_device import NO_CUDA, answering

_kept: dict[str, Any] = {
    "enable": False,
    "tuning_enable": True,
    "record_untuned_enable": False,
    "max_tuning_duration": 30,
    "max_tuning_iterations": 100,
    "filename": "",
}


def enable(val: bool = True) -> None:
    """Keep whether operations were to be tuned. It has no effect."""
    _kept["enable"] = bool(val)


def is_enabled() -> bool:
    """What :func:`enable` was given."""
    return bool(_kept["enable"])


def tuning_enable(val: bool = True) -> None:
    """Keep whether operations were to be measured. It has no effect."""
    _kept["tuning_enable"] = bool(val)


def tuning_is_enabled() -> bool:
    """What :func:`tuning_enable` was given."""
    return bool(_kept["tuning_enable"])


def record_untuned_enable(val: bool = True) -> None:
    """Keep whether operations that are not tuned were to be recorded. It has no effect."""
    _kept["record_untuned_enable"] = bool(val)


def record_untuned_is_enabled() -> bool:
    """What :func:`record_untuned_enable` was given."""
    return bool(_kept["record_untuned_enable"])


def set_max_tuning_duration(duration: int) -> None:
    """Keep the most milliseconds of a measurement. It has no effect."""
    _kept["max_tuning_duration"] = duration


def get_max_tuning_duration() -> int:
    """What :func:`set_max_tuning_duration` was given."""
    return int(_kept["max_tuning_duration"])


def set_max_tuning_iterations(iterations: int) -> None:
    """Keep the most repetitions of a measurement. It has no effect."""
    _kept["max_tuning_iterations"] = iterations


def get_max_tuning_iterations() -> int:
    """What :func:`set_max_tuning_iterations` was given."""
    return int(_kept["max_tuning_iterations"])


def set_filename(filename: str, insert_device_ordinal: bool = False) -> None:
    """Keep the name of the file of results. Nothing is written."""
    _kept["filename"] = filename


def get_filename() -> str:
    """What :func:`set_filename` was given."""
    return str(_kept["filename"])


_ANSWERS = {
    "get_results()": (),
    "get_rotating_buffer_size()": NO_CUDA,
    "get_validators()": (),
    "mgpu_tune_gemm_in_file(filename_pattern, num_gpus)": NO_CUDA,
    "read_file(filename=None)": False,
    "set_numerical_check_tolerances(enable, atol=1e-05, rtol=1e-05)": None,
    "set_rotating_buffer_size(buffer_size)": None,
    "tune_gemm_in_file(filename)": NO_CUDA,
    "write_file(filename=None)": False,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)
