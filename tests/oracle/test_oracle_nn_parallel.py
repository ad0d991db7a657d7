"""The parts of `nn.parallel` beside a PyTorch without CUDA devices: what works, and how the rest fails."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if torch.cuda.is_available():
    pytest.skip("PyTorch has CUDA devices here", allow_module_level=True)

import rgrad  # noqa: E402
import rgrad.nn.parallel  # noqa: E402

CALLS = [
    *(
        f"P.{call}"
        for devices in ("[]", "['cpu']", "[T.device('cpu'), 'cpu']", "[0]")
        for call in (
            f"replicate(net, {devices})",
            f"replicate(net, {devices}, True)",
            f"replicate(T.nn.ReLU(), {devices})",
            f"scatter(x, {devices})",
            f"scatter((1, 'a', [2]), {devices})",
            f"scatter({{'a': x}}, {devices})",
            f"data_parallel(net, x, {devices})",
        )
    ),
    "P.scatter(x, [-1])",
    "P.scatter([x, 1], [-1, -1])",
    "P.scatter(x, [None])",
    "P.gather([x, x], 'cpu')",
    "P.gather([[x], [x]], -1)",
    "P.gather([], 'cpu')",
    "P.gather([1, 2], 'cpu')",
    "P.gather([{'a': x}, {'b': x}], 'cpu')",
    "P.gather([{'a': x}, {}], 'cpu')",
    "P.gather([None, None], 'cpu')",
    "P.parallel_apply([net], [x, x])",
    "P.parallel_apply([net], [x], [{}, {}])",
    "P.parallel_apply([net], [x], None, ['cpu', 'cpu'])",
    "P.parallel_apply([net], [x], None, ['cpu'])",
    "P.parallel_apply([net, net], [x, x])",
    "P.DataParallel(net)(x)",
    "P.DataParallel(net, [0]).device_ids",
]


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value), [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if hasattr(value, "tolist") else str(value)


def result(T: Any, call: str) -> Any:
    net = T.nn.Linear(3, 2)
    with T.no_grad():
        net.weight.fill_(0.5)
        net.bias.zero_()
    try:
        return plain(eval(call, {"T": T, "P": T.nn.parallel, "net": net, "x": T.ones(4, 3)}))
    except Exception as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        return kind, str(error)


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    mine, theirs = result(rgrad, call), result(torch, call)
    if isinstance(theirs[0], type) and issubclass(theirs[0], Exception):
        assert mine[0] == theirs[0]
        # rgrad says more, with the same key words.
        words = theirs[1].split(". Please")[0].split(" index or")[0].replace("torch.device", "device")
        assert words in mine[1]
    else:
        assert mine == theirs
