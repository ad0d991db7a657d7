"""Leaves, ``.grad``, ``grad_dtype``, ``resize_``, ``new``, parts that are no views, saved tensors: beside PyTorch.

Each function gets a library and gives values, or raises; both libraries must agree on values, error types and the first
words of messages.
"""

import warnings

import pytest
import torch

import rgrad


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


def check_isinf(m):
    return m.is_inference(m.ones(2)), m.ones(2).is_inference()


def check_isinf2(m):
    with m.inference_mode():
        return m.is_inference(m.ones(2))


def check_mt2(m):
    r = []
    r.append(m._C._is_multithreading_enabled())
    with m.autograd.set_multithreading_enabled(False):
        r.append(m._C._is_multithreading_enabled())
    r.append(m._C._is_multithreading_enabled())
    return r


def check_mt3(m):
    r = []
    x = m.autograd.set_multithreading_enabled(False)
    r.append(m._C._is_multithreading_enabled())
    m.autograd.set_multithreading_enabled(True)
    r.append(m._C._is_multithreading_enabled())
    return r, repr(x)[:30]


def check_mt_dec(m):
    @m.autograd.set_multithreading_enabled(False)
    def f():
        return m._C._is_multithreading_enabled()

    r = m._C._is_multithreading_enabled()
    return r, f(), m._C._is_multithreading_enabled()


def check_mt_back(m):
    with m.autograd.set_multithreading_enabled(False):
        x = m.ones(2, requires_grad=True)
        (x * x).sum().backward()
        return x.grad.tolist()


def check_mt_seen(m):
    c = []
    x = m.ones(2, requires_grad=True)
    x.register_hook(lambda g: c.append(m._C._is_multithreading_enabled()))
    with m.autograd.set_multithreading_enabled(False):
        (x * x).sum().backward()
    return c


def check_saved_inst(m):
    x = m.ones(2, requires_grad=True)
    y = x * x
    s = y.grad_fn._raw_saved_self
    return isinstance(s, m._C._autograd.SavedTensor), type(s).__name__


def check_saved_new(m):
    return m._C._autograd.SavedTensor()


def check_saved_hooks(m):
    x = m.ones(2, requires_grad=True)
    y = x * x
    s = y.grad_fn._raw_saved_self
    s.register_hooks(lambda t: t * 2, lambda t: t)
    return y.grad_fn._saved_self.tolist()


def check_new(m):
    return (
        m.ones(2).new(3).shape,
        m.ones(2, dtype=m.int64).new([1, 2]).tolist(),
        str(m.ones(2).new([1, 2]).dtype)[6:],
        m.ones(2).new().shape,
        m.ones(2).new(2, 3).shape,
    )


def check_new2(m):
    return m.ones(2).new((2, 3)).tolist(), m.ones(2).new(m.Size([2, 3])).shape, m.ones(2).new(m.ones(3)).shape


def check_new3(m):
    return m.ones(2, dtype=m.float64).new(m.ones(3, dtype=m.float64)).dtype == m.float64


def check_new5(m):
    return m.ones(2).new("a")


def check_new6(m):
    return m.ones(2, requires_grad=True).new([1.0]).requires_grad


def check_new7(m):
    return m.ones(2).new([1.0], device="cpu").tolist()


def check_new9(m):
    return m.ones(2, dtype=m.bool).new([1, 0, 2]).tolist(), m.ones(2, dtype=m.int32).new([1.7]).tolist()


def check_new11(m):
    return m.ones(2).new(2.5)


def check_new13(m):
    return m.ones(2).new(size=(2,)).shape


def check_new14(m):
    return m.ones(2).new(data=[2.0]).tolist()


def check_del_grad(m):
    x = m.ones(2, requires_grad=True)
    (x * x).sum().backward()
    del x.grad
    return x.grad


def check_del_grad2(m):
    x = m.ones(2, requires_grad=True)
    del x.grad
    return x.grad


def check_del_data(m):
    x = m.ones(2)
    del x.data


def check_del_rg(m):
    x = m.ones(2)
    del x.requires_grad


