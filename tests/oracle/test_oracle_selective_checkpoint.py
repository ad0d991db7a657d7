"""Selective checkpointing beside torch: what a policy is asked, gradients, errors."""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.utils.checkpoint  # noqa: E402, F811

import rgrad  # noqa: E402
import rgrad.utils.checkpoint  # noqa: E402
from node_forms import FORMS, SETUP  # noqa: E402

pytestmark = pytest.mark.oracle

# What torch runs around an operation, and rgrad within it: the copy of an old value, a transposed weight, nothing.
WITHIN = {
    "c.mul_(n)": "aten.clone.default",
    "c.pow_(2)": "aten.clone.default",
    "c.clamp_(0, 1)": "aten.clone.default",
    "F.linear(m, q)": "aten.t.default",
}


def tools(T: Any) -> Any:
    return T.utils.checkpoint


def asked(T: Any, code: str) -> list[str]:
    """The operations that a policy is asked about, in order."""
    scope: dict[str, Any] = {"T": T}
    exec(SETUP, scope)
    seen: list[str] = []

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(op))
        assert context.is_recompute is False
        assert context.op_output is not None
        return tools(T).CheckpointPolicy.PREFER_RECOMPUTE

    forward, _ = tools(T).create_selective_checkpoint_contexts(policy)
    with warnings.catch_warnings(), forward:
        warnings.simplefilter("ignore")
        eval(code, scope)
    return seen


SINGLE = [
    *(f"m {o} {y}" for o in ("+", "-", "*", "/", "<", "==", "%", "**") for y in ("2", "n")),
    *("2 ** m", "2 - m", "-m", "m.abs()", "m @ q", "m @ q[0]", "b.bmm(b.mT)", "v.dot(w)"),
    *("m.sum()", "m.sum(0)", "m.mean()", "m.mean(1)", "m.max()", "m.max(1)", "m.amax(1)", "m.var(1)"),
    *("m.sin()", "m.exp()", "m.log1p()", "m.sqrt()", "m.relu()", "m.sigmoid()", "m.tanh()", "m.clamp(0, 1)", "m.erf()"),
    *(
        "F.gelu(m)",
        "F.silu(m)",
        "F.softmax(m, 1)",
        "F.log_softmax(m, 1)",
        "F.leaky_relu(m)",
        "F.elu(m)",
        "F.softplus(m)",
    ),
    *(
        "m.t()",
        "b.transpose(0, 1)",
        "b.permute(2, 0, 1)",
        "m.view(6)",
        "m[0]",
        "m[:, 1:]",
        "m.unsqueeze(0)",
        "m.expand(4, 2, 3)",
    ),
    *(
        "m.clone()",
        "m.float()",
        "T.cat([m, n])",
        "T.stack([m, n])",
        "m.index_select(1, i)",
        "m.gather(1, i[None])",
        "m[:, i]",
    ),
    *(
        "T.where(h, m, n)",
        "m.masked_fill(h, 1.0)",
        "m.cumsum(0)",
        "m.sort(1)",
        "m.topk(2)",
        "T.addmm(q, q, q)",
        "m.lerp(n, 0.5)",
    ),
    *("c.add_(2)", "c.mul_(n)", "c.zero_()", "c.pow_(2)", "c.fill_(2)", "c.clamp_(0, 1)", "c.masked_fill_(h, 2.0)"),
    *("F.layer_norm(m, (3,))", "F.linear(m, q)", "F.conv2d(b[None], b[None, :, :2, :2])"),
]


# By number and by tensor, in place too: nodes that give 0, and none out of place.
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "floor_divide"):
    SINGLE += [f"{_form}({_other})" for _form in (f"m.{_name}", f"(m * 1).{_name}_") for _other in ("1.0", "n")]
for _name in ("logical_and", "logical_or", "logical_xor"):
    SINGLE += [f"m.{_name}(n)", f"(m * 1).{_name}_(n)"]
SINGLE += ["m.logical_not()", "(m * 1).logical_not_()"]


@pytest.mark.parametrize("code", SINGLE)
def test_a_policy_is_asked_about_the_same_operations(code: str) -> None:
    around = [WITHIN[code]] if code in WITHIN else []
    assert around + asked(rgrad, code) == asked(torch, code)


def test_names_of_all_forms_are_torchs() -> None:
    """Whatever rgrad asks about, torch has an operation of that name."""
    seen = set()
    for code in FORMS:
        seen |= set(asked(rgrad, code))
    assert len(seen) > 150
    for name in seen:
        space, base, overload = name.split(".")
        getattr(getattr(getattr(torch.ops, space), base), overload)


