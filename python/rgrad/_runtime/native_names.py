"""Names of PyTorch's native module that this one does not have."""

from importlib import import_module
from typing import Any

from .._core import Tensor
from .dispatch_keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

# Where the things are that PyTorch's native module has, too.
_ELSEWHERE = {
    "_nn": "rgrad.nn._native",
}


def _log_api_usage_once(*args: Any) -> None:
    """Nothing is counted; has no effect."""


def _get_tracing_state() -> None:
    """The state of a trace of TorchScript: always None, since code runs as it is."""


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of :mod:`rgrad.func` is running."""
    return bool(import_module("rgrad._core")._top_level())


def _get_privateuse1_backend_name() -> str:
    """The name of a backend from outside: PyTorch's word for none."""
    return "privateuseone"


def _cuda_isInBadFork() -> bool:
    """Whether a child uses its parent's CUDA devices: never, there are none."""
    return False


class PyTorchFileReader:
    """PyTorch's reader of its files: it is refused.

    Raises:
        NotImplementedError: Always; :func:`rgrad.load` reads them.
    """

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError("PyTorchFileReader: read files with rgrad.load")


_HERE = {
    "PyTorchFileReader": PyTorchFileReader,
    "DispatchKey": DispatchKey,
    "DispatchKeySet": DispatchKeySet,
    "_ExcludeDispatchKeyGuard": _ExcludeDispatchKeyGuard,
    "_TensorMeta": type(Tensor),
    "_are_functorch_transforms_active": _are_functorch_transforms_active,
    "_cuda_isInBadFork": _cuda_isInBadFork,
    "_get_privateuse1_backend_name": _get_privateuse1_backend_name,
    "_get_tracing_state": _get_tracing_state,
    "_log_api_usage_once": _log_api_usage_once,
}


def native_name(name: str) -> Any:
    """The module's ``__getattr__``: switches of TorchScript, and what libraries read.

    Raises:
        AttributeError: There is no such name.
    """
    if name in _HERE:
        return _HERE[name]
    if name in _ELSEWHERE:
        return import_module(_ELSEWHERE[name])
    if name == "_LinAlgError":
        return import_module("rgrad._core").LinAlgError
    if name.startswith("_jit_"):
        return getattr(import_module("rgrad.jit._switches"), name)
    raise AttributeError(f"module 'rgrad._core' has no attribute {name!r}")
