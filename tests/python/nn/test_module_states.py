"""What a module takes and gives when it is pickled or copied, and the names under which files have its class."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rgrad
from rgrad import nn, optim
from rgrad._files.torch_names import found_here, torch_name

HOOKS = ("_forward_hooks", "_backward_hooks", "_state_dict_hooks", "_load_state_dict_post_hooks")


def double(module: Any, args: Any, out: Any) -> Any:
    return out * 2


def test_hooks_of_a_state_without_the_own_mark_are_called() -> None:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(double)
    state = dict(vars(layer))
    del state["_hooked"]
    again = nn.Linear.__new__(nn.Linear)
    again.__setstate__(state)
    x = rgrad.ones(1, 2)
    assert (again(x) == layer(x)).all()
    assert (again(x) == 2 * layer.forward(x)).all()


def test_tables_that_an_early_version_did_not_have_are_empty() -> None:
    layer = nn.Linear(2, 2)
    state = {name: value for name, value in vars(layer).items() if not name.endswith(("_hooks", "_set", "_kwargs"))}
    again = nn.Linear.__new__(nn.Linear)
    again.__setstate__(state)
    assert all(len(vars(again)[table]) == 0 for table in HOOKS)
    again.register_forward_hook(double)
    assert list(again.state_dict()) == ["weight", "bias"]
    assert (again(rgrad.ones(1, 2)) == 2 * layer(rgrad.ones(1, 2))).all()


def test_a_subclass_adds_to_its_state() -> None:
    class Older(nn.Linear):
        def __setstate__(self, state: dict[str, Any]) -> None:
            state.setdefault("scale", 3)
            super().__setstate__(state)

    assert copy.deepcopy(Older(2, 2)).scale == 3


def test_a_state_that_is_no_dict_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"Linear.__setstate__\(\) expected the attributes of a module as a dict, got int"
    ):
        nn.Linear(1, 1).__setstate__(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"bidirectional": True, "num_layers": 2}, {"proj_size": 2}])
def test_a_recurrent_networks_state_has_the_list_of_weights(options: dict[str, Any]) -> None:
    network = nn.LSTM(3, 4, **options)
    state = network.__getstate__()
    assert all(a is b for a, b in zip(state["_flat_weights"], network.parameters(), strict=True))
    for again in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert "_flat_weights" not in vars(again)
        assert all(a is b for a, b in zip(again._flat_weights, again.parameters(), strict=True))
        x = rgrad.linspace(-1, 1, 6).view(2, 1, 3)
        assert (again(x)[0] == network(x)[0]).all()


@pytest.mark.parametrize("options", [{}, {"bias": False, "num_layers": 2}, {"bidirectional": True}])
def test_a_recurrent_network_of_early_releases_finds_its_weights(options: dict[str, Any]) -> None:
    network = nn.GRU(3, 4, **options)
    state = dict(vars(network))
    names = state.pop("_all_weights")
    del state["_flat_weights_names"], state["proj_size"]
    state["all_weights"] = [[getattr(network, name) for name in layer] for layer in names]
    again = nn.GRU.__new__(nn.GRU)
    again.__setstate__(state)
    assert again._all_weights == names
    assert "all_weights" not in vars(again)
    assert [len(layer) for layer in again.all_weights] == [len(layer) for layer in names]
    x = rgrad.ones(2, 1, 3)
    assert (again(x)[0] == network(x)[0]).all()


@pytest.mark.parametrize(
    ("activation", "kind"),
    [("relu", 1), ("gelu", 2), (nn.ReLU(), 1), (nn.GELU(), 2), (nn.functional.silu, 0)],
)
def test_a_layer_says_which_activation_it_has(activation: Any, kind: int) -> None:
    assert nn.TransformerEncoderLayer(4, 2, 8, activation=activation).activation_relu_or_gelu == kind


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (nn.MultiheadAttention, "torch.nn.modules.activation"),
        (nn.PReLU, "torch.nn.modules.activation"),
        (nn.CTCLoss, "torch.nn.modules.loss"),
        (nn.LSTMCell, "torch.nn.modules.rnn"),
        (nn.SyncBatchNorm, "torch.nn.modules.batchnorm"),
        (nn.Linear, "torch.nn.modules.linear"),
        (optim.AdamW, "torch.optim.adamw"),
        (optim.lr_scheduler.LRScheduler, "torch.optim.lr_scheduler"),
        (optim.lr_scheduler.OneCycleLR, "torch.optim.lr_scheduler"),
        (rgrad.distributions.ExpTransform, "torch.distributions.transforms"),
        (rgrad.utils.data.default_collate, "torch.utils.data._utils.collate"),
    ],
)
def test_files_name_the_file_of_pytorch(kind: Any, name: str) -> None:
    assert torch_name(kind.__module__, kind.__qualname__) == (name, kind.__name__)
    assert found_here(name, kind.__name__) is kind
