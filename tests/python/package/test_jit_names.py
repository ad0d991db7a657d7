"""TorchScript's names over Python code, the compiler's, futures, and what is refused with the reason."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import typing
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import jit
from rgrad.futures import Future, collect_all, wait_all


class Net(rgrad.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = rgrad.nn.Linear(2, 1)

    def forward(self, x: rgrad.Tensor, scale: float = 1.0) -> rgrad.Tensor:
        return self.linear(x) * scale

    def twice(self, x: rgrad.Tensor) -> rgrad.Tensor:
        return 2 * self.forward(x)


def test_decorators_give_back_what_they_get() -> None:
    net, f = Net(), len
    for same in (jit.script, jit.unused, jit.export, jit.script_method, jit._overload, jit._overload_method):
        assert same(f) is f
    assert jit.freeze(net.eval()) is net
    assert jit.optimize_for_inference(net.train()) is net
    assert not net.training
    assert jit.annotate(list[int], [1]) == [1]
    assert jit.script_if_tracing(f)([1, 2]) == jit._script_if_tracing(f)([1, 2]) == 2
    assert jit.interface(Net) is Net
    assert jit.Final is typing.Final
    assert jit.annotations.BroadcastingList2[int] == typing.List[int]  # noqa: UP006
    with jit.strict_fusion(), jit.optimized_execution(False), jit.fuser("fuser1"):
        pass
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        jit.ignore(3)  # type: ignore[call-overload]
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(net.train())
    with pytest.raises(RuntimeError, match="applied to a class"):
        jit.interface(3)


def test_a_traced_module_is_its_original() -> None:
    net = Net()
    traced = jit.trace(net, rgrad.ones(3, 2))
    assert isinstance(traced, jit.ScriptModule)
    assert isinstance(traced, rgrad.nn.Module)
    assert list(traced.state_dict()) == list(net.state_dict())
    assert traced.eval() is traced
    assert not net.training
    assert traced.double() is traced
    assert net.linear.weight.dtype == rgrad.float64
    x = rgrad.ones(5, 2, dtype=rgrad.float64)
    assert rgrad.equal(traced(x), net(x))
    traced(x).sum().backward()
    assert net.linear.weight.grad is not None
    whole = rgrad.nn.Sequential(traced)
    assert list(whole.state_dict()) == ["0.linear.weight", "0.linear.bias"]
    whole.train()
    assert net.training
    assert not hasattr(traced, "missing")
    for made in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert rgrad.equal(made(x), net(x))
        assert made.linear is not net.linear


def test_a_traced_module_holds_calls_to_the_example() -> None:
    traced = jit.trace(Net(), rgrad.ones(3, 2))
    with pytest.raises(RuntimeError, match=r"a tensor of shape \(2,\), but the example .* shape \(3, 2\)"):
        traced(rgrad.ones(2))
    with pytest.raises(RuntimeError, match="other arguments than the example"):
        traced(rgrad.ones(3, 2), 2.0)
    with pytest.raises(RuntimeError, match="other arguments than the example"):
        traced.forward(x=rgrad.ones(3, 2))
    both = jit.trace_module(Net(), {"forward": rgrad.ones(1, 2), "twice": rgrad.ones(1, 2)})
    assert both.twice(rgrad.ones(4, 2)).shape == (4, 1)
    with pytest.raises(RuntimeError, match="Net.twice"):
        both.twice(rgrad.ones(2))
    named = jit.trace(Net(), example_kwarg_inputs={"x": rgrad.ones(1, 2), "scale": 2.0})
    assert named(scale=3.0, x=rgrad.ones(2, 2)).shape == (2, 1)


def test_a_traced_function() -> None:
    def f(x: rgrad.Tensor) -> rgrad.Tensor:
        return x * 2 if x.sum() > 0 else x

    traced = jit.trace(f, (rgrad.ones(2),))
    assert isinstance(traced, jit.ScriptFunction)
    assert traced.__name__ == "f"
    # It is the Python code that runs, with the branch of each call.
    assert traced(-rgrad.ones(3)).tolist() == [-1, -1, -1]
    with pytest.raises(RuntimeError, match="f\\(\\)"):
        traced(rgrad.ones(2, 2))


def test_a_trace_that_differs_between_two_runs() -> None:
    with pytest.raises(jit.TracingCheckError, match="differs between two runs"):
        jit.trace(rgrad.nn.Dropout(), rgrad.ones(100))
    assert jit.trace(rgrad.nn.Dropout(), rgrad.ones(100), check_trace=False)(rgrad.ones(9)).shape == (9,)
    with pytest.raises(RuntimeError, match="should not be both None"):
        jit.trace(len)
    with pytest.raises(AttributeError, match="expected torch.nn.Module"):
        jit.trace_module(len, {})  # type: ignore[arg-type]


def test_there_is_no_program_to_write_or_read() -> None:
    traced = jit.trace(Net(), rgrad.ones(3, 2))
    for refused in (
        lambda: jit.save(traced, io.BytesIO()),
        lambda: jit.load("x.pt"),
        lambda: traced.save("x.pt"),
        lambda: jit.trace(abs, rgrad.ones(1)).save("x.pt"),
        lambda: traced.graph,
        lambda: jit.CompilationUnit("def f(): pass"),
        lambda: jit._get_trace_graph(traced, rgrad.ones(3, 2)),
    ):
        with pytest.raises(NotImplementedError, match="TorchScript|Python code"):
            refused()


def test_isinstance_with_what_is_inside() -> None:
    assert jit.isinstance([1], list[int])
    assert not jit.isinstance([1.0], list[int])
    assert jit.isinstance({"a": 1}, dict[str, int])
    assert jit.isinstance((1, "a"), tuple[int, str])
    assert not jit.isinstance((1,), tuple[int, str])
    assert jit.isinstance((1, 2, 3), tuple[int, ...])
    assert jit.isinstance(None, typing.Optional[int])  # noqa: UP045
    assert jit.isinstance(1, int | None)
    assert jit.isinstance(rgrad.ones(1), (int, rgrad.Tensor))
    with pytest.raises(RuntimeError, match="without a contained type"):
        jit.isinstance([1], list)


def test_forks_run_at_once() -> None:
    assert jit.wait(jit.fork(lambda x, y: x + y, 1, y=2)) == 3
    with pytest.raises(ZeroDivisionError):
        jit.fork(lambda: 1 / 0)


def test_futures(capsys: pytest.CaptureFixture[str]) -> None:
    first: Future[int] = Future()
    seen: list[int] = []
    after = first.then(lambda done: done.value() + 1)
    first.add_done_callback(lambda done: seen.append(done.value()))
    with pytest.raises(RuntimeError, match="not done"):
        first.value()
    thread = threading.Timer(0.05, first.set_result, (3,))
    thread.start()
    assert first.wait() == 3
    thread.join()
    assert (after.wait(), seen, first.done()) == (4, [3], True)
    with pytest.raises(RuntimeError, match="completed Future as complete again"):
        first.set_result(4)
    failed: Future[int] = Future()
    text = failed.then(lambda done: done.wait())
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.wait()
    with pytest.raises(RuntimeError, match="running the callback: ValueError: no"):
        text.wait()
    with pytest.raises(ValueError, match="no"):
        collect_all([first, failed]).wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(3)  # type: ignore[arg-type]
    assert wait_all([first, after]) == [3, 4]
    assert wait_all([]) == []
    first.add_done_callback(lambda _: 1 / 0)
    assert "ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="pickle"):
        pickle.dumps(first)


def test_the_compiler_compiles_nothing() -> None:
    compiler = rgrad.compiler
    assert compiler.allow_in_graph(len) is compiler.assume_constant_result(len) is len
    assert compiler.substitute_in_graph(abs)(len) is compiler.nested_compile_region(len) is len
    with pytest.raises(AssertionError, match="expects a callable"):
        compiler.allow_in_graph(3)
    assert compiler.list_backends() == ["eager"]
    assert compiler.get_default_backend() == "eager"
    compiler.set_default_backend("inductor")
    assert compiler.get_default_backend() == "inductor"
    compiler.set_default_backend(None)
    with compiler.set_stance("force_eager"):
        pass
    assert compiler.set_stance("force_eager")(len) is len
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'zork'"):
        compiler.set_stance("zork")
    assert compiler.save_cache_artifacts() is None
    assert compiler.skip_all_guards_unsafe([1, 2]) == [True, True]
    with pytest.raises(NotImplementedError, match="compiles nothing"):
        compiler.load_compiled_function(io.BytesIO())


def test_functions_of_arrays() -> None:
    flipped = rgrad.compiler.wrap_numpy(np.fliplr)(rgrad.tensor([[1, 2]]))
    assert flipped.tolist() == [[2, 1]]

    def both(x: Any, *, by: int) -> Any:
        return {"sum": x.sum(), "times": x * by, "by": by}

    found = rgrad.compiler.wrap_numpy(both)(rgrad.ones(2), by=3)
    assert (found["sum"].item(), found["times"].tolist(), found["by"]) == (2, [3, 3], 3)


def test_packages_and_extensions_are_refused() -> None:
    from rgrad.utils import cpp_extension

    for refused in (
        lambda: rgrad.package.PackageExporter("x.pt"),
        lambda: rgrad.package.PackageImporter("x.pt"),
        lambda: cpp_extension.load("x", ["x.cpp"]),
        lambda: cpp_extension.load_inline("x", ""),
        lambda: cpp_extension.CppExtension("x", ["x.cpp"]),
        lambda: cpp_extension.BuildExtension.with_options(use_ninja=False),
    ):
        with pytest.raises(NotImplementedError, match="rgrad"):
            refused()
    assert not rgrad.package.is_from_package(rgrad)


def test_names_of_the_compiler_that_libraries_import() -> None:
    from rgrad import _dynamo
    from rgrad._dynamo.utils import is_compile_supported

    assert not is_compile_supported("cpu")
    assert not _dynamo.is_dynamo_supported()
    assert not _dynamo.external_utils.is_compiling()
    assert _dynamo.disable(len) is _dynamo.allow_in_graph(len) is _dynamo.run(len) is len
    assert _dynamo.optimize("eager")(len) is _dynamo.forbid_in_graph(len) is _dynamo.disallow_in_graph(len) is len
    assert not isinstance(rgrad.compile(Net()), _dynamo.OptimizedModule)
    _dynamo.mark_dynamic(rgrad.ones(1), 0)
    _dynamo.graph_break()
    _dynamo.reset()
    with pytest.raises(NotImplementedError, match="rgrad.export.export"):
        _dynamo.export(len)


def test_switches_of_the_native_module() -> None:
    assert rgrad._C._jit_set_profiling_mode(False) is True  # type: ignore[attr-defined]
    assert rgrad._C._jit_set_profiling_mode(True) is False  # type: ignore[attr-defined]
    assert rgrad._C._jit_texpr_fuser_enabled() is True  # type: ignore[attr-defined]
    for missing in ("_jit_zork", "zork"):
        with pytest.raises(AttributeError, match=f"has no attribute '{missing}'"):
            getattr(rgrad._C, missing)


def test_spawn_is_a_function_and_a_module() -> None:
    import rgrad.multiprocessing as mp
    from rgrad.multiprocessing.spawn import ProcessRaisedException, spawn

    assert mp.spawn is spawn
    assert mp.ProcessRaisedException is ProcessRaisedException
