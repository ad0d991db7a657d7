"""What a custom Function may keep on its context, read from it once, and the older styles."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import pytest

import rgrad
from graphs import leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("form", ["tuple", "list", "both", "dict", "attributes", "setup_context"])
def test_outputs_kept_on_the_context_are_noticed_and_collected(form: str) -> None:
    class Kept(Function):
        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    def two(ctx: Any, x: Any) -> Any:
        a, b = x * 2, x * 3
        if form == "attributes":
            ctx.kept, ctx.other = a, b
        else:
            forms = {"tuple": (a, 1), "list": [b, 1], "both": (a, b), "dict": {"first": [a], "second": b}}
            ctx.kept = forms[form]
        return a, b

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.kept = output[1]

    if form == "setup_context":
        Kept.forward = staticmethod(lambda x: (x * 2, x * 3))  # type: ignore[method-assign]
        Kept.setup_context = staticmethod(setup)  # type: ignore[method-assign]
        Kept._has_setup_context = True
    else:
        Kept.forward = staticmethod(two)  # type: ignore[method-assign]
    gc.collect()
    before = sum(isinstance(o, rgrad.Tensor) for o in gc.get_objects())
    for _ in range(10):
        with pytest.warns(UserWarning, match=r"ctx\.(kept|other)"):
            outs = Kept.apply(leaf(1.0))
        (outs[0] * outs[1]).backward()
    del outs
    gc.collect()
    assert sum(isinstance(o, rgrad.Tensor) for o in gc.get_objects()) == before


class KeepsBoth(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.both = x * 2, x * 3
        return ctx.both

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        assert ctx.both[0].item() == 2.0
        return first * 2 + second * 3


@pytest.mark.filterwarnings("ignore:KeepsBoth keeps an output")
@pytest.mark.parametrize("held", ["first", "second", "both", "downstream", "written", "context", "nothing"])
def test_a_context_with_outputs_lives_as_long_as_somebody_can_reach_it(held: str) -> None:
    x = leaf(1.0)
    first, second = KeepsBoth.apply(x)
    node = weakref.ref(first.grad_fn)
    down = first + second if held == "downstream" else None
    if held == "written":
        second.mul_(1.0)
        down = second * 1.0
    keep = {
        "first": [first],
        "second": [second],
        "both": [first, second],
        "downstream": [down],
        "written": [down],
        "context": [first.grad_fn],
        "nothing": [],
    }[held]
    del first, second, down
    for _ in range(3):
        gc.collect()
    assert (node() is None) is (held == "nothing")
    if held == "context":
        assert keep[0].both[1].item() == 3.0
    elif keep:
        rgrad.autograd.backward([sum(keep)])
        assert x.grad.item() == {"first": 2.0, "second": 3.0, "written": 3.0}.get(held, 5.0)
    keep.clear()
    gc.collect()
    assert node() is None


def test_inputs_and_intermediates_kept_on_the_context_are_fine() -> None:
    class Fine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x, ctx.middle, ctx.name = x, x * 2, "name"
            return ctx.middle * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 6

    x = leaf(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fine.apply(x).backward()
    assert x.grad.item() == 6.0


def test_gradients_in_one_list() -> None:
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * 2, y * 3, 1

        @staticmethod
        def backward(ctx: Any, grads: Any) -> Any:
            assert type(grads) is list
            assert grads.pop() is None
            second = grads.pop() * 3
            return grads.pop() * 2, second

    x, y = leaf(1.0), leaf(1.0)
    a, b, _ = Boxed.apply(x, y)
    (a * b).backward()
    assert (x.grad.item(), y.grad.item()) == (6.0, 6.0)


def test_an_old_base_class() -> None:
    from rgrad.autograd.function import InplaceFunction

    class Doubled(InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(3.0)
    Doubled.apply(x * 1).backward()
    assert x.grad.item() == 2.0
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert Doubled(inplace=True).inplace


def test_vjp_is_another_name_of_backward() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0)
    Twice.apply(x).backward()
    assert x.grad.item() == 2.0

    class Both(Twice):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(x).backward()


def test_clear_saved_tensors_on_access() -> None:
    class Mark:
        pass

    class Once(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            middle = x * 3
            middle.mark = Mark()
            ctx.save_for_backward(middle)
            ctx.mark = weakref.ref(middle.mark)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (middle,) = ctx.saved_tensors
            assert ctx.mark() is middle.mark
            del middle
            assert ctx.mark() is None  # nobody else held it
            with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once"):
                _ = ctx.saved_tensors
            return g * 2

    x = leaf(1.0)
    Once.apply(x).backward(retain_graph=True)
    assert x.grad.item() == 2.0


def test_legacy_style_is_refused() -> None:
    class Old(Function):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Old()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
        instance(leaf(1.0))


def test_methods_and_flags_that_change_after_a_call_are_seen() -> None:
    class Base(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Derived(Base):
        pass

    def gradient() -> tuple[float, float]:
        x = rgrad.tensor(3.0, requires_grad=True)
        y = Derived.apply(x)
        (g,) = rgrad.autograd.grad(y, x)
        return y.item(), g.item()

    assert gradient() == gradient() == (6.0, 2.0)
    Base.forward = staticmethod(lambda ctx, x: x * 5)  # type: ignore[method-assign]
    assert gradient() == (15.0, 2.0)
    Base.backward = staticmethod(lambda ctx, grad: grad * 5)  # type: ignore[method-assign]
    assert gradient() == gradient() == (15.0, 5.0)
    Derived.boxed_grads_call = True
    Derived.backward = staticmethod(lambda ctx, grads: grads.pop() * 7)  # type: ignore[method-assign]
    assert gradient() == (15.0, 7.0)
    del Derived.backward
    Derived.boxed_grads_call = False
    assert gradient() == (15.0, 5.0)
    Derived.forward = classmethod(lambda cls, ctx, x: x * cls.factor)  # type: ignore[method-assign,assignment]
    Derived.factor = 11  # type: ignore[attr-defined]
    assert gradient() == gradient() == (33.0, 5.0)


def test_save_for_backward_takes_tensors_only() -> None:
    ctx = rgrad.autograd.function.FunctionCtx()
    x = rgrad.ones(2)
    assert ctx.save_for_backward() is None
    assert ctx.saved_tensors == ()
    ctx.save_for_backward(x, None)
    assert ctx.saved_tensors[0] is x
    assert ctx.saved_tensors[1] is None
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        ctx.save_for_backward(x, 1)
    with pytest.raises(TypeError, match="keyword"):
        ctx.save_for_backward(x=x)
    with pytest.raises(TypeError, match="descriptor"):
        type(ctx).save_for_backward(x, x)


def test_a_context_has_the_attributes_of_a_python_object() -> None:
    class Scale(Function):
        factor = 3

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.factor = 2
            ctx.save_for_backward(x)
            return x * ctx.factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor

    y = Scale.apply(leaf(1.0, 2.0))
    ctx = y.grad_fn
    assert ctx.factor == 2
    assert ctx.saved_tensors[0].tolist() == [1.0, 2.0]
    assert ctx.needs_input_grad == (True,)
    for name in ("_saved_x", "_raw_saved_x", "missing"):
        assert not hasattr(ctx, name)
        with pytest.raises(AttributeError, match=f"^'ScaleBackward' object has no attribute '{name}'$"):
            getattr(ctx, name)
    # A method may be read without a call.
    save = ctx.save_for_backward
    with pytest.raises(TypeError, match="can only save variables"):
        save(1)
