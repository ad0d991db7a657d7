"""The decorator of Python functions that a ``__torch_function__`` may override."""

from __future__ import annotations

import inspect
import linecache
import traceback
from pathlib import Path
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from places import sources
from rgrad import Tensor, _core
from rgrad._operation.overridable import overridable

CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []


class Asked(Tensor):
    """Notes what it is asked about, and answers 1."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        CALLS.append((func, args, kwargs or {}))
        return 1


def body(input: Tensor, scale: float = 2.0, inplace: bool = False, dtype: Any = None) -> Any:
    """What the function itself does."""
    return "body", input, scale, inplace, dtype


def native(input: Tensor, scale: float) -> Any:
    return "native", input, scale


short = overridable("input", native=native, takes=("input", "scale"))(body)
plain = overridable("input")(body)


def test_plain_tensors_are_not_asked() -> None:
    x = rgrad.ones(2)
    assert plain(x, 3.0) == ("body", x, 3.0, False, None)
    assert plain(input=x, dtype=1) == ("body", x, 2.0, False, 1)


def test_the_native_function_is_called_where_the_others_have_their_defaults() -> None:
    x = rgrad.ones(2)
    assert short(x) == ("native", x, 2.0)
    assert short(x, scale=3.0) == ("native", x, 3.0)
    assert short(x, 2.0, True) == ("body", x, 2.0, True, None)
    assert short(x, dtype=1) == ("body", x, 2.0, False, 1)


def test_what_is_passed_by_name_and_what_is_none() -> None:
    def by_name(input: Tensor, *, mode: Any) -> Any:
        return "native", mode

    def function(input: Tensor, mode: Any = None, level: int = 3) -> Any:
        return "body", mode

    made = overridable("input", native=by_name, takes=("input", "mode="))(function)
    x = rgrad.ones(2)
    assert made(x, "m") == ("native", "m")
    assert made(x) == ("body", None)
    assert made(x, "m", 4) == ("body", "m")


def test_handlers_get_the_arguments_without_default_by_position() -> None:
    x = rgrad.ones(2).as_subclass(Asked)
    CALLS.clear()
    assert short(x, 3.0) == 1
    ((func, args, kwargs),) = CALLS
    assert func is short
    assert args[0] is x
    assert len(args) == 1
    assert kwargs == {"scale": 3.0, "inplace": False, "dtype": None}


def test_signature_and_documentation_are_the_function_s() -> None:
    assert inspect.signature(short) == inspect.signature(body)
    assert (short.__doc__, short.__name__, short.__module__) == (body.__doc__, "body", __name__)
    assert short.__defaults__ == (2.0, False, None)
    assert inspect.signature(F.leaky_relu).parameters["negative_slope"].default == 0.01


def test_tracebacks_show_the_line_that_was_made() -> None:
    with pytest.raises(AttributeError) as info:
        F.mse_loss(rgrad.ones(2), rgrad.ones(2), weight=3)  # type: ignore[arg-type]
    frames = traceback.extract_tb(info.value.__traceback__)
    frame = next(f for f in frames if f.filename.endswith("rgrad/_operation/overridable.py"))
    assert frame.line == "return _function({passed})"
    assert linecache.getline(frame.filename, frame.lineno or 0).strip() == frame.line


def test_the_direct_call_gives_what_the_function_gives() -> None:
    x = rgrad.tensor([-2.0, -0.3, 0.4, 3.0, 9.0])
    shortened = 0
    for name in F.__all__:
        function = getattr(F, name)
        if (
            name in ("dropout", "scaled_dot_product_attention")
            or "_native" not in getattr(function, "__code__", body.__code__).co_names
        ):
            continue
        shortened += 1
        args = (x, 0) if name.endswith("softmax") else (x,)
        assert function(*args).tolist() == function.__wrapped__(*args).tolist()
    assert shortened > 12


def test_functions_of_the_python_layer_use_the_decorator() -> None:
    """Those that ask handlers themselves.

    They are the decorator, users' own, ``grad`` and ``einsum``, whose tensors come in sequences, forms made of
    other functions, and operators of a library.
    """

    def asks(file: Path) -> bool:
        return "_ask_torch_function" in file.read_text(encoding="utf-8")

    asking = {name for name, file in sources().items() if asks(file)}
    assert asking == {
        "rgrad._functions.einsum",
        "rgrad._operation.overridable",
        "rgrad._functions.writes",
        "rgrad.autograd.backward",
        "rgrad.library._operator",
        "rgrad.overrides",
    }
    covered = {name for name in F.__all__ if hasattr(getattr(F, name), "__wrapped__")}
    native = {name for name in F.__all__ if getattr(F, name) is getattr(_core, name, None)}
    assert "linear" in native
    # These only call the operation of the same name, which asks, as native functions do.
    assert set(F.__all__) - covered - native == {"prelu", "relu_", "sigmoid", "tanh", "threshold"}


def test_parameters_that_are_given_by_name_only() -> None:
    @overridable("x")
    def scaled(x: rgrad.Tensor, by: float = 2.0, *, more: float = 1.0, less: float | None = None) -> Any:
        return x * by + more - (less or 0.0)

    class Loud(rgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args, kwargs

    x = rgrad.ones(1)
    assert scaled(x).item() == 3
    assert scaled(x, 3.0, more=0.0, less=1.0).item() == 2
    with pytest.raises(TypeError, match="positional"):
        scaled(x, 2.0, 1.0)  # type: ignore[misc]
    loud = x.as_subclass(Loud)
    assert scaled(loud, more=5.0) == ((loud,), {"by": 2.0, "more": 5.0, "less": None})
