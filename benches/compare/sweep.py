"""Time every operator of PyTorch's own table in rgrad beside PyTorch, and print what is behind, worst first.

    python benches/compare/sweep.py                            # float32, small and large, forward and backward
    python benches/compare/sweep.py --dtype float32,int64 --size small --json all.json
    python benches/compare/sweep.py 'nn.functional.*' topk
    python benches/compare/sweep.py --page docs/speed-by-operator.md --from all.json

Arguments are PyTorch's own samples: as they are (small: what a call costs), and repeated along their dimensions to
about a million elements (large). Backward is forward and backward together. The ratio is the median over rounds of
PyTorch's time over rgrad's in neighbouring blocks: above 1, rgrad is faster. PyTorch must be installed.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LARGE = 1 << 20
# Longer calls say nothing about an operator that a shorter one would not.
LONGEST = 1.0
# Not operators of dense tensors that compute: memory as it is, names of torch's own tests, layouts rgrad has not.
OUTSIDE = ("jiterator_*", "_*", "empty*", "new_empty*", "to_sparse", "sparse.*", "ops.*")


@dataclass
class Measured:
    """One operator of one size, dtype and direction: seconds a call, or why there are none."""

    name: str
    dtype: str
    size: str
    direction: str
    ours: float = 0.0
    theirs: float = 0.0
    ratio: float = 0.0
    why: str = ""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benches/compare/sweep.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="OPERATOR", help="operators; * stands for anything (all)")
    parser.add_argument("--dtype", default="float32", help="dtypes, with commas (float32)")
    parser.add_argument("--size", default="small,large", help="small, large or both, with a comma (both)")
    parser.add_argument("--direction", default="forward,backward", help="forward, backward or both (both)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each library (2)")
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each library (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="read results instead of measuring")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the page of the documentation")
    return parser.parse_args()


def tensors_of(x: Any) -> Iterator[Any]:
    from operator_calls import flat, is_tensor

    return (t for t in flat(x) if is_tensor(t))


def elements(given: Any) -> int:
    return max((t.numel() for t in tensors_of(given)), default=0)


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """The same arguments with each tensor changed."""
    import torch

    if isinstance(x, torch.Tensor):
        return change(x)
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        return type(x)(mapped(y, change) for y in x)
    return {k: mapped(v, change) for k, v in x.items()} if isinstance(x, dict) else x


def repeated(t: Any, dims: list[tuple[int, int]]) -> Any:
    """A tensor with each of these dimensions so many times as long, its slices in an order without a pattern."""
    import torch

    grad = t.requires_grad
    t = t.detach()
    for dim, times in dims:
        many = t.shape[dim] * times
        order = torch.randperm(many, generator=torch.Generator().manual_seed(many)) % t.shape[dim]
        t = t.index_select(dim, order)
    return t.contiguous().requires_grad_(grad)


def larger(given: Any) -> Iterator[Any]:
    """Larger forms of some arguments, by trial: an operator takes the first that it does not refuse."""
    first = next(tensors_of(given))
    times = max(2, -(-LARGE // max(1, elements(given))))
    root = max(2, round(times**0.5))
    along: list[list[tuple[int, int]]] = [[(0, root), (-1, root)]] if first.dim() >= 2 else []
    along += [[(0, times)], [(-1, times)]]
    for dims in along:

        def fits(t: Any, dims: list[tuple[int, int]] = dims) -> bool:
            return t.dim() == first.dim() and all(t.shape[d] == first.shape[d] for d, _ in dims)

        yield mapped(given, lambda t, dims=dims: repeated(t, dims) if fits(t) else t)
        yield mapped(given, lambda t, dims=dims: repeated(t, dims) if t is first else t)


def argument_sets(op: Any, dtype: Any, size: str, grad: bool) -> Iterator[Any]:
    """The arguments of a sample: those with the most elements of the first samples, small or made larger."""
    samples = []
    for k, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        samples.append((sample.input, sample.args, dict(sample.kwargs)))
        if k >= 12:
            break
    samples.sort(key=elements, reverse=True)
    for given in samples:
        if not elements(given):
            continue
        if size == "small":
            yield given
        elif next(tensors_of(given)).dim():
            yield from larger(given)


def look(result: Any) -> None:
    """Have a result computed that may still be pending: any element does it."""
    for t in tensors_of([result]):
        if t.numel():
            t[(0,) * t.dim()].item()


def forward(function: Callable[..., Any], given: Any, size: str) -> Callable[[int], None]:
    x, args, kwargs = given

    def run(n: int) -> None:
        for _ in range(n):
            made = function(x, *args, **kwargs)
            if size == "large":
                look(made)

    return run


def backward(lib: Any, function: Callable[..., Any], given: Any, size: str) -> Callable[[int], None]:
    x, args, kwargs = given
    leaves = [t for t in tensors_of(given) if t.requires_grad]
    first = function(x, *args, **kwargs)
    alone = isinstance(first, lib.Tensor)
    weights = [lib.ones_like(o).detach() for o in tensors_of([first]) if o.requires_grad]

    def run(n: int) -> None:
        for _ in range(n):
            made = function(x, *args, **kwargs)
            outs = made if alone else [o for o in tensors_of(made) if o.requires_grad]
            gradients = lib.autograd.grad(outs, leaves, weights, allow_unused=True)
            if size == "large":
                look([g for g in gradients if g is not None])

    if not weights or not leaves:
        raise ValueError("has no gradient")
    return run


def seconds(run: Callable[[int], None], n: int) -> float:
    begun = time.perf_counter_ns()
    run(n)
    return (time.perf_counter_ns() - begun) * 1e-9


def timed(ours: Callable[[int], None], theirs: Callable[[int], None], rounds: int, size: str) -> tuple[float, ...]:
    counts = []
    for run in (ours, theirs):
        once, n = min(seconds(run, 1), seconds(run, 1)), 1
        while once * n < 0.004 and n < 1 << 14:
            n = max(2 * n, min(64 * n, int(0.004 / max(once, 1e-7))))
            once = seconds(run, n) / n
        counts.append(n)
    blocks: list[tuple[float, float]] = []
    for _ in range(rounds):
        pair = []
        for run, n in zip((ours, theirs), counts, strict=True):
            # Idle threads of the other library spin on for a while.
            time.sleep(0.012 if size == "large" else 0)
            pair.append(seconds(run, n) / n)
        blocks.append((pair[0], pair[1]))
    here, there = (statistics.median(b[k] for b in blocks) for k in (0, 1))
    return here, there, statistics.median(b[1] / b[0] for b in blocks)


def measure(op: Any, dtype: str, size: str, direction: str, rounds: int) -> Measured | None:
    """None: PyTorch does not do it."""
    import torch

    import rgrad
    from operator_calls import Missing, full_name, function_of, ours

    line = Measured(full_name(op), dtype, size, direction)
    kind, grad = getattr(torch, dtype), direction == "backward"
    supported = op.supported_backward_dtypes("cpu") if grad else op.supported_dtypes("cpu")
    if kind not in supported or (grad and not (op.supports_autograd and kind.is_floating_point)):
        return None
    torch.manual_seed(0)
    for given in argument_sets(op, kind, size, grad):
        try:
            theirs = backward(torch, op.op, given, size) if grad else forward(op.op, given, size)
            if seconds(theirs, 1) > LONGEST:
                continue
        except Exception:
            continue
        try:
            function, mine = function_of(op), ours(given)
            run = backward(rgrad, function, mine, size) if grad else forward(function, mine, size)
            if seconds(run, 1) > 20 * LONGEST:
                line.why = "takes longer than 20 s"
                return line
            line.ours, line.theirs, line.ratio = timed(run, theirs, rounds, size)
        except Missing:
            line.why = "no such name"
        except Exception as error:
            line.why = f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"
        return line
    return None


def sweep(args: argparse.Namespace) -> list[Measured]:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    import rgrad
    from operator_calls import full_name

    for lib in (rgrad, torch):
        lib.set_num_threads(args.threads)
    found: list[Measured] = []
    wanted = [
        op
        for op in op_db
        if not any(fnmatch.fnmatch(op.name, pattern) for pattern in OUTSIDE)
        and (not args.names or any(fnmatch.fnmatch(full_name(op), pattern) for pattern in args.names))
    ]
    for op in wanted:
        for dtype in args.dtype.split(","):
            for size in args.size.split(","):
                for direction in args.direction.split(","):
                    gc.collect()
                    gc.disable()
                    try:
                        line = measure(op, dtype, size, direction, args.rounds)
                    except Exception as error:  # of the table itself
                        line = None
                        print(f"{full_name(op)}: {type(error).__name__}: {error}", file=sys.stderr)
                    finally:
                        gc.enable()
                    if line is not None:
                        found.append(line)
                        print(shown(line), file=sys.stderr, flush=True)
    return found


def time_of(s: float) -> str:
    return f"{s * 1e3:.3g} ms" if s >= 1e-3 else f"{s * 1e6:.3g} us"


def shown(m: Measured) -> str:
    said = m.why or f"{m.ratio:6.2f}  {time_of(m.ours):>9} for {time_of(m.theirs):>9}"
    return f"{m.name:52} {m.dtype:9} {m.size:6} {m.direction:9} {said}"


def summary(found: list[Measured]) -> list[tuple[str, ...]]:
    """For each size, direction and dtype: how many operators, how many at or ahead, below 0.7, and the mean."""
    rows = []
    groups = sorted({(m.size, m.direction, m.dtype) for m in found}, reverse=True)
    for group in groups:
        ratios = [m.ratio for m in found if (m.size, m.direction, m.dtype) == group and not m.why]
        missing = sum((m.size, m.direction, m.dtype) == group and bool(m.why) for m in found)
        if ratios:
            ahead, behind = sum(r >= 1 for r in ratios), sum(r < 0.7 for r in ratios)
            mean = statistics.geometric_mean(ratios)
            rows.append(
                (*group, str(len(ratios)), f"{ahead / len(ratios):.0%}", str(behind), f"{mean:.2f}", str(missing))
            )
    return rows


HEAD = ("size", "direction", "dtype", "operators", "at or ahead", "below 0.7", "geometric mean", "not run")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)) + "\n"


def page(found: list[Measured], about: dict[str, str]) -> str:
    """The page "speed by operator": the summary, and what is behind, worst first."""
    behind = sorted((m for m in found if not m.why and m.ratio < 1), key=lambda m: m.ratio)
    rows = [
        (f"`{m.name}`", m.dtype, m.size, m.direction, f"{m.ratio:.2f}", time_of(m.ours), time_of(m.theirs))
        for m in behind
    ]
    missing = sorted({(f"`{m.name}`", m.why.replace("|", "/")) for m in found if m.why})
    return f"""# Speed by operator

