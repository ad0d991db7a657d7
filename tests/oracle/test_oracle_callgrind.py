"""What is done with instruction counts, beside PyTorch: the same rows give the same sums, differences and texts."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad.utils.benchmark  # noqa: E402

THEIRS = importlib.import_module("torch.utils.benchmark")
OURS = rgrad.utils.benchmark
ROWS = [
    (900, "/first/build/a/Objects/dictobject.c:lookdict_unicode [/usr/lib/libpython3.so]"),
    (70, "/first/build/a/Python/ceval.c:_PyEval_EvalFrameDefault [/usr/lib/libpython3.so]"),
    *((60 - i, f"/src/f.c:function_{i}" + "x" * (10 * i)) for i in range(25)),
]


def counts(B: Any, rows: Any = ROWS, inclusive: bool = False, **options: Any) -> Any:
    return B.FunctionCounts(tuple(B.FunctionCount(*row) for row in rows), inclusive, **options)


def stats(B: Any, rows: Any = ROWS) -> Any:
    base = counts(B, ROWS[:1])
    spec = (B.TaskSpec if B is OURS else B.utils.common.TaskSpec)(stmt="x + x", setup="x = 1", num_threads=2)
    return B.CallgrindStats(spec, 10, True, base, base, counts(B, inclusive=True), counts(B, rows), "text")


def plain(found: Any) -> Any:
    if hasattr(found, "inclusive"):
        return [tuple(row) for row in found], found.inclusive, repr(found).splitlines()[1:]
    return repr(found).splitlines()[1:] if hasattr(found, "task_spec") else found


@pytest.mark.parametrize(
    "code",
    [
        "counts(B)",
        "counts(B, truncate_rows=False)",
        "counts(B, _linewidth=60)",
        "counts(B, inclusive=True)",
        "counts(B)[3:5]",
        "tuple(counts(B)[3])",
        "counts(B) + counts(B, ROWS[:5])",
        "counts(B) - counts(B, ROWS[3:])",
        "counts(B) * 0.3",
        "counts(B).transform(lambda name: name[:9])",
        "counts(B).filter(lambda name: 'ceval' in name)",
        "counts(B).denoise()",
        "counts(B).sum()",
        "stats(B)",
        "stats(B).counts()",
        "stats(B).counts(denoise=True)",
        "stats(B).stats(inclusive=True)",
        "stats(B).delta(stats(B, ROWS[2:]))",
        "stats(B).as_standardized().stats()",
        "stats(B).as_standardized().stmt_callgrind_out",
    ],
)
def test_calls(code: str) -> None:
    scope = {"counts": counts, "stats": stats, "ROWS": ROWS}
    assert plain(eval(code, {**scope, "B": OURS})) == plain(eval(code, {**scope, "B": THEIRS}))


def test_errors() -> None:
    for B in (OURS, THEIRS):
        with pytest.raises(AssertionError, match=r"^Cannot merge inclusive and exclusive counts\.$"):
            counts(B) + counts(B, inclusive=True)
        with pytest.raises(ValueError, match=r"Unsupported type(.|\n)*restricts globals to the following types"):
            B.CopyIfCallgrind([1])


@pytest.mark.parametrize("name", ["FunctionCounts", "FunctionCount", "CallgrindStats", "CopyIfCallgrind"])
def test_signatures(name: str) -> None:
    mine, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(getattr(B, name)).parameters.values()]
        for B in (OURS, THEIRS)
    )
    assert mine == theirs
