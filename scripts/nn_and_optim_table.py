"""Write docs/nn-and-optim.md: PyTorch's names of nn, optim, lr_scheduler and utils.data, and what there is of them.

    python scripts/nn_and_optim_table.py            # writes the page
    python scripts/nn_and_optim_table.py --check    # exits with 1 if the page is not up to date
    python scripts/nn_and_optim_table.py --names    # writes tests/data/torch_names.json; needs PyTorch

Nothing is kept by hand but the reasons for what is left out: each module is called on both devices and differentiated
(tests/python/helpers/nn_module_calls.py has a call of each), each optimizer and schedule takes steps, and goes on from
its state. Needs an adapter with 64-bit floats, such as Mesa's software adapter.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from typing import Any

from kept import ROOT, line, main

PAGE = ROOT / "docs" / "nn-and-optim.md"
NAMES = ROOT / "tests" / "data" / "torch_names.json"
sys.path.insert(0, str(ROOT / "tests" / "python" / "helpers"))

PARTS = ("nn", "nn.utils", "nn.init", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data")

HEAD = """\
# nn, optim and utils.data beside PyTorch's names

Written by `scripts/nn_and_optim_table.py`, which runs what is listed; do not edit. The names are those that PyTorch's
packages list. tests/oracle compares every module with PyTorch's (values, gradients, state dicts in both directions,
printing, parameters and errors of constructors), every optimizer with its options over 50 steps, and every schedule.

"""
HEADS = {
    "nn": """\
*cpu*: a call gives finite numbers. *wgpu*: the same call there gives the same. *gradient*: that of all inputs and
parameters, compared with numeric ones in float64; `-` where there is nothing to differentiate.

""",
    "optim": """\
*learns*: 50 steps bring a sum of squares down. *wgpu*: with the same results there. *state*: what loads a state dict
goes on as the original.

""",
    "optim.lr_scheduler": "*state*: what loads a state dict goes on as the original.\n\n",
}

# What `optim` has besides.
NO_OPTIMIZERS = {
    "Optimizer": "base",
    "SparseAdam": "for sparse gradients, which there are none of",
    "lr_scheduler": "a module, see below",
    "swa_utils": "a module, see below",
    "swap_in_optimizer_params_and_state": "a function, which is there",
}

PIPES = "PyTorch's pipes of data are deprecated"
LEFT_OUT = {
    "utils.data": {
        **dict.fromkeys(
            [
                "DFIterDataPipe",
                "DataChunk",
                "IterDataPipe",
                "MapDataPipe",
                "functional_datapipe",
                "argument_validation",
                "guaranteed_datapipes_determinism",
                "non_deterministic",
                "runtime_validation",
                "runtime_validation_disabled",
            ],
            PIPES,
        ),
        "_DatasetKind": "a private name",
    },
}

# What is computed on wgpu may differ from the CPU's by so much, relative and absolute.
TOLERANCE = {"float64": (1e-6, 1e-8), "float32": (1e-4, 1e-5)}
# Stands for what was not asked of wgpu.
UNKNOWN = "?"

Row = tuple[str, ...]


def torch_names() -> dict[str, list[str]]:
    """The names that PyTorch's packages list; classes of nn are those of nn.modules."""
    found: dict[str, list[str]] = {}
    for part in PARTS:
        module = import_module("torch." + part)
        listed = set(getattr(module, "__all__", ()))
        if part == "nn":
            listed = {*import_module("torch.nn.modules").__all__, "DataParallel", "Buffer", "Parameter"}
            listed |= {"UninitializedBuffer", "UninitializedParameter"}
        if part == "nn.init":
            listed = {n for n, v in vars(module).items() if n.endswith("_") and not n.startswith("_") and callable(v)}
            listed |= {"calculate_gain"}
        if part == "nn.utils":
            import_module("torch.nn.utils.prune")  # an attribute only after this
            listed |= {"parametrizations", "parametrize", "prune", "rnn", "stateless"}
        found[part] = sorted(n for n in listed if hasattr(module, n))
    return found


def names() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(NAMES.read_text(encoding="utf-8"))
    return found


def owner(part: str) -> Any:
    return import_module("rgrad." + part)


def left_out(part: str, name: str) -> str | None:
    """Why a name is not there; None if it is."""
    if hasattr(owner(part), name):
        return None
    return LEFT_OUT.get(part, {}).get(name, "missing")


