"""Say whether behaviour or speed has changed: measure before and after a change, and compare the two files.

    python scripts/gates counts  --out FILE     # instructions per iteration, by callgrind
    python scripts/gates hashes  --out FILE     # SHA-256 of results and gradients, for base, avx2 and avx512
    python scripts/gates kernels --out FILE     # which kernels compute the rows of benches/compare, by perf
    python scripts/gates sizes   --out FILE     # bytes of code of each family, see code_size.py
    python scripts/gates compare BEFORE AFTER   # exits with 1 and says what differs

Names choose cases, and * stands for anything: `counts mlp_step`, `hashes 'conv2d/*' --isa avx2`, `kernels 'grad_*'`.
The rgrad that is measured is the one that this Python imports. Both files must come from one machine and one kind of
build. A file has one line of JSON for each case, so `diff` works on it, too.

`counts` needs valgrind, which knows no AVX-512: it counts the kernels of avx2, on one thread. Only the iterations are
counted, not start-up: two runs of one build differ by up to 0.2 % (`mlp_step`). They may grow by 0.5 %. Half a minute.
`hashes` makes all nans one. Cases that are refused have the type of the error in place of a hash. A quarter of a minute
for each instruction set, a minute and a half on a busy machine.
`kernels` samples for 0.3 s a row; a change is a kernel with a fifth of the samples that has lost more than half of
them. Names say where a function lies: after a move compare by eye. `sizes` fails if all code grows by 1 %.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import counts
import hashes
import kernels
import records

sys.path.append(str(Path(__file__).parents[1]))
import code_size

GATES = ("counts", "hashes", "kernels", "sizes")


def environment() -> dict[str, str]:
    """The environment without settings that change what runs or how it is counted."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RGRAD_")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**kept, **threads, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def module_file() -> Path:
    """The native module that this Python imports."""
    import rgrad._core

    return Path(rgrad._core.__file__)


def sizes(path: Path) -> Iterator[dict[str, Any]]:
    """A line for each family, and for all."""
    elf = code_size.read_elf(path.read_bytes())
    families = code_size.by_family(elf.functions)
    for name, size in [*families.most_common(), ("all code", families.total()), ("the file, stripped", elf.stripped)]:
        print(f"{size / 1e6:9.3f} MB  {name}")
        yield {"case": name, "value": size}


def measure(options: argparse.Namespace) -> int:
    begin = time.perf_counter()
    print(options.file if options.gate == "sizes" and options.file else module_file())
    if options.gate == "counts":
        lines = counts.collect(options.names, (options.isa or ["avx2"])[0], environment())
    elif options.gate == "hashes":
        lines = hashes.collect(options.isa or list(hashes.SETS), options.names, environment())
    elif options.gate == "kernels":
        patterns = options.names or (list(kernels.QUICK) if options.quick else [])
        lines = kernels.collect(patterns, (options.isa or [""])[0], environment())
    else:
        lines = sizes(options.file or module_file())
    found = list(lines)
    print(f"{options.gate}: {len(found)} cases, {time.perf_counter() - begin:.0f} s")
    if options.out:
        records.write(options.out, options.gate, found, python=sys.version.split()[0], module=module_file().name)
    return 0 if found else 1


def compare(options: argparse.Namespace) -> int:
    lines, same = records.compare(records.read(options.before), records.read(options.after), options.allow)
    print("\n".join(lines))
    return 0 if same else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/gates", description=(__doc__ or "").split("\n")[0])
    gates = parser.add_subparsers(dest="gate", required=True)
    for name in GATES:
        gate = gates.add_parser(name)
        gate.add_argument("--out", type=Path, metavar="FILE", help="also write what was found to this file")
        if name == "sizes":
            gate.add_argument("file", type=Path, nargs="?", help="a module with symbols (the one that is imported)")
            continue
        gate.add_argument("names", nargs="*", metavar="NAME", help="cases to run; * stands for anything (all)")
        gate.add_argument("--isa", action="append", choices=hashes.SETS, help="the instruction set; again for more")
        if name == "kernels":
            gate.add_argument("--quick", action="store_true", help="some rows of each family")
    two = gates.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--allow", type=float, metavar="PERCENT", help="by how much counts or sizes may grow")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        return compare(options) if options.gate == "compare" else measure(options)
    except (RuntimeError, records.NoRecord, OSError, code_size.NotElf) as error:
        print(f"gates: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
