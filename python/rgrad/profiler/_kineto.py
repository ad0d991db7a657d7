"""The parts of `profile` that know neither steps nor schedules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from warnings import warn

from ..autograd import profiler as _autograd_profiler
from ..autograd._profiler_kinds import ProfilerActivity
from ..autograd.profiler_util import EventList

if TYPE_CHECKING:
    from ._module_ranges import ModuleRanges


def supported_activities() -> set[ProfilerActivity]:
    """What a profiler can record: events of the host, and what devices of wgpu run (``PrivateUse1``)."""
    return {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1}


def _parse_activities(activities: Iterable[Any]) -> set[ProfilerActivity]:
    found: set[ProfilerActivity] = set()
    for item in activities:
        if not isinstance(item, ProfilerActivity | dict):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for activity in item if isinstance(item, dict) else (item,):
            if activity in found:
                raise ValueError(f"Activity {activity} specified more than once")
            found.add(activity)
    return found


class _KinetoProfile:
    """Record from `start` to `stop`, for schedulers of others' own; see :class:`profile` for the parameters."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else _parse_activities(list(activities))
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: _autograd_profiler.profile | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._modules: ModuleRanges | None = None

    def start(self) -> None:
        """Begins to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Ends the recording.

        Raises:
            AssertionError: It was not started.
        """
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Makes ready to record.

        Raises:
            RuntimeError: It records already.
        """
        if self.profiler is not None and self.profiler.is_recording:
            raise RuntimeError("profile: it records already; stop it before it is started again")
        if self.profiler is not None and not self.acc_events:
            _warn_that_events_go()
        if self.profiler is None or not self.acc_events:
            self.profiler = _autograd_profiler.profile(
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
            )
        self.profiler._with_device = bool(self.activities - {ProfilerActivity.CPU})
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Begins to record."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        self.profiler._start_trace()
        if self.with_modules:
            from ._module_ranges import ModuleRanges

            self._modules = ModuleRanges()
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self._metadata[name] = "1"
        self._metadata.update(self.preset_metadata)

    def stop_trace(self) -> None:
        """Ends the recording."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self._modules is not None:
            self._modules.stop()
            self._modules = None
        self._made("stopping trace").__exit__(None, None, None)

    def _made(self, to_do: str) -> _autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {to_do}")
        return self.profiler

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes a trace of the last cycle; see :meth:`rgrad.autograd.profiler.profile.export_chrome_trace`."""
        self._made("exporting chrome trace").export_chrome_trace(path, self._metadata, use_python_export)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times; see :meth:`rgrad.autograd.profiler_util.EventList.export_stacks`."""
        self._made("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes how many bytes tensors held over time, as JSON: a list of microseconds and a list of bytes.

        Args:
            path: The file; compressed if it ends in ``.gz``. Pages (``.html``) are not written.
            device: ``"cpu"`` (the default) or ``"wgpu"``.

        Raises:
            ValueError: ``record_shapes``, ``profile_memory`` or ``with_stack`` is not set, or there is no such device.
        """
        from ._memory_timeline import write

        missing = [f"{n}=True" for n in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, n)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        write(path, self._made("exporting a memory timeline"), device)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stops to record, or goes on; see :meth:`rgrad.autograd.profiler.profile.toggle_collection_dynamic`."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums of the events of each name; see :meth:`rgrad.autograd.profiler_util.EventList.key_averages`."""
        made = self._made("getting key averages")
        return made.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def events(self) -> EventList:
        """The single events."""
        return self._made("accessing events").function_events

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON text to the trace."""
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON text to every trace that will be started."""
        self.preset_metadata[key] = value


_warned = False


def _warn_that_events_go() -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(
            "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be "
            "reported. To keep events across cycles, set acc_events=True.",
            stacklevel=5,
        )
