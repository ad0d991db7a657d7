"""Old forms and old names: the warnings of PyTorch and of rgrad have the same categories and words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

pytestmark = pytest.mark.oracle

X, A, V = "T.ones(2, 2)", "T.full((2, 2), 2.0)", "T.ones(2)"
PRODUCTS = {"addmm": (X, A, A), "addmv": (V, A, V), "addr": (X, V, V)}
PRODUCTS |= {"addbmm": (X, f"{A}[None]", f"{A}[None]"), "baddbmm": (f"{X}[None]", f"{A}[None]", f"{A}[None]")}
LINES = [
    *(f"{X}.{name}(2, {A})" for name in ("add", "add_", "sub", "sub_")),
    *(f"T.{name}({X}, 2, {A})" for name in ("add", "sub")),
    *(f"{X}.{name}(2, {A}, {A})" for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")),
    *(f"T.{name}({X}, 2, {A}, {A}, out=T.empty(2, 2))" for name in ("addcmul", "addcdiv")),
    *(f"T.{name}(2, {x}, 3, {a}, {b})" for name, (x, a, b) in PRODUCTS.items()),
    *(f"T.{name}(2, {x}, {a}, {b})" for name, (x, a, b) in PRODUCTS.items()),
    *(f"{x}.{name}{end}(2, 3, {a}, {b})" for name, (x, a, b) in PRODUCTS.items() for end in ("", "_")),
    *(f"{x}.{name}{end}(2, {a}, {b})" for name, (x, a, b) in PRODUCTS.items() for end in ("", "_")),
    f"T.addmv_(2, {V}, 3, {A}, {V})",
    f"T.rsub({X}, 2, {A})",
    f"T.meshgrid({V}, {V})",
    "T.cholesky(T.eye(2))",
    "T.eye(2).qr()[0].abs()",
    "T.lu(T.eye(2))",
    "T.lu_solve(T.ones(2, 1), *T.linalg.lu_factor(T.eye(2)))",
    "T.triangular_solve(T.ones(2, 1), T.eye(2))",
    "T.chain_matmul(T.eye(2), T.eye(2))",
    "T.range(1, 3)",
    "T.cross(T.eye(3), T.eye(3))",
    "T.set_default_tensor_type('torch.FloatTensor')",
    "T.nn.functional.upsample(T.ones(1, 1, 2), scale_factor=2)",
    "T.nn.functional.sigmoid(T.zeros(2))",
    "T.nn.functional.tanh(T.zeros(2))",
    "T.cpu.amp.autocast()",
    "T.cuda.amp.GradScaler()",
    "T.cpu.amp.GradScaler()",
    "T.get_autocast_gpu_dtype()",
    "T.get_autocast_cpu_dtype()",
    "T.is_autocast_cpu_enabled()",
    "T.set_autocast_xla_enabled(False)",
    "T.autograd.Variable(T.eye(2), volatile=True)",
    "T.eye(2).volatile",
    "T.eye(2).resize(4)",
    "T.eye(2).resize_as(T.ones(4))",
    "T.eye(2).storage().size()",
    "T._vmap_internals.vmap(abs)",
    "T.backends.cuda.sdp_kernel()",
    "T.FloatTensor([1, 2])",
    "T.eig(T.eye(2))",
    "T.eye(2).symeig()",
    "T.lstsq(T.eye(2), T.eye(2))",
    "T.solve(T.eye(2), T.eye(2))",
    "T.matrix_rank(T.eye(2))",
    "T.ones(1).reinforce(1)",
]

ASKING = """
import importlib, json, sys, warnings
T = importlib.import_module(sys.argv[1])
importlib.import_module(sys.argv[1] + "._vmap_internals")
T.set_warn_always(True)
found = []
for line in json.loads(sys.argv[2]):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            made = eval(line)
            made = made.tolist() if hasattr(made, "tolist") else type(made).__name__
        except Exception as e:
            kind = next(t for t in type(e).__mro__ if t.__module__ == "builtins")
            made = [kind.__name__, str(e)]
    found.append([made, [(w.category.__name__, str(w.message)) for w in seen]])
print(json.dumps(found))
"""


@cache
def said(package: str) -> list[Any]:
    command = [sys.executable, "-c", ASKING, package, json.dumps(LINES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def words(text: str) -> str:
    """What a message says first, without the name of the package and the place in PyTorch's code."""
    text = re.sub(r" \(Triggered internally.*", "", text, flags=re.DOTALL).replace("rgrad", "torch")
    # Of several signatures of today the first one.
    head, bar, rest = text.partition("instead:\n\t")
    return head + bar + rest.split("\n")[0] if bar else text[:45]


@pytest.mark.parametrize("k", range(len(LINES)), ids=LINES)
def test_warnings_and_results_are_those_of_pytorch(k: int) -> None:
    ours, theirs = said("rgrad")[k], said("torch")[k]
    if isinstance(theirs[0], list) and theirs[0] and isinstance(theirs[0][0], str):
        assert ours[0][0] == theirs[0][0]
        assert words(ours[0][1])[:40] == words(theirs[0][1])[:40] or theirs[0][0] == "TypeError"
    else:
        assert ours[0] == theirs[0]
    assert [(kind, words(text)) for kind, text in ours[1]] == [(kind, words(text)) for kind, text in theirs[1]]
