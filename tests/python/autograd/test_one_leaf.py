"""A leaf stays one leaf: whatever memory it is given, its gradients arrive in one place and its hooks run once."""

import pytest

import rgrad

CHANGES = {
    "data": lambda w, new: setattr(w, "data", new),
    "set_": lambda w, new: w.set_(new),
    "copy_": lambda w, new: w.data.copy_(new),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_leaf_with_other_memory_is_the_same_leaf(change):
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)
    seen, stepped = [], []
    w.register_hook(lambda g: seen.append(g.tolist()))
    w.register_post_accumulate_grad_hook(lambda leaf: stepped.append(leaf.grad.tolist()))
    before = (w * 3).sum()
    node = before.grad_fn.next_functions[0][0].next_functions[0][0]
    with rgrad.no_grad():
        change(w, rgrad.tensor([5.0, 6.0]))
    after = (w * w).sum()
    assert after.grad_fn.next_functions[0][0].next_functions[0][0] is node
    assert node.variable is w
    assert rgrad.autograd.grad(before, w, retain_graph=True)[0].tolist() == [3.0, 3.0]
    seen.clear()
    (before + after).backward()
    assert w.grad.tolist() == [13.0, 15.0]
    assert seen == [[13.0, 15.0]]
    assert stepped == [[13.0, 15.0]]


def test_a_gradient_edge_and_inputs_know_the_leaf_after_a_change():
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)
    edge = rgrad.autograd.graph.get_gradient_edge(w)
    y = (w * 3).sum()
    w.data = rgrad.ones(2)
    assert rgrad.autograd.grad(y, edge, retain_graph=True)[0].tolist() == [3.0, 3.0]
    y.backward(inputs=[w])
    assert w.grad.tolist() == [3.0, 3.0]


def test_second_derivatives_through_a_change_of_data():
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    w.data = rgrad.ones(2)
    (g,) = rgrad.autograd.grad((y * w).sum(), w, create_graph=True)
    assert g.tolist() == [6.0, 9.0]
    assert rgrad.autograd.grad(g.sum(), w)[0].tolist() == [6.0, 6.0]


def test_other_shapes_are_recorded_and_do_not_arrive():
    w = rgrad.ones(2, 3, requires_grad=True)
    y = (w * 3).sum()
    w.data = rgrad.ones(3)
    assert rgrad.autograd.grad(y, w, retain_graph=True)[0].shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        y.backward(retain_graph=True)
    assert w.grad is None
    # While that graph lives, gradients of the new shape do not fit the leaf's node.
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2, 3\]"
    ):
        (w * 2).sum().backward()
    del y
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_another_dtype_begins_a_new_node():
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.dtype))
    y = (w * 3).sum()
    w.data = rgrad.ones(2, dtype=rgrad.float64)
    (y + (w * w).sum()).backward()
    assert w.grad.tolist() == [5.0, 5.0]
    assert w.grad.dtype == rgrad.float64
    assert sorted(map(str, seen)) == ["rgrad.float32", "rgrad.float64"]
    assert rgrad.autograd.grad((w * 2).sum(), w)[0].dtype == rgrad.float64


def test_modules_and_optimizers_between_forward_and_backward():
    layer = rgrad.nn.Linear(2, 1, bias=False)
    weight, ones = layer.weight, rgrad.ones(1, 2)
    optimizer = rgrad.optim.SGD(layer.parameters(), lr=0.5)
    y = layer(ones).sum()
    layer.load_state_dict({"weight": rgrad.ones(1, 2)})
    y = y + layer(ones).sum()
    y.backward(retain_graph=True)
    assert layer.weight is weight
    assert weight.grad.tolist() == [[2.0, 2.0]]
    optimizer.step()
    y.backward()
    assert weight.grad.tolist() == [[4.0, 4.0]]


def test_requires_grad_off_and_on_again():
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.tolist()))
    y = (w * 3).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    (y + (w * w).sum()).backward()
    assert w.grad.tolist() == [5.0, 7.0]
    assert seen == [[5.0, 7.0]]


def test_what_data_takes():
    x = rgrad.ones(2)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del x.data
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        del x.requires_grad


