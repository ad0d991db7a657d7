"""Parameters of a group with gradients and states, as a step takes them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from .._core import Tensor


class Batch:
    """Parameters of a group that have a gradient, with gradients and states."""

    __slots__ = ("grads", "params", "states")

    def __init__(self, params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]) -> None:
        self.params = params
        self.grads = grads
        self.states = states

    def lists(self, *names: str) -> list[list[Any]]:
        """Parameters, gradients, and what their states have under these names."""
        return [self.params, self.grads, *([state[name] for state in self.states] for name in names)]

    def chosen(self, places: Sequence[int]) -> "Batch":
        """The parameters at these places."""
        return Batch(
            [self.params[at] for at in places], [self.grads[at] for at in places], [self.states[at] for at in places]
        )

    def by(self, keys: Sequence[Any]) -> list[tuple[Any, "Batch"]]:
        """The parameters that have one key together."""
        if all(key == keys[0] for key in keys):
            return [(keys[0], self)]
        places: dict[Any, list[int]] = {}
        for at, key in enumerate(keys):
            places.setdefault(key, []).append(at)
        return [(key, self.chosen(found)) for key, found in places.items()]


class Started:
    """The states that a step has made. They are removed if the step fails."""

    __slots__ = ("made", "states")

    def __init__(self, states: defaultdict[Tensor, dict[str, Any]]) -> None:
        self.states = states
        self.made: list[tuple[Tensor, bool]] = []

    def state_of(self, param: Tensor) -> dict[str, Any]:
        """The empty state of a parameter."""
        self.made.append((param, param in self.states))
        return self.states[param]

    def __bool__(self) -> bool:
        return bool(self.made)

    def undo(self) -> None:
        """Let the states be as they were before."""
        for param, was_there in self.made:
            if was_there:
                self.states[param].clear()
            else:
                self.states.pop(param, None)
