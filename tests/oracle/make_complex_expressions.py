"""Writes tests/data/complex_expressions.json: what PyTorch makes of tests/python/helpers/complex_expressions.py.

Run it with an interpreter that has torch: python tests/oracle/make_complex_expressions.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "python" / "helpers"))

from complex_expressions import EXPRESSIONS, worded_outcome  # noqa: E402 - a helper of the Python suite


def main() -> None:
    data = {e: worded_outcome(lambda e=e: eval(e, {"T": torch, "np": np}), "torch") for e in EXPRESSIONS}
    (TESTS / "data" / "complex_expressions.json").write_text(json.dumps(data, indent=0) + "\n")


if __name__ == "__main__":
    main()