# ---- swap_tensors ----------------------------------------------------------------------------------------------------


class Named(rgrad.Tensor):
    __slots__ = ("name",)


def test_swapped_tensors_exchange_everything_but_their_identity():
    w, v = rgrad.tensor([1.0, 2.0], requires_grad=True), rgrad.zeros(3)
    w.grad, w.note, seen = rgrad.ones(2), "w", []
    w.register_hook(lambda g: seen.append(g.tolist()))
    ids = id(w), id(v)
    rgrad.utils.swap_tensors(w, v)
    assert (id(w), id(v)) == ids
    assert w.tolist() == [0.0, 0.0, 0.0]
    assert v.tolist() == [1.0, 2.0]
    assert (w.requires_grad, v.requires_grad) == (False, True)
    assert w.grad is None
    assert v.grad.tolist() == [1.0, 1.0]
    assert v.note == "w"
    assert not hasattr(w, "note")
    (v * 3).sum().backward()
    assert v.grad.tolist() == [4.0, 4.0]
    assert seen == [[3.0, 3.0]]


def test_classes_and_slots_are_swapped():
    a, b = rgrad.ones(1).as_subclass(Named), rgrad.zeros(1).as_subclass(Named)
    a.name = "a"
    rgrad.utils.swap_tensors(a, b)
    assert b.name == "a"
    assert not hasattr(a, "name")
    assert a.item() == 0.0
    parameter, plain = rgrad.nn.Parameter(rgrad.ones(2)), rgrad.zeros(2)
    rgrad.utils.swap_tensors(parameter, plain)
    assert type(parameter) is rgrad.Tensor
    assert type(plain) is rgrad.nn.Parameter
    assert plain.requires_grad
    with pytest.raises(RuntimeError, match="different slots"):
        rgrad.utils.swap_tensors(a, plain)


def test_held_tensors_are_not_swapped_and_a_graph_is_poisoned():
    import weakref

    w, v = rgrad.ones(2, requires_grad=True), rgrad.zeros(2)
    view = w[0]
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1 or 2"):
        rgrad.utils.swap_tensors(w, v)
    del view
    seen = weakref.ref(v)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        rgrad.utils.swap_tensors(w, v)
    del seen
    y = (w * 3).sum()
    rgrad.utils.swap_tensors(w, v)
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
        y.backward()
    assert w.grad is None
    assert v.grad is None


@pytest.mark.parametrize("how", ["swap", "overwrite"])
def test_modules_convert_by_swapping_or_overwriting(how):
    switch = getattr(rgrad.__future__, f"set_{how}_module_params_on_conversion")
    asked = getattr(rgrad.__future__, f"get_{how}_module_params_on_conversion")
    layer = rgrad.nn.Linear(2, 1, bias=False)
    weight = layer.weight
    weight.grad = rgrad.ones(1, 2)
    assert asked() is False
    switch(True)
    try:
        assert asked() is True
        layer.double()
    finally:
        switch(False)
    assert (layer.weight is weight) == (how == "swap")
    assert layer.weight.dtype == rgrad.float64
    assert layer.weight.grad.dtype == rgrad.float64
    assert type(layer.weight) is rgrad.nn.Parameter
    assert layer.weight.requires_grad


@pytest.mark.parametrize("kept", [False, True])
def test_the_gradient_of_a_view_is_moved_unless_somebody_holds_it(kept):
    x = rgrad.ones(300, 400, requires_grad=True)
    places, gradients = [], []

    def see(g):
        places.append(g.data_ptr())
        if kept:
            gradients.append(g)

    y = x.view(-1)
    y.register_hook(see)
    (y * y).sum().backward()
    assert (x.grad.data_ptr() == places[0]) != kept
    assert x.grad.shape == x.shape
    assert x.grad._base is None
    assert bool((x.grad == 2).all())
    if kept:
        x.grad.zero_()
        assert bool((gradients[0] == 2).all())


def test_the_gradient_of_a_part_does_not_hold_the_whole():
    x = rgrad.ones(1000, requires_grad=True)
    rgrad.cat([x, rgrad.ones(9000)]).sum().backward()
    assert x.grad.untyped_storage().nbytes() == 4000
