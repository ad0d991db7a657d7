"""Forward mode: dual tensors, what they go through, and what is refused."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
import rgrad.autograd.forward_ad as fwad
from devices import real
from rgrad.autograd import Function, gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("device")


def point(*values: float) -> Any:
    return rgrad.tensor(values, dtype=real())


def pushed(f: Callable[[Any], Any], x: Any, t: Any) -> Any:
    with fwad.dual_level():
        return fwad.unpack_dual(f(fwad.make_dual(x, t))).tangent


def close(got: Any, want: list[float]) -> None:
    assert got.tolist() == pytest.approx(want, rel=1e-5)


def test_a_tangent_goes_through_a_chain() -> None:
    x, t = point(0.3, -0.7), point(2.0, 3.0)
    close(
        pushed(lambda x: (x.sin() * x).exp(), x, t),
        [d * math.exp(a * math.sin(a)) * (math.sin(a) + a * math.cos(a)) for a, d in ((0.3, 2.0), (-0.7, 3.0))],
    )


def test_unpacked_duals() -> None:
    x, t = point(1.0, 2.0), point(3.0, 4.0)
    with fwad.dual_level() as level:
        assert level == 0
        dual = fwad.make_dual(x, t)
        unpacked = fwad.unpack_dual(dual)
        assert type(unpacked).__name__ == "UnpackedDualTensor"
        assert unpacked._fields == ("primal", "tangent")
        primal, tangent = unpacked
        assert primal.tolist() == x.tolist()
        assert fwad.unpack_dual(primal).tangent is None
        assert tangent.tolist() == t.tolist()
        assert dual._is_view()
        assert fwad.unpack_dual(x).tangent is None
        out = dual * 2
    assert fwad.unpack_dual(out) == (out, None)
    with fwad.dual_level():
        assert fwad.unpack_dual(out).tangent is None
        assert fwad.unpack_dual(dual).tangent is None


def test_primals_and_tangents_keep_their_history() -> None:
    x, t = point(0.5).requires_grad_(), point(2.0).requires_grad_()
    with fwad.dual_level():
        primal, tangent = fwad.unpack_dual(fwad.make_dual(x, t).sin())
    (gx,) = rgrad.autograd.grad(primal.sum(), x, retain_graph=True)
    close(gx, [math.cos(0.5)])
    gx, gt = rgrad.autograd.grad(tangent.sum(), (x, t))
    close(gx, [-2.0 * math.sin(0.5)])
    close(gt, [math.cos(0.5)])


def test_forward_over_backward_is_a_hessian_vector_product() -> None:
    x, v = point(0.3, -0.7), point(1.0, 2.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x.clone().requires_grad_(), v)
        (g,) = rgrad.autograd.grad((dual.sin() * dual.sum()).sum(), dual, create_graph=True)
        got = fwad.unpack_dual(g).tangent
    leaf = x.clone().requires_grad_()
    (g,) = rgrad.autograd.grad((leaf.sin() * leaf.sum()).sum(), leaf, create_graph=True)
    (want,) = rgrad.autograd.grad((g * v).sum(), leaf)
    close(got, want.tolist())


def test_no_grad_and_detach() -> None:
    x, t = point(1.0), point(1.0)
    with rgrad.no_grad():
        close(pushed(lambda x: x * 3, x, t), [3.0])
    assert pushed(lambda x: x.detach() * 3, x, t) is None
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        with fwad._set_fwd_grad_enabled(False):
            assert fwad.unpack_dual(dual * 2).tangent is None
        close(fwad.unpack_dual(dual * 2).tangent, [2.0])
    assert fwad._is_fwd_grad_enabled()


def test_views_share_tangents_and_writes_change_them() -> None:
    x, t = point(1.0, 2.0, 3.0), point(1.0, 10.0, 100.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t) * 1
        view = dual[1:]
        close(fwad.unpack_dual(view).tangent, [10.0, 100.0])
        view.mul_(2)
        close(fwad.unpack_dual(dual).tangent, [1.0, 20.0, 200.0])
        dual.add_(1)
        close(fwad.unpack_dual(view).tangent, [20.0, 200.0])
        dual[0] = dual[2]
        close(fwad.unpack_dual(dual).tangent, [200.0, 20.0, 200.0])
        plain = rgrad.zeros(3, dtype=real())
        plain[1:] = view
        close(fwad.unpack_dual(plain).tangent, [0.0, 20.0, 200.0])
        dual.zero_()
        close(fwad.unpack_dual(dual).tangent, [0.0, 0.0, 0.0])


def test_operations_without_derivative_have_no_tangent() -> None:
    x, t = point(1.5, -2.5), point(1.0, 1.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        assert fwad.unpack_dual((dual > 0).to(real())).tangent is None
        assert fwad.unpack_dual(dual.argmax()).tangent is None


def test_what_is_refused() -> None:
    x, t = point(1.0, 2.0), point(1.0, 1.0)
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwad.make_dual(x, t)
    with fwad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"), fwad.dual_level():
            pass
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            fwad.make_dual(rgrad.ones(2, dtype=rgrad.int64), t)
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            fwad.make_dual(x, rgrad.ones(2, dtype=rgrad.int64))
        with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
            fwad.make_dual(x, point(1.0))
        with pytest.raises(RuntimeError, match="dtype"):
            fwad.make_dual(x, t.to(rgrad.float16))
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            fwad.make_dual(fwad.make_dual(x, t), t)
        with pytest.raises(TypeError, match="expected a Tensor as tangent"):
            fwad.make_dual(x, 3.0)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="not the last one"):
            fwad.exit_dual_level(level=1)
    with pytest.raises(RuntimeError, match="enter_dual_level"):
        fwad.exit_dual_level()


def test_an_exception_leaves_the_level() -> None:
    x, t = point(1.0), point(1.0)
    kept = x

    def fails() -> None:
        nonlocal kept
        with fwad.dual_level():
            kept = fwad.make_dual(x, t) * 2
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with fwad.dual_level():
        assert fwad.unpack_dual(kept * 2).tangent is None
        close(fwad.unpack_dual(fwad.make_dual(x, t) * kept).tangent, [2.0])


def test_the_level_as_a_decorator_and_by_hand() -> None:
    x, t = point(2.0), point(1.0)

    @fwad.dual_level()
    def square(x: Any, t: Any) -> Any:
        return fwad.unpack_dual(fwad.make_dual(x, t).square()).tangent

    close(square(x, t), [4.0])
    level = fwad.enter_dual_level()
    dual = fwad.make_dual(x, t, level=level)
    close(fwad.unpack_dual(dual * dual, level=level).tangent, [4.0])
    fwad.exit_dual_level(level=level)
    assert fwad.unpack_dual(dual).tangent is None


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g * ctx.scale, None

    @staticmethod
    def jvp(ctx: Any, t: Any, scale: Any) -> Any:
        assert scale is None
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t * ctx.scale


def test_functions_with_jvp() -> None:
    x = point(0.5, -0.3).requires_grad_()
    close(pushed(lambda x: Cube.apply(x, 2.0) * 2, x, point(1.0, 2.0)).detach(), [3.0, 4 * 3 * 0.09 * 2])
    assert gradcheck(lambda x: Cube.apply(x, 2.0), (x,), check_forward_ad=True)
    if real() == rgrad.float64:
        assert gradgradcheck(lambda x: Cube.apply(x, 2.0), (x,), check_fwd_over_rev=True)


def test_a_function_runs_once_and_without_tangents_inside() -> None:
    calls = []

    class Noted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            calls.append(fwad._is_fwd_grad_enabled())
            return x * y

        @staticmethod
        def jvp(ctx: Any, tx: Any, ty: Any) -> Any:
            calls.append((tx.tolist(), ty.tolist()))
            return tx * 7

    x = point(1.0, 2.0)
    close(pushed(lambda x: Noted.apply(x, point(3.0, 4.0)), x, point(1.0, 1.0)), [7.0, 7.0])
    assert calls == [False, ([1.0, 1.0], [0.0, 0.0])]


@pytest.mark.parametrize(
    ("jvp", "error", "said"),
    [
        (None, NotImplementedError, "You must implement the jvp function"),
        (lambda ctx, t: (t, t), RuntimeError, "invalid number of forward gradients"),
        (lambda ctx, t: 3, RuntimeError, "expected Variable or None"),
        (lambda ctx, t: t.sum(), RuntimeError, "size"),
    ],
    ids=["missing", "two", "number", "shape"],
)
def test_wrong_jvps(jvp: Any, error: type[Exception], said: str) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    if jvp is not None:
        Wrong.jvp = staticmethod(jvp)  # type: ignore[method-assign]
    with pytest.raises(error, match=said):
        pushed(Wrong.apply, point(1.0, 2.0), point(1.0, 1.0))
    assert fwad._is_fwd_grad_enabled()


def test_gradcheck_sees_a_wrong_jvp() -> None:
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx: Any, t: Any, scale: Any) -> Any:
            return Cube.jvp(ctx, t, scale) * 1.01

    x = point(0.5, -0.3).requires_grad_()
    for fast in (False, True):
        assert gradcheck(lambda x: Wrong.apply(x, 1.0), (x,), fast_mode=fast)
        with pytest.raises(rgrad.autograd.GradcheckError, match="Jacobian computed with forward mode mismatch"):
            gradcheck(lambda x: Wrong.apply(x, 1.0), (x,), check_forward_ad=True, fast_mode=fast)
        assert not gradcheck(lambda x: Wrong.apply(x, 1.0), (x,), check_forward_ad=True, raise_exception=False)


def test_forward_mode_alone_can_be_checked() -> None:
    class Forward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2

    x = point(0.5, -0.3).requires_grad_()
    assert gradcheck(Forward.apply, (x,), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_batched_grad=True requires"):
        gradcheck(Forward.apply, (x,), check_forward_ad=True, check_backward_ad=False, check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires"):
        gradcheck(Forward.apply, (x,), check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="at least one of check_fwd_over_rev or check_rev_over_rev"):
        gradgradcheck(Forward.apply, (x,), check_rev_over_rev=False)


def test_modules_and_losses() -> None:
    rgrad.manual_seed(0)
    net = rgrad.nn.Sequential(rgrad.nn.Linear(3, 4), rgrad.nn.Tanh(), rgrad.nn.Linear(4, 2)).to(real())
    x, t = rgrad.randn(5, 3, dtype=real()), rgrad.randn(5, 3, dtype=real())
    target = rgrad.tensor([0, 1, 1, 0, 1])
    loss = rgrad.nn.CrossEntropyLoss()
    got = pushed(lambda x: loss(net(x), target), x, t)
    leaf = x.clone().requires_grad_()
    (g,) = rgrad.autograd.grad(loss(net(leaf), target), leaf)
    assert got.item() == pytest.approx((g * t).sum().item(), rel=1e-4)


def test_a_large_pending_chain() -> None:
    n = 200_000
    x = rgrad.linspace(-1, 1, n, dtype=real())
    got = pushed(lambda x: ((x * 2).sin() + x).exp().sum(), x, rgrad.ones(n, dtype=real()))
    leaf = x.clone().requires_grad_()
    ((leaf * 2).sin() + leaf).exp().sum().backward()
    assert got.item() == pytest.approx(leaf.grad.sum().item(), rel=1e-4)


def test_other_threads_have_levels_of_their_own() -> None:
    found = []

    def other() -> None:
        x = point(2.0)
        found.append(rgrad.func.jvp(lambda x: x * x, (x,), (point(1.0),))[1].tolist())

    with fwad.dual_level():
        dual = fwad.make_dual(point(1.0), point(1.0))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        close(fwad.unpack_dual(dual * 2).tangent, [2.0])
    assert found == [[4.0]]
