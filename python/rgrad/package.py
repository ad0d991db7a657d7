"""PyTorch's packages: archives of a model with its code. They are neither written nor read here.

A package runs the code in it when it is read. `rgrad.save` writes values, which are read without running
anything.
"""

from collections.abc import Callable
from typing import Any

__all__ = [
    "EmptyMatchError",
    "PackageExporter",
    "PackageImporter",
    "PackagingError",
    "is_from_package",
]

_REASON = (
    "rgrad neither writes nor runs archives of code. Keep the code in a module of Python, and write its values with "
    "rgrad.save(model.state_dict(), file)"
)


class PackagingError(Exception):
    """The class of errors of PyTorch's exporter, for programs that catch it."""


class EmptyMatchError(Exception):
    """The class of errors of PyTorch's exporter, for programs that catch it."""


class PackageExporter:
    """Refused: no archives of code are written.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, f: Any, importer: Any = None, debug: bool = False) -> None:
        raise NotImplementedError(f"package.PackageExporter: {_REASON}")


class PackageImporter:
    """Refused: no archives of code are run.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, file_or_buffer: Any, module_allowed: Callable[[str], bool] | None = None) -> None:
        raise NotImplementedError(f"package.PackageImporter: {_REASON}")


def is_from_package(obj: Any) -> bool:
    """False: nothing comes from an archive of code."""
    return False
