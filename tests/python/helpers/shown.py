"""Runs the example of a docstring: here, or as a file in a process of its own that is given the text on its input."""

import doctest
import inspect
import os
import subprocess
import sys
import warnings

import rgrad


def said_by(doc: str) -> tuple[str, bool]:
    """What is wrong with an example, and whether it shows anything."""
    rgrad.manual_seed(0)
    scope = {"rgrad": rgrad, "nn": rgrad.nn, "F": rgrad.nn.functional}
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(doc), scope, "Example", None, 0)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said), any(example.want for example in test.examples)


def said_alone(doc: str) -> tuple[str, bool]:
    """:func:`said_by` where nothing else runs."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, __file__],
        input=doc,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr, done.returncode == 0


if __name__ == "__main__":
    said, shows = said_by(sys.stdin.read())
    sys.stdout.write(said)
    sys.exit(not shows)
