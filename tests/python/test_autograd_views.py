"""Views and in-place operations under autograd: versions, rebased histories, creation kinds."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf

pytestmark = pytest.mark.usefixtures("device")


def grad_of(f: Any, *values: float) -> list[float]:
    x = leaf(*values)
    f(x).sum().backward()
    return x.grad.tolist()


# --- versions ----------------------------------------------------------------------------------------------


def test_version_counts_writes_and_is_shared() -> None:
    x = rgrad.zeros(2, 2)
    assert x._version == 0
    v = x[0]
    v.add_(1)
    x.mul_(2)
    x[1] = 5
    assert x._version == v._version == x.detach()._version == 3
    assert x.clone()._version == 0
    d = x.data
    d.fill_(0)
    assert x._version == 3
    with rgrad.no_grad():
        x.add_(1)
    assert x._version == 4
    x.copy_(rgrad.ones(2, 2))
    x.zero_()
    rgrad.add(x, 1, out=x)
    assert x._version == 7


def test_saved_tensor_changed_in_place() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*\[2\].*version 1; expected version 0"):
        z.sum().backward()
    assert x.grad is None


def test_saved_output_changed_in_place() -> None:
    x = leaf(1.0)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*output 0 of Exp"):
        y.backward()


def test_saved_tensor_changed_through_a_view_or_under_no_grad() -> None:
    for change in (lambda t: t[0].zero_(), lambda t: t.detach().add_(1), lambda t: t.view(2, 1).mul_(2)):
        x = leaf(1.0, 2.0)
        y = x * 1
        z = y.pow(2)
        with rgrad.no_grad():
            change(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_in_place_is_fine_where_nothing_was_saved() -> None:
    assert grad_of(lambda x: (x * 2).add_(1).mul_(3), 1.0) == [6.0]
    assert grad_of(lambda x: (x + 1).neg_().relu_(), 1.0, -3.0) == [0.0, -1.0]
    assert grad_of(lambda x: (x * 1).exp_(), 0.0) == [1.0]


def test_in_place_history_through_the_same_tensor() -> None:
    x = leaf(3.0)
    y = x * 1
    y.mul_(y.clone())
    assert y.item() == 9.0
    x.grad = None
    y = x * 1
    y.mul_(y)  # saves what it overwrites
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = leaf(3.0)
    w = z * 1
    w += w
    w *= 2
    w.backward()
    assert z.grad.item() == 4.0


def test_in_place_on_a_leaf() -> None:
    message = "a leaf Variable that requires grad is being used in an in-place operation"
    for change in (
        lambda x: x.add_(1),
        lambda x: x.zero_(),
        lambda x: x.copy_(rgrad.zeros(2)),
        lambda x: x.__setitem__(0, 5.0),
        lambda x: x.__iadd__(1),
        lambda x: x.clamp_(0),
    ):
        x = leaf(1.0, 2.0)
        with pytest.raises(RuntimeError, match=message):
            change(x)
        assert x.tolist() == [1.0, 2.0]
        assert x._version == 0
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x[0].add_(1)
    assert x.tolist() == [1.0, 2.0]


def test_in_place_writes_a_constant_that_becomes_part_of_the_graph() -> None:
    x = leaf(1.0, 2.0)
    c = rgrad.zeros(2, dtype=real())
    c.add_(x * 3)
    assert c.requires_grad
    assert not c.is_leaf
    c.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_copy_under_autograd() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0)
    z = x * 2
    z.copy_(y)  # broadcast
    z.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert y.grad.tolist() == [2.0]


def test_copy_from_itself_and_overlaps() -> None:
    x = rgrad.arange(6.0)
    x.copy_(x)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    m = rgrad.arange(9.0).reshape(3, 3)
    m.copy_(m.t().clone())
    assert m.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    y = rgrad.arange(6.0)
    with pytest.raises(RuntimeError, match="(?i)memory location|overlap"):
        y[1:].add_(y[:-1])
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    e = rgrad.zeros(1).expand(3)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        e.add_(1)
    assert e.tolist() == [0.0, 0.0, 0.0]


# --- views ---------------------------------------------------------------------------------------------------


def test_base_of_views() -> None:
    x = rgrad.zeros(2, 3)
    v = x.t()[0]
    assert v._base is x
    assert x._base is None
    assert v._is_view()
    assert not x._is_view()
    assert x.clone()._base is None


def test_write_through_a_view_reaches_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    view.mul_(10)
    assert base.tolist() == [1.0, 20.0, 30.0]
    assert type(base.grad_fn).__name__ == "CopySlices"
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]


def test_write_into_the_base_reaches_the_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    old = view.grad_fn
    base.mul_(10)
    assert view.grad_fn is not old
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 10.0]


def test_two_views_of_one_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    a, b = base[:2], base[1:]
    a.mul_(10)
    b.mul_(3)
    (a.sum() + 2 * b.sum()).backward()
    # element 0: a; element 1: a and b; element 2: b
    assert x.grad.tolist() == [10.0, 30.0 + 2 * 30.0, 2 * 3.0]


def test_chain_of_views() -> None:
    x = leaf(*range(8))
    base = x * 1
    v = base.view(2, 4).t()[1:3].select(1, 1)  # elements 5 and 6
    v.mul_(100)
    assert base.tolist() == [0, 1, 2, 3, 4, 500, 600, 7]
    assert v._base is base
    (base * base).sum().backward()
    assert x.grad.tolist() == [0, 2, 4, 6, 8, 2 * 5 * 1e4, 2 * 6 * 1e4, 14]


def test_view_of_a_view_after_the_middle_changed() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    base = x * 1
    middle = base.view(2, 2)
    end = middle[0]
    middle.mul_(2)
    end.add_(base[2:].detach())
    end.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_assigning_differentiable_values() -> None:
    x, y = leaf(1.0, 2.0, 3.0), leaf(5.0)
    z = x * 2
    z[1] = y[0] * 3
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]
    assert y.grad.tolist() == [3.0]


def test_assigning_into_a_constant() -> None:
    x = leaf(1.0, 2.0)
    c = rgrad.zeros(3, dtype=real())
    v = c[:1]
    c[1:] = x * x
    assert c.requires_grad
    (c * c).sum().backward()
    assert x.grad.tolist() == [4.0, 32.0]
    assert v.requires_grad


def test_a_view_of_a_constant_written_with_history() -> None:
    x = leaf(2.0)
    c = rgrad.zeros(2, 2, dtype=real())
    c.view(4)[1:2].copy_(x)
    assert c.requires_grad
    (c * 3).sum().backward()
    assert x.grad.item() == 3.0


def test_setitem_with_masks_and_tensors() -> None:
    x = leaf(1.0, -2.0, 3.0)
    y = x * 1
    y[y < 0] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]
    a, v = leaf(1.0, 2.0, 3.0), leaf(7.0, 8.0)
    b = a * 1
    b[rgrad.tensor([2, 0])] = v
    (b * rgrad.tensor([1.0, 10.0, 100.0], dtype=real())).sum().backward()
    assert a.grad.tolist() == [0.0, 10.0, 0.0]
    assert v.grad.tolist() == [100.0, 1.0]


def test_detach_of_a_view_is_cut_off() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    d = y[0].detach()
    d.add_(5)
    assert y.tolist() == [6.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_expanded_views_sum_their_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x.unsqueeze(1).expand(2, 3)
    (y * rgrad.arange(6, dtype=real()).view(2, 3)).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_as_strided_of_a_non_contiguous_base() -> None:
    x = rgrad.arange(6.0, dtype=real()).reshape(2, 3).requires_grad_()
    y = (x * 1).t()
    z = y.as_strided((2, 2), (1, 3), 1)
    assert z.tolist() == [[1.0, 4.0], [2.0, 5.0]]
    (z * rgrad.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=real())).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 3.0], [0.0, 2.0, 4.0]]


def test_one_of_several_views_cannot_be_changed_in_place() -> None:
    makers = {
        "split": lambda y: y.split(1)[0],
        "unbind": lambda y: y.unbind()[0],
        "chunk": lambda y: y.chunk(2)[0],
        "iter": lambda y: next(iter(y)),
    }
    for maker in makers.values():
        x = leaf(1.0, 2.0)
        y = x * 1
        part = maker(y)
        with pytest.raises(RuntimeError, match="view.*multiple views|returns multiple views"):
            part.add_(1)
        assert y.tolist() == [1.0, 2.0]


def test_base_changed_after_a_multi_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    a, _ = y.split(1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="multiple views"):
        _ = a.grad_fn


def test_multi_views_without_history_can_be_changed() -> None:
    y = rgrad.zeros(2)
    for part in y.split(1):
        part.add_(1)
    assert y.tolist() == [1.0, 1.0]
    with rgrad.no_grad():
        for part in (leaf(1.0) * 2).split(1):
            part.add_(1)


def test_hook_on_a_tensor_before_in_place() -> None:
    """A hook stays with the value it was registered on."""
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.mul_(5)
    y.backward()
    assert seen == [5.0]


def test_retain_grad_follows_the_tensor() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    y.sum().backward()
    assert y.grad.item() == 1.0


def test_second_derivative_through_copy_slices() -> None:
    x = leaf(2.0, 3.0)
    y = x * x
    y[0].mul_(x[1])
    (g,) = rgrad.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [2 * 2 * 3, 2 * 3 + 4.0]
    (h,) = rgrad.autograd.grad(g.sum(), x)
    # d/dx0 (2 x0 x1 + x0^2) , d/dx1 (2 x0 x1 + 2 x1)
    assert h.tolist() == [2 * 3 + 2 * 2, 2 * 2 + 2.0]


def test_requires_grad_of_a_view_of_a_constant() -> None:
    c = rgrad.zeros(2, dtype=real())
    v = c[0]
    v.requires_grad_()
    assert v.is_leaf
    with pytest.raises(RuntimeError, match="leaf"):
        v.add_(1)
    (v * 3).backward()
    assert v.grad.item() == 3.0


def test_in_place_on_a_view_inside_a_loop() -> None:
    x = leaf(1.0, 1.0, 1.0, 1.0)
    y = x * 1
    for i in range(1, 4):
        y[i] += y[i - 1]
    y.sum().backward()
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x.grad.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_zero_and_fill_cut_the_history() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.zero_()
    y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    v = leaf(3.0)
    z = x * 2
    z.fill_(v[0])
    z.sum().backward()
    assert v.grad.item() == 2.0


# ------------------------------------------------------------------ views of what changes its own shape in place


def square() -> tuple[Any, Any]:
    leaf = rgrad.arange(4.0, dtype=real()).reshape(2, 2).requires_grad_()
    return leaf, leaf * 1


def test_a_view_made_before_its_base_is_transposed_in_place() -> None:
    leaf, x = square()
    row = x[0]
    x.t_()
    # Still the first row in memory, which is the first column of x now.
    assert row.tolist() == x[:, 0].tolist() == [0.0, 1.0]
    (row * rgrad.tensor([3.0, 5.0], dtype=real())).sum().backward()
    assert leaf.grad.tolist() == [[3.0, 5.0], [0.0, 0.0]]


def test_a_write_through_a_view_after_its_base_is_transposed_in_place() -> None:
    leaf, x = square()
    column = x[:, 1]
    x.transpose_(0, 1)
    column.mul_(rgrad.tensor([10.0, 20.0], dtype=real()))
    assert x.tolist() == [[0.0, 2.0], [10.0, 60.0]]
    assert type(x.grad_fn).__name__ == "CopySlices"
    (x * rgrad.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=real())).sum().backward()
    assert leaf.grad.tolist() == [[1.0, 30.0], [2.0, 80.0]]


def test_a_view_outlives_dimensions_of_its_base() -> None:
    leaf = rgrad.arange(3.0, dtype=real()).reshape(1, 3).requires_grad_()
    x = leaf * 1
    last = x[0, 2:]
    x.squeeze_()
    x.mul_(2)
    assert last.tolist() == [4.0]
    last.sum().backward()
    assert leaf.grad.tolist() == [[0.0, 0.0, 2.0]]


def test_second_order_through_a_view_of_a_transposed_base() -> None:
    def f(leaf: Any) -> Any:
        x = leaf * leaf
        row, whole = x[0], x.view(-1)
        x.t_()
        row.mul_(leaf[1])
        return whole * whole

    leaf = rgrad.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=real(), requires_grad=True)
    assert rgrad.autograd.gradcheck(f, leaf)
    assert rgrad.autograd.gradgradcheck(f, leaf)


def test_writes_by_place_go_into_a_base_that_is_not_row_major() -> None:
    leaf = rgrad.arange(6.0, dtype=real()).reshape(2, 3).requires_grad_()
    x = leaf.t() * 1  # keeps the order of its input: strides (1, 3)
    x.as_strided((2,), (1,), 1).mul_(10)
    assert x.tolist() == [[0.0, 3.0], [10.0, 4.0], [20.0, 5.0]]
    x.sum().backward()
    assert leaf.grad.tolist() == [[1.0, 10.0, 10.0], [1.0, 1.0, 1.0]]


def test_differentiating_by_what_needs_no_gradient() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = rgrad.ones(2)
    for unused in (None, False, True):
        with pytest.raises(RuntimeError, match="does not require grad"):
            rgrad.autograd.grad((x * y).sum(), [x, y], allow_unused=unused)
    with pytest.raises(RuntimeError, match="does not require grad"):
        rgrad.autograd.grad((x * y).sum(), [y], materialize_grads=True)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        (x * y).sum().backward(inputs=[y])


def test_a_view_from_no_grad_mode_says_that_its_base_was_written() -> None:
    x = rgrad.ones(3, requires_grad=True) * 1
    with rgrad.no_grad():
        view = x[0]
    x.mul_(2)
    for look in (lambda: view.grad_fn, lambda: view.is_leaf, lambda: view * 2):
        with pytest.raises(RuntimeError, match="no_grad mode"):
            look()


def test_a_view_that_cannot_be_used_any_more_may_be_told_to_retain_its_gradient() -> None:
    w = leaf(1.0, 2.0)
    with rgrad.no_grad():
        v = w.view(-1)
    base = rgrad.zeros(2)
    with rgrad.no_grad():
        u = base.view(-1)
    base.mul_(w)
    v.retain_grad()
    u.retain_grad()
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        (u * 2).sum().backward()


def test_a_pass_frees_no_number() -> None:
    x = leaf(1.0, 2.0)
    z = x.lerp(rgrad.ones_like(x), 0.25)
    for _ in range(2):
        z.sum().backward()
    assert x.grad.tolist() == [1.5, 1.5]


def test_flipped_tensors_keep_the_order_of_dimensions() -> None:
    x = rgrad.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    assert x.flip(0).stride() == x.stride()
    assert x.flip(0).tolist() == x.tolist()[::-1]


@pytest.mark.parametrize(
    "name", ["logical_not_", "logical_and_", "logical_or_", "logical_xor_", "floor_divide_", "lt_", "eq_"]
)
def test_what_is_overwritten_by_a_value_without_derivative_has_the_gradient_0(name: str) -> None:
    x = rgrad.tensor([0.5, 2.0], dtype=real(), requires_grad=True)
    other = rgrad.tensor([1.0, 3.0], dtype=real(), requires_grad=name != "logical_not_")
    y = x * 2
    getattr(y, name)(*([] if name == "logical_not_" else [other]))
    (y + x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    if other.requires_grad:
        assert other.grad.tolist() == [0, 0]
