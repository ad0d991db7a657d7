"""Writes python/rgrad/_core.pyi, the types of the native module, from the built module and the tables below.

Run it after names or signatures of the native module have changed: python scripts/make_stubs.py
`stubtest` (part of the lint section of the tests) compares the result with the module.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import rgrad._core as core

TARGET = Path(__file__).resolve().parents[1] / "python" / "rgrad" / "_core.pyi"

HEADER = '''"""Types of the native module. Written by scripts/make_stubs.py: do not edit."""
# ruff: noqa: PLW0211

from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import slice as _slice
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Literal, Self, TypeAlias, final, overload

import numpy as np

from typing_extensions import disjoint_base

from ._size import Size as Size

'''

ALIASES = """
_Number: TypeAlias = _bool | _int | _float
_Operand: TypeAlias = Tensor | _Number
_Sizes: TypeAlias = Sequence[_int]
_Dims: TypeAlias = _int | Sequence[_int]
_DType: TypeAlias = dtype
_Device: TypeAlias = device | _str | _int
_Index: TypeAlias = Any
"""

# Types of parameters, by name; a name that means different things gets its own entry "function.name".
PARAMETERS = {
    "input": "Tensor",
    "self": "",
    "other": "_Operand",
    "out": "Tensor",
    "alpha": "_Number",
    "dim": "_int",
    "dim0": "_int",
    "dim1": "_int",
    "dim2": "_int",
    "dims": "_Dims",
    "dtype": "_DType",
    "device": "_Device",
    "generator": "Generator",
    "keepdim": "_bool",
    "index": "Tensor",
    "mask": "Tensor",
    "source": "Tensor",
    "src": "Tensor",
    "tensors": "Sequence[Tensor]",
    "requires_grad": "_bool",
    "equal_nan": "_bool",
    "rtol": "_float",
    "atol": "_float",
    "size": "_Sizes",
    "stride": "_Sizes",
    "storage_offset": "_int",
    "offset": "_int",
    "diagonal": "_int",
    "start_dim": "_int",
    "end_dim": "_int",
    "chunks": "_int",
    "start": "_int",
    "length": "_int",
    "weight": "Tensor",
    "bias": "Tensor",
    "target": "Tensor",
    "reduction": "_str",
    "ignore_index": "_int",
    "training": "_bool",
    "mat1": "Tensor",
    "mat2": "Tensor",
    "mat": "Tensor",
    "vec": "Tensor",
    "batch1": "Tensor",
    "batch2": "Tensor",
    "pos_weight": "Tensor",
    "memory_format": "memory_format",
    "hook": "Callable[..., Any]",
    "gradient": "Tensor",
    "retain_graph": "_bool",
    "create_graph": "_bool",
    "rounding_mode": "_str",
    "approximate": "_str",
    "non_blocking": "_bool",
    "select.index": "_int",
    "take_along_dim.dim": "_int",
    "linspace.start": "_Operand",
    "logspace.start": "_Operand",
    "squeeze.dim": "_Dims",
    "roll.shifts": "_Dims",
    "movedim.source": "_Dims",
    "moveaxis.source": "_Dims",
    "sum.dim": "_Dims",
    "mean.dim": "_Dims",
    "nansum.dim": "_Dims",
    "nanmean.dim": "_Dims",
    "var.dim": "_Dims",
    "std.dim": "_Dims",
    "var_mean.dim": "_Dims",
    "std_mean.dim": "_Dims",
    "amax.dim": "_Dims",
    "amin.dim": "_Dims",
    "aminmax.dim": "_int",
    "all.dim": "_Dims",
    "any.dim": "_Dims",
    "norm.dim": "_Dims",
    "logsumexp.dim": "_Dims",
    "count_nonzero.dim": "_Dims",
    "max.dim": "Any",
    "min.dim": "Any",
    "numpy.force": "_bool",
    "_set_grad_enabled.on": "_bool",
    "_enter_level.size": "_int",
    "_set_tangents_enabled.on": "_bool",
    "_set_torch_function_enabled.on": "_bool",
    "_skip_torch_function_once.on": "_bool",
    "_set_inference_mode.on": "_bool",
    "view_as.other": "Tensor",
    "reshape_as.other": "Tensor",
    "expand_as.other": "Tensor",
    "type_as.other": "Tensor",
    "equal.other": "Tensor",
    "allclose.other": "Tensor",
    "isclose.other": "Tensor",
    "matmul.other": "Tensor",
    "take.index": "Tensor",
}


def each(kind: str, names: str) -> dict[str, str]:
    """One type for many names."""
    return dict.fromkeys(names.split(), kind)


# What functions and methods give, where it is not one Tensor.
RESULTS = {
    **each(
        "_bool",
        "allclose equal can_cast is_complex is_floating_point is_grad_enabled is_inference_mode_enabled _is_view "
        "is_inference is_contiguous is_same_size is_signed is_frozen is_anomaly_enabled is_anomaly_check_nan_enabled "
        "_is_multithreading_enabled __bool__ __contains__ is_tensor is_nonzero _wgpu_installed _fusion_enabled "
        "_is_checkpoint_valid _has_torch_function _has_torch_function_variadic _is_torch_function_enabled "
        "_set_torch_function_enabled _set_tangents_enabled",
    ),
    **each(
        "_int",
        "numel nelement dim ndimension storage_offset data_ptr element_size get_num_threads initial_seed "
        "max_memory_allocated memory_allocated seed get_device __len__ __int__ __index__ __hash__ _call_site "
        "_current_graph_task_id _plan_number count _enter_level _top_level _level_of _enter_dual",
    ),
    **each(
        "_tuple[Tensor, ...]",
        "chunk split split_with_sizes tensor_split unbind broadcast_tensors meshgrid hsplit vsplit dsplit",
    ),
    **each(
        "None",
        "backward empty_cache retain_grad reset_peak_memory_stats set_default_dtype set_memory_limit set_num_threads "
        "set_rng_state _after_fork _before_fork _fail_allocation_in _increment_version _set_grad_enabled "
        "_set_multithreading_enabled _queue_callback set_anomaly_enabled "
        "_set_inference_mode _set_printoptions __setitem__ __delitem__ remove set_state set_default_device "
        "_push_saved_tensors_hooks _pop_saved_tensors_hooks _set_before_write "
        "_wgpu_check_process _wgpu_empty_cache _wgpu_fail_in _wgpu_install _wgpu_keep_pipelines _wgpu_reset_peak "
        "_wgpu_synchronize "
        "_push_torch_function_mode _skip_torch_function_once _exit_level _exit_dual _set_tangent",
    ),
    **each("_DType", "get_default_dtype promote_types result_type"),
    **each("HookHandle", "register_hook register_post_accumulate_grad_hook register_prehook"),
    **each(
        "Any",
        "item tolist where nonzero stride size type max min median mode sort topk kthvalue cummax cummin aminmax "
        "var_mean std_mean unique frexp _function_apply __reduce_ex__ atleast_1d atleast_2d atleast_3d std var "
        "_site_bench __array__ __array_wrap__ __format__ norm histc _ask_torch_function _disabled_torch_function_impl "
        "_pop_torch_function_mode as_subclass __copy__",
    ),
    "_unwrap": "_tuple[Tensor, _bool]",
    "_take_slow_rules": "_tuple[list[_str], list[_str]]",
    "_tangent": "Tensor | None",
    "_function_apply_here": "_tuple[Any, Any]",
    "_gradient_edge": "_tuple[Node, _int]",
    "_make_saved_tensor": "SavedTensor",
    "_refuse_saved_tensors_hooks": "_str | None",
    "_describe_call_site": "_str | None",
    "numpy": "np.ndarray[Any, np.dtype[Any]]",
    "broadcast_shapes": "Size",
    "manual_seed": "Generator",
    "get_default_device": "device",
    "_wgpu_counts": "_tuple[_int, _int, _int, _int]",
    "_wgpu_description": "dict[_str, Any]",
    "_wgpu_memory": "_tuple[_int, _int, _int]",
    "_run_backward": "_tuple[Any, ...]",
    "requires_grad_": "Self",
    "__float__": "_float",
    "__complex__": "_complex",
    "__repr__": "_str",
    "__format__": "_str",
    "__iter__": "Iterator[Tensor]",
    "__init__": "None",
    "__init_subclass__": "None",
    "_make_subclass": "Any",
    "_torch_function_modes": "list[Any]",
    "__new__": "Self",
    "untyped_storage": "UntypedStorage",
    "__deepcopy__": "Any",
    "__eq__": "Tensor",
}

PROPERTIES = {
    "Tensor": {
        "grad": ("Tensor | None", True),
        "data": ("Tensor", True),
        "requires_grad": ("_bool", True),
        "grad_fn": ("Node | None", False),
        "_base": ("Tensor | None", False),
        "shape": ("Size", False),
        "dtype": ("_DType", False),
        "device": ("device", False),
        "output_nr": ("_int", False),
        "is_leaf": ("_bool", False),
        "retains_grad": ("_bool", False),
        "is_cuda": ("_bool", False),
        "is_wgpu": ("_bool", False),
        "is_cpu": ("_bool", False),
        "is_sparse": ("_bool", False),
        "_version": ("_int", False),
        "ndim": ("_int", False),
        "nbytes": ("_int", False),
        "itemsize": ("_int", False),
        **dict.fromkeys(("T", "mT", "H", "mH"), ("Tensor", False)),
    },
    "dtype": {
        "is_floating_point": ("_bool", False),
        "is_complex": ("_bool", False),
        "is_signed": ("_bool", False),
        "itemsize": ("_int", False),
    },
    "device": {"type": ("_str", False), "index": ("_int | None", False)},
}

# Signatures that are better said by hand.
BY_HAND = {
    "Tensor.__getitem__": "def __getitem__(self, key: _Index, /) -> Tensor: ...",
    "Tensor.__torch_function__": (
        "def __torch_function__(cls, func: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any: ..."
    ),
    "Tensor.__setitem__": "def __setitem__(self, key: _Index, value: Any, /) -> None: ...",
    "Tensor.__eq__": "def __eq__(self, value: Any, /) -> Tensor: ...  # type: ignore[override]",
    "Tensor.__ne__": "def __ne__(self, value: Any, /) -> Tensor: ...  # type: ignore[override]",
    "Tensor.__pow__": "def __pow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...",
    "Tensor.__rpow__": "def __rpow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...",
    "Tensor.__ipow__": "def __ipow__(self, value: _Operand, /) -> Self: ...  # type: ignore[misc]",
    "Tensor.stride": (
        "@overload\n    def stride(self, dim: None = None) -> _tuple[_int, ...]: ...\n"
        "    @overload\n    def stride(self, dim: _int) -> _int: ..."
    ),
    "Tensor.size": (
        "@overload\n    def size(self, dim: None = None) -> Size: ...\n"
        "    @overload\n    def size(self, dim: _int) -> _int: ..."
    ),
    "Tensor.clamp": "def clamp(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor: ...",
    "where": "def where(condition: Tensor, input: _Operand | None = None, other: _Operand | None = None) -> Any: ...",
}

# Names that Python's own protocol provides, or that say nothing about use.
SKIPPED = {
    "__doc__", "__module__", "__dict__", "__weakref__", "__file__", "__loader__", "__name__", "__package__",
    "__spec__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__sizeof__", "__str__", "__reduce__",
    "__subclasshook__", "__init_subclass__", "__static_attributes__", "__firstlineno__", "__annotations__",
    "__slots__", "__orig_bases__", "__parameters__",
}  # fmt: skip


def type_of(function: str, name: str) -> str:
    return PARAMETERS.get(f"{function}.{name}", PARAMETERS.get(name, "Any"))


def default_of(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if plain else "..."


def parameter(function: str, p: inspect.Parameter) -> str:
    if p.kind is p.VAR_POSITIONAL:
        return f"*{p.name}: Any"
    if p.kind is p.VAR_KEYWORD:
        return f"**{p.name}: Any"
    kind = type_of(function, p.name)
    if p.default is p.empty:
        return f"{p.name}: {kind}"
    if p.default is None and kind != "Any":
        kind += " | None"
    return f"{p.name}: {kind} = {default_of(p.default)}"


def arguments(function: str, signature: inspect.Signature, bound: bool) -> str:
    """The text between the brackets; the first parameter of a method is left as it is."""
    parts: list[str] = []
    kinds = [p.kind for p in signature.parameters.values()]
    starred = False
    for i, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not starred and inspect.Parameter.VAR_POSITIONAL not in kinds:
            parts.append("*")
            starred = True
        parts.append(p.name if bound and i == 0 else parameter(function, p))
        last_positional = p.kind is p.POSITIONAL_ONLY and (i + 1 == len(kinds) or kinds[i + 1] is not p.POSITIONAL_ONLY)
        # A method's self alone needs no slash.
        if last_positional and not (bound and i == 0):
            parts.append("/")
    return ", ".join(parts)


def missing(call: Any, given: list[Any]) -> str | None:
    """The name of the next operand that a pointwise function asks for."""
    try:
        call(*given)
    except TypeError as error:
        if "missing" in str(error) and '"' in str(error):
            return str(error).split('"')[1]
    except Exception:
        return None
    return None


def pointwise(name: str, call: Any, method: bool) -> str:
    """A row's function: its operands are asked for, parameters with defaults are not listed."""
    x = core.ones(1, dtype=core.int64 if name.startswith("bitwise") else core.float64)
    given, names = ([x], ["self"]) if method else ([], [])
    while (wanted := missing(call, given)) is not None and len(given) < 5:
        given.append(x)
        names.append(f"{wanted}: Tensor" if not names else f"{wanted}: _Operand")
    return ", ".join([*names, "*args: Any", "**kwargs: Any"])