def check_rs1(m):
    x = m.arange(6.0)
    x.resize_(2, 2)
    return x.tolist(), x._version


def check_rs3(m):
    x = m.arange(6.0, requires_grad=True)
    x.resize_(6)


def check_rs4(m):
    x = m.arange(6.0, requires_grad=True) * 1
    x.resize_(6)


def check_rs5(m):
    x = m.arange(6.0, requires_grad=True)
    with m.no_grad():
        x.resize_(6)
        return x.shape


def check_rs6(m):
    x = m.arange(6.0, requires_grad=True)
    y = (x * x).sum()
    with m.no_grad():
        x.resize_(6)
    y.backward()


def check_rs7(m):
    x = m.arange(6.0, requires_grad=True)
    y = (x * 2).sum()
    with m.no_grad():
        x.resize_(4)
    y.backward()
    return x.grad.shape


def check_rs8(m):
    return m.arange(6.0).resize_as_(m.ones(2, 3)).tolist()


def check_rs10(m):
    return (
        m.arange(6.0).resize_([2, 2]).tolist(),
        m.arange(6.0).resize_(m.Size([2, 2])).tolist(),
        m.arange(6.0).resize_(()).tolist(),
    )


def check_rs11(m):
    x = m.arange(6.0)
    v = x[2:]
    v.resize_(2, 1)
    return v.tolist(), v.storage_offset(), x.tolist(), x._version


def check_rs13(m):
    x = m.arange(6.0).view(2, 3).t()
    x.resize_(6)
    return x.tolist(), x.stride()


def check_rs14(m):
    x = m.arange(6.0).view(2, 3).t()
    x.resize_(3, 2)
    return x.tolist(), x.stride()


def check_rs15(m):
    return m.arange(6.0).resize_as_(m.ones(3, 2).t()).stride()


def check_rs16(m):
    return m.arange(6.0).resize_as_([2])


def check_rs17(m):
    return m.arange(6.0).resize_(2, 2, memory_format=m.contiguous_format).tolist(), m.arange(6.0).resize_(
        size=(2,)
    ).tolist() if 0 else 0


def check_rs18(m):
    return m.arange(6.0).resize_("a")


def check_rs19(m):
    return m.arange(6.0).resize_()


def check_rs25(m):
    with m.inference_mode():
        x = m.arange(6.0)
    x.resize_(2)


def check_rs26(m):
    return m.func.grad(lambda x: x.resize_(2).sum())(m.arange(6.0))


def check_rs29(m):
    import numpy as np

    x = m.from_numpy(np.arange(6.0))
    x.resize_(8)
    return x.shape


def check_rs31(m):
    return m.arange(6.0).resize_(2**62)


def check_rs32(m):
    x = m.arange(6.0).expand(3, 6)
    x.resize_(2, 2)
    return x.tolist(), x.stride()


def check_us2(m):
    x = m.arange(6.0, requires_grad=True)
    r = x.unsafe_split(4)
    r[0].mul_(2)
    (r[0].sum() + r[1].sum()).backward()
    return x.grad.tolist(), type(r[0].grad_fn).__name__, type(r)


def check_us3(m):
    x = m.arange(6.0, requires_grad=True)
    r = x.unsafe_chunk(4)
    r[0].mul_(2)
    (r[0].sum() + r[1].sum()).backward()
    return x.grad.tolist(), [q.tolist() for q in r], type(r[1].grad_fn).__name__


def check_us4(m):
    x = m.arange(6.0)
    r = x.unsafe_split(4)
    r[0].mul_(2)
    return x.tolist(), x._version, r[0]._version


def check_us5(m):
    return [q.tolist() for q in m.unsafe_split_with_sizes(m.arange(6.0), [2, 4])]


def check_us6(m):
    return m.unsafe_split_with_sizes(m.arange(6.0), [2, 3])


def check_us7(m):
    return m.unsafe_split(m.arange(6.0), 0)


def check_us8(m):
    return m.unsafe_chunk(m.arange(6.0), 0)


