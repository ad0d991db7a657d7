"""Every optimizer with every option beside PyTorch's: twenty random steps, states, and their exchange."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402


def grid(**choices: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


CASES: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        *grid(lr=[0.1], momentum=[0, 0.9], weight_decay=[0, 0.1], maximize=[False, True]),
        *grid(momentum=[0.9], nesterov=[True], weight_decay=[0, 0.1]),
        *grid(momentum=[0.5], dampening=[0.3]),
    ],
    "Adam": grid(
        lr=[0.05],
        weight_decay=[0, 0.1],
        amsgrad=[False, True],
        maximize=[False, True],
        decoupled_weight_decay=[False, True],
    ),
    "AdamW": grid(lr=[0.05], amsgrad=[False, True], maximize=[False, True]),
    "NAdam": grid(
        lr=[0.05],
        weight_decay=[0, 0.1],
        momentum_decay=[4e-3, 0.1],
        decoupled_weight_decay=[False, True],
        maximize=[False, True],
    ),
    "RAdam": grid(
        lr=[0.05],
        betas=[(0.9, 0.999), (0.6, 0.7)],
        weight_decay=[0, 0.1],
        decoupled_weight_decay=[False, True],
        maximize=[False, True],
    ),
    "Adamax": grid(lr=[0.05], weight_decay=[0, 0.1], maximize=[False, True]),
    "Adagrad": grid(
        lr=[0.05],
        lr_decay=[0, 0.1],
        weight_decay=[0, 0.1],
        initial_accumulator_value=[0, 0.5],
        maximize=[False, True],
    ),
    "Adadelta": grid(lr=[0.5], rho=[0.9, 0.5], weight_decay=[0, 0.1], maximize=[False, True]),
    "RMSprop": grid(
        lr=[0.05], momentum=[0, 0.7], centered=[False, True], weight_decay=[0, 0.1], maximize=[False, True]
    ),
    "Rprop": grid(lr=[0.05], etas=[(0.5, 1.2), (0.3, 1.7)], maximize=[False, True]),
    "ASGD": grid(lr=[0.05], t0=[1e6, 5], weight_decay=[0, 0.1], lambd=[1e-4, 0.1], maximize=[False, True]),
    "Adafactor": grid(
        lr=[0.05], weight_decay=[0, 0.1], d=[1.0, 2.0], maximize=[False, True], eps=[(None, 1e-3), (1e-3, 1e-2)]
    ),
}
# Options that are not in the grids, each by itself.
MORE: dict[str, list[dict[str, Any]]] = {
    "Adam": [{"betas": (0.5, 0.7)}, {"eps": 1e-3}],
    "AdamW": [{"betas": (0.5, 0.7)}, {"eps": 1e-3}, {"weight_decay": 0.3}],
    "NAdam": [{"betas": (0.5, 0.7)}, {"eps": 1e-3}],
    "RAdam": [{"eps": 1e-3}],
    "Adamax": [{"betas": (0.5, 0.7)}, {"eps": 1e-3}],
    "Adagrad": [{"eps": 1e-3}],
    "Adadelta": [{"eps": 1e-3}],
    "RMSprop": [{"alpha": 0.5}, {"eps": 1e-3}],
    "Rprop": [{"step_sizes": (1e-3, 0.06)}],
    "ASGD": [{"alpha": 0.5, "t0": 5}],
    "Adafactor": [{"beta2_decay": -0.5}],
    "SGD": [{"fused": False}],
}
for name, more in MORE.items():
    CASES[name] += [{"lr": 0.05, **options} for options in more]
    # How PyTorch computes: accepted, and of no effect.
    # PyTorch's ASGD keeps its rates in float32 then.
    CASES[name] += [{"lr": 0.05, "foreach": chosen} for chosen in (False, True) if name != "ASGD" or not chosen]
ALL = [(name, options) for name, cases in CASES.items() for options in cases]
SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (5,), (2, 3, 4), ())


def named(case: Any) -> str:
    return "-".join(f"{key}={value}" for key, value in case.items()) if isinstance(case, dict) else str(case)


def started(T: Any, name: str, options: dict[str, Any], kind: str) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(0)
    params = [T.nn.Parameter(T.tensor(rng.standard_normal(s), dtype=getattr(T, kind))) for s in SHAPES]
    return params, getattr(T.optim, name)(params, **options)


def go_on(T: Any, params: list[Any], optimizer: Any, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(steps):
        for k, p in enumerate(params):
            grad = T.tensor(rng.standard_normal(tuple(p.shape)), dtype=p.dtype)
            # One parameter misses some steps, so that parameters have made different numbers of them.
            p.grad = None if k == 1 and i % 3 == 0 else grad
        optimizer.step()


def assert_close(ours: Any, theirs: Any, tolerance: float) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def compare(ours: tuple[list[Any], Any], theirs: tuple[list[Any], Any], tolerance: float) -> None:
    for p, q in zip(ours[0], theirs[0], strict=True):
        assert_close(p, q, tolerance)
    a, b = ours[1].state_dict(), theirs[1].state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert repr(ours[1]) == repr(theirs[1])
    assert sorted(a["state"]) == sorted(b["state"])
    for key, entry in b["state"].items():
        entry = {part: value for part, value in entry.items() if value is not None}
        assert sorted(a["state"][key]) == sorted(entry)
        for part, value in entry.items():
            mine = a["state"][key][part]
            assert str(mine.dtype).rpartition(".")[2] == str(value.dtype).rpartition(".")[2]
            assert_close(mine, value, tolerance)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize(("name", "options"), ALL, ids=named)
def test_fifty_steps_are_alike(name: str, options: dict[str, Any], kind: str) -> None:
    ours, theirs = started(rgrad, name, options, kind), started(torch, name, options, kind)
    go_on(rgrad, *ours, 50, 1)
    go_on(torch, *theirs, 50, 1)
    compare(ours, theirs, {"float64": 1e-11, "float32": 2e-4}[kind])


def exchanged(T: Any, value: Any) -> Any:
    if hasattr(value, "detach"):
        return T.tensor(value.detach().numpy())
    if isinstance(value, dict):
        return {key: exchanged(T, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(exchanged(T, item) for item in value)
    return value


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ours_first", [True, False])
def test_states_are_exchanged(name: str, ours_first: bool) -> None:
    options = CASES[name][-1]
    A, B = (rgrad, torch) if ours_first else (torch, rgrad)
    params, optimizer = started(A, name, options, "float64")
    go_on(A, params, optimizer, 4, 2)
    # Loading converts states to their parameter's dtype, in PyTorch too.
    optimizer.load_state_dict(optimizer.state_dict())
    others, other = started(B, name, {}, "float64")
    for p, q in zip(params, others, strict=True):
        q.data.copy_(B.tensor(p.detach().numpy()))
    other.load_state_dict(exchanged(B, optimizer.state_dict()))
    go_on(A, params, optimizer, 4, 3)
    go_on(B, others, other, 4, 3)
    ours, theirs = ((params, optimizer), (others, other)) if ours_first else ((others, other), (params, optimizer))
    compare(ours, theirs, 1e-11)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta"])
def test_one_step_of_half_precision_has_the_same_bits(name: str, kind: str) -> None:
    results = []
    for T in (rgrad, torch):
        params, optimizer = started(T, name, {}, kind)
        go_on(T, params, optimizer, 1, 4)
        results.append([p.detach().float().numpy() for p in params])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "history_size": 3}, {"max_iter": 5, "max_eval": 4}])
def test_lbfgs_is_alike(search: str | None, options: dict[str, Any]) -> None:
    options = {"lr": 1e-3, **options} if search is None else options

    def losses(T: Any) -> list[float]:
        a = T.nn.Parameter(T.tensor([-1.2, 1.0], dtype=T.float64))
        b = T.nn.Parameter(T.tensor([[0.5], [2.0]], dtype=T.float64))
        optimizer = T.optim.LBFGS([a, b], line_search_fn=search, **options)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = 100 * (a[1] - a[0] ** 2) ** 2 + (1 - a[0]) ** 2 + (b**4).sum() + (a[0] * b).sum()
            loss.backward()
            return loss

        found = [optimizer.step(closure).item() for _ in range(3)]
        state = optimizer.state_dict()["state"][0]
        return [*found, state["func_evals"], state["n_iter"], *a.tolist(), *b.flatten().tolist()]

    np.testing.assert_allclose(losses(rgrad), losses(torch), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", grid(nesterov=[True, False], adjust_lr_fn=[None, "match_rms_adamw"]))
def test_muon_is_alike(options: dict[str, Any]) -> None:
    results = []
    for T in (rgrad, torch):
        rng = np.random.default_rng(0)
        params = [T.nn.Parameter(T.tensor(rng.standard_normal(s), dtype=T.float32)) for s in ((3, 4), (6, 2))]
        optimizer = T.optim.Muon(params, lr=0.01, **options)
        for _ in range(3):
            for p in params:
                p.grad = T.tensor(rng.standard_normal(tuple(p.shape)), dtype=T.float32)
            optimizer.step()
        results.append((params, optimizer))
    for p, q in zip(results[0][0], results[1][0], strict=True):
        # The orthogonal matrices are computed in bfloat16.
        assert_close(p, q, 3e-3)
    assert repr(results[0][1]) == repr(results[1][1])
    ours, theirs = (o.state_dict()["state"][0]["momentum_buffer"] for _, o in results)
    assert_close(ours, theirs, 1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_gradients_of_tensor_options_are_alike(name: str) -> None:
    def gradients(T: Any) -> list[float]:
        lr = T.tensor(0.1, dtype=T.float64, requires_grad=True)
        start = T.tensor([1.0, -2.0], dtype=T.float64, requires_grad=True)
        p = start.clone()
        optimizer = getattr(T.optim, name)([p], lr=lr, differentiable=True)
        for _ in range(3):
            q = p.clone()
            p.grad = 2 * q
            optimizer.step()
        p.sum().backward()
        return [lr.grad.item(), *start.grad.tolist()]

    np.testing.assert_allclose(gradients(rgrad), gradients(torch), rtol=1e-4)


def one(T: Any) -> Any:
    return T.ones(2, 2, requires_grad=True)


MISTAKES = {
    "Adadelta rho": lambda T: T.optim.Adadelta([one(T)], rho=2),
    "Adadelta lr": lambda T: T.optim.Adadelta([one(T)], lr=float("nan")),
    "Adagrad lr_decay": lambda T: T.optim.Adagrad([one(T)], lr_decay=-1),
    "Adagrad fused": lambda T: T.optim.Adagrad([one(T)], fused=True, foreach=True),
    "Adam betas": lambda T: T.optim.Adam([one(T)], betas=(1, 0.9)),
    "Adam kinds of betas": lambda T: T.optim.Adam([one(T)], betas=(0, 0.9)),
    "Adam lr": lambda T: T.optim.Adam([one(T)], lr=T.ones(2)),
    "Adam foreach": lambda T: T.optim.Adam([one(T)], lr=T.tensor(0.1), foreach=True),
    "Adam fused": lambda T: T.optim.Adam([one(T)], fused=True, differentiable=True),
    "Adamax eps": lambda T: T.optim.Adamax([one(T)], eps=-1),
    "ASGD": lambda T: T.optim.ASGD([one(T)], weight_decay=-1),
    "NAdam": lambda T: T.optim.NAdam([one(T)], momentum_decay=-1),
    "RAdam": lambda T: T.optim.RAdam([one(T)], betas=(0.5, 1.5)),
    "RMSprop": lambda T: T.optim.RMSprop([one(T)], momentum=-1),
    "RMSprop alpha": lambda T: T.optim.RMSprop([one(T)], alpha=-1),
    "Rprop": lambda T: T.optim.Rprop([one(T)], etas=(1.1, 1.2)),
    "Adafactor lr": lambda T: T.optim.Adafactor([one(T)], lr=-1),
    "Adafactor decay": lambda T: T.optim.Adafactor([one(T)], beta2_decay=1),
    "Adafactor d": lambda T: T.optim.Adafactor([one(T)], d=0.5),
    "Muon shape": lambda T: T.optim.Muon([T.ones(2, requires_grad=True)]),
    "Muon adjust": lambda T: T.optim.Muon([one(T)], adjust_lr_fn="x"),
    "LBFGS groups": lambda T: T.optim.LBFGS([{"params": [one(T)]}, {"params": [one(T)]}]),
    "LBFGS closure": lambda T: T.optim.LBFGS([one(T)]).step(),
    "SparseAdam eps": lambda T: T.optim.SparseAdam([one(T)], eps=0),
    "hook": lambda T: hooked_wrongly(T),
    "dense": lambda T: dense(T),
    "base": lambda T: T.optim.Optimizer([one(T)], {}).step(),
}


def hooked_wrongly(T: Any) -> None:
    optimizer = T.optim.SGD([one(T)])
    optimizer.register_step_pre_hook(lambda *_: 3)
    optimizer.step()


def dense(T: Any) -> None:
    p = one(T)
    p.grad = T.ones(2, 2)
    T.optim.SparseAdam([p]).step()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    if name not in ("hook", "LBFGS closure"):
        assert ours.message == theirs.message.replace("torch.Size", "rgrad.Size")


def changed(before: Any, after: Any) -> bool:
    if hasattr(before, "detach"):
        return not np.array_equal(before.detach().numpy(), after.detach().numpy())
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(changed(before[key], after[key]) for key in before)
    if isinstance(before, (list, tuple)):
        return any(changed(a, b) for a, b in zip(before, after, strict=True))
    return bool(before != after)


@pytest.mark.parametrize("name", CASES)
def test_a_step_with_a_loaded_state_of_another_size_fails_and_changes_nothing(name: str) -> None:
    def failed(T: Any) -> tuple[type, bool]:
        params, optimizer = started(T, name, {"momentum": 0.9} if name == "SGD" else {}, "float64")
        go_on(T, params, optimizer, 2, 2)
        state = copy.deepcopy(optimizer.state_dict())
        entries = state["state"][2]
        # The last of the entries, of a parameter that is neither the first nor the last.
        key = [key for key, value in entries.items() if value is not None and value.dim() == 3][-1]
        entries[key] = T.ones(7, dtype=T.float64)
        optimizer.load_state_dict(state)
        before = copy.deepcopy(([p.detach() for p in params], optimizer.state_dict()["state"]))
        with pytest.raises(RuntimeError, match="must match") as caught:
            optimizer.step()
        kind = next(c for c in type(caught.value).__mro__ if c.__module__ == "builtins")
        return kind, changed(before, ([p.detach() for p in params], optimizer.state_dict()["state"]))

    # PyTorch has stepped the parameters before it, and counted.
    assert failed(rgrad) == (RuntimeError, False)
    assert failed(torch) == (RuntimeError, True)


@pytest.mark.parametrize("name", CASES)
def test_a_step_with_a_wrong_option_fails_and_changes_nothing(name: str) -> None:
    params, optimizer = started(rgrad, name, {}, "float64")
    go_on(rgrad, params, optimizer, 2, 2)
    before = copy.deepcopy(([p.detach() for p in params], optimizer.state_dict()["state"]))
    optimizer.param_groups[0].update({"lr": "x"} if name != "Rprop" else {"etas": (None, "x")})
    with pytest.raises((TypeError, ValueError)):
        optimizer.step()
    assert not changed(before, ([p.detach() for p in params], optimizer.state_dict()["state"]))


def test_every_optimizer_is_there_with_its_signature() -> None:
    import inspect

    for name in torch.optim.__all__ if hasattr(torch.optim, "__all__") else dir(torch.optim):
        theirs = getattr(torch.optim, name)
        if not inspect.isclass(theirs):
            continue
        ours = inspect.signature(getattr(rgrad.optim, name).__init__).parameters
        wanted = inspect.signature(theirs.__init__).parameters
        assert [(p.name, p.kind, p.default) for p in ours.values()] == [
            (p.name, p.kind, p.default) for p in wanted.values()
        ], name
