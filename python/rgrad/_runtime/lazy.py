"""Parts of a package that are imported on first use, so that ``import rgrad`` stays fast."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

_LISTED = "docs/in-torchs-place.md says which names of PyTorch are there, and how to list those that a program lacks"


def lazily(
    package: str, modules: tuple[str, ...], names: Mapping[str, str] | None = None, *, below: str | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package some of whose attributes come on first use (PEP 562).

    A module may have such attributes, too, of other modules of its package.

    Args:
        package: The package's name.
        modules: Submodules that are attributes of the package.
        names: Further attributes, each with the submodule that has it. No attribute may have the name of a submodule:
            importing that would put the module in its place.
        below: The package of these submodules, where it is another one.
    """
    owners = dict(names or {})
    parent = below or package

    def __getattr__(name: str) -> object:
        if name in modules:
            return import_module(f"{parent}.{name}")
        if name in owners:
            value = getattr(import_module(f"{parent}.{owners[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        hint = "" if "." in package else f". {_LISTED}"
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *owners})

    return __getattr__, __dir__
