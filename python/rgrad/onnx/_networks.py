"""Convolutions, pools, norms, resizing, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._runtime.info import finfo
from ..fx._record import Value
from ..fx._sizes import SymbolicInt
from ._graph import Graph, converts
from ._views import all_sizes, listed, transpose, transposed

# Functions of Python that have a form of their own; of all others, those that they call are converted.
LEAVES = {"pad", "one_hot", "embedding", "pixel_shuffle", "einsum"}


def for_each(x: Any, dims: int) -> list[int]:
    """A number for each dimension."""
    return [int(x)] * dims if isinstance(x, int) else [int(v) for v in (list(x) * dims if len(x) == 1 else x)]


def _in_a_batch(g: Graph, x: Value, dims: int) -> tuple[Any, bool]:
    """An input with a batch, and whether it had none."""
    alone = len(x.shape) == dims + 1
    return (g.op("Unsqueeze", x, g.ints([0])) if alone else x), alone


def _out_of_it(g: Graph, made: str, alone: bool) -> str:
    return g.op("Squeeze", made, g.ints([0])) if alone else made


def _convolution(dims: int) -> Any:
    def converter(
        g: Graph,
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> str:
        kernel = list(weight.shape[2:])
        step, spread = for_each(stride, dims), for_each(dilation, dims)
        if padding == "valid":
            pads = [0] * (2 * dims)
        elif padding == "same":
            total = [d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
            pads = [t // 2 for t in total] + [t - t // 2 for t in total]
        else:
            pads = for_each(padding, dims) * 2
        own, alone = _in_a_batch(g, input, dims)
        made = g.op(
            "Conv", own, weight, bias, kernel_shape=kernel, strides=step, pads=pads, dilations=spread, group=groups
        )
        return _out_of_it(g, made, alone)

    return converter


def _transposed_convolution(dims: int) -> Any:
    def converter(
        g: Graph,
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> str:
        own, alone = _in_a_batch(g, input, dims)
        made = g.op(
            "ConvTranspose",
            own,
            weight,
            bias,
            kernel_shape=list(weight.shape[2:]),
            strides=for_each(stride, dims),
            pads=for_each(padding, dims) * 2,
            output_padding=for_each(output_padding, dims),
            dilations=for_each(dilation, dims),
            group=groups,
        )
        return _out_of_it(g, made, alone)

    return converter


def _max_pool(dims: int) -> Any:
    def converter(
        g: Graph,
        input: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> list[str | None]:
        kernel = for_each(kernel_size, dims)
        own, alone = _in_a_batch(g, input, dims)
        made = g.op(
            "MaxPool",
            own,
            kernel_shape=kernel,
            strides=kernel if stride in ((), [], None) else for_each(stride, dims),
            pads=for_each(padding, dims) * 2,
            dilations=for_each(dilation, dims),
            ceil_mode=int(ceil_mode),
        )
        return _first(g, _out_of_it(g, made, alone))

    return converter


def _average_pool(dims: int) -> Any:
    def converter(
        g: Graph,
        input: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> str:
        if divisor_override is not None:
            g.refuse("divisor_override")
        kernel = for_each(kernel_size, dims)
        own, alone = _in_a_batch(g, input, dims)
        made = g.op(
            "AveragePool",
            own,
            kernel_shape=kernel,
            strides=kernel if stride in ((), [], None) else for_each(stride, dims),
            pads=for_each(padding, dims) * 2,
            ceil_mode=int(ceil_mode),
            count_include_pad=int(count_include_pad),
        )
        return _out_of_it(g, made, alone)

    return converter


def _wanted(x: Value, output_size: Any, dims: int) -> list[int]:
    own = x.shape[len(x.shape) - dims :]
    given = [output_size] * dims if output_size is None or isinstance(output_size, int) else list(output_size)
    return [
        int(a) if b is None else int(b) for a, b in zip(own, given * dims if len(given) == 1 else given, strict=False)
    ]


def _adaptive_average(dims: int) -> Any:
    def converter(g: Graph, input: Any, output_size: Any) -> str:
        count = len(input.shape)
        own: Any = input
        whole = []
        for k, wanted in enumerate(_wanted(input, output_size, dims)):
            axis = count - dims + k
            if wanted == 1:
                whole.append(axis)
                continue
            size = g.static(input, axis, "pieces of an adaptive pool")
            if size == wanted:
                continue
            # Each output is a mean of neighbours, which is a product with a matrix along this dimension.
            means = _core.zeros(size, wanted, dtype=_core.float64, device="cpu")
            for out in range(wanted):
                begin, end = out * size // wanted, -(-(out + 1) * size // wanted)
                means[begin:end, out] = 1 / (end - begin)
            matrix = g.tensor(means.to(input.dtype))
            order = list(range(count))
            order[axis], order[-1] = order[-1], order[axis]
            turned = own if axis == count - 1 else transposed(g, own, order)
            own = g.op("MatMul", turned, matrix)
            own = own if axis == count - 1 else transposed(g, own, order)
        return g.op("ReduceMean", own, g.ints(whole), keepdims=1) if whole else g.name(own)

    return converter


def _first(g: Graph, name: str) -> list[str | None]:
    """A result, and nothing in place of the positions that may stand beside it."""
    return [name, None] if g.call is not None and isinstance(g.call.result, tuple) else [name]


def _adaptive_max(dims: int) -> Any:
    def converter(g: Graph, input: Any, output_size: Any, return_indices: bool = False) -> list[str | None]:
        count, wanted = len(input.shape), _wanted(input, output_size, dims)
        if all(w == 1 for w in wanted):
            return _first(g, g.op("ReduceMax", input, g.ints(range(count - dims, count)), keepdims=1))
        sizes = [g.static(input, count - dims + k, "pieces of an adaptive pool") for k in range(dims)]
        if any(s % w for s, w in zip(sizes, wanted, strict=True)):
            g.refuse(f"output_size {wanted} does not divide the sizes {sizes}")
        kernel = [s // w for s, w in zip(sizes, wanted, strict=True)]
        own, alone = _in_a_batch(g, input, dims)
        return _first(g, _out_of_it(g, g.op("MaxPool", own, kernel_shape=kernel, strides=kernel), alone))

    return converter


for _n in (1, 2, 3):
    converts(f"conv{_n}d")(_convolution(_n))
    converts(f"conv_transpose{_n}d")(_transposed_convolution(_n))
    converts(f"max_pool{_n}d")(_max_pool(_n))
    converts(f"avg_pool{_n}d")(_average_pool(_n))
    converts(f"adaptive_avg_pool{_n}d")(_adaptive_average(_n))
    converts(f"adaptive_max_pool{_n}d")(_adaptive_max(_n))


# -------------------------------------------------------------------------------------------------------- norms


def _channels(g: Graph, x: Value, parameter: Any, number: float) -> str:
    """A parameter for each channel, or as many numbers."""
    if parameter is not None:
        return g.name(parameter)
    many = g.static(x, 1, "its channels")
    return g.tensor(_core.full((many,), number, dtype=x.dtype, device="cpu"))


@converts("batch_norm")
def batch_norm(
    g: Graph,
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> str:
    if training or running_mean is None or running_var is None:
        g.refuse("statistics of the batch; export the model in eval mode, with running statistics")
    scale, shift = _channels(g, input, weight, 1), _channels(g, input, bias, 0)
    return g.op("BatchNormalization", input, scale, shift, running_mean, running_var, epsilon=float(eps))


@converts("instance_norm")
def instance_norm(
    g: Graph,
    input: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> str:
    if not use_input_stats:
        return batch_norm(g, input, weight, bias, running_mean, running_var, False, momentum, eps)
    scale, shift = _channels(g, input, weight, 1), _channels(g, input, bias, 0)
    return g.op("InstanceNormalization", input, scale, shift, epsilon=float(eps))


@converts("group_norm")
def group_norm(
    g: Graph,
    input: Any,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> str:
    sizes = all_sizes(g, input)
    rows = g.reshape(input, [sizes[0], num_groups, -1])
    one = g.tensor(_core.ones(num_groups, dtype=input.dtype, device="cpu"))
    zero = g.tensor(_core.zeros(num_groups, dtype=input.dtype, device="cpu"))
    made = g.op("InstanceNormalization", rows, one, zero, epsilon=float(eps))
    made = g.op("Reshape", made, g.op("Shape", input))
    inner = g.ints(range(1, len(sizes) - 1))
    for kind, parameter in (("Mul", weight), ("Add", bias)):
        if parameter is not None:
            made = g.op(kind, made, g.op("Unsqueeze", parameter, inner) if len(sizes) > 2 else parameter)
    return str(made)


@converts("layer_norm")
def layer_norm(
    g: Graph,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> str:
    shape = listed((normalized_shape,))
    scale = weight if weight is not None else g.tensor(_core.ones(shape, dtype=input.dtype, device="cpu"))
    return g.op("LayerNormalization", input, scale, bias, axis=-len(shape), epsilon=float(eps))


@converts("rms_norm")
def rms_norm(g: Graph, input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> str:
    axes = g.ints(range(-len(listed((normalized_shape,))), 0))
    eps = finfo(input.dtype).eps if eps is None else eps
    mean = g.op("ReduceMean", g.op("Mul", input, input), axes, keepdims=1)
    made = g.op("Div", input, g.op("Sqrt", g.op("Add", mean, g.number(eps, input.dtype))))
    return str(made if weight is None else g.op("Mul", made, weight))


# ------------------------------------------------------------------------------------------ images and edges


@converts("pad")
def pad(g: Graph, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str:
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode == "circular" and g.opset < 19:
        g.refuse("mode='circular' needs opset_version 19")
    dims, given = len(input.shape), list(pad)
    begins, ends = [0] * dims, [0] * dims
    for k in range(len(given) // 2):
        begins[dims - 1 - k], ends[dims - 1 - k] = given[2 * k], given[2 * k + 1]
    number = g.cast(0 if value is None else value, input.dtype) if mode == "constant" else None
    return g.op("Pad", input, g.sizes(begins + ends), number, mode=names[mode])


@converts("pixel_shuffle")
def pixel_shuffle(g: Graph, input: Any, upscale_factor: int) -> str:
    own, alone = _in_a_batch(g, input, 2)
    return _out_of_it(g, g.op("DepthToSpace", own, blocksize=upscale_factor, mode="CRD"), alone)


@converts("upsample")
def upsample(
    g: Graph,
    input: Any,
    output_size: Any,
    mode: str,
    align_corners: bool = False,
    antialias: bool = False,
    scales_d: Any = None,
    scales_h: Any = None,
    scales_w: Any = None,
) -> str:
    dims = len(input.shape) - 2
    kinds = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear"}
    kinds |= {"trilinear": "linear", "bicubic": "cubic"}
    if mode not in kinds:
        g.refuse(f"mode={mode!r}")
    place = "align_corners" if align_corners else "half_pixel"
    scales = [scales_d, scales_h, scales_w][-dims:]
    attributes: dict[str, Any] = {"mode": kinds[mode], "axes": list(range(2, dims + 2))}
    attributes["coordinate_transformation_mode"] = "asymmetric" if mode == "nearest" else place
    if kinds[mode] == "nearest":
        attributes["nearest_mode"] = "floor" if mode == "nearest" else "round_prefer_ceil"
    if kinds[mode] == "cubic":
        attributes["cubic_coeff_a"] = -0.75
    if antialias:
        attributes["antialias"] = 1
    if all(s is not None for s in scales):
        factors = g.tensor(_core.tensor([float(s) for s in scales], dtype=_core.float32, device="cpu"))
        return g.op("Resize", input, None, factors, **attributes)
    return g.op("Resize", input, None, None, g.sizes(list(output_size)), **attributes)


@converts("grid_sampler")
def grid_sampler(g: Graph, input: Any, grid: Any, mode: int, padding_mode: int, align_corners: bool) -> str:
    names = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    edges = ("zeros", "border", "reflection")
    return g.op(
        "GridSample",
        input,
        grid,
        mode=names[mode],
        padding_mode=edges[padding_mode],
        align_corners=int(align_corners),
    )


# ---------------------------------------------------------------------------------------------------- attention


def _causal(g: Graph, query: Value, key: Value) -> str:
    """Which keys each query sees, as a matrix of bools."""
    sizes: Sequence[Any] = (g.size_of(query, -2), g.size_of(key, -2))
    if not any(isinstance(s, SymbolicInt) for s in sizes):
        return g.tensor(_core.ones(*sizes, dtype=_core.bool, device="cpu").tril())
    ones = g.op("Expand", g.number(1, _core.int64), g.sizes(sizes))
    return g.cast(g.op("Trilu", ones, upper=0), _core.bool)


@converts("scaled_dot_product_attention")
def attention(
    g: Graph,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> str:
    if dropout_p:
        g.refuse("dropout, which draws random numbers; export the model in eval mode")
    if enable_gqa and g.dims(query)[-3] != g.dims(key)[-3]:
        g.refuse("enable_gqa with other heads; repeat the keys and values before")
    factor = 1 / math.sqrt(g.static(query, -1, "the scale")) if scale is None else scale
    number = g.number(math.sqrt(factor), query.dtype) if factor > 0 else g.refuse("a scale that is not positive")
    turned = transpose(g, key, -2, -1)
    scores = g.op("MatMul", g.op("Mul", query, number), g.op("Mul", turned, number))
    if is_causal or (attn_mask is not None and attn_mask.dtype == _core.bool):
        mask = _causal(g, query, key) if is_causal else g.name(attn_mask)
        scores = g.op("Where", mask, scores, g.number(-math.inf, query.dtype))
    elif attn_mask is not None:
        scores = g.op("Add", scores, g.cast(attn_mask, query.dtype))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
