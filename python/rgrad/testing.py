"""Comparing tensors in tests."""

import cmath
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _core
from ._core import Tensor, dtype
from ._runtime.info import finfo

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# rtol and atol by dtype, as PyTorch's; exact for integers and bools.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}

_OLD_TOLERANCES = {
    "float16": (1e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1e-4, 1e-5),
    "float64": (1e-5, 1e-8),
}


def _default_tolerance(*kinds: dtype) -> tuple[float, float]:
    pairs = [_TOLERANCES.get(str(kind).rpartition(".")[2], (0.0, 0.0)) for kind in kinds]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that every ``|actual - expected| <= atol + rtol * |expected|``, and that types, shapes, dtypes agree.

    Args:
        actual: What was computed: a tensor, a NumPy array, a number, or a structure (sequence, mapping) of them.
        expected: What it should be, of the same structure.
        allow_subclasses: Let one be of a subclass of the other's class.
        rtol: The relative tolerance; the default depends on the dtype (float32: 1.3e-6, float64: 1e-7, whole numbers
            and bools: 0). Give both tolerances or neither.
        atol: The absolute tolerance; the default is 1e-5 for float32, 1e-7 for float64, else 0.
        equal_nan: Count nan as equal to nan.
        check_device: Compare devices, too.
        check_dtype: Compare dtypes, too.
        check_layout: Accepted for PyTorch's sake; all tensors are strided.
        check_stride: Compare strides, too.
        msg: A message, or a function that makes it from the default one.

    Raises:
        AssertionError: They differ; says how many elements, how much, and where.
        ValueError: One tolerance is given without the other, or is negative.
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise ValueError(f"{name} must be 0 or more, but got {value}")
    options = {
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "allow_subclasses": allow_subclasses,
        "device": check_device,
        "dtype": check_dtype,
        "stride": check_stride,
    }
    problem = _difference(actual, expected, "", options)
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _difference(actual: Any, expected: Any, where: str, options: dict[str, Any]) -> str | None:
    suffix = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing = sorted(expected.keys() - actual.keys(), key=repr)
            extra = sorted(actual.keys() - expected.keys(), key=repr)
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {extra}{suffix}"
            )
        entries = [(f"[{key!r}]", actual[key], expected[key]) for key in expected]
        return _first_difference(entries, where, options)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{suffix}"
        pairs = enumerate(zip(actual, expected, strict=True))
        return _first_difference([(f"[{i}]", a, e) for i, (a, e) in pairs], where, options)
    if _is_array(actual) and _is_array(expected):
        problem = _tensor_difference(actual, expected, options)
    elif isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex)):
        problem = _number_difference(actual, expected, options)
    elif actual is None or expected is None:
        problem = None if actual is expected else f"None mismatch: {actual} is not {expected}"
    else:
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.{suffix}"
        )
    return None if problem is None else problem + suffix


def _first_difference(entries: list[tuple[str, Any, Any]], where: str, options: dict[str, Any]) -> str | None:
    for step, actual, expected in entries:
        problem = _difference(actual, expected, where + step, options)
        if problem is not None:
            return problem
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or type(value).__module__ == "numpy"


def _number_difference(actual: complex, expected: complex, options: dict[str, Any]) -> str | None:
    if options["dtype"] and type(actual) is not type(expected):
        return f"The types do not match: {type(actual)} != {type(expected)}"
    if options["rtol"] is not None:
        rtol, atol = options["rtol"], options["atol"]
    else:
        exact = isinstance(actual, int) and isinstance(expected, int)
        rtol, atol = (0.0, 0.0) if exact else _TOLERANCES["float64"]
    if actual == expected or (options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected)):
        return None
    distance = abs(actual - expected)
    if cmath.isfinite(actual) and cmath.isfinite(expected) and distance <= atol + rtol * abs(expected):
        return None
    relative = distance / abs(expected) if expected else float("inf")
    return _said_of_numbers(actual, expected, distance, relative, rtol, atol)


def _said_of_numbers(actual: Any, expected: Any, distance: Any, relative: Any, rtol: float, atol: float) -> str:
    exact = rtol == 0 and atol == 0
    allowed_abs, allowed_rel = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {distance}{allowed_abs}\nRelative difference: {relative}{allowed_rel}"
    )


