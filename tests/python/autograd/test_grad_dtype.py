"""``Tensor.grad_dtype``: the dtype that the gradients of a leaf have."""

import pytest

import rgrad

f32, f64 = rgrad.float32, rgrad.float64


@pytest.mark.parametrize("when", ["before", "between"])
@pytest.mark.parametrize("make", [lambda x: (x * 2).sum(), lambda x: x.sum(), lambda x: x @ x, lambda x: x[0] * 2])
def test_gradients_are_converted_before_hooks_see_them(make, when):
    x = rgrad.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    if when == "before":
        x.grad_dtype = f64
    y = make(x)
    x.grad_dtype = f64
    y.backward(retain_graph=True)
    assert x.grad.dtype == f64
    assert x.grad_dtype == f64
    assert seen == [f64]
    assert rgrad.autograd.grad(y, x, retain_graph=True)[0].dtype == f64
    y.backward()
    assert x.grad.dtype == f64


def test_a_leaf_that_is_its_own_root_and_a_hook_that_answers():
    x = rgrad.ones((), requires_grad=True)
    x.grad_dtype = f64
    x.register_hook(lambda g: g * 2)
    x.backward()
    assert x.grad.dtype == f64
    assert x.grad.item() == 2.0
    x.grad = None
    edge = rgrad.autograd.graph.get_gradient_edge(x)
    edge.node(rgrad.ones(()))
    assert x.grad.dtype == f64


def test_none_takes_any():
    x = rgrad.ones(2, requires_grad=True)
    x.grad_dtype = None
    assert x.grad_dtype is None
    x.grad = rgrad.ones(2, dtype=f64)
    (x * 2).sum().backward()
    assert x.grad.dtype == f64
    assert x.grad.tolist() == [3.0, 3.0]
    x.grad = None
    del x.grad_dtype
    assert x.grad_dtype == f32


def test_what_is_refused():
    x = rgrad.ones(2, requires_grad=True)
    assert x.grad_dtype == f32
    assert rgrad.ones(2, dtype=rgrad.int64).grad_dtype == rgrad.int64
    x.grad_dtype = f64
    with pytest.raises(RuntimeError, match="a gradient with dtype 'float' to a tensor with grad_dtype 'Double'"):
        x.grad = rgrad.ones(2)
    x.grad = rgrad.ones(2, dtype=f64)
    with pytest.raises(RuntimeError, match="Cannot set grad_dtype to 'Float' because there is already a gradient"):
        x.grad_dtype = f32
    with pytest.raises(RuntimeError, match="grad_dtype must be a rgrad.dtype or None, but got int"):
        x.grad_dtype = 3
    y = x * 1
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        _ = y.grad_dtype
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        y.grad_dtype = f64
    with pytest.raises(RuntimeError, match="a gradient with device type 'meta' to a tensor with device type 'cpu'"):
        rgrad.ones(2).grad = rgrad.ones(2, device="meta")
