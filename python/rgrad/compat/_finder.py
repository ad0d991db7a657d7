"""Finds ``torch`` and each ``torch.x.y``: the module of rgrad that has this name there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ._identity import VERSION

NAME = "torch"
OWN = "rgrad"

# Modules of rgrad that stand elsewhere than PyTorch's of that name; what is below them goes with them.
ELSEWHERE = {
    "_C": "_core",
}


def is_alias(name: str) -> bool:
    """Whether a module's name is PyTorch's."""
    return name == NAME or name.startswith(NAME + ".")


def own_name(name: str) -> str:
    """The name in rgrad of the module that PyTorch calls ``name``."""
    rest = name[len(NAME) + 1 :]
    if not rest:
        return OWN
    first, dot, last = rest.partition(".")
    return f"{OWN}.{ELSEWHERE.get(first, first)}{dot}{last}"


def _spec_of(name: str) -> ModuleSpec | None:
    """The spec of a module of rgrad, which may be imported already; None if there is no such module."""
    if name in sys.modules:
        return sys.modules[name].__spec__
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # A package above it is no package, or is not there.
        if error.name is not None and (name + ".").startswith(error.name + "."):
            return None
        raise


class _AliasLoader(Loader):
    """Gives a module of rgrad for one of PyTorch, and reads like the module's own loader."""

    def __init__(self, own: str, spec: ModuleSpec) -> None:
        self._own = own
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(self._own)

    def exec_module(self, module: ModuleType) -> None:
        # The import system has written the alias's spec over the module's own.
        module.__spec__ = self._spec

    # The module's own loader refuses another name.
    def get_source(self, fullname: str) -> str | None:
        found: str | None = self._spec.loader.get_source(self._own)  # type: ignore[union-attr]
        return found

    def get_code(self, fullname: str) -> CodeType | None:
        found: CodeType | None = self._spec.loader.get_code(self._own)  # type: ignore[union-attr]
        return found

    def get_filename(self, fullname: str) -> str:
        return str(self._spec.origin)

    def is_package(self, fullname: str) -> bool:
        return self._spec.submodule_search_locations is not None

    def get_data(self, path: str) -> bytes:
        return Path(path).read_bytes()


class _AliasDistribution(Distribution):
    """What `importlib.metadata` says of PyTorch: its name, and the version that rgrad follows."""

    _TEXTS = {  # noqa: RUF012
        "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: rgrad in PyTorch's place\n",
        "top_level.txt": f"{NAME}\n",
    }

    def read_text(self, filename: str) -> str | None:
        return self._TEXTS.get(filename)

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).resolve().parents[2] / str(path)


class Finder(DistributionFinder):
    """The entry in ``sys.meta_path``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not is_alias(fullname):
            return None
        own = own_name(fullname)
        found = _spec_of(own)
        if found is None:
            return None
        spec = ModuleSpec(fullname, _AliasLoader(own, found), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        spec.cached = found.cached
        return spec

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        return self._distributions(context.name)

    @staticmethod
    def _distributions(name: str | None) -> Iterator[Distribution]:
        if name is None or name.lower() == NAME:
            yield _AliasDistribution()
