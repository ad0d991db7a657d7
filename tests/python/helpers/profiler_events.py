"""What profilers have seen, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rgrad.profiler import profile

Events = list[Any]


def recorded(work: Callable[[], Any], **options: Any) -> Events:
    with profile(**options) as prof:
        work()
    return prof.events()


def names(events: Events) -> list[str]:
    return [event.name for event in events]


def tree(events: Events) -> list[Any]:
    """Names, each with those of the events inside of it."""

    def of(event: Any) -> Any:
        inside = [of(child) for child in event.cpu_children]
        return (event.name, inside) if inside else event.name

    return [of(event) for event in events if event.cpu_parent is None]
