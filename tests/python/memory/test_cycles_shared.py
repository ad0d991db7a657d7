"""Cycles through tensors and nodes that several objects hold, where no holder alone can tell that all are garbage."""

import gc
import random
import time
import warnings
import weakref

import pytest

import rgrad
from test_cycles import Thing, check_collected


class Sub(rgrad.Tensor):
    pass


class Two(rgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


def leaf():
    return rgrad.ones(4, requires_grad=True)


def hook(*held):
    """A gradient hook that holds something."""
    return lambda g: held and None


def several_views(thing):
    x = rgrad.ones(4, 4)
    x.thing, x.first, x.second, x.turned = thing, x[0], x[1], x.t()


def views_of_a_result(thing):
    y = leaf() * 2
    y.thing, y.views = thing, [y[0], y[1], y[:2]]


def several_results(thing):
    x = leaf()
    x.thing, x.results = thing, [x * 2, x * 3, x.sin(), x.exp()]


def two_losses(thing):
    x = leaf()
    h = (x * x).exp()
    x.thing, x.losses = thing, (h.sum(), h.mean())


def node_object_and_its_output(thing):
    y = leaf() * 2
    y.grad_fn.register_hook(lambda i, o, held=(y, y.grad_fn, thing): None)


def node_objects_in_a_tensor_hook(thing):
    y = leaf().exp() * 2
    y.register_hook(hook(y.grad_fn, y.grad_fn.next_functions, thing))


def metadata_with_both(thing):
    y = leaf() * 2
    y.grad_fn.metadata.update(thing=thing, tensor=y, node=y.grad_fn)


def hooks_across(thing):
    x = leaf()
    a, b = x * 2, x * 3
    a.register_hook(hook(b, thing))
    b.register_hook(hook(a, x))


def outputs_of_one_function(thing):
    a, b = Two.apply(leaf())
    a.other, b.other, a.thing = b, a, thing


def context_in_a_hook(thing):
    a, b = Two.apply(leaf())
    a.register_hook(hook(a.grad_fn, b, thing))


def subclass_objects(thing):
    x = rgrad.ones(3).as_subclass(Sub)
    x.thing, x.views = thing, [x[0], x[1]]


def gradient_with_history_and_results(thing):
    x = leaf()
    x.thing = thing
    (x * x * x).sum().backward(create_graph=True)
    x.results = [x * 2, x.grad * 2]


def packed_with_node(thing):
    held = []
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: (held, thing, t), lambda packed: packed[-1]):
        y = leaf().exp()
        held += [y, y.grad_fn, y * 2]


def written_in_place_twice(thing):
    y = leaf() * 1
    y[0].mul_(2)
    y[1].mul_(3)
    y.views, y.thing = [y[0], y[1]], thing


WAYS = [
    f for f in list(globals().values()) if callable(f) and f.__module__ == __name__ and f not in (Sub, Two, leaf, hook)
]


@pytest.fixture(scope="module", autouse=True)
def census_is_due():
    """After a census of very many tensors, as other tests make them, full runs go without one for a while."""
    for _ in range(600):
        thing = Thing()
        watched = weakref.ref(thing)
        several_views(thing)
        del thing
        gc.collect()
        if watched() is None:
            return
        time.sleep(0.1)


@pytest.mark.parametrize("way", WAYS)
def test_a_full_run_collects_them(way):
    check_collected(way)


@pytest.mark.parametrize("way", WAYS)
def test_one_more_holder_keeps_all_of_it(way):
    """What a variable holds of it keeps what can be reached from there."""
    thing, kept = Thing(), []
    before = {id(o) for o in gc.get_objects() if isinstance(o, rgrad.Tensor)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        way(thing)
    watched = weakref.ref(thing)
    del thing
    # Before the collector runs, each tensor of it is looked at from outside, one at a time.
    new = [o for o in gc.get_objects() if isinstance(o, rgrad.Tensor) and id(o) not in before]
    having = [t for t in new if isinstance(getattr(t, "thing", None), Thing)]
    kept = having[:1]
    del new, having
    gc.collect()
    gc.collect()
    if kept:
        assert kept[0].thing is watched()
    kept.clear()
    for _ in range(3):
        gc.collect()
    assert watched() is None


def structure(rng, size):
    """Tensors that hold each other at random, in every way that there is, each with a thing of its own."""
    tensors = [leaf()]
    for _ in range(size):
        x = rng.choice(tensors)
        kind = rng.randrange(6)
        if kind == 0:
            made = leaf()
        elif kind == 1 and x.dim():
            made = x[: max(1, x.shape[0] - 1)]
        elif kind == 2:
            made = x * rng.choice(tensors).sum()
        elif kind == 3:
            made = rng.choice(Two.apply(x))
        elif kind == 4:
            made = x.detach()
        else:
            made = x.exp() + x
        tensors.append(made)
    things = []
    for t in tensors:
        t.thing = Thing()
        things.append(weakref.ref(t.thing))
        for _ in range(rng.randrange(3)):
            other = rng.choice(tensors)
            how = rng.randrange(5)
            if how == 0 and t.requires_grad:
                t.register_hook(hook(other))
            elif how == 1 and t.grad_fn is not None:
                t.grad_fn.register_hook(lambda i, o, held=other: None)
            elif how == 2 and t.grad_fn is not None:
                t.grad_fn.metadata[len(t.grad_fn.metadata)] = other, t.grad_fn
            elif how == 3:
                t.node = other.grad_fn
            else:
                t.__dict__.setdefault("others", []).append(other)
    return tensors, things


def reachable(tensor):
    """The things that surely can be reached from a tensor: through attributes and bases."""
    seen, work = [], [tensor]
    while work:
        t = work.pop()
        if any(t is s for s in seen):
            continue
        seen.append(t)
        work += t.__dict__.get("others", [])
        if t._base is not None:
            work.append(t._base)
    return [s.thing for s in seen]


@pytest.mark.parametrize("seed", range(40))
def test_random_structures_are_collected_when_and_only_when_nothing_holds_them(seed):
    rng = random.Random(seed)
    tensors, things = structure(rng, rng.randrange(3, 12))
    kept = rng.sample(tensors, rng.randrange(1, 3))
    del tensors
    gc.collect()
    for t in kept:
        found = reachable(t)
        assert all(isinstance(thing, Thing) for thing in found)
        if t.requires_grad:
            # The history is whole: a pass runs through it.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                t.sum().backward(retain_graph=True)
        del found
    del t
    kept.clear()
    for _ in range(4):
        gc.collect()
    assert [thing() for thing in things] == [None] * len(things)


def test_the_number_of_objects_does_not_grow():
    def round_trip():
        for way in WAYS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                way(Thing())
        for _ in range(3):
            gc.collect()
        return len(gc.get_objects())

    round_trip()
    assert max(round_trip() for _ in range(3)) <= round_trip() + 5
