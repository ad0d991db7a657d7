"""``python -m rgrad.profile script.py`` runs a script, prints where its time went, and leaves a trace for Perfetto."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rgrad.profile",
        description="Runs a script under rgrad's profiler, prints a table, and leaves a trace that "
        "https://ui.perfetto.dev opens.",
    )
    parser.add_argument("-o", "--output", help="the trace (default: the script's name with .trace.json.gz)")
    parser.add_argument("--sort-by", default="self_cpu_time_total", help="the column to sort by (default: %(default)s)")
    parser.add_argument("--row-limit", type=int, default=30, help="the most rows (default: %(default)s)")
    parser.add_argument("--shapes", action="store_true", help="a row for each shape of the inputs")
    parser.add_argument("--memory", action="store_true", help="columns and a counter of memory")
    parser.add_argument("--stack", type=int, default=0, metavar="N", help="a row for each of the innermost N lines")
    parser.add_argument("--flops", action="store_true", help="a column of floating point operations")
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script of the command line; its exit status."""
    options = _parser().parse_args(argv)
    if not options.module and not os.path.exists(options.script):
        print(f"rgrad.profile: there is no file {options.script!r}", file=sys.stderr)
        return 2
    from .profiler import profile

    trace = options.output or os.path.splitext(os.path.basename(options.script))[0] + ".trace.json.gz"
    sys.argv = [options.script, *options.args]
    prof = profile(
        record_shapes=options.shapes,
        profile_memory=options.memory,
        with_stack=options.stack > 0,
        with_flops=options.flops,
    )
    status = 0
    prof.start()
    try:
        if options.module:
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(options.script))
            runpy.run_path(options.script, run_name="__main__")
    except SystemExit as e:
        # As Python itself does: None is 0, a number is the status, anything else is printed.
        if isinstance(e.code, int):
            status = e.code
        elif e.code is not None:
            print(e.code, file=sys.stderr)
            status = 1
    finally:
        prof.stop()
        averages = prof.key_averages(group_by_input_shape=options.shapes, group_by_stack_n=options.stack)
        table = averages.table(sort_by=options.sort_by, row_limit=options.row_limit)
        # Neither is lost with the other: the file may not be writable, and nobody may read what is printed.
        try:
            prof.export_chrome_trace(trace)
        finally:
            print(table, end="")
        print(f"Trace: {trace} (open it at https://ui.perfetto.dev)")
    return status


if __name__ == "__main__":
    sys.exit(main())
