"""The names of operations, by what they need of DTensors."""

from __future__ import annotations

from ... import _core

#: Answered by the part: nothing of the whole tensor is asked.
OF_PART = frozenset(
    (
        *("requires_grad_", "register_post_accumulate_grad_hook", "retain_grad", "backward", "detach_"),
        *("is_floating_point", "is_complex", "is_inference", "is_frozen", "is_contiguous", "is_signed", "is_conj"),
        *("is_neg", "is_shared", "is_pinned", "_is_view"),
        *("element_size", "dim", "ndimension", "get_device", "data_ptr", "__hash__"),
    )
)
#: Linear, so that a reduction that is to be made may stay one.
KEEP = frozenset(
    (*("detach", "clone", "to", "cpu", "contiguous", "float", "double", "half", "bfloat16", "real", "imag", "type"),)
)
#: New tensors of the shape of another one.
LIKE = frozenset(("zeros_like", "ones_like", "empty_like", "full_like"))
#: Each element of the result comes of the elements at the same place.
ELEMENTS = frozenset(
    (
        *_core.pointwise_names,
        *KEEP,
        *LIKE,
        *("add", "subtract", "sub", "rsub", "div", "divide", "true_divide", "pow", "float_power"),
        *("clamp", "clip", "clamp_min", "clamp_max", "where", "masked_fill", "copy_", "zero_", "fill_"),
        *("int", "long", "short", "char", "byte", "bool", "conj", "conj_physical", "resolve_conj", "resolve_neg"),
        *("positive", "signbit", "heaviside", "ldexp"),
        *("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__", "__invert__"),
        *("__and__", "__or__", "__xor__", "__rand__", "__ror__", "__rxor__"),
        *("gelu", "logsigmoid", "relu6", "selu", "tanhshrink", "softsign"),
    )
)
#: Random numbers that are written to a tensor.
RANDOM = frozenset(
    ("normal_", "uniform_", "exponential_", "log_normal_", "cauchy_", "geometric_", "bernoulli_", "random_")
)
#: Random numbers of the shape of another tensor.
RANDOM_LIKE = frozenset(("rand_like", "randn_like", "randint_like"))
#: Random numbers of replicated tensors would be others in each process.
NEVER = frozenset(("dropout", "bernoulli", "multinomial", "normal", "poisson", "rrelu", "alpha_dropout"))
#: Reductions of all elements, and how those of parts are combined.
REDUCTIONS = {
    "sum": "sum",
    "mean": "sum",
    "prod": "product",
    "max": "max",
    "min": "min",
    "amax": "max",
    "amin": "min",
    "any": "max",
    "all": "min",
}
#: Attributes that are tensors of elements.
TENSOR_ATTRIBUTES = frozenset(("real", "imag"))
