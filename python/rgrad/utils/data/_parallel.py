"""The iterator of a loader with worker processes."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import time
import weakref
from collections.abc import Iterator
from typing import Any

from . import _transport
from ._worker import Ended, Failure, Job, run

#: How long workers may take to end before they are terminated.
_PATIENCE = 5.0


class _Worker:
    """A worker process as the loader sees it."""

    def __init__(self, process: Any, sock: socket.socket) -> None:
        self.process = process
        self.sock = sock
        #: Tasks that it has not answered.
        self.tasks = 0
        #: Whether its stream may have more samples.
        self.is_active = True


class WorkerPool:
    """Worker processes of one loader, each with a socket to it.

    Args:
        context: The ``multiprocessing`` context that starts processes.
        job: What they do.
    """

    def __init__(self, context: Any, job: Job) -> None:
        self.workers: list[_Worker] = []
        self._end = weakref.finalize(self, _stop, self.workers, os.getpid())
        forks = context.get_start_method() == "fork"
        try:
            for number in range(job.num_workers):
                ours, theirs = socket.socketpair()
                # Only a fork copies open sockets; then a worker would keep those to the others open.
                copied = [*(worker.sock for worker in self.workers), ours] if forks else []
                process = context.Process(target=run, args=(job, number, theirs, copied), daemon=True)
                try:
                    process.start()
                except BaseException:
                    ours.close()
                    raise
                finally:
                    theirs.close()
                self.workers.append(_Worker(process, ours))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the workers, and wait for that."""
        self._end()

    @property
    def is_running(self) -> bool:
        """Whether the workers have not been stopped."""
        return self._end.alive

    def receive(self, timeout: float) -> tuple[_Worker, Any]:
        """Wait for an answer.

        Args:
            timeout: The most seconds; 0 for any number.

        Raises:
            RuntimeError: A worker has died, or the time is over.
        """
        by_handle: dict[Any, _Worker] = {worker.sock: worker for worker in self.workers}
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic()) if timeout > 0 else None
            sentinels = [worker.process.sentinel for worker in self.workers]
            ready = multiprocessing.connection.wait([*by_handle, *sentinels], left)
            if not ready:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            found = [by_handle[handle] for handle in ready if handle in by_handle]
            if not found:
                for worker in self.workers:
                    if worker.process.sentinel in ready:
                        worker.process.join(_PATIENCE)
                raise _died(self.workers)
            with contextlib.suppress(OSError, EOFError):
                return found[0], _transport.receive(found[0].sock)
            # It has closed its end, or was killed in the middle of an answer.
            found[0].process.join(_PATIENCE)
            raise _died(self.workers)


def _died(workers: list[_Worker]) -> RuntimeError:
    dead = [worker.process for worker in workers if not worker.process.is_alive()]
    pids = ", ".join(str(process.pid) for process in dead)
    error = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
    for process in dead:
        code = process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                name = signal.strsignal(-code)
                error.__cause__ = RuntimeError(f"DataLoader worker (pid {process.pid}) is killed by signal: {name}. ")
    return error


def _stop(workers: list[_Worker], owner: int) -> None:
    """End workers: they hear of a closed socket, also while they send an answer.

    Args:
        workers: The workers.
        owner: The process whose workers they are. A fork of it has the objects too, and must leave the workers alone.
    """
    if os.getpid() != owner:
        for worker in workers:
            worker.sock.close()
        return
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.sock.shutdown(socket.SHUT_RDWR)
        worker.sock.close()
    end = time.monotonic() + _PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(_PATIENCE)


class ParallelIterator:
    """Batches that workers make, up to ``prefetch_factor`` for each of them ahead."""

    def __init__(self, loader: Any, job: Job) -> None:
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._loader = loader
        self._is_stream = job.source.is_stream
        self._indices: Iterator[Any] = iter(())
        self._epoch = 0
        context = loader.multiprocessing_context
        self._pool = WorkerPool(multiprocessing.get_context() if context is None else context, job)
        self._reset(loader)

    def _reset(self, loader: Any) -> None:
        """Begin a new pass with the same workers. Answers to tasks of the pass before are dropped when they come."""
        self._epoch += 1
        self._indices = loader._index_iterator()
        self._told_length = loader._told_length
        self._sent = 0
        self._next = 0
        #: Answers that have come too early, by number; None for a task that has no batch.
        self._kept: dict[int, Any] = {}
        self._outstanding = 0
        self._yielded = 0
        self._turn = 0
        for worker in self._pool.workers:
            worker.tasks = 0
            worker.is_active = True
        try:
            for _ in range(loader.prefetch_factor * loader.num_workers):
                if not self._put():
                    break
        except BaseException:
            # The sampler's own exceptions, or an interrupt.
            self._pool.stop()
            loader._forget(self)
            raise

    def _free_worker(self) -> _Worker | None:
        workers = self._pool.workers
        active = sum(worker.is_active for worker in workers)
        most = self._loader.prefetch_factor * len(workers) // active if active else 0
        for _ in workers:
            worker = workers[self._turn]
            self._turn = (self._turn + 1) % len(workers)
            if worker.is_active and (self._loader.in_order or worker.tasks < most):
                return worker
        return None

    def _put(self) -> bool:
        """Send one more task; whether there was one, and a worker for it."""
        worker = self._free_worker()
        if worker is None:
            return False
        try:
            index = next(self._indices)
        except StopIteration:
            return False
        # A worker that has died is reported when its answer is waited for.
        with contextlib.suppress(OSError):
            _transport.send(worker.sock, _transport.dumps((self._epoch, self._sent, index)))
        worker.tasks += 1
        self._sent += 1
        self._outstanding += 1
        return True

    def __iter__(self) -> "ParallelIterator":
        return self

    def __next__(self) -> Any:
        if not self._pool.is_running:
            raise StopIteration
        try:
            return self._batch()
        except Failed as failed:
            failed.failure.reraise()
            raise
        except StopIteration:
            if not self._loader.persistent_workers:
                self._pool.stop()
            raise
        except BaseException:
            # After an interrupt in the middle of an answer the rest of it could not be told from the next one.
            self._pool.stop()
            self._loader._forget(self)
            raise

    def _batch(self) -> Any:
        while True:
            if self._next in self._kept:
                answer = self._kept.pop(self._next)
                self._next += 1
                if answer is None:
                    continue
                return self._yield(answer[0])
            if self._outstanding == 0:
                raise StopIteration
            worker, (epoch, at, answer) = self._pool.receive(self._loader.timeout)
            if epoch != self._epoch:
                continue
            worker.tasks -= 1
            self._outstanding -= 1
            if isinstance(answer, Ended):
                worker.is_active = False
                self._kept[at] = None
                self._put()
            elif self._loader.in_order and at != self._next:
                self._kept[at] = (answer,)
            else:
                if self._loader.in_order:
                    self._next += 1
                return self._yield(answer)

    def _yield(self, answer: Any) -> Any:
        self._put()
        if isinstance(answer, Failure):
            raise Failed(answer)
        self._yielded += 1
        self._loader._count_samples(self._yielded, self._told_length)
        return answer

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class Failed(Exception):
    """Carries a worker's failure past the clean-up of other exceptions: the other workers go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure
