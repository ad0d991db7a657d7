"""What `import rgrad` loads, and what it leaves until somebody asks."""

import os
import subprocess
import sys

import pytest

import rgrad


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*(m for m in sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_parts_come_when_they_are_used() -> None:
    loaded = loaded_after("import rgrad")
    assert "rgrad.autograd" in loaded
    late = ("nn", "optim", "utils", "serialization", "overrides", "wgpu", "testing", "autograd.graph")
    assert not {f"rgrad.{name}" for name in late} & loaded
    assert not {"wgpu", "cffi", "threading"} & loaded
    # One part brings no other with it but those that it is made of.
    loaded = loaded_after("import rgrad; rgrad.nn.Linear(1, 1)")
    assert "rgrad.nn.modules.linear" in loaded
    assert not {"rgrad.optim", "rgrad.utils.data", "rgrad.serialization", "wgpu"} & loaded


@pytest.mark.parametrize("package", [rgrad, rgrad.autograd, rgrad.utils], ids=lambda p: p.__name__)
def test_all_names_are_there_and_listed(package: object) -> None:
    listed = dir(package)
    for name in package.__all__:  # type: ignore[attr-defined]
        assert name in listed
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match=r"module 'rgrad.*' has no attribute 'nothing_of_the_sort'"):
        package.nothing_of_the_sort  # type: ignore[attr-defined]


def test_names_of_parts_are_taken_in_every_way() -> None:
    for code in (
        "from rgrad import *; nn.Linear(1, 1); load; optim.SGD",
        "import rgrad.nn.functional as F; F.relu",
        "import rgrad; rgrad._tensor_str.printoptions, rgrad._tensor_str.PRINT_OPTS",
        "from rgrad import nn, save, serialization; assert serialization.save is save",
        "from rgrad.utils.data import DataLoader; import rgrad; assert rgrad.utils.data.DataLoader is DataLoader",
        "from rgrad.autograd.gradcheck import GradcheckError; import rgrad; assert callable(rgrad.autograd.gradcheck)",
    ):
        loaded_after(code)


@pytest.mark.parametrize("left", ["", "rgrad._core"])
def test_the_package_can_be_imported_again(left: str) -> None:
    """After its entries left `sys.modules`, with or without the native module."""
    code = f"""
import sys
import rgrad
first = rgrad
x = rgrad.ones(2, requires_grad=True)
for _ in range(3):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rgrad" and name != {left!r}]:
        del sys.modules[name]
    import rgrad
    assert rgrad is not first
    class Double(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors[0].shape == grad.shape
            return grad * 2
    x.grad = None
    Double.apply(x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    assert isinstance(x, rgrad.Tensor) and isinstance(rgrad.nn.Parameter(x), first.Tensor)
    assert rgrad.nn.Linear(2, 2)(x).shape == (2,)
    assert rgrad.func.grad(lambda x: x.square().sum())(x).tolist() == [2.0, 2.0]
    assert rgrad.vmap(lambda x: x * 2)(x).tolist() == [2.0, 2.0]
    try:
        rgrad.ones(2) + rgrad.ones(3)
    except rgrad.RgradError as error:
        assert isinstance(error, RuntimeError)
    else:
        raise AssertionError
import importlib
importlib.reload(rgrad)
assert rgrad.ones(2).sum().item() == 2
print("done")
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stderr


def imported_with(isa: str = "", kernel: str = "") -> subprocess.CompletedProcess[str]:
    code = """
try:
    import rgrad
except Exception as error:
    print(*(base.__name__ for base in type(error).__mro__[:3]), error, sep="|")
else:
    print(rgrad.ones(5).sum().item(), rgrad.backends.cpu.get_cpu_capability())
"""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=os.environ | {"RGRAD_ISA": isa, "RGRAD_KERNEL": kernel}, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("name", ["avx", "AVX2", "avx2 ", "0"])
def test_an_instruction_set_that_nobody_knows_is_an_error(name: str) -> None:
    kind, _, builtin, message = imported_with(name).stdout.strip().split("|")
    assert (kind, builtin) == ("ArgumentValueError", "ValueError")
    assert message.startswith(
        f'RGRAD_ISA="{name}" is no instruction set: expected base, avx2 or avx512. Unset RGRAD_ISA'
    )


@pytest.mark.parametrize("names", ["conv", "conv.Plain", "conv.plain,", "matmul.gemm, conv.plain"])
def test_a_kernel_that_nobody_knows_is_an_error_that_lists_all(names: str) -> None:
    kind, _, builtin, message = imported_with(kernel=names).stdout.strip().split("|")
    assert (kind, builtin) == ("ArgumentValueError", "ValueError")
    assert message.startswith(f'RGRAD_KERNEL="{names}": ')
    assert "conv.disjoint, conv.depthwise" in message
    assert imported_with(kernel="conv.plain,matmul.gemm").stdout.startswith("5.0 ")


def test_instruction_sets_of_this_machine_are_taken_and_others_are_errors() -> None:
    best = imported_with("").stdout.strip()
    sets = {"base": "NO AVX", "avx2": "AVX2", "avx512": "AVX512"}
    if best == "5.0 DEFAULT":
        sets["base"] = "DEFAULT"
    expected = True
    for name, capability in sets.items():
        got = imported_with(name).stdout.strip()
        if expected:
            assert got == f"5.0 {capability}"
            # There are none above the best one.
            expected = got != best
            continue
        kind, _, builtin, message = got.split("|")
        assert (kind, builtin) == ("OperationError", "RuntimeError")
        assert message.startswith(
            f"RGRAD_ISA={name} asks for an instruction set that this machine lacks: expected base"
        )
