"""``python -m rgrad.compat check FILE|PACKAGE``: the names that a program uses and rgrad lacks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from ._check import Lacking, check

USAGE = """\
usage: python -m rgrad.compat check FILE|FOLDER|PACKAGE ...

Lists the names of PyTorch that a program or an installed package uses and rgrad lacks, each with its line and what to
do. Nothing is run. Exits with 1 if there are any that the program does not handle.
"""


def _place(target: str) -> Path:
    """The file or folder of what is named on the command line.

    Raises:
        SystemExit: There is no such file, folder or package.
    """
    path = Path(target)
    if path.exists():
        return path
    # find_spec of a name without dots imports nothing.
    spec = importlib.util.find_spec(target) if target.isidentifier() else None
    if spec is None or spec.origin is None:
        sys.stderr.write(f"python -m rgrad.compat: no file, folder or package {target!r}\n")
        raise SystemExit(2)
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def _told(use: Lacking) -> str:
    handled = " (the program handles that it is missing)" if use.guarded else ""
    return f"{use.file}:{use.line}: {use.name}: {use.advice}{handled}\n"


def main(arguments: list[str]) -> int:
    """Check what the command line names, and print it.

    Args:
        arguments: The command line behind ``python -m rgrad.compat``.

    Returns:
        The exit code: 0 if nothing is missing, 1 if something is, 2 if it could not be read.
    """
    if len(arguments) < 2 or arguments[0] != "check":
        asked = arguments in (["-h"], ["--help"])
        (sys.stdout if asked else sys.stderr).write(USAGE)
        return 0 if asked else 2
    found: list[Lacking] = []
    for target in arguments[1:]:
        try:
            found += check(_place(target))
        except (OSError, SyntaxError) as error:
            sys.stderr.write(f"python -m rgrad.compat: {target}: {error}\n")
            return 2
    sys.stdout.writelines(map(_told, found))
    needed = {use.name for use in found if not use.guarded}
    sys.stdout.write(f"{len(needed)} names are missing, {len({use.name for use in found} - needed)} more are handled\n")
    return 1 if needed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
