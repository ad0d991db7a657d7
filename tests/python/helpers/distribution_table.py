"""The distributions that are not made of others, with parameters, and what SciPy has beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

_RNG = np.random.default_rng(0)
_FACTOR = _RNG.normal(size=(2, 3, 3))
COVARIANCE = _FACTOR @ _FACTOR.swapaxes(-1, -2) + np.eye(3)


@dataclass(frozen=True)
class Case:
    """One class with parameters: arrays are tensors of a batch, other values are given as they are."""

    kind: str
    parameters: dict[str, Any]
    # What SciPy has, made of the parameters.
    reference: Callable[..., Any] | None = None
    # Whether a sample follows from one random number, which is its quantile.
    by_quantile: bool = False
    discrete: bool = False
    # Mean and variance are finite.
    moments: bool = True
    # Other parameters of the same shapes, for divergences.
    other: dict[str, Any] = field(default_factory=dict)
    # Matrices that have to stay positive definite, or triangular, cannot be moved one number at a time.
    differentiable: tuple[str, ...] | None = None

    def make(self, library: Any, other: bool = False, **options: Any) -> Any:
        """The distribution in rgrad or PyTorch."""
        given = self.parameters | self.other if other else self.parameters
        made = {name: library.tensor(v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
        return getattr(library.distributions, self.kind)(**made, **options)

    def scipy(self) -> Any:
        assert self.reference is not None
        return self.reference(**self.parameters)


def _a(*values: float) -> np.ndarray:
    return np.array(values)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_P, _Q = _a(0.2, 0.5, 0.9), _a(0.35, 0.6, 0.75)
_LOC, _SCALE = _a(-1.0, 0.3, 2.0), _a(0.5, 1.0, 2.5)
_A, _B = _a(0.6, 1.5, 4.0), _a(2.0, 0.8, 3.0)
_WEIGHTS = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])
_PLACE = {"other": {"loc": _LOC * 0.7 + 0.2, "scale": _SCALE * 1.3}}

CASES: dict[str, Case] = {
    "bernoulli": Case(
        "Bernoulli", {"probs": _P}, lambda probs: stats.bernoulli(probs), False, True, True, {"probs": _Q}
    ),
    "bernoulli of logits": Case(
        "Bernoulli", {"logits": _LOC}, lambda logits: stats.bernoulli(_sigmoid(logits)), discrete=True
    ),
    "geometric": Case(
        "Geometric", {"probs": _P}, lambda probs: stats.geom(probs, loc=-1), False, True, True, {"probs": _Q}
    ),
    "geometric of logits": Case(
        "Geometric", {"logits": _LOC}, lambda logits: stats.geom(_sigmoid(logits), loc=-1), discrete=True
    ),
    "binomial": Case(
        "Binomial",
        {"total_count": 6, "probs": _P},
        lambda total_count, probs: stats.binom(total_count, probs),
        False,
        True,
        True,
        {"probs": _Q},
    ),
    "binomial of logits": Case(
        "Binomial",
        {"total_count": _a(2.0, 6.0, 9.0), "logits": _LOC},
        lambda total_count, logits: stats.binom(total_count, _sigmoid(logits)),
        discrete=True,
        differentiable=("logits",),
    ),
    "negative binomial": Case(
        "NegativeBinomial",
        {"total_count": _a(0.7, 3.0, 5.5), "probs": _a(0.2, 0.5, 0.7)},
        lambda total_count, probs: stats.nbinom(total_count, 1 - probs),
        discrete=True,
    ),
    "poisson": Case("Poisson", {"rate": _B}, lambda rate: stats.poisson(rate), False, True, True, {"rate": _A}),
    "exponential": Case(
        "Exponential", {"rate": _B}, lambda rate: stats.expon(scale=1 / rate), True, other={"rate": _A}
    ),
    "gamma": Case(
        "Gamma",
        {"concentration": _A, "rate": _B},
        lambda concentration, rate: stats.gamma(concentration, scale=1 / rate),
        True,
        other={"concentration": _B, "rate": _A},
    ),
    "chi2": Case("Chi2", {"df": _B}, lambda df: stats.chi2(df), True, other={"df": _A}),
    "beta": Case(
        "Beta",
        {"concentration1": _A, "concentration0": _B},
        lambda concentration1, concentration0: stats.beta(concentration1, concentration0),
        True,
        other={"concentration1": _B, "concentration0": _A},
    ),
    "cauchy": Case("Cauchy", {"loc": _LOC, "scale": _SCALE}, stats.cauchy, True, moments=False, **_PLACE),
    "laplace": Case("Laplace", {"loc": _LOC, "scale": _SCALE}, stats.laplace, True, **_PLACE),
    "normal": Case("Normal", {"loc": _LOC, "scale": _SCALE}, stats.norm, True, **_PLACE),
    "uniform": Case(
        "Uniform",
        {"low": _LOC, "high": _LOC + _SCALE},
        lambda low, high: stats.uniform(low, high - low),
        True,
        other={"low": _LOC - _a(0.5, -0.1, 0), "high": _LOC + 1.5 * _SCALE},
    ),
    "student": Case(
        "StudentT",
        {"df": _a(5.0, 8.0, 12.0), "loc": _LOC, "scale": _SCALE},
        lambda df, loc, scale: stats.t(df, loc, scale),
    ),
    "fisher snedecor": Case(
        "FisherSnedecor", {"df1": _B, "df2": _a(9.0, 12.0, 20.0)}, lambda df1, df2: stats.f(df1, df2)
    ),
    "generalized pareto": Case(
        "GeneralizedPareto",
        {"loc": _LOC, "scale": _SCALE, "concentration": _a(-0.4, 0.0, 0.15)},
        lambda loc, scale, concentration: stats.genpareto(concentration, loc, scale),
        True,
        differentiable=("loc", "scale"),
    ),
    "von mises": Case(
        "VonMises",
        {"loc": _LOC, "concentration": _a(0.1, 2.0, 60.0)},
        lambda loc, concentration: stats.vonmises(concentration, loc),
        moments=False,
    ),
    "continuous bernoulli": Case(
        "ContinuousBernoulli", {"probs": _a(0.2, 0.5, 0.97)}, None, True, other={"probs": _a(0.4, 0.7, 0.5005)}
    ),
    "gumbel": Case("Gumbel", {"loc": _LOC, "scale": _SCALE}, stats.gumbel_r, True, **_PLACE),
    "inverse gamma": Case(
        "InverseGamma",
        {"concentration": _a(5.0, 7.0, 9.0), "rate": _B},
        lambda concentration, rate: stats.invgamma(concentration, scale=rate),
        True,
    ),
    "kumaraswamy": Case("Kumaraswamy", {"concentration1": _A, "concentration0": _B}, None, True),
    "pareto": Case(
        "Pareto",
        {"scale": _SCALE, "alpha": _a(5.0, 6.0, 8.0)},
        lambda scale, alpha: stats.pareto(alpha, scale=scale),
        True,
        other={"scale": _SCALE * 0.8, "alpha": _a(4.0, 6.0, 9.0)},
    ),
    "weibull": Case(
        "Weibull",
        {"scale": _SCALE, "concentration": _A + 0.4},
        lambda scale, concentration: stats.weibull_min(concentration, scale=scale),
        True,
    ),
    "categorical": Case(
        "Categorical", {"probs": _WEIGHTS}, discrete=True, moments=False, other={"probs": _WEIGHTS[::-1].copy()}
    ),
    "categorical of logits": Case("Categorical", {"logits": 3 * _WEIGHTS}, discrete=True, moments=False),
    "one-hot": Case("OneHotCategorical", {"probs": _WEIGHTS}, discrete=True, other={"probs": _WEIGHTS[::-1].copy()}),
    "straight-through": Case("OneHotCategoricalStraightThrough", {"logits": 3 * _WEIGHTS}, discrete=True),
    "multinomial": Case("Multinomial", {"total_count": 4, "probs": _WEIGHTS}, discrete=True),
    "dirichlet": Case("Dirichlet", {"concentration": 5 * _WEIGHTS}, other={"concentration": 3 * _WEIGHTS[::-1].copy()}),
    "normal vectors": Case(
        "MultivariateNormal",
        {"loc": _FACTOR[0, :2], "covariance_matrix": COVARIANCE},
        other={"covariance_matrix": COVARIANCE[::-1] * 1.5},
        differentiable=("loc",),
    ),
    "normal vectors of one precision": Case(
        "MultivariateNormal", {"loc": _FACTOR[0, :2], "precision_matrix": COVARIANCE[0]}, differentiable=("loc",)
    ),
    "normal vectors of a factor": Case(
        "MultivariateNormal",
        {"loc": _FACTOR[0, 0], "scale_tril": np.linalg.cholesky(COVARIANCE)},
        differentiable=("loc",),
    ),
    "normal vectors of low rank": Case(
        "LowRankMultivariateNormal",
        {"loc": _FACTOR[0, :2], "cov_factor": _FACTOR[:, :, :2].copy(), "cov_diag": _SCALE},
        other={"cov_factor": _FACTOR[::-1, :, :2] * 0.6, "cov_diag": _SCALE[::-1].copy()},
    ),
    "wishart": Case("Wishart", {"df": _a(5.0, 7.5), "covariance_matrix": COVARIANCE}, differentiable=("df",)),
    "wishart of a factor": Case(
        "Wishart", {"df": _a(4.5), "scale_tril": np.linalg.cholesky(COVARIANCE)}, differentiable=("df",)
    ),
    "correlations": Case("LKJCholesky", {"dim": 3, "concentration": _A}, moments=False),
}
UNIVARIATE = [name for name, case in CASES.items() if case.reference is not None]
