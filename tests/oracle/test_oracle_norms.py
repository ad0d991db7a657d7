"""The norm layers beside PyTorch: random configurations, running statistics, gradients of both orders, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402

LIBRARIES = (rgrad, torch)


def tensors(array: np.ndarray, kind: str, layout: str = "dense", grad: bool = True) -> list[Any]:
    """The same tensor of both libraries, in a layout; leaves with `grad`."""
    made = []
    for T in LIBRARIES:
        t = T.tensor(array, dtype=getattr(T, kind))
        if layout == "transposed":
            t = t.transpose(0, -1).contiguous().transpose(0, -1)
        elif layout == "channels last" and t.dim() > 2:
            order = (0, *range(2, t.dim()), 1)
            back = (0, t.dim() - 1, *range(1, t.dim() - 1))
            t = t.permute(order).contiguous().permute(back)
        elif layout == "part":
            t = T.cat([t, t], -1)[..., : t.shape[-1]]
        elif layout == "turned":
            t = T.flip(t, (0,)).flip(0)
        made.append(t.requires_grad_(grad))
    return made


def values(t: Any) -> np.ndarray:
    return np.array(t.detach().numpy())


def close(ours: Any, theirs: Any, kind: str, what: str, scale: float = 1.0) -> None:
    if theirs is None:
        assert ours is None, what
        return
    assert tuple(ours.shape) == tuple(theirs.shape), what
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2], what
    tol = {"float32": 3e-5, "float64": 1e-10}[kind] * scale
    a, b = values(ours), values(theirs)
    top = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol * top, err_msg=what, equal_nan=True)


LAYOUTS = ("dense", "transposed", "channels last", "part", "turned")


class Case:
    """A random call: the function, arguments as arrays, other arguments."""

    def __init__(self, name: str, seed: int) -> None:
        rng = np.random.default_rng([seed, sum(map(ord, name))])
        self.name, self.rng = name, rng
        self.kind = "float32" if seed % 3 else "float64"
        self.layout = LAYOUTS[rng.integers(len(LAYOUTS))]
        sizes = (0, 1, 2, 3, 5, 8, 17, 40) if seed % 4 == 0 else (1, 2, 3, 4, 7, 16, 33)
        rank = int(rng.integers(1 if name in ("layer_norm", "rms_norm") else 2, 6))
        while True:
            shape = [int(rng.choice(sizes)) for _ in range(rank)]
            if np.prod(shape) <= 6000:
                break
        self.eps = float(rng.choice([1e-5, 1e-3, 0.3]))
        self.groups = int(rng.integers(1, 4))
        if name == "group_norm":
            shape[1] = self.groups * max(1, shape[1] // self.groups)
        self.shape = shape
        self.x = rng.standard_normal(shape) * rng.choice([0.1, 1.0, 30.0]) + rng.choice([0.0, 0.0, 5.0, -100.0])
        self.over = shape[len(shape) - int(rng.integers(1, rank + 1)) :]
        params = self.over if name in ("layer_norm", "rms_norm") else shape[1:2]
        self.weight = rng.standard_normal(params) if rng.random() < 0.7 else None
        self.bias = rng.standard_normal(params) if rng.random() < 0.7 and name != "rms_norm" else None
        self.mean = rng.standard_normal(params) if rng.random() < 0.7 else None
        self.var = rng.random(params) + 0.2 if self.mean is not None else None
        self.training = bool(rng.random() < 0.7) or self.mean is None
        self.momentum = float(rng.choice([0.1, 0.5, 1.0, 0.0]))

    def call(self, T: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any) -> Any:
        F = T.nn.functional
        if self.name == "layer_norm":
            return F.layer_norm(x, self.over, weight, bias, self.eps)
        if self.name == "rms_norm":
            return F.rms_norm(x, self.over, weight, None if self.momentum == 0.1 else self.eps)
        if self.name == "group_norm":
            return F.group_norm(x, self.groups, weight, bias, self.eps)
        if self.name == "batch_norm":
            return F.batch_norm(x, mean, var, weight, bias, self.training, self.momentum, self.eps)
        return F.instance_norm(x, mean, var, weight, bias, self.training, self.momentum, self.eps)


NAMES = ("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(120))
def test_random_configurations(name: str, seed: int) -> None:
    case = Case(name, seed)
    rest = [(case.weight, True), (case.bias, True), (case.mean, False), (case.var, False)]
    operands = [tensors(case.x, case.kind, case.layout)]
    operands += [[None, None] if p is None else tensors(p, case.kind, grad=grad) for p, grad in rest]
    made = []
    for k, T in enumerate(LIBRARIES):
        args = [o[k] for o in operands]
        made.append(attempt(lambda T=T, args=args: case.call(T, *args)))
    ours, theirs = made
    what = f"{case.shape} {case.layout} {case.__dict__}"
    if 0 in case.shape and theirs.error is IndexError:
        # PyTorch fails at some inputs without elements.
        assert tuple(ours.value.shape) == tuple(case.shape)
        return
    assert ours.error == theirs.error, f"{ours.message} / {theirs.message} {what}"
    if theirs.error is not None:
        return
    # A deviation near 0 is rounding multiplied by 1 / sqrt(eps).
    scale = 30.0 if np.abs(case.x).max(initial=0.0) > 50 else 3.0
    close(ours.value, theirs.value, case.kind, f"result of {what}", scale)
    assert visible_strides(ours.value) == visible_strides(theirs.value), what
    # PyTorch multiplies inputs without elements by the weight.
    assert 0 in case.shape or type(ours.value.grad_fn).__name__ == type(theirs.value.grad_fn).__name__
    for k in (3, 4):
        close(*operands[k], case.kind, f"running statistics of {what}", scale)
    seed_of = case.rng.standard_normal(case.shape)
    (g, h), wanted = tensors(seed_of, case.kind, grad=True), [o for o in operands[:3] if o[0] is not None]
    firsts = []
    for k, (T, grad, y) in enumerate(zip(LIBRARIES, (g, h), (ours.value, theirs.value), strict=True)):
        made_of = attempt(
            lambda T=T, y=y, grad=grad, k=k: T.autograd.grad(
                y, [o[k] for o in wanted], grad.detach(), retain_graph=True
            )
        )
        if T is torch and "does not have a device" in made_of.message:
            # PyTorch has no gradient of a bias of group norm without a weight.
            assert case.name == "group_norm"
            return
        assert made_of.error is None, made_of.message
        plain = made_of.value
        again = attempt(
            lambda T=T, y=y, grad=grad, k=k: T.autograd.grad(y, [o[k] for o in wanted], grad, create_graph=True)
        )
        # PyTorch fails at recorded gradients of some functions without a weight.
        assert again.error is None or (T is torch and "does not have a device" in again.message)
        recorded = again.value
        firsts.append((plain, recorded))
    scale *= max(1.0, float(np.abs(seed_of).max(initial=1.0)))
    if 0 in case.shape:
        # PyTorch's group norm has nan for the gradients of parameters here: a sum of nothing is 0.
        assert all(not values(t).any() for t in firsts[0][0])
        return
    if firsts[1][1] is None:
        for a, b in zip(firsts[0][0], firsts[1][0], strict=True):
            close(a, b, case.kind, f"gradient of {what}", 10 * scale)
        return
    for a, c, b, d in zip(firsts[0][0], firsts[0][1], firsts[1][0], firsts[1][1], strict=True):
        close(a, b, case.kind, f"gradient of {what}", 10 * scale)
        close(c, d, case.kind, f"recorded gradient of {what}", 10 * scale)
    if case.kind == "float64":
        for k in range(len(wanted)):
            seconds = []
            for j, (T, grad) in enumerate(zip(LIBRARIES, (g, h), strict=True)):
                total = (firsts[j][1][k] * firsts[j][1][k].cos()).sum()
                if not total.requires_grad:
                    seconds.append(None)
                    continue
                leaves = [o[j] for o in wanted] + [grad]
                made_of = attempt(
                    lambda T=T, total=total, leaves=leaves: T.autograd.grad(
                        total, leaves, allow_unused=True, retain_graph=True
                    )
                )
                # PyTorch fails where the first gradients were not all asked for.
                assert made_of.error is None or (T is torch and "does not have a device" in made_of.message)
                seconds.append(made_of.value)
            if None in seconds:
                continue
            for a, b in zip(*seconds, strict=True):
                # Some derivatives are missing in PyTorch: those by the gradient of a bias without a weight.
                if b is None or a is None:
                    assert b is None or float(np.abs(values(b)).max(initial=0)) < 1e-9, what
                else:
                    close(a, b, case.kind, f"second gradient of {what}", 1e4 * scale)


BIG = {
    "layer_norm": [((70, 1000), (1000,)), ((3, 200_000), (200_000,)), ((500, 7), (7,))],
    "group_norm": [((2, 6, 300, 300), 2), ((20, 8, 17), 4), ((5, 6, 3), 3), ((3, 64, 56, 56), 32)],
    "batch_norm": [
        ((3000, 70), None),
        ((40, 3, 100, 60), None),
        ((8, 12, 14, 14), None),
        ((300, 20, 5), None),
        ((4, 2, 300, 300), None),
    ],
    "instance_norm": [((4, 3, 300, 300), None), ((10, 4, 50), None)],
}


@pytest.mark.parametrize("name", BIG)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_large_inputs_are_as_accurate_as_in_double_precision(name: str, offset: float) -> None:
    """Inputs that are divided among tasks; a large mean does not cancel."""
    rng = np.random.default_rng(0)
    for shape, extra in BIG[name]:
        wide = rng.standard_normal(shape) + offset
        # The values that float32 holds.
        wide = wide.astype(np.float32).astype(np.float64)
        c = extra if name == "layer_norm" else shape[1:2]
        w, b, g = rng.standard_normal(c), rng.standard_normal(c), rng.standard_normal(shape)
        results = []
        for T, kind in ((rgrad, "float32"), (torch, "float64")):
            x, weight, bias = (T.tensor(v, dtype=getattr(T, kind), requires_grad=True) for v in (wide, w, b))
            mean, var = T.zeros(*c, dtype=x.dtype), T.ones(*c, dtype=x.dtype)
            F = T.nn.functional
            if name == "layer_norm":
                y = F.layer_norm(x, extra, weight, bias)
            elif name == "group_norm":
                y = F.group_norm(x, extra, weight, bias)
            elif name == "batch_norm":
                y = F.batch_norm(x, mean, var, weight, bias, True)
            else:
                y = F.instance_norm(x, mean, var, weight, bias)
            y.backward(T.tensor(g, dtype=x.dtype))
            results.append([values(t) for t in (y, x.grad, weight.grad, bias.grad, mean, var)])
        for k, (a, b_) in enumerate(zip(*results, strict=True)):
            # What is saved is a rounded mean: with an offset, gradients see its rounding.
            tol = (3e-6 if k in (0, 3, 4, 5) else 3e-5) if offset == 0 else (2e-5 if k in (0, 3, 4, 5) else 3e-3)
            np.testing.assert_allclose(a, b_, rtol=tol, atol=tol * np.abs(b_).max(), err_msg=f"{shape} {offset} {k}")


def test_nodes_and_what_they_keep() -> None:
    for call in (
        lambda T, x, w: T.nn.functional.layer_norm(x, (3,), w),
        lambda T, x, w: T.nn.functional.group_norm(x, 3, w),
        lambda T, x, w: T.nn.functional.batch_norm(x, T.zeros(3), T.ones(3), w),
        lambda T, x, w: T.nn.functional.batch_norm(x, None, None, w, training=True),
        lambda T, x, w: T.nn.functional.instance_norm(x, weight=w, bias=w),
        lambda T, x, w: T.nn.functional.rms_norm(x, (3,), w),
    ):
        made = []
        for T in LIBRARIES:
            x = T.arange(36.0).reshape(2, 3, 2, 3).requires_grad_()
            names, todo = [], [call(T, x, T.ones(3).requires_grad_()).grad_fn]
            while todo:
                node = todo.pop()
                names.append(type(node).__name__)
                shown = {a: getattr(node, a) for a in dir(node) if a.startswith("_saved")}
                names.append(sorted((a, tuple(v.shape) if hasattr(v, "shape") else v) for a, v in shown.items()))
                todo += [n for n, _ in node.next_functions if n is not None]
            made.append(names)
        assert made[0] == made[1]


MODULES: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "LayerNorm": (lambda nn: nn.LayerNorm(4), [(5, 4), (2, 3, 4)]),
    "LayerNorm without bias": (lambda nn: nn.LayerNorm((3, 4), eps=0.1, bias=False), [(2, 3, 4)]),
    "LayerNorm without parameters": (lambda nn: nn.LayerNorm([4], elementwise_affine=False), [(2, 3, 4)]),
    "RMSNorm": (lambda nn: nn.RMSNorm(4), [(5, 4)]),
    "RMSNorm with eps": (lambda nn: nn.RMSNorm((3, 4), 0.1, elementwise_affine=False), [(2, 3, 4)]),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 6), [(3, 6), (2, 6, 5)]),
    "GroupNorm without bias": (lambda nn: nn.GroupNorm(3, 6, eps=0.1, bias=False), [(2, 6, 2, 2)]),
    "GroupNorm without parameters": (lambda nn: nn.GroupNorm(6, 6, affine=False), [(2, 6, 3)]),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), [(5, 3), (2, 3, 4)]),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3, eps=0.1, momentum=0.5), [(2, 3, 4, 5)]),
    "BatchNorm3d": (lambda nn: nn.BatchNorm3d(3, affine=False), [(2, 3, 2, 2, 2)]),
    "BatchNorm cumulative": (lambda nn: nn.BatchNorm1d(3, momentum=None), [(5, 3), (6, 3)]),
    "BatchNorm without statistics": (lambda nn: nn.BatchNorm1d(3, track_running_stats=False), [(5, 3)]),
    "BatchNorm without bias": (lambda nn: nn.BatchNorm1d(3, bias=False), [(5, 3)]),
    "InstanceNorm1d": (lambda nn: nn.InstanceNorm1d(3), [(2, 3, 4), (3, 4)]),
    "InstanceNorm2d": (
        lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        [(2, 3, 4, 5), (3, 4, 5)],
    ),
    "InstanceNorm3d": (lambda nn: nn.InstanceNorm3d(3, affine=True), [(2, 3, 2, 2, 2)]),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, shapes = MODULES[name]
    ours, theirs = make(rgrad.nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(torch.tensor(rng.standard_normal(p.shape)))
    ours.load_state_dict({k: rgrad.tensor(values(v)) for k, v in theirs.state_dict().items()})
    for step in range(4):
        if step == 3:
            ours.eval(), theirs.eval()
        for shape in shapes:
            x, y = tensors(rng.standard_normal(shape), "float32")
            a, b = ours(x), theirs(y)
            close(a, b, "float32", f"{name} {step}")
            a.square().sum().backward()
            b.square().sum().backward()
            close(x.grad, y.grad, "float32", f"gradient of {name} {step}", 30)
    for (key, p), q in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        if key == "num_batches_tracked":
            assert int(p) == int(q)
            assert p.dtype == rgrad.int64
        else:
            close(p, q, "float32", f"{name} {key}")
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, "float32", f"gradient of a parameter of {name}", 30)


def test_states_of_the_first_version_have_no_number_of_batches() -> None:
    for T in LIBRARIES:
        m = T.nn.BatchNorm1d(2)
        state = {k: v for k, v in m.state_dict().items() if k != "num_batches_tracked"}
        m.load_state_dict(state)
        state = m.state_dict()
        del state["num_batches_tracked"]
        with pytest.raises(RuntimeError, match="Missing key"):
            m.load_state_dict(state)
        m(T.ones(3, 2))
        assert int(m.num_batches_tracked) == 1
        m.reset_running_stats()
        assert int(m.num_batches_tracked) == 0


ERRORS: list[Callable[[Any], Any]] = [
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), (4,)),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), ()),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), (3,), T.ones(2)),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), (3,), None, T.ones(2)),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), (2, 2, 3)),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), 3),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3), (3,), T.ones(3).double()),
    lambda T: T.nn.functional.layer_norm(T.ones(2, 3).int(), (3,)),
    lambda T: T.nn.functional.layer_norm(T.tensor(1.0), (1,)),
    lambda T: T.nn.functional.rms_norm(T.ones(2, 3), (4,)),
    lambda T: T.nn.functional.rms_norm(T.ones(2, 3), ()),
    lambda T: T.nn.functional.rms_norm(T.ones(2, 3), (3,), T.ones(2)),
    lambda T: T.nn.functional.rms_norm(T.ones(2, 3).int(), (3,)),
    lambda T: T.nn.functional.group_norm(T.ones(2, 3), 2),
    lambda T: T.nn.functional.group_norm(T.ones(2, 4, 3), 0),
    lambda T: T.nn.functional.group_norm(T.ones(2, 4, 3), -1),
    lambda T: T.nn.functional.group_norm(T.ones(4), 2),
    lambda T: T.nn.functional.group_norm(T.ones(1, 2), 2),
    lambda T: T.nn.functional.group_norm(T.ones(2, 4, 3), 2, T.ones(3)),
    lambda T: T.nn.functional.group_norm(T.ones(2, 4, 3), 2, T.ones(4).double()),
    lambda T: T.nn.functional.group_norm(T.ones(2, 4, 3).int(), 2),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), None, None),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), None),
    lambda T: T.nn.functional.batch_norm(T.ones(1, 3), None, None, training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(1, 3, 1), None, None, training=True),
    lambda T: T.nn.functional.batch_norm(T.tensor(3.0), None, None, training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(3), None, None, training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(2), T.ones(3), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), T.ones(2), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), T.ones(3), T.ones(4), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), T.ones(3), T.ones(3), T.ones(4)),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3).double(), T.ones(3).double(), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), T.ones(3), T.ones(3).double(), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3).int(), T.ones(3), T.ones(3), training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), None, training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3), T.ones(3), eps=-1.0, training=True),
    lambda T: T.nn.functional.batch_norm(T.ones(2, 3), T.ones(3).requires_grad_(), T.ones(3), training=True),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3, 1)),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3)),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3, 4), use_input_stats=False),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3, 4), T.ones(2), T.ones(3)),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3, 4), T.ones(3)),
    lambda T: T.nn.functional.instance_norm(T.ones(2, 3, 4), weight=T.ones(4)),
    lambda T: T.nn.BatchNorm1d(3)(T.ones(2, 4)),
    lambda T: T.nn.BatchNorm1d(3)(T.ones(2, 3, 4, 5)),
    lambda T: T.nn.BatchNorm2d(3)(T.ones(2, 3)),
    lambda T: T.nn.BatchNorm3d(3)(T.ones(2, 3)),
    lambda T: T.nn.InstanceNorm1d(3)(T.ones(3)),
    lambda T: T.nn.InstanceNorm2d(3)(T.ones(2, 3)),
    lambda T: T.nn.InstanceNorm1d(3, affine=True)(T.ones(2, 4, 5)),
    lambda T: T.nn.GroupNorm(2, 3),
]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors(k: int) -> None:
    ours, theirs = (attempt(lambda T=T: ERRORS[k](T)) for T in LIBRARIES)
    assert theirs.error is not None
    assert ours.error == theirs.error, f"{ours.message} / {theirs.message}"
    # What the message names is there: the first words, up to the first number.
    words = theirs.message.replace("torch.Size", "").split("[")[0].split("(")[0][:40]
    if ours.error not in (IndexError, TypeError, ZeroDivisionError):
        assert words.strip() in ours.message.replace("rgrad.Size", ""), f"{ours.message} / {theirs.message}"


def test_other_numbers_of_channels_are_warned_of() -> None:
    for T in LIBRARIES:
        with pytest.warns(UserWarning, match="does not match num_features"):
            T.nn.InstanceNorm1d(3)(T.ones(2, 4, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rgrad.nn.InstanceNorm1d(4)(rgrad.ones(2, 4, 5))


def test_failed_calls_leave_running_statistics_alone() -> None:
    mean, var = rgrad.zeros(3), rgrad.ones(3)
    with pytest.raises(RuntimeError):
        rgrad.nn.functional.batch_norm(rgrad.ones(2, 3), mean, var, rgrad.ones(4), training=True)
    with pytest.raises(ValueError, match="more than 1"):
        rgrad.nn.functional.batch_norm(rgrad.ones(1, 3), mean, var, training=True)
    assert mean.tolist() == [0.0] * 3
    assert var.tolist() == [1.0] * 3


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 40])
@pytest.mark.parametrize("channels", [1, 2, 5, 24])
def test_cross_map_response(size: int, channels: int) -> None:
    values = np.random.default_rng(size).standard_normal((2, channels, 2, 1)) * 2
    ours, theirs = (T.nn.CrossMapLRN2d(size, alpha=1.5, beta=0.6, k=2) for T in (rgrad, torch))
    assert repr(ours) == repr(theirs)
    x = rgrad.tensor(values, requires_grad=True)
    y = ours(x)
    np.testing.assert_allclose(y.detach().numpy(), theirs(torch.tensor(values)).numpy(), rtol=1e-12, atol=1e-14)
    # PyTorch's own gradient belongs to another function, so ours is compared with differences of PyTorch's values.
    weights = np.linspace(0.5, 1.5, values.size).reshape(values.shape)
    (y * rgrad.tensor(weights)).sum().backward()
    for place in np.ndindex(*values.shape):
        step = np.zeros_like(values)
        step[place] = 1e-6
        high, low = (float((theirs(torch.tensor(values + s)) * torch.tensor(weights)).sum()) for s in (step, -step))
        assert abs((high - low) / 2e-6 - x.grad[place].item()) < 1e-7


def test_cross_map_response_takes_images() -> None:
    for T in (rgrad, torch):
        with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 3D instead"):
            T.nn.CrossMapLRN2d(3)(T.ones(2, 3, 4))
