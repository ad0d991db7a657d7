"""The profiler beside PyTorch's: columns, names, counts, shapes, sequence numbers, schedules, errors."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.benchmark")
pytest.importorskip("torch.utils.flop_counter")

import rgrad  # noqa: E402

LIBRARIES = [torch, rgrad]
RNG = np.random.default_rng(0)
A, B, C = (RNG.random(shape).astype("float32") for shape in ((3, 4), (4, 5), (3, 4)))
IMAGES, FILTERS = RNG.random((2, 3, 8, 8)).astype("float32"), RNG.random((4, 3, 3, 3)).astype("float32")

Work = Callable[[Any], Any]


def functions(lib: Any) -> Any:
    return lib.nn.functional


def leaf(lib: Any, array: Any) -> Any:
    return lib.tensor(array, requires_grad=True)


# Each calls operations whose outermost events have the same names in both.
FORWARD: dict[str, Work] = {
    "mul": lambda lib: lib.tensor(A) * lib.tensor(C),
    "mul number": lambda lib: lib.tensor(A) * 2,
    "add": lambda lib: lib.tensor(A) + lib.tensor(C),
    "sub": lambda lib: lib.tensor(A) - lib.tensor(C),
    "div": lambda lib: lib.tensor(A) / lib.tensor(C),
    "neg": lambda lib: -lib.tensor(A),
    "pow": lambda lib: lib.tensor(A) ** 2,
    "mul_": lambda lib: lib.tensor(A).mul_(2),
    "add_": lambda lib: lib.tensor(A).add_(lib.tensor(C)),
    "iadd": lambda lib: lib.tensor(A).__iadd__(1),
    "relu": lambda lib: lib.relu(lib.tensor(A)),
    "tanh": lambda lib: lib.tensor(A).tanh(),
    "sigmoid": lambda lib: lib.sigmoid(lib.tensor(A)),
    "exp": lambda lib: lib.exp(lib.tensor(A)),
    "sum": lambda lib: lib.tensor(A).sum(),
    "sum dim": lambda lib: lib.tensor(A).sum(1),
    "mean": lambda lib: lib.tensor(A).mean(),
    "argmax": lambda lib: lib.tensor(A).argmax(1),
    "matmul": lambda lib: lib.tensor(A) @ lib.tensor(B),
    "linear": lambda lib: functions(lib).linear(lib.tensor(A), lib.tensor(C), lib.tensor(A[:, 0])),
    "conv2d": lambda lib: functions(lib).conv2d(lib.tensor(IMAGES), lib.tensor(FILTERS)),
    "softmax": lambda lib: lib.softmax(lib.tensor(A), 1),
    "log_softmax": lambda lib: functions(lib).log_softmax(lib.tensor(A), 1),
    "cross entropy": lambda lib: functions(lib).cross_entropy(lib.tensor(A), lib.tensor([0, 1, 2])),
    "mse": lambda lib: functions(lib).mse_loss(lib.tensor(A), lib.tensor(C)),
    "cat": lambda lib: lib.cat([lib.tensor(A), lib.tensor(C)]),
    "stack": lambda lib: lib.stack([lib.tensor(A), lib.tensor(C)]),
    "t": lambda lib: lib.tensor(A).t(),
    "transpose": lambda lib: lib.tensor(A).transpose(0, 1),
    "view": lambda lib: lib.tensor(A).view(12),
    "reshape": lambda lib: lib.tensor(A).t().reshape(12),
    "unsqueeze": lambda lib: lib.tensor(A).unsqueeze(0),
    "permute": lambda lib: lib.tensor(A).permute(1, 0),
    "expand": lambda lib: lib.tensor(A[:1]).expand(3, 4),
    "split": lambda lib: lib.tensor(A).split(2),
    "chunk": lambda lib: lib.tensor(A).chunk(2),
    "item": lambda lib: lib.tensor(2.0).item(),
    "where": lambda lib: lib.where(lib.tensor(A) > 0.5, lib.tensor(A), lib.tensor(C)),
    "max": lambda lib: lib.tensor(A).max(),
    "clamp": lambda lib: lib.tensor(A).clamp(0, 0.5),
    "clone": lambda lib: lib.tensor(A).clone(),
    "zeros": lambda lib: lib.zeros(3),
    "ones": lambda lib: lib.ones(3),
    "randn": lambda lib: lib.randn(3),
    "arange": lambda lib: lib.arange(3),
    "eq": lambda lib: lib.tensor(A) == lib.tensor(C),
    "cumsum": lambda lib: lib.tensor(A).cumsum(0),
    "layer_norm": lambda lib: functions(lib).layer_norm(lib.tensor(A), (4,)),
    "max_pool2d": lambda lib: functions(lib).max_pool2d(lib.tensor(IMAGES), 2),
    "gelu": lambda lib: functions(lib).gelu(lib.tensor(A)),
    "bmm": lambda lib: lib.bmm(lib.tensor(A[None]), lib.tensor(B[None])),
}
# Helpers of PyTorch that stand around an operation of the same call, and creation of the operands.
PREPARATION = {
    "aten::broadcast_tensors",
    "aten::detach",
    "aten::detach_",
    "aten::empty",
    "aten::lift_fresh",
    "aten::tensor",
    "aten::to",
}


def recorded(lib: Any, work: Work, **options: Any) -> Any:
    work(lib)
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], **options) as prof:
        work(lib)
    return prof


def outermost(prof: Any) -> list[Any]:
    return [e for e in prof.events() if e.cpu_parent is None and e.name not in PREPARATION]


@pytest.mark.parametrize("name", FORWARD)
def test_names_of_outermost_events(name: str) -> None:
    theirs, ours = (outermost(recorded(lib, FORWARD[name])) for lib in LIBRARIES)
    assert [e.name for e in ours] == [e.name for e in theirs]


def test_names_are_those_of_operations() -> None:
    from rgrad.autograd._profiler_events import PYTORCH_NAMES

    assert [name for name in PYTORCH_NAMES.values() if not hasattr(torch.ops.aten, name)] == []


SAME_SHAPES = ["bmm", "div", "eq", "exp", "linear", "matmul", "mul", "mul number", "mul_"]
SAME_SHAPES += ["neg", "relu", "sigmoid", "t", "tanh", "transpose", "unsqueeze", "where"]


@pytest.mark.parametrize("name", SAME_SHAPES)
def test_input_shapes(name: str) -> None:
    theirs, ours = (outermost(recorded(lib, FORWARD[name], record_shapes=True)) for lib in LIBRARIES)
    assert [e.input_shapes for e in ours] == [e.input_shapes for e in theirs]


@pytest.mark.parametrize("name", ["mul", "mul number", "matmul", "bmm", "linear", "conv2d", "tanh", "add"])
def test_floating_point_operations(name: str) -> None:
    theirs, ours = (
        sum(e.flops or 0 for e in recorded(lib, FORWARD[name], with_flops=True).events()) for lib in LIBRARIES
    )
    assert ours == theirs


BACKWARD: dict[str, Work] = {
    "mul": lambda lib: leaf(lib, A) * leaf(lib, C),
    "chain": lambda lib: (leaf(lib, A) * 2).tanh().exp(),
    "matmul": lambda lib: leaf(lib, A) @ leaf(lib, B),
    "in place": lambda lib: (leaf(lib, A) * 2).add_(1),
    "views": lambda lib: leaf(lib, A).t().unsqueeze(0),
    "softmax": lambda lib: functions(lib).softmax(leaf(lib, A), 1),
    "conv": lambda lib: functions(lib).conv2d(leaf(lib, IMAGES), leaf(lib, FILTERS)),
}


def is_of_the_pass(event: Any) -> bool:
    return event.scope == 1 or event.name.startswith("autograd::engine::evaluate_function")


@pytest.mark.parametrize("name", BACKWARD)
def test_names_scopes_and_counts_of_backward(name: str) -> None:
    def work(lib: Any) -> None:
        BACKWARD[name](lib).sum().backward()

    theirs, ours = (recorded(lib, work).events() for lib in LIBRARIES)
    assert [(e.name, e.scope) for e in ours if is_of_the_pass(e)] == [
        (e.name, e.scope) for e in theirs if is_of_the_pass(e)
    ]
    for events in (theirs, ours):
        for e in events:
            if e.scope == 1:
                assert e.cpu_parent.name == "autograd::engine::evaluate_function: " + e.name


@pytest.mark.parametrize("name", BACKWARD)
def test_sequence_numbers_join(name: str) -> None:
    def work(lib: Any) -> None:
        BACKWARD[name](lib).sum().backward()

    joined = []
    for lib in LIBRARIES:
        events = recorded(lib, work).events()
        forward: dict[int, list[str]] = {}
        for e in events:
            if e.sequence_nr >= 0 and not is_of_the_pass(e):
                forward.setdefault(e.sequence_nr, []).append(e.name)
        # Of PyTorch's events with one number, one made the node.
        joined.append([(e.name, forward[e.sequence_nr]) for e in events if e.scope == 1 and e.sequence_nr >= 0])
    theirs, ours = joined
    assert [node for node, _ in ours] == [node for node, _ in theirs]
    for (_, made_by), (_, candidates) in zip(ours, theirs, strict=True):
        assert made_by[0] in {*candidates, "aten::addmm", "aten::matmul"}


class OfBoth:
    """A custom Function in each library."""

    @staticmethod
    def of(lib: Any) -> Any:
        class Scaled(lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 3

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 3

        return Scaled


def test_custom_functions_and_ranges() -> None:
    found = []
    for lib in LIBRARIES:
        scaled = OfBoth.of(lib)

        def work(lib: Any, scaled: Any = scaled) -> None:
            with lib.profiler.record_function("my range"):
                scaled.apply(leaf(lib, A)).sum().backward()

        events = recorded(lib, work).events()
        own = [e for e in events if e.is_user_annotation or "Scaled" in e.name]
        found.append([(e.name, e.scope, e.is_user_annotation) for e in own])
    assert found[1] == found[0]


OPTIONS: list[dict[str, bool]] = [
    {},
    {"record_shapes": True},
    {"profile_memory": True},
    {"with_flops": True},
    {"profile_memory": True, "record_shapes": True, "with_flops": True},
]


def headers(table: str) -> list[str]:
    line = next(row for row in table.splitlines() if "Self CPU %" in row)
    return [h.strip() for h in line.split("  ") if h.strip()]


def work_for_tables(lib: Any) -> None:
    ((leaf(lib, A) @ leaf(lib, B)) * 2).sum().backward()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("by_shape", [False, True])
def test_columns(options: dict[str, bool], by_shape: bool) -> None:
    theirs, ours = (
        headers(recorded(lib, work_for_tables, **options).key_averages(group_by_input_shape=by_shape).table())
        for lib in LIBRARIES
    )
    unit = [h for h in ours if h.endswith("FLOPs")] + [h for h in theirs if h.endswith("FLOPs")]
    # The unit fits the smallest count, and PyTorch counts scalings of the gradient, too.
    assert [h for h in ours if h not in unit] == [h for h in theirs if h not in unit]
    assert len(unit) in (0, 2)


def rows_of(lib: Any) -> Any:
    """The same events in each library's own classes."""
    util = lib.autograd.profiler_util
    made = [
        util.FunctionEvent(1, "aten::mul", 1, 0.0, 1500.0, stack=[], input_shapes=[[3, 4]], flops=2000,
                           overload_name=""),
        util.FunctionEvent(2, "aten::mul", 1, 2e3, 2e3 + 1, stack=[], input_shapes=[[3]], flops=3, overload_name=""),
        util.FunctionEvent(3, "a name that is much too long for any table at all to show", 1, 3e3, 4e6, stack=[],
                           input_shapes=[], flops=0, cpu_memory_usage=123456789, overload_name=""),
        util.FunctionEvent(4, "inner", 1, 3.5e3, 9e3, stack=[], input_shapes=[], flops=0, cpu_memory_usage=-700,
                           overload_name=""),
    ]  # fmt: skip
    made[2].append_cpu_child(made[3])
    made[3].set_cpu_parent(made[2])
    events = util.EventList(made, use_device=None, profile_memory=True, with_flops=True)
    events._tree_built = True
    return events


