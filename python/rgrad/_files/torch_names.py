"""PyTorch's names of classes and functions in files, and what they are here.

Files name `torch.nn.modules.linear.Linear`; here that is `rgrad.nn.modules.linear.Linear`, and so with all names that
both have at the same place. What stands elsewhere is in a table.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .. import _core
from .._tensor.typed_storage import DTYPES, QUANTIZED
from .._tensor.untyped_storage import UntypedStorage

# Parts of rgrad that PyTorch has not: their names stay in files what they are.
_OWN = frozenset(
    (
        *("_construct", "_core", "_files", "_functions", "_operation", "_runtime", "_tensor", "_transforms"),
        *("env", "memory", "profile", "vision", "wgpu"),
    )
)
# Modules of older versions, and where their names are now.
_MOVED = {
    "torch.tensor": "torch._tensor",
    "torch.legacy.nn": "torch.nn",
    "torch.nn._functions.thnn": "torch.nn.functional",
    "torch.nn.modules.instance_norm": "torch.nn.modules.instancenorm",
    "torch.nn.modules.batch_norm": "torch.nn.modules.batchnorm",
    "torch.autograd.variable": "torch.autograd",
}
# Private files here, and single names, whose place in PyTorch is another file than the folder's own.
_FILES = {
    **dict.fromkeys(("nn.modules._activation_other", "nn.modules._attention"), "nn.modules.activation"),
    **dict.fromkeys(("nn.modules._loss_base", "nn.modules._loss_margin"), "nn.modules.loss"),
    "nn.modules._rnn_cells": "nn.modules.rnn",
    "nn.modules._sync_norm": "nn.modules.batchnorm",
    "optim.adam.AdamW": "optim.adamw",
    **{f"optim._lr_{part}": "optim.lr_scheduler" for part in ("base", "compose", "cycles", "factors", "plateau")},
    **{
        f"distributions._transform_{part}": "distributions.transforms"
        for part in ("base", "composed", "matrices", "pointwise")
    },
    "utils.data.collate": "utils.data._utils.collate",
    "autograd.backward": "autograd",
}
_DTYPES = {
    name: found
    for name in (
        *("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32", "bool"),
        *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    )
    if isinstance(found := getattr(_core, name, None), _core.dtype)
}


class StorageType:
    """What a file names where it says of which class a storage is."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dtype(self) -> Any:
        """The dtype of the elements.

        Raises:
            NotImplementedError: They are no numbers here.
        """
        if self.name in QUANTIZED:
            raise NotImplementedError(
                f"load: the file has a quantized tensor (torch.{self.name}), which rgrad has not. Save "
                "`tensor.dequantize()` in its place"
            )
        return DTYPES[self.name]

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Missing:
    """A dtype, layout or scheme that a file names and rgrad has not.

    It can be read and stored; making a tensor of it is an error that names it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


STORAGE_TYPES = {name: StorageType(name) for name in (*DTYPES, *QUANTIZED)}
_MISSING = {
    name: Missing(name)
    for name in (
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
        *("quint8", "qint8", "qint32", "quint4x2", "quint2x4"),
        *(f"bits{n}" for n in ("1x8", "2x4", "4x2", "8", "16")),
        *(f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)),
        *("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric"),
        *("per_channel_affine_float_qparams", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"),
    )
}


def plain_values() -> dict[str, Any]:
    """What files name that is neither a class nor a function: dtypes, kinds of storages, and what rgrad has not."""
    found: dict[str, Any] = {f"torch.{name}": value for name, value in _MISSING.items()}
    found.update((f"torch.{name}", value) for name, value in STORAGE_TYPES.items())
    found.update((f"torch.{name}", value) for name, value in _DTYPES.items())
    found["torch.storage.UntypedStorage"] = UntypedStorage
    return found


def torch_name(module: str, name: str) -> tuple[str, str]:
    """The name in files of what is ``module.name`` here."""
    root, _, rest = module.partition(".")
    if root != "rgrad":
        return module, name
    if rest == "_core" and not name.startswith("_"):
        rest = ""
    if rest.partition(".")[0] in _OWN:
        return module, name
    rest = _FILES.get(f"{rest}.{name}", _FILES.get(rest, rest))
    # Functions stand in private files of their package, PyTorch's in the package itself.
    public = ".".join(_public(rest.split(".")))
    return ("torch." + public if public else "torch"), name


def _public(parts: list[str]) -> list[str]:
    kept = []
    for part in parts:
        if part.startswith("_") and part not in ("_utils", "_tensor"):
            break
        kept.append(part)
    return kept


def name_here(module: str, name: str) -> tuple[str, str]:
    """What a file calls ``module.name``, by its name here; names of others stay as they are."""
    module = _MOVED.get(module, module)
    root, dot, rest = module.partition(".")
    return ("rgrad" + dot + rest if root == "torch" else module), name


def found_here(module: str, name: str) -> Any:
    """The class or function of a name in a trusted file.

    Raises:
        AttributeError: rgrad has it not.
    """
    own, name = name_here(module, name)
    try:
        found: Any = import_module(own)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise AttributeError(
            f"load: the file needs {module}.{name}, which rgrad has not ({error}). Save a state_dict in place of the "
            "object, or give the class that name"
        ) from error
    return found


def known_here(module: str, name: str) -> Any:
    """What a name is, as far as its module is imported already; None if it is not there."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