def result_of(function: str) -> str:
    if function in RESULTS:
        return RESULTS[function]
    if function.startswith("__i") and function not in ("__index__", "__int__", "__invert__", "__iter__"):
        return "Self"
    return "Tensor"


def function_stub(name: str, f: Any, owner: str = "", static: bool = False) -> str:
    if (by_hand := BY_HAND.get(f"{owner}.{name}" if owner else name)) is not None:
        return by_hand
    method = bool(owner) and not static
    result = result_of(name) if owner in ("", "Tensor") else RESULTS.get(name, "Any")
    if owner not in ("", "Tensor") and name == "__eq__":
        result = "_bool"
    try:
        text = arguments(name, inspect.signature(f), method)
    except (ValueError, TypeError):
        text = pointwise(name, f, method)
    if name == "__init_subclass__":
        return ""
    if name == "__eq__" or (name == "__ne__" and owner):
        text = "self, value: object, /"
        result = "_bool"
    return f"def {name}({text}) -> {result}: ..."


def class_stub(name: str, cls: type) -> str:
    bases = [b for b in cls.__bases__ if b is not object]
    shown = [b.__name__ if b.__module__ != "builtins" else f"{b.__name__}" for b in bases]
    lines = []
    try:
        type("Sub", (cls,), {})
    except TypeError:
        lines.append("@final")
    else:
        if not issubclass(cls, BaseException):
            # Memory layout of its own: no class can derive from two of these.
            lines.append("@disjoint_base")
    lines.append(f"class {name}({', '.join(shown)}):" if shown else f"class {name}:")
    body = []
    for key, value in sorted(vars(cls).items()):
        if key in SKIPPED or (key.startswith("_") and not key.startswith("__") and key not in dir(core.Tensor)):
            continue
        if isinstance(value, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
            kind, writable = PROPERTIES.get(name, {}).get(key, ("Any", False))
            body.append(f"@property\n    def {key}(self) -> {kind}: ...")
            if writable:
                body.append(f"@{key}.setter\n    def {key}(self, value: {kind}) -> None: ...")
        elif isinstance(value, staticmethod) and key != "__new__":
            body.append("@staticmethod\n    " + function_stub(key, value.__func__, name, static=True))
        elif key == "__new__":
            text = "cls, *args: Any, **kwargs: Any"
            if not issubclass(cls, BaseException):
                try:
                    signature = inspect.signature(cls)
                    text = ", ".join(["cls", arguments(name, signature, False)]).rstrip(", ")
                except (ValueError, TypeError):
                    pass
            body.append(f"def __new__({text}) -> Self: ...")
        elif key == "__hash__" and value is None:
            body.append("__hash__: None  # type: ignore[assignment]")
        elif isinstance(value, classmethod) or type(value).__name__ == "classmethod_descriptor":
            body.append("@classmethod\n    " + function_stub(key, getattr(cls, key), name, static=True))
        elif callable(value):
            body.append(function_stub(key, value, name))
        else:
            body.append(f"{key}: {_type_name(value)}")
    lines.extend(f"    {entry}" for entry in body if entry)
    if len(body) == 0:
        lines[-1] += " ..."
    return "\n".join(lines)


def _type_name(value: Any) -> str:
    name = type(value).__name__
    return f"_{name}" if name in ("int", "float", "bool", "str") else name


def module_stub() -> str:
    exported = list(core.__all__)
    parts = [HEADER]
    names = sorted(n for n in dir(core) if n not in SKIPPED and n != "__all__")
    classes = [n for n in names if isinstance(getattr(core, n), type)]
    for name in classes:
        cls = getattr(core, name)
        if name == "Size":
            continue  # imported by the header
        parts.append(class_stub(name, cls) + "\n")
    parts.append(ALIASES)
    for name in names:
        value = getattr(core, name)
        if name in classes:
            continue
        if callable(value):
            parts.append(function_stub(name, value))
        elif isinstance(value, tuple):
            parts.append(f"{name}: _tuple[_str, ...]")
        else:
            parts.append(f"{name}: {_type_name(value)}")
    parts.append(f"\n__all__ = {sorted(exported)!r}")
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the stub and format it."""
    TARGET.write_text(module_stub(), encoding="utf-8")
    # Unused imports go first, so that what remains is formatted.
    for command in (["check", "--fix-only", "-q"], ["format", "-q"], ["check"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, TARGET], check=True)


if __name__ == "__main__":
    main()