TABLES: list[dict[str, Any]] = [
    {},
    {"sort_by": "cpu_time_total"},
    {"sort_by": "self_cpu_time_total", "row_limit": 2},
    {"sort_by": "count", "header": "A title"},
    {"top_level_events_only": True},
    {"max_name_column_width": 20, "max_shapes_column_width": 8},
    {"max_name_column_width": None},
    {"time_unit": "ms"},
    {"time_unit": "us", "row_limit": -1},
    {"sort_by": "cuda_time_total"},
]


@pytest.mark.parametrize("arguments", TABLES, ids=str)
@pytest.mark.parametrize("averaged", [False, True])
def test_tables_are_the_same_text(arguments: dict[str, Any], averaged: bool) -> None:
    theirs, ours = (
        (rows_of(lib).key_averages(group_by_input_shapes=True) if averaged else rows_of(lib)).table(**arguments)
        for lib in LIBRARIES
    )
    assert ours == theirs


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tables_of_stacks_are_the_same_text(count: int) -> None:
    def table(lib: Any) -> str:
        events = rows_of(lib)
        # With both columns PyTorch puts counts under the header of stacks.
        events._with_flops = False
        for i, e in enumerate(events):
            e.stack = [f"/a/folder/file.py({i}{k}): function" for k in range(3)]
        return events.key_averages(group_by_stack_n=count).table(max_src_column_width=25)  # type: ignore[no-any-return]

    assert table(rgrad) == table(torch)


