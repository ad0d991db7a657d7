"""Modules as functions, in PyTorch and in rgrad: parameters that are replaced, buffers, ensembles."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from func_kit import compared, point


def linear(T: Any, n: int, m: int, seed: int = 0) -> Any:
    made = T.nn.Linear(n, m).double()
    with T.no_grad():
        made.weight.copy_(point(T, m, n, seed=seed))
        made.bias.copy_(point(T, m, seed=seed + 1))
    return made


def own(module: Any) -> dict[str, Any]:
    return {name: p.detach() for name, p in module.named_parameters()}


def tied(T: Any) -> Any:
    class Tied(T.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = linear(T, 3, 3), linear(T, 3, 3, seed=4)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    return Tied()


def counting(T: Any, replace: bool) -> Any:
    class Counting(T.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", T.zeros((), dtype=T.float64))
            self.w = T.nn.Parameter(point(T, 3))

        def forward(self, x: Any) -> Any:
            if replace:
                self.n = self.n + 1
            else:
                self.n.add_(1)
            return (x * self.w + self.n).sum()

    return Counting()


def called(T: Any, module: Any, given: Any, x: Any = None, **more: Any) -> Any:
    found = T.func.functional_call(module, given, (point(T, 3) if x is None else x,), **more)
    return found.detach()


def buffers(T: Any, replace: bool, how: str) -> Any:
    module = counting(T, replace)
    x, held = point(T, 3), {name: b.clone() for name, b in module.named_buffers()}

    def f(p: Any, b: Any) -> Any:
        return T.func.functional_call(module, (p, b), (x,)), b

    if how == "plain":
        found = f(own(module), held)
    elif how == "captured":
        found = T.func.grad(lambda p: T.func.functional_call(module, p, (x,)))(own(module))
    elif how == "aux":
        found = T.func.grad(f, has_aux=True)(own(module), held)
    else:
        found = T.func.vmap(lambda y: T.func.functional_call(module, own(module), (y,)))(point(T, 2, 3))
    return found, held, module.n


def ensemble(T: Any, models: Any, x: Any) -> Any:
    params, held = T.func.stack_module_state(models)
    found = T.func.vmap(lambda p, b, x: T.func.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(
        params, held, x
    )
    return found.detach(), sorted(params), [(p.requires_grad, p.is_leaf) for p in params.values()]


def other_modes(T: Any) -> Any:
    models = [linear(T, 3, 2), linear(T, 3, 2).eval()]
    return T.func.stack_module_state(models)


def other_flags(T: Any) -> Any:
    models = [linear(T, 3, 2), linear(T, 3, 2)]
    models[1].weight.requires_grad_(False)
    return T.func.stack_module_state(models)


def left_as_it_was(T: Any) -> Any:
    module = linear(T, 3, 2)
    weight = module.weight
    with pytest.raises(RuntimeError):
        T.func.functional_call(module, own(module), point(T, 7))
    return module.weight is weight, module.weight.requires_grad


def per_sample(T: Any) -> Any:
    module = linear(T, 3, 2)

    def loss(p: Any, x: Any, y: Any) -> Any:
        return T.nn.functional.mse_loss(T.func.functional_call(module, p, (x.unsqueeze(0),)), y.unsqueeze(0))

    return T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))(own(module), point(T, 5, 3), point(T, 5, 2))


def hessian(T: Any) -> Any:
    module = linear(T, 2, 1)
    return T.func.hessian(lambda p: T.func.functional_call(module, p, (point(T, 2),)).tanh().sum())(own(module))


MODULES: dict[str, Any] = {
    "call": lambda T: called(T, linear(T, 3, 2), {n: p * 2 for n, p in own(linear(T, 3, 2)).items()}),
    "some parameters": lambda T: called(T, linear(T, 3, 2), {"bias": T.zeros(2, dtype=T.float64)}),
    "keywords": lambda T: T.func.functional_call(linear(T, 3, 2), own(linear(T, 3, 2)), kwargs={"input": point(T, 3)}),
    "unknown name": lambda T: called(T, linear(T, 3, 2), {"foo": point(T, 2)}),
    "unknown path": lambda T: called(T, linear(T, 3, 2), {"foo.bar": point(T, 2)}),
    "strict, unknown": lambda T: called(T, linear(T, 3, 2), {**own(linear(T, 3, 2)), "foo": point(T, 2)}, strict=True),
    "strict, missing": lambda T: called(T, linear(T, 3, 2), {"bias": point(T, 2)}, strict=True),
    "no tensor": lambda T: called(T, linear(T, 3, 2), {"bias": 3}),
    "None": lambda T: called(T, linear(T, 3, 2), {"bias": None}),
    "wrong shape": lambda T: called(T, linear(T, 3, 2), {"bias": point(T, 5)}),
    "tied": lambda T: called(T, tied(T), {"a.weight": point(T, 3, 3, seed=8)}),
    "tied, the other": lambda T: called(T, tied(T), {"b.weight": point(T, 3, 3, seed=8)}),
    "untied": lambda T: called(T, tied(T), {"a.weight": point(T, 3, 3, seed=8)}, tie_weights=False),
    "tied to two": lambda T: called(T, tied(T), {"a.weight": point(T, 3, 3), "b.weight": point(T, 3, 3)}),
    "tied, strict": lambda T: called(T, tied(T), own(tied(T)), strict=True),
    "tied, gradient": lambda T: T.func.grad(lambda p: T.func.functional_call(tied(T), p, point(T, 3)).sum())(
        own(tied(T))
    ),
    "left as it was": left_as_it_was,
    **{
        f"buffers {'replaced' if replace else 'written'}, {how}": partial(
            lambda replace, how, T: buffers(T, replace, how), replace, how
        )
        for replace in (True, False)
        for how in ("plain", "captured", "aux", "vmap")
    },
    "ensemble": lambda T: ensemble(T, [linear(T, 3, 2, seed=i) for i in range(4)], point(T, 5, 3)),
    "ensemble, frozen": lambda T: ensemble(
        T, [linear(T, 3, 2, seed=i).requires_grad_(False) for i in range(2)], point(T, 5, 3)
    ),
    "ensemble of other modes": other_modes,
    "ensemble of other flags": other_flags,
    "ensemble of other classes": lambda T: T.func.stack_module_state(
        [linear(T, 3, 2), T.nn.Sequential(linear(T, 3, 2))]
    ),
    "ensemble of other shapes": lambda T: T.func.stack_module_state([linear(T, 3, 2), linear(T, 3, 4)]),
    "ensemble of a generator": lambda T: T.func.stack_module_state(linear(T, 3, 2) for _ in range(2)),
    "per-sample gradients": per_sample,
    "hessian": hessian,
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    compared(MODULES[name])
