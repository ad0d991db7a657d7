"""The profiler: which events there are, how they nest, and what they say."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import rgrad
from profiler_events import Events, names, recorded, tree
from rgrad import _core
from rgrad.autograd._profiler_events import HIDDEN, WITHOUT_DISPATCH
from rgrad.profiler import profile, record_function


class Doubled(rgrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: rgrad.Tensor) -> rgrad.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: rgrad.Tensor) -> rgrad.Tensor:  # type: ignore[override]
        return g * 2


# ---- which events ----------------------------------------------------------------------------------------------------


def test_operators_functions_and_methods_are_one_event_each() -> None:
    x = rgrad.ones(3, 4)

    def work() -> None:
        x * x
        rgrad.mul(x, x)
        x.mul(x)
        x.mul_(2)
        x.sum().item()

    expected = ["aten::mul", "aten::mul", "aten::mul", "aten::mul_", "aten::sum", "aten::item"]
    assert names(recorded(work)) == expected


def test_what_computes_nothing_is_no_event() -> None:
    x = rgrad.ones(3, 4)

    def work() -> None:
        x.size()
        x.dim()
        x.numel()
        x.is_contiguous()
        x.requires_grad_(False)
        _ = x.shape, x.dtype, x.grad

    assert names(recorded(work)) == []


def test_views_have_the_names_of_operations() -> None:
    x = rgrad.ones(3, 4)

    def work() -> None:
        x.t()
        x.view(12)
        x.unsqueeze(0)
        x[1]
        x.split(2)

    found = recorded(work)
    assert tree(found)[:3] == ["aten::t", "aten::view", "aten::unsqueeze"]
    assert tree(found)[-1] == ("aten::split", ["aten::slice", "aten::slice"])
    assert "aten::select" in names(found)


def test_an_operation_inside_of_another_is_nested() -> None:
    x, w, b = rgrad.ones(2, 3), rgrad.ones(4, 3), rgrad.ones(4)
    assert tree(recorded(lambda: rgrad.nn.functional.linear(x, w, b))) == [("aten::linear", ["aten::addmm"])]


def test_a_part_has_another_name_than_the_whole() -> None:
    x = rgrad.ones(2, 3, 4, 4)
    layer = rgrad.nn.BatchNorm2d(3)
    (event,) = [e for e in recorded(lambda: layer(x)) if e.name == "aten::batch_norm"]
    assert "aten::native_batch_norm" in [child.name for child in event.cpu_children]


def test_backward_has_an_event_for_the_engine_and_one_for_the_node() -> None:
    x = rgrad.ones(3, requires_grad=True)
    loss = Doubled.apply(x).tanh().sum()
    found = recorded(loss.backward)
    evaluate = "autograd::engine::evaluate_function: "
    # On x86-64 without AVX2 derivatives have no kernels of their own.
    is_composed = rgrad.backends.cpu.get_cpu_capability() == "NO AVX"
    tanh = ("TanhBackward0", ["aten::mul", "aten::sub", "aten::mul"]) if is_composed else "TanhBackward0"
    assert tree(found) == [
        (evaluate + "SumBackward0", [("SumBackward0", ["aten::expand"])]),
        (evaluate + "TanhBackward0", [tanh]),
        (evaluate + "DoubledBackward", [("DoubledBackward", ["aten::mul"])]),
        (evaluate + "torch::autograd::AccumulateGrad", ["torch::autograd::AccumulateGrad"]),
    ]


def test_sequence_numbers_join_forward_and_backward() -> None:
    x = rgrad.ones(3, 3, requires_grad=True)

    def work() -> None:
        y = Doubled.apply(x.t())
        y.add_(1)
        (y @ x).relu().sum().backward()

    found = recorded(work)
    forward = {e.sequence_nr: e.name for e in found if e.sequence_nr >= 0 and e.scope == 0 and "engine" not in e.name}
    backward = {e.sequence_nr: e.name for e in found if e.sequence_nr >= 0 and e.scope == 1}
    assert sorted(forward) == sorted(backward)
    assert {forward[s]: backward[s] for s in forward} == {
        "aten::t": "TBackward0",
        "Doubled": "DoubledBackward",
        "aten::add_": "AddBackward0",
        "aten::matmul": "MmBackward0",
        "aten::relu": "ReluBackward0",
        "aten::sum": "SumBackward0",
    }


def test_without_gradients_there_is_no_sequence_number() -> None:
    x = rgrad.ones(3, requires_grad=True)

    def work() -> None:
        with rgrad.no_grad():
            x * x
        rgrad.ones(3) * 2

    assert {e.sequence_nr for e in recorded(work)} == {-1}


def test_events_have_the_kernel_that_computed_them() -> None:
    x, w = rgrad.ones(2, 5, 9, 9), rgrad.ones(7, 5, 3, 3, requires_grad=True)
    a = rgrad.ones(40, 50, requires_grad=True)
    known = ("conv.", "matmul.", "pool.")

    def work() -> None:
        y = rgrad.nn.functional.conv2d(x, w, padding=1)
        y.sum().backward()
        (a @ rgrad.ones(50, 60)).sum().backward()
        rgrad.nn.functional.max_pool2d(x, 2)
        x + x

    kernels = {event.name: event.kernel for event in recorded(work)}
    families = {name: kernel for name, kernel in kernels.items() if kernel}
    assert all(kernel.startswith(known) for kernel in families.values())
    assert families["aten::convolution"].startswith("conv.")
    assert families["aten::convolution_backward"].startswith("conv.")
    assert families["aten::matmul"].startswith("matmul.")
    assert families["aten::max_pool2d"].startswith("pool.")
    assert not kernels["aten::add"]
    assert not kernels["aten::sum"]


def test_a_deferred_program_is_one_event_that_lists_its_operations_and_lines() -> None:
    x = rgrad.randn(400, 400)

    def work() -> None:
        y = x * 2  # the first line
        y = (y + x).tanh()
        y.sum().item()

    found = recorded(work)
    (program,) = [e for e in found if e.operations]
    assert program.name == "rgrad::program(mul, add, tanh, sum)"
    assert [name for name, _ in program.operations] == ["aten::mul", "aten::add", "aten::tanh", "aten::sum"]
    lines = [int(line.split("(")[1].split(")")[0]) for _, line in program.operations]
    first = lines[0]
    assert lines == [first, first + 1, first + 1, first + 2]
    assert all(__file__ in line and line.endswith(": work") for _, line in program.operations)
    assert program.cpu_parent.name == "aten::item"


def test_the_same_events_with_and_without_the_fast_path() -> None:
    def work() -> None:
        x = rgrad.ones(3, requires_grad=True)
        y = (x * 3).relu() + x
        y.sum().backward()
        with rgrad.no_grad():
            x.mul_(2.0)

    fast = recorded(work, record_shapes=True)
    _core._set_fast_path(False)
    try:
        slow = recorded(work, record_shapes=True)
    finally:
        _core._set_fast_path(True)

    # Derivatives on arrays are part of their node; through dispatch they are operations inside of it.
    def shown(events: Events) -> list[Any]:
        return [(e.name, e.input_shapes, e.output_shapes) for e in events if e.scope or e.cpu_parent is None]

    assert shown(fast) == shown(slow)
    assert ("aten::mul_", [[3], []], []) in shown(fast)


def test_results_and_gradients_are_those_without_a_profiler() -> None:
    def work() -> tuple[rgrad.Tensor, rgrad.Tensor]:
        rgrad.manual_seed(3)
        x = rgrad.randn(5, 4, requires_grad=True)
        y = rgrad.nn.functional.softmax((x @ x.t()).tanh(), 1)
        z = (Doubled.apply(y) * y)[:, 1:].sum()
        (g,) = rgrad.autograd.grad(z, x)
        return z.detach(), g

    expected = work()
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        found = work()
    assert all((a == b).all() for a, b in zip(expected, found, strict=True))


def test_errors_inside_are_raised_and_leave_nothing_open() -> None:
    x = rgrad.ones(3)

    def work() -> None:
        with pytest.raises(RuntimeError):
            x @ rgrad.ones(4)
        with pytest.raises(TypeError):
            rgrad.mul(x, "no")
        x + x

    found = recorded(work)
    assert found[-1].name == "aten::add"
    assert found[-1].cpu_parent is None
    assert all(e.cpu_time_total >= 0 for e in found)


def test_transforms_are_seen() -> None:
    x = rgrad.ones(3, 4)
    found = names(recorded(lambda: rgrad.func.vmap(lambda t: t.sin().sum())(x)))
    assert "aten::sin" in found
    assert "aten::sum" in found
    found = names(recorded(lambda: rgrad.func.grad(lambda t: t.sin().sum())(x)))
    assert "SinBackward0" in found


def test_only_the_thread_that_records_is_recorded() -> None:
    x = rgrad.ones(3)

    def work() -> None:
        other = threading.Thread(target=lambda: x * x)
        other.start()
        other.join()
        x + x

    assert names(recorded(work)) == ["aten::add"]


def test_passes_inside_of_passes_are_recorded_on_whatever_thread() -> None:
    class Nested(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: rgrad.Tensor, depth: int) -> rgrad.Tensor:
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: rgrad.Tensor) -> Any:  # type: ignore[override]
            if ctx.depth:
                with rgrad.enable_grad():
                    x = rgrad.ones(1, requires_grad=True)
                    Nested.apply(x, ctx.depth - 1).sum().backward()
            return g, None

    x = rgrad.ones(1, requires_grad=True)
    loss = Nested.apply(x, 80).sum()
    found = recorded(loss.backward)
    assert names(found).count("NestedBackward") == 81
    assert len({e.thread for e in found}) > 1


def test_optimizers_are_ranges() -> None:
    w = rgrad.ones(3, requires_grad=True)
    optimizer = rgrad.optim.SGD([w], lr=0.1)
    w.grad = rgrad.ones(3)

    def work() -> None:
        optimizer.step()
        optimizer.zero_grad()

    found = recorded(work)
    ranges = [e.name for e in found if e.is_user_annotation]
    assert ranges == ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]
    # An optimizer is as it was when nothing records.
    optimizer.step()
    assert "_in_profile" not in vars(optimizer)


def test_listed_functions_are_there() -> None:
    here = {*dir(_core), *dir(rgrad.Tensor)}
    assert here >= WITHOUT_DISPATCH
    assert here >= HIDDEN


@pytest.mark.parametrize("name", sorted({"zeros", "ones", "rand", "randn", "arange", "eye", "full", "tensor"}))
def test_creation_is_an_event(name: str) -> None:
    arguments = {"full": ((2,), 1.0), "eye": (2,), "tensor": ([1.0],), "arange": (3,)}.get(name, (2, 3))
    found = recorded(lambda: getattr(rgrad, name)(*arguments))
    assert found[0].name == f"aten::{name}"
    assert found[0].cpu_parent is None


# ---- ranges ----------------------------------------------------------------------------------------------------------


def test_ranges_nest_and_decorate() -> None:
    @record_function("twice")
    def twice(x: rgrad.Tensor, again: bool = True) -> rgrad.Tensor:
        return twice(x * 2, False) if again else x * 2

    def work() -> None:
        with record_function("outer", "arguments"):
            twice(rgrad.ones(2).mul(1))

    found = recorded(work)
    assert tree(found) == [
        ("outer", ["aten::ones", "aten::mul", ("twice", ["aten::mul", ("twice", ["aten::mul"])])]),
    ]
    assert {e.scope for e in found if e.is_user_annotation} == {7}


def test_ranges_that_overlap_and_that_outlive_the_profiler() -> None:
    first, second = record_function("first"), record_function("second")
    with profile() as prof:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        rgrad.ones(2) * 2
    second.__exit__(None, None, None)
    assert names(prof.events()) == ["first", "second", "aten::ones", "aten::mul"]
    assert prof.events()[2].cpu_parent.name == "second"
    with profile() as prof:
        rgrad.ones(2) * 2
    assert names(prof.events()) == ["aten::ones", "aten::mul"]


def test_a_range_without_a_profiler_does_nothing() -> None:
    with record_function("nothing") as r:
        pass
    assert r.record is None


@pytest.mark.parametrize("arguments", [(3,), ("name", 3), (None,)])
def test_a_range_wants_texts(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(RuntimeError, match="Expected a value of type"), record_function(*arguments):
        pass


def test_modules_are_ranges() -> None:
    model = rgrad.nn.Sequential(rgrad.nn.Linear(2, 3), rgrad.nn.Tanh(), rgrad.nn.Linear(3, 1))
    x = rgrad.ones(4, 2)

    def work() -> None:
        model(x)
        with pytest.raises(RuntimeError):
            model(x.t())
        model(x)

    linear = [("aten::linear", ["aten::addmm"])]
    one = (
        "nn.Module: Sequential_0",
        [("nn.Module: Linear_0", linear), ("nn.Module: Tanh_0", ["aten::tanh"]), ("nn.Module: Linear_1", linear)],
    )
    found = tree(recorded(work, with_modules=True))
    assert found[0] == found[-1] == one
    assert [top for top in found if not top[0].startswith("nn.Module: Sequential")] == ["aten::t"]
    assert "nn.Module: Linear_0" not in names(recorded(work))


# ---- what events say -------------------------------------------------------------------------------------------------


def test_shapes_dtypes_and_operations_counted() -> None:
    x, w = rgrad.ones(3, 4), rgrad.ones(4, 5)
    conv = (rgrad.ones(2, 3, 8, 8), rgrad.ones(4, 3, 3, 3))

    def work() -> None:
        x @ w
        x * 2
        rgrad.nn.functional.conv2d(*conv, stride=2)
        x.tanh()

    found = recorded(work, with_flops=True)
    product, scaled, convolution, inner, tanh = found
    assert (product.input_shapes, product.output_shapes) == ([[3, 4], [4, 5]], [[3, 5]])
    assert product.input_dtypes == ["float32", "float32"]
    assert scaled.input_shapes == [[3, 4], []]
    assert [e.flops for e in (product, scaled, tanh)] == [2 * 3 * 4 * 5, 12, 0]
    assert scaled.input_dtypes == ["float32", ""]
    assert convolution.name == "aten::conv2d"
    assert inner.flops == 2 * 2 * 4 * 3 * 3 * (3 * 3 * 3)
    plain = recorded(work)
    assert {str(e.input_shapes) for e in plain} == {"[]"}
    assert {e.flops for e in plain} == {0}


def test_memory_is_the_allocators() -> None:
    held: list[rgrad.Tensor] = []

    def work() -> None:
        held.append(rgrad.ones(100, 100))
        y = held[0] @ held[0]
        del y
        held[0].sum()

    before = _core.memory_allocated()
    with profile(profile_memory=True) as prof:
        work()
    after = _core.memory_allocated()
    events = prof.events()
    assert sum(e.self_cpu_memory_usage for e in events) == after - before
    by_name = {e.name: e for e in events}
    assert by_name["aten::matmul"].cpu_memory_usage == 40000
    # Freed outside of any operation.
    assert -40000 in [e.cpu_memory_usage for e in events if e.name == "[memory]"]
    assert {e.cpu_memory_usage for e in recorded(work)} == {0}


def test_stacks_name_the_users_lines() -> None:
    x = rgrad.ones(3, requires_grad=True)

    def inner() -> rgrad.Tensor:
        return x.tanh()

    def work() -> None:
        inner().sum().backward()

    found = recorded(work, with_stack=True)
    tanh = next(e for e in found if e.name == "aten::tanh")
    assert [frame.split("): ")[1] for frame in tanh.stack[:2]] == ["inner", "work"]
    assert tanh.stack[0].startswith(__file__ + "(")
    # Backward has the stack of its forward.
    backward = next(e for e in found if e.name == "TanhBackward0")
    assert backward.stack == tanh.stack
    assert all(e.stack == [] for e in recorded(work))


def test_times_add_up() -> None:
    x = rgrad.randn(64, 64, requires_grad=True)

    def work() -> None:
        with record_function("all"):
            for _ in range(5):
                (x @ x).tanh().sum().backward()

    with profile() as prof:
        work()
    events = prof.events()
    whole = events[0]
    assert whole.name == "all"
    averages = prof.key_averages()
    assert averages.self_cpu_time_total == pytest.approx(whole.cpu_time_total)
    assert prof.profiler is not None
    assert prof.profiler.self_cpu_time_total == pytest.approx(whole.cpu_time_total)
    assert averages.total_average().self_cpu_time_total == pytest.approx(whole.cpu_time_total)
    for event in events:
        assert event.time_range.end >= event.time_range.start
        assert sum(c.cpu_time_total for c in event.cpu_children) <= event.cpu_time_total
        if event.cpu_parent is not None:
            assert event.cpu_parent.time_range.start <= event.time_range.start
            assert event.cpu_parent.time_range.end >= event.time_range.end


def test_a_range_that_sleeps_is_as_long() -> None:
    def work() -> None:
        with record_function("asleep"):
            time.sleep(0.05)

    (event,) = recorded(work)
    assert event.cpu_time_total >= 50_000
