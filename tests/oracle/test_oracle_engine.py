"""Passes, hooks, modes and writes: each scenario does the same in rgrad and torch, to the words of the error."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402 - torch must be there first

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Using backward"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection"),
]

SCENARIOS: dict[str, Callable[[Any], Any]] = {}


def scenario(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCENARIOS[f.__name__] = f
    return f


def leaf(T: Any, *shape: int) -> Any:
    return T.ones(*shape, dtype=T.float64, requires_grad=True)


def edge(T: Any, t: Any) -> Any:
    """rgrad takes any pair of a node and an output number, torch only its own class of them."""
    return torch.autograd.graph.GradientEdge(t.grad_fn, t.output_nr) if T is torch else (t.grad_fn, t.output_nr)


def plain(value: Any) -> Any:
    """Tensors as lists, whatever library they are of."""
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def outcome(T: Any, f: Callable[[Any], Any]) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = plain(f(T))
        except Exception as e:
            kinds = (IndexError, ValueError, TypeError, KeyError, RuntimeError, Exception)
            kind = next(k for k in kinds if isinstance(e, k))
            result = (kind.__name__, str(e))
    return result, [w.category.__name__ for w in seen]


# Words that both libraries must say in the error of a scenario: the first of these in torch's message.
KEY_WORDS = (
    r"does not require grad and does not have a grad_fn",
    r"grad can be implicitly created only for scalar outputs",
    r"One of the differentiated Tensors does not require grad",
    r"can't retain_grad on Tensor that has requires_grad=False",
    r"at index \d appears to not have been used in the graph",
    r"Mismatch in shape: grad_output\[0\] has a shape of",
    r"`inputs` argument to `backward\(\)` cannot be empty",
    r"has changed the (size|type) of value",
    r"incorrect number of values",
    r"can't replace a None gradient with a non-None value",
    r"expected (Variable|tuple), but hook returned '\w+'",
    r"backward through the graph a second time",
    r"Final callbacks can only be installed during backward pass",
    r"returned nan values in its 0th output",
    r"a (view of a )?leaf Variable that requires grad is being used in an in-place operation",
    r"A view was created in (no_grad|inference) mode and is being modified inplace",
    r"is a view and (is being|its base or another view of its base has been) modified inplace",
    r"more than one element of the written-to tensor refers to a single memory location",
    r"has been modified by an inplace operation",
    r"Inplace update to inference tensor outside InferenceMode is not allowed",
    r"Inference tensors cannot be saved for backward",
    r"Inference tensors do not track version counter",
    r"Setting requires_grad=True on inference tensor outside InferenceMode is not allowed",
    r"you can only change requires_grad flags of leaf variables",
    r"Can't detach views in-place",
    r"data set to a tensor that requires gradients must be floating point or complex dtype",
    r"cannot register a hook on a tensor that doesn't require gradient",
    r"post accumulate grad hooks cannot be registered on non-leaf tensors",
    r"can't assign Variable as its own grad",
    r"attempting to assign a gradient (of size|with dtype) '",
    r"is a view of a view which was created in no_grad mode and is being modified inplace",
)


def words(message: str) -> str | None:
    found = [m.group(0) for p in KEY_WORDS if (m := re.search(p, message))]
    return found[0] if found else None


# ------------------------------------------------------------------------------------------------- passes


@scenario
def inner_input(T: Any) -> Any:
    x = leaf(T, 2)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    return y.grad, y.retains_grad, x.grad


@scenario
def inputs_twice(T: Any) -> Any:
    x = leaf(T, 2)
    (x * 2).sum().backward(inputs=[x, x])
    return x.grad


@scenario
def roots_twice(T: Any) -> Any:
    x = leaf(T, 2)
    y = (x * 2).sum()
    return T.autograd.grad([y, y], [x, y])


@scenario
def a_root_in_front_of_another(T: Any) -> Any:
    x = leaf(T, 2)
    y = x * 2
    z = y * y
    return T.autograd.grad([z.sum(), y.sum()], [x, y])


@scenario
def constant_root(T: Any) -> Any:
    return T.autograd.backward([T.ones(2).sum(), leaf(T, 2).sum()])


@scenario
def vector_root(T: Any) -> Any:
    return (leaf(T, 2) * 2).backward()


@scenario
def wrong_gradient(T: Any) -> Any:
    return (leaf(T, 2) * 2).backward(T.ones(3))


@scenario
def gradient_of_another_dtype(T: Any) -> Any:
    x = leaf(T, 2)
    return T.autograd.grad(x * 2, x, T.ones(2, dtype=T.int64))


@scenario
def constant_input(T: Any) -> Any:
    return T.autograd.grad(leaf(T, 2).sum(), T.ones(2), allow_unused=True)


@scenario
def constant_input_of_backward(T: Any) -> Any:
    return leaf(T, 2).sum().backward(inputs=[T.ones(2)])


@scenario
def unused_input(T: Any) -> Any:
    x = leaf(T, 2)
    return T.autograd.grad(x.sum(), [x, leaf(T, 2)])


@scenario
def unused_input_of_backward(T: Any) -> Any:
    w = leaf(T, 2)
    leaf(T, 2).sum().backward(inputs=[w])
    return w.grad


@scenario
def no_inputs(T: Any) -> Any:
    return leaf(T, 2).sum().backward(inputs=[])


@scenario
def twice(T: Any) -> Any:
    x = leaf(T, 2)
    y = (x * x).sum()
    y.backward()
    y.backward()


@scenario
def grad_of_an_edge(T: Any) -> Any:
    x = leaf(T, 2)
    y = x * 2
    return T.autograd.grad((y * y).sum(), edge(T, y))


@scenario
def root_is_an_edge(T: Any) -> Any:
    x = leaf(T, 2)
    return T.autograd.grad(edge(T, (x * 2).sum()), x)


@scenario
def dict_of_inputs(T: Any) -> Any:
    x, y = leaf(T, 2), leaf(T, 2)
    found = T.autograd.grad((x * y * 3).sum(), {"y": y, "x": x})
    return list(found), list(found.values())


@scenario
def inputs_of_create_graph(T: Any) -> Any:
    x = leaf(T, 2)
    (g,) = T.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x, create_graph=True)
    return g, h, T.autograd.grad(h.sum(), x)


# ------------------------------------------------------------------------------------------------- hooks


@scenario
def order_of_hooks(T: Any) -> Any:
    x = leaf(T, 1)
    y = x * 2
    out: list[Any] = []
    y.register_hook(lambda g: (out.append(("h1", g.tolist())), g * 2)[1])
    y.retain_grad()
    y.register_hook(lambda g: (out.append(("h2", g.tolist())), g * 2)[1])
    y.grad_fn.register_prehook(lambda g: (out.append(("pre", g[0].tolist())), (g[0] * 10,))[1])
    y.grad_fn.register_hook(lambda gi, go: out.append(("post", gi[0].tolist(), go[0].tolist())))
    y.sum().backward()
    return out, y.grad, x.grad


@scenario
def order_at_a_leaf(T: Any) -> Any:
    x = leaf(T, 1)
    y = x * 2
    out: list[Any] = []
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: out.append(("post", len(gi), go[0].tolist())))
    node.register_prehook(lambda g: out.append(("pre", g[0].tolist())))
    x.register_hook(lambda g: out.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda p: out.append(("accumulated", p.grad.tolist())))
    y.sum().backward()
    return out


@scenario
def hooks_around_an_in_place_operation(T: Any) -> Any:
    x = leaf(T, 1)
    y = x * 2
    out: list[Any] = []
    y.register_hook(lambda g: out.append(("before", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: out.append(("after", g.tolist())))
    y.sum().backward()
    return out, x.grad


@scenario
def retained_through_in_place_operations(T: Any) -> Any:
    x = leaf(T, 1)
    y = x * 2
    y.retain_grad()
    y.mul_(3).add_(1)
    (y * 5).sum().backward()
    return y.grad, y.retains_grad, x.grad


@scenario
def retained_through_a_write_to_a_view(T: Any) -> Any:
    x = leaf(T, 3)
    y = x * 2
    y.retain_grad()
    y[0].mul_(7)
    (y * 5).sum().backward()
    return y.grad, x.grad


@scenario
def hook_on_a_view_whose_base_is_written(T: Any) -> Any:
    x = leaf(T, 3)
    y = x * 2
    v = y[:2]
    out: list[Any] = []
    v.register_hook(lambda g: out.append(g.tolist()))
    y.mul_(3)
    (v.sum() + y.sum()).backward()
    return out, x.grad


def hooked(returns: Callable[[Any, Any], Any], on: str = "tensor") -> Callable[[Any], Any]:
    def f(T: Any) -> Any:
        x = leaf(T, 4)
        part = (x * 2).chunk(2)[0]
        if on == "tensor":
            part.register_hook(lambda g: returns(T, g))
        elif on == "leaf":
            x.register_hook(lambda g: returns(T, g))
        elif on == "before":
            part.grad_fn.register_prehook(lambda gs: returns(T, gs))
        elif on == "accumulated":
            x.register_post_accumulate_grad_hook(lambda p: returns(T, p))
        else:
            part.grad_fn.next_functions[0][0].register_hook(lambda gi, go: returns(T, gi))
        part.sum().backward()
        return x.grad

    return f


for where in ("tensor", "leaf"):
    SCENARIOS[f"{where} hook: shape"] = hooked(lambda T, g: g[:1], where)
    SCENARIOS[f"{where} hook: dtype"] = hooked(lambda T, g: g.float(), where)
    SCENARIOS[f"{where} hook: string"] = hooked(lambda T, g: "a", where)
    SCENARIOS[f"{where} hook: tuple"] = hooked(lambda T, g: (g,), where)
    SCENARIOS[f"{where} hook: replaced"] = hooked(lambda T, g: g * 3, where)
for where in ("before", "after"):
    SCENARIOS[f"{where}: shape"] = hooked(lambda T, gs: (gs[0][:1], *gs[1:]), where)
    SCENARIOS[f"{where}: dtype"] = hooked(lambda T, gs: (gs[0].float(), *gs[1:]), where)
    SCENARIOS[f"{where}: count"] = hooked(lambda T, gs: (*gs, gs[0]), where)
    SCENARIOS[f"{where}: bare"] = hooked(lambda T, gs: gs[0], where)
    SCENARIOS[f"{where}: list"] = hooked(lambda T, gs: list(gs), where)
    SCENARIOS[f"{where}: strings"] = hooked(lambda T, gs: ("a",) * len(gs), where)
    SCENARIOS[f"{where}: filled"] = hooked(lambda T, gs: (gs[0],) * len(gs), where)
    SCENARIOS[f"{where}: emptied"] = hooked(lambda T, gs: (None,) * len(gs), where)
    SCENARIOS[f"{where}: replaced"] = hooked(lambda T, gs: tuple(g if g is None else g * 3 for g in gs), where)
SCENARIOS["accumulated: returned a number"] = hooked(lambda T, p: 3, "accumulated")


@scenario
def callbacks(T: Any) -> Any:
    x = leaf(T, 1)
    out: list[str] = []
    queue = T.autograd.Variable._execution_engine.queue_callback
    y = x * 2
    y.register_hook(lambda g: queue(lambda: (out.append("a"), queue(lambda: out.append("b")))))
    x.register_hook(lambda g: out.append("leaf"))
    y.sum().backward()
    return out


@scenario
def callback_outside(T: Any) -> Any:
    T.autograd.Variable._execution_engine.queue_callback(lambda: None)


@scenario
def hook_on_a_constant(T: Any) -> Any:
    T.ones(2).register_hook(lambda g: None)


@scenario
def post_accumulate_on_an_inner_tensor(T: Any) -> Any:
    (leaf(T, 2) * 2).register_post_accumulate_grad_hook(lambda p: None)


@scenario
def own_grad(T: Any) -> Any:
    x = leaf(T, 2)
    x.grad = x


@scenario
def grad_of_another_size(T: Any) -> Any:
    leaf(T, 2).grad = T.ones(3, dtype=T.float64)


# ------------------------------------------------------------------------------------------------- modes


@scenario
def nan_in_anomaly_mode(T: Any) -> Any:
    with T.autograd.set_detect_anomaly(True):
        (leaf(T, 2) - 2).sqrt().sum().backward()


@scenario
def nan_that_is_allowed(T: Any) -> Any:
    x = leaf(T, 2)
    with T.autograd.set_detect_anomaly(True, check_nan=False):
        (x - 2).sqrt().sum().backward()
    return x.grad.isnan()


@scenario
def anomaly_switches(T: Any) -> Any:
    def now() -> tuple[bool, bool]:
        return T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()

    out = [now()]
    with T.autograd.set_detect_anomaly(True, False):
        out.append(now())
        with T.autograd.detect_anomaly():
            out.append(now())
        with T.autograd.set_detect_anomaly(False):
            out.append(now())
        out.append(now())
    return [*out, now()]


def inferred(use: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def f(T: Any) -> Any:
        with T.inference_mode():
            t = T.ones(3, dtype=T.float64)
        return use(T, t)

    return f


SCENARIOS["inference: written"] = inferred(lambda T, t: t.add_(1))
SCENARIOS["inference: saved"] = inferred(lambda T, t: t * leaf(T, 3))
SCENARIOS["inference: added"] = inferred(lambda T, t: (t + leaf(T, 3)).requires_grad)
SCENARIOS["inference: requires_grad_"] = inferred(lambda T, t: t.requires_grad_())
SCENARIOS["inference: version"] = inferred(lambda T, t: t._version)
SCENARIOS["inference: kin"] = inferred(
    lambda T, t: [u.is_inference() for u in (t.detach(), t.clone(), t.view(3), t[0], t + 1, t.data)]
)
SCENARIOS["inference: copied from"] = inferred(lambda T, t: (leaf(T, 3) * 1).copy_(t).requires_grad)


@scenario
def inference_view_written_outside(T: Any) -> Any:
    x = leaf(T, 3) * 1
    with T.inference_mode():
        v = x[:2]
    v.mul_(2)


@scenario
def inference_and_leaves(T: Any) -> Any:
    with T.inference_mode():
        a = leaf(T, 3)
        b = a * 2
    return a.requires_grad, b.requires_grad, a.is_leaf, b.is_leaf


# ------------------------------------------------------------------------------------------------- writes and views


def written(make: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def f(T: Any) -> Any:
        x = leaf(T, 4)
        y = make(T, x)
        if not hasattr(y, "sum") or not y.requires_grad:
            return y
        (g,) = T.autograd.grad(y.sum() if y.dim() else y, x, allow_unused=True)
        return y, g, y.is_leaf

    return f


def no_grad_view(T: Any, x: Any) -> Any:
    with T.no_grad():
        return x[:2]


def after(*steps: Any) -> Any:
    return steps[-1]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "a leaf": lambda T, x: x.add_(1),
    "a view of a leaf": lambda T, x: x[0].fill_(1),
    "an item of a leaf": lambda T, x: x.__setitem__(0, 1.0),
    "a no_grad view of a leaf": lambda T, x: no_grad_view(T, x).add_(1),
    "a no_grad view": lambda T, x: no_grad_view(T, x * 1).add_(1),
    "a view of a no_grad view": lambda T, x: no_grad_view(T, x * 1)[:1].add_(1),
    "one of several views": lambda T, x: (x * 1).chunk(2)[0].mul_(2),
    "one of unbind": lambda T, x: (x * 1).unbind()[1].mul_(2),
    "a view of one of several views": lambda T, x: (x * 1).chunk(2)[1].view(2, 1).mul_(2),
    "an expanded leaf": lambda T, x: x.expand(2, 4).add_(1),
    "an expanded tensor": lambda T, x: x.sum().expand(3).add_(1),
    "detach of a detached leaf": lambda T, x: x.detach().requires_grad_().mul_(2),
    "a constant by a leaf": lambda T, x: T.ones(4, dtype=T.float64).mul_(x),
    "a part of a constant by a leaf": lambda T, x: after(y := T.ones(4, dtype=T.float64), y[1:].mul_(x[1:]), y),
    "a detached view": lambda T, x: after(y := x * 1, y[1:].detach().mul_(3), y * 1),
    "detach_ of a view": lambda T, x: (x * 1)[:2].detach_(),
    "detach_": lambda T, x: (x * 1).detach_().requires_grad,
    "requires_grad_ off": lambda T, x: (x * 1).requires_grad_(False),
    "requires_grad_ after a write": lambda T, x: T.ones(4).mul_(2).requires_grad_().is_leaf,
    "data of integers": lambda T, x: setattr(x, "data", T.ones(4, dtype=T.int64)),
    "data of another shape": lambda T, x: after(
        setattr(x, "data", T.zeros(2, dtype=T.float64)), x.shape[0], x.requires_grad
    ),
    "saved and written": lambda T, x: after(y := x * 1, z := (y * y).sum(), y.detach().mul_(2), z),
    "saved and written as data": lambda T, x: after(y := x * 1, z := (y * y).sum(), y.data.mul_(2), z),
    "an output saved and written": lambda T, x: after(y := x.exp(), y.add_(1)),
    "saved and its base written": lambda T, x: after(y := x * 1, v := y[:2], z := (v * v).sum(), y.mul_(2), z),
    "chain of views": lambda T, x: after(
        y := x * 1, v := y[:3], w := v[1:], w.mul_(3), v.add_(1), y.mul_(2), w.sum() + v.sum() + y.sum()
    ),
    "a transposed view of a view": lambda T, x: after(y := (x * 1).view(2, 2), y.t()[0].mul_(3), y),
    "a view written by another view": lambda T, x: after(y := x * 1, y[:2].mul_(y[2:]), y),
    "a view of a constant, written": lambda T, x: after(
        y := T.ones(4, dtype=T.float64), v := y[:2], v.mul_(x[:2]), y.sum() + v.sum()
    ),
    "zeroed": lambda T, x: (x * 2).zero_(),
    "copied over": lambda T, x: T.ones(4, dtype=T.float64).copy_(x),
    "copied over itself": lambda T, x: after(y := x * 2, y.copy_(y * 3), y),
}
for name, make in WRITES.items():
    SCENARIOS[f"write: {name}"] = written(make)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    want, want_warned = outcome(torch, SCENARIOS[name])
    got, warned = outcome(rgrad, SCENARIOS[name])
    if isinstance(want, tuple) and isinstance(want[1], str):
        key = words(want[1])
        assert key is not None, f"torch says what no key word covers: {want[1]}"
        assert isinstance(got, tuple), f"torch raises {want}, rgrad gives {got}"
        assert got[0] == want[0]
        assert words(got[1].replace("rgrad.", "torch.")) == key or key in got[1], got[1]
    else:
        assert got == want
    assert warned == want_warned
