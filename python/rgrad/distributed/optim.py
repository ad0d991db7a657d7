"""Optimizers whose states lie in parts in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core import Tensor
from ..optim.optimizer import Optimizer
from ._collectives import broadcast
from ._group import ProcessGroup, of
from ._objects import gather_object


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer of which each process has the states of some parameters, and steps those.

    After a step each process gives the others its parameters, so that all have the same ones: those of the whole
    optimizer, bit for bit.

    Args:
        params: All parameters, or groups of them, the same in all processes.
        optimizer_class: What steps parameters, for instance :class:`rgrad.optim.Adam`.
        process_group: The processes; by default all of them.
        parameters_as_bucket_view: Accepted; has no effect.
        overlap_with_ddp: False.
        **defaults: What the optimizer's class takes, too.

    Raises:
        ValueError: There is no process group.
        NotImplementedError: ``overlap_with_ddp`` is True.

    Example:
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> net = nn.Linear(2, 1)
        >>> optimizer = rgrad.distributed.optim.ZeroRedundancyOptimizer(net.parameters(), rgrad.optim.Adam, lr=0.1)
        >>> net(rgrad.ones(1, 2)).sum().backward()
        >>> before = net.bias.item()
        >>> optimizer.step()
        >>> round(before - net.bias.item(), 4)
        0.1
        >>> rgrad.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not there; gradients are reduced while backward "
                "runs, and the "
                "step comes after it"
            )
        self.process_group = of(process_group)
        self._class, self._given = optimizer_class, defaults
        self._all_states: list[Any] | None = None
        self.optim: Optimizer | None = None
        super().__init__(params, defaults)
        self._divide()

    def _numbered(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _divide(self) -> None:
        """Say who has which parameters: the largest come first, each to who has the fewest elements."""
        sizes = [0] * self.process_group.size()
        parameters = self._numbered()
        self._owner: dict[int, int] = {}
        for number in sorted(range(len(parameters)), key=lambda n: -parameters[n].numel()):
            rank = sizes.index(min(sizes))
            self._owner[number] = rank
            sizes[rank] += parameters[number].numel()
        mine, groups, number = self.process_group.rank(), [], 0
        for group in self.param_groups:
            own = [p for k, p in enumerate(group["params"], number) if self._owner[k] == mine]
            number += len(group["params"])
            groups.append({**group, "params": own})
        before = None if self.optim is None else self.optim.state
        self.optim = self._class(groups, **self._given)
        if before is not None:
            self.optim.state.update(
                {p: s for p, s in before.items() if any(p is own for g in groups for own in g["params"])}
            )
        # What the optimizer's class adds to the settings is to be seen here.
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in inner.items():
                group.setdefault(name, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; all processes do it.

        Args:
            param_group: The parameters, ``params``, and their settings.
        """
        super().add_param_group(param_group)
        if getattr(self, "optim", None) is not None:
            self._divide()

    def _settings(self) -> None:
        """Schedulers change the settings of this optimizer; the one that steps gets them."""
        assert self.optim is not None
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            inner.update({name: value for name, value in group.items() if name != "params"})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step the parameters of this process, and get those of the others.

        Args:
            closure: Computes the loss again.
            **kwargs: What the optimizer's class takes.

        Returns:
            What the closure gives, or None.
        """
        assert self.optim is not None
        self._settings()
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        works = [
            broadcast(parameter.detach(), group=self.process_group, async_op=True, group_src=self._owner[number])
            for number, parameter in enumerate(self._numbered())
        ]
        for work in works:
            if work is not None:
                work.wait()
        return loss

    def _own_state(self) -> dict[int, Any]:
        assert self.optim is not None
        state = self.optim.state
        return {number: state[p] for number, p in enumerate(self._numbered()) if p in state}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states in one process, so that it can call :meth:`state_dict`. All processes call it.

        Args:
            to: The process, by its place among all.
        """
        here = self.process_group.ranks[self.process_group.rank()] == to
        states: list[Any] = [None] * self.process_group.size()
        gather_object(self._own_state(), states if here else None, dst=to, group=self.process_group)
        self._all_states = states if here else None

    def state_dict(self) -> dict[str, Any]:
        """The states and settings of all processes, in the form of the whole optimizer.

        Returns:
            What :meth:`load_state_dict` and the optimizer's class itself can load.

        Raises:
            RuntimeError: They have not been collected in this process.
        """
        if self._all_states is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.process_group.ranks[self.process_group.rank()]})` on all ranks beforehand if you meant to "
                f"save the "
                "global state."
            )
        state = {number: value for part in self._all_states for number, value in part.items()}
        groups, number = [], 0
        for group in self.param_groups:
            count = len(group["params"])
            groups.append({**group, "params": list(range(number, number + count))})
            number += count
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take states and settings; each process keeps those of its parameters. All processes call it.

        Args:
            state_dict: That of the whole optimizer.
        """
        assert self.optim is not None
        saved = [len(group["params"]) for group in state_dict["param_groups"]]
        if saved != [len(group["params"]) for group in self.param_groups]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                "got groups "
                f"of {saved}"
            )
        # The optimizer's class does the rest: it knows what to cast.
        mine, number, groups, state = self.process_group.rank(), 0, [], {}
        own = 0
        for group in state_dict["param_groups"]:
            places = []
            for _ in group["params"]:
                if self._owner[number] == mine:
                    if number in state_dict["state"]:
                        state[own] = state_dict["state"][number]
                    places.append(own)
                    own += 1
                number += 1
            groups.append({**group, "params": places})
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        for group, loaded in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in loaded.items() if name != "params"})


__all__ = ["ZeroRedundancyOptimizer"]
