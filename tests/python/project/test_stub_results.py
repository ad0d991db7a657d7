"""Every function, method and property of the stub is called, in each of its forms, and gives what the stub says.

Arguments are made from the types of parameters (`type_kit.py`), so what is added is called without a line here.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import functools
import inspect
import types
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.linalg
import rgrad.nn.functional
import rgrad.special
from nn_functional_calls import CALLS, Maker
from rgrad import _core, return_types
from type_kit import Form, forms_of, holds, result

# Of names that PyTorch has given up.
pytestmark = pytest.mark.filterwarnings("ignore")

STUB = Path(_core.__file__).with_name("_core.pyi")


@functools.cache
def names() -> dict[str, Any]:
    """What the names in annotations of the stub mean."""
    known: dict[str, Any] = {**vars(builtins), **vars(collections.abc), **vars(typing), **vars(_core)}
    known |= {f"_{name}": kind for name, kind in vars(builtins).items() if isinstance(kind, type)}
    known |= {"Self": rgrad.Tensor, "EllipsisType": types.EllipsisType, "_return_types": return_types, "np": np}
    known |= {"Tensor": rgrad.Tensor, "Size": rgrad.Size, "_TensorsOrEdges": rgrad.Tensor, "_V": rgrad.Tensor}
    known["SupportsIndex"] = typing.SupportsIndex
    known |= {"_TypedStorage": rgrad.storage.TypedStorage, "_UntypedStorage": rgrad.storage.UntypedStorage}
    for node in tree().body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            assert node.value is not None
            known[ast.unparse(node.target)] = eval(ast.unparse(node.value), known)
    return known


@functools.cache
def tree() -> ast.Module:
    return ast.parse(STUB.read_text(encoding="utf-8"))


def form_of(node: ast.FunctionDef, owner: Any = None) -> Form:
    """The form that a definition of the stub is; `self` is a parameter like others."""
    given = node.args
    P = inspect.Parameter
    ordered = [*given.posonlyargs, *given.args]
    kinds = [P.POSITIONAL_ONLY] * len(given.posonlyargs) + [P.POSITIONAL_OR_KEYWORD] * len(given.args)
    defaults: list[Any] = [P.empty] * (len(ordered) - len(given.defaults)) + [value_of(d) for d in given.defaults]
    made = [
        P(a.arg, kind, default=d, annotation=of(a, owner)) for a, kind, d in zip(ordered, kinds, defaults, strict=True)
    ]
    if given.vararg is not None:
        made.append(P(given.vararg.arg, P.VAR_POSITIONAL, annotation=of(given.vararg, owner)))
    for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        made.append(P(a.arg, P.KEYWORD_ONLY, default=P.empty if d is None else value_of(d), annotation=of(a, owner)))
    assert node.returns is not None, node.name
    return Form(tuple(made), eval(ast.unparse(node.returns), names()))


def value_of(node: ast.expr) -> Any:
    return ast.literal_eval(node)


def of(argument: ast.arg, owner: Any) -> Any:
    return owner if argument.annotation is None else eval(ast.unparse(argument.annotation), names())


def definitions(body: list[ast.stmt]) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def takes_or_gives_tensors(form: Form) -> bool:
    text = " ".join(str(p.annotation) for p in form.parameters) + str(form.result)
    return "Tensor" in text or "return_types" in text


def functions() -> dict[str, list[Form]]:
    found = {}
    for name, nodes in definitions(tree().body).items():
        if name.startswith("_"):
            continue
        forms = [form_of(node) for node in nodes]
        if any(takes_or_gives_tensors(form) for form in forms):
            found[name] = forms
    return found


def methods() -> dict[str, list[Form]]:
    (cls,) = (node for node in tree().body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    found = {}
    for name, nodes in definitions(cls.body).items():
        if name in ("__new__", "__init__", "__reduce_ex__") or "property" in map(ast.unparse, nodes[0].decorator_list):
            continue
        found[name] = [form_of(node, rgrad.Tensor) for node in nodes]
    return found


def properties() -> dict[str, ast.FunctionDef]:
    (cls,) = (node for node in tree().body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    return {
        name: nodes[0]
        for name, nodes in definitions(cls.body).items()
        if "property" in map(ast.unparse, nodes[0].decorator_list)
    }


# Calls whose arguments the types do not tell: sizes that fit together, texts, states.
N: dict[str, Any] = {
    "c": _core,
    "r": rgrad,
    "x": rgrad.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]),
    "v": rgrad.tensor([1.0, 2.0, 3.0]),
    "i": rgrad.tensor([0, 2]),
    "w": rgrad.tensor([1.0, 2.0, 3.0], requires_grad=True),
    "line": rgrad.ones(1, 2, 4),
    "plane": rgrad.ones(1, 2, 4, 4),
    "space": rgrad.ones(1, 2, 4, 4, 4),
    "t": rgrad.Tensor,
    "gates": lambda count: [rgrad.ones(2 * count, 2), rgrad.ones(2 * count, 2)],
}
FUNCTION_CALLS = {
    "addmv": "c.addmv(v, x, v)",
    "clamp": "c.clamp(x, 0, 1)",
    "clip": "c.clip(x, 0, 1)",
    "col2im": "c.col2im(r.ones(1, 4, 4), (4, 4), 2, 1, 0, 2)",
    "conv_tbc": "c.conv_tbc(r.ones(4, 1, 2), r.ones(2, 2, 3), r.ones(3))",
    "conv_transpose1d": "c.conv_transpose1d(line, r.ones(2, 1, 2))",
    "conv_transpose2d": "c.conv_transpose2d(plane, r.ones(2, 1, 2, 2))",
    "convolution": "c.convolution(line, r.ones(1, 2, 2), None, [1], [0], [1], False, [0], 1)",
    "dsplit": "c.dsplit(space, 2)",
    "einsum": "c.einsum('ij->ji', x)",
    "fractional_max_pool2d": "c.fractional_max_pool2d(plane, 2, 3, r.rand(1, 2, 2))",
    "fractional_max_pool3d": "c.fractional_max_pool3d(space, 1, 3, r.rand(1, 2, 3))",
    "grid_sampler": "c.grid_sampler(plane, r.zeros(1, 2, 2, 2), 0, 0, False)",
    "grid_sampler_2d": "c.grid_sampler_2d(plane, r.zeros(1, 2, 2, 2), 0, 0, False)",
    "grid_sampler_3d": "c.grid_sampler_3d(space, r.zeros(1, 2, 2, 2, 3), 0, 0, False)",
    "gru": "c.gru(r.ones(4, 1, 2), r.zeros(1, 1, 2), gates(3), False, 1, 0.0, False, False, False)",
    "gru_cell": "c.gru_cell(r.ones(1, 2), r.zeros(1, 2), r.ones(6, 2), r.ones(6, 2))",
    "hsplit": "c.hsplit(plane, 2)",
    "imag": "c.imag(r.ones(3, dtype=r.complex64))",
    "index_fill": "c.index_fill(x, 0, i, 1.0)",
    "lstm": "c.lstm(r.ones(4, 1, 2), [r.zeros(1, 1, 2)] * 2, gates(4), False, 1, 0.0, False, False, False)",
    "lstm_cell": "c.lstm_cell(r.ones(1, 2), (r.zeros(1, 2), r.zeros(1, 2)), r.ones(8, 2), r.ones(8, 2))",
    "masked_fill": "c.masked_fill(x, x > 1, 0.0)",
    "max_unpool2d": "c.max_unpool2d(r.ones(1, 2, 2), r.tensor([[[0, 3], [8, 10]]]), (4, 4))",
    "max_unpool3d": "c.max_unpool3d(r.ones(1, 1, 1, 1), r.zeros(1, 1, 1, 1).long(), (2, 2, 2), [2] * 3, [0] * 3)",
    "randint": "c.randint(0, 3, (2,))",
    "randint_like": "c.randint_like(x, 3)",
    "rnn_relu": "c.rnn_relu(r.ones(4, 1, 2), r.zeros(1, 1, 2), gates(1), False, 1, 0.0, False, False, False)",
    "rnn_tanh": "c.rnn_tanh(r.ones(4, 1, 2), r.zeros(1, 1, 2), gates(1), False, 1, 0.0, False, False, False)",
    "scatter": "c.scatter(x, 0, i[None], 1.0)",
    "set_rng_state": "c.set_rng_state(c.get_rng_state())",
    "upsample": "c.upsample(line, 3, 'linear')",
    "vsplit": "c.vsplit(plane, [1])",
    "view_as_complex": "c.view_as_complex(r.ones(3, 2))",
    "view_as_real": "c.view_as_real(r.ones(3, dtype=r.complex64))",
}
METHOD_CALLS = {
    "__format__": "r.tensor(1.5).__format__('.2f')",
    "__index__": "r.tensor(2).__index__()",
    "__torch_function__": "t.__torch_function__(r.add, (t,), (x, x))",
    "_make_subclass": "t._make_subclass(t, x)",
    "addmv": "v.addmv(x, v)",
    "addmv_": "v.clone().addmv_(x, v)",
    "backward": "w.sum().backward()",
    "clamp": "x.clamp(0)",
    "clamp_": "x.clone().clamp_(0)",
    "clip": "x.clip(max=1)",
    "clip_": "x.clone().clip_(max=1)",
    "dsplit": "space.dsplit(2)",
    "float_power_": "x.double().float_power_(2)",
    "hsplit": "plane.hsplit(2)",
    "index_fill": "x.index_fill(0, i, 1.0)",
    "index_fill_": "x.clone().index_fill_(0, i, 1.0)",
    "index_reduce": "x.index_reduce(0, i, x[:2], 'amax')",
    "index_reduce_": "x.clone().index_reduce_(0, i, x[:2], 'amax')",
    "istft": "r.ones(16).stft(4, return_complex=True).istft(4)",
    "lu_solve": "x.lu_solve(*r.linalg.lu_factor(x))",
    "ormqr": "x.ormqr(r.geqrf(x).tau, x)",
    "masked_fill": "x.masked_fill(x > 1, 0.0)",
    "masked_fill_": "x.clone().masked_fill_(x > 1, 0.0)",
    "register_hook": "w.register_hook(abs)",
    "register_post_accumulate_grad_hook": "w.register_post_accumulate_grad_hook(abs)",
    "retain_grad": "w.retain_grad()",
    "scatter": "x.scatter(0, i[None], 1.0)",
    "scatter_": "x.clone().scatter_(0, i[None], x)",
    "stft": "r.ones(16).stft(4, return_complex=True)",
    "vsplit": "plane.vsplit([1])",
    # Always errors.
    **dict.fromkeys(("__delitem__", "cuda", "pin_memory", "xpu", "eig", "lstsq", "reinforce", "solve", "symeig")),
    "resize": "x.resize(x.numel())",
}


# Numbers in lists, objects of any class, what handlers answer.
ANYTHING = {
    "tolist", "as_subclass", "_make_subclass", "__array_wrap__", "__copy__", "__deepcopy__", "__torch_function__",
}  # fmt: skip


def faults(owner: Any, table: dict[str, list[Form]], calls: dict[str, str | None]) -> list[str]:
    """Where what comes back is not what is said, or nothing comes back."""
    found = []
    for name, forms in table.items():
        function = getattr(owner, name)
        for place, form in enumerate(forms):
            text = calls.get(name, "")
            if text is None:
                continue
            try:
                value, first = (eval(text, dict(N)), None) if text else result(function, form)
            except (RuntimeError, TypeError, ValueError) as error:
                found.append(f"{name}, form {place}: {error}")
                continue
            if form.result is Any and name not in ANYTHING:
                found.append(f"{name}, form {place}: the result may be anything")
            if not holds(value, form.result):
                found.append(f"{name}, form {place}: {type(value)}, not {form.result}")
            elif first is not None and name.endswith("_") and not name.startswith("_") and value is not first:
                found.append(f"{name}, form {place}: another object than the tensor that it writes to")
    return found


def test_functions_give_what_the_stub_says() -> None:
    assert faults(_core, functions(), FUNCTION_CALLS) == []


def test_methods_give_what_the_stub_says() -> None:
    # Without an adapter this one has nothing to give.
    without = {} if rgrad.wgpu.is_available() else {"wgpu": None}
    assert faults(rgrad.Tensor, methods(), {**METHOD_CALLS, **without}) == []


PYTHON_CALLS: dict[str, str | None] = {
    # Always errors.
    **dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig")),
    "_check_tensor_all": "r._check_tensor_all(x > -100)",
    "alias_copy": "r.alias_copy(x)",
    "as_strided_copy": "r.as_strided_copy(x, (2,), (1,))",
    "asarray": "r.asarray([1.0, 2.0])",
    "detach_copy": "r.detach_copy(x)",
    "diagonal_copy": "r.diagonal_copy(x)",
    "expand_copy": "r.expand_copy(v, (2, 3))",
    "from_dlpack": "r.from_dlpack(x)",
    "from_file": "r.from_file('/dev/null', size=0)",
    "frombuffer": "r.frombuffer(bytearray(8), dtype=r.float32)",
    "histogramdd": "r.histogramdd(x, [2, 2, 2])",
    "index_reduce": "r.index_reduce(x, 0, i, x[:2], 'amax')",
    "istft": "r.istft(r.stft(r.ones(16), 4, return_complex=True), 4)",
    "linalg.ldl_solve": "r.linalg.ldl_solve(*r.linalg.ldl_factor(x), x)",
    "linalg.lu_solve": "r.linalg.lu_solve(*r.linalg.lu_factor(x), x)",
    "linalg.tensorinv": "r.linalg.tensorinv(r.eye(4).reshape(2, 2, 4), 2)",
    "lobpcg": "r.lobpcg(r.eye(6))",
    "lu_solve": "r.lu_solve(x, *r.linalg.lu_factor(x))",
    "ormqr": "r.ormqr(x, r.geqrf(x).tau, x)",
    "lu_unpack": "r.lu_unpack(*r.linalg.lu_factor(x))",
    "permute_copy": "r.permute_copy(x, (1, 0))",
    "range": "r.range(0, 2)",
    "select_copy": "r.select_copy(x, 0, 1)",
    "split_copy": "r.split_copy(x, 1)",
    "split_with_sizes_copy": "r.split_with_sizes_copy(x, [len(x)])",
    "stft": "r.stft(r.ones(16), 4, return_complex=True)",
    "squeeze_copy": "r.squeeze_copy(x)",
    "t_copy": "r.t_copy(x)",
    "transpose_copy": "r.transpose_copy(x, 0, 1)",
    "unbind_copy": "r.unbind_copy(x)",
    "unfold_copy": "r.unfold_copy(x, 0, 2, 1)",
    "unsqueeze_copy": "r.unsqueeze_copy(x, 0)",
    "view_copy": "r.view_copy(x, (9,))",
}


def python_functions() -> dict[str, Any]:
    """Functions written in Python whose results are tensors, by their full names."""
    found = {}
    for name in sorted({*dir(rgrad)} - {*dir(_core)}):
        value = getattr(rgrad, name)
        # Those of lists take whatever the function of one tensor takes.
        if inspect.isfunction(value) and not name.endswith("_") and not name.startswith("_foreach"):
            found[name] = value
    for module in (rgrad.linalg, rgrad.special):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                found[f"{module.__name__.partition('.')[2]}.{name}"] = getattr(module, name)
    return found


def test_properties_give_what_the_stub_says() -> None:
    leaf = rgrad.ones(2, 2, requires_grad=True)
    made = (leaf * 2)[0]
    made.sum().backward()
    found, seen = [], set()
    for name, node in properties().items():
        kind = eval(ast.unparse(node.returns), names()) if node.returns is not None else None
        for tensor in (leaf, made, rgrad.ones(2), rgrad.ones(2, dtype=rgrad.complex64)):
            try:
                value = getattr(tensor, name)
            except RuntimeError:
                continue
            seen.add(name)
            if not holds(value, kind):
                found.append(f"{name}: {type(value)}, not {kind}")
    assert found == []
    assert set(properties()) == seen


def test_what_the_package_has_is_in_its_stub() -> None:
    stub = ast.parse(STUB.with_name("__init__.pyi").read_text(encoding="utf-8")).body
    said = {alias.asname for node in stub if isinstance(node, ast.ImportFrom) for alias in node.names}
    said |= {ast.unparse(node.target) for node in stub if isinstance(node, ast.AnnAssign)}
    said |= {ast.unparse(node.targets[0]) for node in stub if isinstance(node, ast.Assign)}
    assert {name for name in said if name and not name.startswith("_")} == set(rgrad.__all__)


def test_functions_of_python_give_what_they_say() -> None:
    class Functions:
        pass

    owner, table = Functions(), {}
    for name, function in python_functions().items():
        forms = forms_of(function)
        if any(takes_or_gives_tensors(form) for form in forms):
            table[name] = forms
            setattr(owner, name, function)
    assert faults(owner, table, PYTHON_CALLS) == []


def test_functions_of_networks_give_what_they_say() -> None:
    F = rgrad.nn.functional
    found = []
    for name, call in CALLS.items():
        value = call(F, Maker(rgrad, rgrad.float64, "cpu"))
        forms = forms_of(getattr(F, name)) if inspect.isfunction(getattr(F, name)) else functions()[name]
        if not any(holds(value, form.result) for form in forms):
            found.append(f"{name}: {type(value)}, not {[form.result for form in forms]}")
    assert found == []
