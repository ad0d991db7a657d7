"""Operations on each element, and conversions of dtypes."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from ..fx._record import Value
from ._graph import Graph, converts, type_of

# ONNX has these under a name of its own, for floats.
_SAME = {
    "abs": "Abs",
    "absolute": "Abs",
    "acos": "Acos",
    "arccos": "Acos",
    "acosh": "Acosh",
    "arccosh": "Acosh",
    "asin": "Asin",
    "arcsin": "Asin",
    "asinh": "Asinh",
    "arcsinh": "Asinh",
    "atan": "Atan",
    "arctan": "Atan",
    "atanh": "Atanh",
    "arctanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "hardswish": "HardSwish",
    "log": "Log",
    "mish": "Mish",
    "neg": "Neg",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sgn": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}


def _unary(kind: str) -> Any:
    def converter(g: Graph, input: Any) -> str:
        found: str = g.op(kind, g.cast(input, g.result.dtype))
        return found

    return converter


for _name, _kind in _SAME.items():
    converts(_name)(_unary(_kind))


@converts("positive", "clone", "contiguous", "detach", "data", "alias", "requires_grad_", "resolve_conj", "resolve_neg")
def same(g: Graph, input: Any, *args: Any, memory_format: Any = None) -> str:
    return g.name(input)


@converts(
    "to",
    "type",
    "type_as",
    "float",
    "double",
    "half",
    "bfloat16",
    "int",
    "long",
    "short",
    "char",
    "byte",
    "bool",
    "cpu",
    "cuda",
)
def cast(g: Graph, input: Any, *args: Any, **kwargs: Any) -> str:
    source, target = input.dtype, g.result.dtype
    if source.is_floating_point and target == _core.uint8:
        # Numbers beyond its range are another dtype's business; inside they are the same.
        return g.cast(g.cast(input, _core.int64), target)
    return g.cast(input, target)


@converts("copy_")
def copy_(g: Graph, input: Any, src: Any, non_blocking: bool = False) -> str:
    found: str = g.op("Expand", g.cast(src, input.dtype), g.op("Shape", input))
    return found


@converts("fill_", "fill")
def fill(g: Graph, input: Any, value: Any) -> str:
    found: str = g.op("Expand", g.cast(value, input.dtype), g.op("Shape", input))
    return found


@converts("zero_")
def zero(g: Graph, input: Any) -> str:
    return fill(g, input, 0)


# --------------------------------------------------------------------------------------------------- two operands


def _scaled(g: Graph, x: Any, alpha: Any) -> str:
    dtype = g.result.dtype
    own = g.cast(x, dtype)
    if isinstance(alpha, (int, float)) and alpha == 1:
        return own
    found: str = g.op("Mul", own, g.cast(alpha, dtype))
    return found


@converts("add")
def add(g: Graph, input: Any, other: Any, alpha: Any = 1) -> str:
    if g.result.dtype == _core.bool:
        return g.op("Or", input, other)
    return g.op("Add", g.cast(input, g.result.dtype), _scaled(g, other, alpha))


@converts("sub", "subtract")
def sub(g: Graph, input: Any, other: Any, alpha: Any = 1) -> str:
    return g.op("Sub", g.cast(input, g.result.dtype), _scaled(g, other, alpha))


@converts("rsub")
def rsub(g: Graph, input: Any, other: Any, alpha: Any = 1) -> str:
    return g.op("Sub", g.cast(other, g.result.dtype), _scaled(g, input, alpha))


@converts("mul", "multiply")
def mul(g: Graph, input: Any, other: Any) -> str:
    if g.result.dtype == _core.bool:
        return g.op("And", input, other)
    return g.op("Mul", g.cast(input, g.result.dtype), g.cast(other, g.result.dtype))


def _floor_div(g: Graph, a: str, b: str, dtype: Any) -> str:
    if dtype.is_floating_point:
        return g.op("Floor", g.op("Div", a, b))
    # Div of integers cuts towards 0; what Mod leaves has the divisor's sign.
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


@converts("div", "divide", "true_divide")
def div(g: Graph, input: Any, other: Any, rounding_mode: str | None = None) -> str:
    dtype = g.result.dtype
    a, b = g.cast(input, dtype), g.cast(other, dtype)
    if rounding_mode == "floor":
        return _floor_div(g, a, b, dtype)
    found = g.op("Div", a, b)
    if rounding_mode == "trunc" and dtype.is_floating_point:
        found = g.op("Mul", g.op("Sign", found), g.op("Floor", g.op("Abs", found)))
    return str(found)


@converts("__rtruediv__", "__rdiv__")
def rdiv(g: Graph, input: Any, other: Any) -> str:
    return div(g, other, input)


@converts("floor_divide")
def floor_divide(g: Graph, input: Any, other: Any) -> str:
    return div(g, input, other, "floor")


@converts("__rfloordiv__")
def rfloordiv(g: Graph, input: Any, other: Any) -> str:
    return div(g, other, input, "floor")


@converts("remainder")
def remainder(g: Graph, input: Any, other: Any) -> str:
    dtype = g.result.dtype
    a, b = g.cast(input, dtype), g.cast(other, dtype)
    if not dtype.is_floating_point:
        return g.op("Mod", a, b)
    return g.op("Sub", a, g.op("Mul", b, g.op("Floor", g.op("Div", a, b))))


@converts("__rmod__")
def rmod(g: Graph, input: Any, other: Any) -> str:
    return remainder(g, other, input)


@converts("fmod")
def fmod(g: Graph, input: Any, other: Any) -> str:
    dtype = g.result.dtype
    return g.op("Mod", g.cast(input, dtype), g.cast(other, dtype), fmod=1)


@converts("pow", "float_power")
def pow(g: Graph, input: Any, exponent: Any) -> str:
    dtype = g.result.dtype
    base = g.cast(input, dtype)
    if type(exponent) in (int, float):
        if exponent == 2:
            return g.op("Mul", base, base)
        if exponent == 0.5:
            return g.op("Sqrt", base)
    return g.op("Pow", base, g.cast(exponent, dtype))


@converts("__rpow__")
def rpow(g: Graph, input: Any, other: Any) -> str:
    return pow(g, other, input)


@converts("square")
def square(g: Graph, input: Any) -> str:
    return g.op("Mul", input, input)


def _chosen(kind: str) -> Any:
    def converter(g: Graph, input: Any, other: Any) -> str:
        dtype = g.result.dtype
        return g.op(kind, g.cast(input, dtype), g.cast(other, dtype))

    return converter


converts("maximum", "fmax")(_chosen("Max"))
converts("minimum", "fmin")(_chosen("Min"))


def _compared(kind: str, negated: bool = False) -> Any:
    def converter(g: Graph, input: Any, other: Any) -> str:
        dtype = g.promoted(input, other)
        if dtype == _core.bool and kind != "Equal":
            dtype = _core.int32
        found = g.op(kind, g.cast(input, dtype), g.cast(other, dtype))
        return str(g.op("Not", found) if negated else found)

    return converter


converts("eq")(_compared("Equal"))
converts("ne", "not_equal")(_compared("Equal", negated=True))
converts("lt", "less")(_compared("Less"))
converts("le", "less_equal")(_compared("LessOrEqual"))
converts("gt", "greater")(_compared("Greater"))
converts("ge", "greater_equal")(_compared("GreaterOrEqual"))


def _logical(kind: str) -> Any:
    def converter(g: Graph, input: Any, other: Any) -> str:
        return g.op(kind, g.cast(input, _core.bool), g.cast(other, _core.bool))

    return converter


def _bitwise(kind: str, of_bools: str) -> Any:
    def converter(g: Graph, input: Any, other: Any) -> str:
        dtype = g.result.dtype
        return g.op(of_bools if dtype == _core.bool else kind, g.cast(input, dtype), g.cast(other, dtype))

    return converter


converts("logical_and")(_logical("And"))
converts("logical_or")(_logical("Or"))
converts("logical_xor")(_logical("Xor"))
converts("bitwise_and")(_bitwise("BitwiseAnd", "And"))
converts("bitwise_or")(_bitwise("BitwiseOr", "Or"))
converts("bitwise_xor")(_bitwise("BitwiseXor", "Xor"))


@converts("logical_not")
def logical_not(g: Graph, input: Any) -> str:
    return g.op("Not", g.cast(input, _core.bool))


@converts("bitwise_not")
def bitwise_not(g: Graph, input: Any) -> str:
    return g.op("Not" if input.dtype == _core.bool else "BitwiseNot", input)


@converts("isnan")
def isnan(g: Graph, input: Any) -> str:
    return g.op("IsNaN", g.cast(input, input.dtype if input.dtype.is_floating_point else _core.float32))


@converts("isinf")
def isinf(g: Graph, input: Any) -> str:
    return g.op("IsInf", g.cast(input, input.dtype if input.dtype == _core.float64 else _core.float32))


@converts("isfinite")
def isfinite(g: Graph, input: Any) -> str:
    return g.op("Not", g.op("Or", isinf(g, input), isnan(g, input)))


# ---------------------------------------------------------------------------------------------- three and more


@converts("where")
def where(g: Graph, condition: Any, input: Any, other: Any) -> str:
    dtype = g.result.dtype
    return g.op("Where", g.cast(condition, _core.bool), g.cast(input, dtype), g.cast(other, dtype))


@converts("masked_fill")
def masked_fill(g: Graph, input: Any, mask: Any, value: Any) -> str:
    return g.op("Where", g.cast(mask, _core.bool), g.cast(value, input.dtype), input)


@converts("lerp")
def lerp(g: Graph, input: Any, end: Any, weight: Any) -> str:
    return g.op("Add", input, g.op("Mul", g.cast(weight, input.dtype), g.op("Sub", end, input)))


@converts("addcmul")
def addcmul(g: Graph, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> str:
    return g.op(
        "Add", input, _scaled(g, g.op("Mul", tensor1, tensor2), value) if value != 1 else g.op("Mul", tensor1, tensor2)
    )


@converts("addcdiv")
def addcdiv(g: Graph, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> str:
    found = g.op("Div", tensor1, tensor2)
    return g.op("Add", input, found if value == 1 else g.op("Mul", found, g.cast(value, input.dtype)))


def bounded(g: Graph, input: Any, low: Any, high: Any) -> str:
    """Elements between two numbers or tensors, None for none."""
    dtype = g.result.dtype
    own = g.cast(input, dtype)
    if isinstance(low, Value) or isinstance(high, Value):
        if low is not None:
            own = g.op("Max", own, g.cast(low, dtype))
        return str(own if high is None else g.op("Min", own, g.cast(high, dtype)))
    bounds = [None if x is None else g.cast(x, dtype) for x in (low, high)]
    return g.op("Clip", own, *bounds)


@converts("clamp", "clip")
def clamp(g: Graph, input: Any, min: Any = None, max: Any = None) -> str:
    return bounded(g, input, min, max)


@converts("clamp_min")
def clamp_min(g: Graph, input: Any, min: Any) -> str:
    return bounded(g, input, min, None)


@converts("clamp_max")
def clamp_max(g: Graph, input: Any, max: Any) -> str:
    return bounded(g, input, None, max)


# ------------------------------------------------------------------------------------------- made of others


def _c(g: Graph, number: float) -> str:
    return g.number(number, g.result.dtype)


@converts("rsqrt")
def rsqrt(g: Graph, input: Any) -> str:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(input, g.result.dtype)))


@converts("log1p")
def log1p(g: Graph, input: Any) -> str:
    return g.op("Log", g.op("Add", g.cast(input, g.result.dtype), _c(g, 1)))


@converts("expm1")
def expm1(g: Graph, input: Any) -> str:
    return g.op("Sub", g.op("Exp", g.cast(input, g.result.dtype)), _c(g, 1))


@converts("exp2")
def exp2(g: Graph, input: Any) -> str:
    return g.op("Pow", _c(g, 2), g.cast(input, g.result.dtype))


@converts("log2")
def log2(g: Graph, input: Any) -> str:
    return g.op("Div", g.op("Log", g.cast(input, g.result.dtype)), _c(g, math.log(2)))


@converts("log10")
def log10(g: Graph, input: Any) -> str:
    return g.op("Div", g.op("Log", g.cast(input, g.result.dtype)), _c(g, math.log(10)))


@converts("erfc")
def erfc(g: Graph, input: Any) -> str:
    return g.op("Sub", _c(g, 1), g.op("Erf", g.cast(input, g.result.dtype)))


@converts("trunc", "fix")
def trunc(g: Graph, input: Any) -> str:
    return g.op("Mul", g.op("Sign", input), g.op("Floor", g.op("Abs", input)))


@converts("frac")
def frac(g: Graph, input: Any) -> str:
    return g.op("Sub", input, trunc(g, input))


@converts("round")
def round(g: Graph, input: Any, decimals: int = 0) -> str:
    if decimals == 0:
        return g.op("Round", input)
    scale = _c(g, 10.0**decimals)
    return g.op("Div", g.op("Round", g.op("Mul", input, scale)), scale)


# --------------------------------------------------------------------------------------------- activations


@converts("gelu")
def gelu(g: Graph, input: Any, approximate: str = "none") -> str:
    if g.opset >= 20:
        return g.op("Gelu", input, approximate=approximate)
    half = g.op("Mul", input, _c(g, 0.5))
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", input, input), input)
        inner = g.op("Add", input, g.op("Mul", cube, _c(g, 0.044715)))
        wave = g.op("Tanh", g.op("Mul", inner, _c(g, math.sqrt(2 / math.pi))))
    else:
        wave = g.op("Erf", g.op("Mul", input, _c(g, math.sqrt(0.5))))
    return g.op("Mul", half, g.op("Add", wave, _c(g, 1)))


@converts("silu")
def silu(g: Graph, input: Any) -> str:
    return g.op("Mul", input, g.op("Sigmoid", input))


@converts("elu")
def elu(g: Graph, input: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> str:
    if input_scale != 1:
        g.refuse("input_scale")
    found = g.op("Elu", input, alpha=float(alpha))
    return found if scale == 1 else g.op("Mul", found, _c(g, scale))


@converts("selu")
def selu(g: Graph, input: Any) -> str:
    return g.op("Selu", input)


@converts("celu")
def celu(g: Graph, input: Any, alpha: float = 1.0) -> str:
    scaled = g.op("Div", input, _c(g, alpha))
    low = g.op("Mul", g.op("Elu", g.op("Min", scaled, _c(g, 0))), _c(g, alpha))
    return g.op("Add", g.op("Relu", input), low)


@converts("relu6")
def relu6(g: Graph, input: Any) -> str:
    return bounded(g, input, 0, 6)


@converts("hardtanh")
def hardtanh(g: Graph, input: Any, min_val: float = -1.0, max_val: float = 1.0) -> str:
    return bounded(g, input, min_val, max_val)


@converts("hardsigmoid")
def hardsigmoid(g: Graph, input: Any) -> str:
    return g.op("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@converts("leaky_relu")
def leaky_relu(g: Graph, input: Any, negative_slope: float = 0.01) -> str:
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@converts("logsigmoid", "log_sigmoid")
def logsigmoid(g: Graph, input: Any) -> str:
    return g.op("Neg", g.op("Softplus", g.op("Neg", input)))


@converts("softplus")
def softplus(g: Graph, input: Any, beta: float = 1.0, threshold: float = 20.0) -> str:
    scaled = input if beta == 1 else g.op("Mul", input, _c(g, beta))
    found = g.op("Softplus", scaled)
    found = found if beta == 1 else g.op("Div", found, _c(g, beta))
    return g.op("Where", g.op("Greater", scaled, _c(g, threshold)), input, found)


@converts("softsign")
def softsign(g: Graph, input: Any) -> str:
    return g.op("Softsign", input)


@converts("tanhshrink")
def tanhshrink(g: Graph, input: Any) -> str:
    return g.op("Sub", input, g.op("Tanh", input))


@converts("hardshrink")
def hardshrink(g: Graph, input: Any, lambd: float = 0.5) -> str:
    return g.op("Shrink", input, lambd=float(lambd), bias=0.0)


@converts("softshrink")
def softshrink(g: Graph, input: Any, lambd: float = 0.5) -> str:
    return g.op("Shrink", input, lambd=float(lambd), bias=float(lambd))


@converts("threshold")
def threshold(g: Graph, input: Any, threshold: float, value: float) -> str:
    return g.op("Where", g.op("Greater", input, _c(g, threshold)), input, _c(g, value))


@converts("prelu")
def prelu(g: Graph, input: Any, weight: Any) -> str:
    dims = len(input.shape)
    if len(weight.shape) == 1 and weight.shape[0] > 1 and dims > 2:
        weight = g.op("Unsqueeze", weight, g.ints(range(1, dims - 1)))
    return g.op("PRelu", input, weight)


# ------------------------------------------------------------------------------------------ random numbers


@converts("randn_like")
def randn_like(g: Graph, input: Any, *, dtype: Any = None, **kwargs: Any) -> str:
    return g.op("RandomNormalLike", input, dtype=type_of(g.result.dtype))


@converts("rand_like")
def rand_like(g: Graph, input: Any, *, dtype: Any = None, **kwargs: Any) -> str:
    return g.op("RandomUniformLike", input, dtype=type_of(g.result.dtype))


@converts("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def dropout(g: Graph, input: Any, p: float = 0.5, train: bool = True, inplace: bool = False) -> str:
    if train and p > 0:
        g.refuse("it draws random numbers in training mode; export the model in eval mode")
    return g.name(input)
