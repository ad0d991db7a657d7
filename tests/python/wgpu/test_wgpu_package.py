"""The Python package on devices: default device, modules, optimizers, files, copies, printing, gradient checks."""

from __future__ import annotations

import copy
import io
import pickle
import re
import subprocess
import sys
import threading
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dtypes
import operations_on_devices
import rgrad
import rotation
from devices import widest
from op_kit import to_numpy
from places import ROOT
from rgrad import _core, nn
from rgrad.autograd import GradcheckError, functional, gradcheck, gradgradcheck
from rgrad.utils.data import DataLoader, TensorDataset

WGPU = rgrad.device("wgpu", 0)


def both() -> list[str]:
    return ["cpu", "wgpu"]


def test_there_is_an_adapter() -> None:
    """Where one is demanded this fails without one."""
    assert rgrad.wgpu.is_available()
    assert rgrad.wgpu.devices()


# --- the default device ---------------------------------------------------------------------------------


def test_with_device_is_the_default_inside() -> None:
    makers: dict[str, Any] = {
        "tensor": lambda: rgrad.tensor([1.0]),
        "as_tensor": lambda: rgrad.as_tensor(np.ones(2)[:1].astype("f4")),
        "asarray": lambda: rgrad.asarray([1.0]),
        "zeros": lambda: rgrad.zeros(2),
        "ones": lambda: rgrad.ones(2),
        "empty": lambda: rgrad.empty(2),
        "full": lambda: rgrad.full((2,), 1.0),
        "eye": lambda: rgrad.eye(2),
        "arange": lambda: rgrad.arange(3),
        "linspace": lambda: rgrad.linspace(0, 1, 3),
        "logspace": lambda: rgrad.logspace(0, 1, 3),
        "rand": lambda: rgrad.rand(2),
        "randn": lambda: rgrad.randn(2),
        "randint": lambda: rgrad.randint(3, (2,)),
        "randperm": lambda: rgrad.randperm(3),
        "scalar_tensor": lambda: rgrad.scalar_tensor(1.0),
        "tril_indices": lambda: rgrad.tril_indices(2, 2),
        "Linear": lambda: nn.Linear(2, 2).weight,
    }
    for name, make in makers.items():
        assert make().device.type == "cpu", name
        with rgrad.device("wgpu") as d:
            assert d.type == "wgpu"
            assert rgrad.get_default_device() == WGPU
            assert make().device == WGPU, name
            with rgrad.device("cpu"):
                assert make().device.type == "cpu", name
        assert rgrad.get_default_device() == rgrad.device("cpu")
        assert make().device.type == "cpu", name


def test_what_follows_another_tensor_or_shares_memory_ignores_the_default() -> None:
    x = rgrad.ones(2)
    with rgrad.device("wgpu"):
        assert rgrad.from_numpy(np.ones(2)).device.type == "cpu"
        for like in (rgrad.zeros_like, rgrad.ones_like, rgrad.empty_like, rgrad.rand_like, rgrad.randn_like):
            assert like(x).device.type == "cpu"
        assert rgrad.full_like(x, 2.0).device.type == "cpu"
        assert x.new_zeros(3).device.type == "cpu"
        assert x.new_tensor([1.0]).device.type == "cpu"
        assert rgrad.zeros(1, device="cpu").device.type == "cpu"
        assert rgrad.as_tensor(x).device == WGPU  # as PyTorch does it
    on = rgrad.ones(2, device="wgpu")
    assert rgrad.zeros_like(on).device == WGPU
    assert on.new_zeros(3).device == WGPU
    assert rgrad.zeros_like(on, device="cpu").device.type == "cpu"


def test_set_default_device_is_the_threads_own() -> None:
    seen = []
    rgrad.set_default_device("wgpu:0")
    try:
        assert rgrad.zeros(1).device == WGPU
        thread = threading.Thread(target=lambda: seen.append(rgrad.zeros(1).device.type))
        thread.start()
        thread.join()
    finally:
        rgrad.set_default_device(None)
    assert seen == ["cpu"]
    assert rgrad.zeros(1).device.type == "cpu"
    with pytest.raises(RuntimeError, match="cuda.*not available"):
        rgrad.set_default_device("cuda")
    with pytest.raises(RuntimeError, match="cuda.*not available"), rgrad.device("cuda"):
        pass
    assert rgrad.zeros(1).device.type == "cpu"


def test_get_device() -> None:
    assert rgrad.zeros(1).get_device() == rgrad.get_device(rgrad.zeros(1)) == -1
    on = rgrad.zeros(1, device="wgpu")
    assert on.get_device() == rgrad.get_device(on) == 0
    assert on.is_wgpu
    assert not on.is_cpu
    with pytest.raises(TypeError, match="Tensor"):
        rgrad.get_device(1.0)