def yes(passed: bool) -> str:
    return "yes" if passed else "no"


def module_at(name: str, device: str, dtype: str) -> tuple[Any, list[Any]]:
    """A module with its inputs on a device: the same numbers everywhere."""
    import rgrad

    kit = import_module("nn_module_calls")
    rgrad.manual_seed(0)
    module, inputs = kit.made(rgrad, name, dtype, device="cpu")
    if name.startswith("Lazy"):
        module(*inputs)
    module = module.to(device)
    return module, [x.detach().to(device).requires_grad_(x.requires_grad) for x in inputs]


def module_numbers(name: str, device: str, dtype: str) -> Any:
    """What a call of the module gives."""
    import numpy as np

    module, inputs = module_at(name, device, dtype)
    made = import_module("nn_module_calls").results(module(*inputs))
    return np.concatenate([t.detach().cpu().numpy().ravel() for t in made])


def module_on_wgpu(name: str, dtype: str) -> str:
    """Whether the module gives on wgpu what it gives on the CPU."""
    import numpy as np

    try:
        there = module_numbers(name, "wgpu", dtype)
    except (RuntimeError, TypeError, NotImplementedError):
        return "no"
    rtol, atol = TOLERANCE[dtype]
    return yes(np.allclose(there, module_numbers(name, "cpu", dtype), rtol=rtol, atol=atol))


def module_columns(name: str, dtype: str | None) -> Row:
    """Whether the module gives finite numbers, the same on wgpu, and right gradients."""
    import numpy as np

    import rgrad
    from rgrad.autograd import gradcheck

    kit = import_module("nn_module_calls")
    if name not in kit.CASES:
        return ("container or base", "", "")
    host = module_numbers(name, "cpu", "float64")
    same = UNKNOWN if dtype is None else module_on_wgpu(name, dtype)
    module, inputs = module_at(name, "cpu", "float64")
    places = [at for at, x in enumerate(inputs) if x.requires_grad]
    params = dict(module.named_parameters())
    leaves = [*(inputs[at] for at in places), *params.values()]

    def again(*given: Any) -> Any:
        called = list(inputs)
        for at, x in zip(places, given, strict=False):
            called[at] = x
        if name == "CTCLoss":
            # Its gradient is that for probabilities.
            called[0] = called[0].log_softmax(-1)
        # Running statistics are written by each call.
        buffers = {key: value.clone() for key, value in module.named_buffers()}
        tensors = {**dict(zip(params, given[len(places) :], strict=True)), **buffers}
        return tuple(kit.results(rgrad.func.functional_call(module, tensors, tuple(called))))

    passed = leaves and gradcheck(again, tuple(leaves), eps=1e-6, atol=1e-5, raise_exception=False)
    gradient = yes(bool(passed)) if leaves else "-"
    return yes(bool(np.isfinite(host).all())), same, gradient


def trained(name: str, device: str, steps: int, load_at: int = -1, dtype: str = "float64") -> tuple[float, list[float]]:
    """The loss before, and the parameters after steps; from `load_at` on an optimizer that has loaded the state."""
    import rgrad

    rgrad.manual_seed(0)
    kind = getattr(rgrad, dtype)
    at = rgrad.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=kind, device=device, requires_grad=True)
    options = {"Muon": {"lr": 0.02}, "Adadelta": {"lr": 5.0}, "Adafactor": {"lr": 0.1}}.get(name, {"lr": 0.05})
    make = getattr(rgrad.optim, name)
    optimizer = make([at], **options)

    def loss() -> Any:
        optimizer.zero_grad()
        value = (at**2).sum()
        value.backward()
        return value

    first = float(loss())
    for step in range(steps):
        if step == load_at:
            state = optimizer.state_dict()
            optimizer = make([at], **options)
            optimizer.load_state_dict(state)
        loss()
        optimizer.step(loss)
    return first, at.detach().cpu().flatten().tolist()


def optimizer_on_wgpu(name: str, dtype: str) -> str:
    """Whether the steps on wgpu end where those on the CPU do."""
    import numpy as np

    here, there = (trained(name, device, 50, dtype=dtype)[1] for device in ("cpu", "wgpu"))
    return yes(np.allclose(here, there, rtol=1e-9 if dtype == "float64" else 1e-4, atol=TOLERANCE[dtype][1]))


