"""Parametrizations, norms of weights, pruning, fusion, clipping, lazy modules, adaptive softmax: beside PyTorch's."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.utils.prune  # noqa: E402, F811

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402


def values(T: Any, *shape: int, seed: int = 0) -> Any:
    return T.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=T.float64)


def layer(T: Any, rows: int = 3, columns: int = 4, bias: bool = True, seed: int = 0) -> Any:
    made = T.nn.Linear(columns, rows, bias=bias, dtype=T.float64)
    with T.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_(values(T, *p.shape, seed=seed + i))
    return made


def net(T: Any) -> Any:
    return T.nn.Sequential(layer(T), T.nn.Tanh(), layer(T, 2, 3, seed=5))


def arrays(state: Any) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in state.items()}


def same(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name in ours:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=tolerance, atol=tolerance, err_msg=name)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def trained(T: Any, module: Any, steps: int = 4) -> Any:
    """State and outputs after a few steps."""
    optimizer = T.optim.SGD(module.parameters(), lr=0.05)
    outputs = []
    for i in range(steps):
        loss = (module(values(T, 5, 4, seed=10 + i)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append(loss.item())
    return arrays(module.state_dict()), outputs


def both(run: Any, tolerance: float = 1e-9) -> None:
    (state, found), (wanted, expected) = run(rgrad), run(torch)
    same(state, wanted, tolerance)
    same(found, expected, tolerance)


def set_vectors(T: Any, module: Any) -> None:
    """The vectors of power methods start at random."""
    with T.no_grad():
        for i, (name, buffer) in enumerate(sorted(module.named_buffers())):
            if name.endswith(("_u", "_v")):
                start = values(T, *buffer.shape, seed=30 + i)
                buffer.copy_(start / start.norm())


NORMS = {
    "weight": lambda T, m: T.nn.utils.parametrizations.weight_norm(m[0]),
    "weight all": lambda T, m: T.nn.utils.parametrizations.weight_norm(m[0], dim=None),
    "weight 1": lambda T, m: T.nn.utils.parametrizations.weight_norm(m[2], dim=1),
    "bias": lambda T, m: T.nn.utils.parametrizations.weight_norm(m[0], "bias"),
    "spectral": lambda T, m: T.nn.utils.parametrizations.spectral_norm(m[0]),
    "spectral dim": lambda T, m: T.nn.utils.parametrizations.spectral_norm(m[0], dim=1, n_power_iterations=3),
    "spectral bias": lambda T, m: T.nn.utils.parametrizations.spectral_norm(m[0], "bias"),
    "both": lambda T, m: [
        T.nn.utils.parametrizations.spectral_norm(m[0]),
        T.nn.utils.parametrizations.weight_norm(m[2]),
    ],
    "old spectral": lambda T, m: T.nn.utils.spectral_norm(m[0]),
    "old spectral dim": lambda T, m: T.nn.utils.spectral_norm(m[2], dim=1, n_power_iterations=2),
    "old weight": lambda T, m: T.nn.utils.weight_norm(m[0]),
    "old weight all": lambda T, m: T.nn.utils.weight_norm(m[0], dim=None),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_weights_train_alike(name: str) -> None:
    def run(T: Any) -> Any:
        module = net(T)
        NORMS[name](T, module)
        set_vectors(T, module)
        state, losses = trained(T, module)
        module.eval()
        losses.append(module(values(T, 2, 4)).sum().item())
        return state, [*losses, *module[0].weight.detach().flatten().tolist()]

    both(run)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_norms_of_weights_are_removed_alike() -> None:
    def run(T: Any) -> Any:
        module = net(T)
        utils = T.nn.utils
        utils.parametrizations.weight_norm(module[0])
        utils.parametrizations.spectral_norm(module[2])
        set_vectors(T, module)
        trained(T, module, 2)
        module.eval()
        names = [type(module[0]).__name__, utils.parametrize.type_before_parametrizations(module[0]).__name__]
        utils.parametrize.remove_parametrizations(module[0], "weight")
        utils.parametrize.remove_parametrizations(module[2], "weight", leave_parametrized=False)
        assert type(module[0]) is T.nn.Linear
        utils.weight_norm(module[0])
        utils.remove_weight_norm(module[0])
        assert names == ["ParametrizedLinear", "Linear"]
        return trained(T, module, 2)

    both(run)


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (3, 5)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivialization", [True, False])
def test_orthogonal_matrices_are_alike(shape: tuple[int, int], kind: str | None, trivialization: bool) -> None:
    square = shape[0] == shape[1]

    def run(T: Any) -> Any:
        module = layer(T, *shape)
        T.nn.utils.parametrizations.orthogonal(module, orthogonal_map=kind, use_trivialization=trivialization)
        weight = module.weight
        found = []
        small = weight if shape[0] <= shape[1] else weight.T
        identity = small @ small.T
        same(identity.detach().numpy(), np.eye(min(shape)), 1e-9)
        if square or not trivialization:
            # With a base of other columns these are random.
            found.append(weight.detach().numpy())
            (weight * values(T, *shape, seed=3)).sum().backward()
            found.append(module.parametrizations.weight.original.grad.numpy())
        if not trivialization and (kind == "householder" or (kind is None and not square)):
            q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((max(shape), min(shape))))
            module.weight = T.tensor(q if shape[0] >= shape[1] else q.T.copy(), dtype=T.float64)
            found.append(module.weight.detach().numpy())
        return found

    for ours, theirs in zip(run(rgrad), run(torch), strict=True):
        same(ours, theirs, 1e-8)


def test_parametrizations_of_ones_own_are_alike() -> None:
    def run(T: Any) -> Any:
        class Symmetric(T.nn.Module):
            def forward(self, x: Any) -> Any:
                return x.triu() + x.triu(1).transpose(-1, -2)

            def right_inverse(self, x: Any) -> Any:
                return x.triu()

        class Scaled(T.nn.Module):
            def forward(self, a: Any, b: Any) -> Any:
                return a * b

            def right_inverse(self, x: Any) -> Any:
                return x / 2, T.full_like(x, 2.0)

        class Double(T.nn.Module):
            def forward(self, x: Any) -> Any:
                return 2 * x

            def right_inverse(self, x: Any) -> Any:
                return x / 2

        parametrize = T.nn.utils.parametrize
        module = layer(T, 4, 4)
        parametrize.register_parametrization(module, "weight", Symmetric())
        parametrize.register_parametrization(module, "weight", Double())
        parametrize.register_parametrization(module, "bias", Scaled())
        module.weight = T.eye(4, dtype=T.float64)
        with parametrize.cached():
            assert module.weight is module.weight
        assert module.weight is not module.weight
        assert parametrize.is_parametrized(module)
        assert not parametrize.is_parametrized(module, "x")
        other = copy.deepcopy(module)
        result = trained(T, other)
        third = layer(T, 4, 4, seed=8)
        parametrize.transfer_parametrizations_and_params(other, third)
        assert third.parametrizations.weight.original is other.parametrizations.weight.original
        return result[0], [*result[1], *third.weight.detach().flatten().tolist(), repr(module).count("\n")]

    both(run)


PRUNED = {
    "l1": lambda T, p, m: p.l1_unstructured(m[0], "weight", 0.3),
    "l1 count": lambda T, p, m: p.l1_unstructured(m[0], "weight", 4, importance_scores=values(T, 3, 4, seed=9)),
    "ln": lambda T, p, m: p.ln_structured(m[0], "weight", 1, 2, 0),
    "ln inf": lambda T, p, m: p.ln_structured(m[0], "weight", 0.5, float("inf"), -1),
    "identity": lambda T, p, m: p.identity(m[0], "bias"),
    "mask": lambda T, p, m: p.custom_from_mask(m[0], "bias", T.tensor([1, 0, 1])),
    "twice": lambda T, p, m: [p.l1_unstructured(m[0], "weight", 2), p.l1_unstructured(m[0], "weight", 3)],
    "mixed": lambda T, p, m: [
        p.ln_structured(m[0], "weight", 1, 1, 1),
        p.l1_unstructured(m[0], "weight", 2),
        p.ln_structured(m[0], "weight", 1, 2, 0),
    ],
    "global": lambda T, p, m: p.global_unstructured([(m[0], "weight"), (m[2], "weight")], p.L1Unstructured, amount=5),
    "global again": lambda T, p, m: [
        p.l1_unstructured(m[2], "weight", 1),
        p.global_unstructured([(m[0], "weight"), (m[2], "weight")], p.L1Unstructured, amount=0.5),
    ],
}


@pytest.mark.parametrize("name", PRUNED)
def test_pruning_is_alike(name: str) -> None:
    def run(T: Any) -> Any:
        prune, module = T.nn.utils.prune, net(T)
        PRUNED[name](T, prune, module)
        assert prune.is_pruned(module)
        state, losses = trained(T, module)
        for child in (module[0], module[2]):
            for key in ("weight", "bias"):
                if key + "_mask" in dict(child.named_buffers()):
                    prune.remove(child, key)
        assert not prune.is_pruned(module)
        return {**state, **{"after " + k: v for k, v in arrays(module.state_dict()).items()}}, losses

    both(run)


def test_random_pruning_prunes_as_many() -> None:
    def counts(T: Any) -> Any:
        prune, module = T.nn.utils.prune, net(T)
        prune.random_unstructured(module[0], "weight", 0.4)
        prune.random_structured(module[2], "weight", 1, 1)
        return [(m.weight == 0).sum().item() for m in (module[0], module[2])]

    assert counts(rgrad) == counts(torch)


def batch_norm(T: Any, kind: str, n: int, affine: bool = True) -> Any:
    made = getattr(T.nn, kind)(n, affine=affine, dtype=T.float64).eval()
    with T.no_grad():
        for i, (name, value) in enumerate(sorted(made.state_dict().items())):
            if "num" not in name:
                value.copy_(values(T, n, seed=20 + i).abs() + 0.1)
    return made


def test_fusion_is_alike() -> None:
    for bias in (True, False):
        results = []
        for T in (rgrad, torch):
            linear, norm = layer(T, bias=bias).eval(), batch_norm(T, "BatchNorm1d", 3)
            fused = T.nn.utils.fuse_linear_bn_eval(linear, norm)
            x = values(T, 5, 4, seed=1)
            same(fused(x).detach().numpy(), norm(linear(x)).detach().numpy())
            results.append(arrays(fused.state_dict()))
            w, b = T.nn.utils.fuse_conv_bn_weights(
                values(T, 3, 2, 2), None, norm.running_mean, norm.running_var, norm.eps, None, norm.bias
            )
            wt, bt = T.nn.utils.fuse_conv_bn_weights(
                values(T, 2, 3, 2), b, norm.running_mean, norm.running_var, norm.eps, norm.weight, None, True
            )
            results[-1].update({str(i): t.detach().numpy() for i, t in enumerate((w, b, wt, bt))})
        same(*results)


@pytest.mark.parametrize("norm_type", [1, 2, 3.5, float("inf")])
def test_clipping_is_alike(norm_type: float) -> None:
    def run(T: Any) -> Any:
        module = net(T)
        (module(values(T, 5, 4)) ** 2).sum().backward()
        grads = [p.grad for p in module.parameters()]
        total = T.nn.utils.get_total_norm(grads, norm_type)
        T.nn.utils.clip_grads_with_norm_(module.parameters(), 1.5, total)
        again = T.nn.utils.clip_grad_norm_(module.parameters(), 0.5, norm_type)
        return {str(i): g.numpy() for i, g in enumerate(grads)}, [total.item(), again.item()]

    both(run)


LAZY = {
    "LazyLinear": (lambda T: T.nn.LazyLinear(3), (5, 4)),
    "LazyLinear no bias": (lambda T: T.nn.LazyLinear(3, bias=False), (2, 5, 4)),
    "LazyConv1d": (lambda T: T.nn.LazyConv1d(4, 3, stride=2), (2, 3, 9)),
    "LazyConv1d unbatched": (lambda T: T.nn.LazyConv1d(4, 3, padding="same", dilation=2), (3, 9)),
    "LazyConv2d": (lambda T: T.nn.LazyConv2d(4, (3, 2), padding=(1, 0), groups=2), (2, 6, 5, 5)),
    "LazyConv2d no bias": (lambda T: T.nn.LazyConv2d(4, 3, 1, 1, 1, 1, False, "circular"), (2, 3, 5, 5)),
    "LazyConv3d": (lambda T: T.nn.LazyConv3d(2, 2, bias=False, padding_mode="replicate"), (1, 3, 4, 4, 4)),
    "LazyConvTranspose1d": (lambda T: T.nn.LazyConvTranspose1d(4, 3, 2, 1, 1), (2, 3, 5)),
    "LazyConvTranspose2d": (lambda T: T.nn.LazyConvTranspose2d(4, (3, 2), groups=2, dilation=2), (6, 4, 4)),
    "LazyConvTranspose3d": (lambda T: T.nn.LazyConvTranspose3d(2, 2, bias=False), (1, 3, 2, 2, 2)),
    "LazyBatchNorm1d": (lambda T: T.nn.LazyBatchNorm1d(), (5, 4)),
    "LazyBatchNorm2d": (lambda T: T.nn.LazyBatchNorm2d(affine=False), (2, 3, 4, 4)),
    "LazyBatchNorm3d": (lambda T: T.nn.LazyBatchNorm3d(track_running_stats=False), (2, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": (lambda T: T.nn.LazyInstanceNorm1d(), (2, 3, 4)),
    "LazyInstanceNorm2d": (lambda T: T.nn.LazyInstanceNorm2d(affine=True), (2, 3, 4, 4)),
    "LazyInstanceNorm3d": (lambda T: T.nn.LazyInstanceNorm3d(track_running_stats=True), (2, 3, 2, 2, 2)),
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_modules_become_alike(name: str) -> None:
    def run(T: Any) -> Any:
        make, shape = LAZY[name]
        module, loaded = make(T), make(T)
        seen = [module.has_uninitialized_params(), repr(module), list(module.state_dict())]
        # PyTorch cannot copy the lazy buffers of norms, and leaves them 0 features after a state dict was loaded.
        is_linear = "Norm" not in name
        copied = copy.deepcopy(module) if is_linear or T is rgrad else make(T)
        module(values(T, *shape).float())
        seen += [type(module).__name__, repr(module), [tuple(v.shape) for v in module.state_dict().values()]]
        seen += [type(p).__name__ for p in module.parameters()]
        assert not hasattr(module, "_initialize_hook")
        if is_linear or T is rgrad:
            loaded.load_state_dict(module.state_dict())
        seen += [type(loaded).__name__, is_linear and loaded.has_uninitialized_params()]
        loaded(values(T, *shape).float())
        seen += [repr(loaded), type(loaded).__name__]
        copied(values(T, *shape).float())
        return [*seen, repr(copied)]

    assert run(rgrad) == run(torch)


def test_the_adaptive_softmax_is_alike() -> None:
    def run(T: Any) -> Any:
        module = T.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0, head_bias=True, dtype=T.float64)
        with T.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(values(T, *p.shape, seed=i))
        x = values(T, 7, 8, seed=3).requires_grad_(True)
        target = T.tensor([0, 3, 4, 9, 12, 19, 1])
        output, loss = module(x, target)
        loss.backward()
        single = module(x[0], target[2])
        found = [output.tolist(), loss.item(), x.grad.flatten().tolist(), single.output.item(), single.loss.item()]
        found += [module.log_prob(x).flatten().tolist(), module.predict(x).tolist()]
        grads = [p.grad.flatten().tolist() for p in module.parameters()]
        flat = np.concatenate([np.ravel(f) for f in [*found, *grads]])
        return arrays(module.state_dict()), flat

    both(run)
    assert repr(rgrad.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])) == repr(
        torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])
    )


def test_synchronous_batch_norm_is_alike() -> None:
    def run(T: Any) -> Any:
        module = T.nn.Sequential(T.nn.Linear(4, 3), T.nn.BatchNorm1d(3), T.nn.Sequential(T.nn.BatchNorm2d(2)))
        made = T.nn.SyncBatchNorm.convert_sync_batchnorm(module)
        made[1](values(T, 5, 3).float())
        return repr(made), list(made.state_dict()), made[1].running_mean.numpy()

    ours, theirs = run(rgrad), run(torch)
    assert ours[:2] == theirs[:2]
    same(ours[2], theirs[2], 1e-6)


def test_dicts_and_lists_of_parameters_are_alike() -> None:
    def run(T: Any) -> Any:
        def p(value: float) -> Any:
            return T.nn.Parameter(T.full((1, 2), float(value)))

        found: list[Any] = []
        d = T.nn.ParameterDict({"b": p(1), "a": p(2)})
        d.update({"z": p(3), "c": p(4)})
        other = T.nn.ParameterDict([("q", p(1)), ("e", 5)])
        found += [list(d), list(other), list(reversed(d)), list(d | other), repr(other), repr(T.nn.ParameterDict())]
        d |= other
        found += [list(d), d.setdefault("k", 3), d.setdefault("b").tolist(), d.popitem()[0], list(d.copy())]
        found += [list(d.fromkeys(["x", "y"], 1.0)), list(d.state_dict()), len(d)]
        values = T.nn.ParameterList([p(1), T.ones(2), "x"])
        found += [repr(values), repr(T.nn.ParameterList()), repr(T.nn.ParameterList([p(1)])), repr(T.nn.Sequential(d))]
        return [f.replace("torch.", "rgrad.") if isinstance(f, str) else f for f in found]

    assert run(rgrad) == run(torch)


@pytest.mark.parametrize("shape", [(4, 2, 3), (2, 4, 3, 3), (6, 2, 1, 3, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_initial_values_that_are_not_random_are_alike(shape: tuple[int, ...], groups: int) -> None:
    ours, theirs = (T.nn.init.dirac_(T.empty(shape), groups).numpy() for T in (rgrad, torch))
    np.testing.assert_array_equal(ours, theirs)


def test_random_initial_values_are_of_their_kind() -> None:
    for T in (rgrad, torch):
        for shape in ((3, 5), (5, 3), (4, 2, 3)):
            q = T.nn.init.orthogonal_(T.empty(shape, dtype=T.float64), 2.0).reshape(shape[0], -1).numpy() / 2
            gram = q @ q.T if shape[0] <= q.shape[1] else q.T @ q
            np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)
        zeros = (T.nn.init.sparse_(T.empty(10, 7), 0.35) == 0).sum(0).tolist()
        assert zeros == [4] * 7
        with pytest.warns(FutureWarning, match="`nn.init.uniform` is now deprecated in favor of `nn.init.uniform_`"):
            T.nn.init.uniform(T.empty(2))


def grads_of_nothing(T: Any) -> Any:
    return T.nn.utils.clip_grad_norm_((p for p in []), 1.0)


def nan_grads(T: Any) -> Any:
    p = T.nn.Parameter(T.ones(2))
    p.grad = T.tensor([float("nan"), 1.0])
    return T.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def doubled(T: Any, utils: Any) -> None:
    module = layer(T)
    getattr(T.nn.utils, utils)(module)
    getattr(T.nn.utils, utils)(module)


class NoTensor:
    def __new__(cls, T: Any) -> Any:
        class Module(T.nn.Module):
            def forward(self, x: Any) -> Any:
                return 3

        return Module()


def wider(T: Any) -> Any:
    class Module(T.nn.Module):
        def forward(self, x: Any) -> Any:
            return T.cat([x, x])

    return Module()


def lazy_state(T: Any) -> None:
    T.nn.Linear(2, 2).load_state_dict(T.nn.LazyLinear(2).state_dict())


def lazy_shape(T: Any) -> None:
    loaded = T.nn.LazyLinear(2)
    loaded.load_state_dict(T.nn.Linear(3, 2).state_dict())
    loaded(T.ones(1, 5))


MISTAKES = {
    "dirac": lambda T: T.nn.init.dirac_(T.ones(2, 2)),
    "dirac groups": lambda T: T.nn.init.dirac_(T.ones(3, 2, 2), 2),
    "orthogonal rank": lambda T: T.nn.init.orthogonal_(T.ones(3)),
    "sparse rank": lambda T: T.nn.init.sparse_(T.ones(3), 0.5),
    "call of a dict": lambda T: T.nn.ParameterDict()(3),
    "call of a list": lambda T: T.nn.ParameterList()(3),
    "pairs": lambda T: T.nn.ParameterDict([3]),
    "triples": lambda T: T.nn.ParameterDict([(1, 2, 3)]),
    "no mapping": lambda T: T.nn.ParameterDict(3),
    "empty generator": grads_of_nothing,
    "nan": nan_grads,
    "two weight norms": lambda T: doubled(T, "weight_norm"),
    "two spectral norms": lambda T: doubled(T, "spectral_norm"),
    "no weight norm": lambda T: T.nn.utils.remove_weight_norm(layer(T)),
    "no spectral norm": lambda T: T.nn.utils.remove_spectral_norm(layer(T)),
    "power iterations": lambda T: T.nn.utils.parametrizations.spectral_norm(layer(T), n_power_iterations=0),
    "spectral dim": lambda T: T.nn.utils.parametrizations.spectral_norm(layer(T), dim=2),
    "spectral name": lambda T: T.nn.utils.parametrizations.spectral_norm(layer(T), "x"),
    "orthogonal bias": lambda T: T.nn.utils.parametrizations.orthogonal(layer(T), "bias"),
    "orthogonal map": lambda T: T.nn.utils.parametrizations.orthogonal(layer(T), orthogonal_map="x"),
    "no such tensor": lambda T: T.nn.utils.parametrize.register_parametrization(layer(T), "x", T.nn.Identity()),
    "no tensor": lambda T: T.nn.utils.parametrize.register_parametrization(layer(T), "weight", NoTensor(T)),
    "another shape": lambda T: T.nn.utils.parametrize.register_parametrization(layer(T), "weight", wider(T)),
    "not parametrized": lambda T: T.nn.utils.parametrize.remove_parametrizations(layer(T), "weight"),
    "amount": lambda T: T.nn.utils.prune.l1_unstructured(layer(T), "weight", 1.5),
    "amount type": lambda T: T.nn.utils.prune.l1_unstructured(layer(T), "weight", "x"),
    "amount size": lambda T: T.nn.utils.prune.l1_unstructured(layer(T), "weight", 100),
    "scores": lambda T: T.nn.utils.prune.l1_unstructured(layer(T), "weight", 1, importance_scores=T.ones(2)),
    "structured bias": lambda T: T.nn.utils.prune.ln_structured(layer(T), "bias", 1, 2, 0),
    "structured dim": lambda T: T.nn.utils.prune.ln_structured(layer(T), "weight", 1, 2, 3),
    "not pruned": lambda T: T.nn.utils.prune.remove(layer(T), "weight"),
    "global method": lambda T: T.nn.utils.prune.global_unstructured(
        [(layer(T), "weight")], T.nn.utils.prune.LnStructured, amount=1, n=2
    ),
    "training": lambda T: T.nn.utils.fuse_linear_bn_eval(layer(T), batch_norm(T, "BatchNorm1d", 3)),
    "fused features": lambda T: T.nn.utils.fuse_linear_bn_eval(layer(T).eval(), batch_norm(T, "BatchNorm1d", 2)),
    "skip_init": lambda T: T.nn.utils.skip_init(int),
    "skip_init device": lambda T: T.nn.utils.skip_init(T.nn.ReLU),
    "lazy shape": lambda T: T.nn.LazyLinear(2).weight.shape,
    "lazy operation": lambda T: T.nn.LazyLinear(2).weight + 1,
    "lazy state": lazy_state,
    "lazy features": lazy_shape,
    "lazy conv dims": lambda T: T.nn.LazyConv2d(4, 3)(T.ones(2, 3)),
    "lazy conv groups": lambda T: T.nn.LazyConv1d(4, 3, groups=2)(T.ones(2, 3, 5)),
    "lazy conv arguments": lambda T: T.nn.LazyConv1d(),
    "lazy conv padding": lambda T: T.nn.LazyConv1d(4, 3, padding="all"),
    "lazy conv weight": lambda T: T.nn.LazyConv3d(4, 3).weight.shape,
    "lazy transposed mode": lambda T: T.nn.LazyConvTranspose1d(4, 3, padding_mode="reflect"),
    "lazy transposed groups": lambda T: T.nn.LazyConvTranspose2d(4, 3, groups=2)(T.ones(3, 5, 5)),
    "cutoffs": lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, []),
    "cutoffs order": lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2]),
    "targets": lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3])(T.ones(2, 4), T.tensor([1, 7])),
    "target rank": lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3])(T.ones(2, 4), T.ones(2, 2).long()),
    "sync": lambda T: T.nn.SyncBatchNorm(3)(T.ones(3)),
}


# Of these only the type of the error is PyTorch's: messages show a function, or who defines __init__.
OTHER_WORDS = {"lazy operation", "global method", "lazy conv arguments"}
# Messages that show a set, whose order is any.
WITH_SET = {"lazy conv padding"}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned
    words = theirs.message.replace("torch.Size", "rgrad.Size").replace("torch.", "rgrad.")
    agree = sorted(ours.message) == sorted(words) if name in WITH_SET else ours.message == words
    assert agree == (name not in OTHER_WORDS), (ours.message, words)
