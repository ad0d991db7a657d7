"""Makes the events of a profile from what the native module recorded.

The recorder notes every call of a function, every operation that is dispatched, every node of a backward pass, and
every range of the user, each with the event around it. Here calls that are no operations of their own are left out, a
call and the one operation that it dispatched become one event, and names become PyTorch's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from .. import _core
from ._flops import PRODUCTS, RECURRENT, operation_flops
from ._profiler_kinds import DeviceType
from ._profiler_trace import DEVICE_QUEUE, MEMORY_EVENT_NAME, collection_paused
from .profiler_util import FunctionEvent

#: The kinds of events, as the native module numbers them.
FUNCTION, OPERATION, EVALUATION, BACKWARD, USER, PROGRAM, CUSTOM = range(7)

#: PyTorch's scopes of the kinds that are not 0.
_SCOPES = {BACKWARD: 1, USER: 7}

#: Functions that compute or allocate without dispatching an operation. Other calls are events only if something is
#: dispatched inside of them, so that ``x.size()`` is none.
WITHOUT_DISPATCH = frozenset(
    {
        "arange",
        "as_tensor",
        "asarray",
        "clone",
        "contiguous",
        "cpu",
        "empty",
        "empty_like",
        "empty_strided",
        "eye",
        "from_numpy",
        "full",
        "full_like",
        "item",
        "linspace",
        "logspace",
        "new_empty",
        "new_full",
        "new_ones",
        "new_tensor",
        "new_zeros",
        "nonzero",
        "numpy",
        "ones",
        "ones_like",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
        "tensor",
        "to",
        "tolist",
        "tril_indices",
        "triu_indices",
        "unique",
        "unique_consecutive",
        "zeros",
        "zeros_like",
    }
)
#: Functions around others that PyTorch's profiler does not show.
HIDDEN = frozenset({"backward", "register_hook", "requires_grad_", "retain_grad", "set_"})

#: Names of PyTorch's operations where they are not those of the functions or nodes here.
PYTORCH_NAMES = {
    "cross_entropy": "cross_entropy_loss",
    "nll_loss": "nll_loss_nd",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
    "concat": "cat",
    "concatenate": "cat",
    "float": "to",
    "double": "to",
    "half": "to",
    "bfloat16": "to",
    "int": "to",
    "long": "to",
    "bool": "to",
    "T": "numpy_T",
    "fill": "fill_",
    "copy": "copy_",
    # Rows that are one operation there.
    "add_scaled": "add",
    "clamp_tensor": "clamp",
    "div_floor": "div",
    "div_trunc": "div",
    "gelu_tanh": "gelu",
    "pow_scalar": "pow",
    "round_to": "round",
    "sub_scaled": "sub",
}

#: PyTorch's names of operations inside of functions of the same name here.
_INNER_NAMES = {
    "aten::batch_norm": "aten::native_batch_norm",
    "aten::group_norm": "aten::native_group_norm",
    "aten::layer_norm": "aten::native_layer_norm",
    "aten::max_pool2d": "aten::max_pool2d_with_indices",
    "aten::max_pool3d": "aten::max_pool3d_with_indices",
}

_NODE_NAME = re.compile(r"Backward\d*$")
_UPPER = re.compile(r"(?<!^)(?=[A-Z])")


@cache
def _operation_name(name: str) -> str:
    """``aten::as_strided`` for a view, which is recorded under its node's name, and for an operation or a function."""
    own = _NODE_NAME.sub("", name)
    if own != name:
        own = _UPPER.sub("_", own).lower()
    return "aten::" + PYTORCH_NAMES.get(own, own)


@dataclass
class Recording:
    """What one profiler recorded."""

    raw: list[tuple[Any, ...]]
    #: Nanoseconds of the recorder's clock.
    start: int
    end: int
    #: Bytes held on the CPU and on devices when it started and when it ended.
    held_before: tuple[int, int]
    held_after: tuple[int, int]
    shapes: bool = False
    memory: bool = False
    flops: bool = False
    device_runs: list[DeviceRun] = field(default_factory=list)

    @property
    def device_clock(self) -> str | None:
        """Whose times those of devices are, ``"device"`` or ``"host"``; None if no device was used."""
        if any(not run.by_host for run in self.device_runs):
            return "device"
        return "host" if self.device_runs or self.held_before[1] or self.held_after[1] else None


class DeviceRun(NamedTuple):
    """What a device ran: a dispatch, or a whole batch of them where the device takes no times.

    The event of the operation that asked for it has a number (None for a batch); times are nanoseconds of the
    recorder's clock.
    """

    event: int | None
    name: str
    start: int
    end: int
    by_host: bool


