"""Reductions and normalisations that leave out masked elements, under the names of ``torch.masked``.

``mask`` is True where an element counts and broadcasts to the input. A slice without elements gives the identity of the
reduction (0 for a sum, minus infinity for a maximum), or nan where there is none. Tensors are dense: PyTorch's
``MaskedTensor`` is not offered.
"""

from ._along import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from ._reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
