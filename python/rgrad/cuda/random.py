"""The random numbers of :mod:`rgrad.cuda` under their module's name."""

from .._runtime.no_device import answering

_NAMES = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.cuda"))
