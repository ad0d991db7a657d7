"""Every operation of the table over batches; test_op_derivatives.py has the derivatives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import rgrad
from op_kit import Op, Sample, as_tuple, leaves, to_numpy, views
from op_table import OPS
from places import ROOT
from rgrad.func import vmap


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_batch_is_what_a_loop_gives(op: Op) -> None:
    """All arguments batched, and each floating one alone while the others are the same for all."""
    for sample in op.all_samples():
        leaf = leaves(rgrad, sample)
        if not any(a.floating for a in sample.args):
            continue
        floats = [k for k, a in enumerate(sample.args) if a.floating]
        for chosen in [floats, *([k] for k in floats if len(floats) > 1)]:
            other = {k: leaf[k] + 0.03125 for k in chosen}

            def call(*args: Any, sample: Sample = sample) -> tuple[Any, ...]:
                return as_tuple(op.call(rgrad, *views(sample, args), **sample.params))

            singles = [call(*leaf), call(*[other.get(k, x) for k, x in enumerate(leaf)])]
            if any(a.shape != b.shape for a, b in zip(*singles, strict=True)):
                continue  # the shape of the result depends on values
            batched = [rgrad.stack([x, other[k]]) if k in chosen else x for k, x in enumerate(leaf)]
            dims = tuple(0 if k in chosen else None for k in range(len(leaf)))
            # What is the same for all has no room for a batch, and its masks no values of their own.
            no_room = op.name.startswith("setitem") and 0 not in chosen
            if op.name in REFUSED or no_room or (op.name == "masked_select" and 1 in chosen):
                with pytest.raises(RuntimeError, match="vmap"):
                    vmap(call, in_dims=dims)(*batched)
                continue
            got = vmap(call, in_dims=dims)(*batched)
            for one, a, b in zip(got, *singles, strict=True):
                want = np.stack([to_numpy(a), to_numpy(b)])
                assert one.dtype == a.dtype
                np.testing.assert_allclose(to_numpy(one), want, rtol=1e-12, atol=1e-14)


# What depends on values in a way that a batch cannot follow; PyTorch refuses it, too.
REFUSED = frozenset({"unique", "unique_consecutive"})


def test_the_page_of_rules_is_up_to_date() -> None:
    """docs/transform-rules.md says which operations go a slow way."""
    script = ROOT / "scripts" / "transform_rules.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
