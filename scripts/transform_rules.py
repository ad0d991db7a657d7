"""Write docs/transform-rules.md: how each operation makes tangents, and how it runs on a batch.

    python scripts/transform_rules.py            # writes the page
    python scripts/transform_rules.py --check    # exits with 1 if the page is not what would be written

Nothing is kept by hand: every differentiable operation of the test suite's table (tests/python/helpers/op_table.py) is
run with tangents, and under vmap with each of its floating inputs batched, while the core notes which operations fall
back to a slow path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from kept import ROOT, main

PAGE = ROOT / "docs" / "transform-rules.md"

HEAD = """\
# Rules of operations under transforms

Operations without a rule of their own for forward mode or for `vmap`, in any of their samples. Every other operation
has both. `scripts/transform_rules.py` writes this page from the test suite's table; do not edit.

"""
# What the words in the table mean; those that occur are explained.
WORDS = {
    "transposed": "the tangent is made by transposing the operation's vjp, which costs about two vjps.",
    "loop": "under `vmap` the operation runs on each element of the batch in turn.",
    "no derivative": "PyTorch has none either.",
    "refused": "the shape of the result depends on values, which no batch can follow.",
}
COLUMNS = "| operation | forward mode | vmap |\n|---|---|---|\n"


def tangents(rgrad: Any, kit: Any, op: Any, sample: Any) -> str:
    from rgrad.autograd import forward_ad

    rgrad._core._take_slow_rules()
    with forward_ad.dual_level():
        leaves = kit.leaves(rgrad, sample, "float64")
        args = [
            forward_ad.make_dual(x, rgrad.ones_like(x)) if a.floating else x
            for x, a in zip(leaves, sample.args, strict=True)
        ]
        try:
            op.call(rgrad, *kit.views(sample, args), **sample.params)
        except NotImplementedError:
            return "no derivative"
    slow, _ = rgrad._core._take_slow_rules()
    return "transposed" if slow else ""


def batches(rgrad: Any, kit: Any, op: Any, sample: Any) -> str:
    rgrad._core._take_slow_rules()
    leaves = kit.leaves(rgrad, sample, "float64")
    dims = tuple(0 if a.floating else None for a in sample.args)
    args = [rgrad.stack([x, x]) if d == 0 else x for x, d in zip(leaves, dims, strict=True)]
    try:
        rgrad.vmap(lambda *xs: op.call(rgrad, *kit.views(sample, xs), **sample.params), in_dims=dims)(*args)
    except RuntimeError as error:
        if "vmap" not in str(error):
            raise
        return "refused"
    _, slow = rgrad._core._take_slow_rules()
    return "loop" if slow else ""


def lines() -> Iterator[tuple[str, str, str]]:
    """(operation, way of tangents, way of batches) for every operation that goes a slow way, by name."""
    sys.path.insert(0, str(ROOT / "tests" / "python" / "helpers"))
    import rgrad

    kit: Any = import_module("op_kit")
    for op in sorted(import_module("op_table").OPS, key=lambda op: str(op.name)):
        if op.grad is None:
            continue
        ways: tuple[set[str], set[str]] = set(), set()
        for sample in op.all_samples():
            if any(a.floating for a in sample.args):
                ways[0].add(tangents(rgrad, kit, op, sample))
                ways[1].add(batches(rgrad, kit, op, sample))
        forward, batch = (", ".join(sorted(w - {""})) for w in ways)
        if forward or batch:
            yield op.name, forward, batch


def page() -> str:
    """The text of docs/transform-rules.md."""
    rows = list(lines())
    used = {word for _, *ways in rows for way in ways for word in way.split(", ")}
    words = "".join(f"- *{word}*: {meaning}\n" for word, meaning in WORDS.items() if word in used)
    return f"{HEAD}{words}\n{COLUMNS}" + "".join(
        f"| `{name}` | {forward or 'own rule'} | {batch or 'own rule'} |\n" for name, forward, batch in rows
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, page))
