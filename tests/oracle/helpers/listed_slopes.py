"""Programs for derivatives that are right where PyTorch's are 0 or nan, as in `listed_autograd.py`."""

from __future__ import annotations

from typing import Any

SLOPES: dict[str, tuple[str, Any, Any]] = {
    "Derivatives at infinite, huge and nan elements are limits": (
        """
        x = T.tensor([-1e4], requires_grad=True)
        T.nn.functional.soft_margin_loss(x, T.ones(1)).backward()
        result = x.grad.isnan().item()
        """,
        False,
        True,
    ),
    "Slopes keep their digits where a function has saturated": (
        """
        x = T.tensor([9.5, 20.0], requires_grad=True)
        T.tanh(x[0]).backward()
        T.sigmoid(x[1]).backward()
        T.nn.functional.cross_entropy(T.stack([x[1], x[1] * 0]), T.tensor(0)).backward()
        result = [bool(x.grad[0] > 0), bool(T.func.grad(T.sigmoid)(x[1].detach()) > 0)]
        """,
        [True, True],
        [False, False],
    ),
    "What a choice leaves out has the gradient 0": (
        """
        x = T.tensor([0.0, 2.0], requires_grad=True)
        T.where(x > 0, T.log(x), 0.0).sum().backward()
        result = x.grad.isnan().tolist()
        """,
        [False, False],
        [True, False],
    ),
    "Sums of `exp(-inf)` do not move": (
        """
        low = T.tensor([float("-inf"), float("-inf")])
        zero = T.tensor(0.0)
        slopes = [
            T.func.grad(lambda x: T.logaddexp(x, low).sum())(low)[0],
            T.func.grad(lambda x: T.logsumexp(x, 0))(low)[0],
            T.func.grad(lambda x: T.xlogy(zero, x))(zero),
            T.func.grad(lambda x: T.hypot(x, zero))(zero),
        ]
        result = [bool(g == 0) for g in slopes]
        """,
        [True] * 4,
        [False] * 4,
    ),
    "Squares that are too large or too small stay inside": (
        """
        big = T.tensor(3e19)
        rows = T.tensor([[1e30, 2e30, 4e30]])
        result = [
            bool(T.func.grad(lambda x: T.atan2(x, big))(big) > 0),
            bool(T.nn.functional.layer_norm(rows, (3,))[0, 2] > 1),
            bool(T.nn.functional.normalize(T.full((3,), 6e4, dtype=T.float16), dim=0)[0] > 0.5),
        ]
        """,
        [True] * 3,
        [False] * 3,
    ),
}
