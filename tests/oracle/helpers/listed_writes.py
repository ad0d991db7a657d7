"""Programs of the listed differences in writes in place and views, for `test_oracle_differences.py`."""

from __future__ import annotations

from typing import Any

# Title on the page: a program that sets `result`, what that is here, what it is there. A text is part of an error.
WRITES: dict[str, tuple[str, Any, Any]] = {
    "A write that fails leaves its target as it was": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        try:
            x.fill_(1.0)
        except RuntimeError:
            pass
        result = x.tolist()
        """,
        [0.0, 0.0],
        [1.0, 1.0],
    ),
    "The source of a write by index may share memory with the target": (
        """
        x = T.tensor([1.0, 2.0, 3.0])
        x[T.tensor([2, 0])] = x[:2]
        result = x.tolist()
        """,
        [2.0, 2.0, 1.0],
        "refer to a single memory location",
    ),
    "An expanded tensor takes one number everywhere, and nothing else": (
        """
        x = T.zeros(1, 2).expand(3, 2)
        x.zero_()
        x.masked_fill_(T.tensor([True, False]), 1.0)
        result = x.tolist()
        """,
        "refers to a single memory location",
        [[1.0, 0.0]] * 3,
    ),
    "A view that is older than its base's history stays a view of it": (
        """
        x = T.zeros(2)
        v = x[0]
        y = T.ones(2, requires_grad=True)
        x.mul_(y)
        v.mul_(2.0)
        result = v.is_leaf
        """,
        False,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "`out=` may share memory with an input": (
        """
        d = T.tensor([[1.0, 2.0], [3.0, 4.0]])
        T.add(d, d.diagonal(), out=d)
        result = d.tolist()
        """,
        [[2.0, 6.0], [4.0, 8.0]],
        [[2.0, 6.0], [5.0, 8.0]],
    ),
    "`out=` takes every dtype that the result can be cast to": (
        """
        x, out = T.ones(2, 2), T.empty(2, 2, dtype=T.float64)
        T.matmul(x, x, out=out)
        result = out.tolist()
        """,
        [[2.0, 2.0], [2.0, 2.0]],
        "Expected out tensor to have dtype float, but got double instead",
    ),
    "Views older than `x.data = y` belong to the old memory": (
        """
        x = T.zeros(2)
        v = x.view(2)
        x.data = T.ones(2)
        v.fill_(3.0)
        result = x._version
        """,
        0,
        1,
    ),
    "`set_` refuses a tensor with history": (
        """
        x = T.ones(2, requires_grad=True).exp()
        x.set_(x.detach())
        result = x._version
        """,
        "a tensor with history cannot look at other memory",
        1,
    ),
    "What is detached from an inference tensor cannot be written outside of inference mode either": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        x.detach().add_(1)
        result = x.tolist()
        """,
        "Inplace update to inference tensor outside InferenceMode",
        [1.0, 1.0],
    ),
    "An inference tensor that is given normal memory is a normal tensor": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        x.data = T.ones(2)
        result = x[0].item()
        """,
        1.0,
        "Inference tensors do not track version counter",
    ),
    "What is overwritten by a value without derivative has the gradient 0": (
        """
        x = T.ones(2, requires_grad=True)
        y = x * 2
        y.logical_not_()
        y.sum().backward()
        result = x.grad.tolist()
        """,
        [0.0, 0.0],
        [2.0, 2.0],
    ),
}
