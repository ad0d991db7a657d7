"""Names and forms that PyTorch keeps for old programs: each warns, and the warning names the user's line."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from functools import cache
from typing import Any

import pytest

import rgrad

EYE = "rgrad.eye(2)"
# What a program writes, the category of its warning, its words, and whether it is said once in a process.
WARNED = {
    "rgrad.cholesky(rgrad.eye(2))": (
        "UserWarning",
        "rgrad.cholesky is deprecated in favor of rgrad.linalg.cholesky",
        True,
    ),
    "rgrad.eye(2).qr()": ("UserWarning", "rgrad.qr is deprecated in favor of rgrad.linalg.qr", True),
    "rgrad.lu(rgrad.eye(2))": ("UserWarning", "rgrad.lu is deprecated in favor of rgrad.linalg.lu_factor", True),
    "rgrad.lu_solve(rgrad.ones(2, 1), *rgrad.linalg.lu_factor(rgrad.eye(2)))": (
        "UserWarning",
        "rgrad.lu_solve is deprecated in favor of rgrad.linalg.lu_solve",
        True,
    ),
    "rgrad.triangular_solve(rgrad.ones(2, 1), rgrad.eye(2))": (
        "UserWarning",
        "rgrad.triangular_solve is deprecated in favor of rgrad.linalg.solve_triangular",
        True,
    ),
    "rgrad.chain_matmul(rgrad.eye(2), rgrad.eye(2))": ("UserWarning", "rgrad.chain_matmul is deprecated", True),
    "rgrad.set_default_tensor_type('torch.FloatTensor')": (
        "UserWarning",
        "set_default_tensor_type() is deprecated as of PyTorch 2.1",
        True,
    ),
    "rgrad.cross(rgrad.eye(3), rgrad.eye(3))": ("UserWarning", "without specifying the dim arg is deprecated", True),
    "rgrad.eye(2).storage()": ("UserWarning", "TypedStorage is deprecated", True),
    "rgrad.range(1, 3)": ("UserWarning", "rgrad.range is deprecated and will be removed", False),
    "rgrad.nn.functional.upsample(rgrad.ones(1, 1, 2), scale_factor=2)": (
        "UserWarning",
        "`nn.functional.upsample` is deprecated",
        False,
    ),
    "rgrad.cuda.amp.autocast()": ("FutureWarning", "`rgrad.cuda.amp.autocast(args...)` is deprecated", False),
    "rgrad.cpu.amp.autocast()": ("FutureWarning", "`rgrad.cpu.amp.autocast(args...)` is deprecated", False),
    "rgrad.cuda.amp.GradScaler()": ("FutureWarning", "`rgrad.cuda.amp.GradScaler(args...)` is deprecated", False),
    "rgrad.cpu.amp.GradScaler()": ("FutureWarning", "`rgrad.cpu.amp.GradScaler(args...)` is deprecated", False),
    "rgrad.get_autocast_gpu_dtype()": ("DeprecationWarning", "use rgrad.get_autocast_dtype('cuda')", False),
    "rgrad.is_autocast_cpu_enabled()": ("DeprecationWarning", "use rgrad.is_autocast_enabled('cpu')", False),
    "rgrad.set_autocast_xla_enabled(False)": ("DeprecationWarning", "set_autocast_enabled('xla', enabled)", False),
    "rgrad.autograd.Variable(rgrad.eye(2), volatile=True)": ("UserWarning", "volatile was removed", False),
    "rgrad.eye(2).volatile": ("UserWarning", "volatile was removed (Variable.volatile is always False)", False),
    "rgrad.eye(2).resize(4)": ("UserWarning", "non-inplace resize is deprecated", False),
    "rgrad.eye(2).resize_as(rgrad.ones(4))": ("UserWarning", "non-inplace resize_as is deprecated", False),
    "rgrad._vmap_internals.vmap(abs)": ("FutureWarning", "Please use `rgrad.vmap` instead", False),
    "rgrad.backends.cuda.sdp_kernel()": ("FutureWarning", "sdp_kernel()` is deprecated", False),
}
REMOVED = {
    "eig": (EYE,),
    "symeig": (EYE,),
    "matrix_rank": (EYE,),
    "lstsq": (EYE, EYE),
    "solve": (EYE, EYE),
}

ASKING = """
import json, sys, warnings
import rgrad

found = {}
for line in json.loads(sys.argv[1]):
    said = []
    for again in range(2):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            eval(compile(line, "users_file", "eval"))
        said.append([(w.category.__name__, str(w.message), w.filename) for w in seen])
    found[line] = said
