"""``resize_``, ``Tensor.new``, parts that are no views, and version counters set by hand."""

import numpy as np
import pytest

import rgrad

f64 = rgrad.float64


def test_resize_keeps_the_elements_in_memory_order(device):
    x = rgrad.arange(6.0, device=device)
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x._version == 1
    assert x.resize_((6,)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert x.resize_(rgrad.Size([3])).tolist() == [0.0, 1.0, 2.0]
    assert x.resize_(size=()).tolist() == 0.0
    grown = rgrad.arange(6.0, device=device).resize_(40)
    assert grown.shape == (40,)
    assert grown[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert grown._version == 1
    grown.zero_()
    assert grown.sum().item() == 0.0


def test_resize_of_other_strides():
    x = rgrad.arange(6.0).view(2, 3).t()
    assert x.resize_(3, 2).stride() == (1, 3)
    assert x.resize_(6).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert rgrad.arange(6.0).expand(3, 6).resize_(2, 2).stride() == (2, 1)
    assert rgrad.arange(6.0).resize_as_(rgrad.ones(3, 2).t()).stride() == (3, 1)


def test_a_view_that_is_resized_stays_at_its_place_and_writes_reach_the_base():
    base = rgrad.arange(6.0)
    view = base[2:]
    view.resize_(2, 1)
    assert view.tolist() == [[2.0], [3.0]]
    assert base._version == 1
    w = rgrad.ones(2, 1, requires_grad=True)
    view.mul_(w)
    base.sum().backward()
    assert w.grad.tolist() == [[2.0], [3.0]]


def test_shared_memory_does_not_move():
    base = rgrad.arange(6.0)
    view = base.view(2, 3)
    with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
        base.resize_(100)
    assert base.shape == (6,)
    assert base._version == 0
    assert view.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
        rgrad.from_numpy(np.arange(6.0)).resize_(8)


def test_pending_results_are_computed_first():
    x = rgrad.ones(300, 300) * 2
    y = x + 1
    x.resize_(400, 400)
    assert y.sum().item() == 3 * 90000
    assert x.view(-1)[:90000].sum().item() == 180000


def test_resize_asks_the_history():
    x = rgrad.ones(2, requires_grad=True)
    for t in (x, x * 1):
        with rgrad.no_grad(), pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            t.resize_(2)
    y = rgrad.ones(2)
    z = (x * y).sum()
    y.resize_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    with rgrad.inference_mode():
        made = rgrad.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        made.resize_(1)
    with pytest.raises(RuntimeError, match="frozen"):
        rgrad.ones(2).freeze_().resize_(1)
    with rgrad.autograd.forward_ad.dual_level():
        dual = rgrad.autograd.forward_ad.make_dual(rgrad.ones(2), rgrad.ones(2))
        with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
            dual.resize_(1)


@pytest.mark.parametrize("sizes", [(2**62,), (2**40, 2**40), (-1,), (2, -3)])
def test_impossible_sizes(sizes):
    x = rgrad.ones(2)
    with pytest.raises(RuntimeError):
        x.resize_(*sizes)
    assert x.tolist() == [1.0, 1.0]
    assert x._version == 0
    with pytest.raises(TypeError, match="resize_"):
        x.resize_("a")
    with pytest.raises(TypeError, match="missing 1 required positional arguments"):
        x.resize_()
    with pytest.raises(
        TypeError, match=r"resize_as_\(\): argument 'the_template' \(position 1\) must be Tensor, not list"
    ):
        x.resize_as_([2])


def test_meta():
    assert rgrad.empty(2, device="meta").resize_(5).shape == (5,)


# ---- Tensor.new ------------------------------------------------------------------------------------------------------


def test_new_is_of_the_same_kind():
    x = rgrad.ones(2, dtype=f64, requires_grad=True)
    assert x.new(3, 2).shape == (3, 2)
    assert x.new().shape == (0,)
    assert x.new(rgrad.Size([2])).shape == (2,)
    made = x.new([1, 2])
    assert made.dtype == f64
    assert made.tolist() == [1.0, 2.0]
    assert not made.requires_grad
    assert x.new((2, 3)).tolist() == [2.0, 3.0]
    assert x.new(range(2)).tolist() == [0.0, 1.0]
    assert x.new(np.ones(2, np.int32)).dtype == f64
    assert x.new(data=[2.0]).tolist() == [2.0]
    assert x.new(size=(2,)).shape == (2,)
    assert rgrad.ones(1, dtype=rgrad.int32).new([1.7]).tolist() == [1]
    other = rgrad.ones(2, dtype=f64)
    alias = x.new(other)
    alias[0] = 5
    assert other.tolist() == [5.0, 1.0]
    assert rgrad.ones(2, device="meta").new(3).is_meta


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("a",), TypeError, "invalid data type 'str'"),
        ((2.5,), TypeError, r"data must be a sequence \(got float\)"),
        ((None,), TypeError, r"data must be a sequence \(got NoneType\)"),
        ((True,), TypeError, r"data must be a sequence \(got bool\)"),
        (({1: 2},), TypeError, r"data must be a sequence \(got dict\)"),
        ((2, 2.5), TypeError, "argument 'size'"),
        ((-1,), RuntimeError, "negative dimension -1"),
        ((rgrad.ones(2, dtype=rgrad.int64),), TypeError, "expected a tensor of dtype rgrad.float32"),
    ],
)
def test_what_new_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        rgrad.ones(2).new(*arguments)
    with pytest.raises(
        RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was passed"
    ):
        rgrad.ones(2).new(2, device="meta")
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        rgrad.ones(2).new(foo=1)