@pytest.mark.parametrize("value", [0, 0.5, 999.9994, 1000, 1e6, 123456789.0])
def test_numbers_as_text(value: float) -> None:
    from rgrad.autograd import _profiler_table as ours

    theirs = torch.autograd.profiler_util
    assert ours._format_time(value) == theirs._format_time(value)
    assert ours._format_time_share(value, 1e6) == theirs._format_time_share(value, 1e6)
    for size in (int(value), -int(value), int(value) * 1024):
        assert ours._format_memory(size) == theirs._format_memory(size)


def test_attributes_of_events_and_averages() -> None:
    for cls in ("FunctionEvent", "FunctionEventAvg"):
        made = []
        for lib in LIBRARIES:
            prof = recorded(lib, work_for_tables)
            event = prof.events()[0] if cls == "FunctionEvent" else prof.key_averages()[0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made.append({n for n in dir(event) if not n.startswith("_")})
        missing = made[0] - made[1]
        # What CUDA's and Kineto's traces say of kernels, and names that PyTorch has deprecated.
        kineto = {"activity_type", "event_metadata", "external_id", "flow_id", "flow_start", "flow_type",
                  "metadata_json", "is_python_function", "linked_correlation_id", "python_id",
                  "python_module_id", "python_parent_id",
                  "structured_input_shapes", "structured_input_strides"}  # fmt: skip
        deprecated = {"cuda_time", "cuda_time_total", "self_cuda_memory_usage", "self_cuda_time_total"}
        assert missing <= kineto | deprecated


def test_traces_have_the_same_parts(tmp_path: Path) -> None:
    found = []
    for lib in LIBRARIES:
        path = tmp_path / f"{lib.__name__}.json"
        recorded(lib, work_for_tables, record_shapes=True).export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
        events = trace["traceEvents"]
        ops = [e for e in events if e["ph"] == "X" and e.get("cat") == "cpu_op"]
        keys = {k for e in ops for k in e}
        arguments = {k for e in ops for k in e["args"]}
        arrows = Counter(e["ph"] for e in events if e.get("cat") == "fwdbwd")
        found.append((keys, arguments, arrows, {"schemaVersion", "displayTimeUnit", "traceName"} <= set(trace)))
    theirs, ours = found
    assert ours[0] == theirs[0]
    assert {"Input Dims", "Input type", "Sequence number", "Fwd thread id", "External id"} <= ours[1] & theirs[1]
    assert ours[2] == theirs[2]
    assert ours[3]
    assert theirs[3]


SCHEDULES = [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 0, "warmup": 1, "active": 3, "repeat": 2},
    {"wait": 2, "warmup": 0, "active": 1, "repeat": 1, "skip_first": 3},
    {"wait": 4, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
    {"wait": -1, "warmup": 0, "active": 1},
    {"wait": 0, "warmup": 0, "active": 0},
]


def outcome(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as e:
            return type(e).__name__, str(e)


@pytest.mark.parametrize("numbers", SCHEDULES, ids=str)
def test_schedules(numbers: dict[str, int]) -> None:
    def actions(lib: Any) -> list[str]:
        plan = lib.profiler.schedule(**numbers)
        return [plan(i).name for i in range(20)]

    assert outcome(lambda: actions(rgrad)) == outcome(lambda: actions(torch))


@pytest.mark.parametrize("numbers", SCHEDULES[:4], ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_steps_under_schedules(numbers: dict[str, int], accumulate: bool) -> None:
    def steps(lib: Any) -> Any:
        seen: list[Any] = []

        def ready(prof: Any) -> None:
            seen.append(sorted(e.trace_name for e in prof.events() if e.name.startswith("ProfilerStep")))

        plan = lib.profiler.schedule(**numbers)
        activities = [lib.profiler.ProfilerActivity.CPU]
        options = {"schedule": plan, "on_trace_ready": ready, "acc_events": accumulate, "activities": activities}
        with lib.profiler.profile(**options) as prof:
            for _ in range(9):
                lib.ones(2)
                prof.step()
        return seen, prof.step_num, prof.current_action.name

    assert outcome(lambda: steps(rgrad)) == outcome(lambda: steps(torch))


def stepped(prof: Any) -> Any:
    prof.step()
    return prof.step_num


BAD: dict[str, Work] = {
    "averages": lambda lib: lib.profiler.profile().key_averages(),
    "events": lambda lib: lib.profiler.profile().events(),
    "trace": lambda lib: lib.profiler.profile().export_chrome_trace("no"),
    "stacks": lambda lib: lib.profiler.profile().export_stacks("no"),
    "stop": lambda lib: lib.profiler.profile().stop(),
    "step": lambda lib: stepped(lib.profiler.profile()),
    "no activities": lambda lib: lib.profiler.profile(activities=[]),
    "activity twice": lambda lib: lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU] * 2),
    "another activity": lambda lib: lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU, 3]),
    "stacks without": lambda lib: recorded(lib, work_for_tables).export_stacks("no"),
    "sort": lambda lib: recorded(lib, work_for_tables).key_averages().table(sort_by="no"),
    "empty": lambda lib: recorded(lib, lambda lib: None).key_averages().table(),
    "unstarted": lambda lib: (str(lib.autograd.profiler.profile()), lib.autograd.profiler.profile().table()),
    "range": lambda lib: lib.profiler.record_function(3).__enter__(),
    "timeline": lambda lib: recorded(lib, work_for_tables).export_memory_timeline("no"),
    "device": lambda lib: lib.autograd.profiler.profile(use_cpu=False),
    "timeout": lambda lib: lib.autograd.profiler.profile(post_processing_timeout_s=-1),
    "formula": lambda lib: lib.utils.flop_counter.register_flop_formula(3),
    "statement": lambda lib: lib.utils.benchmark.Timer(3),
    "language": lambda lib: lib.utils.benchmark.Timer("x", language="rust"),
    "global setup": lambda lib: lib.utils.benchmark.Timer("x", global_setup="y"),
    "repeat": lambda lib: lib.utils.benchmark.Timer("x").repeat(),
    "comparison": lambda lib: lib.utils.benchmark.Compare([3]),
}
# Beyond the type, the text names PyTorch's own schema.
OTHER_TEXT = {"range", "formula"}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    if name == "formula":
        with pytest.raises((ValueError, TypeError)):
            BAD[name](rgrad)
        return
    theirs, ours = (outcome(lambda lib=lib: BAD[name](lib)) for lib in LIBRARIES)  # type: ignore[misc]
    if name in OTHER_TEXT:
        assert ours[0] == theirs[0]
    assert (ours == theirs) == (name not in OTHER_TEXT)


