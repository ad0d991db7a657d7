"""Custom Functions: the context, several outputs, dirty and non-differentiable outputs, double backward, errors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rgrad
from devices import memory, real
from graphs import leaf
from rgrad.autograd import Function
from rgrad.autograd.function import once_differentiable

pytestmark = pytest.mark.usefixtures("device")


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_forward_and_backward() -> None:
    x = leaf(1.0, 3.0)
    y = Square.apply(x)
    assert y.tolist() == [1.0, 9.0]
    assert y.requires_grad
    assert type(y.grad_fn).__name__ == "SquareBackward"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0]


def test_forward_runs_without_history_and_constants_make_no_node() -> None:
    modes = []

    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            modes.append(rgrad.is_grad_enabled())
            return x.exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert F.apply(rgrad.ones(1)).grad_fn is None
    y = F.apply(leaf(1.0))
    assert y.grad_fn is not None
    assert modes == [False, False]
    with rgrad.no_grad():
        assert not F.apply(leaf(1.0)).requires_grad


def test_double_backward() -> None:
    x = leaf(2.0)
    y = Square.apply(Square.apply(x))
    (g,) = rgrad.autograd.grad(y, x, create_graph=True)
    (h,) = rgrad.autograd.grad(g, x, create_graph=True)
    (k,) = rgrad.autograd.grad(h, x)
    assert (g.item(), h.item(), k.item()) == (32.0, 48.0, 48.0)


def test_saving_an_output() -> None:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return y * g

    x = leaf(0.0)
    y = Exp.apply(x)
    (g,) = rgrad.autograd.grad(y, x, create_graph=True)
    (h,) = rgrad.autograd.grad(g, x)
    assert (g.item(), h.item()) == (1.0, 1.0)
    r = weakref.ref(y.grad_fn)
    del y, g
    gc.collect()
    assert r() is None


def test_non_tensor_arguments_and_none_gradients() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float, label: str, nothing: None = None) -> Any:
            ctx.factor = factor
            assert label == "name"
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None, None, None

    x = leaf(2.0)
    Scale.apply(x, 3.0, "name", None).backward()
    assert x.grad.item() == 3.0


def test_needs_input_grad() -> None:
    seen = []

    class Mul(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: int, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            _, y = ctx.saved_tensors
            return g * y, None, None

    x = leaf(2.0)
    Mul.apply(x, 1, rgrad.tensor([5.0], dtype=real())).backward()
    assert seen == [(True, False, False)]
    assert x.grad.item() == 5.0


def test_several_outputs() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x + y, x * y

        @staticmethod
        def backward(ctx: Any, gs: Any, gp: Any) -> Any:
            x, y = ctx.saved_tensors
            return gs + gp * y, gs + gp * x

    x, y = leaf(2.0), leaf(3.0)
    s, p = Both.apply(x, y)
    assert s.grad_fn is p.grad_fn
    (s * 10 + p).backward()
    assert (x.grad.item(), y.grad.item()) == (13.0, 12.0)
    x.grad = None
    s, p = Both.apply(x, y)
    p.backward()  # the gradient of the other output arrives as zeros
    assert x.grad.item() == 3.0


def test_materialize_grads() -> None:
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, flag: bool) -> Any:
            ctx.set_materialize_grads(flag)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a, b))
            return (b * 2 if a is None else a + b * 2), None

    for flag in (True, False):
        x = leaf(1.0)
        _, b = Two.apply(x, flag)
        b.backward()
        assert x.grad.item() == 2.0
    assert seen[0][0].tolist() == [0.0]
    assert seen[1][0] is None


def test_mark_non_differentiable() -> None:
    class ArgSort(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, order = x.sort()
            extra = x * 1
            ctx.mark_non_differentiable(order, extra)
            ctx.save_for_backward(order)
            ctx.set_materialize_grads(False)
            return values, order, extra

        @staticmethod
        def backward(ctx: Any, g: Any, g_order: Any, g_extra: Any) -> Any:
            assert g_order is None
            assert g_extra is None
            (order,) = ctx.saved_tensors
            return rgrad.zeros_like(g).scatter(0, order, g)

    x = leaf(3.0, 1.0)
    values, order, extra = ArgSort.apply(x)
    assert values.requires_grad
    assert not order.requires_grad
    assert not extra.requires_grad
    (values * rgrad.tensor([1.0, 10.0], dtype=real())).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_mark_dirty() -> None:
    class AddOne(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    x = leaf(1.0)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y
    assert type(y.grad_fn).__name__ == "AddOneBackward"
    assert y.item() == 3.0
    assert y._version >= 1
    z.backward()
    assert x.grad.item() == 10.0
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad (is being used|has been used) in an in-place operation"
    ):
        AddOne.apply(leaf(1.0))


def test_mark_dirty_on_a_view() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    Double.apply(y[:1])
    assert y.tolist() == [2.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]


def test_returning_an_input_as_it_is() -> None:
    class Identity(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    x = leaf(1.0)
    y = Identity.apply(x)
    assert y is not x
    assert memory(y) == memory(x)
    y.backward()
    assert x.grad.item() == 7.0


def test_returning_a_view_of_an_input() -> None:
    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return rgrad.cat([g, rgrad.zeros_like(g)])

    x = leaf(1.0, 2.0)
    base = x * 1
    y = First.apply(base)
    assert type(y.grad_fn).__name__ == "FirstBackward"
    y.backward()
    assert x.grad.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="custom Function|inside a custom"):
        First.apply(x * 1).add_(1)


def test_setup_context() -> None:
    class Cube(Function):
        @staticmethod
        def forward(x: Any, k: int) -> Any:
            return x**3 * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, k = inputs
            ctx.save_for_backward(x)
            ctx.k = k
            assert output.shape == x.shape

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x**2 * ctx.k, None

    x = leaf(2.0)
    (g,) = rgrad.autograd.grad(Cube.apply(x, 5), x, create_graph=True)
    (h,) = rgrad.autograd.grad(g, x)
    assert (g.item(), h.item()) == (60.0, 60.0)


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            assert not rgrad.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3.0)
    Once.apply(x).backward()
    assert x.grad.item() == 6.0
    (g,) = rgrad.autograd.grad(Once.apply(x), x, leaf(1.0), create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_saved_tensors_are_checked_for_changes() -> None:
    x = leaf(2.0)
    y = x * 1
    z = Square.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_saved_tensors_after_they_are_freed() -> None:
    x = leaf(2.0)
    y = Square.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="second time|freed"):
        _ = y.grad_fn.saved_tensors


def test_saved_tensors_identity_and_none() -> None:
    class Keep(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, none = ctx.saved_tensors
            assert none is None
            assert x is keep
            return g

    keep = leaf(2.0)
    Keep.apply(keep).backward()
    assert keep.grad.item() == 1.0


def test_save_for_backward_takes_only_tensors() -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, 5)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        Bad.apply(leaf(1.0))


# --- errors ------------------------------------------------------------------------------------------------


def made(backward: Any, forward: Any = lambda ctx, x: x * 1) -> Any:
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def test_wrong_number_of_gradients() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"Made.*returned an incorrect number of gradients \(expected 1, got 2\)"):
        made(lambda ctx, g: (g, g)).apply(x).backward()
    # trailing None are forgiven
    made(lambda ctx, g: (g, None)).apply(x).backward()
    assert x.grad.item() == 1.0


def test_wrong_shape_and_type_of_gradients() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError,
        match=r"Made.*returned an invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]",
    ):
        made(lambda ctx, g: rgrad.ones(3, dtype=real())).apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="str"):
        made(lambda ctx, g: "gradient").apply(x).sum().backward()
    assert x.grad is None


def test_gradients_that_broadcast_or_differ_in_dtype_are_fitted() -> None:
    x = leaf(1.0, 2.0)
    made(lambda ctx, g: rgrad.ones(4, 2, dtype=rgrad.float32)).apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert x.grad.dtype == real()


def test_exceptions_come_out_unchanged() -> None:
    class Mine(ValueError):
        pass

    error = Mine("inside")

    def fail(*_: Any) -> Any:
        raise error

    x = leaf(1.0)
    with pytest.raises(Mine) as caught:
        made(fail).apply(x).backward()
    assert caught.value is error
    with pytest.raises(Mine) as caught:
        made(lambda ctx, g: g, forward=fail).apply(x)
    assert caught.value is error
    assert x.grad is None
    (x * 2).backward()
    assert x.grad.item() == 2.0
    for base in (KeyboardInterrupt, SystemExit):
        with pytest.raises(base):
            made(lambda ctx, g, base=base: (_ for _ in ()).throw(base())).apply(x).backward()


def test_outputs_that_are_no_tensors_pass_through() -> None:
    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, 5, "label", None

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            assert grads[1:] == (None, None, None)
            return grads[0] * 2

    x = leaf(1.0)
    y, *others = Mixed.apply(x)
    assert others == [5, "label", None]
    y.backward()
    assert x.grad.item() == 2.0


def test_functions_without_methods() -> None:
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf(1.0))

    class OnlyForward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    with pytest.raises(NotImplementedError, match="backward"):
        OnlyForward.apply(leaf(1.0)).backward()


# --- lifetime ------------------------------------------------------------------------------------------------


def test_context_attributes_live_as_long_as_the_node() -> None:
    class Witness:
        pass

    class Holds(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.witness = Witness()
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert isinstance(ctx.witness, Witness)
            return g

    y = Holds.apply(leaf(1.0))
    z = y * 2
    r = weakref.ref(y.grad_fn.witness)
    del y
    gc.collect()
    assert r() is not None
    z.backward()
    del z
    gc.collect()
    assert r() is None


def test_cycle_from_the_context_to_the_output_is_collected() -> None:
    class Cyclic(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.out = y
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0)
    line = Cyclic.forward.__code__.co_firstlineno + 3
    with pytest.warns(UserWarning, match=rf"Cyclic keeps an output .* ctx\.out .*test_autograd_function\.py:{line}\)"):
        y = Cyclic.apply(x)
    y.note = y.grad_fn
    r = weakref.ref(y)
    del y
    gc.collect()
    assert r() is None


def test_function_inside_function() -> None:
    class Outer(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with rgrad.enable_grad():
                inner = x.detach().requires_grad_()
                y = Square.apply(inner) * 3
            ctx.pair = inner, y
            return y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inner, y = ctx.pair
            (out,) = rgrad.autograd.grad(y, inner, g)
            return out

    x = leaf(4.0)
    (Outer.apply(x) * 2).backward()
    assert x.grad.item() == 48.0


def test_apply_with_the_same_tensor_twice() -> None:
    class Mul(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x

    x = leaf(3.0)
    Mul.apply(x, x).backward()
    assert x.grad.item() == 6.0
