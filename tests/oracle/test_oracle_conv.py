"""Convolutions beside PyTorch: random configurations, gradients of both orders, nodes, errors, modules."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, visible_strides  # noqa: E402

LIBRARIES = (rgrad, torch)
LAYOUTS = ("dense", "transposed", "part", "turned", "expanded")
TOLERANCE = {"float64": 1e-10, "float32": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}


def leaf(T: Any, array: np.ndarray, kind: str, grad: bool = True) -> Any:
    return T.tensor(array, dtype=getattr(T, kind)).requires_grad_(grad)


def seen(t: Any, layout: str) -> Any:
    """The same elements, lying in memory in another way."""
    if layout == "transposed":
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "part":
        return t.repeat(*[1] * (t.dim() - 1), 2)[..., : t.shape[-1]]
    if layout == "turned":
        return t.flip(0).flip(0)
    return t


def close(ours: Any, theirs: Any, kind: str, what: str, scale: float = 1.0) -> None:
    if theirs is None:
        assert ours is None, what
        return
    assert tuple(ours.shape) == tuple(theirs.shape), what
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2], what
    a, b = (np.array(t.detach().to(T.float64).numpy()) for T, t in zip(LIBRARIES, (ours, theirs), strict=True))
    top = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    tol = TOLERANCE[kind] * scale
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol * top, err_msg=what, equal_nan=True)


class Case:
    """A random call: shapes, parameters and operands."""

    def __init__(self, seed: int, transposed: bool) -> None:
        rng = np.random.default_rng([seed, transposed])
        self.rng, self.transposed = rng, transposed
        n = self.dims = int(rng.integers(1, 4))
        draw = lambda high: [int(v) for v in rng.integers(0, high, n)]  # noqa: E731
        self.groups = int(rng.choice([1, 1, 1, 2, 3]))
        self.kernel = [k + 1 for k in draw(4 if n < 3 else 3)]
        self.stride = [s + 1 for s in draw(3)]
        self.dilation = [d + 1 for d in draw(3)] if seed % 2 else [1] * n
        self.padding = draw(3)
        self.output_padding = draw(2) if transposed else [0] * n
        into, out = (int(v) for v in rng.integers(1, 6 if seed % 5 else 20, 2))
        self.batch = int(rng.choice([0, 1, 2, 3])) if seed % 7 == 0 else int(rng.integers(1, 4))
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        size = [int(rng.integers(1, 9 if n == 2 else 6)) + (0 if transposed or seed % 10 == 0 else r) for r in reach]
        self.same = not transposed and rng.random() < 0.15
        if self.same:
            self.stride = [1] * n
        lead = [self.batch] if rng.random() < 0.85 else []
        self.x = rng.standard_normal([*lead, into * self.groups, *size])
        first, second = (into * self.groups, out) if transposed else (out * self.groups, into)
        self.w = rng.standard_normal([first, second, *self.kernel])
        self.bias = rng.standard_normal(out * self.groups) if rng.random() < 0.6 else None
        self.kind = ["float32", "float64", "float32", "float64", "float16", "bfloat16"][seed % 6]
        self.layouts = [str(rng.choice(LAYOUTS)) for _ in range(2)]
        self.needs = [bool(rng.random() < 0.85) for _ in range(3)]

    def operands(self, T: Any) -> tuple[list[Any], list[Any]]:
        """The leaves, and what the function is called with."""
        arrays = [self.x, self.w, self.bias]
        leaves = [None if a is None else leaf(T, a, self.kind, g) for a, g in zip(arrays, self.needs, strict=True)]
        views = [seen(t, layout) for t, layout in zip(leaves[:2], self.layouts, strict=True)]
        return leaves, [*views, leaves[2]]

    def call(self, T: Any, x: Any, w: Any, bias: Any) -> Any:
        name = f"conv{'_transpose' if self.transposed else ''}{self.dims}d"
        more: dict[str, Any] = {"output_padding": self.output_padding} if self.transposed else {}
        padding = "same" if self.same else self.padding
        function = getattr(T.nn.functional, name)
        return function(
            x, w, bias, stride=self.stride, padding=padding, dilation=self.dilation, groups=self.groups, **more
        )


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_random_configurations(seed: int, transposed: bool) -> None:
    case = Case(seed, transposed)
    what = str({k: v for k, v in case.__dict__.items() if k not in ("x", "w", "bias", "rng")})
    sides = [case.operands(T) for T in LIBRARIES]
    ours, theirs = (
        attempt(lambda T=T, args=args: case.call(T, *args)) for T, (_, args) in zip(LIBRARIES, sides, strict=True)
    )
    if "Output size is too small" in ours.message:
        # PyTorch's kernels disagree: some give a result without elements, some fail later.
        assert theirs.error is RuntimeError or theirs.value.numel() == 0, what
        return
    assert ours.error == theirs.error, f"{ours.message} / {theirs.message} {what}"
    if theirs.error is not None:
        assert ours.message == theirs.message, what
        return
    y, z = ours.value, theirs.value
    scale = float(np.sqrt(case.w[0].size))
    close(y, z, case.kind, f"result of {what}", scale)
    if case.batch > 0:
        assert visible_strides(y) == visible_strides(z), what
    assert type(y.grad_fn).__name__ == type(z.grad_fn).__name__, what
    wanted = [k for k, t in enumerate(sides[0][0]) if t is not None and t.requires_grad]
    if not wanted:
        return
    seeds = case.rng.standard_normal(tuple(z.shape))
    recorded = case.kind == "float64" and seed % 3 == 1
    firsts: list[Any] = []
    gs = [leaf(T, seeds, case.kind) for T in LIBRARIES]
    for T, (leaves, _), out, g in zip(LIBRARIES, sides, (y, z), gs, strict=True):
        inputs = [leaves[k] for k in wanted]
        if recorded:
            firsts.append(T.autograd.grad(out, inputs, g, create_graph=True))
        else:
            firsts.append(T.autograd.grad(out, inputs, g.detach()))
    scale *= float(np.sqrt(max(seeds.size, 1)))
    for a, b in zip(*firsts, strict=True):
        close(a, b, case.kind, f"gradient of {what}", scale)
    if not recorded:
        return
    seconds = []
    for T, (leaves, _), g, grads in zip(LIBRARIES, sides, gs, firsts, strict=True):
        kept = [t for t in grads if t.requires_grad]
        total = sum(((t * t).sum() for t in kept), T.zeros((), dtype=T.float64))
        inputs = [*(leaves[k] for k in wanted), g]
        seconds.append(T.autograd.grad(total, inputs, allow_unused=True) if kept else [])
    for a, b in zip(*seconds, strict=True):
        if a is None or b is None:
            # Where one says that there is no gradient, the other may say zeros.
            left = a if b is None else b
            assert left is None or not left.any(), what
            continue
        close(a, b, case.kind, f"second gradient of {what}", 100 * scale)


INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "bool")


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_integers(kind: str, dims: int) -> None:
    rng = np.random.default_rng([dims, len(kind)])
    arrays = [rng.integers(0, 120, s) for s in ((2, 4, *[5] * dims), (4, 2, *[2] * dims), (4,))]
    for name, more in (("conv", {}), ("conv", {"dilation": 2}), ("conv_transpose", {})):
        made = []
        for T in LIBRARIES:
            given = [T.tensor(a).to(getattr(T, kind)) for a in arrays]
            f = partial(getattr(T.nn.functional, f"{name}{dims}d"), *given, groups=2, **more)
            made.append(attempt(f))
        if made[1].error is None:
            assert made[0].error is None, made[0].message
            assert np.array_equal(made[0].value.numpy(), made[1].value.numpy()), (name, more)
        else:
            assert made[0].error == made[1].error, (name, more, made[0].message, made[1].message)
            quoted = made[1].message.split('"')
            assert quoted[1 if len(quoted) > 1 else 0] in made[0].message


BAD: list[tuple[str, str]] = [
    ("rank", "F.conv2d(ones(4, 6), ones(8, 4, 3, 3))"),
    ("rank of one dimension", "F.conv1d(ones(4), ones(8, 4, 3))"),
    ("rank of three dimensions", "F.conv3d(ones(4, 4), ones(8, 4, 3, 3, 3))"),
    ("rank, transposed", "F.conv_transpose2d(ones(4), ones(4, 8, 3, 3))"),
    ("weight of another rank", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3))"),
    ("weight without kernel", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4))"),
    ("channels", "F.conv2d(ones(2, 4, 6, 6), ones(8, 2, 3, 3))"),
    ("channels, transposed", "F.conv_transpose2d(ones(2, 4, 6, 6), ones(8, 2, 3, 3))"),
    ("no group", "F.conv2d(ones(2, 4, 6, 6), ones(8, 2, 3, 3), groups=0)"),
    ("groups that do not divide", "F.conv2d(ones(2, 6, 6, 6), ones(8, 2, 3, 3), groups=3)"),
    ("too many groups", "F.conv2d(ones(2, 4, 6, 6), ones(8, 2, 3, 3), groups=100)"),
    ("large kernel", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 7, 3))"),
    ("large dilated kernel", "F.conv1d(ones(1, 4, 3), ones(8, 4, 7), padding=1, dilation=2)"),
    ("negative padding", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), padding=-1)"),
    ("stride 0", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), stride=0)"),
    ("negative dilation", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), dilation=-1)"),
    ("dilation 0", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), dilation=0)"),
    ("size of the bias", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), ones(7))"),
    ("rank of the bias", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), ones(8, 1))"),
    ("bias, transposed", "F.conv_transpose2d(ones(2, 8, 5, 5), ones(8, 2, 3, 3), ones(7), groups=2)"),
    ("three strides", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), stride=(1, 2, 3))"),
    ("no stride", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), stride=())"),
    ("three paddings", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), padding=(1, 2, 3))"),
    ("three dilations", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), dilation=(1, 2, 3))"),
    ("output padding", "F.conv_transpose2d(ones(2, 4, 6, 6), ones(4, 3, 2, 2), output_padding=1)"),
    ("output padding of a vector", "F.conv_transpose1d(ones(1, 4, 3), ones(4, 3, 2), output_padding=1)"),
    ("output padding of a volume", "F.conv_transpose3d(ones(1, 4, 3, 3, 3), ones(4, 3, 2, 2, 2), output_padding=1)"),
    ("negative output padding", "F.conv_transpose2d(ones(2, 4, 6, 6), ones(4, 3, 2, 2), output_padding=-1)"),
    ("no output left", "F.conv_transpose2d(ones(1, 4, 1, 1), ones(4, 3, 2, 2), padding=2)"),
    ("no output left of a vector", "F.conv_transpose1d(ones(1, 4, 1), ones(4, 3, 2), padding=2)"),
    ("no output left of a volume", "F.conv_transpose3d(ones(1, 4, 1, 1, 1), ones(4, 3, 2, 2, 2), padding=1)"),
    ("no output channels", "F.conv2d(ones(2, 4, 6, 6), ones(0, 4, 3, 3))"),
    ("no elements", "F.conv2d(ones(2, 4, 0, 6), ones(8, 4, 1, 3))"),
    ("no elements but padding", "F.conv2d(ones(2, 4, 0, 6), ones(8, 4, 1, 3), padding=1)"),
    ("no elements, transposed", "F.conv_transpose2d(ones(2, 4, 0, 6), ones(4, 3, 3, 3))"),
    ("same with stride", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), padding='same', stride=2)"),
    ("same of another rank", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3), padding='same')"),
    ("padding of another name", "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), padding='full')"),
    ("convolution of a matrix", "T.convolution(ones(4, 6), ones(8, 4, 3, 3), None, [1], [0], [1], False, [0], 1)"),
    ("time, batch, channels", "T.conv_tbc(ones(5, 2, 4), ones(3, 5, 6), ones(6), 1)"),
    ("time and batch", "T.conv_tbc(ones(5, 2), ones(3, 5, 6), ones(6), 1)"),
    ("time, batch, channels, bias", "T.conv_tbc(ones(5, 2, 4), ones(3, 4, 6), ones(5), 1)"),
]


@pytest.mark.parametrize("call", [pytest.param(c, id=name) for name, c in BAD])
def test_errors(call: str) -> None:
    made = [attempt(lambda T=T: eval(call, {"T": T, "F": T.nn.functional, "ones": T.ones})) for T in LIBRARIES]
    ours, theirs = made
    assert theirs.error is RuntimeError
    assert ours.error == theirs.error, (ours.message, theirs.message)
    if "dilation should" in ours.message:
        assert theirs.message in ours.message
        return
    assert ours.message == theirs.message


@pytest.mark.parametrize(
    "call",
    [
        "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3).double())",
        "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), ones(8).double())",
        "F.conv2d(ones(2, 4, 6, 6).long(), ones(8, 4, 3, 3))",
        "F.conv1d(ones(2, 4, 6).half(), ones(8, 4, 3).bfloat16())",
        "F.conv_transpose2d(ones(2, 4, 6, 6), ones(4, 8, 3, 3).double())",
        "F.conv2d(ones(2, 4, 6, 6), None)",
        "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), stride='a')",
        "F.conv2d(ones(2, 4, 6, 6), ones(8, 4, 3, 3), stride=1.5)",
        "F.conv_transpose2d(ones(2, 4, 6, 6), ones(4, 8, 3, 3), padding='same')",
    ],
)
def test_errors_of_types(call: str) -> None:
    ours, theirs = (attempt(lambda T=T: eval(call, {"F": T.nn.functional, "ones": T.ones})) for T in LIBRARIES)
    assert theirs.error is not None
    assert ours.error == theirs.error, (ours.message, theirs.message)
    for words in ("should be the same", "invalid combination of arguments"):
        assert words not in theirs.message or words in ours.message


NODES = (
    "F.conv1d(x(2, 4, 6), w(8, 2, 3), b(8), stride=2, padding=1, groups=2)",
    "F.conv2d(x(2, 4, 6, 6), w(8, 4, 3, 2), dilation=2)",
    "F.conv3d(x(2, 4, 5, 6, 7), w(8, 4, 3, 2, 1), b(8), padding=(1, 0, 2))",
    "F.conv_transpose1d(x(2, 4, 6), w(4, 2, 3), b(4), groups=2)",
    "F.conv_transpose2d(x(2, 4, 6, 6), w(4, 2, 3, 3), stride=3, output_padding=(1, 2))",
    "F.conv_tbc(x(5, 2, 4), w(3, 4, 6), b(6), 1)",
)


@pytest.mark.parametrize("call", NODES)
def test_nodes(call: str) -> None:
    nodes = []
    for T in LIBRARIES:

        def made(*shape: int, T: Any = T) -> Any:
            return T.ones(shape, requires_grad=True)

        nodes.append(eval(call, {"F": T.nn.functional, "x": made, "w": made, "b": made}).grad_fn)
    ours, theirs = nodes
    names = [n for n in dir(theirs) if n.startswith("_saved")]
    assert [n for n in dir(ours) if n.startswith("_saved")] == names
    for name in names:
        a, b = getattr(ours, name), getattr(theirs, name)
        shapes = [tuple(v.shape) if hasattr(v, "shape") else v for v in (a, b)]
        assert name.startswith("_saved_raw") or shapes[0] == shapes[1], name
    # PyTorch's node has a place for a bias that is not there.
    edges = [[type(n).__name__ for n, _ in node.next_functions if n is not None] for node in nodes]
    assert edges[0] == edges[1]


def _modules(name: str, *args: Any, **kwargs: Any) -> list[Any]:
    made = [getattr(T.nn, name)(*args, **kwargs) for T in LIBRARIES]
    state = {k: v.numpy() for k, v in made[1].state_dict().items()}
    assert list(made[0].state_dict()) == list(state)
    made[0].load_state_dict({k: rgrad.tensor(v) for k, v in state.items()})
    return made


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Conv1d", (4, 6, 3), {"padding": 2, "padding_mode": "circular"}, (2, 4, 7)),
    ("Conv1d", (4, 6, 4), {"padding": "same", "dilation": 2, "bias": False}, (2, 4, 9)),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 2), "groups": 2}, (2, 4, 7, 6)),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, (2, 4, 7, 6)),
    ("Conv2d", (4, 6, 4), {"padding": "same", "padding_mode": "replicate"}, (4, 7, 6)),
    ("Conv2d", (4, 6, 3), {"padding": "valid"}, (2, 4, 7, 6)),
    ("Conv3d", (2, 4, 2), {"padding": (1, 0, 2), "padding_mode": "replicate"}, (2, 2, 4, 5, 3)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, (2, 4, 7)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2, "dilation": 2}, (2, 4, 7, 5)),
    ("ConvTranspose3d", (4, 2, 2), {"bias": False}, (2, 4, 3, 4, 5)),
]


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), LAYERS)
def test_modules(name: str, args: Any, kwargs: Any, shape: tuple[int, ...]) -> None:
    ours, theirs = _modules(name, *args, **kwargs)
    assert repr(ours) == repr(theirs)
    x = np.random.default_rng(len(shape)).standard_normal(shape)
    close(ours(leaf(rgrad, x, "float32")), theirs(leaf(torch, x, "float32")), "float32", name, 5)
    for attribute in ("weight", "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation"):
        a, b = getattr(ours, attribute), getattr(theirs, attribute)
        assert a == b if attribute != "weight" else a.shape == b.shape
    for attribute in ("transposed", "output_padding", "groups", "padding_mode", "_reversed_padding_repeated_twice"):
        a, b = getattr(ours, attribute), getattr(theirs, attribute)
        assert a == b, attribute


@pytest.mark.parametrize("size", [(14, 10), (13, 9), (2, 6, 14, 9), (12, 9), (15, 9), (14,)])
def test_output_size(size: tuple[int, ...]) -> None:
    ours, theirs = _modules("ConvTranspose2d", 4, 6, 3, stride=2, padding=1)
    made = [
        attempt(lambda m=m, T=T: m(T.ones(2, 4, 7, 5), output_size=size)) for m, T in ((ours, rgrad), (theirs, torch))
    ]
    assert made[0].error == made[1].error
    if made[1].error is None:
        close(made[0].value, made[1].value, "float32", str(size))
        return
    known = ("requested an output size", "ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements")
    assert any(made[0].message.startswith(k) and made[1].message.startswith(k) for k in known)


@pytest.mark.parametrize(
    "call",
    [
        "Conv2d(4, 6, 3, groups=0)",
        "Conv2d(4, 6, 3, groups=3)",
        "Conv2d(6, 4, 3, groups=3)",
        "Conv2d(4, 6, 3, padding='full')",
        "Conv2d(4, 6, 3, padding='same', stride=2)",
        "Conv2d(4, 6, 3, padding_mode='mirror')",
        "ConvTranspose2d(4, 6, 3, padding_mode='reflect')",
    ],
)
def test_errors_of_modules(call: str) -> None:
    ours, theirs = (attempt(lambda T=T: eval(f"nn.{call}", {"nn": T.nn})) for T in LIBRARIES)
    assert theirs.error is ValueError
    assert ours.error == theirs.error
    assert ours.message.split("{")[0].split("(")[0] == theirs.message.split("{")[0].split("(")[0]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_as_functions(dims: int) -> None:
    rng = np.random.default_rng(dims)
    x, w = rng.standard_normal((2, 4, *[6] * dims)), rng.standard_normal((6, 2, *[3] * dims))
    g = rng.standard_normal((2, 6, *[3] * dims))
    made = []
    for T in LIBRARIES:
        of = T.nn.grad
        x_, w_, g_ = (leaf(T, a, "float64", False) for a in (x, w, g))
        more = (2, 1, 1, 2)
        made.append(
            [
                getattr(of, f"conv{dims}d_input")(x.shape, w_, g_, *more),
                getattr(of, f"conv{dims}d_weight")(x_, w.shape, g_, *more),
            ]
        )
    for a, b in zip(*made, strict=True):
        close(a, b, "float64", "gradient")
    with pytest.raises(RuntimeError, match="grad_output"):
        getattr(rgrad.nn.grad, f"conv{dims}d_input")(x.shape, rgrad.tensor(w), rgrad.tensor(g), 1, 0, 1, 2)
