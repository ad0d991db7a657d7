"""``custom_op``: one operation for autograd, transforms, autocast, the profiler and the meta device."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor, library
from rgrad.library import custom_op


@custom_op("tests_op::scaled_sine", mutates_args=())
def scaled_sine(x: Tensor, by: float = 2.0) -> Tensor:
    """A sine that NumPy computes."""
    return rgrad.from_numpy(np.sin(x.detach().numpy()) * x.detach().numpy().dtype.type(by))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.by = inputs[1]


def _gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    assert ctx.needs_input_grad == (True, False)
    return grad * ctx.saved_tensors[0].cos() * ctx.by, None


scaled_sine.register_autograd(_gradient, setup_context=_save)
scaled_sine.register_fake(lambda x, by=2.0: rgrad.empty_like(x))


@custom_op("tests_op::joined", mutates_args=())
def joined(xs: list[Tensor], weight: Tensor, *, twice: bool = False) -> list[Tensor]:
    made = [x.detach() * weight.detach() * (2 if twice else 1) for x in xs]
    return made


def _joined_save(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    xs, weight = inputs
    assert isinstance(output, list)
    ctx.factor = 2 if keyword_only_inputs["twice"] else 1
    ctx.count = len(xs)
    ctx.save_for_backward(*xs, weight)


def _joined_gradient(ctx: Any, grads: list[Tensor]) -> tuple[Any, Any]:
    *xs, weight = ctx.saved_tensors
    each = [g * weight * ctx.factor for g in grads]
    total = sum((g * x * ctx.factor for g, x in zip(grads, xs, strict=True)), rgrad.zeros_like(weight))
    return each, total


joined.register_autograd(_joined_gradient, setup_context=_joined_save)


def test_an_operator_is_called_and_named() -> None:
    assert repr(scaled_sine) == "<CustomOpDef(tests_op::scaled_sine)>"
    assert scaled_sine.__doc__ == "A sine that NumPy computes."
    operator = rgrad.ops.tests_op.scaled_sine
    assert str(operator) == "tests_op.scaled_sine"
    assert operator.overloads() == ["default"]
    assert operator.default.name() == "tests_op::scaled_sine"
    assert str(operator.default._schema) == "tests_op::scaled_sine(Tensor x, float by=2.) -> Tensor"
    x = rgrad.tensor([0.5])
    for call in (scaled_sine, operator, operator.default):
        assert call(x, by=3).item() == pytest.approx(3 * np.sin(0.5))
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        rgrad.ops.tests_op.missing


def test_it_is_one_node_with_its_own_derivative() -> None:
    x = rgrad.randn(3, dtype=rgrad.float64, requires_grad=True)
    y = scaled_sine(x)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_tests_op_scaled_sine_defaultBackward"
    assert rgrad.autograd.gradcheck(scaled_sine, (x, 1.5))
    assert rgrad.autograd.gradgradcheck(scaled_sine, (x, 1.5))
    with rgrad.no_grad():
        assert not scaled_sine(x).requires_grad
    assert not scaled_sine(x.detach()).requires_grad


def test_lists_and_arguments_by_name() -> None:
    xs = [rgrad.randn(2, dtype=rgrad.float64, requires_grad=True) for _ in range(3)]
    weight = rgrad.randn(2, dtype=rgrad.float64, requires_grad=True)
    assert rgrad.autograd.gradcheck(
        lambda *all_of: tuple(joined(list(all_of[:3]), all_of[3], twice=True)), (*xs, weight)
    )
    assert isinstance(joined(xs, weight), list)


def test_transforms() -> None:
    x = rgrad.randn(4, 3, dtype=rgrad.float64)
    slopes = rgrad.func.vmap(rgrad.func.grad(lambda row: scaled_sine(row).sum()))(x)
    rgrad.testing.assert_close(slopes, 2 * x.cos())
    rgrad.testing.assert_close(rgrad.vmap(scaled_sine, in_dims=1, out_dims=1)(x), 2 * x.sin())
    hessian = rgrad.func.jacrev(rgrad.func.jacrev(lambda row: scaled_sine(row).sum()))(x[0])
    rgrad.testing.assert_close(hessian, rgrad.diag(-2 * x[0].sin()))
    with pytest.raises(NotImplementedError, match="jvp"):
        rgrad.func.jvp(scaled_sine, (x,), (x,))


def test_a_batching_rule_takes_the_place_of_single_runs() -> None:
    seen: list[Any] = []

    @custom_op("tests_op::cube", mutates_args=())
    def cube(x: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(tuple(x.shape))
        return x.detach() ** 3, 3 * x.detach() ** 2

    x = rgrad.randn(4, 3)
    once = rgrad.vmap(cube)(x)
    assert seen == [(3,)] * 4
    seen.clear()

    @cube.register_vmap
    def rule(info: Any, in_dims: Any, x: Tensor) -> Any:
        assert (info.batch_size, in_dims) == (4, (0,))
        return cube(x), (in_dims[0], in_dims[0])

    again = rgrad.vmap(cube)(x)
    assert seen == [(4, 3)]
    rgrad.testing.assert_close(again, once)


def test_autocast() -> None:
    @custom_op("tests_op::product", mutates_args=())
    def product(a: Tensor, b: Tensor) -> Tensor:
        assert not rgrad.is_autocast_enabled("cpu") or a.dtype == rgrad.float32
        return a @ b

    a = rgrad.ones(2, 2)
    with rgrad.autocast("cpu"):
        product(a, a)
    product.register_autocast("cpu", rgrad.bfloat16)
    assert product(a, a).dtype == rgrad.float32
    with rgrad.autocast("cpu"):
        assert product(a, a).dtype == rgrad.bfloat16
        assert product(a.double(), a.double()).dtype == rgrad.float64
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        product.register_autocast(3, rgrad.bfloat16)  # type: ignore[arg-type]


def test_profiler_and_overrides() -> None:
    x = rgrad.ones(2, requires_grad=True)
    with rgrad.profiler.profile() as prof:
        scaled_sine(x).sum().backward()
    names = [event.name for event in prof.events()]
    assert "tests_op::scaled_sine" in names
    assert "GeneratedBackwardFor_tests_op_scaled_sine_defaultBackward" in names
    seen: list[Any] = []

    class Seen(rgrad.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seen():
        scaled_sine(x)
    assert seen == [rgrad.ops.tests_op.scaled_sine.default]


def test_the_meta_device() -> None:
    assert scaled_sine(rgrad.empty(3, device="meta")).device.type == "meta"

    @custom_op("tests_op::without_fake", mutates_args=())
    def without_fake(x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(RuntimeError, match="no fake impl registered for tests_op::without_fake"):
        without_fake(rgrad.empty(3, device="meta"))

    @without_fake.register_fake
    def fake(x: Tensor) -> Tensor:
        context = library.get_ctx()
        assert context is not None
        with pytest.raises(NotImplementedError, match="depends on values"):
            context.new_dynamic_size()
        return x.new_empty(x.shape)

    assert without_fake(rgrad.empty(3, device="meta")).shape == (3,)
    assert library.get_ctx() is None


def test_writes_are_counted() -> None:
    @custom_op("tests_op::increase", mutates_args={"x"})
    def increase(x: Tensor, by: int) -> None:
        x.numpy()[...] += by

    x = rgrad.zeros(2)
    assert increase(x, 3) is None
    assert (x.tolist(), x._version) == ([3, 3], 1)
    assert str(increase._opoverload._schema) == "tests_op::increase(Tensor(a0!) x, SymInt by) -> ()"
    w = rgrad.ones(2, requires_grad=True)
    saved = w * x
    increase(x, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        increase.register_autograd(lambda ctx, g: g)
    increase(rgrad.empty(2, device="meta"), 1)


def test_kernels_by_device() -> None:
    @custom_op("tests_op::where", mutates_args=(), device_types="cpu")
    def where(x: Tensor) -> Tensor:
        return x + 1

    @where.register_kernel("wgpu")
    def on_wgpu(x: Tensor) -> Tensor:
        raise AssertionError("not here")

    @custom_op("tests_op::made_on", mutates_args=())
    def made_on(device: rgrad.device) -> Tensor:
        return rgrad.ones(2, device=device)

    assert where(rgrad.zeros(1)).item() == 1
    assert made_on("cpu").tolist() == [1, 1]
    where.register_kernel("cpu", lambda x: x + 2)
    assert where(rgrad.zeros(1)).item() == 2
    with where.set_kernel_enabled("cpu", False):
        assert where(rgrad.zeros(1)).item() == 1
    assert where(rgrad.zeros(1)).item() == 2

    @custom_op("tests_op::elsewhere", mutates_args=(), device_types=("cuda", "wgpu"))
    def elsewhere(x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(NotImplementedError, match="from the 'CPU' backend.*only for cuda, wgpu"):
        elsewhere(rgrad.zeros(1))


def test_arguments_that_do_not_fit() -> None:
    x = rgrad.ones(1)
    for match, call in (
        ("missing value for argument 'x'", lambda: scaled_sine()),
        ("Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'", lambda: scaled_sine(3)),
        ("Expected a value of type 'float' for argument 'by'", lambda: scaled_sine(x, "a")),
        ("expected at most 2 argument", lambda: scaled_sine(x, 1, 2)),
        ("Unknown keyword argument 'z'", lambda: scaled_sine(x, z=3)),
        ("twice, by position and by name", lambda: scaled_sine(x, x=x)),
        ("Expected a value of type 'Tensor\\[\\]'", lambda: joined(x, x)),
    ):
        with pytest.raises(RuntimeError, match=match):
            call()


def test_results_that_do_not_fit() -> None:
    def given(made: Any) -> Any:
        @custom_op("tests_op::wrong", mutates_args=())
        def wrong(x: Tensor) -> Tensor:
            return made(x)

        return wrong(rgrad.ones(2))

    with pytest.raises(RuntimeError, match="Unable to cast 3 to Tensor"):
        given(lambda x: 3)
    for alias in (lambda x: x, lambda x: x.view(-1), lambda x: x.detach()[:1]):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            given(alias)

    @custom_op("tests_op::pair", mutates_args=())
    def pair(x: Tensor) -> tuple[Tensor, int]:
        return x.clone(), 3

    out, number = pair(rgrad.ones(1, requires_grad=True))
    assert (out.requires_grad, number) == (True, 3)

    @custom_op("tests_op::gradients", mutates_args=())
    def gradients(x: Tensor, y: Tensor) -> Tensor:
        return x.clone()

    w = rgrad.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        gradients(w, w).backward()
    gradients.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="expected its backward to return 2 gradients"):
        gradients(w, w).backward()


def test_schemas_from_annotations() -> None:
    def f(
        x: Tensor,
        xs: list[Tensor],
        n: int | None = None,
        s: str = "a",
        d: rgrad.device | None = None,
        t: rgrad.dtype = rgrad.float32,
        l: list[int] | None = None,  # noqa: E741
        c: int | float | bool = 1,
        *,
        z: bool = False,
    ) -> tuple[Tensor, list[Tensor], int]:
        raise NotImplementedError

    assert library.infer_schema(f, mutates_args=()) == (
        '(Tensor x, Tensor[] xs, SymInt? n=None, str s="a", Device? d=None, ScalarType t=float32, SymInt[]? l=None, '
        "Scalar c=1, *, bool z=False) -> (Tensor, Tensor[], SymInt)"
    )
    assert library.infer_schema(f, mutates_args="unknown").startswith("(Tensor(a0!) x, Tensor(a1!)[] xs")

    def bare(x):  # type: ignore[no-untyped-def]
        return x

    def odd(x: dict[str, Tensor]) -> Tensor:
        raise NotImplementedError

    def many(*xs: Tensor) -> Tensor:
        raise NotImplementedError

    def silent(x: Tensor):  # type: ignore[no-untyped-def]
        return x

    for function, match in (
        (bare, "Parameter x must have a type annotation"),
        (odd, "Parameter x has unsupported type"),
        (many, "positional-only args, varargs"),
        (silent, "No return type annotation"),
    ):
        with pytest.raises(ValueError, match=match):
            library.infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match="were not found in the custom op's signature"):
        library.infer_schema(f, mutates_args={"q"})
    with pytest.raises(ValueError, match="only Tensors or collections of Tensors can be mutated"):
        library.infer_schema(f, mutates_args={"s"})
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("name", f, mutates_args=())
    with pytest.raises(ValueError, match="make these consistent"):
        custom_op("tests_op::bad", f, mutates_args=(), schema="(Tensor(a!) x) -> Tensor")
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        custom_op("tests_op::bad", f, mutates_args=(), schema="(*, Tensor x) -> Tensor")


def test_under_compile_and_inference_mode() -> None:
    x = rgrad.ones(2)
    with rgrad.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rgrad.compile(scaled_sine)(x).shape == (2,)
