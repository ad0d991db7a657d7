"""Files that are run, not imported from a package: scripts, examples, other tests."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from places import ROOT


def load(path: str) -> ModuleType:
    """The module of a file of the repository, known to `sys.modules` by the file's name."""
    file = ROOT / path
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # scripts import each other
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
