"""The packages of others that this one needs."""

from importlib import import_module
from typing import Any


def package(name: str, what: str) -> Any:
    """A package.

    Args:
        name: Its name.
        what: What needs it, for the message.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} needs the package {name}; install it with 'pip install {name}'") from error