@dataclass
class _Found:
    """An event of the recorder, with the events inside of it."""

    kind: int
    name: str
    trace_name: str
    start: int
    end: int
    thread: int
    parent: _Found | None
    sequence: int
    site: int
    inputs: list[tuple[list[int], str]] | None
    outputs: list[list[int]] | None
    flops: int
    memory: tuple[int, int, int, int]
    steps: list[tuple[str, int]] | None
    kernels: list[str]
    function: str
    #: The inputs of the operation that was dispatched; `inputs` may have the arguments of the function around it.
    operands: list[tuple[list[int], str]] | None
    children: list[_Found] = field(default_factory=list)
    dropped: bool = False

    def join(self) -> None:
        """Takes the only event inside of it, which has the same name, into itself."""
        (child,) = self.children
        self.inputs = child.inputs if self.inputs is None else self.inputs
        self.outputs = child.outputs if self.outputs is None else self.outputs
        self.flops = self.flops or child.flops
        self.operands = child.operands
        self.kernels += child.kernels
        self.sequence = child.sequence if self.sequence < 0 else self.sequence
        self.site = self.site or child.site
        if self.kind == FUNCTION:
            self.kind, self.function = child.kind, child.function
        self.children, child.dropped = child.children, True


def _found(raw: Iterable[tuple[Any, ...]], until: int) -> list[_Found]:
    """The events of the recorder as objects."""
    found: list[_Found] = []
    for kind, name, start, end, thread, parent, sequence, site, inputs, outputs, flops, memory, steps, kernels in raw:
        shown = name
        if kind in (FUNCTION, OPERATION):
            shown = _operation_name(name)
        elif kind == PROGRAM and steps:
            shown = f"rgrad::program({', '.join(_operation_name(step)[6:] for step, _ in steps)})"
        elif kind == USER and name.startswith("ProfilerStep#"):
            shown = "ProfilerStep*"
        trace_name = name if kind == USER else shown
        around = None if parent is None else found[parent]
        event = _Found(
            kind,
            shown,
            trace_name,
            start,
            end or until,
            thread,
            around,
            sequence,
            site,
            inputs,
            outputs,
            flops,
            memory,
            steps,
            kernels,
            name,
            inputs if kind == OPERATION else None,
        )
        if around is not None:
            around.children.append(event)
        found.append(event)
    return found


def _kept(found: list[_Found]) -> list[_Found]:
    """Those events that are shown."""
    # From the last one on: what is inside of an event comes after it, and is settled before it.
    for event in reversed(found):
        # What is inside of an event that is left out is inside of the one around it.
        event.children = [inner for c in event.children for inner in (c.children if c.dropped else (c,))]
        if event.kind == FUNCTION:
            empty = not event.children and event.function not in WITHOUT_DISPATCH
            event.dropped = empty or event.function in HIDDEN
        if len(event.children) == 1 and event.children[0].name == event.name and event.kind in (FUNCTION, OPERATION):
            event.join()
        elif event.kind == FUNCTION:
            # One of several parts. Under its own name it would count twice.
            for part in event.children:
                if part.name == event.name and part.kind == OPERATION:
                    part.name = part.trace_name = _INNER_NAMES.get(part.name, "aten::_" + part.name[6:])
    kept = [event for event in found if not event.dropped]
    for event in kept:
        event.parent = None
    for event in kept:
        for child in event.children:
            child.parent = event
    return kept


@cache
def stack(site: int) -> tuple[str, ...]:
    """The frames that lead to a call site, innermost first."""
    return _core._profiler_stack(site) if site else ()


def line(site: int) -> str:
    """The innermost frame of a call site."""
    return next(iter(stack(site)), "")


@dataclass
class Counted:
    """A dispatched operation, or the backward of attention, for counters of floating point operations."""

    name: str
    inputs: list[list[int]]
    outputs: list[list[int]]
    flops: int
    #: Nanoseconds of the recorder's clock.
    start: int
    #: The number of the node that it made, or inside of whose backward it ran; -1 for none.
    sequence: int
    is_backward: bool


def operations(recording: Recording) -> list[Counted]:
    """The operations of a recording that was made with shapes, in order."""
    result: list[Counted] = []
    by_sequence: dict[int, Counted] = {}
    with_kernel: dict[int, Counted] = {}
    running: dict[int, int] = {}
    for at, raw in enumerate(recording.raw):
        kind, name, start, _, _, parent, sequence, _, inputs, outputs, flops, *_ = raw
        inside = running.get(parent, -1) if parent is not None else -1
        running[at] = sequence if kind == BACKWARD else inside
        if kind == OPERATION:
            shapes = [shape for shape, _ in inputs or ()]
            back = inside >= 0
            made = Counted(name, shapes, outputs or [], flops, start, inside if back else sequence, back)
            result.append(made)
            if not back:
                by_sequence.setdefault(sequence, made)
            elif name in PRODUCTS and inside in with_kernel:
                # Composed of operations, which are counted, because gradients of gradients are wanted.
                result.remove(with_kernel.pop(inside))
        elif kind == BACKWARD and sequence in by_sequence:
            of = by_sequence[sequence]
            if of.name in RECURRENT or of.name.startswith("scaled_dot_product_attention"):
                # Its kernel is no operation of its own.
                by_kernel = Counted(of.name + "_backward", of.inputs, of.outputs, 0, start, sequence, True)
                with_kernel[sequence] = by_kernel
                result.append(by_kernel)
    return result


