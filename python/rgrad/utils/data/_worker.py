"""The process that makes batches for a loader."""

import os
import pickle
import queue
import random
import select
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import _core
from . import _transport
from ._fetch import Source


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows about itself.

    Attributes:
        id: Its number, from 0 on.
        num_workers: How many workers the loader has.
        seed: What its random numbers begin with.
        dataset: Its copy of the dataset.
        rng: None: workers use the global generators.
        worker_method: ``"multiprocessing"``.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What this worker knows about itself; None in a process that is no worker of a loader."""
    return _info


@dataclass(frozen=True, slots=True)
class Job:
    """What all workers of a loader do."""

    source: Source
    base_seed: int
    num_workers: int
    init_fn: Callable[[int], Any] | None


class Failure:
    """An exception of a worker, to be raised again in the loader's process.

    Args:
        where: Which process it was, for the message.
        error: The exception.
    """

    def __init__(self, where: str, error: BaseException) -> None:
        self.kind: type[BaseException] = type(error)
        self.message = f"Caught {self.kind.__name__} {where}.\nOriginal {''.join(traceback.format_exception(error))}"

    def reraise(self) -> None:
        """Raise an exception of the same type, whose message has the worker's traceback.

        Raises:
            BaseException: That exception; a RuntimeError if its type takes no message.
        """
        if issubclass(self.kind, KeyError):
            # A KeyError shows its argument's repr: line breaks would not be readable.
            raise self.kind(_Text(self.message))
        try:
            kind: Any = self.kind
            found = kind(message=self.message) if hasattr(kind, "message") else kind(self.message)
        except Exception:
            raise RuntimeError(self.message) from None
        raise found


class _Text(str):
    """A string whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Ended:
    """The answer of a worker whose stream has no more samples."""


class _Inbox:
    """Takes tasks off the socket in a thread of its own, so that the loader never waits for a busy worker."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.parent = os.getppid()
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True, name="rgrad-worker-inbox").start()

    def _read(self) -> None:
        while True:
            try:
                # Other processes may hold the loader's end of the socket, so its death is not always heard there.
                while not select.select([self.sock], [], [], 5.0)[0]:
                    if os.getppid() != self.parent:
                        os._exit(1)
                task = _transport.receive(self.sock)
            except (OSError, EOFError, ValueError):
                task = None
            self.tasks.put(task)
            if task is None:
                return


def seed_everything(base_seed: int, worker: int) -> int:
    """Seed the generators of Python, of rgrad and of NumPy as PyTorch's workers do; gives the worker's seed."""
    import numpy as np

    seed = base_seed + worker
    random.seed(seed)
    _core.manual_seed(seed)
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))
    return seed


def run(job: Job, worker: int, sock: socket.socket, others: Sequence[socket.socket]) -> None:
    """Answer the tasks of a loader until it says to stop, or has gone.

    Args:
        job: What to do.
        worker: This worker's number.
        sock: The socket to the loader.
        others: Ends of sockets that a fork has copied, which are the loader's alone.
    """
    global _info
    for other in others:
        other.close()
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _core.set_num_threads(1)
        # A device cannot be used behind a fork, and a spawned process has this default anyway.
        _core.set_default_device("cpu")
        seed = seed_everything(job.base_seed, worker)
        _info = WorkerInfo(worker, job.num_workers, seed, job.source.dataset)
        where = f"in DataLoader worker process {worker}"
        inbox = _Inbox(sock)
        failure: Failure | None = None
        fetch: Callable[[Any], Any] | None = None
        try:
            if job.init_fn is not None:
                job.init_fn(worker)
            fetch = job.source.fetcher()
        except Exception as error:
            failure = Failure(where, error)
        epoch = 0
        while (task := inbox.tasks.get()) is not None:
            number, at, index = task
            if number != epoch:
                # A new pass of a persistent worker.
                epoch = number
                try:
                    fetch = job.source.fetcher()
                except Exception as error:
                    failure = Failure(where, error)
            answer: Any
            if failure is not None:
                answer, failure = failure, None
            else:
                answer = _answer(fetch, index, job.source.is_stream, where)
            _send(sock, epoch, at, answer, where)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        # The loader hears of Ctrl-C by itself, and its end is this process's end.
        pass


def _answer(fetch: Callable[[Any], Any] | None, index: Any, is_stream: bool, where: str) -> Any:
    if fetch is None:
        return Ended()
    try:
        return fetch(index)
    except StopIteration as error:
        return Ended() if is_stream else Failure(where, error)
    except Exception as error:
        return Failure(where, error)


def _send(sock: socket.socket, epoch: int, at: int, answer: Any, where: str) -> None:
    try:
        parts = _transport.dumps((epoch, at, answer))
    except Exception as error:
        failure = answer if isinstance(answer, Failure) else Failure(where, error)
        try:
            pickle.dumps(failure.kind)
        except Exception:
            # The type is known in this process alone.
            failure.kind = RuntimeError
        parts = _transport.dumps((epoch, at, failure))
    _transport.send(sock, parts)