def texts(op: Any) -> tuple[str, ...]:
    return str(op), repr(op), op.name(), op.__name__, op.namespace


@pytest.mark.parametrize("name", dir(rgrad.ops.aten))
def test_every_name_is_torchs(name: str) -> None:
    if name.startswith("__") or name in ("_known", "_name"):
        return
    mine, theirs = getattr(rgrad.ops.aten, name), getattr(torch.ops.aten, name)
    assert (str(mine), repr(mine), mine.__name__) == (str(theirs), repr(theirs), theirs.__name__)
    for overload in mine.overloads():
        a, b = getattr(mine, overload), getattr(theirs, overload)
        assert (str(a), repr(a), a.name(), a.__name__, a.namespace) == (
            str(b),
            repr(b),
            b.name(),
            b.__name__,
            b.namespace,
        )
        assert a.overloadpacket is mine
        assert a is getattr(mine, overload)


def block(T: Any, x: Any, w: Any) -> Any:
    y = (x @ w).sin() * x
    y = y @ w.t() + 1
    y = y.relu()
    z = T.softmax(y @ w, 1)
    return (z * y).sum()


POLICIES = ["nothing", "everything", "products", "sines", "list", "every second"]


def policy_of(T: Any, name: str) -> Any:
    aten, Policy = T.ops.aten, tools(T).CheckpointPolicy
    count = [0]

    def every_second(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return Policy.MUST_SAVE if count[0] % 2 else Policy.MUST_RECOMPUTE

    return {
        "nothing": lambda c, op, *a, **k: Policy.PREFER_RECOMPUTE,
        "everything": lambda c, op, *a, **k: True,
        "products": lambda c, op, *a, **k: Policy.MUST_SAVE if op is aten.mm.default else Policy.PREFER_RECOMPUTE,
        "sines": lambda c, op, *a, **k: op in {aten.sin.default, aten.relu.default},
        "list": [aten.mm.default, aten._softmax.default],
        "every second": every_second,
    }[name]


def run(T: Any, policy: str, early_stop: bool) -> list[list[float]]:
    T.manual_seed(0)
    x = T.arange(9.0, dtype=T.float64).reshape(3, 3).div(5).requires_grad_()
    w = T.arange(9.0, dtype=T.float64).reshape(3, 3).sub(4).div(7).requires_grad_()
    contexts = partial(tools(T).create_selective_checkpoint_contexts, policy_of(T, policy))
    with tools(T).set_checkpoint_early_stop(early_stop):
        out = tools(T).checkpoint(block, T, x * 1, w, use_reentrant=False, context_fn=contexts)
        out = out + tools(T).checkpoint(block, T, x * 2, w, use_reentrant=False, context_fn=contexts)
    out.backward()
    return [out.tolist(), x.grad.tolist(), w.grad.tolist()]


@pytest.mark.parametrize("early_stop", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_gradients(policy: str, early_stop: bool) -> None:
    mine, theirs = run(rgrad, policy, early_stop), run(torch, policy, early_stop)
    for a, b in zip(mine, theirs, strict=True):
        assert (
            a == pytest.approx(b, rel=1e-12) if not isinstance(a, list) else rgrad.tensor(a).allclose(rgrad.tensor(b))
        )


def outcome(T: Any, case: str) -> tuple[str, str] | str:
    aten = T.ops.aten
    make = tools(T).create_selective_checkpoint_contexts
    x = T.ones(2, 2, requires_grad=True)
    on = [False]

    def changing(x: Any) -> Any:
        return (x.exp() if on[0] else x.sin()) @ x

    def twice(x: Any) -> Any:
        y = x.sin().cos()
        return y.cos() if on[0] else y

    def written(x: Any) -> Any:
        y = (x @ x).sin()
        return (x @ x).mul_(2).sin() * y

    def check(function: Any, what: Any, **more: Any) -> Any:
        return tools(T).checkpoint(function, x, use_reentrant=False, context_fn=lambda: make(what, **more))

    try:
        if case == "no operation":
            make([aten.mm])
        elif case == "a string":
            make(["mm"])
        elif case == "neither":
            make(3)
        elif case == "no such name":
            aten.nothing_of_this_name
        elif case == "no such overload":
            aten.mm.nothing
        elif case == "twice":
            y = check(lambda x: (x @ x).sin(), [aten.mm.default])
            y.sum().backward(retain_graph=True)
            y.sum().backward()
        elif case == "another operation":
            y = check(changing, lambda *a, **k: True)
            on[0] = True
            y.sum().backward()
        elif case == "one more":
            y = check(twice, lambda *a, **k: True)
            on[0] = True
            y.sum().backward()
        elif case == "written":
            check(written, [aten.mm.default]).sum().backward()
        elif case == "policy fails":
            check(written, lambda *a, **k: 1 / 0)
        elif case == "policy returns nonsense":
            check(lambda x: (x @ x).sin(), lambda *a, **k: 5).sum().backward()
        elif case == "written output":
            y = check(lambda x: x @ x, [aten.mm.default])
            z = y.sin().sum()
            with T.no_grad():
                y.detach().mul_(3)
            z.backward()
        elif case == "debug":
            tools(T).checkpoint(written, x, use_reentrant=False, debug=True, context_fn=lambda: make([]))
        elif case == "reentrant":
            tools(T).checkpoint(written, x, use_reentrant=True, context_fn=lambda: make([]))
    except Exception as e:
        return kind_of(e), str(e).split("\n")[0]
    return str(x.grad.to(T.float32).mul(1e4).round().tolist()) if x.grad is not None else "nothing"


def kind_of(error: Exception) -> str:
    """The built-in class of an error."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize(
    "case",
    [
        *("no operation", "a string", "neither", "no such name", "no such overload", "twice", "another operation"),
        *("one more", "written", "policy fails", "policy returns nonsense", "written output", "debug", "reentrant"),
    ],
)
def test_errors(case: str) -> None:
    mine, theirs = outcome(rgrad, case), outcome(torch, case)
    if not isinstance(theirs, tuple) or not isinstance(mine, tuple):
        assert mine == theirs
        return
    (kind, text), (torchs_kind, torchs_text) = mine, theirs
    assert kind == torchs_kind

    def plain(text: str) -> str:
        return re.sub(r"torch\.|rgrad\.| of type .*", "", text)

    assert plain(text)[:60] == plain(torchs_text)[:60]


@pytest.mark.parametrize("inner", [None, False, True])
@pytest.mark.parametrize("outer", [None, False, True])
@pytest.mark.parametrize("argument", [False, True])
def test_nested_early_stop(inner: bool | None, outer: bool | None, argument: bool) -> None:
    """How often each part of nested checkpoints runs."""

    def counts(T: Any) -> list[str]:
        log: list[str] = []
        import contextlib

        def within(enable: bool | None) -> Any:
            return contextlib.nullcontext() if enable is None else tools(T).set_checkpoint_early_stop(enable)

        def low(x: Any) -> Any:
            log.append("low begins")
            y = x.sin().cos()
            log.append("low ends")
            return y

        def middle(x: Any) -> Any:
            log.append("middle begins")
            with within(inner):
                y = tools(T).checkpoint(low, x.exp(), use_reentrant=False, early_stop=argument)
            log.append("after low")
            z = y.sin()
            log.append("middle ends")
            return z

        def high(x: Any) -> Any:
            log.append("high begins")
            y = tools(T).checkpoint(middle, x.sin(), use_reentrant=False, early_stop=argument)
            log.append("high ends")
            return y.exp()

        x = T.tensor(0.5, requires_grad=True)
        with within(outer):
            out = tools(T).checkpoint(high, x, use_reentrant=False)
        log.append("backward")
        out.backward()
        return [*log, f"{x.grad.item():.5f}"]

    assert counts(rgrad) == counts(torch)


@pytest.mark.parametrize("case", ["no input", "no output", "integers", "detached", "one of two"])
def test_reentrant_without_gradients(case: str) -> None:
    def outcome(T: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = T.ones(3, requires_grad=case != "no input")
            function = {
                "no input": lambda x: x * 2,
                "no output": lambda x: x.detach() * 2,
                "integers": lambda x: (x * 2).long(),
                "detached": lambda x: (x * 2).detach(),
                "one of two": lambda x: (x * 2, x.detach() * 3),
            }[case]
            try:
                out = tools(T).checkpoint(function, x, use_reentrant=True)
                outs = out if isinstance(out, tuple) else (out,)
                state = [o.requires_grad for o in outs]
                sum(o.sum() for o in outs).backward()
                state.append(x.grad.tolist())
            except Exception as e:
                state = [kind_of(e), str(e)]
        return state, [str(w.message) for w in caught]

    assert outcome(rgrad) == outcome(torch)
