"""Names of operations, as PyTorch prints and compares them: ``ops.aten.mm.default``.

Policies of selective checkpointing get such a name for each operation. A name can be called where this package has the
function: ``ops.aten.mm.default(a, b)``. Operators of :mod:`rgrad.library` are here under their namespaces.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._core import Tensor

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "load_library", "loaded_libraries", "prim"]

#: Paths of native libraries that were loaded: none can be.
loaded_libraries: set[str] = set()
# Those that a program wanted to load.
_refused_libraries: set[str] = set()

# Operations of one overload, "default".
_PLAIN = """
_pin_memory _sparse_addmm _sparse_mm_reduce_impl
_adaptive_avg_pool2d _adaptive_avg_pool3d _log_softmax _prelu_kernel _reshape_alias
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_for_cpu _softmax _to_copy _unique2 _unsafe_view _upsample_bicubic2d_aa
_upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d abs acos acosh adaptive_max_pool2d adaptive_max_pool3d addcdiv addcmul addmm addmv alias
amax amin aminmax angle argmax argmin as_strided asin asinh atan atan2 atanh avg_pool2d avg_pool3d baddbmm
binary_cross_entropy binary_cross_entropy_with_logits block_diag bmm cat ceil celu clamp clamp_max clamp_min clone
col2im conv_tbc convolution copy cos cosh cummax cummin cumprod cumsum deg2rad detach diag_embed diagonal
diagonal_copy dim dist dot elu embedding erf erfc exp exp2 expand expm1 exponential flip floor floor_divide fmax fmin
frac fractional_max_pool2d fractional_max_pool3d gather gelu grid_sampler_2d grid_sampler_3d hardshrink hardsigmoid
hardswish hardtanh huber_loss hypot im2col index_add index_copy index_put index_select isinf isnan isneginf isposinf
is_contiguous is_non_overlapping_and_dense is_strides_like_format kthvalue leaky_relu linalg_vector_norm linear log
log10 log1p log2 log_sigmoid_forward logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor
logit logsumexp masked_scatter masked_select matmul max max_pool2d_with_indices max_pool3d_with_indices max_unpool2d
max_unpool3d maximum mean median min minimum mish mm mode mse_loss mv nan_to_num nanmedian nansum native_batch_norm
native_dropout native_group_norm native_layer_norm neg nll_loss2d_forward nll_loss_forward numel permute prod rad2deg
reciprocal relu repeat roll rot90 round rsqrt scatter_add sgn sigmoid sign silu sin sinh size smooth_l1_loss softplus
softshrink sqrt squeeze stack storage_offset stride sum sym_numel sym_size sym_storage_offset sym_stride t take
tan tanh threshold topk trace tril triu trunc unfold uniform unique_consecutive unique_dim unsafe_split_with_sizes
unsqueeze upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
upsample_nearest3d upsample_trilinear3d view zero
"""

# Further overloads, or other ones. The forms in place have the name with an underscore behind it.
_OVERLOADS: dict[str, tuple[str, ...]] = {
    "add": ("Tensor", "Scalar"),
    "all": ("default", "dim", "dims"),
    "any": ("default", "dim", "dims"),
    "bernoulli": ("default", "Tensor", "p"),
    "bitwise_and": ("Tensor", "Scalar"),
    "bitwise_not": ("default",),
    "bitwise_or": ("Tensor", "Scalar"),
    "bitwise_xor": ("Tensor", "Scalar"),
    "clamp": ("default", "Tensor"),
    "clamp_max": ("default", "Tensor"),
    "clamp_min": ("default", "Tensor"),
    "copysign": ("Tensor", "Scalar"),
    "div": ("Tensor", "Tensor_mode", "Scalar", "Scalar_mode"),
    "eq": ("Tensor", "Scalar"),
    "fill": ("Scalar", "Tensor"),
    "floor_divide": ("default", "Scalar"),
    "fmod": ("Tensor", "Scalar"),
    "ge": ("Tensor", "Scalar"),
    "gt": ("Tensor", "Scalar"),
    "index": ("Tensor",),
    "index_fill": ("int_Scalar", "int_Tensor"),
    "is_contiguous": ("default", "memory_format"),
    "le": ("Tensor", "Scalar"),
    "lerp": ("Scalar", "Tensor"),
    "lt": ("Tensor", "Scalar"),
    "masked_fill": ("Scalar", "Tensor"),
    "max": ("default", "dim"),
    "mean": ("default", "dim"),
    "median": ("default", "dim"),
    "min": ("default", "dim"),
    "mul": ("Tensor", "Scalar"),
    "nanmedian": ("default", "dim"),
    "ne": ("Tensor", "Scalar"),
    "normal": ("Tensor_float", "Tensor_Tensor", "float_Tensor", "float_float"),
    "pow": ("Tensor_Scalar", "Tensor_Tensor", "Scalar"),
    "prod": ("default", "dim_int"),
    "random": ("default", "from", "to"),
    "remainder": ("Tensor", "Scalar", "Scalar_Tensor"),
    "round": ("default", "decimals"),
    "rsub": ("Tensor", "Scalar"),
    "scatter": ("src", "value"),
    "select": ("int",),
    "size": ("default", "int"),
    "slice": ("Tensor",),
    "sort": ("default", "stable"),
    "split": ("Tensor",),
    "split_with_sizes": ("default",),
    "squeeze": ("default", "dim", "dims"),
    "std": ("correction",),
    "std_mean": ("correction",),
    "stride": ("default", "int"),
    "sub": ("Tensor", "Scalar"),
    "sum": ("default", "dim_IntList"),
    "transpose": ("int",),
    "unbind": ("int",),
    "unsafe_split": ("Tensor",),
    "var": ("correction",),
    "var_mean": ("correction",),
    "where": ("self", "ScalarOther", "ScalarSelf", "Scalar"),
    "xlogy": ("Tensor", "Scalar_Self", "Scalar_Other"),
}

# What the forms in place call other than the forms that make new tensors.
_IN_PLACE: dict[str, tuple[str, ...]] = {
    "bernoulli": ("float", "Tensor"),
    "floor_divide": ("Tensor", "Scalar"),
    "normal": ("default",),
    "pow": ("Scalar", "Tensor"),
    "remainder": ("Scalar", "Tensor"),
    "transpose": ("default",),
    "xlogy": ("Tensor", "Scalar_Other"),
}

# Names of nodes whose operation is not the name in small letters with the overload "default".
_NODES: dict[str, str] = {
    "AdaptiveAvgPool2DBackward0": "_adaptive_avg_pool2d",
    "AdaptiveAvgPool3DBackward0": "_adaptive_avg_pool3d",
    "AddBackward0": "add.Tensor",
    "BernoulliBackward2": "bernoulli.float",
    "Col2ImBackward0": "col2im",
    "CopyBackwards": "copy",
    "CopysignBackward0": "copysign.Tensor",
    "CopysignBackward1": "copysign.Scalar",
    "Deg2RadBackward0": "deg2rad",
    "DiagonalBackward0_copy": "diagonal_copy",
    "DivBackward0": "div.Tensor",
    "DivBackward1": "div.Scalar",
    "DivBackward2": "div.Tensor_mode",
    "FillBackward2": "fill.Scalar",
    "FillBackward3": "fill.Tensor",
    "FmodBackward0": "fmod.Scalar",
    "FmodBackward1": "fmod.Tensor",
    "GridSampler2DBackward0": "grid_sampler_2d",
    "GridSampler3DBackward0": "grid_sampler_3d",
    "Im2ColBackward0": "im2col",
    "IndexBackward0": "index.Tensor",
    "IndexFillBackward0": "index_fill.int_Scalar",
    "IndexFillBackward1": "index_fill.int_Tensor",
    "LerpBackward0": "lerp.Scalar",
    "LerpBackward1": "lerp.Tensor",
    "Log1PBackward0": "log1p",
    "LogSigmoidBackward0": "log_sigmoid_forward",
    "LogSoftmaxBackward0": "_log_softmax",
    "MaskedFillBackward0": "masked_fill.Scalar",
    "MaskedFillBackward1": "masked_fill.Tensor",
    "MaxBackward0": "max.dim",
    "MeanBackward1": "mean.dim",
    "MedianBackward1": "median.dim",
    "MinBackward0": "min.dim",
    "MulBackward0": "mul.Tensor",
    "NanmedianBackward1": "nanmedian.dim",
    "NllLoss2DBackward0": "nll_loss2d_forward",
    "NllLossBackward0": "nll_loss_forward",
    "PowBackward0": "pow.Tensor_Scalar",
    "PowBackward1": "pow.Tensor_Tensor",
    "PowBackward2": "pow.Scalar",
    "PreluKernelBackward0": "_prelu_kernel",
    "ProdBackward1": "prod.dim_int",
    "RandomBackward0": "random.from",
    "RandomBackward2": "random.default",
    "RemainderBackward0": "remainder.Scalar",
    "ReshapeAliasBackward0": "_reshape_alias",
    "RoundBackward1": "round.decimals",
    "RsubBackward0": "rsub.Tensor",
    "RsubBackward1": "rsub.Scalar",
    "ScaledDotProductFlashAttentionForCpuBackward0": "_scaled_dot_product_flash_attention_for_cpu",
    "ScatterBackward0": "scatter.src",
    "ScatterBackward1": "scatter.value",
    "SelectBackward0": "select.int",
    "SliceBackward0": "slice.Tensor",
    "SoftmaxBackward0": "_softmax",
    "SplitBackward0": "split.Tensor",
    "SqueezeBackward1": "squeeze.dim",
    "SqueezeBackward2": "squeeze.dims",
    "SqueezeBackward4": "squeeze.dim",
    "StdBackward0": "std.correction",
    "StdMeanBackward0": "std_mean.correction",
    "SubBackward0": "sub.Tensor",
    "SumBackward1": "sum.dim_IntList",
    "ToCopyBackward0": "_to_copy",
    "TransposeBackward0": "transpose.int",
    "UnbindBackward0": "unbind.int",
    "Unique2Backward0": "_unique2",
    "UnsafeSplitBackward0": "unsafe_split.Tensor",
    "UnsafeViewBackward0": "_unsafe_view",
    "UpsampleBicubic2DAaBackward0": "_upsample_bicubic2d_aa",
    "UpsampleBilinear2DAaBackward0": "_upsample_bilinear2d_aa",
    "UpsampleLanczos2DAaBackward0": "_upsample_lanczos2d_aa",
    "UpsampleNearestExact1DBackward0": "_upsample_nearest_exact1d",
    "UpsampleNearestExact2DBackward0": "_upsample_nearest_exact2d",
    "UpsampleNearestExact3DBackward0": "_upsample_nearest_exact3d",
    "VarBackward0": "var.correction",
    "VarMeanBackward0": "var_mean.correction",
    "WhereBackward0": "where.self",
    "XlogyBackward0": "xlogy.Tensor",
    "XlogyBackward1": "xlogy.Scalar_Self",
    "XlogyBackward2": "xlogy.Scalar_Other",
}


class OpOverload:
    """One form of an operation: ``ops.aten.add.Tensor``. There is one object for each."""

    __slots__ = ("_overloadname", "_packet")

    def __init__(self, packet: "OpOverloadPacket", overload: str) -> None:
        self._packet = packet
        self._overloadname = overload

    @property
    def overloadpacket(self) -> "OpOverloadPacket":
        """The operation with all of its forms."""
        return self._packet

    @property
    def namespace(self) -> str:
        """``"aten"``, for instance."""
        return self._packet._namespace

    @property
    def __name__(self) -> str:
        return f"{self._packet.__name__}.{self._overloadname}"

    def _accepts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it can be called with these arguments."""
        return True

    def name(self) -> str:
        """PyTorch's full name: ``"aten::add.Tensor"``, without the overload where that is the default."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._packet.__name__}{end}"

    def __str__(self) -> str:
        return f"{self._packet}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet}', overload='{self._overloadname}')>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._packet, self._overloadname)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._packet(*args, **kwargs)


class OpOverloadPacket:
    """An operation with all of its forms: ``ops.aten.add``."""

    def __init__(self, namespace: str, name: str, overloads: Sequence[str]) -> None:
        self._namespace = namespace
        self.__name__ = name
        self._overloads = {overload: OpOverload(self, overload) for overload in overloads}

    def overloads(self) -> list[str]:
        """The names of the forms."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        found: OpOverload | None = self.__dict__.get("_overloads", {}).get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._overloads})

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _packet, (self._namespace, self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._namespace not in ("aten", "prim"):
            return self._call_fitting(args, kwargs)
        from .nn import functional

        for owner in (_core, functional, Tensor):
            function: Callable[..., Any] | None = getattr(owner, self.__name__, None)
            if function is not None:
                return function(*args, **kwargs)
        raise NotImplementedError(f"{self} is the name of an operation that rgrad has no function of this name for")

    def _call_fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first form whose schema the arguments fit."""
        forms = list(self._overloads.values())
        for form in forms[:-1]:
            if form._accepts(args, kwargs):
                return form(*args, **kwargs)
        return forms[-1](*args, **kwargs)


class _OpNamespace:
    """Operations by name, made when they are first asked for."""

    def __init__(self, name: str, known: dict[str, tuple[str, ...]]) -> None:
        self._name = name
        self._known = known

    def __getattr__(self, name: str) -> OpOverloadPacket:
        overloads = self.__dict__.get("_known", {}).get(name)
        if overloads is None:
            raise AttributeError(f"'_OpNamespace' '{self.__dict__.get('_name')}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self._name, name, overloads)
        # Another thread may have made it meanwhile: names are compared by identity.
        first: OpOverloadPacket = self.__dict__.setdefault(name, packet)
        return first

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._known})

    def __repr__(self) -> str:
        return f"<module 'rgrad.ops.{self._name}'>"


def _known() -> dict[str, tuple[str, ...]]:
    known = dict.fromkeys(_PLAIN.split(), ("default",)) | _OVERLOADS
    for name in list(known):
        if hasattr(Tensor, f"{name}_"):
            known[f"{name}_"] = _IN_PLACE.get(name, known[name])
    return known


aten = _OpNamespace("aten", _known())
prim = _OpNamespace("prim", {"device": ("default",)})


# Made when they are first asked for; `library` fills them.
_namespaces: dict[str, _OpNamespace] = {"aten": aten, "prim": prim}


def _namespace(name: str) -> _OpNamespace:
    return _namespaces.setdefault(name, _OpNamespace(name, {}))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _namespace(name)


def load_library(path: Any) -> None:
    """Refused: a native library of PyTorch's operators needs PyTorch.

    Raises:
        OSError: Always. Programs that go on without their library do so.
    """
    _refused_libraries.add(str(path))
    raise OSError(
        f"Could not load this library: {path}. It is compiled for PyTorch, and rgrad loads no native operators; write "
        "them in Python with rgrad.library.custom_op"
    )


def _define(namespace: str, name: str, make: Callable[[OpOverloadPacket], OpOverload]) -> OpOverload:
    """Enter an operator, in place of one with the same overload."""
    space = _namespace(namespace)
    space._known.setdefault(name, ())
    packet: OpOverloadPacket = getattr(space, name)
    form = make(packet)
    packet._overloads[form._overloadname] = form
    return form


def _undefine(form: OpOverload) -> None:
    """Take an operator away, if no other has its place."""
    packet = form._packet
    if packet._overloads.get(form._overloadname) is form:
        del packet._overloads[form._overloadname]
    if not packet._overloads:
        space = _namespace(packet._namespace)
        space._known.pop(packet.__name__, None)
        space.__dict__.pop(packet.__name__, None)


def _packet(namespace: str, name: str) -> OpOverloadPacket:
    packet: OpOverloadPacket = getattr(_namespace(namespace), name)
    return packet


def _called(name: str, node_name: str, kind: str, inputs: tuple[Any, ...]) -> OpOverload:
    """The name of an operation as the core tells of it to a watcher (see ``_core._push_operation_watcher``)."""
    base, overload = _of_node(name, node_name, inputs)
    if kind == "writes":
        overload = {"Tensor_Scalar": "Scalar", "Tensor_Tensor": "Tensor"}.get(overload, overload)
        base += "_"
    known = aten._known.setdefault(base, (overload,))
    if overload not in known:
        overload = known[0]
    found: OpOverload = getattr(getattr(aten, base), overload)
    return found


# Nodes that do not tell the overload.
_WITHOUT_DERIVATIVE = {"NoBackward", "NotDifferentiable"} | {
    f"{name}Backward{i}" for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge") for i in range(2)
}


def _of_node(name: str, node_name: str, inputs: tuple[Any, ...]) -> tuple[str, str]:
    tensors = sum(isinstance(i, Tensor) for i in inputs)
    if node_name == "BmmBackward0" and any(i.dim() <= 2 for i in inputs):
        # PyTorch folds leading dimensions into one where the other factor is a matrix.
        return "mm" if all(i.dim() >= 2 for i in inputs) else "mv", "default"
    if node_name == "ClampBackward0" and tensors > 1:
        return "clamp", "Tensor"
    if node_name in ("ClampMinBackward1", "ClampMaxBackward1"):
        return node_name[: -len("Backward1")].replace("M", "_m").lower(), "Tensor"
    if node_name == "RemainderBackward1":
        return "remainder", "Tensor" if tensors > 1 else "Scalar_Tensor"
    if node_name in _WITHOUT_DERIVATIVE:
        base = name
        overload = "Tensor" if tensors > 1 else "Scalar"
        known = aten._known.get(base, ("default",))
        return base, overload if overload in known else known[0]
    if node_name in _NODES:
        base, _, overload = _NODES[node_name].partition(".")
        return base, overload or "default"
    words = re.sub(r"Backward\d*$", "", node_name)
    base = re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()
    return re.sub(r"(\d)_d", r"\1d", base), "default"