def test_reentrant() -> None:
    def twice(lib: Any) -> None:
        prof = lib.autograd.profiler.profile()
        with prof:
            lib.ones(2)
        with prof:
            lib.ones(2)

    assert outcome(lambda: twice(rgrad)) == outcome(lambda: twice(torch))


# ---- counters and timers ---------------------------------------------------------------------------------------------

COUNTED: dict[str, Work] = {
    "matmul": lambda lib: (leaf(lib, A) @ leaf(lib, B)).sum().backward(),
    "linear": lambda lib: functions(lib).linear(leaf(lib, A), leaf(lib, C), leaf(lib, A[:, 0])).sum().backward(),
    "linear without bias": lambda lib: functions(lib).linear(leaf(lib, A), leaf(lib, C)).sum().backward(),
    "bmm": lambda lib: lib.bmm(leaf(lib, A[None]), leaf(lib, B[None])).sum().backward(),
    "batch times matrix": lambda lib: (leaf(lib, np.stack([A, C])) @ leaf(lib, B)).sum().backward(),
    "batch linear": lambda lib: functions(lib).linear(leaf(lib, np.stack([A, C])), leaf(lib, C)).sum().backward(),
    "conv2d": lambda lib: functions(lib).conv2d(leaf(lib, IMAGES), leaf(lib, FILTERS)).sum().backward(),
    "conv2d strided": lambda lib: (
        functions(lib).conv2d(leaf(lib, IMAGES), leaf(lib, FILTERS), stride=2, padding=1).sum().backward()
    ),
    "conv2d of data": lambda lib: (
        functions(lib).conv2d(lib.tensor(IMAGES), leaf(lib, FILTERS), stride=2).sum().backward()
    ),
    "conv1d groups": lambda lib: (
        functions(lib).conv1d(leaf(lib, RNG_STATE[0]), lib.tensor(RNG_STATE[1]), groups=2).sum().backward()
    ),
    "conv_transpose": lambda lib: (
        functions(lib)
        .conv_transpose2d(leaf(lib, IMAGES), leaf(lib, FILTERS[:3].transpose(0, 1, 2, 3)), stride=2)
        .sum()
        .backward()
    ),
    "mlp": lambda lib: (
        lib.nn.Sequential(lib.nn.Linear(4, 6), lib.nn.Tanh(), lib.nn.Linear(6, 2))(leaf(lib, A)).sum().backward()
    ),
    "elementwise": lambda lib: (leaf(lib, A) * 2).tanh().sum().backward(),
    "rnn": lambda lib: lib.nn.RNN(3, 5)(lib.tensor(SEQUENCES))[0].sum().backward(),
    "rnn with relu": lambda lib: lib.nn.RNN(3, 5, 2, nonlinearity="relu")(lib.tensor(SEQUENCES))[0].sum().backward(),
    "gru": lambda lib: lib.nn.GRU(3, 5, bidirectional=True)(lib.tensor(SEQUENCES))[0].sum().backward(),
    "gru of differentiable data": lambda lib: lib.nn.GRU(3, 5)(leaf(lib, SEQUENCES))[0].sum().backward(),
    "gru without gradients": lambda lib: lib.nn.GRU(3, 5, 2)(lib.tensor(SEQUENCES))[0].detach(),
    "lstm cell": lambda lib: lib.nn.LSTMCell(3, 5)(lib.tensor(SEQUENCES[0]))[0].sum().backward(),
}
SEQUENCES = RNG.random((7, 2, 3)).astype("float32")
RNG_STATE = (RNG.random((2, 4, 9)).astype("float32"), RNG.random((6, 2, 3)).astype("float32"))


