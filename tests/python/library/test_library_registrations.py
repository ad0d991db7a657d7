"""``Library``, the functions that register by name, ``opcheck``, and names of operators."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import rgrad
from rgrad import Tensor, library
from rgrad.library import Library, OpCheckError, opcheck
from rgrad.library._schema import bind, parse


def test_define_and_impl() -> None:
    lib = Library("tests_lib", "DEF")
    assert lib.define("double(Tensor x, int by=2) -> Tensor") == "double"
    x = rgrad.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="no kernel for it, only for none"):
        rgrad.ops.tests_lib.double(x)
    lib.impl("double", lambda x, by=2: x * by, "CPU")
    # As in PyTorch, a kernel without a formula is differentiated through.
    y = rgrad.ops.tests_lib.double(x, by=3)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with rgrad.profiler.profile() as prof:
        rgrad.ops.tests_lib.double(x)
    assert "tests_lib::double" in [event.name for event in prof.events()]
    assert library.get_kernel("tests_lib::double", "CPU")(rgrad.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        lib.define("double(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("tests_lib", "DEF")
    other = Library("tests_lib", "FRAGMENT")
    assert other.define("double.scalar(Scalar x) -> Scalar") == "double"
    other.impl("double.scalar", lambda x: 2 * x, "CompositeExplicitAutograd")
    assert rgrad.ops.tests_lib.double(3.5) == 7
    assert rgrad.ops.tests_lib.double.overloads() == ["default", "scalar"]
    other._destroy()
    assert rgrad.ops.tests_lib.double.overloads() == ["default"]
    del lib
    gc.collect()
    with pytest.raises(AttributeError, match="has no attribute 'double'"):
        rgrad.ops.tests_lib.double
    Library("tests_lib", "DEF")._destroy()


def test_an_autograd_kernel() -> None:
    calls: list[str] = []
    with library._scoped_library("tests_autograd", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")

        class F(rgrad.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                return rgrad.ops.tests_autograd.f(x)

            @staticmethod
            def backward(ctx: Any, g: Tensor) -> Tensor:
                calls.append("backward")
                return g * 5

        def kernel(x: Tensor) -> Tensor:
            calls.append("kernel")
            return x.detach() * 5

        lib.impl("f", kernel, "CPU")
        lib.impl("f", F.apply, "Autograd")
        x = rgrad.ones(1, requires_grad=True)
        rgrad.ops.tests_autograd.f(x).backward()
        rgrad.ops.tests_autograd.f(rgrad.ones(1))
        assert calls == ["kernel", "backward", "kernel"]
        lib.impl("f", lambda x: x * 7, "CompositeImplicitAutograd")
        assert rgrad.ops.tests_autograd.f(rgrad.ones(1, device="meta")).shape == (1,)


def test_registrations_by_name() -> None:
    library.define("tests_names::g", "(Tensor x) -> Tensor")

    @library.impl("tests_names::g", "cpu")
    def kernel(x: Tensor) -> Tensor:
        return x.detach().exp()

    @library.register_fake("tests_names::g")
    def fake(x: Tensor) -> Tensor:
        return rgrad.empty_like(x)

    library.register_autograd(
        "tests_names::g",
        lambda ctx, g: g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    )

    @library.register_vmap("tests_names::g")
    def rule(info: Any, in_dims: Any, x: Tensor) -> Any:
        return rgrad.ops.tests_names.g(x), in_dims[0]

    library.register_autocast("tests_names::g", "cpu", rgrad.bfloat16)
    g = rgrad.ops.tests_names.g
    x = rgrad.randn(2, 3, dtype=rgrad.float64, requires_grad=True)
    assert rgrad.autograd.gradcheck(g, (x,))
    rgrad.testing.assert_close(rgrad.vmap(g)(x), x.exp())
    assert g(rgrad.ones(2, device="meta")).shape == (2,)
    with rgrad.autocast("cpu"):
        assert g(rgrad.ones(2)).dtype == rgrad.bfloat16
    library.register_kernel("tests_names::g", "cpu", lambda x: x.detach() * 0)
    assert g(rgrad.ones(1)).item() == 0
    assert library.impl_abstract("tests_names::g")(fake) is fake
    with pytest.raises(RuntimeError, match="operator tests_names::h does not exist"):
        library.register_fake("tests_names::h", fake)
    with pytest.raises(ValueError, match="namespace::name"):
        library.define("h", "() -> ()")
    with pytest.raises(ValueError, match="expected schema to look like"):
        library.define("tests_names::h", "h() -> ()")
    with pytest.raises(NotImplementedError, match="an operation of rgrad itself"):
        library.register_fake(rgrad.ops.aten.mul.Tensor, fake)


def test_the_older_decorators() -> None:
    with library._scoped_library("tests_old", "FRAGMENT") as lib:

        @library.define(lib, "f(Tensor x) -> Tensor")
        def f(x: Tensor) -> Tensor:
            return x * 2

        @library.impl(lib, "f", "CPU")
        def on_cpu(x: Tensor) -> Tensor:
            return x * 3

        assert rgrad.ops.tests_old.f(rgrad.ones(1)).item() == 3


def test_what_is_refused() -> None:
    def kernel(x: Tensor) -> Tensor:
        return x

    for error, match, call in (
        (ValueError, "Unsupported kind", lambda: Library("a", "ZORK")),
        (ValueError, "reserved namespace", lambda: Library("prim", "DEF")),
        (ValueError, "no dispatch key 'ZORK'", lambda: Library("a", "FRAGMENT", "ZORK")),
        (NotImplementedError, "kernels of Triton", lambda: library.triton_op("a::b", mutates_args=())),
        (NotImplementedError, "kernels of Triton", lambda: library.wrap_triton(kernel)),
        (NotImplementedError, "__torch_function__", lambda: library.register_torch_dispatch("a::b", Tensor)),
        (NotImplementedError, "should never be called", library.fallthrough_kernel),
        (OSError, "Could not load this library: /none.so", lambda: rgrad.ops.load_library("/none.so")),
        (ValueError, "defines no operators", lambda: Library("a", "IMPL").define("f() -> ()")),
        (TypeError, "required to be a callable", lambda: Library("a", "IMPL").impl("f", 3)),  # type: ignore[arg-type]
        (NotImplementedError, "with_keyset", lambda: Library("a", "IMPL").impl("f", kernel, "CPU", with_keyset=True)),
    ):
        with pytest.raises(error, match=match):
            call()
    assert rgrad.ops.loaded_libraries == set()


def test_schemas_are_read() -> None:
    text = (
        'ns::f.over(Tensor(a!) x, Tensor? y, Tensor[] zs, int[2] k=[1, 2], float e=1e-5, str s="a, b", '
        "ScalarType? t=None, *, bool b=True) -> (Tensor(a!), Tensor[], int)"
    )
    schema = parse(text)
    assert str(schema) == text
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("ns::f", "over", True)
    x = rgrad.ones(1)
    own, named = bind("ns::f", schema, (x, None, [x]), {"k": 3, "b": False})
    assert own[3:] == [[3, 3], 1e-5, "a, b", None]
    assert named == {"b": False}
    assert str(parse("f() -> ()")) == "f() -> ()"
    for wrong in ("f(Tensor x", "f(Tensor x)", "f(Zork x) -> Tensor", "f(Tensor) -> Tensor"):
        with pytest.raises(RuntimeError, match="schema"):
            parse(wrong)


def test_opcheck() -> None:
    @library.custom_op("tests_check::sine", mutates_args=())
    def sine(x: Tensor) -> Tensor:
        return x.detach().sin()

    x = rgrad.randn(3, requires_grad=True)
    found = opcheck(sine, (x,), raise_exception=False)
    assert found["test_schema"] == found["test_autograd_registration"] == "SUCCESS"
    assert "no fake impl" in str(found["test_faketensor"])
    with pytest.raises(OpCheckError, match="test_aot_dispatch_dynamic failed with .* no autograd formula"):
        opcheck(sine, (x,), test_utils="test_aot_dispatch_dynamic")
    sine.register_fake(lambda x: x.new_empty(x.shape[0], 1))
    with pytest.raises(OpCheckError, match="has the shape .*3, 1"):
        opcheck(sine, (x,), test_utils="test_faketensor")
    sine.register_fake(lambda x: rgrad.empty_like(x, dtype=rgrad.float64))
    with pytest.raises(OpCheckError, match="has the dtype"):
        opcheck(sine, (x,), test_utils="test_faketensor")
    sine.register_fake(rgrad.empty_like)
    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    assert set(opcheck(sine, (x,)).values()) == {"SUCCESS"}
    assert set(opcheck("tests_check::sine", (x,)).values()) == {"SUCCESS"}
    with pytest.raises(ValueError, match="expected a subset"):
        opcheck(sine, (x,), test_utils="test_zork")

    @library.custom_op("tests_check::hidden_write", mutates_args=())
    def hidden_write(x: Tensor) -> Tensor:
        x.detach().add_(1)
        return x.clone()

    with pytest.raises(OpCheckError, match="Argument x is not defined as mutable but was mutated"):
        opcheck(hidden_write, (x,))

    with library._scoped_library("tests_lost", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.detach().sin(), "CPU")
        with pytest.raises(OpCheckError, match="the gradients of its inputs are lost"):
            opcheck(rgrad.ops.tests_lost.f, (x,))
        lib.impl("f", lambda x: x.view(-1), "CPU")
        with pytest.raises(OpCheckError, match="was aliasing one"):
            opcheck(rgrad.ops.tests_lost.f, (x,), test_utils="test_schema")


def test_the_older_module() -> None:
    from rgrad import _custom_ops

    @_custom_ops.custom_op("tests_older::scaled")
    def scaled(x: Tensor, by: float) -> Tensor:
        raise AssertionError("a prototype")

    x = rgrad.randn(3, dtype=rgrad.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="no kernel"):
        rgrad.ops.tests_older.scaled(x, 2.0)
    _custom_ops.impl("tests_older::scaled", device_types="cpu", func=lambda x, by: x.detach() * by)

    @_custom_ops.impl_abstract("tests_older::scaled")
    def fake(x: Tensor, by: float) -> Tensor:
        return rgrad.empty_like(x)

    @_custom_ops.impl_save_for_backward("tests_older::scaled")
    def save(inputs: Any, output: Tensor) -> Any:
        return inputs.x, inputs.by

    @_custom_ops.impl_backward("tests_older::scaled")
    def backward(ctx: Any, saved: Any, grad: Tensor) -> dict[str, Tensor]:
        assert saved[0].shape == grad.shape
        return {"x": grad * saved[1]}

    assert rgrad.autograd.gradcheck(lambda y: rgrad.ops.tests_older.scaled(y, 3.0), (x,))
    assert rgrad.ops.tests_older.scaled(rgrad.ones(2, device="meta"), 1.0).shape == (2,)
    _custom_ops._destroy("tests_older::scaled")
    with pytest.raises(AttributeError, match="scaled"):
        rgrad.ops.tests_older.scaled


def test_registrations_for_a_native_library_that_is_refused_wait_for_its_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rgrad.library._library._refused_libraries", {"/none.so"})

    @library.register_fake("tests_native::f")
    def fake(x: Tensor) -> Tensor:
        return x.new_empty(7)

    with pytest.raises(AttributeError, match="no attribute 'f'"):
        rgrad.ops.tests_native.f
    with library._scoped_library("tests_native", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        assert rgrad.ops.tests_native.f(rgrad.ones(1)).item() == 2
        assert rgrad.ops.tests_native.f(rgrad.ones(1, device="meta")).shape == (7,)


def test_autocast_kernels() -> None:
    with library._scoped_library("tests_autocast", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        lib.impl("f", lambda x: rgrad.ops.tests_autocast.f(x.double()).to(x.dtype) * 10, "AutocastCPU")
        assert rgrad.ops.tests_autocast.f(rgrad.ones(1)).item() == 2
        with rgrad.autocast("cpu"):
            out = rgrad.ops.tests_autocast.f(rgrad.ones(1))
        assert (out.item(), out.dtype) == (20, rgrad.float32)
