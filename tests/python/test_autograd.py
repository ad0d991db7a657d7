"""backward and grad: arguments, accumulation, leaves, retained graphs, nodes, errors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dtypes
import rgrad
from devices import memory, real, tol

pytestmark = pytest.mark.usefixtures("device")


def leaf(*values: float, dtype: Any = None) -> Any:
    return rgrad.tensor(values, dtype=dtype or real(), requires_grad=True)


def scalar(value: float) -> Any:
    return rgrad.tensor(value, dtype=real(), requires_grad=True)


# --- backward ------------------------------------------------------------------------------------------


def test_backward_of_a_scalar_needs_no_gradient_argument() -> None:
    x = leaf(1.0, 2.0)
    assert (x * x).sum().backward() is None
    assert x.grad.tolist() == [2.0, 4.0]
    one = rgrad.tensor([[3.0]], requires_grad=True)
    (one * 2).backward()  # one element of any rank is scalar enough
    assert one.grad.tolist() == [[2.0]]


def test_backward_with_gradient() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(rgrad.tensor([10.0, 100.0], dtype=real()))
    assert x.grad.tolist() == [20.0, 400.0]
    (x * x).backward(gradient=rgrad.ones(2, dtype=real()))
    assert x.grad.tolist() == [22.0, 404.0]


def test_gradients_accumulate_in_the_same_tensor() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    first = x.grad
    (3 * x).sum().backward()
    assert x.grad is first
    assert first.tolist() == [4.0, 4.0]
    x.grad = None
    x.sum().backward()
    assert x.grad is not first
    assert first.tolist() == [4.0, 4.0]


@pytest.mark.filterwarnings("ignore:Using backward.*create_graph:UserWarning")
def test_create_graph_accumulates_out_of_place() -> None:
    x = leaf(1.0, 2.0)
    x.pow(3).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    x.pow(3).sum().backward(create_graph=True)
    assert first.tolist() == [3.0, 12.0]
    assert x.grad.tolist() == [6.0, 24.0]
    x.grad = None


def test_the_gradient_passed_in_is_not_taken_over() -> None:
    x = leaf(1.0, 2.0)
    g = rgrad.ones(2, dtype=real())
    (x * 1).backward(g)
    (x * 1).backward(g)
    assert g.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]
    y = leaf(1.0, 2.0)
    y.backward(g)
    y.grad.zero_()
    assert g.tolist() == [1.0, 1.0]


def test_two_leaves_do_not_share_one_gradient() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x + y).sum().backward()
    x.grad.add_(5)
    assert y.grad.tolist() == [1.0]


def test_a_tensor_used_many_times() -> None:
    x = scalar(3.0)
    y = x * x + x * x * x + x
    y.backward()
    assert x.grad.item() == 2 * 3 + 3 * 9 + 1
    z = leaf(2.0)
    (z + z).backward()
    assert z.grad.item() == 2.0


def test_diamonds_wait_for_all_paths() -> None:
    x = scalar(2.0)
    a = x * 3
    b = a.sin()
    c = a * b
    d = (b * c + a).exp()
    d.backward()
    with rgrad.no_grad():
        e = 1e-6

        def f(v: float) -> float:
            p = 3 * v
            q = np.sin(p)
            return float(np.exp(q * (p * q) + p))

    assert x.grad.item() == pytest.approx((f(2 + e) - f(2 - e)) / (2 * e), rel=1e-6)


def test_backward_twice_needs_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="(?s)backward through the graph a second time.*retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_graph_that_saved_nothing_runs_twice() -> None:
    x = leaf(1.0, 2.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_shared_part_of_two_graphs_is_freed_by_the_first() -> None:
    x = leaf(1.0)
    shared = x.exp()
    a, b = shared * 2, shared * 3
    a.backward()
    with pytest.raises(RuntimeError, match="second time"):
        b.backward()


def test_create_graph_retains_by_default() -> None:
    x = scalar(2.0)
    y = x**3
    (g,) = rgrad.autograd.grad(y, x, create_graph=True)
    (h,) = rgrad.autograd.grad(g, x, create_graph=True)
    (k,) = rgrad.autograd.grad(h, x)
    assert (g.item(), h.item(), k.item()) == (12.0, 12.0, 6.0)
    y.backward()
    assert x.grad.item() == 12.0


def test_backward_inputs() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = x * y
    z.backward(inputs=[x], retain_graph=True)
    assert x.grad.item() == 2.0
    assert y.grad is None
    z.backward(inputs=y)
    assert y.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="inputs.*empty"):
        (x * y).backward(inputs=[])


def test_backward_inputs_that_are_not_leaves() -> None:
    x = leaf(1.0)
    y = x * 3
    z = y * y
    y.retain_grad()
    z.backward(inputs=[y])
    assert y.grad.item() == 6.0
    assert x.grad is None


def test_autograd_backward_of_several_roots() -> None:
    x = leaf(1.0, 2.0)
    rgrad.autograd.backward([x.sum(), x * 2], [None, rgrad.ones(2, dtype=real())])
    assert x.grad.tolist() == [3.0, 3.0]
    rgrad.autograd.backward((x * 2).sum())
    assert x.grad.tolist() == [5.0, 5.0]


def test_backward_from_a_tensor_inside_the_graph_of_another_root() -> None:
    x = leaf(1.0)
    y = x * 2
    z = y * 3
    rgrad.autograd.backward([y, z], [rgrad.ones(1, dtype=real())] * 2)
    assert x.grad.item() == 8.0


def test_backward_of_a_leaf() -> None:
    x = scalar(4.0)
    x.backward()
    assert x.grad.item() == 1.0
    x.backward(rgrad.tensor(5.0, dtype=real()))
    assert x.grad.item() == 6.0


# --- grad ----------------------------------------------------------------------------------------------


def test_grad_touches_no_leaf() -> None:
    x, y = leaf(1.0), leaf(2.0)
    gx, gy = rgrad.autograd.grad(x * y, [x, y])
    assert (gx.item(), gy.item()) == (2.0, 1.0)
    assert x.grad is None
    assert y.grad is None


def test_grad_of_inner_tensors() -> None:
    x = leaf(2.0)
    y = x * 3
    z = y * y
    gy, gx = rgrad.autograd.grad(z, (y, x))
    assert (gy.item(), gx.item()) == (12.0, 36.0)


def test_grad_of_an_output_by_itself() -> None:
    x = leaf(2.0)
    y = x * x
    gy, gx = rgrad.autograd.grad(y, [y, x])
    assert (gy.item(), gx.item()) == (1.0, 4.0)
    (g,) = rgrad.autograd.grad(x, x)
    assert g.item() == 1.0


def test_grad_outputs() -> None:
    x = leaf(1.0, 2.0)
    v = rgrad.tensor([3.0, 5.0], dtype=real())
    (g,) = rgrad.autograd.grad(x * x, x, grad_outputs=v)
    assert g.tolist() == [6.0, 20.0]
    (g,) = rgrad.autograd.grad([x * x, (x * 2).sum()], [x], grad_outputs=[v, None])
    assert g.tolist() == [8.0, 22.0]


def test_grad_unused() -> None:
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match=r"appears to not have been used in the graph.*allow_unused"):
        rgrad.autograd.grad(x * 2, [x, y])
    gx, gy = rgrad.autograd.grad(x * 2, [x, y], allow_unused=True)
    assert gx.item() == 2.0
    assert gy is None
    gx, gy = rgrad.autograd.grad(x * 2, [x, y], materialize_grads=True)
    assert gy.tolist() == [0.0]
    with pytest.raises(ValueError, match="allow_unused"):
        rgrad.autograd.grad(x * 2, [x, y], allow_unused=False, materialize_grads=True)


def test_grad_runs_only_the_part_of_the_graph_it_needs() -> None:
    x, y = leaf(1.0), leaf(2.0)
    ran = []
    a = x * 2
    b = y * 2
    b.register_hook(lambda g: ran.append("b"))
    rgrad.autograd.grad(a * b, [x])
    assert ran == []


def test_grad_of_what_does_not_require_grad() -> None:
    x, c = leaf(1.0), rgrad.ones(1, dtype=real())
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        rgrad.autograd.grad(x * c, [c])
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        rgrad.autograd.grad(c * 2, [x])


def test_grad_twice() -> None:
    x = leaf(1.0)
    y = x.exp()
    rgrad.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        rgrad.autograd.grad(y, x)


def test_second_derivative_of_a_mixed_function() -> None:
    x, y = scalar(0.7), scalar(-1.3)
    f = x.sin() * y.exp() + x * y**2
    gx, gy = rgrad.autograd.grad(f, [x, y], create_graph=True)
    (gxy,) = rgrad.autograd.grad(gx, y, retain_graph=True)
    (gyx,) = rgrad.autograd.grad(gy, x)
    assert gxy.item() == pytest.approx(np.cos(0.7) * np.exp(-1.3) + 2 * -1.3, rel=tol(1e-14))
    assert gyx.item() == pytest.approx(gxy.item(), rel=tol(1e-14))


# --- errors of the arguments -------------------------------------------------------------------------------


def test_backward_of_a_vector_needs_a_gradient() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        rgrad.autograd.grad(x * 2, x)
    assert x.grad is None


def test_backward_of_a_constant() -> None:
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        rgrad.ones(1).backward()
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        rgrad.autograd.backward([leaf(1.0), rgrad.ones(1)])


def test_gradient_of_the_wrong_shape() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of .*\[3\].*output\[0\] has a shape of .*\[2\]",
    ):
        (x * 2).backward(rgrad.ones(3, dtype=real()))
    with pytest.raises(TypeError, match="str"):
        (x * 2).backward("a")


def test_only_floating_tensors_require_grad() -> None:
    message = "(?i)only Tensors of floating point"
    for dtype in dtypes.of((*dtypes.INTEGERS, "bool")):
        with pytest.raises(RuntimeError, match=message):
            rgrad.ones(1, dtype=dtype, requires_grad=True)
        with pytest.raises(RuntimeError, match=message):
            rgrad.ones(1, dtype=dtype).requires_grad_()
        t = rgrad.ones(1, dtype=dtype)
        with pytest.raises(RuntimeError, match=message):
            t.requires_grad = True
        assert not t.requires_grad
    with pytest.raises(RuntimeError, match=message):
        rgrad.tensor([1, 2], requires_grad=True)


# --- leaves ------------------------------------------------------------------------------------------------


def test_leaf_rules() -> None:
    c = rgrad.ones(2)
    x = rgrad.ones(2, requires_grad=True)
    y = x * 2
    assert c.is_leaf
    assert not c.requires_grad
    assert c.grad_fn is None
    assert x.is_leaf
    assert x.grad_fn is None
    assert not y.is_leaf
    assert y.requires_grad
    assert y.grad_fn is not None
    assert (c * 2).is_leaf
    assert not (c * 2).requires_grad
    assert y.detach().is_leaf
    assert x.int().is_leaf
    assert not x.int().requires_grad


def test_requires_grad_of_an_inner_tensor_cannot_be_switched_off() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    y.requires_grad_()  # as it is already
    assert y.requires_grad


def test_requires_grad_underscore_returns_the_tensor() -> None:
    c = rgrad.ones(2)
    assert c.requires_grad_() is c
    assert c.requires_grad
    c.requires_grad_(False)
    assert not c.requires_grad


def test_grad_of_an_inner_tensor_warns() -> None:
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_retain_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0, 8.0]
    assert not x.retains_grad
    x.retain_grad()  # nothing to do for a leaf
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        rgrad.ones(1).retain_grad()


def test_grad_setter() -> None:
    x = leaf(1.0, 2.0)
    g = rgrad.ones(2, dtype=real())
    x.grad = g
    assert x.grad is g
    x.sum().backward()
    assert g.tolist() == [2.0, 2.0]
    del x.grad
    assert x.grad is None
    with pytest.raises(RuntimeError, match="shape|size"):
        x.grad = rgrad.ones(3, dtype=real())
    with pytest.raises(RuntimeError, match="(?i)type"):
        x.grad = rgrad.ones(2, dtype=rgrad.int32)
    with pytest.raises(TypeError, match="grad"):
        x.grad = 1.0
    with pytest.raises(RuntimeError, match="own grad|itself"):
        x.grad = x
    assert x.grad is None


# --- nodes -------------------------------------------------------------------------------------------------


def test_grad_fn_and_next_functions() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = (x * y).exp()
    fn = z.grad_fn
    assert type(fn).__name__ == "ExpBackward0"
    assert fn.name() == "ExpBackward0"
    ((mul, number),) = fn.next_functions
    assert type(mul).__name__ == "MulBackward0"
    assert number == 0
    (ax, _), (ay, _) = mul.next_functions
    assert type(ax).__name__ == "AccumulateGrad"
    assert ax.variable is x
    assert ay.variable is y
    assert ax.next_functions == ()
    (_, none) = (x * 2).grad_fn.next_functions
    assert none == (None, 0)


def test_node_identity() -> None:
    x = leaf(1.0)
    y = x * 2
    assert y.grad_fn is y.grad_fn
    assert (y + 1).grad_fn.next_functions[0][0] is y.grad_fn
    a = x.exp().grad_fn.next_functions[0][0]
    assert a is (x * 3).grad_fn.next_functions[0][0]
    assert len({y.grad_fn, y.grad_fn, a}) == 2


def test_output_number_of_an_edge() -> None:
    x = leaf(1.0, 2.0, 3.0)
    _, b = x.split([1, 2])
    assert (b * 1).grad_fn.next_functions[0] == (b.grad_fn, 1)
    assert b.output_nr == 1


def test_calling_a_node_by_hand_frees_nothing() -> None:
    x, y = leaf(3.0), leaf(5.0)
    fn = (x * y).grad_fn
    g = rgrad.tensor([2.0], dtype=real())
    for _ in range(2):
        gx, gy = fn(g)
        assert (gx.item(), gy.item()) == (10.0, 6.0)
    assert x.grad is None
    e = x.exp()
    assert e.grad_fn(g).item() == pytest.approx(2 * np.exp(3.0))
    e.backward()


def test_metadata_of_a_node_is_kept() -> None:
    y = leaf(1.0) * 2
    y.grad_fn.metadata["note"] = 5
    assert y.grad_fn.metadata["note"] == 5


def test_attributes_stay_on_tensors() -> None:
    x = leaf(1.0)
    x.note = "kept"
    x.sum().backward()
    assert x.grad is x.grad
    x.grad.note = [1]
    gc.collect()
    assert x.grad.note == [1]
    assert x.note == "kept"
    node = (x * 1).grad_fn.next_functions[0][0]
    assert node.variable.note == "kept"


def test_tensors_take_weak_references_and_are_released() -> None:
    x = leaf(1.0)
    y = x * 2
    r, s = weakref.ref(x), weakref.ref(y)
    z = y * 3
    del x, y
    gc.collect()
    assert s() is None or z is not None
    z.backward()
    del z
    gc.collect()
    assert s() is None
    assert r() is None


def test_detach_and_data() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad
    assert d.grad_fn is None
    assert memory(d) == memory(y)
    d.zero_()
    assert y.tolist() == [0.0, 0.0]
    assert y._version == 1  # detach shares the counter
    y.data.fill_(7)
    assert y.tolist() == [7.0, 7.0]
    assert y._version == 1  # .data does not


def test_detach_in_place() -> None:
    x = leaf(1.0)
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="(?i)can't detach views in-place"):
        (x * 2).view(1, 1).detach_()


def test_data_setter() -> None:
    x = leaf(1.0, 2.0)
    x.data = rgrad.tensor([5.0, 6.0, 7.0], dtype=real())
    assert x.tolist() == [5.0, 6.0, 7.0]
    assert x.requires_grad
    (x * 1).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_data_setter_leaves_both_counts_of_writes_alone() -> None:
    x, other = leaf(3.0), rgrad.zeros(1, dtype=real())
    x.data.add_(1)
    with rgrad.no_grad():
        x.add_(1).sub_(1)
    other.mul_(2)
    y = x * x
    x.data = other
    assert (x._version, other._version) == (2, 1)
    with rgrad.no_grad():
        x.add_(1)
    assert (x._version, other._version) == (3, 1)
    assert other.item() == 1.0
    with pytest.raises(RuntimeError, match="is at version 3; expected version 2 instead"):
        y.backward()
    # The replacement as such is no write: gradients are those of the new values.
    z = x * x
    x.data = rgrad.full((1,), 5.0, dtype=real())
    z.backward()
    assert x.grad.tolist() == [10.0]
    # Another object with the same memory is no other memory.
    x.data = x.data
    x.detach().add_(1)
    assert x._version == 4


def test_gradients_are_cast_to_the_dtype_of_their_edge() -> None:
    x = rgrad.tensor([1.0], dtype=rgrad.float32, requires_grad=True)
    y = x.to(rgrad.float16) * 3
    y.backward()
    assert x.grad.dtype == rgrad.float32
    a, b = rgrad.tensor([1.0], requires_grad=True), leaf(2.0)
    (a * b).backward()
    assert (a.grad.dtype, b.grad.dtype) == (rgrad.float32, real())


def test_the_first_gradient_of_an_expanded_leaf_is_dense() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    assert x.grad.is_contiguous()
    x.grad.add_(1)
    assert x.grad.tolist() == [2.0, 2.0]


def test_gradient_has_the_strides_of_its_leaf() -> None:
    x = rgrad.ones(2, 3, 4, requires_grad=True)
    (x.transpose(0, 1) * 1).pow(2).sum().backward()
    assert x.grad.stride() == (12, 4, 1)


def test_zero_has_its_own_node() -> None:
    y = leaf(1.0) * 2
    y.zero_()
    assert type(y.grad_fn).__name__ == "ZeroBackward0"


def test_nan_and_inf_flow_through() -> None:
    x = leaf(0.0, 1.0)
    (x.log() * 0).sum().backward()
    assert np.isnan(x.grad.tolist()[0])
    assert x.grad.tolist()[1] == 0.0