def _tensor_difference(actual: Any, expected: Any, options: dict[str, Any]) -> str | None:
    import numpy as np

    if not options["allow_subclasses"] and type(actual) is not type(expected):
        return f"The types do not match: {type(actual)} != {type(expected)}"
    actual, expected = (
        value if isinstance(value, Tensor) else _core.as_tensor(value, device="cpu") for value in (actual, expected)
    )
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    if options["device"] and actual.device != expected.device:
        return f"The values for attribute 'device' do not match: {actual.device} != {expected.device}."
    if options["dtype"] and actual.dtype != expected.dtype:
        return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
    if options["stride"] and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
    if options["rtol"] is not None:
        rtol, atol = options["rtol"], options["atol"]
    else:
        rtol, atol = _default_tolerance(actual.dtype, expected.dtype)
    is_complex = actual.is_complex() or expected.is_complex()
    exact_kinds = not (is_complex or actual.is_floating_point() or expected.is_floating_point())
    # NumPy has neither bfloat16 nor complex32, all of whose numbers are of float32 and complex64, too.
    wider = {_core.bfloat16: _core.float32, _core.complex32: _core.complex64}
    a, e = (value.detach().to(wider.get(value.dtype, value.dtype)).numpy(force=True) for value in (actual, expected))
    wide = np.complex128 if is_complex else np.float64
    # Python's whole numbers keep differences of 64 bit integers exact; they are rare enough for it.
    with np.errstate(all="ignore"):
        if exact_kinds:
            bad = a != e if rtol == 0 and atol == 0 else None
        else:
            bad = None
        if bad is None:
            a64, e64 = a.astype(wide), e.astype(wide)
            distance = np.abs(a64 - e64)
            fine = (a == e) | (np.isfinite(e64) & np.isfinite(a64) & (distance <= atol + rtol * np.abs(e64)))
            if options["equal_nan"]:
                fine |= np.isnan(a64) & np.isnan(e64)
            bad = ~fine
        if not bad.any():
            return None
        a64, e64 = a.astype(wide), e.astype(wide)
        distance = np.where(bad, np.abs(a64 - e64), 0.0)
        relative = np.where(bad, distance / np.abs(e64), 0.0)
    # What is shown has the tensors' own precision.
    shown = np.abs(np.zeros(0, np.result_type(a.dtype, e.dtype))).dtype
    is_whole = shown.kind in "biu"
    most = int(distance.max()) if is_whole else float(distance.max().astype(shown))
    with np.errstate(all="ignore"):
        by = np.dtype(np.float32) if is_whole else shown
        most_relative = float((distance.astype(by) / np.abs(e64).astype(by))[bad].max())
    if not a.shape:
        return _said_of_numbers(a.item(), e.item(), most, most_relative, rtol, atol)
    count = int(bad.sum())
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(np.nan_to_num(distance, nan=np.inf)), a.shape))
    worst_rel = tuple(int(i) for i in np.unravel_index(np.argmax(np.nan_to_num(relative, nan=np.inf)), a.shape))
    exact = rtol == 0 and atol == 0
    at, at_rel = f" at index {worst}", f" at index {worst_rel}"
    allowed_abs, allowed_rel = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return (
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n"
        f"Mismatched elements: {count} / {a.size} ({100 * count / a.size:.1f}%)\n"
        f"Greatest absolute difference: {most}{at}{allowed_abs}\n"
        f"Greatest relative difference: {most_relative}{at_rel}{allowed_rel}"
    )


def make_tensor(
    *shape: Any,
    dtype: dtype,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values in [low, high): by default [-9, 9) for floats, [-9, 10) or [0, 10) for whole numbers.

    Both parts of complex values are in this range.

    Args:
        shape: The sizes, or one sequence of them.
        dtype: Of the result.
        device: Of the result; None is the default device.
        low: The least value.
        high: The bound above, not reached.
        requires_grad: Only for floats and complex numbers.
        noncontiguous: Take every second element of a larger tensor (nothing changes below 2 elements).
        exclude_zero: Replace zeros: by 1 in whole numbers and truth values, by the least normal number in floats.
        memory_format: The order of dimensions in memory; not with ``noncontiguous``.

    Raises:
        ValueError: A bound is nan, ``low`` is not below ``high``, ``requires_grad`` of whole numbers, or both
            ``noncontiguous`` and ``memory_format``.
    """
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    floats = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floats:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    usual = (-9, 9) if floats else (0, 2) if dtype == _core.bool else (-9 if dtype.is_signed else 0, 10)
    low, high = (usual[0] if low is None else low), (usual[1] if high is None else high)
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low >= high and not (floats and low == high):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    spread = noncontiguous and math.prod(sizes) > 1
    full = (*sizes, 2) if spread else sizes
    if floats:
        # Of complex numbers both parts are drawn.
        drawn = (
            _core.rand((*full, 2) if dtype.is_complex else full, dtype=_core.float64, device="cpu") * (high - low) + low
        )
        values = (_core.view_as_complex(drawn) if dtype.is_complex else drawn).to(dtype)
    else:
        values = _core.randint(math.ceil(low), math.ceil(high), full, device="cpu").to(dtype)
    if exclude_zero:
        values = values.masked_fill(values == 0, finfo(dtype).tiny if floats else 1)
    values = values.to(_core.get_default_device() if device is None else device)
    if spread:
        values = values[..., 0]
    if memory_format is not None:
        values = values.clone(memory_format=memory_format)
    return _core._require_grad(values, requires_grad)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare as the old name of :func:`assert_close` does: dtypes may differ, and tolerances are wider.

    Args:
        actual: A tensor, or what makes one.
        expected: What it should be.
        rtol: The tolerance relative to ``expected``; by dtype if None, 1e-4 for float32.
        atol: The tolerance that is added to it; given with ``rtol`` or not at all.
        equal_nan: Whether nan equals nan.
        msg: The text of the error, instead of one that tells the differences.

    Raises:
        AssertionError: They differ.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     rgrad.testing.assert_allclose(rgrad.ones(2), [1.0, 1.00001]) is None
        True
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, Tensor) else _core.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else _core.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        kinds = [str(x.dtype).rpartition(".")[2] for x in (actual, expected)]
        found = [_OLD_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        rtol, atol = max(t[0] for t in found), max(t[1] for t in found)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip
