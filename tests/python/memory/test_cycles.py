"""Reference cycles through tensors: the garbage collector finds them, and takes nothing that is in use."""

import gc
import warnings
import weakref

import pytest

import rgrad
from op_kit import as_tuple, leaves, views
from op_table import rows


class Thing:
    """Something that weak references can watch."""


class Slotted(rgrad.Tensor):
    __slots__ = ("kept", "other")


def leaf():
    return rgrad.ones(3, requires_grad=True)


def attribute(thing):
    x = rgrad.ones(3)
    x.thing, x.view = thing, x[0]


def view_of_view(thing):
    x = rgrad.ones(3, 3)
    x.thing, x.view = thing, x[0][1:]


def result(thing):
    x = leaf()
    x.thing, x.result = thing, (x * x).sin().sum()


def gradient_with_history(thing):
    x = leaf()
    x.thing = thing
    (x * x * x).sum().backward(create_graph=True)


def gradient_with_history_and_a_hook(thing):
    x = leaf()
    x.register_hook(lambda g: thing and None)
    (x * x * x).sum().backward(create_graph=True)


def gradient(thing):
    x = leaf()
    x.sum().backward()
    x.grad.thing, x.grad.leaf = thing, x


def metadata(thing):
    y = leaf() * 2
    y.grad_fn.metadata.update(thing=thing, tensor=y)


def hook_with_its_leaf(thing):
    x = leaf()
    x.register_hook(lambda g: None)


def hook_with_its_result(thing):
    y = leaf() * 2
    y.register_hook(lambda g: None)


def leaf_hook_with_a_result(thing):
    x = leaf()
    x * 2
    x.register_hook(lambda g: None)


def post_accumulate_hook(thing):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda leaf: None)


def node_hook(thing):
    y = leaf() * 2
    y.grad_fn.register_hook(lambda i, o: None)
    y.grad_fn.register_prehook(lambda g: None)


def added_to_itself(thing):
    y = leaf() * 1
    y.thing = thing
    y += y * y


def added_to_itself_with_a_hook(thing):
    y = leaf() * 1
    y.register_hook(lambda g: thing and None)
    y += y * y


def added_to_itself_while_a_result_lives(thing):
    y = leaf() * 1
    y.register_hook(lambda g: thing and None)
    y += y * y
    z = y.sum()
    del y
    gc.collect()
    assert z.requires_grad


def multiplied_by_its_sine(thing):
    y = leaf() * 1
    y.thing = thing
    y.mul_(y.sin())


def written_view(thing):
    y = leaf() * 1
    view = y[0]
    view.mul_(3)
    y.view, y.thing = view, thing


def pack_hook(thing):
    held = []
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: (held, thing, t), lambda packed: packed[-1]):
        held.append(leaf().exp())


def tangent(thing):
    with rgrad.autograd.forward_ad.dual_level():
        t = rgrad.ones(3)
        t.thing, t.dual = thing, rgrad.autograd.forward_ad.make_dual(rgrad.ones(3), t)


def exception_in_a_transform(thing):
    def fails(x):
        y = x * 2
        y.thing = thing
        raise ValueError

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        rgrad.func.grad(fails)(leaf())
    thing.error = caught.value


def context(thing):
    class Double(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.thing = thing
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    thing.result = Double.apply(leaf())


def slots(thing):
    x = rgrad.ones(2).as_subclass(Slotted)
    x.kept = thing


def slots_in_a_cycle(thing):
    x = rgrad.ones(2).as_subclass(Slotted)
    x.kept, x.other, thing.tensor = thing, x, x


WAYS = [
    f for f in list(globals().values()) if callable(f) and f.__module__ == __name__ and f not in (Thing, Slotted, leaf)
]


def check_collected(way):
    """Attaches things to tensors in this way, and asserts that the collector ends them."""

    def attached():
        thing = Thing()
        way(thing)
        return weakref.ref(thing)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        things = [attached() for _ in range(5)]
    for _ in range(3):
        gc.collect()
    assert [t() for t in things] == [None] * 5


@pytest.mark.parametrize("way", WAYS)
def test_cycles_are_collected(way):
    check_collected(way)


def one_result(op, sample, thing):
    """The first argument keeps a result of the operation."""
    tensors = leaves(rgrad, sample, requires_grad=True)
    owner = tensors[0]
    owner.thing = thing
    owner.result = as_tuple(op.call(rgrad, *views(sample, tensors), **sample.params))[0]


def hook_on_one_result(op, sample, thing):
    """A hook of a result holds the result and the arguments."""
    tensors = leaves(rgrad, sample, requires_grad=True)
    made = as_tuple(op.call(rgrad, *views(sample, tensors), **sample.params))[0]
    if isinstance(made, rgrad.Tensor) and made.requires_grad:
        made.register_hook(lambda g: None)
    else:
        tensors[0].thing = made, thing, tensors[0]


@pytest.mark.rotate("op")
@pytest.mark.parametrize("way", [one_result, hook_on_one_result])
@pytest.mark.parametrize("op", rows())
def test_results_of_every_operation_are_collected(op, way):
    sample = op.all_samples()[0]
    thing = Thing()
    watched = weakref.ref(thing)
    gc.disable()
    try:
        way(op, sample, thing)
        del thing
    finally:
        gc.enable()
    gc.collect()
    assert watched() is None


def test_what_is_in_use_is_not_collected():
    x, thing = leaf(), Thing()
    x.thing, x.result = thing, x * 2
    y, watched = x.result, weakref.ref(thing)
    del x, thing
    gc.collect()
    assert y.grad_fn.next_functions[0][0].variable.thing is watched()

    base, thing = rgrad.ones(3), Thing()
    base.thing, base.view = thing, base[0]
    view, watched = base.view, weakref.ref(thing)
    del base, thing
    gc.collect()
    assert view._base.thing is watched()

    w = leaf()
    w.me = w
    w.register_hook(lambda g: g * 2)
    z = (w * 3).sum()
    del w
    gc.collect()
    again = z.grad_fn.next_functions[0][0].next_functions[0][0].variable
    z.backward()
    assert again.grad.tolist() == [6.0, 6.0, 6.0]

    x = leaf()
    y = x * 1
    y += y.sin().detach() * y.detach()
    total = y.sum()
    del y
    gc.collect()
    total.backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_gradient_keeps_its_class_attributes_and_slots():
    x = rgrad.ones(2, requires_grad=True)
    g = rgrad.ones(2).as_subclass(Slotted)
    g.kept, g.name = "slot", "attribute"
    x.grad = g
    del g
    gc.collect()
    assert (type(x.grad), x.grad.kept, x.grad.name) == (Slotted, "slot", "attribute")
    (x * 2).sum().backward()
    gc.collect()
    assert (type(x.grad), x.grad.kept, x.grad.tolist()) == (Slotted, "slot", [3.0, 3.0])


def test_slots_of_all_classes_end_with_the_object_even_while_an_exception_passes():
    class Deeper(Slotted):
        __slots__ = ("deep",)

    things = [Thing() for _ in range(3)]
    watched = [weakref.ref(t) for t in things]

    def fails():
        x = rgrad.ones(2).as_subclass(Deeper)
        x.kept, x.other, x.deep = things
        things.clear()
        raise KeyError("passes")

    with pytest.raises(KeyError, match="passes"):
        fails()
    gc.collect()
    assert [w() for w in watched] == [None] * 3


def held_after_collections():
    for _ in range(3):
        gc.collect()
    return rgrad.memory_allocated()


def of_a_leaf():
    x = rgrad.ones(1000, requires_grad=True)
    return (x * x * x).sum()


def of_two_leaves():
    x, w = (rgrad.ones(1000, requires_grad=True) for _ in range(2))
    return (x * w).exp().sum()


def of_a_result_that_keeps_its_gradient():
    y = (rgrad.ones(1000, requires_grad=True) * 2).sin()
    y.retain_grad()
    return y.exp().sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [of_a_leaf, of_two_leaves, of_a_result_that_keeps_its_gradient])
def test_a_gradient_with_history_of_what_has_no_object_any_more(made):
    """The objects of leaves are gone before their gradients come, whose graphs hold the leaves."""
    made().backward(create_graph=True)
    before = held_after_collections()
    for _ in range(5):
        made().backward(create_graph=True)
    assert held_after_collections() == before
