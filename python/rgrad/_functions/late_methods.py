"""Functions in Python that are methods of ``Tensor``, too. Their modules are imported when one is first used."""

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._core import Tensor
from .._tensor import natives  # noqa: F401  it takes the native methods before they are replaced
from ..autograd.variable import VOLATILE

# The module of each function, and what there is: "f" a function of `rgrad`, "m" a method of Tensor, "i" the method that
# writes to its tensor, and "j" the same as a function of `rgrad`.
LATE: dict[str, dict[str, str]] = {
    "_core": dict.fromkeys(("addbmm", "addmm", "addr", "baddbmm", "renorm"), "i") | {"addmv": "ij", "ldexp": "ij"},
    "_functions.einsum": {"einsum": "f", "tensordot": "f"},
    "_functions.elements": {
        "fill": "f",
        "float_power": "fmi",
        "frexp": "fm",
        "gcd": "fmij",
        "heaviside": "fmi",
        "is_signed": "f",
        "isreal": "fm",
        "lcm": "fmij",
        "nextafter": "fmi",
        "positive": "fm",
        "range": "f",
        "signbit": "fm",
    },
    "_functions.numeric": {"is_nonzero": "m"},
    "_files.sharing": {"is_shared": "m", "share_memory_": "m"},
    "_functions.statistics": {
        "corrcoef": "fm",
        "cov": "fm",
        "cross": "fm",
        "histc": "fm",
        "histogram": "fm",
        "histogramdd": "f",
    },
    "_functions.methods": {
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
    "_functions.older": {
        "eig": "fm",
        "get_autocast_cpu_dtype": "f",
        "get_autocast_gpu_dtype": "f",
        "get_autocast_ipu_dtype": "f",
        "get_autocast_xla_dtype": "f",
        "is_autocast_cpu_enabled": "f",
        "is_autocast_ipu_enabled": "f",
        "is_autocast_xla_enabled": "f",
        "lstsq": "fm",
        "matrix_rank": "f",
        "reinforce": "m",
        "resize_as": "m",
        "set_autocast_cpu_dtype": "f",
        "set_autocast_cpu_enabled": "f",
        "set_autocast_gpu_dtype": "f",
        "set_autocast_ipu_dtype": "f",
        "set_autocast_ipu_enabled": "f",
        "set_autocast_xla_dtype": "f",
        "set_autocast_xla_enabled": "f",
        "solve": "fm",
        "symeig": "fm",
    },
    "_functions.storages": {
        "asarray": "f",
        "from_file": "f",
        "frombuffer": "f",
        "set_": "m",
        "storage": "m",
        "storage_type": "m",
        "untyped_storage": "m",
    },
    "_functions.writes": {
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
        "split_with_sizes_copy": "f",
        "squeeze_copy": "f",
        "t_copy": "f",
        "transpose_copy": "f",
        "unbind_copy": "f",
        "unfold_copy": "f",
        "unsqueeze_copy": "f",
        "view_copy": "f",
    },
    "fft._short_time": {"istft": "fm", "stft": "fm"},
    "linalg._determinants": {"logdet": "fm"},
    "linalg._factor": {
        "cholesky_inverse": "fm",
        "cholesky_solve": "fm",
        "lu_unpack": "f",
    },
    "linalg._lobpcg": {"lobpcg": "f"},
    "linalg._low_rank": {"pca_lowrank": "f", "svd_lowrank": "f"},
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
        "geqrf": "fm",
        "orgqr": "fm",
        "ormqr": "fm",
        "pinverse": "fm",
        "qr": "fm",
        "slogdet": "fm",
        "svd": "fm",
        "triangular_solve": "fm",
    },
    "nn.functional._padding": {"constant_pad_nd": "f"},
    "special._gamma": {"mvlgamma": "fmi", "polygamma": "fmi"},
    "special._simple": {"sinc": "fmij"},
}


def functions() -> dict[str, str]:
    """The names of functions of ``rgrad``, each with its module."""
    here = "_functions.late_methods"
    return {name: module for module, names in LATE.items() for name, forms in names.items() if "f" in forms} | {
        f"{name}_": here for names in LATE.values() for name, forms in names.items() if "j" in forms
    }


@functools.cache
def method_of(module: str, name: str) -> Callable[..., Any]:
    """The method of a name; one that ends in ``_`` writes to its tensor, whether its module says how or not."""
    from .._operation.method_forms import as_method, in_place

    owner = import_module(f"..{module}", __package__)
    if name.endswith("_") and not hasattr(owner, name):
        return in_place(method_of(module, name[:-1]), name, "self")
    method: Callable[..., Any] = getattr(Tensor, name) if module == "_core" else as_method(getattr(owner, name), name)
    return method


@functools.cache
def writing_function(module: str, name: str) -> Callable[..., Any]:
    """The function of ``rgrad`` that writes to its first tensor."""
    from .._operation.method_forms import in_place

    return in_place(method_of(module, name[:-1]), name, "input")


class LateMethod:
    """What stands in the class until a method is first used."""

    __slots__ = ("module", "name", "native")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        before = vars(Tensor).get(name)
        self.native = getattr(before, "native", before)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        function: Any = method_of(self.module, self.name)
        if self.native is not None:
            function.native = self.native
        setattr(Tensor, self.name, function)
        return function if tensor is None else function.__get__(tensor, owner)


def __getattr__(name: str) -> object:
    for module, names in LATE.items():
        if name.endswith("_") and "j" in names.get(name[:-1], ""):
            return writing_function(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _volatile(self: Tensor) -> bool:
    """Old form of :class:`rgrad.no_grad`: always False, with a warning."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _set_volatile(self: Tensor, value: object) -> None:
    warnings.warn(VOLATILE, stacklevel=2)


def _resize(self: Tensor, *sizes: Any) -> Tensor:  # noqa: D417
    """Give the elements with another shape, with a warning; use :meth:`Tensor.reshape` or :meth:`Tensor.resize_`.

    Args:
        sizes: The new shape, of as many elements.

    Returns:
        A tensor with the same elements.

    Raises:
        RuntimeError: The number of elements differs.
    """
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return self.reshape(*sizes)


def install() -> None:
    """Give ``Tensor`` the methods."""
    for module, names in LATE.items():
        for name, forms in names.items():
            if "m" in forms:
                setattr(Tensor, name, LateMethod(module, name))
            if "i" in forms:
                setattr(Tensor, f"{name}_", LateMethod(module, f"{name}_"))
    Tensor.resize = _resize  # type: ignore[method-assign]
    Tensor.volatile = property(_volatile, _set_volatile)  # type: ignore[assignment,method-assign]
