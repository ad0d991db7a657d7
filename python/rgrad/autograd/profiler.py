"""The profiler of autograd: what ran, how long, inside of what.

Most code uses :mod:`rgrad.profiler`, which adds schedules and traces on disk. While a profiler is on, every operation
of its thread, every node of its backward passes and every range of `record_function` is recorded; while none is on,
operations are as fast as without this module.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from os import PathLike
from threading import get_ident
from types import TracebackType
from typing import Any, ClassVar, Self
from warnings import warn

from .. import _core
from ._enforce_unique import EnforceUnique
from ._profiler_events import DeviceRun, Recording
from ._profiler_kinds import ProfilerActivity
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]

#: What `_core._profiler_start` takes.
_SHAPES, _MEMORY, _STACK, _DEVICE = 1, 2, 4, 8
#: The threads on which a profiler records.
_recording: set[int] = set()
#: The threads of recorders that another thread has given up, which still record.
_abandoned: list[int] = []


def _held() -> tuple[int, int]:
    return _core.memory_allocated(), _core._wgpu_memory()[0]


class Recorder:
    """Records on this thread from ``start`` to ``stop``; several may do so at once.

    Args:
        shapes: Whether shapes of inputs and results are recorded.
        memory: Whether held bytes are.
        stack: Whether the Python frames that led to each event are.
        flops: Whether floating point operations will be asked for.
        device: Whether times of devices are; the end then waits for them.
    """

    def __init__(
        self,
        shapes: bool = False,
        memory: bool = False,
        stack: bool = False,
        flops: bool = False,
        device: bool = False,
    ) -> None:
        self.shapes, self.memory, self.stack, self.flops = shapes or flops, memory, stack, flops
        self.device = device
        self.first = 0
        self.began = 0
        self.held = (0, 0)
        self.thread: int | None = None

    def start(self) -> None:
        """Begins to record."""
        self.thread = get_ident()
        while self.thread in _abandoned:
            _abandoned.remove(self.thread)
            _core._profiler_stop()
        self.held = _held()
        options = _SHAPES * self.shapes + _MEMORY * self.memory + _STACK * self.stack + _DEVICE * self.device
        self.first, self.began = _core._profiler_start(options)

    def so_far(self) -> Recording:
        """What was recorded since it began.

        Raises:
            RuntimeError: Another thread has started it.
        """
        if self.thread != get_ident():
            raise RuntimeError("profiler: it records on the thread that started it; stop and read it there")
        raw, until = _core._profiler_events(self.first)
        recording = Recording(raw, self.began, until, self.held, _held(), self.shapes, self.memory, self.flops)
        if self.device:
            recording.device_runs = [DeviceRun(*run) for run in _core._profiler_device_runs(self.first)]
        return recording

    def stop(self) -> Recording:
        """Ends it and returns what was recorded.

        Raises:
            RuntimeError: Another thread has started it.
        """
        recording = self.so_far()
        self.thread = None
        _core._profiler_stop()
        return recording

    def abandon(self) -> None:
        """Ends it, and forgets what was recorded; on another thread it ends when the next one begins on its own."""
        thread, self.thread = self.thread, None
        if thread == get_ident():
            _core._profiler_stop()
        elif thread is not None:
            _abandoned.append(thread)


class profile:
    """Record what runs in this block on this thread, and in the backward passes that it calls.

    After the block, `key_averages` and `table` give the times by name, `function_events` the single events, and
    `export_chrome_trace` a trace for Perfetto::

        with rgrad.autograd.profiler.profile() as prof:
            loss = model(x).sum()
            loss.backward()
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))

    The result of a pointwise operation on a large tensor is computed later, together with
    others; what runs then is an event ``rgrad::program(...)`` that names its operations. Commands for a device are
    recorded by the operation and run when something is read. What the device runs is an event of its own with the
    device's times, if the adapter takes timestamps; if not, the reading event has that time.

    Args:
        enabled: False makes the block an ordinary one.
        use_cuda: Accepted; there are no CUDA devices.
        use_device: ``"wgpu"`` is found out by itself; other devices are not there.
        record_shapes: Record shapes and dtypes of the tensors that operations get.
        with_flops: Count floating point operations, where a formula is known. Implies ``record_shapes``.
        profile_memory: Record how the bytes that tensors hold change.
        with_stack: Record the Python frames that led to each operation.
        with_modules: Accepted; :class:`rgrad.profiler.profile` records modules.
        use_kineto: Accepted.
        use_cpu: False is refused: all events are events of the host.
        experimental_config: Accepted.
        acc_events: Keep events of earlier blocks of the same object.
        custom_trace_id_callback: Gives the identifier in the trace.
        post_processing_timeout_s: Accepted; no processing takes long.
        activity_filters: Accepted.

    Raises:
        AssertionError: The host's events are not wanted.
        RuntimeError: A block is entered twice, or inside of another profiler's on the same thread.
        ValueError: A time is negative.

    Example:
        >>> x = rgrad.ones(3, requires_grad=True)
        >>> with rgrad.autograd.profiler.profile() as prof:
        ...     (x * 2).sum().backward()
        >>> [event.name for event in prof.function_events if event.scope == 1]
        ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: object = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
    ) -> None:
        self.enabled = enabled
        self.use_cuda = use_cuda
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self.trace_id = ""
        self.kineto_activities = {ProfilerActivity.CPU}
        if use_cuda:
            warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if use_device == "cuda":
            warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
            use_device = None
        elif use_device not in (None, "wgpu"):
            warn(f"The {use_device} is not a valid device option.", stacklevel=2)
            use_device = None
        self.use_device = use_device
        if not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self._recorder: Recorder | None = None
        self._recording: Recording | None = None
        self._events: EventList | None = None
        self._earlier: list[FunctionEvent] = []
        # Between `toggle_collection_dynamic(False, ...)` and True.
        self._paused = False
        # `rgrad.profiler.profile` without an activity for devices switches it off.
        self._with_device = True

    def __enter__(self) -> Self:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self._start_trace()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if not self.enabled:
            return
        if self._paused:
            self._paused = False
            return
        if self._recorder is None:
            warn("profile: it is stopped, but it was not recording", stacklevel=2)
            return
        # On another thread this fails, and it goes on.
        recording = self._recorder.stop()
        self._recorder = None
        if self.acc_events and self._recording is not None:
            self._earlier = list(self.function_events)
        _recording.discard(get_ident())
        self._recording = recording
        if self._recording.device_clock is not None:
            self.use_device = "wgpu"
        self._events = None

    def __del__(self) -> None:
        # One that was started and lost must not keep the next one from starting.
        recorder = getattr(self, "_recorder", None)
        if recorder is not None:
            _recording.discard(recorder.thread)
            recorder.abandon()

    def default_trace_id(self) -> str:
        """A new identifier of 32 hexadecimal digits."""
        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self) -> str:
        """The identifier that ``custom_trace_id_callback`` gives, or a new one."""
        return self.default_trace_id() if self.custom_trace_id_callback is None else self.custom_trace_id_callback()

    def _prepare_trace(self) -> None:
        """The part of the start that a schedule does while it warms up."""
        self.entered = True
        self.trace_id = self.create_trace_id()

    def _start_trace(self) -> None:
        if get_ident() in _recording:
            raise RuntimeError(
                "profile: another profiler records on this thread; profilers cannot be nested. End the outer one "
                "first, or name the inner part with record_function()"
            )
        self._prepare_trace()
        self._recorder = Recorder(
            self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self._with_device
        )
        _recording.add(get_ident())
        self._recorder.start()

    @property
    def is_recording(self) -> bool:
        """Whether its block is running."""
        return self._recorder is not None

    @property
    def function_events(self) -> EventList:
        """The single events, in the order in which they began; none before the block has ended."""
        if self._events is None:
            from ._profiler_events import events

            made = [] if self._recording is None else events(self._recording, self.use_device)
            listed = EventList(
                [*made, *self._earlier],
                use_device=self.use_device,
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
                device_clock=None if self._recording is None else self._recording.device_clock,
            )
            if self._recording is None:
                return listed
            self._events = listed
        return self._events

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._recording is None else str(self.function_events)

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._recording is None else repr(self.function_events)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The single events as a table.

        Args:
            sort_by: The attribute to sort by, as in :meth:`EventList.table`.
            row_limit: The most rows; -1 for all.
            max_src_column_width: The most characters of the column of source lines; None for no limit.
            max_name_column_width: As before, for names.
            max_shapes_column_width: As before, for shapes.
            header: A line above the table.
            top_level_events_only: Leaves out events inside of others.

        Returns:
            The text; empty without events.
        """
        return self.function_events.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def export_chrome_trace(
        self, path: str | PathLike[str], metadata: dict[str, str] | None = None, use_python_export: bool = False
    ) -> None:
        """Writes a trace that Perfetto (ui.perfetto.dev) and ``chrome://tracing`` open.

        Args:
            path: The file; compressed if it ends in ``.gz``.
            metadata: Further entries of the trace, each a JSON text.
            use_python_export: Accepted.

        Raises:
            RuntimeError: The block has not ended.
        """
        from ._profiler_trace import write

        if self._recording is None or self._recorder is not None:
            raise RuntimeError("export_chrome_trace: the profiler has not been stopped; leave its block first")
        write(path, self.function_events, self._recording, self.trace_id, metadata or {})

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times for flame graphs; see :meth:`EventList.export_stacks`.

        Args:
            path: The file.
            metric: Which time.

        Raises:
            AssertionError: Stacks were not recorded.
            ValueError: There is no such metric.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stops to record, or goes on; events so far are kept.

        Args:
            enabled: Whether it goes on.
            activities: Without ``ProfilerActivity.CPU`` among them nothing changes.
        """
        if ProfilerActivity.CPU not in set(activities):
            return
        if not enabled and self._recorder is not None:
            self.__exit__()
            self._paused = True
        elif enabled and self._paused:
            self._paused = False
            self._earlier = list(self.function_events)
            self._start_trace()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums of the events of each name.

        Args:
            group_by_input_shape: Events of different input shapes are not summed.
            group_by_stack_n: Nor are events of which the innermost frames differ, so many of them.
            group_by_overload_name: Has no effect.

        Returns:
            A list of averages.
        """
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The microseconds during which some event ran."""
        return self.function_events.self_cpu_time_total


