"""A plugin of pytest: ``pytest -p rgrad.compat.pytest`` runs a test suite with rgrad in PyTorch's place."""

from typing import Any

from ._alias import install


def pytest_addoption(parser: Any) -> None:
    """Install the alias. pytest calls this when it has imported the plugin, before test files and ``conftest.py``.

    Raises:
        RuntimeError: Another ``torch`` has been imported already.
    """
    install()
