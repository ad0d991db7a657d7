"""`profile` with a schedule of steps and a callback for each finished trace."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any, Self
from warnings import warn

from ..autograd import profiler as _autograd_profiler
from ._kineto import _KinetoProfile, supported_activities

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_STEP_NAME = "ProfilerStep"


class ProfilerAction(Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule for :class:`profile`: which steps are recorded.

    Args:
        wait: Steps at the start of each cycle without recording.
        warmup: Steps after them that prepare it.
        active: Steps after those that are recorded.
        repeat: How many cycles; 0 for cycles until the end.
        skip_first: Steps before the first cycle.
        skip_first_wait: If not 0, the first cycle does not wait.

    Returns:
        A function from the number of a step to what is done in it.

    Raises:
        AssertionError: A number is negative, or ``active`` is 0; or the function is called with a negative number.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step = step - skip_first + (wait if skip_first_wait else 0)
        cycle, place = divmod(step, length)
        if 0 < repeat <= cycle or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes each trace into a directory, under the names that TensorBoard looks for.

    Args:
        dir_name: The directory; it is made if it is missing.
        worker_name: The start of the file names; by default the machine's name and the process's number.
        use_gzip: Whether files are compressed.
        use_python_export: Accepted.

    Raises:
        RuntimeError: When a trace is ready: the directory cannot be made.
    """

    def handler(prof: profile) -> None:
        if not os.path.isdir(dir_name):
            try:
                os.makedirs(dir_name, exist_ok=True)
            except Exception as e:
                raise RuntimeError("Can't create directory: " + dir_name) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return handler


class ExecutionTraceObserver:
    """Not there: execution traces are a format of PyTorch's own, with the identities of tensors and storages.

    Raises:
        NotImplementedError: Always; it says what to use.
    """

    def __init__(self) -> None:
        raise NotImplementedError(
            "ExecutionTraceObserver: execution traces (Chakra) are not written. For operations with shapes, dtypes and "
            "stacks use profile(record_shapes=True, with_stack=True) and export_chrome_trace(); for the graph "
            "rgrad.autograd.graph.draw()"
        )


def _records(action: ProfilerAction | None) -> bool:
    return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(_KinetoProfile):
    """Record a block, or the steps of it that a schedule picks.

    A training loop that traces steps 2 and 3, and keeps a trace of them::

        with rgrad.profiler.profile(
            schedule=rgrad.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
            on_trace_ready=rgrad.profiler.tensorboard_trace_handler("log"),
        ) as prof:
            for batch in batches:
                train(batch)
                prof.step()

    Events are discarded when a new cycle begins, unless ``acc_events`` is set.

    Args:
        activities: What to record, of `ProfilerActivity`. Operations are events of the host and always recorded. Any
            other member than ``CPU`` adds what devices of wgpu run; the default does. Each dispatch then has a pass
            of its own, and the end of a recording waits for the device.
        schedule: From the number of a step to a `ProfilerAction`; by default everything is recorded.
        on_trace_ready: Called with the profiler whenever a trace is complete.
        record_shapes: Record shapes and dtypes of the tensors that operations get.
        profile_memory: Record how the bytes that tensors hold change.
        with_stack: Record the Python frames that led to each operation.
        with_flops: Count floating point operations, where a formula is known.
        with_modules: Record the forward of each module of `nn` as a range ``nn.Module: Linear_0``.
        experimental_config: Accepted.
        execution_trace_observer: An object whose ``start``, ``stop`` and ``cleanup`` are called with the recording.
        acc_events: Keep events over cycles.
        use_cuda: Accepted.
        custom_trace_id_callback: Gives the identifier of each trace.
        post_processing_timeout_s: Accepted.

    Raises:
        AssertionError: No activity, or results are asked for before anything was recorded.
        RuntimeError: It is started inside of another profiler's block on the same thread.
        TypeError: There is something else among the activities.
        ValueError: An activity is there twice.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.on_trace_ready = on_trace_ready
        # Steps are events only where they have a schedule.
        self.record_steps = schedule is not None
        self.schedule = schedule or _always
        self.step_num = 0
        self.current_action = self.schedule(0)
        if self.current_action == ProfilerAction.DEVICE_STOPPED:
            raise ValueError("ProfilerAction.DEVICE_STOPPED must not be returned by a user-provided schedule")
        self.step_rec_fn: _autograd_profiler.record_function | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    # ---- the parts of a cycle ----------------------------------------------------------------------------------------

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _change(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Does what lies between two steps; ``after`` is None at the end."""
        recorded, goes_on = _records(before), _records(after)
        saved = before == ProfilerAction.RECORD_AND_SAVE
        if before == ProfilerAction.NONE:
            if after in (ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
                self.prepare_trace()
            if goes_on:
                self.start_trace()
        elif before == ProfilerAction.WARMUP:
            if after == ProfilerAction.NONE:
                warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
            if after != ProfilerAction.WARMUP:
                self.start_trace()
            if after is None or after == ProfilerAction.NONE:
                self.stop_trace()
        elif recorded and (saved or not goes_on):
            if not saved and after is not None:
                warn(f"Incorrect schedule: RECORD followed by {after.name}", stacklevel=3)
            self.stop_trace()
            if saved or after is None:
                self._trace_ready()
            if saved and after is not None and after != ProfilerAction.NONE:
                self.prepare_trace()
            if saved and goes_on:
                self.start_trace()

    # ---- for users ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins with the present step, as entering a block does."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._name_step()

    def stop(self) -> None:
        """Ends, as leaving the block does: a step that was recorded is complete, and `on_trace_ready` is called.

        Raises:
            AssertionError: It was not started.
        """
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        after = self.schedule(self.step_num + 1)
        if after == ProfilerAction.DEVICE_STOPPED:
            raise ValueError("ProfilerAction.DEVICE_STOPPED must not be returned by a user-provided schedule")
        before, self.current_action = self.current_action, after
        self.step_num += 1
        self._change(before, after)
        self._name_step()

    def _name_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = _autograd_profiler.record_function(f"{_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets what gives the identifier of the next traces."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The identifier of the present trace; None before the first one."""
        return None if self.profiler is None else self.profiler.trace_id