class record_function(ContextDecorator):
    """Name a part of a program in profiles, as a context or a decorator.

    Args:
        name: The name of the event.
        args: A text that stands behind the name in traces.

    Raises:
        RuntimeError: On entry, the name is no string, or the other text neither a string nor None.

    Example:
        >>> with rgrad.profiler.profile() as prof:
        ...     with rgrad.profiler.record_function("preparation"):
        ...         x = rgrad.ones(3)
        >>> [(event.name, event.cpu_parent is None) for event in prof.events()]
        [('preparation', True), ('aten::ones', False)]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.record: Any = None
        self._entered = False

    def _recreate_cm(self) -> record_function:
        # Calls of a decorated function may be inside each other.
        return record_function(self.name, self.args)

    def __enter__(self) -> Self:
        for what, value, wanted in (("name", self.name, "str"), ("args", self.args, "Optional[str]")):
            if not (isinstance(value, str) or (what == "args" and value is None)):
                raise RuntimeError(
                    f"record_function(): Expected a value of type '{wanted}' for argument '{what}' but instead found "
                    f"type '{type(value).__name__}'"
                )
        self.record = _core._profiler_range(self.name)
        self._entered = True
        return self

    def __exit__(self, *error: object) -> None:
        if not self._entered:
            raise AssertionError("Expected record to be set: record_function ends before it has begun")
        if self.record is not None:
            self.record.close()
            self.record = None


class _Emit:
    """A context that marks operations for another tool; there is no such tool here, so nothing is marked."""

    _name = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._name} annotation context manager is not reentrant")
        self.entered = True
        return self

    def __exit__(self, *error: object) -> None:
        return None


class emit_itt(_Emit):
    """Accepted: Intel's ITT interface is not used, so the block is an ordinary one.

    Args:
        enabled: False makes it a no-op.
        record_shapes: Accepted.

    Raises:
        RuntimeError: It is entered twice.

    Example:
        >>> with rgrad.autograd.profiler.emit_itt():
        ...     print(rgrad.ones(2).sum())
        tensor(2.)
    """

    _name = "ITT"


class emit_nvtx(_Emit):
    """Accepted: there are no NVIDIA tools to mark operations for, so the block is an ordinary one.

    Args:
        enabled: False makes it a no-op.
        record_shapes: Accepted.

    Raises:
        RuntimeError: It is entered twice.

    Example:
        >>> with rgrad.autograd.profiler.emit_nvtx():
        ...     print(rgrad.ones(2).sum())
        tensor(2.)
    """

    _name = "NVTX"


class KinetoStepTracker:
    """Counts the steps of profilers and optimizers: the largest count of any requester is the step.

    Example:
        >>> tracker = rgrad.autograd.profiler.KinetoStepTracker
        >>> tracker.increment_step("mine") - tracker.current_step()
        0
        >>> tracker.erase_step_count("mine")
        True
    """

    _current_step = 0
    _step_dict: ClassVar[dict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Sets the count of ``requester`` to the present step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets ``requester``; whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Adds one to the count of ``requester``, and returns the step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The step."""
        return cls._current_step