def test_devices_by_number_and_addresses() -> None:
    x = rgrad.ones(2, device=0)
    assert x.device == rgrad.device(0) == WGPU
    assert rgrad.ones(2).to(0).device == rgrad.ones(2).wgpu(0).device == WGPU
    for call in (lambda: rgrad.ones(2, device=1), lambda: rgrad.ones(2, device="wgpu:1"), lambda: rgrad.ones(2).to(3)):
        with pytest.raises(RuntimeError, match="one wgpu device at a time"):
            call()
    with pytest.raises(RuntimeError, match="negative"):
        rgrad.device(-1)
    with pytest.raises(TypeError, match="Tensor.cpu"):
        x.numpy()


def test_numbers_stand_for_addresses() -> None:
    x = rgrad.arange(12, device=WGPU, dtype=rgrad.float32)
    first = x.data_ptr()
    assert first != 0
    assert x.untyped_storage().data_ptr() == first
    assert x.view(3, 4).data_ptr() == x.detach().data_ptr() == x.t().data_ptr() == first
    assert x[5:].data_ptr() == first + 5 * 4
    assert x.view(3, 4)[1, 2].data_ptr() == first + 6 * 4
    assert x.half()[3:].data_ptr() - x.half().data_ptr() != 6, "copies have memory of their own"
    half = x.half()
    assert half[3:].data_ptr() == half.data_ptr() + 6
    # The number stays, whatever is written and computed.
    x.add_(1)
    x.sum().item()
    assert x.data_ptr() == first
    pending = x * 2
    before = pending.data_ptr()
    assert pending.sum().item() == 156
    assert pending.data_ptr() == before
    assert rgrad.ones(0, device=WGPU).data_ptr() == 0


def test_numbers_of_other_memory_differ() -> None:
    tensors = [rgrad.ones(n, device=WGPU) for n in (1, 3, 64, 65, 1000)]
    spans = sorted((t.data_ptr(), t.data_ptr() + 4 * t.numel()) for t in tensors)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert len({t.data_ptr() for t in (*tensors, tensors[0].clone(), rgrad.ones(3))}) == 7
    gone = rgrad.ones(5, device=WGPU).data_ptr()
    assert rgrad.ones(5, device=WGPU).data_ptr() != gone


# --- modules and optimizers -----------------------------------------------------------------------------


def net() -> nn.Module:
    rgrad.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


@pytest.mark.parametrize("move", [lambda m: m.to("wgpu"), lambda m: m.wgpu(), lambda m: m.to(WGPU)])
def test_modules_move_and_keep_their_parameters(move: Any) -> None:
    model = net()
    model.register_buffer("count", rgrad.tensor([1, 2]))
    before = [(p, to_numpy(p)) for p in model.parameters()]
    model[0].weight.grad = rgrad.ones(5, 4)
    assert move(model) is model
    for p, (old, values) in zip(model.parameters(), before, strict=True):
        assert p is old
        assert p.device == WGPU
        assert p.is_leaf
        assert p.requires_grad
        np.testing.assert_array_equal(to_numpy(p), values)
    assert model.count.device == WGPU
    assert model[0].weight.grad.device == WGPU
    assert {t.device for t in model.state_dict().values()} == {WGPU}
    model.cpu()
    assert {t.device.type for t in model.state_dict().values()} == {"cpu"}
    assert model.count.tolist() == [1, 2]


def test_transfers_that_need_not_block() -> None:
    x = rgrad.arange(6.0).reshape(2, 3).t()
    y = x.to("wgpu", non_blocking=True)
    assert y.to("cpu", non_blocking=True).tolist() == x.tolist()
    z = rgrad.zeros(3, 2, device="wgpu")
    assert z.copy_(x, non_blocking=True).cpu().tolist() == x.tolist()
    module = rgrad.nn.Linear(2, 2).to("wgpu", non_blocking=True)
    assert module.weight.device.type == "wgpu"


def test_state_dicts_load_across_devices() -> None:
    here, there = net(), net().to("wgpu")
    for p in here.parameters():
        rgrad.nn.init.ones_(p)
    there.load_state_dict(here.state_dict())
    assert {p.device for p in there.parameters()} == {WGPU}
    assert all((p == 1).all() for p in there.parameters())
    here.load_state_dict(there.state_dict())
    assert {p.device.type for p in here.parameters()} == {"cpu"}