@collection_paused()
def events(recording: Recording, use_device: str | None) -> list[FunctionEvent]:
    """The events of a recording, in the order in which they began."""
    found_events = _found(recording.raw, recording.end)
    kept = _kept(found_events)
    made: dict[int, FunctionEvent] = {}
    forward: dict[int, _Found] = {}
    for found in kept:
        if found.kind not in (EVALUATION, BACKWARD) and found.sequence >= 0:
            forward.setdefault(found.sequence, found)
    result: list[FunctionEvent] = []
    nodes: dict[int, int] = {}
    for found in kept:
        is_node = found.kind in (EVALUATION, BACKWARD)
        origin = forward.get(found.sequence) if is_node else None
        # The sequence number of the node inside of which it runs.
        inside = nodes.get(id(found.parent), -1) if found.parent is not None else -1
        nodes[id(found)] = found.sequence if is_node else inside
        frames = stack(found.site)
        if nodes[id(found)] >= 0:
            by = forward.get(nodes[id(found)])
            frames = stack(by.site) if by is not None else frames
        event = FunctionEvent(
            id=len(result) + 1,
            name=found.name,
            trace_name=found.trace_name,
            thread=found.thread,
            start_us=(found.start - recording.start) / 1e3,
            end_us=(found.end - recording.start) / 1e3,
            fwd_thread=(found.thread if origin is None else origin.thread) if is_node else 0,
            input_shapes=[shape for shape, _ in found.inputs or ()],
            input_dtypes=[dtype for _, dtype in found.inputs or ()],
            stack=list(frames),
            scope=_SCOPES.get(found.kind, 0),
            overload_name="",
            use_device=use_device,
            cpu_memory_usage=found.memory[2] - found.memory[0],
            device_memory_usage=found.memory[3] - found.memory[1],
            sequence_nr=found.sequence,
            is_user_annotation=found.kind == USER,
        )
        event.output_shapes = found.outputs or []
        # Once each, in the order in which they ran.
        event.kernel = ", ".join(dict.fromkeys(found.kernels))
        if recording.flops and found.kind == OPERATION:
            operands = [shape for shape, _ in found.operands or ()]
            event.flops = operation_flops(found.function, operands, event.output_shapes, found.flops)
        if found.steps:
            event.operations = [(_operation_name(name), line(site)) for name, site in found.steps]
        around = made.get(id(found.parent)) if found.parent is not None else None
        if around is not None and around.thread == event.thread:
            event.set_cpu_parent(around)
            around.append_cpu_child(event)
        made[id(found)] = event
        result.append(event)
    if recording.memory:
        result = _with_memory_events(recording, kept, result, use_device)
    if recording.device_runs:
        result += _device_events(recording, found_events, made, len(result), use_device)
        result.sort(key=lambda event: event.time_range.start)
    return result


def _device_events(
    recording: Recording, found: list[_Found], made: dict[int, FunctionEvent], number: int, use_device: str | None
) -> list[FunctionEvent]:
    """An event for everything that a device timed; the operation that asked for it has it as a kernel."""
    result = []
    for run in recording.device_runs:
        if run.by_host:
            continue
        number += 1
        start, end = ((at - recording.start) / 1e3 for at in (run.start, run.end))
        around = found[run.event] if run.event is not None else None
        while around is not None and around.dropped:
            around = around.parent
        launched_by = made[id(around)] if around is not None else None
        # The shader of a deferred program has the name of its first operation.
        name = launched_by.name if launched_by is not None and launched_by.operations else run.name
        event = FunctionEvent(
            number,
            name.removeprefix("rgrad::"),
            DEVICE_QUEUE,
            start,
            end,
            overload_name="",
            use_device=use_device,
            device_type=DeviceType.PrivateUse1,
            fwd_thread=0,
        )
        if launched_by is not None:
            event.launched_by = launched_by
            launched_by.append_kernel(event.name, 0, event.time_range.elapsed_us())
        result.append(event)
    return result


def _with_memory_events(
    recording: Recording, kept: list[_Found], events: list[FunctionEvent], use_device: str | None
) -> list[FunctionEvent]:
    """Adds an event for each change of memory between two events that are inside of no other."""
    result: list[FunctionEvent] = []
    held = recording.held_before
    top = [(f.start, f.memory[:2], f.memory[2:], f.thread) for f in kept if f.parent is None]
    top.append((recording.end, recording.held_after, recording.held_after, top[-1][3] if top else 1))
    changes: dict[int, list[FunctionEvent]] = defaultdict(list)
    number = len(events)
    for start, before, after, thread in top:
        if before != held:
            number += 1
            at = (start - recording.start) / 1e3
            changes[start].append(
                FunctionEvent(
                    number,
                    MEMORY_EVENT_NAME,
                    thread,
                    at,
                    at,
                    overload_name="",
                    fwd_thread=thread,
                    use_device=use_device,
                    cpu_memory_usage=before[0] - held[0],
                    device_memory_usage=before[1] - held[1],
                )
            )
        held = after
    for found, event in zip(kept, events, strict=True):
        if found.parent is None:
            result += changes.pop(found.start, [])
        result.append(event)
    return result + [event for left in changes.values() for event in left]
