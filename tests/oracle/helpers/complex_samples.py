"""PyTorch's own samples of its operators, called on rgrad and on torch with complex numbers.

``python tests/oracle/helpers/complex_samples.py [NAME ...]`` prints a table: which operators hold, and what the others
do. With ``--write`` it writes the list of those that do not hold yet.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import rgrad
from operator_calls import Missing, flat, full_name, function_of, is_tensor, name_of, ours

# The operators that do not hold yet, each with what differs: a list that may only shrink. Of these
# `as_strided_scatter`, `cov` and `linalg.norm.subgradients_at_zero` differ for real numbers, too. `cholesky_inverse`
# and `cholesky_solve` differ where a triangle is not read (`docs/differences.md`), and `svd` in the further vectors of
# wide matrices, which are not unique.
OPEN = Path(__file__).with_name("complex_open.txt")
# Memory as it is, random numbers, layouts that rgrad has not, calls of private names, arguments that are functions of
# torch, and views of storages that are larger than what the samples show.
OUT_OF_SCOPE = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "bernoulli",
    "normal",
    "normal.in_place",
    "pca_lowrank",
    "svd_lowrank",
    "rand_like",
    "randn",
    "randn_like",
    "uniform",
    "as_strided.partial_views",
    "to_sparse",
    "sparse.sampled_addmm",
    "jiterator_unary",
    "jiterator_binary",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary_return_by_ref",
    "jiterator_2inputs_2outputs",
    "nn.functional.triplet_margin_with_distance_loss",
}
# Samples of each operator, and of the dtype that is computed in single precision.
DOUBLE, SINGLE = 8, 3


def operators() -> list[Any]:
    """The operators that torch computes in complex numbers."""
    complex_ones = [op for op in op_db if torch.complex128 in op.supported_dtypes("cpu")]
    return [op for op in complex_ones if not op.name.startswith("_") and full_name(op) not in OUT_OF_SCOPE]


def values(t: Any) -> np.ndarray:
    t = t.detach()
    if name_of(t.dtype) in ("bfloat16", "complex32"):  # NumPy has none
        t = t.cfloat() if t.dtype.is_complex else t.float()
    return np.array(t.resolve_conj().resolve_neg().numpy(force=True))


def difference(got: Any, want: Any, tolerance: float) -> str | None:
    """What differs; None: nothing."""
    if not is_tensor(want):
        if isinstance(want, (bool, int, float, complex)) and got != want:
            return f"{got}, not {want}"
        return None
    if not is_tensor(got):
        return f"a {type(got).__name__}, not a tensor"
    if name_of(got.dtype) != name_of(want.dtype):
        return f"dtype {name_of(got.dtype)}, not {name_of(want.dtype)}"
    if tuple(got.shape) != tuple(want.shape):
        return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
    a, b = values(got), values(want)
    if a.dtype.kind not in "fc":
        return None if np.array_equal(a, b) else "other values"
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
    return None if np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True) else "other values"


def cotangents(outs: list[Any]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    made = []
    for o in outs:
        c = rng.uniform(0.5, 1.5, tuple(o.shape))
        made.append(np.asarray(c + 1j * rng.uniform(-1, 1, tuple(o.shape)) if o.dtype.is_complex else c))
    return made


def compare_gradients(got: list[Any], want: list[Any], given: tuple[Any, Any], order: int) -> str | None:
    """Gradients of both orders, for the same cotangents."""
    here, there = ([x for x in flat(list(g)) if is_tensor(x) and x.requires_grad] for g in given)
    pairs = [(g, w) for g, w in zip(got, want, strict=True) if is_tensor(w) and w.requires_grad]
    for level in range(1, order + 1):
        if not pairs:
            return None
        if any(not g.requires_grad for g, _ in pairs):
            return f"no history at order {level}"
        weights = cotangents([w for _, w in pairs])
        try:
            theirs = torch.autograd.grad(
                [w for _, w in pairs],
                there,
                [torch.tensor(c).to(w.dtype) for c, (_, w) in zip(weights, pairs, strict=True)],
                create_graph=True,
                allow_unused=True,
            )
        except (RuntimeError, NotImplementedError):
            return None
        mine = rgrad.autograd.grad(
            [g for g, _ in pairs],
            here,
            [rgrad.tensor(c).to(g.dtype) for c, (g, _) in zip(weights, pairs, strict=True)],
            create_graph=True,
            allow_unused=True,
        )
        for g, w in zip(mine, theirs, strict=True):
            if g is None or w is None:
                if any(t is not None and values(t).any() for t in (g, w)):
                    return f"order {level}: a gradient on one side only"
            elif (told := difference(g, w, 1e-7)) is not None:
                return f"order {level}: {told}"
        both = [(g, w) for g, w in zip(mine, theirs, strict=True) if g is not None and w is not None]
        pairs = [(g, w) for g, w in both if g.requires_grad and w.requires_grad]
    return None


def outcome(op: Any, function: Callable[..., Any], sample: Any, dtype: Any, order: int) -> str | None:
    """What differs for one sample; None: nothing, or torch refuses it."""
    given = (sample.input, sample.args, dict(sample.kwargs))
    mine = ours(given)
    try:
        want = op.op(given[0], *given[1], **given[2])
    except Exception:
        return None
    try:
        got = function(mine[0], *mine[1], **mine[2])
        a, b = list(flat(got)), list(flat(want))
        if len(a) != len(b):
            return f"{len(a)} results, not {len(b)}"
        tolerance = 1e-7 if dtype == torch.complex128 else 2e-4
        for g, w in zip(a, b, strict=True):
            if is_tensor(w) and is_tensor(g) and (g.is_conj(), g.is_neg()) != (w.is_conj(), w.is_neg()):
                return f"is_conj {g.is_conj()}, is_neg {g.is_neg()}, not {w.is_conj()}, {w.is_neg()}"
            if (told := difference(g, w, tolerance)) is not None:
                return told
        return compare_gradients(a, b, (mine, given), order)
    except Exception as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0][:120]}"


def differences(op: Any) -> list[str]:
    """What differs in some samples of an operator."""
    try:
        function = function_of(op)
    except Missing:
        return ["no such name"]
    found: list[str] = []
    for dtype, most in ((torch.complex128, DOUBLE), (torch.complex64, SINGLE)):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        graded = dtype == torch.complex128 and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=graded))
            order = (2 if op.supports_gradgrad else 1) if graded else 0
            chosen = samples[:: max(1, len(samples) // most)]
            told = [outcome(op, function, sample, dtype, order) for sample in chosen]
            found.extend(t for t in told if t is not None)
    return found


def lazily(x: Any) -> Any:
    """The same argument, with tensors that are lazy conjugates and negatives of the same elements."""
    if isinstance(x, rgrad.Tensor):
        if x.dtype in (rgrad.bool, rgrad.uint8):
            return x
        d = x.detach()
        made = rgrad.conj_physical(d).conj() if d.is_complex() else d.neg()._neg_view()
        return made.detach().requires_grad_(x.requires_grad)
    if isinstance(x, (list, tuple)) and not isinstance(x, rgrad.Size):
        return type(x)(map(lazily, x))
    return {k: lazily(v) for k, v in x.items()} if isinstance(x, dict) else x


def lazy_differences(op: Any) -> list[str]:
    """What an operator does otherwise with lazy conjugates and negatives than with computed ones, in rgrad alone."""
    if op.name == "view_as_real":  # refuses lazy conjugates
        return []
    try:
        function = function_of(op)
    except Missing:
        return []
    found: list[str] = []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", torch.complex128, requires_grad=op.supports_autograd))
        for sample in samples[:: max(1, len(samples) // SINGLE)]:
            plain = ours((sample.input, sample.args, dict(sample.kwargs)))
            lazy = lazily(plain)
            try:
                want = list(flat(function(plain[0], *plain[1], **plain[2])))
            except Exception:
                continue
            try:
                got = list(flat(function(lazy[0], *lazy[1], **lazy[2])))
                told = [difference(g, w, 1e-12) for g, w in zip(got, want, strict=True)]
                told.append(compare_lazy_gradients(got, want, lazy, plain))
            except Exception as e:
                told = [f"{type(e).__name__}: {str(e).splitlines()[0][:120]}"]
            found.extend(t for t in told if t is not None)
    return found


def compare_lazy_gradients(
    got: list[Any], want: list[Any], lazy: tuple[Any, Any], plain: tuple[Any, Any]
) -> str | None:
    made: list[Any] = []
    for outs, given in ((got, lazy), (want, plain)):
        outs = [o for o in outs if is_tensor(o) and o.requires_grad]
        leaves = [x for x in flat(list(given)) if is_tensor(x) and x.requires_grad]
        if not outs or not leaves:
            return None
        weights = [rgrad.tensor(c).to(o.dtype) for c, o in zip(cotangents(outs), outs, strict=True)]
        try:
            made.append(rgrad.autograd.grad(outs, leaves, weights, allow_unused=True))
        except RuntimeError as error:
            # Vectors whose phases are free have no gradient of these weights, of either.
            if "specified up to multiplication" not in str(error):
                raise
            made.append(str(error))
    if any(isinstance(gradients, str) for gradients in made):
        return None if isinstance(made[0], str) and isinstance(made[1], str) else "one of them depends on phases"
    for g, w in zip(*made, strict=True):
        if (g is None) != (w is None):
            return "a gradient on one side only"
        if g is not None and (told := difference(g, w, 1e-10)) is not None:
            return f"gradient: {told}"
    return None


def listed() -> set[str]:
    """The operators that do not hold yet."""
    return {line.split("\t")[0] for line in OPEN.read_text().splitlines() if line.strip()}


def main() -> None:
    names = {a for a in sys.argv[1:] if not a.startswith("-")}
    lines = []
    for op in operators():
        if names and op.name not in names and full_name(op) not in names:
            continue
        found = differences(op)
        if found:
            lines.append(f"{full_name(op)}\t{found[0]}")
        print(f"{full_name(op):45} {f'{len(found)}: {found[0]}' if found else 'holds'}", flush=True)
    if "--write" in sys.argv:
        OPEN.write_text("".join(f"{line}\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
