"""Memory formats beside PyTorch: strides of copies, conversions, new tensors, convolutions, gradients, modules."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402

LIBRARIES = (rgrad, torch)

# Functions of images, whose results and gradients keep channels last.
IMAGES = (
    "max_pool2d(last, 2)",
    "max_pool2d(last, 2, return_indices=True)[1].float()",
    "avg_pool2d(last, 3, 2, 1)",
    "adaptive_avg_pool2d(last, 2)",
    "adaptive_max_pool2d(last, 2)",
    "lp_pool2d(last, 2, 2)",
    "max_pool3d(volume, 2)",
    "avg_pool3d(volume, 2)",
    "adaptive_avg_pool3d(volume, 2)",
    "interpolate(last, scale_factor=2)",
    "interpolate(last, scale_factor=2, mode='nearest-exact')",
    "interpolate(last, size=(7, 3), mode='bilinear')",
    "interpolate(last, size=(3, 7), mode='bicubic', align_corners=True)",
    "interpolate(last, size=(2, 3), mode='bilinear', antialias=True)",
    "interpolate(last, size=(2, 3), mode='area')",
    "interpolate(volume, scale_factor=2, mode='trilinear')",
    "interpolate(volume, scale_factor=2)",
    "interpolate(last.to(T.uint8), size=(7, 3), mode='bilinear').float()",
    "interpolate(last[:, :, 1:3], scale_factor=2)",
    "interpolate(last[0:0], scale_factor=2)",
    "pad(last, (1, 2, 3, 4))",
    "pad(last, (-1, 2), value=3.0)",
    "pad(last, (1, 1, 1, 1, 2, 2))",
    "pad(last, (1, 1, 2, 1), mode='reflect')",
    "pad(last, (1, 1, 2, 1), mode='replicate')",
    "pad(last, (1, 1, 2, 1), mode='circular')",
    "pad(volume, (1,) * 6, mode='replicate')",
    "batch_norm(last, None, None, training=True)",
    "group_norm(last, 3)",
    "local_response_norm(last, 2)",
    "gelu(last)",
    "dropout(last, 0.0)",
)

CALLS = (
    "x.contiguous(memory_format=CL)",
    "x.contiguous(CL)",
    "x.contiguous(memory_format=CL).contiguous(memory_format=CL)",
    "last.contiguous()",
    "last.contiguous(memory_format=T.preserve_format)",
    "x.contiguous(memory_format=T.preserve_format)",
    "x.to(memory_format=CL)",
    "x.to(T.float64, memory_format=CL)",
    "x.to('cpu', T.float64, memory_format=CL)",
    "x.to(memory_format=T.preserve_format)",
    "last.to(memory_format=T.preserve_format)",
    "last.to(memory_format=T.contiguous_format)",
    "last.to(T.float64)",
    "x.to(memory_format=CL, copy=True)",
    "x.clone(memory_format=CL)",
    "last.clone()",
    "last.clone(memory_format=T.contiguous_format)",
    "T.ones(2, 3, 4).contiguous(memory_format=CL)",
    "T.ones(2, 3, 4).to(memory_format=CL)",
    "T.ones(2, 3, 4).clone(memory_format=CL)",
    "T.ones(2, 3, 4, 5).contiguous(memory_format=CL3)",
    "T.ones(2, 3, 4, 5, 6).contiguous(memory_format=CL3)",
    "T.ones(2, 3, 4, 5, 6).to(memory_format=CL3)",
    "T.empty(2, 3, 4, 5, memory_format=CL)",
    "T.empty(2, 3, 4, memory_format=CL)",
    "T.empty(2, 3, 1, 5, memory_format=CL)",
    *(
        f"T.{name}_like({x}, memory_format={f})"
        for name, x, f in product(
            ("empty", "zeros", "ones", "rand", "randn"), ("x", "last"), ("None", "T.contiguous_format", "CL")
        )
    ),
    "T.full_like(x, 1, memory_format=CL)",
    "T.randint_like(x, 3, memory_format=CL)",
    "T.empty_like(T.ones(2, 3), memory_format=CL)",
    "last.double().float(memory_format=T.contiguous_format)",
    "x.double(memory_format=CL)",
    "x.float(memory_format=CL)",
    "x.half(memory_format=CL)",
    "x.long(memory_format=CL)",
    "x.cpu(memory_format=CL)",
    "x.contiguous(memory_format=1)",
    "last + T.ones(1, 3, 1, 1)",
    "last.relu()",
    "last + x",
    "x + last",
    "T.nn.functional.batch_norm(last, None, None, training=True)",
    "T.nn.functional.conv2d(last, T.ones(4, 3, 2, 2))",
    "T.nn.functional.conv2d(x, T.ones(4, 3, 2, 2).contiguous(memory_format=CL))",
    "T.nn.functional.conv2d(x, T.ones(4, 3, 1, 1))",
    "T.nn.functional.conv2d(last[0], T.ones(4, 3, 2, 2))",
    "T.nn.functional.conv2d(T.ones(2, 1, 4, 5).contiguous(memory_format=CL), T.ones(4, 1, 2, 2))",
    "T.nn.functional.conv2d(last[:, :, :, :4], T.ones(4, 3, 2, 2))",
    "T.nn.functional.conv2d(x.permute(0, 3, 1, 2), T.ones(4, 5, 2, 2))",
    "T.nn.functional.conv2d(last.half(), T.ones(4, 3, 2, 2).half())",
    "T.nn.functional.conv2d(last.long(), T.ones(4, 3, 2, 2).long())",
    "T.nn.functional.conv_transpose2d(last, T.ones(3, 4, 2, 2), stride=2)",
    "T.nn.functional.conv2d(T.ones(0, 3, 4, 4).contiguous(memory_format=CL), T.ones(4, 3, 2, 2))",
    "T.cat([last, last], 1)",
    "T.cat([last, last])",
    "T.cat([last, last.double()], 3)",
    "T.cat([last, x], 1)",
    "T.cat([x, last], 1)",
    "T.cat([volume, volume], 1)",
    "last.flip(1, 2)",
    "last.softmax(1)",
    "last.cumsum(1)",
    "last.sum((2, 3), keepdim=True)",
    "last.index_select(1, T.tensor([0, 2]))",
    *(f"T.nn.functional.{call}" for call in IMAGES),
    # Gradients of pads are views or row-major here; PyTorch's of cubic interpolation are row-major.
    *(
        f"gradient(lambda last: T.nn.functional.{call})"
        for call in IMAGES
        if not call.startswith("pad(") and "bicubic" not in call
    ),
    "gradient(lambda last: T.cat([last, 2 * last], 1))",
    "gradient(lambda last: last.flip(1))",
)


@pytest.mark.parametrize("call", CALLS)
def test_strides(call: str) -> None:
    made = []
    for T in LIBRARIES:
        x = T.arange(120.0).reshape(2, 3, 4, 5)
        names = {"T": T, "CL": T.channels_last, "CL3": T.channels_last_3d, "x": x}
        names["last"] = x.contiguous(memory_format=T.channels_last)
        names["volume"] = T.arange(360.0).reshape(1, 3, 4, 5, 6).contiguous(memory_format=T.channels_last_3d)

        def gradient(f: Any, T: Any = T, last: Any = names["last"]) -> Any:
            leaf = last.clone().requires_grad_()
            y = f(leaf)
            return T.autograd.grad(y, leaf, T.ones_like(y))[0]

        names["gradient"] = gradient
        made.append(attempt(lambda names=names: eval(call, names)))
    ours, theirs = made
    assert ours.error == theirs.error, (ours.message, theirs.message)
    if theirs.error is not None:
        assert "required rank" not in theirs.message or ours.message == theirs.message
        return
    a, b = ours.value, theirs.value
    assert a.shape == b.shape
    if a.numel():
        assert visible_strides(a) == visible_strides(b)
    if not any(name in call for name in ("empty", "rand")):
        np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=1e-5, atol=1e-5)


SHAPES = ((2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 1, 5), (0, 3, 4, 5), (2, 3, 4), (2, 3, 4, 5, 6))


@pytest.mark.parametrize("shape", SHAPES)
def test_is_contiguous(shape: tuple[int, ...]) -> None:
    answers = []
    for T in LIBRARIES:
        x = T.zeros(shape)
        formats = (T.contiguous_format, T.preserve_format, T.channels_last, T.channels_last_3d)
        tensors = [x, x.transpose(1, -1), x.transpose(1, -1).contiguous().transpose(1, -1)]
        answers.append([t.is_contiguous(memory_format=f) for t in tensors for f in formats])
    assert answers[0] == answers[1]


def test_nodes_and_names() -> None:
    for T in LIBRARIES:
        x = T.ones(2, 3, 4, 5, requires_grad=True)
        last = {"memory_format": T.channels_last}
        made = [x.contiguous(**last), x.to(**last), x.to(T.float64, **last), x.clone(**last)]
        names = [type(t.grad_fn).__name__ for t in made]
        assert names == ["CloneBackward0", "ToCopyBackward0", "ToCopyBackward0", "CloneBackward0"]
        assert x.to(memory_format=T.contiguous_format) is x
        assert repr(T.channels_last).endswith(".channels_last")
        assert isinstance(T.channels_last, T.memory_format)
        for t in made:
            (g,) = T.autograd.grad((t * t).sum(), x)
            assert (g == 2).all()


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("of_x", "of_w", "of_g"), list(product((False, True), repeat=3)))
# Of transposed convolutions of volumes PyTorch's order depends on the kernel that it chooses.
@pytest.mark.parametrize(("dims", "transposed"), [(2, False), (2, True), (3, False)])
def test_gradients_of_convolutions(kind: str, of_x: bool, of_w: bool, of_g: bool, transposed: bool, dims: int) -> None:
    rng = np.random.default_rng(dims)
    arrays = [rng.standard_normal(s) for s in ((2, 4, *[6] * dims), (4, 4, *[3] * dims))]
    made = []
    for T in LIBRARIES:
        last = T.channels_last if dims == 2 else T.channels_last_3d
        x, w = (T.tensor(a, dtype=getattr(T, kind)) for a in arrays)
        x = (x.contiguous(memory_format=last) if of_x else x).requires_grad_()
        w = (w.contiguous(memory_format=last) if of_w else w).requires_grad_()
        y = getattr(T.nn.functional, f"conv{'_transpose' if transposed else ''}{dims}d")(x, w, stride=2)
        g = T.ones_like(y, memory_format=last if of_g else T.contiguous_format)
        made.append([y, *T.autograd.grad(y, [x, w], g)])
    for a, b in zip(*made, strict=True):
        assert visible_strides(a) == visible_strides(b)
        tol = 1e-4 if kind == "float32" else 1e-10
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol * 10)


def test_modules() -> None:
    strides = []
    for T in LIBRARIES:
        nn = T.nn
        net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 5, 3, stride=2))
        net = net.to(memory_format=T.channels_last)
        y = net(T.ones(2, 3, 8, 8))
        y.sum().backward()
        strides.append([t.stride() for t in (y, *net.parameters(), *(p.grad for p in net.parameters()))])
    assert strides[0] == strides[1]
    for T in LIBRARIES:
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
            T.nn.Conv3d(3, 4, 3).to(memory_format=T.channels_last)
        with pytest.raises(TypeError):
            T.nn.Conv2d(3, 4, 3).to(memory_format=1)
