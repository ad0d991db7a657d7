"""Custom Functions made of lambdas, and what a call of them says, for both libraries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


def made(T: Any, forward: Any, backward: Any = lambda ctx, *g: g[0], name: str = "MyFn", **more: Any) -> Any:
    methods = {"forward": forward, "backward": backward, **more}
    return type(name, (T.autograd.Function,), {k: staticmethod(v) if callable(v) else v for k, v in methods.items()})


def leaf(T: Any, *values: float) -> Any:
    return T.tensor(values or (1.0, 2.0, 3.0, 4.0), dtype=T.float64, requires_grad=True)


def trial(f: Callable[[], Any]) -> Any:
    """The result, or the error as text. What rgrad adds to torch's text stands in brackets behind it."""
    try:
        return f()
    except (RuntimeError, TypeError) as error:
        kind = "TypeError" if isinstance(error, TypeError) else "RuntimeError"
        text = re.sub(r" \(in \w+[^()]*(clone\(\))?\)$", "", str(error))
        return f"{kind}: {text}"
