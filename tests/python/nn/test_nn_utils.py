"""Parametrizations, pruning, fusion, lazy modules and other helpers over parameters, without PyTorch."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import rgrad
from rgrad import nn
from rgrad.nn.utils import _orthogonal, parametrizations, parametrize, prune

F64 = rgrad.float64


def values(*shape: int, seed: int = 0) -> rgrad.Tensor:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape))


def layer(*shape: int) -> nn.Linear:
    made = nn.Linear(shape[1], shape[0], dtype=F64)
    made.weight.data = values(*shape)
    return made


def test_weight_norm_is_length_times_direction(device: str) -> None:
    module = nn.Linear(4, 3).to(device)
    weight = module.weight.detach().cpu().numpy().copy()
    parametrizations.weight_norm(module)
    np.testing.assert_allclose(module.weight.detach().cpu().numpy(), weight, rtol=1e-5)
    module.parametrizations.weight.original0.data.fill_(2.0)
    np.testing.assert_allclose(module.weight.norm(2, 1).detach().cpu().numpy(), 2.0, rtol=1e-5)
    module(rgrad.ones(2, 4, device=device)).sum().backward()
    assert module.parametrizations.weight.original1.grad is not None
    state = {"weight_g": rgrad.ones(3, 1), "weight_v": rgrad.ones(3, 4), "bias": rgrad.zeros(3)}
    module.load_state_dict(state)
    np.testing.assert_allclose(module.weight.detach().cpu().numpy(), 0.5, rtol=1e-5)


def test_spectral_norm_has_largest_singular_value_1(device: str) -> None:
    module = parametrizations.spectral_norm(nn.Linear(6, 4).to(device), n_power_iterations=200)
    assert np.linalg.svd(module.weight.detach().cpu().numpy())[1][0] == pytest.approx(1.0, abs=1e-4)
    module.eval()
    before = module.parametrizations.weight[0]._u.clone()
    _ = module.weight
    assert rgrad.equal(module.parametrizations.weight[0]._u, before)


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_gradients_of_norms(kind: str) -> None:
    module = getattr(parametrizations, kind)(layer(3, 4)).eval()
    originals = [p.detach().clone().requires_grad_(True) for p in module.parametrizations.parameters()]

    def weight(*given):
        if kind == "weight_norm":
            return module.parametrizations.weight[0](*given)
        return module.parametrizations.weight[0](given[0])

    assert rgrad.autograd.gradcheck(weight, originals)
    assert rgrad.autograd.gradgradcheck(weight, originals)


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley"])
def test_maps_of_skew_matrices(kind: str) -> None:
    x = values(2, 4, 4)
    skew = (x - x.mT).requires_grad_(True)
    f = getattr(_orthogonal, kind)
    for q in f(skew):
        np.testing.assert_allclose((q @ q.T).detach().numpy(), np.eye(4), atol=1e-12)
    a = skew.detach().numpy()
    if kind == "cayley":
        np.testing.assert_allclose(f(skew).detach().numpy(), np.linalg.solve(np.eye(4) - a / 2, np.eye(4) + a / 2))
    else:
        eigenvalues, vectors = np.linalg.eig(a)
        wanted = (vectors * np.exp(eigenvalues)[:, None, :]) @ np.linalg.inv(vectors)
        np.testing.assert_allclose(f(skew).detach().numpy(), wanted.real, atol=1e-10)
        np.testing.assert_allclose(f(rgrad.zeros(2, 2)).numpy(), np.eye(2))
        large = f(rgrad.tensor([[0.0, 30.0], [-30.0, 0.0]], dtype=F64)).numpy()
        np.testing.assert_allclose(large, [[np.cos(30), np.sin(30)], [-np.sin(30), np.cos(30)]], atol=1e-9)
    assert rgrad.autograd.gradcheck(lambda x: f(x - x.mT), (x.requires_grad_(True),))
    assert rgrad.autograd.gradgradcheck(lambda x: f(x - x.mT)[0], (x[:1, :3, :3].detach().requires_grad_(True),))


def test_householder_products() -> None:
    a = values(2, 5, 3)
    h, tau = _orthogonal.geqrf(a)
    q = _orthogonal.householder_product(h, tau)
    np.testing.assert_allclose((q @ h[:, :3].triu()).numpy(), a.numpy(), atol=1e-12)
    positive = _orthogonal.orthogonal_of(a).mT @ a
    assert (positive.diagonal(dim1=-2, dim2=-1) > 0).all()
    inputs = (a[0].clone().requires_grad_(True), tau[0].clone().requires_grad_(True))
    assert rgrad.autograd.gradcheck(_orthogonal.householder_product, inputs)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", [None, "cayley", "householder", "matrix_exp"])
def test_orthogonal_stays_orthogonal(shape: tuple[int, int], kind: str | None) -> None:
    module = parametrizations.orthogonal(layer(*shape), orthogonal_map=kind)
    optimizer = rgrad.optim.SGD(module.parameters(), lr=0.1)
    first = module.weight.detach().clone()
    for _ in range(3):
        loss = (module(values(2, shape[1])) ** 3).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weight = module.weight if shape[0] <= shape[1] else module.weight.T
    np.testing.assert_allclose((weight @ weight.T).detach().numpy(), np.eye(min(shape)), atol=1e-9)
    assert not rgrad.equal(first, module.weight)
    module.weight = first
    np.testing.assert_allclose(module.weight.detach().numpy(), first.numpy(), atol=1e-9)


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Lower(nn.Module):
    def forward(self, x):
        return x.tril()


def test_parametrizations_can_be_chained_assigned_copied_and_removed() -> None:
    module = layer(3, 3)
    start = module.weight.detach().clone()
    parametrize.register_parametrization(module, "weight", Doubled())
    parametrize.register_parametrization(module, "weight", Doubled())
    np.testing.assert_allclose(module.weight.detach().numpy(), 2 * start.numpy())
    assert [name for name, _ in module.named_parameters()] == ["bias", "parametrizations.weight.original"]
    module.weight = start
    assert rgrad.equal(module.weight, start)
    assert rgrad.equal(module.parametrizations.weight.original, start / 4)
    other = copy.deepcopy(module)
    other.parametrizations.weight.original.data.zero_()
    assert rgrad.equal(module.weight, start)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(module)
    parametrize.register_parametrization(module, "weight", Lower())
    with pytest.raises(RuntimeError, match="Lower does not implement right_inverse"):
        module.weight = start
    with parametrize.cached():
        assert module.weight is module.weight
        with parametrize.cached():
            pass
        assert module.weight is module.weight
    parametrize.remove_parametrizations(module, "weight")
    assert type(module) is nn.Linear
    assert isinstance(module.weight, nn.Parameter)
    assert rgrad.equal(module.weight, start.tril())
    pickle.loads(pickle.dumps(module))


def test_parametrized_buffers_and_failures_leave_the_module() -> None:
    module = nn.BatchNorm1d(2)
    parametrize.register_parametrization(module, "running_var", Doubled())
    assert module.running_var.tolist() == [1, 1]
    assert "parametrizations.running_var.original" in module.state_dict()

    class Wider(nn.Module):
        def forward(self, x):
            return rgrad.cat([x, x])

    plain = layer(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(plain, "weight", Wider())
    assert type(plain) is nn.Linear
    assert "weight" in dict(plain.named_parameters())
    parametrize.register_parametrization(plain, "weight", Wider(), unsafe=True)
    assert tuple(plain.weight.shape) == (4, 2)


def test_pruning_masks_train_and_become_final() -> None:
    module = layer(3, 4)
    prune.l1_unstructured(module, "weight", 0.5)
    assert int((module.weight == 0).sum()) == 6
    optimizer = rgrad.optim.SGD(module.parameters(), lr=0.1)
    module(values(2, 4)).sum().backward()
    optimizer.step()
    module(values(2, 4))
    assert int((module.weight == 0).sum()) == 6
    prune.random_unstructured(module, "weight", 2)
    assert int((module.weight == 0).sum()) == 8
    prune.ln_structured(module, "weight", 1, n=2, dim=0)
    assert isinstance(next(iter(module._forward_pre_hooks.values())), prune.PruningContainer)
    final = module.weight.detach().clone()
    prune.remove(module, "weight")
    assert rgrad.equal(module.weight, final)
    assert isinstance(module.weight, nn.Parameter)
    assert not prune.is_pruned(module)


def test_a_refused_pruning_changes_nothing() -> None:
    module = layer(3, 4)
    with pytest.raises(ValueError, match="amount=100"):
        prune.l1_unstructured(module, "weight", 100)
    assert sorted(dict(module.named_parameters())) == ["bias", "weight"]
    prune.l1_unstructured(module, "weight", 2)
    with pytest.raises(ValueError, match="should be smaller than the number of parameters"):
        prune.l1_unstructured(module, "weight", 11)
    assert prune.is_pruned(module)
    module(values(1, 4))
    assert int((module.weight == 0).sum()) == 2


def test_fused_layers_compute_the_same() -> None:
    linear, norm = layer(3, 4).eval(), nn.BatchNorm1d(3, dtype=F64)
    norm(values(8, 3))
    norm.eval()
    fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    x = values(5, 4, seed=2)
    np.testing.assert_allclose(fused(x).detach().numpy(), norm(linear(x)).detach().numpy())
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        nn.utils.fuse_conv_bn_eval(layer(3, 4), norm)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_lazy_convolutions_are_convolutions_after_a_call(kind: str, dims: int) -> None:
    lazy = getattr(nn, f"Lazy{kind}{dims}d")(4, 3, stride=2, groups=2, bias=dims != 2)
    assert lazy.has_uninitialized_params()
    assert lazy.in_channels == 0
    eager = getattr(nn, f"{kind}{dims}d")(6, 4, 3, stride=2, groups=2, bias=dims != 2)
    rgrad.manual_seed(3)
    x = rgrad.randn(2, 6, *(5,) * dims)
    with pytest.raises(RuntimeError, match=f"Expected {dims + 1}D .unbatched. or {dims + 2}D"):
        lazy(rgrad.ones(6))
    with pytest.raises(ValueError, match="divisible by groups"):
        lazy(rgrad.ones(2, 5, *(5,) * dims))
    assert lazy.has_uninitialized_params(), "a failed call changes nothing"
    first = lazy(x)
    assert type(lazy) is type(eager)
    assert repr(lazy) == repr(eager)
    assert [p.shape for p in lazy.parameters()] == [p.shape for p in eager.parameters()]
    bound = 1 / math.sqrt(lazy.weight[0].numel())
    assert 0.5 * bound < lazy.weight.abs().max().item() <= bound
    eager.load_state_dict(lazy.state_dict())
    assert rgrad.equal(eager(x), first)
    loaded = getattr(nn, f"Lazy{kind}{dims}d")(4, 3, stride=2, groups=2, bias=dims != 2)
    loaded.load_state_dict(eager.state_dict())
    assert not loaded.has_uninitialized_params()
    assert rgrad.equal(loaded(x), first)


def test_lazy_modules_learn_their_shapes() -> None:
    net = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    assert net[0].has_uninitialized_params()
    assert repr(net[0].weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        _ = net[0].weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        _ = net[0].weight + 1
    optimizer = rgrad.optim.SGD(net.parameters(), lr=0.1)
    copied = copy.deepcopy(net)
    net.double()
    net(values(4, 3)).sum().backward()
    optimizer.step()
    assert [type(m).__name__ for m in net] == ["Linear", "BatchNorm1d", "Linear"]
    assert net[0].weight.dtype == F64
    assert net[0].weight.grad is not None
    copied.double().load_state_dict(net.state_dict())
    np.testing.assert_allclose(copied(values(4, 3)).detach().numpy(), net(values(4, 3)).detach().numpy())
    again = pickle.loads(pickle.dumps(nn.LazyLinear(2)))
    assert tuple(again(rgrad.ones(1, 7)).shape) == (1, 2)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        nn.Linear(2, 2).load_state_dict(nn.LazyLinear(2).state_dict())

    class Half(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Half has not been fully initialized"):
        Half()(rgrad.ones(1))


def test_the_adaptive_softmax_is_a_softmax(device: str) -> None:
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0).to(device)
    x = rgrad.tensor(np.random.default_rng(0).standard_normal((6, 8)), dtype=rgrad.float32, device=device)
    target = rgrad.tensor([0, 2, 3, 6, 7, 11], device=device)
    logs = module.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).detach().cpu().numpy(), 1.0, rtol=1e-5)
    output, loss = module(x, target)
    np.testing.assert_allclose(
        output.detach().cpu().numpy(), logs.gather(1, target.unsqueeze(1)).squeeze(1).detach().cpu().numpy(), rtol=1e-4
    )
    assert loss.item() == pytest.approx(-output.mean().item())
    assert module.predict(x).tolist() == logs.argmax(1).tolist()
    loss.backward()
    assert all(p.grad is not None for p in module.parameters())


def test_modules_without_initial_values() -> None:
    made = nn.utils.skip_init(nn.Linear, 3, 2)
    assert (type(made), made.weight.device.type, tuple(made.weight.shape)) == (nn.Linear, "cpu", (2, 3))
    with pytest.warns(FutureWarning, match="functional_call"):
        found = nn.utils.stateless.functional_call(
            made, {"weight": rgrad.ones(2, 3), "bias": rgrad.zeros(2)}, (rgrad.ones(1, 3),)
        )
    assert found.tolist() == [[3, 3]]
    norms = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(2), nn.ReLU()))
    assert type(norms[0]) is nn.SyncBatchNorm


def test_gradients_are_clipped_together() -> None:
    params = [rgrad.zeros(2, requires_grad=True), rgrad.zeros(1, requires_grad=True), rgrad.zeros(1)]
    params[0].grad, params[1].grad = rgrad.tensor([3.0, 0.0]), rgrad.tensor([4.0])
    total = nn.utils.get_total_norm([p.grad for p in params[:2]])
    assert total.item() == 5
    nn.utils.clip_grads_with_norm_(params, 2.5, total)
    np.testing.assert_allclose(rgrad.cat([p.grad for p in params[:2]]).numpy(), [1.5, 0, 2], rtol=1e-5)
    assert nn.utils.get_total_norm([]).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in []), 1.0)
    with pytest.warns(FutureWarning, match="clip_grad_norm"):
        assert nn.utils.clip_grad_norm(params, 0.25).item() == pytest.approx(2.5)


def test_state_dict_takes_its_arguments_by_position() -> None:
    layer = nn.Linear(2, 1)
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        state = layer.state_dict(None, "a.", True)
    assert list(state) == ["a.weight", "a.bias"]
    assert state["a.weight"] is layer.weight
    with pytest.raises(TypeError, match="by position"):
        layer.state_dict(None, "", True, 1)