OPTIMIZERS = {
    "SGD": lambda ps: rgrad.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: rgrad.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda ps: rgrad.optim.Adam(ps, lr=0.01),
    "AdamW": lambda ps: rgrad.optim.AdamW(ps, lr=0.01, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_the_same_on_both_devices(name: str) -> None:
    """Ten steps with clipped gradients; the optimizer's state lies beside the parameters; no step reads back."""
    ends = []
    for device in both():
        model = net().to(device)
        optimizer = OPTIMIZERS[name](model.parameters())
        rng = np.random.default_rng(0)
        x = rgrad.tensor(rng.normal(size=(8, 4)).astype("f4"), device=device)
        y = rgrad.tensor(rng.integers(0, 3, 8), device=device)
        for _ in range(10):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            assert total.device.type == device
            nn.utils.clip_grad_value_(model.parameters(), 0.2)
            optimizer.step()
        for state in optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, rgrad.Tensor):
                    assert value.device.type == ("cpu" if key == "step" else device), key
        ends.append([to_numpy(p) for p in model.parameters()])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_optimizer_state_follows_the_parameters_when_loaded() -> None:
    here, there = net(), net().to("wgpu")
    saved = rgrad.optim.Adam(here.parameters())
    here(rgrad.ones(2, 4)).sum().backward()
    saved.step()
    loaded = rgrad.optim.Adam(there.parameters())
    loaded.load_state_dict(saved.state_dict())
    for p in there.parameters():
        state = loaded.state[p]
        assert state["exp_avg"].device == WGPU
        assert state["step"].device.type == "cpu"
    there(rgrad.ones(2, 4, device="wgpu")).sum().backward()
    loaded.step()


def test_clip_grad_norm_over_two_devices() -> None:
    a, b = rgrad.zeros(2, requires_grad=True), rgrad.zeros(2, device="wgpu", requires_grad=True)
    a.grad, b.grad = rgrad.tensor([3.0, 0.0]), rgrad.tensor([0.0, 4.0], device="wgpu")
    assert nn.utils.clip_grad_norm_([a, b], 1.0).item() == pytest.approx(5.0)
    np.testing.assert_allclose(a.grad.tolist(), [0.6, 0.0], rtol=1e-5)
    np.testing.assert_allclose(b.grad.tolist(), [0.0, 0.8], rtol=1e-5)


def test_a_training_step_does_not_wait_for_the_device() -> None:
    model = net().to("wgpu")
    optimizer = rgrad.optim.Adam(model.parameters())
    x, y = rgrad.ones(8, 4, device="wgpu"), rgrad.zeros(8, dtype=rgrad.int64, device="wgpu")
    loss_of = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        step()
    rgrad.wgpu.synchronize()
    before = rgrad._core._wgpu_counts()[0]
    for _ in range(5):
        step()
    rgrad.wgpu.synchronize()
    assert rgrad._core._wgpu_counts()[0] - before <= 5 * 3


@pytest.mark.parametrize("device", both())
def test_init_is_the_same_on_both_devices(device: str) -> None:
    for init in (nn.init.eye_, nn.init.xavier_uniform_, nn.init.trunc_normal_, nn.init.kaiming_normal_):
        rgrad.manual_seed(5)
        want = to_numpy(init(rgrad.empty(4, 4)))
        rgrad.manual_seed(5)
        got = init(rgrad.empty(4, 4, device=device))
        assert got.device.type == device
        np.testing.assert_allclose(to_numpy(got), want, rtol=1e-5, atol=1e-7)


def test_data_loaders_take_tensors_of_both_devices() -> None:
    x, y = rgrad.arange(10).float(), rgrad.arange(10, device="wgpu")
    for shuffle in (False, True):
        batches = list(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=shuffle))
        assert [tuple(b.device.type for b in batch) for batch in batches] == [("cpu", "wgpu")] * 3
        for a, b in batches:
            assert a.tolist() == b.tolist()
    with rgrad.device("wgpu"):
        assert len(list(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))) == 3
    data = [(rgrad.ones(2, device="wgpu"), 1), (rgrad.zeros(2, device="wgpu"), 2)]
    ((x, y),) = DataLoader(data, batch_size=2)
    assert x.device == WGPU
    assert y.device.type == "cpu"


# --- files and copies -----------------------------------------------------------------------------------


def saved(value: Any, **kw: Any) -> Any:
    file = io.BytesIO()
    rgrad.save(value, file)
    file.seek(0)
    return rgrad.load(file, **kw)


