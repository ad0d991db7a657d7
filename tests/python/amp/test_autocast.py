"""Autocast on every device: the lists, and the smaller type, are the same as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rgrad
from fresh import run
from rgrad import Tensor

F = rgrad.nn.functional

# Calls of a square matrix, of float32 or bfloat16, whose result has the smaller type, float32, or the matrix's.
LOWER: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda a: a @ a,
    "addmm": lambda a: rgrad.addmm(a, a, a),
    "bmm": lambda a: rgrad.bmm(a[None], a[None]),
    "linear": lambda a: F.linear(a, a, a[0]),
    "conv1d": lambda a: F.conv1d(a[None], a[None, :, :2].mT.contiguous().mT),
    "conv2d": lambda a: F.conv2d(a[None, None], a[None, None, :2, :2]),
    "attention": lambda a: F.scaled_dot_product_attention(a[None, None], a[None, None], a[None, None]),
    "einsum": lambda a: rgrad.einsum("ij,jk", a, a),
}
WIDER: dict[str, Callable[[Tensor], Tensor]] = {
    "mse_loss": lambda a: F.mse_loss(a, a),
    "prod": lambda a: a.prod(),
    "trace": lambda a: a.trace(),
    "grid_sample": lambda a: F.grid_sample(a[None, None], a[None, :, :2, None].expand(1, 3, 2, 2), align_corners=False),
    "quantile": lambda a: rgrad.quantile(a, 0.5),
    "solve": lambda a: rgrad.linalg.solve(a + 9 * rgrad.eye(3, dtype=a.dtype, device=a.device), a),
    "solve_triangular": lambda a: rgrad.linalg.solve_triangular(a, a, upper=True),
    "pinv": lambda a: rgrad.linalg.pinv(a),
}
KEPT: dict[str, Callable[[Tensor], Tensor]] = {
    # PyTorch lists these to run in float32 on GPUs alone.
    "exp": lambda a: a.exp(),
    "pow": lambda a: a**2,
    "log_softmax": lambda a: a.log_softmax(-1),
    "softmax": lambda a: a.softmax(-1),
    "layer_norm": lambda a: F.layer_norm(a, (3,)),
    "sum": lambda a: a.sum(),
    "norm": lambda a: a.norm(),
    "cumsum": lambda a: a.cumsum(0),
    "rsqrt": lambda a: a.rsqrt(),
}


def matrix(device: str, kind: rgrad.dtype) -> Tensor:
    return (rgrad.arange(9.0).view(3, 3) / 10 + 0.5).to(kind).to(device)


@pytest.mark.parametrize("name", [*LOWER, *WIDER, *KEPT])
def test_dtypes(name: str, device: str) -> None:
    call = {**LOWER, **WIDER, **KEPT}[name]
    for kind in (rgrad.float32, rgrad.bfloat16):
        a = matrix(device, kind)
        with rgrad.autocast(a.device.type):
            made = call(a)
        wanted = rgrad.bfloat16 if name in LOWER else rgrad.float32 if name in WIDER else kind
        assert made.dtype == wanted
        with rgrad.autocast("cpu"):
            here = call(matrix("cpu", kind))
        assert (made.cpu().to(rgrad.float32) - here.to(rgrad.float32)).abs().max() < 2e-2 * (1 + here.abs().max())


def test_the_smaller_type_is_bfloat16(device: str) -> None:
    kind = rgrad.device(device).type
    assert rgrad.get_autocast_dtype(kind) == rgrad.bfloat16
    with rgrad.autocast(kind, dtype=rgrad.float16):
        assert (matrix(device, rgrad.float32) @ matrix(device, rgrad.float32)).dtype == rgrad.float16


def test_the_cpu_is_left_alone() -> None:
    a = matrix("cpu", rgrad.float32)
    with rgrad.autocast("wgpu"):
        assert (a @ a).dtype == rgrad.float32


@pytest.mark.parametrize("opens", ['rgrad.autocast("cpu").__enter__()', 'rgrad.set_autocast_enabled("cpu", True)'])
def test_a_program_may_end_inside_of_autocast(opens: str) -> None:
    """Its weights, which the context has converted and kept, are objects of Python."""
    code = f"""
        import rgrad
        context = {opens}
        weight = rgrad.nn.Parameter(rgrad.ones(3, 3))
        print((weight @ weight).dtype)
    """
    assert run(code) == "rgrad.bfloat16\n"
