"""The cross entropy of a linear layer's scores beside PyTorch's, computed at once and by parts."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

random = np.random.default_rng(0)
X, W, B = random.standard_normal((7, 4)), random.standard_normal((5, 4)), random.standard_normal(5)
PLACES = random.standard_normal((5, 2, 3, 4))
WEIGHT = random.uniform(0.5, 2.0, 5)
Y = np.array([0, 4, 2, 2, 1, 0, 3])


def run(T: Any, options: dict[str, Any] | None, dtype: str, bias: bool, weight: bool, **kwargs: Any) -> Any:
    x, w, b = (T.tensor(v, dtype=getattr(T, dtype), requires_grad=True) for v in (X, W, B))
    kwargs["options"] = None if options is None else T.nn.LinearCrossEntropyOptions(**options)
    kwargs["linear_bias"] = b if bias else None
    kwargs["weight"] = T.tensor(WEIGHT, dtype=x.dtype) if weight else None
    loss = T.nn.functional.linear_cross_entropy(x, w, T.tensor(Y), **kwargs)
    (loss * T.arange(1, loss.numel() + 1, dtype=x.dtype).reshape(loss.shape)).sum().backward()
    grads = [x.grad, w.grad, *([b.grad] if bias else [])]
    return str(loss.dtype).rpartition(".")[2], [np.array(v.detach().double().numpy()) for v in (loss, *grads)]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("bias", "weight", "ignore"), list(product([False, True], [False, True], [None, 2])))
@pytest.mark.parametrize(
    "options",
    [None, {}, {"batch_chunk_size": 3}, {"batch_chunk_size": 100}, {"chunking_method": "aspect_ratio"}],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_values_and_gradients(
    reduction: str, bias: bool, weight: bool, ignore: int | None, options: dict[str, Any] | None, dtype: str
) -> None:
    arguments = {"bias": bias, "weight": weight, "reduction": reduction, "ignore_index": ignore}
    ours, theirs = (run(T, options, dtype, **arguments) for T in (rgrad, torch))
    assert ours[0] == theirs[0]
    tolerance = {"float64": 1e-11, "float32": 1e-5, "bfloat16": 6e-2}[dtype]
    for a, b in zip(ours[1], theirs[1], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_targets_with_further_dimensions(soft: bool, smoothing: float) -> None:
    def loss(T: Any) -> Any:
        x, w = (T.tensor(v, requires_grad=True) for v in (X, PLACES))
        indices = T.tensor(np.arange(42).reshape(7, 2, 3) % 5)
        target = T.softmax(T.tensor(np.arange(210.0).reshape(7, 5, 2, 3) % 3), 1) if soft else indices
        made = T.nn.functional.linear_cross_entropy(x, w, target, label_smoothing=smoothing)
        made.backward()
        return [np.array(v.detach().numpy()) for v in (made, x.grad, w.grad)]

    for a, b in zip(loss(rgrad), loss(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {"out_features": (2, 3), "bias": True},
        {"reduction": "sum", "ignore_index": 1},
        {"label_smoothing": 0.1, "bias": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("parts", [False, True])
def test_the_module(options: dict[str, Any], parts: bool) -> None:
    def made(T: Any) -> Any:
        return T.nn.LinearCrossEntropyLoss(
            4, 5, dtype=T.float64, options=T.nn.LinearCrossEntropyOptions() if parts else None, **options
        )

    ours, theirs = made(rgrad), made(torch)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: rgrad.tensor(np.array(v.numpy())) for k, v in theirs.state_dict().items()})
    shape = (7, *options.get("out_features", ()))
    target = np.arange(np.prod(shape)).reshape(shape) % 5
    with warnings.catch_warnings(record=True) as mine:
        warnings.simplefilter("always")
        a = ours(rgrad.tensor(X), rgrad.tensor(target))
    with warnings.catch_warnings(record=True) as other:
        warnings.simplefilter("always")
        b = theirs(torch.tensor(X), torch.tensor(target))
    assert [w.category for w in mine] == [w.category for w in other]
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-12)


def call(T: Any, x: Any = (2, 3), w: Any = (4, 3), y: Any = (2,), **kwargs: Any) -> Any:
    target = T.zeros(y, dtype=T.float32 if len(y) > 1 else T.int64)
    return T.nn.functional.linear_cross_entropy(T.ones(x), T.ones(w), target, **kwargs)


MISTAKES = {
    "input dims": lambda T: call(T, x=(2, 3, 3)),
    "weight dims": lambda T: call(T, w=(3,)),
    "features": lambda T: call(T, x=(2, 4)),
    "bias": lambda T: call(T, linear_bias=T.ones(3)),
    "unbatched": lambda T: call(T, x=(3,), w=(4, 2, 3), y=()),
    "ignored probabilities": lambda T: call(T, y=(2, 4), ignore_index=1),
    "reduction": lambda T: call(T, reduction="all"),
    "batch": lambda T: call(T, y=(3,)),
    "policy": lambda T: T.nn.LinearCrossEntropyOptions(acc_policy="best"),
    "method": lambda T: T.nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:0"),
    "method name": lambda T: T.nn.LinearCrossEntropyOptions(chunking_method="halves"),
    "rows": lambda T: T.nn.LinearCrossEntropyOptions(batch_chunk_size=0),
    "dtype": lambda T: T.nn.LinearCrossEntropyOptions(acc_dtype=T.int64),
    "frozen": lambda T: setattr(T.nn.LinearCrossEntropyOptions(), "acc_policy", "auto"),
    "both": lambda T: call(
        T, options=T.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method="aspect_ratio:2")
    ),
    "class weight": lambda T: T.nn.LinearCrossEntropyLoss(2, 3, weight=T.ones(2)),
    "smoothing": lambda T: T.nn.LinearCrossEntropyLoss(2, 3, label_smoothing=1.5),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert theirs.error is not None
    assert ours.error == theirs.error, (ours.message, theirs.message)


@pytest.mark.parametrize("options", [{}, {"batch_chunk_size": 5}, {"chunking_method": "aspect_ratio:3"}], ids=str)
def test_parts_have_pytorchs_sizes(options: dict[str, Any]) -> None:
    for batch, features, classes in product([1, 7, 512, 4096], [1, 8, 512], [1, 10, 2000, 50000]):
        for dtype in ("float32", "bfloat16"):
            ours = rgrad.nn.LinearCrossEntropyOptions(**options)._rows(batch, features, classes, getattr(rgrad, dtype))
            theirs = torch.nn.LinearCrossEntropyOptions(**options)._adjust(
                batch, features, classes, getattr(torch, dtype), torch.device("cpu")
            )
            assert ours == theirs.batch_chunk_size
