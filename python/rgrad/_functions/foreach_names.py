"""The names of :mod:`foreach`, by how many lists each takes."""

UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min")
TERNARY = ("addcdiv", "addcmul")
WRITTEN_OUT = ("clone", "copy_", "max", "norm", "zero_")
_BOTH = (*UNARY, *BINARY, *TERNARY, "lerp")
NAMES = tuple(f"_foreach_{name}" for name in (*_BOTH, *(f"{name}_" for name in _BOTH), *WRITTEN_OUT))
