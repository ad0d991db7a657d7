"""Cases of `hashes` that are written out: from products and convolutions to recurrent layers and resampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import rgrad
from case_kit import FLOATS, INTEGERS, LAYOUTS, Case, Operand, cases, some

F = rgrad.nn.functional
WIDE = FLOATS[:2]

# Rows, depth, columns: on both sides of what is direct, skinny, a vector, split over threads, or packed.
PRODUCTS = (
    (1, 1, 1),
    (3, 5, 7),
    (4, 4, 4),
    (7, 9, 8),
    (8, 8, 9),
    (16, 16, 16),
    (17, 33, 15),
    (31, 64, 33),
    (48, 48, 48),
    (63, 64, 65),
    (64, 129, 64),
    (95, 96, 97),
    (96, 96, 96),
    (97, 97, 97),
    (128, 300, 129),
    (200, 600, 257),
    (1, 300, 500),
    (500, 300, 1),
    (1, 70000, 1),
    (1, 64, 2000),
    (2000, 64, 1),
    (300, 1, 200),
    (4, 1030, 70),
    (2, 3000, 2),
    (33, 1024, 9),
    (8, 1025, 130),
    (63, 40, 700),
    (700, 40, 32),
    (700, 40, 33),
    (1200, 3, 1100),
    (6, 2500, 400),
    (400, 2500, 6),
)


def matmul() -> Iterator[Case]:
    sides = (("dense", "dense"), ("transposed", "dense"), ("dense", "transposed"), ("strided", "strided"))
    for m, k, n in PRODUCTS:
        # Integers have one algorithm; those of 16 bits convert.
        dtypes = (*FLOATS, *INTEGERS) if m * k * n < 1 << 16 else FLOATS
        for a, b in sides:
            operands = [Operand((m, k), layout=a), Operand((k, n), layout=b)]
            yield from cases(f"matmul/{m}x{k}x{n} {a} {b}", rgrad.matmul, operands, dtypes)
    for batch, m, k, n in (
        (1, 5, 6, 7),
        (3, 4, 4, 4),
        (33, 4, 4, 4),
        (4, 9, 20, 8),
        (70, 17, 3, 18),
        (5, 65, 64, 63),
        (2, 1, 300, 40),
    ):
        yield from cases(
            f"bmm/{batch}x{m}x{k}x{n}", rgrad.bmm, some((batch, m, k), (batch, k, n)), (*FLOATS, "int64"), LAYOUTS
        )
        yield from cases(
            f"matmul/{batch}x{m}x{k}x{n} shared", rgrad.matmul, some((batch, m, k), (k, n)), FLOATS, LAYOUTS
        )
        yield from cases(f"baddbmm/{batch}x{m}x{k}x{n}", rgrad.baddbmm, some((n,), (batch, m, k), (batch, k, n)), WIDE)
    for m, k, n in PRODUCTS[::3]:
        yield from cases(f"linear/{m}x{k}x{n}", F.linear, some((m, k), (n, k), (n,)), FLOATS, LAYOUTS[:2])
        yield from cases(
            f"addmm/{m}x{k}x{n}",
            partial(rgrad.addmm, beta=0.5, alpha=2.0),
            some((m, n), (m, k), (k, n)),
        )
        yield from cases(f"relu of linear/{m}x{k}x{n}", lambda *t: F.linear(*t).relu(), some((m, k), (n, k), (n,)))
    for n in (1, 63, 64, 4096, 4097, 70001):
        yield from cases(f"dot/{n}", rgrad.dot, some((n,), (n,)), (*FLOATS, *INTEGERS), ("dense", "strided"))
    yield from cases(
        "einsum/bhid,bhjd->bhij", partial(rgrad.einsum, "bhid,bhjd->bhij"), some((2, 3, 20, 8), (2, 3, 21, 8))
    )
    for name in ("inverse", "det", "cholesky", "qr", "svd", "slogdet", "matrix_exp"):
        call = getattr(rgrad, name)
        for n in (3, 40):
            if name == "cholesky":
                yield from cases(
                    f"linalg/{name} {n}",
                    lambda a, n=n: rgrad.cholesky(a @ a.mT + n * rgrad.eye(n, dtype=a.dtype)),
                    some((n, n)),
                    WIDE,
                )
            else:
                yield from cases(f"linalg/{name} {n}", call, some((n, n), low=-0.3, high=1.0), WIDE)


# Batch, channels, channels of the result, sizes, kernel, and the parameters that are not 1 (padding: not 0).
Geometry = tuple[int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]
CONVOLUTIONS: tuple[Geometry, ...] = (
    # Tiny, one channel, few channels of the result, few of the image.
    (1, 1, 1, (5,), (3,), {}),
    (2, 3, 4, (50,), (3,), {"padding": 1}),
    (2, 16, 32, (300,), (9,), {"stride": 2, "padding": 4}),
    (1, 8, 8, (1000,), (1,), {}),
    (2, 4, 8, (64,), (5,), {"dilation": 3, "padding": 6}),
    (3, 40, 40, (129,), (3,), {"padding": 1}),
    (1, 1, 1, (4, 4), (3, 3), {"padding": 1}),
    (2, 1, 1, (40, 41), (3, 3), {"padding": 1}),
    (2, 1, 8, (28, 28), (5, 5), {}),
    (2, 3, 8, (32, 33), (3, 3), {"padding": 1}),
    (1, 3, 64, (64, 64), (7, 7), {"stride": 2, "padding": 3}),
    (2, 3, 32, (48, 48), (3, 3), {"stride": 2, "padding": 1}),
    (2, 16, 1, (24, 24), (3, 3), {"padding": 1}),
    (2, 16, 2, (24, 24), (5, 5), {"padding": 2}),
    (2, 24, 4, (20, 20), (3, 3), {}),
    (1, 12, 5, (20, 20), (2, 3), {"padding": (1, 0)}),
    # Many channels: Winograd and what is beside it.
    (1, 16, 16, (9, 9), (3, 3), {"padding": 1}),
    (2, 32, 32, (8, 8), (3, 3), {"padding": 1}),
    (2, 47, 48, (14, 14), (3, 3), {"padding": 1}),
    (2, 64, 64, (28, 28), (3, 3), {"padding": 1}),
    (1, 128, 96, (14, 15), (3, 3), {"padding": 1}),
    (4, 64, 48, (7, 7), (3, 3), {}),
    (1, 256, 256, (7, 7), (3, 3), {"padding": 1}),
    (2, 48, 64, (16, 17), (5, 5), {"padding": 2}),
    (2, 64, 64, (16, 16), (3, 3), {"stride": 2, "padding": 1}),
    (1, 64, 64, (20, 20), (3, 3), {"dilation": 2, "padding": 2}),
    (2, 32, 64, (30, 31), (3, 1), {"padding": (1, 0)}),
    (2, 32, 64, (30, 31), (1, 3), {}),
    (1, 32, 64, (56, 56), (3, 3), {"padding": "same"}),
    (8, 64, 64, (14, 14), (3, 3), {"padding": 1, "groups": 2}),
    # Kernels of one tap.
    (2, 4, 4, (9, 9), (1, 1), {}),
    (2, 64, 32, (7, 7), (1, 1), {}),
    (1, 64, 256, (14, 14), (1, 1), {}),
    (2, 256, 64, (28, 28), (1, 1), {}),
    (1, 320, 300, (7, 7), (1, 1), {}),
    (1, 64, 128, (28, 28), (1, 1), {"stride": 2}),
    (4, 3, 5, (50, 50), (1, 1), {"padding": 1}),
    # Patches that do not overlap.
    (1, 3, 96, (64, 64), (4, 4), {"stride": 4}),
    (2, 3, 64, (64, 64), (16, 16), {"stride": 16}),
    (2, 32, 64, (16, 16), (2, 2), {"stride": 2}),
    (1, 8, 3, (21, 21), (3, 3), {"stride": 3}),
    (1, 4, 8, (20, 20), (2, 2), {"stride": 5}),
    # Depthwise and groups.
    (2, 8, 8, (20, 20), (3, 3), {"padding": 1, "groups": 8}),
    (1, 32, 32, (56, 57), (3, 3), {"padding": 1, "groups": 32}),
    (1, 32, 32, (56, 56), (3, 3), {"stride": 2, "padding": 1, "groups": 32}),
    (1, 16, 16, (30, 30), (5, 5), {"padding": 2, "groups": 16}),
    (1, 16, 16, (20, 20), (7, 7), {"padding": 3, "groups": 16}),
    (1, 16, 32, (20, 20), (3, 3), {"padding": 1, "groups": 16}),
    (1, 24, 24, (16, 16), (3, 3), {"padding": 2, "dilation": 2, "groups": 24}),
    (2, 24, 36, (12, 12), (3, 3), {"padding": 1, "groups": 4}),
    (2, 32, 32, (100,), (4,), {"padding": 3, "groups": 32}),
    # A kernel that reaches far beyond a small image; three dimensions.
    (2, 8, 8, (2, 2), (7, 7), {"padding": 3}),
    (1, 3, 4, (1, 9), (3, 3), {"padding": 4}),
    (1, 2, 3, (5, 6, 7), (3, 3, 3), {"padding": 1}),
    (1, 16, 16, (8, 8, 8), (3, 3, 3), {"padding": 1}),
    (1, 32, 48, (6, 10, 10), (3, 3, 3), {"padding": 1}),
    (1, 16, 16, (8, 8, 8), (1, 1, 1), {}),
    (1, 3, 16, (8, 16, 16), (2, 4, 4), {"stride": (2, 4, 4)}),
    (1, 8, 8, (6, 12, 12), (3, 3, 3), {"padding": 1, "groups": 8}),
)
TRANSPOSED: tuple[Geometry, ...] = (
    (2, 3, 4, (9,), (3,), {}),
    (1, 16, 8, (50,), (4,), {"stride": 2, "padding": 1}),
    (2, 4, 3, (7, 8), (3, 3), {"padding": 1}),
    (1, 64, 32, (14, 14), (4, 4), {"stride": 2, "padding": 1}),
    (1, 64, 32, (16, 16), (2, 2), {"stride": 2}),
    (2, 32, 64, (12, 12), (3, 3), {"padding": 1}),
    (1, 128, 64, (8, 8), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    (1, 16, 3, (20, 20), (5, 5), {"stride": 3}),
    (1, 16, 16, (10, 10), (3, 3), {"groups": 4, "dilation": 2}),
    (1, 8, 1, (20, 20), (4, 4), {"stride": 2}),
    (1, 8, 6, (4, 5, 6), (3, 3, 3), {"stride": 2}),
)


def convolution() -> Iterator[Case]:
    for is_transposed, geometries in ((False, CONVOLUTIONS), (True, TRANSPOSED)):
        for batch, into, out, sizes, kernel, params in geometries:
            name = f"conv{'_transpose' * is_transposed}{len(sizes)}d"
            function = getattr(F, name)
            groups = params.get("groups", 1)
            weight = (into, out // groups, *kernel) if is_transposed else (out, into // groups, *kernel)
            operands = some((batch, into, *sizes), weight, (out,))
            told = " ".join(f"{k}={v}".replace(" ", "") for k, v in params.items())
            label = f"{name}/{batch}x{into}-{out} {sizes} {kernel} {told}"

            def call(*t: Any, function: Any = function, params: Any = params) -> Any:
                return function(*t, **params)

            yield from cases(label, call, operands, FLOATS, ("dense", "strided"))
            yield from cases(label + " no bias, relu", lambda x, w, call=call: call(x, w).relu(), operands[:2], WIDE)
            if batch * into * out * sizes[0] ** 2 < 1 << 14:
                yield from cases(label, call, operands, ("int64", "int32"))
    for channels in (1, 8, 64):
        infinite = some((1, channels, 12, 12), (channels, channels, 3, 3), special=True)
        yield from cases(f"conv2d/infinite weights {channels}", lambda x, w: F.conv2d(x, w, padding=1), infinite, WIDE)


def pool() -> Iterator[Case]:
    kernels: tuple[dict[str, Any], ...] = (
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 5, "stride": 2, "padding": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": 7, "stride": 7},
    )
    images = {
        1: ((2, 3, 40), (1, 8, 1031)),
        2: ((1, 1, 9, 9), (2, 5, 33, 34), (2, 64, 28, 28)),
        3: ((1, 3, 9, 10, 11), (1, 16, 8, 14, 14)),
    }
    for dims, shapes in images.items():
        for shape in shapes:
            for params in kernels:
                label = f"{shape} {' '.join(f'{k}={v}' for k, v in params.items())}"
                if shape[2] < params["kernel_size"]:
                    continue
                for name in (f"avg_pool{dims}d", f"max_pool{dims}d", f"max_pool{dims}d_with_indices"):
                    function = getattr(F, name)
                    call = partial(function, **params)
                    yield from cases(f"{name}/{label}", call, some(shape, special=True), FLOATS, LAYOUTS)
            for size in (1, 3, 7):
                for kind in ("avg", "max"):
                    function = getattr(F, f"adaptive_{kind}_pool{dims}d")
                    call = partial(function, output_size=size)
                    yield from cases(f"adaptive_{kind}_pool/{shape} {size}", call, some(shape), FLOATS, LAYOUTS[:2])
    shape = (1, 8, 16, 16)
    yield from cases(
        "max_pool2d/dilation",
        partial(F.max_pool2d, kernel_size=3, stride=1, dilation=2),
        some(shape),
        (*FLOATS, *INTEGERS),
        LAYOUTS,
    )
    yield from cases("lp_pool2d", lambda x: F.lp_pool2d(x, 2.0, 3), some(shape, low=0.1))
    yield from cases("fractional_max_pool2d", lambda x: F.fractional_max_pool2d(x, 3, output_size=5), some(shape))
    yield from cases("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d_with_indices(x, 2), 2), some(shape))
    yield from cases("unfold", partial(F.unfold, kernel_size=3, padding=1), some(shape), FLOATS, LAYOUTS)
    yield from cases("fold", lambda x: F.fold(F.unfold(x, 3, padding=1), (16, 16), 3, padding=1), some(shape))


def batch_normed(training: bool, x: Any, weight: Any, bias: Any, mean: Any, var: Any) -> Any:
    """Training writes the running moments."""
    mean, var = mean.detach().clone(), var.detach().clone()
    return F.batch_norm(x, mean, var, weight, bias, training), mean, var


def norm() -> Iterator[Case]:
    for rows, columns in ((1, 5), (3, 16), (7, 17), (20, 64), (20, 65), (9, 1000), (3, 4097), (70, 768), (2, 140000)):
        operands = some((rows, columns), (columns,), (columns,))
        size = f"{rows}x{columns}"
        yield from cases(
            f"layer_norm/{size}", lambda x, w, b, n=columns: F.layer_norm(x, (n,), w, b), operands, FLOATS, LAYOUTS
        )
        yield from cases(f"layer_norm/{size} plain", lambda x, n=columns: F.layer_norm(x, (n,)), operands[:1])
        yield from cases(
            f"rms_norm/{size}", lambda x, w, n=columns: F.rms_norm(x, (n,), w), operands[:2], FLOATS, LAYOUTS
        )
        yield from cases(f"normalize/{size}", F.normalize, operands[:1], WIDE, LAYOUTS)
    for shape in (
        (2, 4, 1),
        (8, 3),
        (3, 16, 5),
        (2, 17, 9, 9),
        (4, 64, 14, 14),
        (2, 6, 200, 200),
        (33, 300),
        (2, 4, 3, 5, 6),
    ):
        channels = shape[1]
        operands = [*some(shape, (channels,), (channels,)), Operand((channels,)), Operand((channels,), 0.5, 2.0)]
        for training in (True, False):
            yield from cases(
                f"batch_norm/{shape} {training}", partial(batch_normed, training), operands, FLOATS, LAYOUTS
            )
        if len(shape) > 2:
            groups = next(g for g in (4, 3, 2, 1) if channels % g == 0)
            yield from cases(
                f"group_norm/{shape}", lambda x, w, b, g=groups: F.group_norm(x, g, w, b), operands[:3], FLOATS, LAYOUTS
            )
            if len(shape) > 3 or shape[2] > 1:
                yield from cases(f"instance_norm/{shape}", F.instance_norm, operands[:1], WIDE, LAYOUTS)
            yield from cases(f"local_response_norm/{shape}", lambda x: F.local_response_norm(x, 3), operands[:1], WIDE)


def softmax() -> Iterator[Case]:
    for shape in (
        (1,),
        (5, 7),
        (64, 16),
        (9, 31),
        (9, 32),
        (9, 33),
        (7, 64),
        (7, 65),
        (5, 1000),
        (3, 4096),
        (2, 5, 257),
        (300, 20, 4),
        (1, 70000),
        (2, 140000),
    ):
        for dim in range(len(shape)):
            for name in ("softmax", "log_softmax", "softmin"):
                call = partial(getattr(F, name), dim=dim)
                yield from cases(f"{name}/{shape} {dim}", call, some(shape), FLOATS, LAYOUTS)
            yield from cases(
                f"logsumexp/{shape} {dim}",
                partial(rgrad.logsumexp, dim=dim),
                some(shape, special=True),
                FLOATS,
                LAYOUTS,
            )
        if len(shape) == 2:
            for smoothing in (0.0, 0.1):
                target = rgrad.arange(shape[0]) % shape[1]
                call = partial(F.cross_entropy, target=target, label_smoothing=smoothing)
                yield from cases(f"cross_entropy/{shape} {smoothing}", call, some(shape), FLOATS, LAYOUTS)
    yield from cases(
        "nll_loss/images",
        lambda x: F.nll_loss(x, rgrad.arange(90).reshape(2, 5, 9) % 7),
        some((2, 7, 5, 9)),
        FLOATS,
        LAYOUTS,
    )


def attention() -> Iterator[Case]:
    attend = F.scaled_dot_product_attention
    for batch, heads, queries, keys, size in (
        (1, 1, 1, 1, 1),
        (2, 2, 5, 6, 7),
        (1, 3, 64, 64, 16),
        (1, 2, 65, 130, 64),
        (1, 2, 128, 127, 40),
        (1, 1, 300, 300, 32),
        (2, 8, 1, 200, 64),
        (1, 1, 600, 520, 8),
    ):
        operands = some(
            (batch, heads, queries, size), (batch, heads, keys, size), (batch, heads, keys, size), low=-1.0, high=1.0
        )
        label = f"attention/{batch}x{heads} {queries} {keys} {size}"
        mask = Operand((queries, keys), dtype="bool", layout="dense")
        yield from cases(label, attend, operands, FLOATS, LAYOUTS)
        yield from cases(f"{label} causal", partial(attend, is_causal=True), operands, FLOATS)
        yield from cases(f"{label} mask", attend, [*operands, mask], FLOATS)
        yield from cases(f"{label} bias", attend, [*operands, Operand((queries, keys))], FLOATS)


def recurrent() -> Iterator[Case]:
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
    for steps, batch, features, size in (
        (1, 1, 1, 1),
        (5, 3, 4, 5),
        (7, 1, 20, 64),
        (9, 15, 16, 17),
        (6, 16, 33, 65),
        (4, 40, 64, 128),
    ):
        for kind, g in gates.items():
            shapes = [
                (steps, batch, features),
                (g * size, features),
                (g * size, size),
                (g * size,),
                (g * size,),
                (1, batch, size),
            ]
            shapes += [(1, batch, size)] * (kind == "lstm")

            def call(x: Any, *rest: Any, kind: str = kind) -> Any:
                first = (rest[4], rest[5]) if kind == "lstm" else rest[4]
                return getattr(rgrad, kind)(x, first, list(rest[:4]), True, 1, 0.0, True, False, False)

            yield from cases(
                f"{kind}/{steps} {batch}x{features} {size}",
                call,
                some(*shapes, low=-0.5, high=0.5),
                FLOATS,
                LAYOUTS[:2],
            )
    for kind, g in gates.items():
        layer = {"lstm": "LSTM", "gru": "GRU"}.get(kind, "RNN")

        def two(x: Any, *weights: Any, layer: str = layer, g: int = g) -> Any:
            network = getattr(rgrad.nn, layer)(6, 5, num_layers=2, bidirectional=True, dtype=x.dtype)
            with rgrad.no_grad():
                for i, p in enumerate(network.parameters()):
                    p.copy_(weights[i % 2].reshape(-1)[: p.numel()].reshape(p.shape) * 0.1)
            return network(x)

        if kind != "rnn_relu":
            yield from cases(f"{layer}/two layers both ways", two, some((4, 3, 6), (20, 10), (40, 5)), WIDE)


def resample() -> Iterator[Case]:
    modes: Sequence[tuple[str, tuple[int, ...]]] = (
        ("nearest", (2, 3, 9)),
        ("linear", (2, 3, 9)),
        ("nearest", (2, 3, 9, 10)),
        ("nearest-exact", (2, 3, 9, 10)),
        ("bilinear", (2, 3, 9, 10)),
        ("bicubic", (2, 3, 9, 10)),
        ("area", (2, 3, 9, 10)),
        ("trilinear", (1, 2, 5, 6, 7)),
        ("nearest", (1, 2, 5, 6, 7)),
        ("bilinear", (1, 8, 120, 90)),
    )
    for mode, shape in modes:
        for scale in (2.0, 0.6, 3.7):
            call = partial(F.interpolate, scale_factor=scale, mode=mode)
            yield from cases(f"interpolate/{mode} {shape} {scale}", call, some(shape), (*FLOATS, "uint8"), LAYOUTS)
        if mode in ("linear", "bilinear", "bicubic", "trilinear"):
            call = partial(F.interpolate, scale_factor=2.5, mode=mode, align_corners=True)
            yield from cases(f"interpolate/{mode} {shape} corners", call, some(shape), FLOATS)
        if mode in ("bilinear", "bicubic"):
            call = partial(F.interpolate, scale_factor=0.4, mode=mode, antialias=True)
            yield from cases(
                f"interpolate/{mode} {shape} antialias", call, some(shape, low=0.0, high=200.0), (*FLOATS, "uint8")
            )
    for size, out in (
        ((2, 3, 7, 8), (2, 5, 6, 2)),
        ((1, 17, 40, 50), (1, 60, 33, 2)),
        ((1, 2, 4, 5, 6), (1, 3, 4, 5, 3)),
    ):
        for mode in ("bilinear", "nearest", "bicubic")[: 3 if len(size) == 4 else 2]:
            for padding in ("zeros", "border", "reflection"):
                call = partial(F.grid_sample, mode=mode, padding_mode=padding, align_corners=False)
                yield from cases(
                    f"grid_sample/{size} {mode} {padding}",
                    call,
                    [Operand(size), Operand(out, -1.4, 1.4)],
                    FLOATS,
                    LAYOUTS[:2],
                )
