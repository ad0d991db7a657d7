"""Which tensors share memory, or are one object, after pickling and copying, beside torch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

WAYS = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    **{f"pickle {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, protocol=p)) for p in range(2, 6)},
}
GROUPS: dict[str, Any] = {
    "views": lambda T: [(x := T.arange(6.0)), x[2:], x.view(2, 3), x],
    "detached": lambda T: [(x := T.arange(6.0).requires_grad_()), x.detach(), x.data],
    "a list twice": lambda T: [(x := [T.ones(2)]), x],
    "a dictionary": lambda T: list({"a": (x := T.ones(2, 3)), "b": x.t(), "c": x.clone()}.values()),
    "transposed": lambda T: [T.ones(2, 3).t(), T.ones(1).expand(4), T.ones(6)[::2]],
    "modules": lambda T: [(m := T.nn.Linear(2, 2)), m.weight, m],
    "integers and bools": lambda T: [(x := T.arange(4)), x[1:], x > 1],
}


def flat(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [t for e in x for t in flat(e)]
    return flat(list(x.parameters())) if hasattr(x, "parameters") else [x]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("group", GROUPS)
def test_sharing(group: str, way: str) -> None:
    def outcome(T: Any) -> list[Any]:
        T.manual_seed(0)
        made = WAYS[way](GROUPS[group](T))
        tensors = flat(made)
        seen: list[Any] = [[a is b for a in tensors for b in tensors], [a is b for a in made for b in made]]
        seen.append([(tuple(t.stride()), t.requires_grad, t.is_leaf, str(t.dtype).split(".")[-1]) for t in tensors])
        for t in tensors:
            # What a write to one shows in the others.
            with T.no_grad():
                t.zero_()
            seen.append([bool((o == 0).all()) for o in tensors])
        return seen

    assert outcome(rgrad) == outcome(torch)
