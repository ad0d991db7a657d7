"""Timing of small pieces of code: `Timer`, the `Measurement` that it returns, and `Compare`, a table of several."""

from .callgrind import CallgrindStats as CallgrindStats
from .callgrind import CopyIfCallgrind as CopyIfCallgrind
from .callgrind import FunctionCount as FunctionCount
from .callgrind import FunctionCounts as FunctionCounts
from .compare import Colorize as Colorize
from .compare import Compare as Compare
from .measurement import Measurement as Measurement
from .measurement import TaskSpec as TaskSpec
from .measurement import ordered_unique as ordered_unique
from .measurement import select_unit as select_unit
from .measurement import set_torch_threads as set_torch_threads
from .measurement import trim_sigfig as trim_sigfig
from .measurement import unit_to_english as unit_to_english
from .timer import Language as Language
from .timer import Timer as Timer
from .timer import timer as timer

__all__ = [
    "CallgrindStats",
    "Colorize",
    "Compare",
    "CopyIfCallgrind",
    "FunctionCount",
    "FunctionCounts",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
