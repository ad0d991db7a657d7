"""Failures of `multiprocessing.start_processes` beside PyTorch's: types, words and attributes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad.multiprocessing  # noqa: E402
from loading import load  # noqa: E402

WORK = load("tests/python/helpers/process_work.py")


def told(T: Any, work: Callable[..., Any], args: tuple[Any, ...], processes: int) -> tuple[Any, ...]:
    with pytest.raises(Exception, match="process|Process") as caught:
        T.multiprocessing.start_processes(work, args=args, nprocs=processes, start_method="fork")
    error = caught.value
    text = re.sub(r'File "[^"]*", line \d+, in (_wrap|_run)\n.*\n(?: *[\^~]+\n)?', "", str(error))
    kept = {key: getattr(error, key, None) for key in ("error_index", "exit_code", "signal_name")}
    bases = [base.__name__ for base in type(error).__mro__]
    return bases, re.sub(r"\s+", " ", text), kept


@pytest.mark.parametrize(
    ("work", "args", "processes"),
    [
        (WORK.fail, (0,), 1),
        (WORK.fail, (1,), 2),
        (WORK.leave, (3,), 2),
        (WORK.leave_politely, (4,), 1),
        (WORK.be_killed, (), 1),
    ],
)
def test_failures(work: Callable[..., Any], args: tuple[Any, ...], processes: int) -> None:
    assert told(rgrad, work, args, processes) == told(torch, work, args, processes)


def test_names_and_signatures() -> None:
    for name in ("spawn", "start_processes", "ProcessContext", "ProcessRaisedException", "ProcessExitedException"):
        mine, theirs = (
            [(p.name, p.default) for p in inspect.signature(getattr(T.multiprocessing, name)).parameters.values()]
            for T in (rgrad, torch)
        )
        assert mine == theirs, name
    assert rgrad.multiprocessing.ENV_VAR_PARALLEL_START == torch.multiprocessing.ENV_VAR_PARALLEL_START
