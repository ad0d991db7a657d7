"""Every optimizer against its formula in NumPy, and the ways of writing parameters: fast, one by one, recorded."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rgrad
from rgrad import _core, optim
from rgrad.optim import lr_scheduler, swa_utils

F64 = rgrad.float64


def decayed(g, p, o):
    return g + o.get("weight_decay", 0.0) * p


def adam(p, g, s, t, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, **o):
    g = decayed(g, p, o)
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    return p - lr * (s["m"] / (1 - b1**t)) / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def adamw(p, g, s, t, lr=0.001):
    return adam(p * (1 - lr * 0.01), g, s, t, lr)


def nadam(p, g, s, t, lr=0.002, b1=0.9, b2=0.999, eps=1e-8, **o):
    g = decayed(g, p, o)
    now, following = (b1 * (1 - 0.5 * 0.96 ** (k * 4e-3)) for k in (t, t + 1))
    s["product"] = s.get("product", 1.0) * now
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    step = following * s["m"] / (1 - s["product"] * following) + (1 - now) * g / (1 - s["product"])
    return p - lr * step / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def radam(p, g, s, t, lr=0.001, b1=0.9, b2=0.7, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    longest = 2 / (1 - b2) - 1
    length = longest - 2 * t * b2**t / (1 - b2**t)
    step = s["m"] / (1 - b1**t)
    if length > 5:
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        step = step * np.sqrt(ratio) * np.sqrt(1 - b2**t) / (np.sqrt(s["v"]) + eps)
    return p - lr * step


def adamax(p, g, s, t, lr=0.002, b1=0.9, b2=0.999, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["u"] = np.maximum(b2 * s.get("u", 0 * p), np.abs(g) + eps)
    return p - lr / (1 - b1**t) * s["m"] / s["u"]


def adagrad(p, g, s, t, lr=0.01, eps=1e-10, **o):
    g = decayed(g, p, o)
    s["sum"] = s.get("sum", 0) + g * g
    return p - lr * g / (np.sqrt(s["sum"]) + eps)


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * delta * delta
    return p - lr * delta


def rmsprop(p, g, s, t, lr=0.01, alpha=0.99, eps=1e-8):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["mean"] = alpha * s.get("mean", 0) + (1 - alpha) * g
    s["buffer"] = 0.7 * s.get("buffer", 0) + g / (np.sqrt(s["v"] - s["mean"] ** 2) + eps)
    return p - lr * s["buffer"]


def rprop(p, g, s, t):
    before = s.get("g", 0 * p) * g
    size = s.get("size", 0 * p + 0.01)
    s["size"] = np.clip(size * np.where(before > 0, 1.2, np.where(before < 0, 0.5, 1.0)), 1e-6, 50)
    s["g"] = np.where(before < 0, 0.0, g)
    return p - np.sign(s["g"]) * s["size"]


def asgd(p, g, s, t, lr=0.01, lambd=1e-4):
    eta = lr if t == 1 else lr / (1 + lambd * lr * (t - 1)) ** 0.75
    return p * (1 - lambd * eta) - eta * g


def sgd(p, g, s, t):
    g = g + 0.1 * p
    s["b"] = g if t == 1 else 0.9 * s["b"] + g
    return p - 0.1 * (g + 0.9 * s["b"])


CASES = {
    "SGD": (sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "Adam": (lambda *a: adam(*a, weight_decay=0.1), {"weight_decay": 0.1}),
    "AdamW": (adamw, {}),
    "NAdam": (lambda *a: nadam(*a, weight_decay=0.1), {"weight_decay": 0.1}),
    "RAdam": (radam, {"betas": (0.9, 0.7)}),
    "Adamax": (adamax, {}),
    "Adagrad": (lambda *a: adagrad(*a, weight_decay=0.1), {"weight_decay": 0.1}),
    "Adadelta": (adadelta, {}),
    "RMSprop": (rmsprop, {"momentum": 0.7, "centered": True}),
    "Rprop": (rprop, {}),
    "ASGD": (asgd, {}),
}
SHAPES = ((3, 4), (5,), (), (0, 2), (70000,))


def grads_of(seed: int, shapes=SHAPES) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
def test_steps_follow_the_formula(name: str, device: str) -> None:
    reference, options = CASES[name]
    dtype = F64 if device == "cpu" else rgrad.float32
    values = grads_of(0)
    params = [rgrad.tensor(v, dtype=dtype, device=device, requires_grad=True) for v in values]
    optimizer = getattr(optim, name)(params, **options)
    states: list[dict] = [{} for _ in values]
    for t in range(1, 8):
        grads = grads_of(t)
        for p, g in zip(params, grads, strict=True):
            p.grad = rgrad.tensor(g, dtype=dtype, device=device)
        versions = [p._version for p in params]
        optimizer.step()
        assert all(p._version > v for p, v in zip(params, versions, strict=True))
        values = [reference(v, g, s, t) for v, g, s in zip(values, grads, states, strict=True)]
    for p, v in zip(params, values, strict=True):
        # The states of ASGD that are numbers are float32.
        rough = 1e-10 if name not in ("ASGD", "NAdam") else 1e-7
        tolerance = {"rtol": rough, "atol": rough} if device == "cpu" else {"rtol": 1e-3, "atol": 1e-4}
        np.testing.assert_allclose(p.detach().cpu().numpy(), v, **tolerance)


def trained(make, order: bool) -> list:
    p = rgrad.tensor(grads_of(0, ((4, 6),))[0], requires_grad=True)
    optimizer = make([p])
    for t in range(1, 5):
        g = rgrad.tensor(grads_of(t, ((4, 6),))[0])
        p.grad = g.T.contiguous().T if order else g
        optimizer.step()
    return [p.detach(), *(v for v in optimizer.state[p].values())]


@pytest.mark.parametrize("name", CASES)
def test_gradients_in_another_order_give_the_same_bits(name: str) -> None:
    options = CASES[name][1]
    fast, slow = (trained(lambda ps: getattr(optim, name)(ps, **options), order) for order in (False, True))
    for a, b in zip(fast, slow, strict=True):
        assert rgrad.equal(a, b)


def test_parameters_that_share_memory_are_written_one_after_the_other() -> None:
    whole = rgrad.ones(8)
    with rgrad.no_grad():
        parts = [whole[:6].detach(), whole[4:].detach()]
    for part in parts:
        part.requires_grad_(True)
        part.grad = rgrad.ones_like(part)
    optim.SGD(parts, lr=1.0).step()
    assert whole.tolist() == [0, 0, 0, 0, -1, -1, 0, 0]
    with pytest.warns(UserWarning, match="duplicate parameters"):
        twice = optim.SGD([parts[0], parts[0]], lr=1.0)
    twice.step()
    assert whole.tolist() == [-2, -2, -2, -2, -3, -3, 0, 0]


def test_a_gradient_that_is_another_parameter_is_read_before() -> None:
    a, b = rgrad.ones(3, requires_grad=True), rgrad.full((3,), 2.0, requires_grad=True)
    a.grad, b.grad = b.detach(), rgrad.ones(3)
    optim.SGD([a, b], lr=1.0).step()
    # `b` is written by itself first, or after: its gradient does not depend on `a`.
    assert b.tolist() == [1, 1, 1]
    assert a.tolist() in ([-1, -1, -1], [0, 0, 0])


def test_frozen_parameters_are_refused() -> None:
    p = rgrad.ones(3, requires_grad=True)
    p.grad = rgrad.ones(3)
    p.detach().freeze_()
    with pytest.raises(RuntimeError, match="frozen"):
        optim.SGD([p], lr=1.0).step()
    assert p.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("inputs", "rows", "writes", "message"),
    [
        (1, [("nothing", [0], [])], [(0, 0)], "no operation nothing"),
        (1, [("mul", [0], [])], [(0, 0)], "another number of operands"),
        (1, [("mul", [0, -1], [])], [(0, 0)], "a number that is not given"),
        (1, [("mul", [0, 7], [])], [(0, 0)], "an operand that is not there"),
        (1, [("mul", [0, 0], [])], [(3, 0)], "different lengths"),
        (2, [("mul", [0, 1], [])], [(0, 0)], "different lengths"),
        (1, [("mul", [0, 0], [])], [(0, 4)], "a step that it does not have"),
        (1, [("mul", [0, 0], []), ("add", [0, 1], [])], [(0, 0)], "an earlier step has overwritten"),
        (1, [("gt", [0, 0], [])], [(0, 0)], "another dtype"),
    ],
)
def test_formulas_that_are_none(inputs, rows, writes, message) -> None:
    lists = [[rgrad.ones(2)], [rgrad.ones(2)] * 2][:inputs]
    with rgrad.no_grad(), pytest.raises(RuntimeError, match=message):
        _core._UpdateFormula(inputs, rows, writes).apply(lists, [])


def test_results_are_the_same_bits_for_any_number_of_threads() -> None:
    threads = rgrad.get_num_threads()
    found = []
    try:
        for number in (1, 2, 3):
            rgrad.set_num_threads(number)
            p = rgrad.linspace(-3, 3, 300_001).requires_grad_(True)
            optimizer = optim.Adam([p])
            for _ in range(3):
                p.grad = p.detach().sin()
                optimizer.step()
            found.append(p.detach().clone())
    finally:
        rgrad.set_num_threads(threads)
    assert rgrad.equal(found[0], found[1])
    assert rgrad.equal(found[0], found[2])


def test_hooks_of_all_kinds() -> None:
    seen = []
    p = rgrad.ones(1, requires_grad=True)
    p.grad = rgrad.ones(1)
    optimizer = optim.SGD([p], lr=1.0)
    handles = [
        optim.optimizer.register_optimizer_step_pre_hook(lambda *_: seen.append("all before")),
        optim.optimizer.register_optimizer_step_post_hook(lambda *_: seen.append("all after")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", o is optimizer, len(args)))),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append(sorted(s))),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append("first"), prepend=True),
    ]
    optimizer.step()
    assert seen == ["all before", ("before", True, 1), "after", "all after"]
    seen.clear()
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert seen == ["state", "first", ["more", "param_groups", "state"], "loaded"]
    for handle in handles:
        handle.remove()
    seen.clear()
    optimizer.step()
    assert seen == []


def test_a_subclass_that_calls_its_base_has_one_step() -> None:
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    p = rgrad.ones(1, requires_grad=True)
    p.grad = rgrad.ones(1)
    optimizer, seen = Twice([p], lr=0.25), []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert (seen, p.tolist()) == ([1], [0.5])


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_a_minimum(search) -> None:
    p = rgrad.tensor([-1.2, 1.0], dtype=F64, requires_grad=True)
    optimizer = optim.LBFGS([p], lr=1.0 if search else 0.1, max_iter=100 if search else 400, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        x, y = p
        loss = (1 - x) ** 2 + (10.0 if search is None else 100.0) * (y - x * x) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    np.testing.assert_allclose(p.detach().numpy(), [1, 1], atol=1e-4)
    again = optim.LBFGS([p], line_search_fn=search)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert again.state[p]["n_iter"] == optimizer.state[p]["n_iter"]
    again.step(closure)


def test_factored_and_orthogonal_steps_go_down() -> None:
    for kind, options in ((optim.Adafactor, {"lr": 0.1}), (optim.Muon, {"lr": 0.02, "weight_decay": 0.0})):
        p = rgrad.tensor(grads_of(1, ((6, 3),))[0], dtype=rgrad.float32, requires_grad=True)
        optimizer = kind([p], **options)
        losses = []
        for _ in range(30):
            loss = (p * p).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0]
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optim.SparseAdam([p]).step()


def test_named_parameters_and_state_of_old_versions() -> None:
    net = rgrad.nn.Linear(2, 1)
    optimizer = optim.Adam(net.named_parameters())
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    assert "param_names: ['weight', 'bias']" in repr(optimizer)
    net(rgrad.ones(1, 2)).sum().backward()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    for entry in state["state"].values():
        entry["step"] = 3
    optimizer.load_state_dict(state)
    assert optimizer.state[net.weight]["step"].item() == 3
    assert optimizer.state[net.weight]["step"].dtype == rgrad.float32


def test_schedules_change_tensor_rates_in_place() -> None:
    lr = rgrad.tensor(0.5)
    optimizer = optim.Adam([rgrad.ones(1, requires_grad=True)], lr=lr)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.25


def test_averaged_models_and_their_schedule() -> None:
    net = rgrad.nn.Linear(1, 1, bias=False)
    model = swa_utils.AveragedModel(net)
    for value in (1.0, 2.0, 6.0):
        net.weight.data.fill_(value)
        model.update_parameters(net)
    assert model.module.weight.item() == pytest.approx(3.0)
    assert model(rgrad.ones(1, 1)).item() == pytest.approx(3.0)
    assert model.n_averaged.item() == 3
    with pytest.raises(AssertionError, match="Only one of"):
        swa_utils.AveragedModel(net, avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    optimizer = optim.SGD([rgrad.ones(1)], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    found = []
    for _ in range(4):
        optimizer.step()
        schedule.step()
        found.append(schedule.get_last_lr()[0])
    assert found == [0.75, 0.5, 0.5, 0.5]


def test_adamw_has_a_file_of_its_own_as_in_pytorch() -> None:
    from rgrad.optim.adamw import AdamW

    assert AdamW is optim.AdamW
