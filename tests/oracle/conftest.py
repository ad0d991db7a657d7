"""The comparison with PyTorch: needs torch beside rgrad, and the table of operations of the Python suite."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
pytest.register_assert_rewrite("compare")

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