def check_us9(m):
    return [q.tolist() for q in m.unsafe_chunk(m.arange(6.0).view(2, 3), 2, 1)], [
        q.tolist() for q in m.unsafe_split(m.arange(6.0).view(2, 3), split_size=2, dim=-1)
    ]


def check_us10(m):
    x = m.arange(6.0, requires_grad=True) * 1
    r = m.unsafe_split_with_sizes(x, [2, 4])
    return type(r[0].grad_fn).__name__, r[1].output_nr


def check_us12(m):
    return m.func.vmap(lambda x: m.unsafe_split(x, 2)[0] * 2)(m.arange(6.0).view(2, 3)).tolist()


def check_gd(m):
    x = m.ones(2, requires_grad=True)
    return x.grad_dtype


def check_gd2(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    (x * 2).sum().backward()
    return str(x.grad.dtype)[6:], str(x.grad_dtype)[6:]


def check_gd3(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = None
    (x * 2).sum().backward()
    return str(x.grad.dtype)[6:], str(x.grad_dtype)[6:]


def check_gd4(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    x.grad = m.ones(2)


def check_gd5(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = None
    x.grad = m.ones(2, dtype=m.float64)
    (x * 2).sum().backward()
    return str(x.grad.dtype)


def check_gd6(m):
    x = m.ones(2, requires_grad=True) * 2
    return x.grad_dtype


def check_gd7(m):
    x = m.ones(2, requires_grad=True) * 2
    x.grad_dtype = m.float64


def check_gd8(m):
    x = m.ones(2)
    x.grad_dtype = m.float64
    return x.grad_dtype, x.requires_grad


def check_gd9(m):
    x = m.ones(2, requires_grad=True)
    x.grad = m.ones(2)
    x.grad_dtype = m.float64


def check_gd10(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = 3


def check_gd11(m):
    x = m.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.grad_dtype = m.float64
    y.backward()
    return x.grad.dtype


def check_gd12(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    return m.autograd.grad((x * 2).sum(), x)[0].dtype


def check_gd14(m):
    c = []
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    x.register_hook(lambda g: c.append(str(g.dtype)))
    (x * 2).sum().backward()
    return c


def check_gd15(m):
    x = m.ones(2, dtype=m.int64)
    return x.grad_dtype


def check_gd16(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.int64


def check_gd17(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    x.grad = m.ones(2, dtype=m.float64)
    return str(x.grad.dtype)


def check_gd18(m):
    x = m.ones(2, requires_grad=True)
    return x.detach().grad_dtype, (x * 2).detach().grad_dtype


def check_gd19(m):
    x = m.ones(2)
    x.grad = m.ones(2, dtype=m.float64)


def check_gd20(m):
    x = m.ones(2)
    x.grad = m.ones(3)


def check_gd21(m):
    x = m.ones(2)
    x.grad = 3


def check_gd22(m):
    x = m.ones(2)
    x.grad = x


def check_gd23(m):
    x = m.ones(2)
    x.grad = m.ones(2, device="meta")


def check_ver(m):
    x = m.ones(2)
    m._C._autograd._unsafe_set_version_counter((x,), (5,))
    return x._version


def check_ver2(m):
    x = m.ones(2)
    with m.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    return x._version


CHECKS = {name[6:]: f for name, f in list(globals().items()) if name.startswith("check_")}


def told(check, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = check(library)
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
            return kind, str(error)
    return repr(result).replace("torch.", "").replace("rgrad.", ""), None


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_both_libraries_agree(check):
    expected, got = told(check, torch), told(check, rgrad)
    assert got[0] == expected[0]
    if expected[1] is not None:
        # The first sentence, or what a longer message of our own begins with.
        words = expected[1].split(". ")[0].split(": [")[0].rstrip(".")
        assert words in got[1].replace("rgrad", "torch"), got[1]


def pairs():
    """Tensors of every kind made in and outside of inference mode."""

    def base(m, requires_grad=False):
        return m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=requires_grad)

    def inside(m, f):
        with m.inference_mode():
            return f()

    def first_row_inside(m, b):
        return inside(m, lambda: b[0])

    return {
        "inference": lambda m: inside(m, lambda: base(m)[0]),
        "leaf": lambda m: m.tensor([1.0, 2.0], requires_grad=True),
        "computed": lambda m: m.tensor([1.0, 2.0], requires_grad=True) * 1,
        "plain": lambda m: m.tensor([1.0, 2.0]),
        "view": lambda m: base(m)[0],
        "view of leaf": lambda m: base(m, True)[0],
        "view of computed": lambda m: (base(m, True) * 1)[0],
        "inference view of normal": lambda m: first_row_inside(m, base(m)),
        "inference view of computed": lambda m: first_row_inside(m, base(m, True) * 1),
        "inference view of leaf": lambda m: first_row_inside(m, base(m, True)),
        "normal view of inference": lambda m: inside(m, lambda: base(m))[0],
    }


def saved_by_a_function(m, a):
    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Twice.apply(a)


OPERATIONS = {
    "mul": lambda m, a, b: a * b,
    "add": lambda m, a, b: a + b,
    "matmul": lambda m, a, b: a @ b,
    "mul_": lambda m, a, b: a.mul_(b),
    "add_": lambda m, a, b: a.add_(b),
    "copy_": lambda m, a, b: a.copy_(b),
    "out": lambda m, a, b: m.mul(b.detach(), b.detach(), out=a),
    "item assignment": lambda m, a, b: a.__setitem__(0, b[0]),
    "view": lambda m, a, b: a.view(2, 1),
    "write through a view": lambda m, a, b: a.view(2).mul_(b),
    "unsqueeze_": lambda m, a, b: a.unsqueeze_(0),
    "where": lambda m, a, b: m.where(a > 0, a, b),
    "cat": lambda m, a, b: m.cat([a, b]),
    "exp": lambda m, a, b: a.exp(),
    "detach_": lambda m, a, b: a.detach_(),
    "requires_grad_": lambda m, a, b: a.requires_grad_(),
    "requires_grad": lambda m, a, b: setattr(a, "requires_grad", True),
    "data": lambda m, a, b: setattr(a, "data", b),
    "grad": lambda m, a, b: setattr(a, "grad", b.detach()),
    "clone": lambda m, a, b: a.clone(),
    "contiguous": lambda m, a, b: a.contiguous(),
    "zero_": lambda m, a, b: a.zero_(),
    "resize_": lambda m, a, b: a.resize_(1),
    "unbind": lambda m, a, b: a.unbind(0)[0],
    "parameter": lambda m, a, b: m.nn.Parameter(a),
    "backward": lambda m, a, b: (a * 3).sum().backward(),
    "saved": lambda m, a, b: saved_by_a_function(m, a),
    "func.grad": lambda m, a, b: m.func.grad(lambda x: (x * b).sum())(a),
    "vmap": lambda m, a, b: m.func.vmap(lambda x: x * x)(a),
    "is_inference": lambda m, a, b: m.is_inference(a),
    "increment_version": lambda m, a, b: m.autograd.graph.increment_version(a),
}


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_inference_tensors_among_normal_ones(operation, mode):
    kinds = pairs()

    def state(m, x):
        if not isinstance(x, m.Tensor):
            return x
        node = x.grad_fn
        # A node that is made anew has another name in PyTorch.
        known = (
            None
            if node is None
            else type(node).__name__.replace("AsStrided", "View").replace("Select", "View").replace("Unsqueeze", "View")
        )
        return x.tolist(), x.is_inference(), x.requires_grad, x.is_leaf, known

    def ran(m, first, second):
        a, b = kinds[first](m), kinds[second](m)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with getattr(m, mode)():
                    result = operation(m, a, b)
                return repr((state(m, result), state(m, a))), ""
            except Exception as error:
                kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
                return kind, str(error)

    wrong = []
    for first in kinds:
        for second in ("inference", "leaf", "computed", "plain"):
            expected, got = ran(torch, first, second), ran(rgrad, first, second)
            words = expected[1].split(". ")[0].rstrip(".")
            if got[0] != expected[0] or words not in got[1].replace("rgrad", "torch"):
                wrong.append((first, second, expected, got))
    assert wrong == []