# ---- parts that are no views -----------------------------------------------------------------------------------------

PARTS = {
    "unsafe_split": lambda x: x.unsafe_split(4),
    "unsafe_chunk": lambda x: rgrad.unsafe_chunk(x, 2),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([2, 4]),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_unsafe_parts_share_memory_and_are_no_views(parts):
    x = rgrad.arange(6.0)
    first, second = parts(x)
    assert not first._is_view()
    assert first._base is None
    first.mul_(2)
    assert x.tolist()[: len(first)] == first.tolist()
    assert (x._version, first._version, second._version) == (0, 1, 0)
    leaf = rgrad.arange(6.0, requires_grad=True)
    first, second = parts(leaf)
    assert type(second.grad_fn).__name__.startswith("UnsafeSplit")
    assert (first.output_nr, second.output_nr) == (0, 1)
    n = len(first)
    first.mul_(2)
    (first.sum() + second.sum()).backward()
    assert leaf.grad.tolist() == [2.0] * n + [1.0] * (6 - n)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_unsafe_parts_have_derivatives_of_all_kinds(parts):
    x = rgrad.arange(6.0, dtype=f64, requires_grad=True)
    rgrad.autograd.gradcheck(lambda x: parts(x)[1] * 2, (x,), check_forward_ad=True, check_batched_grad=True)
    rgrad.autograd.gradgradcheck(lambda x: parts(x)[0] ** 2, (x,))
    tangent = rgrad.func.jvp(lambda x: parts(x)[0] * 2, (rgrad.arange(6.0),), (rgrad.ones(6),))[1]
    assert set(tangent.tolist()) == {2.0}
    batch = rgrad.arange(12.0).view(2, 6)
    together = rgrad.vmap(lambda x: parts(x)[1] * 2)(batch)
    assert together.tolist() == [(parts(row)[1] * 2).tolist() for row in batch]


# ---- version counters ------------------------------------------------------------------------------------------------


def test_versions_can_be_set_and_preserved():
    x, y = rgrad.ones(2), rgrad.ones(2)
    rgrad._C._autograd._unsafe_set_version_counter((x, y), (5, 7))
    assert (x._version, y._version) == (5, 7)
    with rgrad.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
    assert (x._version, y._version) == (5, 7)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 versions"):
        rgrad._C._autograd._unsafe_set_version_counter((x,), (5, 7))


def test_saved_tensors_are_a_class_of_the_native_module():
    kind = rgrad._C._autograd.SavedTensor
    x = rgrad.ones(2, requires_grad=True)
    assert isinstance((x * x).grad_fn._raw_saved_self, kind)
    assert kind is rgrad.autograd.SavedTensor
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        kind()
