"""A leaf that is given other memory, and what ``.data`` takes: beside PyTorch."""

import pytest

from library_kit import agree, named


def L(g):
    return None if g is None else (g.tolist(), str(g.dtype).split(".")[1])


def check_plain(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    w.data = m.tensor([5.0, 6.0])
    try:
        y.backward()
    except RuntimeError:
        return "err"
    return L(w.grad)


def check_linear(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y.backward()
    return L(w.grad)


def check_twice(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad)


def check_hook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.register_hook(lambda g: c.append(g.tolist()))
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad), c


def check_posthook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda g: c.append(g.grad.tolist()))
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad), c


def check_grad(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    return L(m.autograd.grad(y, w)[0])


def check_grad2(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y = y + (w * w).sum()
    return L(m.autograd.grad(y, w)[0])


def check_inputs(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.tensor([5.0, 6.0])
    y.backward(inputs=[w])
    return L(w.grad)


def check_shape(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(3)
    y.backward()
    return L(w.grad)


def check_shape_used(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(3)
    z = (w * 2).sum()
    (y).backward()
    z.backward()
    return L(w.grad)


def check_shape_used2(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(3)
    z = (w * 2).sum()
    (y + z).backward()
    return L(w.grad)


def check_shape_grad(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(3)
    return L(m.autograd.grad(y, w)[0])


def check_shape_used3(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.data = m.ones(3)
    z = (w * 2).sum()
    z.backward()
    return L(w.grad)


def check_dtype(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(2, dtype=m.float64)
    y.backward()
    return L(w.grad), str(w.dtype)[6:]


def check_dtype2(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(2, dtype=m.float64)
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad)


def check_dtype_g(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(2, dtype=m.float64)
    return L(m.autograd.grad(y, w)[0])


def check_dtype_gu(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(2, dtype=m.float64)
    return m.autograd.grad(y, w, allow_unused=True)[0] is None


def check_dtype_hook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.register_hook(lambda g: c.append(L(g)))
    y = (w * 3).sum()
    w.data = m.ones(2, dtype=m.float64)
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad), c


def check_int(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.data = m.ones(2, dtype=m.int64)


def check_int_nograd(m):
    w = m.tensor([1.0, 2.0])
    w.data = m.ones(2, dtype=m.int64)
    return str(w.dtype)[6:]


def check_rg_offon(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad)


def check_rg_offon_hook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.register_hook(lambda g: c.append(g.tolist()))
    y = (w * 3).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad), c


def check_detach_on(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.detach_()
    w.requires_grad_()
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad), w.requires_grad


def check_set_(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    with m.no_grad():
        w.set_(m.tensor([5.0, 6.0]))
    y = y + (w * w).sum()
    y.backward()
    return L(w.grad)


def check_set_shape(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    with m.no_grad():
        w.set_(m.ones(3))
    y.backward()
    return L(w.grad)


def check_swap(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    v = m.tensor([5.0, 6.0], requires_grad=True)
    m.utils.swap_tensors(w, v)
    return w.tolist(), v.tolist()


def check_module_to(m):
    layer = m.nn.Linear(2, 1)
    w = layer.weight
    y = layer(m.ones(1, 2)).sum()
    layer.to(m.float64)
    i = layer.weight is w
    y = y + layer(m.ones(1, 2, dtype=m.float64)).sum()
    y.backward()
    return i, L(layer.weight.grad)


def check_module_to2(m):
    layer = m.nn.Linear(2, 1)
    w = layer.weight
    y = layer(m.ones(1, 2)).sum()
    layer.to(m.float64)
    i = layer.weight is w
    y.backward()
    return i, L(layer.weight.grad)


def check_load(m):
    layer = m.nn.Linear(2, 1, bias=False)
    w = layer.weight
    y = layer(m.ones(1, 2)).sum()
    layer.load_state_dict({"weight": m.ones(1, 2)})
    y = y + layer(m.ones(1, 2)).sum()
    y.backward()
    return layer.weight is w, L(layer.weight.grad)


def check_load_assign(m):
    layer = m.nn.Linear(2, 1, bias=False)
    w = layer.weight
    y = layer(m.ones(1, 2)).sum()
    layer.load_state_dict({"weight": m.ones(1, 2)}, assign=True)
    y = y + layer(m.ones(1, 2)).sum()
    y.backward()
    return layer.weight is w, L(layer.weight.grad), L(w.grad)


def check_accnode(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    n = y.grad_fn.next_functions[0][0]
    w.data = m.tensor([5.0, 6.0])
    y2 = w * 2
    return y2.grad_fn.next_functions[0][0] is n, n.variable is w


def check_accnode_hook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    n = y.grad_fn.next_functions[0][0]
    n.register_hook(lambda i, o: c.append(1))
    w.data = m.tensor([5.0, 6.0])
    y2 = (w * 2).sum()
    y2.backward()
    return c


def check_nonleaf_data(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    y.data = m.ones(2)
    y.sum().backward()
    return L(w.grad), y.requires_grad


def check_nonleaf_data_shape(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    y.data = m.ones(3)
    y.sum().backward()
    return L(w.grad), y.requires_grad


def check_nonleaf_data_dtype(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    y.data = m.ones(2, dtype=m.float64)
    y.sum().backward()
    return L(w.grad), y.requires_grad


def check_data_get(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    w.data.mul_(2)
    y.backward()
    return L(w.grad), w.tolist(), w._version


def check_data_self(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    w.data = w.data
    y.backward()
    return L(w.grad), w.tolist(), w._version


def check_version(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    v = w._version
    d = m.ones(2)
    d.add_(1)
    w.data = d
    v2 = w._version
    d.add_(1)
    return v, v2, w._version


def check_two_leafs(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    p = m.nn.Parameter(w)
    y = (w * 3).sum() + (p * 2).sum()
    w.data = m.ones(2)
    y.backward()
    return L(w.grad), L(p.grad)


def check_view(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    v = w.view(2)
    w.data = m.ones(2)
    (v * 3).sum().backward()
    return L(w.grad), v.tolist()


def check_view_grad_old(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    v = w[0]
    w.data = m.ones(3)
    v.backward()
    return L(w.grad)


def check_retain(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    y.backward(retain_graph=True)
    w.data = m.ones(2)
    y.backward()
    return L(w.grad)


def check_retain_none(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    y.backward(retain_graph=True)
    w.data = m.ones(2)
    w.grad = None
    y.backward(retain_graph=True)
    return L(w.grad)


def check_sgd(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    o = m.optim.SGD([w], lr=0.5)
    y = (w * 3).sum()
    y.backward(retain_graph=True)
    o.step()
    y.backward()
    return L(w.grad), w.tolist()


def check_deep(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    w.data = m.ones(2)
    (g,) = m.autograd.grad((y * w).sum(), w, create_graph=True)
    return L(g), L(m.autograd.grad(g.sum(), w)[0])


def check_edge(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    e = m.autograd.graph.get_gradient_edge(w)
    y = (w * 3).sum()
    w.data = m.ones(2)
    return L(m.autograd.grad(y, e)[0])


def check_shape_hook(m):
    c = []
    w = m.tensor([1.0, 2.0], requires_grad=True)
    w.register_hook(lambda g: c.append(tuple(g.shape)))
    y = (w * 3).sum()
    w.data = m.ones(3)
    (y).backward()
    return c


def check_data_type(m):
    w = m.tensor([1.0, 2.0])
    w.data = 3


def check_data_del(m):
    w = m.tensor([1.0, 2.0])
    del w.data


def check_grad_data(m):
    w = m.tensor([1.0, 2.0], requires_grad=True)
    (w * 3).sum().backward()
    g = w.grad
    g.data = m.zeros(2)
    return L(w.grad), w.grad is g


def check_layout(m):
    w = m.ones(2, 3, requires_grad=True)
    y = (w * 3).sum()
    w.data = m.ones(3, 2).t()
    y.backward()
    return w.grad.stride()


def check_smaller_first(m):
    w = m.ones(3, 3, requires_grad=True)
    y = w.exp().sum()
    w.data = m.ones(3)
    y.backward()
    return L(w.grad)


def check_broadcast_first(m):
    w = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * w).sum()
    w.data = m.ones(2, 3)
    y.backward()
    return L(w.grad), w.grad.stride()


def check_kept_first(m):
    w = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * w).sum()
    w.data = m.ones(3, 1)
    y.backward()
    return L(w.grad)


def check_other_size_create_graph(m):
    w = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * w).sum()
    w.data = m.ones(4)
    y.backward(create_graph=True)


def check_broadcast_create_graph(m):
    w = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * w * w).sum()
    w.data = m.ones(2, 3)
    y.backward(create_graph=True)
    return L(w.grad), w.grad.requires_grad


def check_other_shape_with_gaps(m):
    w = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * w).sum()
    w.data = m.ones(2, 3)[:, ::2]
    y.backward()
    return L(w.grad)


def check_to_inplace(m):
    layer = m.nn.Linear(2, 1, bias=False)
    m.optim.SGD(layer.parameters(), lr=1.0)
    y = layer(m.ones(1, 2)).sum()
    layer.double()
    y.backward()
    return L(layer.weight.grad)


def check_future_swap(m):
    m.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = m.nn.Linear(2, 1, bias=False)
        w = layer.weight
        layer.double()
        return layer.weight is w, str(w.dtype)[6:]
    finally:
        m.__future__.set_swap_module_params_on_conversion(False)


CHECKS = named(globals())


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_both_libraries_agree(check):
    agree(check)
