"""Extensions in C++ against PyTorch's own library, which is not there: all that builds one is refused.

Programs that fall back to Python when an extension cannot be built do so.
"""

from typing import Any, NoReturn

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "SyclExtension",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

CUDA_HOME: str | None = None
CUDNN_HOME: str | None = None
ROCM_HOME: str | None = None
ROCM_VERSION: tuple[int, int] | None = None
IS_HIP_EXTENSION = False


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"utils.cpp_extension.{what}: extensions are compiled against the headers and libraries of PyTorch, and rgrad "
        "has none. Write the operation in Python with rgrad.library.custom_op, or use the program's own fallback"
    )


class BuildExtension:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> Any:
        """Refused, as the class is.

        Raises:
            NotImplementedError: Always.
        """
        _refuse("BuildExtension")


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("CppExtension")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("CUDAExtension")


def SyclExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("SyclExtension")


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("load")


def load_inline(name: str, cpp_sources: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is nothing to build an extension against.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("load_inline")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Refused: there are no headers.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("include_paths")


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: str | None = None
) -> list[str]:
    """Refused: there are no libraries.

    Raises:
        NotImplementedError: Always.
    """
    _refuse("library_paths")


def is_ninja_available() -> bool:
    """Whether the program ``ninja`` is installed."""
    from shutil import which

    return which("ninja") is not None


def verify_ninja_availability() -> None:
    """Check for the program ``ninja``.

    Raises:
        RuntimeError: It is not installed.
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