print(json.dumps(found))
"""


@cache
def said() -> dict[str, Any]:
    """The warnings of each line, the first and the second time, in a process of its own."""
    command = [sys.executable, "-c", ASKING, json.dumps(list(WARNED))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("line", WARNED)
def test_old_names_warn_about_the_users_line(line: str) -> None:
    category, words, once = WARNED[line]
    first, second = said()[line]
    assert any(words in text and kind == category for kind, text, _ in first)
    assert {file for *_, file in first} == {"users_file"}
    assert bool(second) != once


def test_names_that_were_removed_say_what_to_call() -> None:
    for name, args in REMOVED.items():
        given = [eval(a) for a in args]
        with pytest.raises(RuntimeError, match=r"since version 1.9 and is now removed.*rgrad.linalg"):
            getattr(rgrad, name)(*given)
        if name != "matrix_rank":
            with pytest.raises(RuntimeError, match="is now removed"):
                getattr(given[0], name)(*given[1:])
    with pytest.raises(RuntimeError, match=r"reinforce\(\) was removed"):
        rgrad.ones(1).reinforce(1)


def test_old_forms_of_autocasts_settings_are_the_same_settings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = rgrad.get_autocast_cpu_dtype()
        rgrad.set_autocast_cpu_dtype(rgrad.float16)
        try:
            assert rgrad.get_autocast_dtype("cpu") == rgrad.get_autocast_cpu_dtype() == rgrad.float16
        finally:
            rgrad.set_autocast_cpu_dtype(before)
        rgrad.set_autocast_cpu_enabled(True)
        assert rgrad.is_autocast_enabled("cpu")
        rgrad.set_autocast_cpu_enabled(False)
        assert not rgrad.is_autocast_cpu_enabled()
        with pytest.raises(TypeError, match="dtype must be a rgrad.dtype"):
            rgrad.set_autocast_gpu_dtype("half")
        with pytest.raises(TypeError, match="enabled must be a bool"):
            rgrad.set_autocast_cpu_enabled(1)


def test_old_shapes_keep_the_elements_and_the_gradient() -> None:
    x = rgrad.arange(6.0).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = x.resize(2, 3) * 2 + x.resize((2, 3)) + x.resize_as(rgrad.ones(2, 3))
    made.sum().backward()
    assert x.grad.tolist() == [4.0] * 6


X = "rgrad.ones(2, 2)"
A = "rgrad.full((2, 2), 2.0)"
B = "rgrad.full((2, 2), 3.0)"
V = "rgrad.ones(2)"
# Calls with the number first, what they are called as today, and the old form as the warning shows it.
OLD_FORMS = {
    f"rgrad.add({X}, 2, {A})": (f"rgrad.add({X}, {A}, alpha=2)", "add(Tensor input, Number alpha, Tensor other"),
    f"{X}.add(2, {A})": (f"{X}.add({A}, alpha=2)", "add(Number alpha, Tensor other)"),
    f"{X}.add_(2, {A})": (f"{X}.add_({A}, alpha=2)", "add_(Number alpha, Tensor other)"),
    f"rgrad.sub({X}, rgrad.tensor(2.0), {A})": (
        f"rgrad.sub({X}, {A}, alpha=2)",
        "sub(Tensor input, Number alpha, Tensor other",
    ),
    f"{X}.sub_(2, {A})": (f"{X}.sub_({A}, alpha=2)", "sub_(Number alpha, Tensor other)"),
    f"rgrad.addcmul({X}, 2, tensor1={A}, tensor2={B})": (
        f"rgrad.addcmul({X}, {A}, {B}, value=2)",
        "addcmul(Tensor input, Number value, Tensor tensor1, Tensor tensor2",
    ),
    f"{X}.addcmul_(2, {A}, {B})": (f"{X}.addcmul_({A}, {B}, value=2)", "addcmul_(Number value, Tensor tensor1"),
    f"{X}.addcdiv(2, {A}, {B})": (f"{X}.addcdiv({A}, {B}, value=2)", "addcdiv(Number value, Tensor tensor1"),
    f"{X}.addcdiv_(2, {A}, {B})": (f"{X}.addcdiv_({A}, {B}, value=2)", "addcdiv_(Number value, Tensor tensor1"),
}
OLD_PRODUCTS = {
    "addmm": (X, A, B, "mat1", "mat2"),
    "addmv": (V, A, V, "mat", "vec"),
    "addr": (X, V, V, "vec1", "vec2"),
    "addbmm": (X, f"{A}[None]", f"{B}[None]", "batch1", "batch2"),
    "baddbmm": (f"{X}[None]", f"{A}[None]", f"{B}[None]", "batch1", "batch2"),
}
for _name, (_x, _a, _b, _p, _q) in OLD_PRODUCTS.items():
    _both = f"Tensor {_p}, Tensor {_q}"
    for _form in (_name, f"{_name}_"):
        OLD_FORMS[f"{_x}.{_form}(2, 3, {_a}, {_b})"] = (
            f"{_x}.{_form}({_a}, {_b}, beta=2, alpha=3)",
            f"{_form}(Number beta, Number alpha, {_both})",
        )
        OLD_FORMS[f"{_x}.{_form}(2, {_a}, {_b})"] = (
            f"{_x}.{_form}({_a}, {_b}, beta=2)",
            f"{_form}(Number beta, {_both})",
        )
    OLD_FORMS[f"rgrad.{_name}(2, {_x}, 3, {_a}, {_b}, out=rgrad.empty(0))"] = (
        f"rgrad.{_name}({_x}, {_a}, {_b}, beta=2, alpha=3)",
        f"{_name}(Number beta, Tensor input, Number alpha, {_both}, *, Tensor out = None)",
    )
    OLD_FORMS[f"rgrad.{_name}(2, {_x}, {_a}, {_b})"] = (
        f"rgrad.{_name}({_x}, {_a}, {_b}, beta=2)",
        f"{_name}(Number beta, Tensor input, {_both}",
    )
OLD_FORMS["rgrad.addmv_(2, rgrad.ones(2), 3, rgrad.eye(2), rgrad.ones(2))"] = (
    "rgrad.addmv_(rgrad.ones(2), rgrad.eye(2), rgrad.ones(2), beta=2, alpha=3)",
    "addmv_(Number beta, Tensor input, Number alpha, Tensor mat, Tensor vec)",
)


@pytest.mark.parametrize("line", OLD_FORMS)
def test_numbers_may_stand_first_as_they_did_once(line: str) -> None:
    today, shown = OLD_FORMS[line]
    before = rgrad.is_warn_always_enabled()
    rgrad.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="This overload of .* is deprecated") as seen:
            made = eval(compile(line, "users_file", "eval"))
    finally:
        rgrad.set_warn_always(before)
    (warning,) = seen
    assert f"\n\t{shown}" in str(warning.message)
    assert "Consider using one of the following signatures instead:\n\t" in str(warning.message)
    assert warning.filename == "users_file"
    assert rgrad.equal(made, eval(today))


def test_old_forms_are_recorded_and_change_their_tensor() -> None:
    x, y = (rgrad.randn(2, 2, dtype=rgrad.float64, requires_grad=True) for _ in range(2))

    def both(x: Any, y: Any) -> Any:
        written = x.clone().add_(2, y).addcmul_(3, x, y).addmm_(2, 3, x, y)
        return written * rgrad.addmm(2, x, 3, y, x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rgrad.autograd.gradcheck(both, (x, y))
        assert rgrad.autograd.gradgradcheck(both, (x, y))
        target = rgrad.zeros(2)
        assert target.add_(2, rgrad.ones(2)) is target
        assert target.tolist() == [2, 2]


def test_the_first_old_form_of_a_process_warns() -> None:
    calls = ["x.add(2, x)", "x.sub(2, x)", "x.add_(2, x)", "rgrad.meshgrid(x, x)", "rgrad.meshgrid(x)"]
    program = "\n".join(["import rgrad", "x = rgrad.ones(2)", *calls])
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr.count("This overload of") == 1
    assert done.stderr.count("it will be required to pass the indexing argument") == 1


@pytest.mark.parametrize(
    "line",
    [
        f"{X}.add(2, 3)",
        f"{X}.add('2', {A})",
        f"rgrad.add({X}, 2, {A}, unknown=3)",
        f"rgrad.addmm(2, {X}, '3', {A}, {B})",
        f"{X}.addmm_(1, 2, 3, {A}, {B})",
        f"{X}.addmm_(1, 2, 3, 4)",
        f"{X}.add(rgrad.ones(1, requires_grad=True).sum(), {A})",
    ],
)
def test_what_is_in_no_form_is_the_error_that_it_was(line: str) -> None:
    with pytest.raises(TypeError, match=r"positional arguments|unexpected keyword"):
        eval(line)
