"""The programs of listed differences: what one gives with a library, and whether that is what the list says."""

from __future__ import annotations

import importlib
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from event_files import events
from rgrad.utils.tensorboard._library import library


@contextmanager
def written(T: Any) -> Iterator[tuple[Any, Callable[[str | None], Any]]]:
    """A writer of event files, and a function that closes it and reads a tag, or the graph."""
    tensorboard = importlib.import_module(f"{T.__name__}.utils.tensorboard")
    with tempfile.TemporaryDirectory() as folder:
        writer = tensorboard.SummaryWriter(folder)
        found: list[Any] = []

        def read(tag: str | None) -> Any:
            if tag is not None:
                return next(v for e in found for v in e.summary.value if v.tag == tag)
            data = next(e.graph_def for e in found if e.graph_def)
            return library().module("graph").GraphDef.FromString(data)

        try:
            yield writer, read
        finally:
            writer.close()
            found += events(folder)


def outcome(T: Any, program: str) -> Any:
    scope: dict[str, Any] = {"T": T, "written": written}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(textwrap.dedent(program), scope)
        except Exception as error:
            return str(error)
    return scope["result"]


def agrees(got: Any, want: Any) -> bool:
    return isinstance(got, str) and want in got if isinstance(want, str) else bool(got == want)
