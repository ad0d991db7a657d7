"""What a profiler returns: events, their averages, and lists of both.

Names and attributes are PyTorch's. Times are microseconds, memory is bytes. The table is in ``_profiler_table``; how
events are made from what the native module records is in ``_profiler_events``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from os import PathLike
from typing import Any, Self, cast
from warnings import warn

from .._runtime.whole_files import text_written_whole
from ._profiler_kinds import DeviceType, Interval, Kernel
from ._profiler_table import _format_time, attribute
from ._profiler_table import table as _table

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
]


class FormattedTimesMixin:
    """Times per call and as text, for classes that have the totals and ``count``.

    Example:
        >>> average = rgrad.autograd.profiler_util.FunctionEventAvg()
        >>> average.cpu_time_total, average.count = 3000.0, 2
        >>> average.cpu_time, average.cpu_time_str
        (1500.0, '1.500ms')
    """

    count: int
    # Averages store what single events compute, so these may be attributes or properties.
    cpu_time_total: Any
    device_time_total: Any
    self_cpu_time_total: Any
    self_device_time_total: Any

    def _renamed(self, old: str, new: str) -> float:
        warn(f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=3)
        return cast(float, getattr(self, new))

    @property
    def cpu_time(self) -> float:
        """Mean microseconds per call, with what was called inside."""
        return 0.0 if self.count == 0 else float(self.cpu_time_total / self.count)

    @property
    def device_time(self) -> float:
        """Mean microseconds per call on a device."""
        return 0.0 if self.count == 0 else float(self.device_time_total / self.count)

    @property
    def cuda_time(self) -> float:
        """Old name of `device_time`."""
        return self._renamed("cuda_time", "device_time")

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return _format_time(self.self_cpu_time_total)

    @property
    def device_time_str(self) -> str:
        """`device_time` as text."""
        return _format_time(self.device_time)

    @property
    def device_time_total_str(self) -> str:
        """`device_time_total` as text."""
        return _format_time(self.device_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """`self_device_time_total` as text."""
        return _format_time(self.self_device_time_total)


class FunctionEvent(FormattedTimesMixin):
    """One event: an operation, a node's backward, a deferred program, or a range that the user has named.

    Besides its parameters it has ``cpu_children`` (the events directly inside of it), ``cpu_parent`` (the one around
    it), ``time_range``, ``count`` (1), and, beyond PyTorch's: ``output_shapes``, the shapes of the results of an
    operation, ``operations``, for a deferred program its operations in order, each a pair of name and line,
    ``launched_by``, for what a device ran the operation that asked for it, and ``kernel``, the algorithm that computed
    it on the CPU where there are several (``"conv.winograd"``; several with commas between them, else empty).

    Args:
        id: A number, unique in one profile.
        name: ``aten::mul`` for an operation, the class's name for a custom Function, the node's name in backward.
        thread: The thread on which it ran.
        start_us: When it began, in microseconds since the profiler started.
        end_us: When it ended.
        overload_name: Empty in events that were recorded: operations have no overloads here.
        fwd_thread: For a node's backward, the thread on which the node was made.
        input_shapes: With ``record_shapes``, the shape of each argument; an empty list for those that are no tensors.
        stack: With ``with_stack``, the frames that led to it, innermost first, each ``file(line): function``. Inside of
            a node's backward they are those of the operation that made the node.
        scope: 0 for operations, 1 for a node's backward, 7 for the user's ranges.
        use_device: The kind of device whose memory tables show.
        cpu_memory_usage: With ``profile_memory``, the bytes that tensors hold after it minus those before.
        device_memory_usage: The same for the device.
        is_async: False.
        is_remote: False.
        sequence_nr: The number of the node that an operation made or that a backward runs: equal numbers belong
            together. -1 where there is none.
        node_id: -1.
        device_type: ``DeviceType.CPU``, or ``DeviceType.PrivateUse1`` for what a device of wgpu ran.
        device_index: 0.
        device_resource_id: The thread, or the queue of the device.
        is_legacy: False.
        flops: With ``with_flops``, the floating point operations where a formula is known, else 0.
        trace_name: The name in traces; steps of a schedule have their number there.
        concrete_inputs: Empty.
        kwinputs: Empty.
        is_user_annotation: Whether it is a range of `record_function`.
        input_dtypes: The dtype of each argument; empty for those that are no tensors.

    Example:
        >>> event = rgrad.autograd.profiler_util.FunctionEvent(1, "aten::mul", 1, 10.0, 12.5)
        >>> event.key, event.cpu_time_total, event.self_cpu_time_total
        ('aten::mul', 2.5, 2.5)
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[list[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        input_dtypes: list[str] | None = None,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes: Any = [] if input_shapes is None else input_shapes
        self.input_dtypes: list[str] = [] if input_dtypes is None else input_dtypes
        self.output_shapes: list[list[int]] = []
        self.kernel = ""
        self.concrete_inputs: list[Any] = [] if concrete_inputs is None else concrete_inputs
        self.kwinputs: dict[str, Any] = {} if kwinputs is None else kwinputs
        self.stack: list[str] = [] if stack is None else stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops: int = 0 if flops is None else flops
        self.is_user_annotation = is_user_annotation
        self.operations: list[tuple[str, str]] = []
        self.launched_by: FunctionEvent | None = None
        self.self_cpu_percent: str | int = -1
        self.total_cpu_percent: str | int = -1
        self.total_device_percent: str | int = -1

    @property
    def key(self) -> str:
        """The name, by which averages are made."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from start to end; 0 for what a device ran."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without those of the events inside."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Microseconds that devices took for what it launched, or, for what a device ran, from start to end."""
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        return float(sum(k.duration for k in self.kernels) + sum(c.device_time_total for c in self.cpu_children))

    @property
    def self_device_time_total(self) -> float:
        """As `device_time_total`, without the events inside."""
        return self.device_time_total - sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes without those of the events inside."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes on devices without those of the events inside."""
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children)

    @property
    def cuda_time_total(self) -> float:
        """Old name of `device_time_total`."""
        return self._renamed("cuda_time_total", "device_time_total")

    @property
    def self_cuda_time_total(self) -> float:
        """Old name of `self_device_time_total`."""
        return self._renamed("self_cuda_time_total", "self_device_time_total")

    @property
    def self_cuda_memory_usage(self) -> float:
        """Old name of `self_device_memory_usage`."""
        return self._renamed("self_cuda_memory_usage", "self_device_memory_usage")

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds the kernel ``name`` that ran for ``duration`` microseconds on ``device``."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds ``child``, an event that ran directly inside of this one."""
        if not isinstance(child, FunctionEvent):
            raise AssertionError("Expected child to be a FunctionEvent")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets ``parent``, the event around this one."""
        if not isinstance(parent, FunctionEvent):
            raise AssertionError("Expected parent to be a FunctionEvent")
        self.cpu_parent = parent

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


#: Attributes that an average takes from the first event of its group.
_OF_FIRST = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
)
#: Attributes that it sums.
_SUMMED = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
    "flops",
)


class FunctionEventAvg(FormattedTimesMixin):
    """The sums over the events of one key: count, times in microseconds, bytes, floating point operations.

    ``cpu_time`` and ``device_time`` are means per call; other attributes are those of the group's first event.

    Example:
        >>> util = rgrad.autograd.profiler_util
        >>> average = util.FunctionEventAvg()
        >>> for end in (1.0, 3.0):
        ...     average += util.FunctionEvent(1, "aten::mul", 1, 0.0, end)
        >>> average.key, average.count, average.cpu_time
        ('aten::mul', 2, 2.0)
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0
        self.self_cpu_percent: str | int = -1
        self.total_cpu_percent: str | int = -1
        self.total_device_percent: str | int = -1

    def add(self, other: FunctionEvent | FunctionEventAvg) -> Self:
        """Adds ``other``, an event or the events of another average, of the same key.

        Raises:
            AssertionError: It is something else, or has another key.
        """
        if not isinstance(other, FunctionEvent | FunctionEventAvg):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            for name in _OF_FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> Self:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


#: Characters that separate frames in a file of stacks.
_NO_SEPARATORS = str.maketrans(" ;\t\n", "____")


class EventList(list[Any]):
    """A list of `FunctionEvent` or of `FunctionEventAvg`, with a table, averages and exports.

    Args:
        events: The events.
        use_device: The kind of device whose memory the table shows.
        profile_memory: Whether the table shows memory.
        with_flops: Whether the table shows floating point operations.
        device_clock: Whose times those of devices are, ``"device"`` or ``"host"``, if a device was used.

    Example:
        >>> x = rgrad.ones(3)
        >>> with rgrad.profiler.profile() as prof:
        ...     y = x * x + x
        >>> [event.name for event in prof.events()]
        ['aten::mul', 'aten::add']
    """

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        device_clock: str | None = None,
    ) -> None:
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._device_clock = device_clock

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times in microseconds: the time during which some event ran."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        Args:
            sort_by: The attribute to sort by, largest first: ``self_cpu_time_total``, ``cpu_time_total``, ``cpu_time``,
                ``cpu_memory_usage``, ``self_cpu_memory_usage``, ``count``, and the same with ``device`` or ``cuda`` in
                the place of ``cpu``. By default they stay in order.
            row_limit: The most rows; -1 for all.
            max_src_column_width: The most characters of the column of source lines; None for no limit.
            max_name_column_width: As before, for names.
            max_shapes_column_width: As before, for shapes.
            header: A line above the table.
            top_level_events_only: Leaves out events inside of others.
            time_unit: ``"s"``, ``"ms"`` or ``"us"`` for all times; by default each has the one that fits.

        Returns:
            The text; empty without events.

        Raises:
            AttributeError: There is no attribute of the name to sort by.
        """
        return _table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Writes a trace of the events to ``path``, for Perfetto; compressed if that ends in ``.gz``."""
        from ._profiler_trace import write

        write(path, self)

    def svg(self) -> str:
        """The single events over time, as a picture (rgrad's own): each below the one around it, by thread and device.

        Events that are narrower than half a pixel are left out where another one is.

        Returns:
            SVG text.

        Raises:
            TypeError: This is a list of averages, which have no time.

        Example:
            >>> with rgrad.profiler.profile() as prof:
            ...     y = rgrad.ones(3) * 2
            >>> prof.events().svg().startswith("<svg")
            True
        """
        from ._profiler_picture import picture

        if any(not isinstance(event, FunctionEvent) for event in self):
            raise TypeError("svg: averages have no place in time; take the single events: profile.events().svg()")
        return picture(self)

    def _repr_svg_(self) -> str | None:
        """What a notebook shows: the picture of single events; averages are shown as text."""
        return self.svg() if self and all(isinstance(event, FunctionEvent) for event in self) else None

    def supported_export_stacks_metrics(self) -> list[str]:
        """The names that `export_stacks` takes."""
        return [
            "self_cpu_time_total",
            "self_cuda_time_total",
            "self_xpu_time_total",
            "self_privateuse1_time_total",
        ]

    def export_stacks(self, path: str | PathLike[str], metric: str) -> None:
        """Writes a line for each event with a stack: its frames, outermost first, and its microseconds.

        This is the input of programs that draw flame graphs.

        Args:
            path: The file.
            metric: Which time.

        Raises:
            ValueError: The metric is none of `supported_export_stacks_metrics`.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        # A name of a file that is no UTF-8 has characters that cannot be written.
        with text_written_whole(path, errors="replace") as out:
            for event in self:
                value = int(getattr(event, attribute(metric)))
                if event.stack and value > 0:
                    frames = ";".join(frame.translate(_NO_SEPARATORS) for frame in reversed(event.stack))
                    out.write(f"{frames} {value}\n")

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of the events of each name.

        Args:
            group_by_input_shapes: Events of different input shapes are not summed (needs ``record_shapes``).
            group_by_stack_n: Nor are events of which the innermost ``n`` frames differ (needs ``with_stack``).
            group_by_overload_name: Has no effect: operations have no overloads here.

        Returns:
            A list of `FunctionEventAvg`, in the order in which the names occurred.
        """
        groups: dict[tuple[str, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, str(event.device_type), str(event.is_user_annotation)]
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += event.stack[:group_by_stack_n]
            groups[tuple(key)].add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            device_clock=self._device_clock,
        )

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events, under the key ``Total``."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key if total.count else None
            total += event
        total.key = "Total"
        return total
