"""Methods that are made of functions written in Python: their parameters, their handlers, and writes in place."""

from __future__ import annotations

import inspect
import pickle
from typing import Any, ClassVar

import pytest

import rgrad
from rgrad import Tensor
from rgrad._functions.late_methods import LATE

METHODS = sorted(
    form
    for names in LATE.values()
    for name, forms in names.items()
    for form, kind in ((name, "m"), (f"{name}_", "i"))
    if kind in forms
)


class Asked(Tensor):
    """Notes which function it is asked about, and what that is called with."""

    calls: ClassVar[list[tuple[Any, tuple[Any, ...], dict[str, Any]]]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Asked.calls.append((func, args, kwargs or {}))
        return "asked"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_self_and_no_out(name: str) -> None:
    method = getattr(Tensor, name)
    first, *others = inspect.signature(method).parameters
    assert first == "self"
    assert "out" not in others
    assert method.__qualname__ == f"Tensor.{name}"
    assert pickle.loads(pickle.dumps(method)) is method
    documented = inspect.getdoc(method) or ""
    assert documented
    assert "\n    out: " not in documented
    assert "\n    input: " not in documented


def test_out_is_refused_by_methods() -> None:
    x = rgrad.eye(2)
    for call in (x.cholesky, x.det, x.sinc, x.narrow_copy):
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            call(out=rgrad.eye(2))  # type: ignore[call-arg]


def test_a_method_is_what_handlers_are_asked_about() -> None:
    x = rgrad.ones(2, 2).as_subclass(Asked)
    Asked.calls.clear()
    assert x.polygamma(2) == "asked"
    assert rgrad.polygamma(2, x) == "asked"
    assert [(f, args[::-1] if f is rgrad.polygamma else args) for f, args, _ in Asked.calls] == [
        (Tensor.polygamma, (x, 2)),
        (rgrad.polygamma, (x, 2)),
    ]
    assert rgrad.overrides.resolve_name(Tensor.polygamma) == "rgrad.Tensor.polygamma"


def test_every_operand_of_a_write_is_asked() -> None:
    plain, asked = rgrad.ones(2), rgrad.ones(2).as_subclass(Asked)
    for call, method in (
        (lambda: plain.heaviside_(asked), Tensor.heaviside_),
        (lambda: plain.ldexp_(asked), Tensor.ldexp_),
        (lambda: rgrad.gcd_(plain, asked), rgrad.gcd_),
    ):
        Asked.calls.clear()
        assert call() == "asked"
        ((func, args, _),) = Asked.calls
        assert func is method
        assert args[0] is plain
        assert args[1] is asked


def test_a_keyword_without_default_reaches_the_handler() -> None:
    x = rgrad.ones(2).as_subclass(Asked)
    Asked.calls.clear()
    x.nonzero_static(size=3)
    ((_, args, kwargs),) = Asked.calls
    assert (len(args), kwargs) == (1, {"size": 3, "fill_value": -1})


def test_functions_that_write_name_their_tensor_as_functions_do() -> None:
    assert list(inspect.signature(rgrad.gcd_).parameters) == ["input", "other"]
    x = rgrad.tensor([4, 6])
    assert rgrad.gcd_(input=x, other=rgrad.tensor([6, 4])) is x
    assert x.tolist() == [2, 2]


def test_a_write_that_does_not_fit_leaves_its_tensor() -> None:
    x = rgrad.ones(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.heaviside_(rgrad.ones(3, 2))
    n = rgrad.tensor([1, 2])
    with pytest.raises(RuntimeError, match="can't be cast"):
        n.sinc_()
    assert (x.tolist(), n.tolist()) == ([1, 1], [1, 2])
