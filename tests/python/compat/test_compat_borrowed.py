"""Names that libraries borrow from PyTorch: helpers of optimizers, old names, and what is asked of absent devices."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rgrad
from rgrad.optim import optimizer as borrowed

A = rgrad.arange(24.0).reshape(2, 3, 4)
B = rgrad.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    "dims",
    [[[1, 2], [1, 0]], ([1, 2], [1, 0]), [(1, 2), (1, 0)], [[-2, -1], rgrad.Size([1, 0])],
     rgrad.tensor([[1, 2], [1, 0]])],
)  # fmt: skip
def test_tensordot_takes_lists_of_any_kind(dims: Any) -> None:
    assert rgrad.equal(rgrad.tensordot(A, B, dims), rgrad.einsum("ijk,kj->i", A, B))


@pytest.mark.parametrize(
    ("dims", "error", "words"),
    [
        ([1, 2], TypeError, "'dims_self' .*must be tuple of ints, not int"),
        ([[1], 0], TypeError, "'dims_other' .*must be tuple of ints, not int"),
        ([[1.0], [1]], TypeError, "found element of type float at pos 0"),
        ([[1]], ValueError, "not enough values to unpack"),
        ([[1], [1], [1]], ValueError, "too many values to unpack"),
        (-1, RuntimeError, "expects dims >= 0, but got dims=-1"),
        ("a", RuntimeError, "expects dims to be int or"),
        (None, RuntimeError, "expects dims to be int or"),
    ],
)
def test_tensordot_refuses(dims: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        rgrad.tensordot(A, B, dims)


def test_tensordot_derivatives_of_both_orders() -> None:
    a, b = rgrad.randn(2, 3, dtype=rgrad.float64), rgrad.randn(3, 2, dtype=rgrad.float64)
    given = (a.requires_grad_(), b.requires_grad_())

    def f(x: Any, y: Any) -> Any:
        return rgrad.tensordot(x, y, [[1], [0]])

    assert rgrad.autograd.gradcheck(f, given)
    assert rgrad.autograd.gradgradcheck(f, given)


def test_detach_is_a_function() -> None:
    x = rgrad.ones(2, requires_grad=True)
    assert not rgrad.detach(x).requires_grad
    assert rgrad.detach(x).data_ptr() == x.data_ptr()


def test_a_wrapper_of_an_optimizer_asks_for_hooks() -> None:
    """It does not call ``Optimizer.__init__``; its step calls the hooks once, however often it asks."""

    class Wrapper(rgrad.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self._patch_step_function()
            self._patch_step_function()

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    w = rgrad.ones(2, requires_grad=True)
    wrapper, calls = Wrapper(rgrad.optim.SGD([w], lr=0.5)), []
    wrapper.register_step_pre_hook(lambda *_: calls.append(1))
    w.sum().backward()
    wrapper.step()
    assert calls == [1]
    assert w.tolist() == [0.5, 0.5]
    wrapper._cuda_graph_capture_health_check()


def test_helpers_of_optimizers() -> None:
    a, b, c = rgrad.ones(1), rgrad.ones(2, dtype=rgrad.float64), rgrad.ones(3)
    groups = rgrad.optim.Optimizer._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a]], with_indices=True)
    lists, places = groups[a.device, rgrad.float32]
    assert [[id(x) for x in one] for one in lists] == [[id(a), id(c)], [id(c), id(a)]]
    assert places == [0, 2]
    assert borrowed._default_to_fused_or_foreach([a], False) == (False, False)
    with pytest.raises(TypeError, match="list of tensors"):
        borrowed._default_to_fused_or_foreach(a, False)  # type: ignore[arg-type]
    assert borrowed._get_value(rgrad.tensor(3.0)) == 3.0
    assert borrowed._get_value("x") == borrowed._stack_if_compiling("x") == "x"
    params, grads = [a, rgrad.ones(2, dtype=rgrad.complex64)], [c, rgrad.zeros(2, dtype=rgrad.complex64)]
    borrowed._view_as_real(params, grads)
    assert [tuple(x.shape) for x in (*params, *grads)] == [(1,), (2, 2), (3,), (2, 2)]


@pytest.mark.parametrize("differentiable", [False, True])
def test_a_borrowed_step_records_where_it_is_differentiable(differentiable: bool) -> None:
    class Plain(rgrad.optim.Optimizer):
        @borrowed._use_grad_for_differentiable
        def step(self, closure: Any = None) -> bool:
            return rgrad.is_grad_enabled()

    made = Plain([rgrad.ones(1, requires_grad=True)], {"differentiable": differentiable})
    assert made.step() is differentiable
    assert rgrad.is_grad_enabled()


def test_old_names_of_autocast() -> None:
    before = rgrad.get_autocast_dtype("cpu")
    with pytest.warns(DeprecationWarning, match=r"get_autocast_dtype\('cpu'\) instead"):
        assert rgrad.get_autocast_cpu_dtype() == before
    with pytest.warns(DeprecationWarning, match="set_autocast_cpu_enabled"):
        rgrad.set_autocast_cpu_enabled(True)
    try:
        with pytest.warns(DeprecationWarning, match="is_autocast_cpu_enabled"):
            assert rgrad.is_autocast_cpu_enabled()
    finally:
        rgrad.set_autocast_enabled("cpu", False)
    with pytest.raises(TypeError, match="set_autocast_cpu_dtype.*1 required"):
        rgrad.set_autocast_cpu_dtype()
    assert rgrad.GradScaler is rgrad.amp.GradScaler


def test_numbers_of_the_compiler_are_pythons() -> None:
    assert (rgrad.sym_int(2.7), rgrad.sym_int(-2.7), rgrad.sym_float(2), rgrad.sym_sqrt(4)) == (2, -2, 2.0, 2.0)
    assert [repr(rgrad.sym_max(3, 1.0)), repr(rgrad.sym_min(2, 3.0)), repr(rgrad.sym_max(2, 3))] == ["3.0", "2.0", "3"]
    assert (rgrad.sym_not(True), rgrad.sym_ite(True, 1, 2), rgrad.sym_sum([1, 2]), rgrad.sym_sum([])) == (
        False,
        1,
        3,
        0,
    )
    for bad in ((1, 2, 3), (True, 1, 2.0)):
        with pytest.raises(AssertionError, match="sym_ite"):
            rgrad.sym_ite(*bad)
    assert not isinstance(3, rgrad.SymInt | rgrad.SymFloat | rgrad.SymBool)


def test_modules_of_devices() -> None:
    assert rgrad.get_device_module("cuda") is rgrad.cuda
    assert rgrad.get_device_module(rgrad.device("cpu")) is rgrad.cpu
    assert rgrad.get_device_module() in (rgrad.cpu, rgrad.wgpu)
    for bad, words in (
        ("meta", "does not have a corresponding module"),
        (3, "Invalid value"),
        ("xx", "Expected one of"),
    ):
        with pytest.raises(RuntimeError, match=words):
            rgrad.get_device_module(bad)


def test_the_old_comparison_is_wide_and_warns() -> None:
    with pytest.warns(FutureWarning, match="assert_close"):
        rgrad.testing.assert_allclose(rgrad.ones(2), [1.0, 1.00005])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rgrad.testing.assert_allclose(rgrad.ones(2, dtype=rgrad.float64), rgrad.ones(2))
        with pytest.raises(AssertionError, match="not close"):
            rgrad.testing.assert_allclose(rgrad.ones(2), rgrad.ones(2) * 1.001)
        rgrad.testing.assert_allclose(rgrad.ones(2), rgrad.ones(2) * 1.001, rtol=0.01, atol=0)


def test_states_of_devices_at_a_checkpoint() -> None:
    from rgrad.utils.checkpoint import get_device_states, set_device_states

    set_device_states(*get_device_states(A))
    with pytest.raises(RuntimeError, match="no random numbers of their own"):
        set_device_states([0], [rgrad.get_rng_state()])


@pytest.mark.filterwarnings("ignore:.*sdp_kernel:FutureWarning")
def test_kernels_of_attention() -> None:
    switches = rgrad.backends.cuda
    with switches.sdp_kernel(enable_flash=False, enable_cudnn=False):
        assert not switches.flash_sdp_enabled()
        assert switches.math_sdp_enabled()
    assert switches.flash_sdp_enabled()
    given = switches.SDPAParams(A, A, A, None, 0.0, False, False)
    assert not switches.can_use_efficient_attention(given)
    for asked in (
        switches.can_use_flash_attention,
        switches.can_use_efficient_attention,
        switches.can_use_cudnn_attention,
    ):
        assert not asked(given, debug=True)


@pytest.mark.parametrize(
    "name",
    ["current_device", "get_device_name", "get_device_capability", "get_device_properties", "mem_get_info",
     "synchronize", "current_stream", "get_rng_state", "initial_seed"],
)  # fmt: skip
def test_there_is_no_xpu(name: str) -> None:
    with pytest.raises(AssertionError, match="not compiled with XPU"):
        getattr(rgrad.xpu, name)()


def test_queries_of_xpu_answer() -> None:
    xpu = rgrad.xpu
    counts = (xpu.memory_allocated, xpu.max_memory_allocated, xpu.memory_reserved, xpu.max_memory_reserved)
    assert [count() for count in counts] == [0] * 4
    assert not xpu.is_bf16_supported()
    xpu.set_rng_state_all(xpu.get_rng_state_all())


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_files_are_made_of_can_be_called() -> None:
    values = rgrad.storage.TypedStorage([1.0, 2.0, 3.0, 4.0], dtype=rgrad.float32)
    made = rgrad._utils._rebuild_tensor_v2(values, 1, (2,), (2,), False, {})
    assert made.tolist() == [2.0, 4.0]
    assert rgrad.cuda.OutOfMemoryError is rgrad.OutOfMemoryError
    assert not rgrad.cuda._initialized
