"""Entries of nn.utils, nn.init and utils.data that no other comparison calls, and that none is left out."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

HERE = Path(__file__).resolve().parent
NAMES = HERE.parent / "data" / "torch_names.json"
# PyTorch's pipes of data, which docs/nn-and-optim.md leaves out, and a private name.
LEFT_OUT = {
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "_DatasetKind",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
}


def filled(T: Any, module: Any) -> Any:
    """The module with the same numbers in both libraries."""
    with T.no_grad():
        for k, tensor in enumerate((*module.parameters(), *module.buffers())):
            if tensor.is_floating_point():
                tensor.copy_((T.arange(tensor.numel(), dtype=tensor.dtype) * 0.7 + k).cos().abs().reshape(tensor.shape))
    return module.eval()


def shown(T: Any, value: Any) -> Any:
    if isinstance(value, T.Tensor):
        return str(value.dtype).rpartition(".")[2], tuple(value.shape), value.stride(), value.detach().numpy()
    if isinstance(value, dict):
        return {key: shown(T, item) for key, item in value.items()}
    return [shown(T, item) for item in value] if isinstance(value, (list, tuple)) else value


def same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        same(list(ours.values()), list(theirs.values()))
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    else:
        assert ours == theirs


def clip_grad_norm(T: Any) -> Any:
    p = T.nn.Parameter(T.ones(3))
    p.grad = T.tensor([3.0, 0.0, 4.0])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        norm = T.nn.utils.clip_grad_norm(p, 1.0)
    return norm, p.grad, [w.category.__name__ for w in seen]


def converted(T: Any, rank: int, form: str) -> Any:
    net = filled(T, T.nn.Sequential(getattr(T.nn, f"Conv{rank}d")(2, 3, 2), T.nn.ReLU(), T.nn.Linear(2, 2)))
    convert = getattr(T.nn.utils, f"convert_conv{rank}d_weight_memory_format")
    same_module = convert(net, getattr(T, form)) is net
    return same_module, list(net.parameters()), attempt(lambda: convert(net, 3)).error


def fused_convolutions(T: Any) -> Any:
    found = []
    for rank in (1, 2, 3):
        for bias, affine in ((True, True), (False, False)):
            conv = filled(T, getattr(T.nn, f"Conv{rank}d")(2, 4, 2, bias=bias, groups=2))
            norm = filled(T, getattr(T.nn, f"BatchNorm{rank}d")(4, affine=affine))
            fused = T.nn.utils.fuse_conv_bn_eval(conv, norm)
            x = T.linspace(-1, 1, 2 * 3**rank).reshape(1, 2, *[3] * rank)
            found += [fused(x), norm(conv(x)), list(fused.state_dict()), fused is conv, fused.training]
    found.append(attempt(lambda: T.nn.utils.fuse_conv_bn_eval(conv.train(), norm)).error)
    return found


def fused_weights(T: Any) -> Any:
    linear, norm = filled(T, T.nn.Linear(3, 2)), filled(T, T.nn.BatchNorm1d(2))
    args = (linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    weight, bias = T.nn.utils.fuse_linear_bn_weights(*args)
    return weight, bias, type(weight).__name__, T.nn.utils.fuse_linear_bn_weights(linear.weight, None, *args[2:])[1]


def stateless(T: Any) -> Any:
    net = filled(T, T.nn.Linear(2, 2))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = T.nn.utils.stateless.functional_call(net, {"weight": T.eye(2)}, T.ones(1, 2))
        short = attempt(
            lambda: T.nn.utils.stateless.functional_call(net, {"weight": T.eye(2)}, T.ones(1, 2), strict=True)
        )
    return made, short.error, [w.category.__name__ for w in seen], net.weight


def constants(T: Any) -> Any:
    init = T.nn.init
    made = [
        init.constant_(T.empty(2, 3), 1.5),
        init.ones_(T.empty(2)),
        init.eye_(T.empty(2, 3)),
        init.eye_(T.empty(3, 2)),
    ]
    p = T.zeros(2, requires_grad=True)
    made.append(init.constant_(p, 2.0))
    return made, p.requires_grad, p.grad_fn is None, made[-1] is p


def spread(T: Any) -> Any:
    """Lengths and scales of random values: which distribution it is, not which numbers."""
    T.manual_seed(0)
    init, found = T.nn.init, []
    for shape in ((300, 200), (40, 30, 5, 5)):
        calls = [
            lambda t: init.kaiming_normal_(t, a=0.3, mode="fan_out", nonlinearity="leaky_relu"),
            lambda t: init.kaiming_normal_(t, nonlinearity="relu"),
            lambda t: init.xavier_normal_(t, 2.0),
            lambda t: init.trunc_normal_(t, 1.0, 2.0, 0.0, 2.5),
        ]
        for call in calls:
            t = call(T.empty(shape, dtype=T.float64))
            found += [round(t.mean().item() * 10), t.std().item()]
        for t in (init.xavier_uniform_(T.empty(shape), 1.5), init.kaiming_uniform_(T.empty(shape))):
            found += [t.max().item(), t.min().item()]
    return np.array(found)


def samplers(T: Any) -> Any:
    data = T.utils.data
    generator = T.Generator().manual_seed(1)
    draw = [
        data.RandomSampler(range(7), generator=generator),
        data.SubsetRandomSampler([3, 5, 8], generator=generator),
        data.SequentialSampler(range(4)),
    ]
    found: list[Any] = [(len(s), sorted(s)) for s in draw]
    more = data.RandomSampler(range(3), replacement=True, num_samples=50)
    weighted = data.WeightedRandomSampler([0.0, 0.0, 1.0], 6)
    found += [len(more), set(more) <= {0, 1, 2}, list(weighted), len(list(data.RandomSampler(range(3), num_samples=8)))]
    found.append(issubclass(data.WeightedRandomSampler, data.Sampler))
    mistakes: list[Callable[[], Any]] = [
        lambda: data.RandomSampler(range(3), replacement=1),
        lambda: data.RandomSampler(range(3), num_samples=0),
        lambda: data.RandomSampler(range(3), num_samples=-1),
        lambda: data.RandomSampler(range(3), num_samples=1.5),
        lambda: data.WeightedRandomSampler([1.0], 0),
        lambda: data.WeightedRandomSampler([1.0], True),
        lambda: data.WeightedRandomSampler([1.0], 2, replacement=3),
        lambda: data.WeightedRandomSampler([[1.0]], 2),
        lambda: list(data.WeightedRandomSampler([1.0, 2.0], 3, replacement=False)),
        lambda: list(data.WeightedRandomSampler([0.0, 0.0], 3)),
        lambda: data.RandomSampler([]),
        lambda: data.DataLoader([], shuffle=True),
        lambda: data.BatchSampler([1], 0, False),
        lambda: data.BatchSampler([1], 2, 3),
    ]
    failed = [attempt(mistake) for mistake in mistakes]
    # Ours say what they got.
    return found, [f.error for f in failed], [(f.message or "").partition(": got")[0] for f in failed]


CHECKS: dict[str, Callable[[Any], Any]] = {
    "clip_grad_norm": clip_grad_norm,
    "convert_conv2d_weight_memory_format": lambda T: converted(T, 2, "channels_last"),
    "convert_conv3d_weight_memory_format": lambda T: converted(T, 3, "channels_last_3d"),
    "fuse_conv_bn_eval fuse_conv_bn_weights": fused_convolutions,
    "fuse_linear_bn_weights": fused_weights,
    "stateless": stateless,
    "constant_ eye_ ones_": constants,
    "Sampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler": samplers,
}


@pytest.mark.parametrize("names", CHECKS)
def test_an_entry_does_what_pytorchs_does(names: str) -> None:
    ours, theirs = (shown(T, CHECKS[names](T)) for T in (rgrad, torch))
    same(ours, theirs)


def test_random_values_have_pytorchs_spread() -> None:
    np.testing.assert_allclose(spread(rgrad), spread(torch), rtol=0.02)


def test_no_entry_is_left_out() -> None:
    called = " ".join(p.read_text(encoding="utf-8") for p in HERE.rglob("*.py"))
    parts = json.loads(NAMES.read_text(encoding="utf-8"))
    # The modules of nn are those of nn_module_calls, by families; test_oracle_nn_table.py holds these to be all.
    parts.pop("nn")
    for part, names in parts.items():
        assert [n for n in names if n not in LEFT_OUT and not re.search(rf"\b{n}\b", called)] == [], part
