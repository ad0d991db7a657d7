"""``grad_dtype``, ``resize_``, ``new``, parts that are no views, threads, saved tensors: beside PyTorch."""

import pytest

from library_kit import agree, named


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


CHECKS = named(globals())


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_both_libraries_agree(check):
    agree(check)
