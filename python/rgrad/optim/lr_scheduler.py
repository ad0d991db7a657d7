"""Learning rate schedules: ``scheduler.step()`` once after each epoch (or step) sets ``lr`` of every group."""

from ._lr_base import EPOCH_DEPRECATION_WARNING, LRScheduler
from ._lr_compose import ChainedScheduler, SequentialLR
from ._lr_cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._lr_factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from ._lr_plateau import ReduceLROnPlateau


class _LRScheduler(LRScheduler):
    """The older name of the base class, which programs derive schedules from."""


__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
