"""Time rgrad beside PyTorch (and NumPy and JAX where installed) in one run, and print ratios and targets.

    python benches/compare                      # every row
    python benches/compare 'grad_*' mlp_step    # some rows
    python benches/compare --json results.json

Each library gets the same number of threads, blocks of the libraries alternate, and the ratio is the median over the
rounds of PyTorch's time over rgrad's: above 1, rgrad is faster. Times drift with the machine; only ratios of one run
mean something.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import sys
from pathlib import Path


def parse() -> argparse.Namespace:
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benches/compare", description=description)
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows to run; * stands for anything (all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.add_argument("--threads", type=int, default=2, help="threads of each library (2)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a first impression")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    args = parser.parse_args()
    if not 1 <= args.threads <= 1024:
        parser.error(f"--threads must be from 1 to 1024, got {args.threads}")
    return args


def show_time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main() -> int:
    args = parse()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)  # read once, when NumPy and PyTorch are imported
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

    from checks import CHECKS
    from harness import Check, Line, Row, Settings, load_modules, measure
    from rows_attention import ROWS as ATTENTION
    from rows_complex import ROWS as COMPLEX
    from rows_conv import ROWS as CONV
    from rows_embedding import ROWS as EMBEDDING
    from rows_fft import ROWS as FFT
    from rows_functions import ROWS as FUNCTIONS
    from rows_fusion import CHECKS as MEMORY
    from rows_fusion import ROWS as FUSION
    from rows_large import ROWS as LARGE
    from rows_linalg import ROWS as LINALG
    from rows_memory import CHECKS as NETWORK_MEMORY
    from rows_networks import ROWS as NETWORKS
    from rows_norms import ROWS as NORMS
    from rows_pool import ROWS as POOL
    from rows_profiler import CHECKS as PROFILER
    from rows_recurrent import ROWS as RECURRENT
    from rows_small import ROWS as SMALL
    from rows_training import ROWS as TRAINING
    from rows_transforms import CHECKS as TRANSFORMED
    from rows_transforms import ROWS as TRANSFORMS
    from rows_wgpu import CHECKS as WGPU
    from rows_wgpu_large import CHECKS as WGPU_LARGE

    rows: list[Row | Check] = [
        *SMALL,
        *COMPLEX,
        *FUNCTIONS,
        *LARGE,
        *LINALG,
        *NORMS,
        *ATTENTION,
        *CONV,
        *POOL,
        *FFT,
        *EMBEDDING,
        *NETWORKS,
        *TRAINING,
        *RECURRENT,
        *FUSION,
        *TRANSFORMS,
        *TRANSFORMED,
        *MEMORY,
        *NETWORK_MEMORY,
        *PROFILER,
        *CHECKS,
        *WGPU,
        *WGPU_LARGE,
    ]
    patterns = args.names or ["*"]
    for pattern in patterns:
        if not any(fnmatch.fnmatch(row.name, pattern) for row in rows):
            print(f"benches/compare: no row {pattern!r}; --list shows them", file=sys.stderr)
            return 2
    rows = [row for row in rows if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]
    if args.list:
        for row in rows:
            print(f"{row.name:20} {row.what}")
        return 0

    settings = Settings(threads=args.threads)
    if args.quick:
        settings.rounds, settings.block = 5, 0.005
    load_modules(settings)
    if "rgrad" in settings.missing:
        print("benches/compare: rgrad is not installed here: ./run build, then ./run bench", file=sys.stderr)
        return 2

    versions = ", ".join(f"{name} {module.__version__}" for name, module in settings.modules.items())
    print(f"{versions}; Python {platform.python_version()}; {args.threads} threads each of {os.cpu_count()}")
    for message in settings.missing.values():
        print(message)
    print()
    print(f"{'row':20} {'what':52} {'rgrad':>10} {'torch':>10} {'ratio':>7} {'target':>10}  verdict")

    lines: list[Line] = []
    for row in rows:
        try:
            if isinstance(row, Row):
                line = measure(row, settings)
            else:
                line = Line(row.name, row.what, row.target)
                *said, good = row.measure(settings)
                line.said = (said[0], said[1])
                line.verdict = {True: "pass", False: "MISS", None: "unknown"}[good]
        except Exception as error:  # one row that fails must not hide the others
            line = Line(row.name, row.what, "", verdict=f"ERROR: {type(error).__name__}: {error}")
        lines.append(line)
        ours, theirs = (
            show_time(line.times[name]) if name in line.times else said
            for name, said in zip(("rgrad", "torch"), line.said, strict=True)
        )
        ratio = f"{line.ratio:.2f}x" if line.ratio else ""
        rate = (
            f"  {line.rate / 1e9:.0f} GB/s, a copy {line.copy_rate / 1e9:.0f}" if line.rate and line.copy_rate else ""
        )
        if line.limit:
            rate += f"  at the speed of matrix products {show_time(line.limit)}"
        others = "".join(f"  {n} {show_time(t)}" for n, t in line.times.items() if n not in {"rgrad", "torch"})
        cells = f"{line.name:20} {line.what:52} {ours:>10} {theirs:>10} {ratio:>7} {line.target:>10}"
        print(f"{cells}  {line.verdict}{rate}{others}", flush=True)

    if args.json:
        record = {
            "versions": {name: module.__version__ for name, module in settings.modules.items()},
            "python": platform.python_version(),
            "machine": platform.processor() or platform.machine(),
            "threads": args.threads,
            "rows": [vars(line) for line in lines],
        }
        args.json.write_text(json.dumps(record, indent=2) + "\n")
    bad = [line.name for line in lines if line.verdict.startswith(("WRONG", "ERROR"))]
    missed = [line.name for line in lines if line.verdict == "MISS"]
    print(f"\n{sum(line.verdict == 'pass' for line in lines)} pass, {len(missed)} miss, {len(bad)} wrong or failing")
    return 1 if bad or (args.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
