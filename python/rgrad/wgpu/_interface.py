"""Whether the loaded library is the one that the core was compiled for: version, structs, constants, functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

# The tested minor versions of wgpu-py: from the first up to, not including, the second.
_SUPPORTED = ((0, 32), (0, 33))


def supported() -> str:
    """The tested versions, as pip reads them."""
    return f">={'.'.join(map(str, _SUPPORTED[0]))},<{'.'.join(map(str, _SUPPORTED[1]))}"


def check_version(version: str) -> None:
    """Raises RuntimeError for a version of wgpu-py that was not tested."""
    parts = tuple(int(p) if p.isdigit() else 0 for p in version.split(".")[:2])
    if not _SUPPORTED[0] <= parts < _SUPPORTED[1]:
        age = "old" if parts < _SUPPORTED[0] else "new"
        raise _core.OperationError(
            f"wgpu {version} is too {age} for rgrad {_core.__version__}, which was tested with wgpu{supported()}. "
            f'Install one of those: pip install "wgpu{supported()}"'
        )


def mismatches(description: Mapping[str, Any], ffi: Any, lib: Any) -> list[str]:
    """Where the loaded library's header differs from the interface that the core was compiled for."""
    cffi = import_module("cffi")
    wrong = []
    for name, (size, fields) in description["structs"].items():
        try:
            ctype = ffi.typeof(name)
            theirs = [(field, f.offset, f.type.cname) for field, f in ctype.fields]
            their_size = ffi.sizeof(ctype)
        except (cffi.CDefError, cffi.FFIError, TypeError, AttributeError):
            wrong.append(f"struct {name}: not in the library's header")
            continue
        if their_size != size:
            wrong.append(f"struct {name}: {their_size} bytes, expected {size}")
        for field, ours in zip(theirs, map(tuple, fields), strict=False):
            if field != ours:
                wrong.append(f"struct {name}: field (name, offset, type) is {field}, expected {ours}")
        if len(theirs) != len(fields):
            wrong.append(f"struct {name}: {len(theirs)} fields, expected {len(fields)}")
    for name, expected in description["constants"].items():
        got = getattr(lib, name, None)
        if got != expected:
            wrong.append(f"constant {name}: {'not there' if got is None else got}, expected {expected}")
    for name, expected in description["functions"].items():
        try:
            got = ffi.typeof(ffi.addressof(lib, name)).cname
        except AttributeError:
            got = "not there"
        if got != expected:
            wrong.append(f"function {name}: {got}, expected {expected}")
    return wrong


def check_interface(description: Mapping[str, Any], ffi: Any, lib: Any, version: str, native: str) -> None:
    """Raises RuntimeError if the library's header is not the one that the core was compiled for."""
    wrong = mismatches(description, ffi, lib)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise _core.OperationError(
            f"the C interface of wgpu {version} (wgpu-native {native}) is not the one that rgrad {_core.__version__} "
            f"was compiled for (wgpu-native {description['version']}): {'; '.join(wrong[:3])}{more}. "
            f'Install a tested version: pip install "wgpu{supported()}"'
        )
