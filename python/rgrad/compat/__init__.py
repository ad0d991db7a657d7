"""rgrad in PyTorch's place: ``import torch`` gives rgrad, in the whole process or in a block.

Programs and libraries that import ``torch`` run on rgrad as they are. ``torch`` and each ``torch.x.y`` are then the
very modules of rgrad; nothing is copied and nothing named torch is installed. ``python -m rgrad.run script.py`` does it
for a program, ``pytest -p rgrad.compat.pytest`` for a test suite, and ``python -m rgrad.compat check FILE`` lists the
names that a program uses and rgrad lacks.
"""

from ._alias import as_torch as as_torch
from ._alias import install as install
from ._alias import is_installed as is_installed
from ._alias import uninstall as uninstall
from ._check import Lacking as Lacking
from ._check import check as check

__all__ = ["Lacking", "as_torch", "check", "install", "is_installed", "uninstall"]
