"""What stands where: rgrad's top level, its modules and their public names, beside PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
# An attribute of torch only when it has been imported, by whatever test comes first.
importlib.import_module("torch.onnx")
# Attributes of their packages only after this.
for late in ("nn.utils.prune", "utils.benchmark", "utils.flop_counter", "utils.tensorboard"):
    importlib.import_module(f"torch.{late}")

import rgrad  # noqa: E402
from places import sources  # noqa: E402
from rgrad._runtime.names import ELSEWHERE, OWN  # noqa: E402

pytestmark = pytest.mark.oracle


def public(namespace: Any) -> set[str]:
    return {name for name in dir(namespace) if not name.startswith("_")}


def test_names_at_the_top_level() -> None:
    """All of them are PyTorch's or have a reason; none of PyTorch's own is listed with one."""
    assert public(rgrad) - public(torch) == set(OWN)
    assert [name for name, reason in OWN.items() if len(reason) < 20] == []
    # `import *` gives what can be seen, but not the package's own name, in PyTorch either.
    assert public(rgrad) - set(rgrad.__all__) == {"torch"}
    assert "torch" not in torch.__all__
    assert rgrad.torch is rgrad


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_that_are_elsewhere(name: str) -> None:
    assert not hasattr(torch, name)
    assert not hasattr(rgrad, name)
    assert hasattr(rgrad._core, name)
    for package in (rgrad, torch):
        place: Any = package
        for part in ELSEWHERE[name].split("."):
            if part == "_core":
                return
            place = getattr(place, part)
        assert hasattr(place, name)


def test_the_native_module_has_no_other_names() -> None:
    assert public(rgrad._core) - set(rgrad.__all__) == set(ELSEWHERE)


# Public modules and names in them that PyTorch does not have, with the reason.
OWN_MODULES = {
    "rgrad.autograd.backward": "torch.autograd has it in its __init__",
    "rgrad.compat": "rgrad under PyTorch's name",
    "rgrad.compat.pytest": "a plugin of pytest",
    "rgrad.env": "a command: torch.utils.collect_env",
    "rgrad.func.debug": "torch.func is one file, over torch._functorch",
    "rgrad.func.functionalize": "torch.func is one file, over torch._functorch",
    "rgrad.func.jacobian": "torch.func is one file, over torch._functorch",
    "rgrad.func.linearize": "torch.func is one file, over torch._functorch",
    "rgrad.func.modules": "torch.func is one file, over torch._functorch",
    "rgrad.func.reverse": "torch.func is one file, over torch._functorch",
    "rgrad.memory": "reports and recordings of memory on every device",
    "rgrad.profile": "a command",
    "rgrad.run": "a command",
    "rgrad.utils.benchmark.callgrind": "torch.utils.benchmark.utils.valgrind_wrapper has it",
    "rgrad.utils.benchmark.compare": "torch.utils.benchmark.utils has it",
    "rgrad.utils.benchmark.measurement": "torch.utils.benchmark.utils.common has it",
    "rgrad.utils.benchmark.timer": "torch.utils.benchmark.utils has it",
    "rgrad.utils.data.collate": "torch.utils.data._utils has it",
    "rgrad.vision": "what tutorials take from torchvision",
    "rgrad.vision.datasets": "torchvision has it",
    "rgrad.vision.models": "torchvision has it",
    "rgrad.vision.transforms": "torchvision has it",
    "rgrad.wgpu": "the device",
}
OWN_NAMES = {
    "rgrad": set(OWN),
    "rgrad.autograd": {"GradcheckError"},
    "rgrad.autograd.graph": {
        "Drawing",
        "GradientExplanation",
        "GraphMemoryReport",
        "draw",
        "explain",
        "memory_report",
        "module_calls",
    },
    "rgrad.nn.utils.clip_grad": {"clip_grads_with_norm_", "get_total_norm"},
    "rgrad.export": {"ConstantArgument", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "TensorArgument"},
    "rgrad.library": {"OpCheckError"},
    "rgrad.nn.parallel.data_parallel": {"scatter"},
    "rgrad.onnx": {"is_onnxrt_backend_supported"},
    "rgrad.onnx.utils": {"is_in_onnx_export"},
    "rgrad.ops": {"OpOverload", "OpOverloadPacket", "load_library"},
    "rgrad.optim": {"optimizer"},
    "rgrad.utils.cpp_extension": {"BuildExtension"},
}


def modules() -> list[str]:
    return [name for name in sources() if not any(part.startswith("_") for part in name.split("."))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore:.torch.jit.interface:DeprecationWarning")
@pytest.mark.parametrize("name", modules())
def test_modules_and_their_public_names_are_where_pytorch_has_them(name: str) -> None:
    theirs = name.replace("rgrad", "torch", 1)
    if name in OWN_MODULES:
        with pytest.raises(ImportError):
            importlib.import_module(theirs)
        return
    mine, other = importlib.import_module(name), importlib.import_module(theirs)
    listed = set(getattr(mine, "__all__", ()))
    assert listed - set(dir(other)) == OWN_NAMES.get(name, set())
    assert [n for n in listed if not hasattr(mine, n)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "from torch.autograd import SavedTensor, gradcheck; assert callable(gradcheck)",
        "from torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck",
        "import torch.autograd.gradcheck as check; assert check is torch.autograd.gradcheck",
        "from torch.nn.modules.module import Module, register_module_forward_hook",
        "from torch.nn.modules import Linear, loss; assert loss.MSELoss",
        "from torch.nn.modules.container import Sequential; assert Sequential is torch.nn.Sequential",
        "from torch.nn.utils import clip_grad_norm_, parameters_to_vector",
        "from torch.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_",
        "from torch.nn.utils.convert_parameters import vector_to_parameters",
        "from torch.nn.parameter import Buffer, Parameter; assert torch.nn.parameter.Parameter is Parameter",
        "from torch.func import grad, vmap; assert torch.vmap is vmap",
        "assert torch.typename(torch.nn.Linear(1, 1)) == torch.__name__ + '.nn.modules.linear.Linear'",
    ],
)
def test_import_paths(statement: str) -> None:
    """One statement for both."""
    for name in ("torch", "rgrad"):
        package = importlib.import_module(name)
        exec(statement.replace("torch", name), {name: package})