@pytest.mark.parametrize("dtype", dtypes.ON_WGPU)
def test_save_and_load_remember_the_device(dtype: str) -> None:
    x = rgrad.tensor([[0, 1, 2], [3, 0, 5]], dtype=getattr(rgrad, dtype), device="wgpu")
    value = {"x": x, "t": x.t(), "y": rgrad.ones(2), "p": nn.Parameter(rgrad.ones(2, device="wgpu")), "d": x.device}
    back = saved(value)
    assert [back[k].device.type for k in "xtyp"] == ["wgpu", "wgpu", "cpu", "wgpu"]
    assert back["d"] == WGPU
    assert rgrad.equal(back["x"], x)
    assert rgrad.equal(back["t"], x.t())
    assert isinstance(back["p"], nn.Parameter)
    for where in ("cpu", {"wgpu:0": "cpu"}, {"wgpu": "cpu"}, lambda t, place: t):
        assert saved(value, map_location=where)["x"].device.type == "cpu"
    assert saved(value, map_location="wgpu")["y"].device == WGPU
    assert saved(value, map_location=lambda t, place: None)["x"].device == WGPU


def test_shared_memory_stays_shared_in_a_file() -> None:
    x = rgrad.ones(3, device="wgpu")
    back = saved([x, x.detach(), x.clone()])
    back[0].zero_()
    assert [t.sum().item() for t in back] == [0.0, 0.0, 3.0]


def test_errors_of_map_location_are_not_those_of_a_damaged_file() -> None:
    def broken(tensor: Any, place: str) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        saved(rgrad.ones(1), map_location=broken)
    with pytest.raises(RuntimeError, match="on a CUDA device but there is none"):
        saved(rgrad.ones(1), map_location="cuda")


def test_load_without_the_device_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rgrad.save(rgrad.ones(2, device="wgpu"), tmp_path / "x")
    moved = rgrad.UntypedStorage.to

    def gone(self: Any, *args: Any, **kw: Any) -> Any:
        if args and str(args[0]).startswith("wgpu"):
            raise rgrad.OperationError("wgpu found no adapter")
        return moved(self, *args, **kw)

    monkeypatch.setattr(rgrad.UntypedStorage, "to", gone)
    with pytest.raises(RuntimeError, match="(?s)saved on wgpu:0.*map_location='cpu'.*found no adapter"):
        rgrad.load(tmp_path / "x")
    assert rgrad.load(tmp_path / "x", map_location="cpu").tolist() == [1.0, 1.0]


def test_deepcopy_and_pickle_stay_on_the_device() -> None:
    x = rgrad.tensor([1.0, 2.0], device="wgpu", requires_grad=True)
    (x * x).sum().backward()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == WGPU
        assert y.requires_grad
        assert y.tolist() == [1.0, 2.0]
        with rgrad.no_grad():
            y.zero_()
    assert x.tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).grad.tolist() == [2.0, 4.0]
    model = copy.deepcopy(net().to("wgpu"))
    assert {p.device for p in model.parameters()} == {WGPU}
    model = pickle.loads(pickle.dumps(model))
    assert {p.device for p in model.parameters()} == {WGPU}


# --- printing and comparing -----------------------------------------------------------------------------


def test_repr_names_the_device() -> None:
    assert repr(rgrad.tensor([1.0, 2.0], device="wgpu")) == "tensor([1., 2.], device='wgpu:0')"
    assert (
        repr(rgrad.tensor([1], dtype=rgrad.int32, device="wgpu")) == "tensor([1], device='wgpu:0', dtype=rgrad.int32)"
    )
    assert repr(rgrad.zeros(0, 2, device="wgpu")) == "tensor([], device='wgpu:0', size=(0, 2))"
    x = rgrad.tensor(1.5, device="wgpu", requires_grad=True)
    assert repr(x) == "tensor(1.5000, device='wgpu:0', requires_grad=True)"
    assert repr(x * 2) == "tensor(3., device='wgpu:0', grad_fn=<MulBackward0>)"


@pytest.mark.parametrize("shape", [(1001,), (40, 50), (7, 200), (6, 7, 30), (2000, 1)])
def test_a_summary_is_the_cpus(shape: tuple[int, ...]) -> None:
    x = rgrad.arange(int(np.prod(shape))).reshape(shape).float()
    on = repr(x.to("wgpu"))
    assert "..." in on
    assert re.sub(r",\s*device='wgpu:0'", "", on) == repr(x)