def optimizer_columns(name: str, dtype: str | None) -> Row:
    """Whether its steps bring a sum of squares down, the same on wgpu, and whether a loaded state goes on."""
    import numpy as np

    first, end = trained(name, "cpu", 50)
    _, resumed = trained(name, "cpu", 50, load_at=20)
    learns = sum(x * x for x in end) < first
    same = UNKNOWN if dtype is None else optimizer_on_wgpu(name, dtype)
    return yes(learns), same, yes(np.allclose(end, resumed, rtol=1e-12))


SCHEDULES: dict[str, Any] = {
    "LambdaLR": {"lr_lambda": lambda n: 1 / (n + 1)},
    "MultiplicativeLR": {"lr_lambda": lambda n: 0.9},
    "StepLR": {"step_size": 3},
    "MultiStepLR": {"milestones": [3, 7]},
    "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 5},
    "CosineAnnealingWarmRestarts": {"T_0": 4},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": 40},
    "ReduceLROnPlateau": {"patience": 2},
}


def schedule_columns(name: str) -> Row:
    """Whether a schedule that has loaded a state goes on as the one that gave it."""
    import rgrad
    from rgrad.optim import lr_scheduler as schedules

    if name == "LRScheduler":
        return ("base",)

    def made() -> tuple[Any, Any]:
        optimizer = rgrad.optim.SGD([rgrad.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        if name in ("ChainedScheduler", "SequentialLR"):
            inner = [schedules.ConstantLR(optimizer, total_iters=4), schedules.ExponentialLR(optimizer, gamma=0.8)]
            more = {"milestones": [5]} if name == "SequentialLR" else {}
            kind = getattr(schedules, name)
            return optimizer, kind(inner, **more) if name == "ChainedScheduler" else kind(optimizer, inner, **more)
        return optimizer, getattr(schedules, name)(optimizer, **SCHEDULES.get(name, {}))

    def rates(pair: tuple[Any, Any], steps: int) -> list[float]:
        optimizer, schedule = pair
        found = []
        for _ in range(steps):
            optimizer.step()
            schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
            found.append(float(optimizer.param_groups[0]["lr"]))
        return found

    whole, first, second = made(), made(), made()
    expected = rates(whole, 12)
    begun = rates(first, 5)
    second[0].load_state_dict(first[0].state_dict())
    second[1].load_state_dict(first[1].state_dict())
    return (yes(begun + rates(second, 7) == expected and len(set(expected)) > 1),)


COLUMNS = {
    "nn": ("cpu", "wgpu", "gradient"),
    "optim": ("learns", "wgpu", "state"),
    "optim.lr_scheduler": ("state",),
}


def is_optimizer(name: str) -> bool:
    """Whether steps are taken with this class of `optim`."""
    import rgrad

    value = getattr(rgrad.optim, name, None)
    whole = isinstance(value, type) and issubclass(value, rgrad.optim.Optimizer)
    return whole and name not in ("Optimizer", "SparseAdam")


def row(part: str, name: str, dtype: str | None = "float64") -> Row:
    """What the page says of a name; on wgpu it is tried in `dtype`, or not at all."""
    columns = COLUMNS.get(part, ("there",))
    why = left_out(part, name)
    if why is not None:
        return (f"`{name}`", why, *[""] * (len(columns) - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if part == "nn":
            return (f"`{name}`", *module_columns(name, dtype))
        if part == "optim" and is_optimizer(name):
            return (f"`{name}`", *optimizer_columns(name, dtype))
        if part == "optim":
            return (f"`{name}`", NO_OPTIMIZERS[name], "", "")
        if part == "optim.lr_scheduler":
            return (f"`{name}`", *schedule_columns(name))
    return (f"`{name}`", "yes")


def on_wgpu(part: str, name: str, dtype: str) -> str:
    """What the page says of wgpu, tried in `dtype`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module_on_wgpu(name, dtype) if part == "nn" else optimizer_on_wgpu(name, dtype)


def page() -> str:
    """The text of docs/nn-and-optim.md."""
    text = HEAD
    for part, listed in names().items():
        columns = ("name", *COLUMNS.get(part, ("there",)))
        text += f"## {part}\n\n{HEADS.get(part, '')}" + line(columns) + line(("---",) * len(columns))
        text += "".join(line(row(part, name)) for name in listed) + "\n"
    return text.rstrip("\n") + "\n"


def write_names() -> None:
    NAMES.write_text(json.dumps(torch_names(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, page, {"--names": ("write PyTorch's names", write_names)}))
