"""Operations in place whose operand shares memory with what they write: programs that run on rgrad and on torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BINARY = """
add_ arctan2_ atan2_ copy_ copysign_ div_ divide_ eq_ floor_divide_ fmod_ ge_ greater_ greater_equal_ gt_ hypot_ le_
less_ less_equal_ lt_ mul_ multiply_ ne_ not_equal_ pow_ remainder_ sub_ subtract_ true_divide_ xlogy_ logical_and_
logical_or_ logical_xor_ clamp_min_ clamp_max_
"""

# In place, and the only operand is what they write.
ALONE = """
abs_ absolute_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ celu_
cos_ cosh_ elu_ erf_ erfc_ exp2_ exp_ expit_ expm1_ exponential_ fix_ floor_ frac_ hardsigmoid_ hardswish_ hardtanh_
leaky_relu_ log10_ log1p_ log2_ log_ logical_not_ logit_ mish_ nan_to_num_ neg_ negative_ normal_ random_ reciprocal_
relu_ round_ rsqrt_ sgn_ sigmoid_ sign_ silu_ sin_ sinh_ sqrt_ square_ tan_ tanh_ tril_ triu_ trunc_ uniform_ zero_
""".strip().split()

# Of integers, which have no history; of flags, memory and shape, which have no operand.
OTHERS = set(
    """
bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ conj_physical_ detach_
freeze_ requires_grad_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unfreeze_ unsqueeze_
""".strip().split()
)

# Each writes `t`. `o` has its shape and shares its memory, `x` has its shape and memory of its own.
CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    **{name: lambda T, t, o, x, name=name: getattr(t, name)(o) for name in BINARY.split()},
    **{name: lambda T, t, o, x, name=name: getattr(t, name)() for name in ALONE},
    "cumprod_": lambda T, t, o, x: t.cumprod_(0),
    "cumsum_": lambda T, t, o, x: t.cumsum_(0),
    "threshold_": lambda T, t, o, x: t.threshold_(0.5, 0.25),
    "add_ alpha": lambda T, t, o, x: t.add_(o, alpha=2),
    "div_ floor": lambda T, t, o, x: t.div_(o, rounding_mode="floor"),
    "addcmul_": lambda T, t, o, x: t.addcmul_(o, o),
    "addcmul_ second": lambda T, t, o, x: t.addcmul_(o, x),
    "addcmul_ third": lambda T, t, o, x: t.addcmul_(x, o),
    "addcdiv_": lambda T, t, o, x: t.addcdiv_(o, o),
    "addcdiv_ second": lambda T, t, o, x: t.addcdiv_(o, x),
    "addcdiv_ third": lambda T, t, o, x: t.addcdiv_(x, o),
    "lerp_": lambda T, t, o, x: t.lerp_(o, o),
    "lerp_ end": lambda T, t, o, x: t.lerp_(o, x),
    "lerp_ weight": lambda T, t, o, x: t.lerp_(x, o),
    "lerp_ number": lambda T, t, o, x: t.lerp_(o, 0.25),
    "clamp_": lambda T, t, o, x: t.clamp_(o, o),
    "clamp_ min": lambda T, t, o, x: t.clamp_(min=o),
    "clamp_ max": lambda T, t, o, x: t.clamp_(x, o),
    "clip_": lambda T, t, o, x: t.clip_(max=o),
    "masked_fill_": lambda T, t, o, x: t.masked_fill_(x.detach() > x.detach().mean(), o.sum()),
    "masked_scatter_": lambda T, t, o, x: t.masked_scatter_(x.detach() > x.detach().mean(), o * 1),
    "fill_": lambda T, t, o, x: t.fill_(o.sum()),
    "index_put_": lambda T, t, o, x: t.index_put_((T.tensor([1, 0]),), o[:2] * 1),
    "index_put_ add": lambda T, t, o, x: t.index_put_((T.tensor([1, 1]),), o[:2] * 1, accumulate=True),
    "index_add_": lambda T, t, o, x: t.index_add_(0, T.tensor([1, 0]), o[:2] * 1),
    "index_copy_": lambda T, t, o, x: t.index_copy_(0, T.tensor([1, 0]), o[:2] * 1),
    "index_fill_": lambda T, t, o, x: t.index_fill_(0, T.tensor([1]), o.sum()),
    "scatter_": lambda T, t, o, x: t.scatter_(0, T.zeros((1, t.shape[1]), dtype=T.int64), o[:1] * 1),
    "scatter_add_": lambda T, t, o, x: t.scatter_add_(0, T.zeros((1, t.shape[1]), dtype=T.int64), o[:1] * 1),
    "bernoulli_": lambda T, t, o, x: t.bernoulli_(o.detach() * 0),
    # Python's own forms, which write the result back through the subscript.
    "+=": lambda T, t, o, x: t.__iadd__(o),
    "*=": lambda T, t, o, x: t.__imul__(o),
    "/=": lambda T, t, o, x: t.__itruediv__(o),
    "subscript": lambda T, t, o, x: t.__setitem__(slice(0, 1), t[:1].__imul__(o[:1])),
}

# How what is written and the operand lie in an inner tensor `y` of four rows and as many columns or more.
ALIASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "itself": lambda y: (y, y),
    "operand is a view": lambda y: (y, y.view(-1).view(y.shape)),
    "target is a view": lambda y: (y.view(-1).view(y.shape), y),
    "two views": lambda y: (y.view_as(y), y[:]),
    "the same part": lambda y: (y[:2], y[:2]),
    "another part": lambda y: (y[:2], y[2:4]),
    "a row of the rest": lambda y: (y[1:], y[0].expand(y.shape[0] - 1, -1)),
    "both transposed": lambda y: (y.t(), y.t()),
    "columns": lambda y: (y[:, ::2], y[:, 1::2]),
    "detached operand": lambda y: (y, y.detach()),
    "detached target": lambda y: (y.detach(), y),
}


def operands(T: Any, leaf: Any, alias: str) -> tuple[Any, Any, Any, Any]:
    """An inner tensor of `leaf`, and t, o and x of `CALLS`."""
    y = leaf * 1.5
    t, o = ALIASES[alias](y)
    return y, t, o, (leaf * 0.75)[: t.shape[0], : t.shape[1]]