@pytest.mark.parametrize("name", COUNTED)
def test_flop_counter(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        with lib.utils.flop_counter.FlopCounterMode(display=False) as counter:
            COUNTED[name](lib)
        counts = {m: {str(k): v for k, v in c.items()} for m, c in counter.get_flop_counts().items()}
        found.append((counter.get_total_flops(), {m: sum(c.values()) for m, c in counts.items() if c}))
    theirs, ours = found
    assert ours[0] == theirs[0]
    # A module's backward counts for it in both.
    assert {m: n for m, n in ours[1].items() if n} == {m: n for m, n in theirs[1].items() if n}


def test_the_bare_profiler_has_the_same_interface() -> None:
    import inspect

    from torch.profiler import _KinetoProfile as Theirs

    from rgrad.profiler import _KinetoProfile

    public = [name for name in dir(Theirs) if not name.startswith("_")]
    assert [name for name in public if not hasattr(_KinetoProfile, name)] == []
    assert list(inspect.signature(_KinetoProfile).parameters) == list(inspect.signature(Theirs).parameters)
    for kind, lib in ((Theirs, torch), (_KinetoProfile, rgrad)):
        prof = kind(activities=[lib.profiler.ProfilerActivity.CPU], record_shapes=True)
        prof.start()
        lib.tensor(A) * lib.tensor(C)
        prof.stop()
        assert "aten::mul" in [e.name for e in prof.events()]
        assert issubclass(lib.profiler.profile, kind)


def test_measurements_and_comparisons_are_the_same_text() -> None:
    def texts(lib: Any) -> list[str]:
        b = lib.utils.benchmark
        made = []
        for threads in (1, 2):
            for row, scale in (("small", 1e-6), ("large", 3e-5)):
                for column, factor in (("first", 1.0), ("second", 6.0)):
                    fields = {"label": "mul", "sub_label": row, "description": column, "num_threads": threads}
                    spec = b.TaskSpec("x * x", "x = 1", **fields)
                    times = [scale * factor * t for t in (1.0, 1.01, 1.02, 1.03, 1.5)]
                    made.append(b.Measurement(1, times, spec))
        made.append(b.Measurement(1, [2.0], b.TaskSpec("y\nz", "pass", label="other", description="first")))
        said = ["\n".join(repr(m).splitlines()[1:]) for m in made]
        said += [str(m.significant_figures) for m in made if len(m.times) > 1] + [str(m.has_warnings) for m in made]
        table = b.Compare(made)
        said.append(str(table))
        table.trim_significant_figures()
        said.append(str(table))
        table.colorize()
        said.append(str(table))
        table.colorize(rowwise=True)
        table.highlight_warnings()
        said.append(str(table))
        return said

    theirs, ours = texts(torch), texts(rgrad)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other
