"""Functions in Python that are methods of ``Tensor``, too. Their modules are imported when one is first used."""

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import _core
from ._core import Tensor, _ask_torch_function, _has_torch_function_variadic

# The module of each function, and what there is: "f" a function of `rgrad`, "m" a method of Tensor, "i" the method that
# writes to its tensor, and "j" the same as a function of `rgrad`.
LATE: dict[str, dict[str, str]] = {
    "_core": dict.fromkeys(("addbmm", "addmm", "addr", "baddbmm", "renorm"), "i") | {"addmv": "ij", "ldexp": "ij"},
    "_elements": {
        "fill": "f",
        "float_power": "fmi",
        "frexp": "fm",
        "gcd": "fmij",
        "heaviside": "fmi",
        "is_signed": "f",
        "lcm": "fmij",
        "nextafter": "fmi",
        "positive": "fm",
        "range": "f",
        "signbit": "fm",
    },
    "_numeric": {"is_nonzero": "m"},
    "_statistics": {
        "corrcoef": "fm",
        "cov": "fm",
        "cross": "fm",
        "histc": "fm",
        "histogram": "fm",
        "histogramdd": "f",
    },
    "_tensor_methods": {
        "apply_": "m",
        "binomial": "f",
        "cauchy_": "m",
        "cuda": "m",
        "dim_order": "m",
        "geometric_": "m",
        "is_distributed": "fm",
        "is_pinned": "m",
        "is_set_to": "m",
        "log_normal_": "m",
        "map_": "m",
        "new_empty_strided": "m",
        "pin_memory": "m",
        "poisson": "f",
        "to_dense": "m",
        "xpu": "m",
    },
    "_writes": {
        "alias_copy": "f",
        "as_strided_copy": "f",
        "as_strided_scatter": "fm",
        "detach_copy": "f",
        "diagonal_copy": "f",
        "expand_copy": "f",
        "fill_diagonal_": "m",
        "index_reduce": "fmi",
        "narrow_copy": "fm",
        "nonzero_static": "fm",
        "permute_copy": "f",
        "put": "fmi",
        "scatter_reduce": "fmi",
        "select_copy": "f",
        "split_copy": "f",
        "squeeze_copy": "f",
        "t_copy": "f",
        "transpose_copy": "f",
        "unbind_copy": "f",
        "unfold_copy": "f",
        "unsqueeze_copy": "f",
        "view_copy": "f",
    },
    "linalg._determinants": {"logdet": "fm"},
    "linalg._factor": {
        "cholesky_inverse": "fm",
        "cholesky_solve": "fm",
        "lu_unpack": "f",
    },
    "linalg._older": {
        "cholesky": "fm",
        "det": "fm",
        "frobenius_norm": "f",
        "inverse": "fm",
        "lu": "fm",
        "lu_solve": "fm",
        "matrix_exp": "fm",
        "matrix_power": "fm",
        "nuclear_norm": "f",
        "orgqr": "fm",
        "pinverse": "fm",
        "qr": "fm",
        "slogdet": "fm",
        "svd": "fm",
        "triangular_solve": "fm",
    },
    "special._bessel": {"i0": "fmij"},
    "special._gamma": {
        "digamma": "fmi",
        "lgamma": "fmi",
        "mvlgamma": "fmi",
        "polygamma": "fmi",
    },
    "special._incomplete": {"igamma": "fmi", "igammac": "fmi"},
    "special._normal": {"erfinv": "fmi"},
    "special._simple": {"sinc": "fmij"},
}


def functions() -> dict[str, str]:
    """The names of functions of ``rgrad``, each with its module."""
    return {name: module for module, names in LATE.items() for name, forms in names.items() if "f" in forms} | {
        f"{name}_": "_late_methods" for names in LATE.values() for name, forms in names.items() if "j" in forms
    }


def _in_place(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The form of a function that writes its result to its tensor."""
    # Loading it takes longer than loading this module.
    import inspect

    def root(tensor: Tensor) -> Tensor:
        return tensor if tensor._base is None else tensor._base

    def form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(input) is not Tensor and _has_torch_function_variadic(input):
            asked: Tensor = _ask_torch_function(form, (input,), (input, *args), kwargs)
            return asked
        # What the derivative reads of the memory that is written is a copy: it would change, and hold the graph.
        base = root(input)
        args = tuple(a.clone() if type(a) is Tensor and root(a) is base else a for a in args)
        kwargs = {k: a.clone() if type(a) is Tensor and root(a) is base else a for k, a in kwargs.items()}
        tensors = [x for x in (input, *args, *kwargs.values()) if isinstance(x, Tensor)]
        recorded = _core.is_grad_enabled() and any(x.requires_grad for x in tensors)
        made = function(input.clone() if recorded else input, *args, **kwargs)
        if made.shape != input.shape:
            raise RuntimeError(
                f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(made.shape)}"
            )
        from ._composed import check_cast

        check_cast(made, input)
        return input.copy_(made)

    form.__name__ = form.__qualname__ = f"{name}_"
    form.__module__ = __name__
    signature = inspect.signature(function)
    first, *rest = (p for p in signature.parameters.values() if p.name != "out")
    parameters = [first.replace(name="input", kind=first.POSITIONAL_OR_KEYWORD), *rest]
    plain = [p.replace(annotation=p.empty) for p in parameters]
    call = f"{name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"
    form.__doc__ = f"Write ``{call}`` to this tensor."
    form.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return form


@functools.cache
def late_method(module: str, name: str) -> Callable[..., Any]:
    """The function behind a name; a name that ends in ``_`` is a form in place."""
    package = __name__.rpartition(".")[0]
    owner: Any = Tensor if module == "_core" else import_module(f"{package}.{module}")
    if not name.endswith("_") or (owner is not Tensor and hasattr(owner, name)):
        found: Callable[..., Any] = getattr(owner, name)
        return found
    return _in_place(method_of(module, name[:-1]), name[:-1])


def method_of(module: str, name: str) -> Callable[..., Any]:
    """The method of a name: where its parameters stand otherwise than the function's, its module has one of its own."""
    if name.endswith("_") or module == "_core":
        return late_method(module, name)
    own = getattr(import_module(f"{__name__.rpartition('.')[0]}.{module}"), f"method_{name}", None)
    return own or late_method(module, name)


class LateMethod:
    """What stands in the class until a method is first used."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        function: Any = method_of(self.module, self.name)
        setattr(Tensor, self.name, function)
        return function if tensor is None else function.__get__(tensor, owner)


def __getattr__(name: str) -> object:
    for module, names in LATE.items():
        if name.endswith("_") and "j" in names.get(name[:-1], ""):
            return late_method(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install() -> None:
    """Give ``Tensor`` the methods."""
    for module, names in LATE.items():
        for name, forms in names.items():
            if "m" in forms:
                setattr(Tensor, name, LateMethod(module, name))
            if "i" in forms:
                setattr(Tensor, f"{name}_", LateMethod(module, f"{name}_"))
