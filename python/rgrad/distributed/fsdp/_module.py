"""What modules can do whose parameters lie in shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ..._core import Tensor
from ...nn.modules.module import Module
from ...utils._pytree import tree_map
from ._unit import Unit, in_backward

_HOME = "rgrad.distributed.fsdp"


def unit_of(module: Any) -> Unit | None:
    """The unit of a module that :func:`fully_shard` was called with; None for others."""
    found: Unit | None = getattr(module, "__dict__", {}).get("_fsdp_unit")
    return found


def _bind(module: Module, unit: Unit) -> None:
    """Let all units below the outermost one know each other."""
    context = unit.context
    if context.root is not None:
        return
    context.root = unit
    units = [found for part in unit.modules for sub in part.modules() if (found := unit_of(sub)) is not None]
    context.units = list(dict.fromkeys(units))
    for one in context.units:
        one.free()
        one.context = context
        if one.automatic:
            one.reshard_after_forward = one is not unit


def _cast(values: Any, dtype: Any) -> Any:
    def cast(value: Any) -> Any:
        return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

    return tree_map(cast, values)


def call(module: Module, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call something that uses a module's whole parameters."""
    unit = unit_of(module)
    assert unit is not None
    policy = unit.policy
    if policy.param_dtype is not None and policy.cast_forward_inputs:
        args, kwargs = _cast((args, kwargs), policy.param_dtype)
    _bind(module, unit)
    unit.enter()
    try:
        # What is computed again in backward is kept by those who compute it.
        if unit.context.depth == 1 and not in_backward():
            with unit.context.packing():
                made = function(*args, **kwargs)
        else:
            made = function(*args, **kwargs)
    finally:
        unit.leave(module)
    return made if policy.output_dtype is None else _cast(made, policy.output_dtype)