Every operator of PyTorch {about["torch"]}'s own table, in rgrad beside PyTorch in one process.
A ratio is PyTorch's time over rgrad's: above 1, rgrad is faster.
Small are PyTorch's own samples, some dozens of elements: what a call costs.
Large are the same samples repeated to about a million elements.
Backward is forward and backward together.

`python benches/compare/sweep.py` makes this page. It was made on {about["date"]}, with {about["threads"]} threads each,
on {about["processor"]}.

{table(HEAD, summary(found))}
## Behind PyTorch, worst first

{table(("operator", "dtype", "size", "direction", "ratio", "rgrad", "PyTorch"), rows)}
## Not run

{table(("operator", "why"), missing)}"""


def about(threads: int) -> dict[str, str]:
    import torch

    names = [s.partition(":")[2].strip() for s in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in s]
    return {
        "torch": torch.__version__.partition("+")[0],
        "date": time.strftime("%Y-%m-%d"),
        "threads": str(threads),
        "processor": f"{names[0] if names else 'an unknown processor'} ({os.cpu_count()} cores)",
    }


def main() -> int:
    args = parse()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    sys.path.insert(0, str(ROOT / "tests" / "oracle" / "helpers"))
    warnings.simplefilter("ignore")
    if args.source:
        stored = json.loads(args.source.read_text(encoding="utf-8"))
        found, told = [Measured(**line) for line in stored["lines"]], stored["about"]
    else:
        found, told = sweep(args), about(args.threads)
    if args.json:
        args.json.write_text(
            json.dumps({"about": told, "lines": [asdict(m) for m in found]}, indent=1), encoding="utf-8"
        )
    if args.page:
        args.page.write_text(page(found, told), encoding="utf-8")
    for m in sorted((m for m in found if not m.why and m.ratio < 1), key=lambda m: m.ratio):
        print(shown(m))
    print(table(HEAD, summary(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
