"""Writes tests/data/repr.json: what PyTorch prints for many expressions.

Run it with an interpreter that has torch: python tests/oracle/make_repr.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch

EXPRESSIONS = r"""
T.tensor(1.5)
T.tensor(3)
T.tensor(True)
T.tensor(-0.0)
T.tensor(float("nan"))
T.tensor(float("inf"))
T.tensor(1e-10)
T.tensor(1e10)
T.tensor(123456789.0)
T.tensor(0.1)
T.tensor(0.1, dtype=T.float64)
T.tensor(2, dtype=T.int32)
T.tensor(2, dtype=T.uint8)
T.tensor(-2, dtype=T.int8)
T.tensor([])
T.tensor([], dtype=T.int64)
T.zeros(0, 3)
T.zeros(2, 0)
T.zeros(2, 0, 3, dtype=T.int32)
T.zeros(0, requires_grad=True)
T.zeros(0, 2, dtype=T.float64, requires_grad=True)
T.tensor([1.0, 2.0, 3.0])
T.tensor([1.5, 2.25, -3.125])
T.tensor([1.0, 2.5])
T.tensor([0.1, 0.22, 0.333, 0.4444, 0.55555])
T.tensor([1, 2, 3])
T.tensor([1, -20, 300])
T.tensor([True, False])
T.tensor([[True, False], [False, False]])
T.tensor([1, 2], dtype=T.int32)
T.tensor([1, 255], dtype=T.uint8)
T.tensor([1, -128], dtype=T.int8)
T.tensor([1, -32768], dtype=T.int16)
T.tensor([1.0, 2.0], dtype=T.float64)
T.tensor([float("nan"), 1.0])
T.tensor([float("nan"), float("inf"), -float("inf")])
T.tensor([float("inf"), 1.0])
T.tensor([float("inf"), 1.5])
T.tensor([-float("inf"), 1e-8])
T.tensor([float("nan")] * 3)
T.tensor([0.0, -0.0])
T.tensor([1e-8, 1.0])
T.tensor([1e8, 1.0])
T.tensor([1e9, 2e9])
T.tensor([1e5, 1.5])
T.tensor([99999.0, 1.5])
T.tensor([1001.5, 1.0])
T.tensor([0.001, 1.0])
T.tensor([0.0009, 1.0])
T.tensor([0.00001, 0.00002])
T.tensor([1e-4, 1e-5])
T.tensor([1e30, 1e-30])
T.tensor([1e-40])
T.tensor([3.4028235e38])
T.tensor([1e300, -1e-300], dtype=T.float64)
T.tensor([1000000.0])
T.tensor([12345678.0, 1.0])
T.tensor([1.0, 1e7])
T.tensor([1.0, 1e8])
T.tensor([1.0, 100000000.5], dtype=T.float64)
T.tensor([2.0**53])
T.tensor([9007199254740993])
T.tensor([-9223372036854775808, 9223372036854775807])
T.tensor([1 / 3, 2 / 3], dtype=T.float64)
T.tensor([100.0, 0.5, -20.25])
T.tensor([[1.0, 2.0], [3.0, 4.0]])
T.tensor([[1.0, -2.5], [300.0, 4.0]])
T.tensor([[1, 2], [3, 4]])
T.tensor([[[1.0]]])
T.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
T.arange(24).reshape(2, 3, 4)
T.arange(16.0).reshape(2, 2, 2, 2)
T.arange(10)
T.arange(30)
T.arange(100)
T.arange(1000)
T.arange(1001)
T.arange(1001.0)
T.arange(0, 1, 0.001)
T.arange(0, 2, 0.001)
T.arange(2000.0) / 7
T.arange(40.0).reshape(1, 40)
T.arange(10000).reshape(100, 100)
T.arange(10000.0).reshape(100, 100)
T.arange(10000.0).reshape(10, 10, 100)
T.arange(4000.0).reshape(4, 1000)
T.arange(4000.0).reshape(1000, 4)
T.arange(2000).reshape(2, 1000)
T.zeros(1001)
T.ones(5, 300)
T.ones(1200, dtype=T.bool)
T.full((1100,), 1e-9)
T.full((1100,), float("nan"))
T.zeros(3, 3)
T.eye(3)
T.eye(3, dtype=T.int64)
T.ones(2, 2, requires_grad=True)
T.tensor(2.0, requires_grad=True)
T.tensor([1.0], dtype=T.float64, requires_grad=True)
T.tensor([1.0], requires_grad=True) * 2
T.tensor(2.0, requires_grad=True).exp()
T.ones(2, requires_grad=True).sum()
T.ones(2, 2, requires_grad=True) @ T.ones(2, 2)
T.ones(2, requires_grad=True).double() + 1
T.ones(2, requires_grad=True) + 1
T.ones(2, requires_grad=True) - 1
T.ones(2, requires_grad=True) / 2
-T.ones(2, requires_grad=True)
T.ones(2, requires_grad=True) ** 2
T.ones(2, requires_grad=True).reshape(2, 1)
T.ones(2, requires_grad=True).view(2, 1)
T.ones(2, 3, requires_grad=True).t()
T.ones(2, requires_grad=True)[0]
T.ones(2, requires_grad=True)[:1]
T.ones(2, requires_grad=True).mean()
T.ones(2, requires_grad=True).clone()
T.ones(2, requires_grad=True).tanh()
T.ones(2, requires_grad=True).relu()
T.ones(2, requires_grad=True).sigmoid()
T.ones(2, requires_grad=True).softmax(0)
T.ones(2, requires_grad=True).log_softmax(0)
T.ones(2, requires_grad=True).max()
T.ones(2, requires_grad=True).unsqueeze(0)
T.ones(2, requires_grad=True).expand(2, 2)
T.ones(2, 2, requires_grad=True).permute(1, 0)
T.ones(2, 2, requires_grad=True).squeeze()
T.ones(2, 2, requires_grad=True).transpose(0, 1)
T.ones(2, requires_grad=True).cumsum(0)
T.ones(2, requires_grad=True).var()
T.ones(2, requires_grad=True).norm()
T.ones(2, requires_grad=True).clamp(0, 1)
T.ones(2, requires_grad=True).abs()
T.ones(2, requires_grad=True).sqrt()
T.ones(2, requires_grad=True).log()
T.cat([T.ones(1, requires_grad=True)])
T.stack([T.ones(1, requires_grad=True)])
T.ones(1001, requires_grad=True) * 2
T.ones(2, requires_grad=True).detach()
T.arange(6).reshape(2, 3).t()
T.arange(12)[::3]
T.tensor([1.0]).expand(3)
T.tensor([1e3, 1e-3])
T.tensor([-1.0, 10.0, -100.0])
T.tensor([[0.5, 100.25], [-3.0, 1e4]])
T.tensor([123.456789, 0.000123])
T.linspace(0, 1, 7)
T.linspace(-5, 5, 50)
T.ones(25) * 1.5
T.arange(20) * 1000
T.arange(21) - 10
T.arange(8.0).reshape(2, 4).max(1)
T.arange(4).sort()
T.arange(4.0).topk(2)
T.Size([2, 3])
T.Size([])
T.ones(2, 3).shape
T.float32
T.float64
T.int64
T.int32
T.int16
T.short
T.int8
T.uint8
T.bool
T.device("cpu")
T.ones(1).device
T.ones(1).dtype
str(T.tensor([1.0, 2.0]))
str(T.tensor(2.5))
f"{T.tensor(2.5):.3f}"
f"{T.tensor(2.5)}"
f"{T.tensor([2.5])}"
"%.2f" % T.tensor(1.234)
T.ones(1).type()
""".strip().split("\n")


def main() -> None:
    data = []
    for expression in EXPRESSIONS:
        value = eval(expression, {"T": torch})
        text = value if isinstance(value, str) else repr(value)
        data.append([expression, re.sub(r"\btorch\b", "{name}", text)])
    path = Path(__file__).parent.parent / "data" / "repr.json"
    path.write_text(json.dumps(data, indent=0, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