class UnshardHandle:
    """What :meth:`FSDPModule.unshard` returns with ``async_op=True``.

    Args:
        unit: Whose parameters are gathered.
    """

    __module__ = _HOME

    def __init__(self, unit: Unit | None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Wait until the module has its whole parameters."""
        if self._unit is not None:
            self._unit.register_whole()
            self._unit = None


class FSDPModule:
    """What :func:`fully_shard` adds to the class of a module: the methods here, and a call that gathers parameters.

    Args:
        args: Those of the module's own class: a new one (a part of a container, for instance) is of that class.
        kwargs: Likewise.
    """

    __module__ = _HOME
    _orig_cls_mro_index: int = 2

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        own: Any = cls.__mro__[cls._orig_cls_mro_index]
        made = own.__new__(own, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self
        return call(module, super().__call__, args, kwargs)  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError(
            "fully_shard: a module in shards has no deepcopy; make a new one, and give it the state_dict() of this one"
        )

    def _get_fsdp_state(self) -> Unit:
        found = unit_of(self)
        if found is None:
            raise AssertionError(f"{type(self).__name__} has no FSDP state: fully_shard was not called with it")
        return found

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        return super()._apply(*args, **kwargs)  # type: ignore[misc]

    def _units(self, recurse: bool) -> list[Unit]:
        this: Any = self
        found = (unit_of(module) for module in (this.modules() if recurse else [this]))
        return list(dict.fromkeys(unit for unit in found if unit is not None))

    def reshard(self) -> None:
        """Free this module's whole parameters, and register its shards; not those of modules inside of it."""
        unit = self._get_fsdp_state()
        unit.by_user = False
        if not unit.used:
            unit.register_shards()
            unit.free()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather this module's whole parameters, and register them; not those of modules inside of it.

        They stay until :meth:`reshard`, or until the module's forward has used them.

        Args:
            async_op: Whether to return a handle instead of waiting; forward waits, too.

        Returns:
            The handle, or None.
        """
        unit = self._get_fsdp_state()
        unit.by_user = True
        unit.start()
        handle = UnshardHandle(unit)
        if async_op:
            return handle
        handle.wait()
        return None

    def reset_iter_state(self) -> None:
        """Forget a forward or backward that an error has ended, with gradients that were not reduced."""
        self._get_fsdp_state().context.reset()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Say whether whole parameters are freed when the next backward ends; call it on the outermost module.

        Args:
            is_last_backward: False while more backward passes of the same forward follow.
        """
        self._get_fsdp_state().context.is_last = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Say whether backward reduces gradients. Without that each process sums those of whole parameters.

        Args:
            requires_gradient_sync: False for all but the last of several passes whose gradients are summed.
            recurse: Whether it holds for modules inside, too.
        """
        for unit in self._units(recurse):
            unit.sync = unit.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Say whether backward reduces gradients over replicas of shards, on a mesh of two dimensions.

        Args:
            requires_all_reduce: False for all but the last of several passes whose gradients are summed.
            recurse: Whether it holds for modules inside, too.
        """
        for unit in self._units(recurse):
            unit.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Say whether forward frees whole parameters.

        Args:
            reshard_after_forward: Whether it does.
            recurse: Whether it holds for modules inside, too.

        Raises:
            ValueError: It is no bool.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward).__name__}")
        for unit in self._units(recurse):
            unit.automatic, unit.reshard_after_forward = False, reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Say whether backward frees whole parameters, instead of keeping them for the next forward.

        Args:
            reshard_after_backward: Whether it does.
            recurse: Whether it holds for modules inside, too.
        """
        for unit in self._units(recurse):
            unit.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters begin to be gathered when this module's forward begins.

        Args:
            modules: The modules.
        """
        self._get_fsdp_state().forward_prefetch = _states(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters begin to be gathered with this module's in backward; by default the one before it.

        Args:
            modules: The modules.
        """
        self._get_fsdp_state().backward_prefetch = _states(modules)

    def set_custom_all_gather(self, comm: Any) -> NoReturn:
        """Refuse: parameters are gathered by MPI.

        Args:
            comm: What would do it.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("set_custom_all_gather: parameters are gathered by MPI, one call for each")

    def set_custom_reduce_scatter(self, comm: Any) -> NoReturn:
        """Refuse: gradients are reduced by MPI.

        Args:
            comm: What would do it.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "set_custom_reduce_scatter: gradients are reduced by MPI; set_all_reduce_hook sees the results"
        )

    def set_all_reduce_hook(self, hook: Callable[[Tensor], None], *, stream: Any = None) -> None:
        """Call ``hook(gradient)`` with the reduced gradient of each shard, which it may change in place.

        Args:
            hook: The function.
            stream: Accepted; has no effect.
        """
        self._get_fsdp_state().hook = hook

    def set_post_optim_event(self, event: Any) -> None:
        """Do nothing: there are no streams that must wait.

        Args:
            event: Accepted; has no effect.
        """

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Say by what the sum of gradients over the processes is divided; by default by their number.

        Args:
            factor: The number.
        """
        self._get_fsdp_state().divisor = float(factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Do nothing: gradients are summed and then divided.

        Args:
            enable: Accepted; has no effect.
        """

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *, recurse: bool = True) -> None:
        """Do nothing: processes may always use different parameters of a unit.

        Args:
            reduce_scatter_unused_params: Accepted; has no effect.
            recurse: Accepted; has no effect.
        """

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Do nothing: backward waits for each reduction.

        Args:
            max_input_buffers: Accepted; has no effect.
            recurse: Accepted; has no effect.
        """

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Do nothing: gathers and reductions go through one group.

        Args:
            enable: Accepted; has no effect.
            recurse: Accepted; has no effect.
        """

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Do nothing: backward gathers only what it needs.

        Args:
            unshard_in_backward: Accepted; has no effect.
        """

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Do nothing: MPI takes memory as it is.

        Args:
            enable: Accepted; has no effect.
        """

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """Do nothing: MPI takes memory as it is.

        Args:
            backend: Accepted; has no effect.
        """

    def _set_unshard_async_op(self, async_op: bool) -> None:
        """Do nothing: gathers always run beside what is computed."""


def _states(modules: Iterable[Any]) -> list[Unit]:
    found = []
    for module in modules:
        unit = unit_of(module)
        if unit is None:
            raise ValueError(f"expected an FSDPModule, got {type(module).__name__}: call fully_shard with it first")
        found.append(unit)
    return found


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method gather parameters as forward does.

    Args:
        module: A module; nothing happens if :func:`fully_shard` was not called with it.
        method_name: The method.

    Raises:
        ValueError: There is no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"register_fsdp_forward_method: {type(module).__name__} has no method {method_name!r}")
    method = getattr(module, method_name)

    def gathering(*args: Any, **kwargs: Any) -> Any:
        return call(module, method, args, kwargs)

    gathering.__name__, gathering.__doc__ = method_name, method.__doc__
    object.__setattr__(module, method_name, gathering)


register_fsdp_forward_method.__module__ = _HOME