def test_assert_close_across_devices() -> None:
    x = rgrad.tensor([1.0, 2.0])
    rgrad.testing.assert_close(x.to("wgpu"), x.to("wgpu"))
    with pytest.raises(AssertionError, match="'device' do not match"):
        rgrad.testing.assert_close(x.to("wgpu"), x)
    rgrad.testing.assert_close(x.to("wgpu"), x, check_device=False)
    with pytest.raises(AssertionError, match="not close"):
        rgrad.testing.assert_close(x.to("wgpu"), x + 1, check_device=False)
    assert rgrad.testing.make_tensor(3, dtype=rgrad.float32, device="wgpu").device == WGPU


# --- what runs where ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_every_operation_takes_the_same_dtypes_on_both_devices() -> None:
    """Of a third of the dtypes: what the CPU takes, wgpu takes, and the other way round."""
    dtypes = rotation.some(operations_on_devices.DTYPES, 2, "operations by device")
    found = list(operations_on_devices.lines(dtypes))
    if widest("wgpu") != rgrad.float64:
        # float64 is neither an operand there nor, as of to_double, the result.
        found = [
            (name, [d for d in here if d != "float64"], there) for name, here, there in found if name != "to_double"
        ]
    assert len(found) > 250
    assert [(name, here, there) for name, here, there in found if here != there] == []


@pytest.mark.needs("float64")
def test_the_page_of_operations_by_device_is_up_to_date() -> None:
    """The page is about adapters with 64-bit numbers."""
    path = ROOT / "scripts" / "operations_by_device.py"
    done = subprocess.run([sys.executable, path, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_backends_say_what_they_do() -> None:
    """What a backend calls impossible raises, with its reason; what it does by another way works."""
    table = {(r, t, d): answer for r, _, t, d, answer in _core._support_table(["cpu", "wgpu", "meta"])}
    assert table["softmax", "int64", "wgpu"] == "no: defined for floating point"
    wide = widest("wgpu") == rgrad.float64
    assert table["normal", "float64", "wgpu"] == ("drawn by the host" if wide else "no: the adapter has no such type")
    assert table["sum", "bool", "cpu"] == "yes"
    for device in ("cpu", "wgpu", "meta"):
        x = rgrad.ones(2, 2, dtype=rgrad.bool, device=device)
        assert table["matmul", "bool", device].startswith("no: ")
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            x @ x
        if wide or device != "wgpu":
            assert rgrad.randn(3, dtype=rgrad.float64, device=device).shape == (3,)


# --- gradient checks and derivatives --------------------------------------------------------------------


def leaf(*shape: int) -> Any:
    values = np.random.default_rng(1).uniform(0.3, 1.5, shape).astype("f4")
    return rgrad.tensor(values, device="wgpu", requires_grad=True)


def test_gradcheck_on_the_device() -> None:
    x, w = leaf(3, 2), leaf(2, 4)
    assert gradcheck(lambda a, b: (a @ b).tanh(), (x, w))
    assert gradgradcheck(lambda a: a.exp().sum(1), (x,))
    assert gradcheck(lambda a: a * a.sin(), (x,), fast_mode=True)


class Wrong(rgrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0] * 2.02


def test_gradcheck_finds_an_error_of_one_percent_on_the_device() -> None:
    with pytest.raises(GradcheckError, match="wrong formula"):
        gradcheck(Wrong.apply, (leaf(3),))


def test_gradcheck_of_a_function_that_holds_device_tensors() -> None:
    """It cannot run on the CPU, so differences are taken in float32 on the device, with a warning."""
    weight = leaf(3).detach()
    x = leaf(3)
    with pytest.warns(UserWarning, match="cannot be taken in double precision"):
        assert gradcheck(lambda a: a * weight, (x,), eps=1e-2, atol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(GradcheckError):
            gradcheck(lambda a: Wrong.apply(a) * weight, (x,), eps=1e-2, atol=1e-4)
    np.testing.assert_array_equal(to_numpy(x), to_numpy(leaf(3)))  # put back


def test_functional_derivatives_stay_on_the_device() -> None:
    x = leaf(3).detach()
    cases: list[tuple[Any, Any]] = [(functional.jacobian, lambda a: a**3), (functional.hessian, lambda a: (a**3).sum())]
    for derivative, f in cases:
        got, want = derivative(f, x), derivative(f, x.cpu())
        assert got.device == WGPU
        np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=1e-5)
    out, product = functional.jvp(lambda a: a.sin(), x, rgrad.ones_like(x))
    assert out.device == product.device == WGPU
    np.testing.assert_allclose(to_numpy(product), np.cos(to_numpy(x)), rtol=1e-5)


def test_tensors_of_two_devices_are_named_with_the_fix() -> None:
    with pytest.raises(RuntimeError, match="(?s)same device.*wgpu.*cpu.*\\.to\\("):
        rgrad.ones(2, device="wgpu") + rgrad.ones(2)
