"""PyTorch's wrapper for several processes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...distributed import ProcessGroup, all_gather_object, broadcast, broadcast_object_list, group
from ...distributed._group import NOT_READY
from ...distributed._mpi import Alone
from ...distributed._tree import fits
from ...utils._pytree import tree_flatten
from ..modules.module import Module
from ._join import Join
from ._reducer import MEGABYTE, GradBucket, Reducer, divided, unreached
from ._shards import Shards

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Trains one module in several processes, each with its own part of a batch.

    Gradients are the means over all processes.

    They are sent in buckets while backward still computes others. Names in state dicts begin with ``module.``.

    Results do not depend on the number of processes: a batch is divided into a fixed number of virtual shards, each
    process computes its shards one after the other, and their gradients are summed in one fixed tree. 1, 2, 4 and 8
    processes with the same global batch end with the same bits. A virtual shard behaves as one of so many processes:
    batch norms have the statistics of their shard (:class:`rgrad.nn.SyncBatchNorm` those of the whole batch), and the
    running ones are those of the first shard.

    Args:
        module: The module.
        device_ids: None or empty, since there are no CUDA devices.
        output_device: None.
        dim: Accepted; has no effect.
        broadcast_buffers: Whether the first process's buffers are those of all before each call; by default True.
        init_sync: Whether the first process's parameters and buffers are those of all from the beginning.
        process_group: What :func:`rgrad.distributed.new_group` has made; by default the group of all processes.
        bucket_cap_mb: How many MiB of gradients are sent at once; by default 25, and 1 for the first.
        find_unused_parameters: Whether parameters may have no part in an output; the graph is searched for them.
        check_reduction: Accepted; has no effect.
        gradient_as_bucket_view: Whether gradients are views of what is sent, which saves a copy of them.
        static_graph: Whether each pass uses the same parameters, equally often.
        delay_all_reduce_named_params: Accepted; has no effect.
        param_to_hook_all_reduce: Accepted; has no effect.
        mixed_precision: None.
        device_mesh: None.
        skip_all_reduce_unused_params: Accepted; has no effect.
        bucket_cap_mb_list: Accepted; has no effect.
        batched_grad_copy: Accepted; has no effect.
        forward_sync_buffers: Accepted; has no effect.
        deterministic: Whether results are to be the same for any number of processes; otherwise MPI sums in an order
            of its own.
        virtual_shards: Into how many shards a global batch is divided: a power of two.

    Shape:
        As the module.

    Raises:
        RuntimeError: No parameter requires grad, parameters differ between processes, or ``mixed_precision`` or
            ``device_mesh`` is given.
        ValueError: There is no process group, ``device_ids`` or ``output_device`` is given, or ``virtual_shards`` is
            no power of two.

    Example:
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> list(net.state_dict())
        ['module.weight', 'module.bias']
        >>> net(rgrad.ones(3, 2)).shape
        rgrad.Size([3, 1])
        >>> rgrad.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        *,
        deterministic: bool = True,
        virtual_shards: int = 8,
    ) -> None:
        super().__init__()
        if mixed_precision is not None or device_mesh is not None:
            raise RuntimeError(
                "DistributedDataParallel: mixed_precision and device_mesh are for several devices; use autocast for "
                "computing in a narrower dtype, and process_group for a part of the processes"
            )
        if process_group is None and group.WORLD is None:
            raise ValueError(NOT_READY)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
                "multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}; there are no CUDA devices"
            )
        if virtual_shards < 1 or virtual_shards & (virtual_shards - 1):
            raise ValueError(f"DistributedDataParallel: virtual_shards must be a power of two, got {virtual_shards}")
        members = process_group or group.WORLD
        assert members is not None
        self.module = module
        self.process_group = members
        self.dim = dim
        self.device_ids = None
        self.output_device = None
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        self.parameters_to_ignore = ignored
        self._named = named
        self._cap = MEGABYTE * (25 if bucket_cap_mb is None else bucket_cap_mb)
        self._first_cap = MEGABYTE if bucket_cap_mb is None else self._cap
        size = members.size()
        self._tree = deterministic and fits(size, virtual_shards)
        self._shards: Shards | None = None
        self._reducer: Reducer | None = None
        self._join: Join | None = None
        self._joined_calls = 0
        # Alone without MPI there is nothing to send, and the module is called as it is.
        if not isinstance(members.link, Alone):
            self._start(size, virtual_shards, init_sync)

    def _start(self, size: int, virtual_shards: int, init_sync: bool) -> None:
        """Make all processes begin alike."""
        if size > 1:
            self._same_parameters()
            if init_sync:
                self._sync([*(p for _, p in self.module.named_parameters()), *self._buffers_to_sync()])
        if self._tree:
            base = [_core.default_generator.initial_seed()]
            broadcast_object_list(base, group=self.process_group, group_src=0)
            each = virtual_shards // size
            self._shards = Shards(self.module, each, each * self.process_group.rank(), base[0], self.process_group)
        self._reduce()

    def _reduce(self) -> Reducer:
        if self._reducer is None:
            parameters = [parameter for _, parameter in self._named]
            self._reducer = Reducer(
                parameters,
                [name for name, _ in self._named],
                self.process_group,
                divided(parameters, int(self._first_cap), int(self._cap)),
                tree=self._tree,
                views=self.gradient_as_bucket_view,
                unused=self.find_unused_parameters,
                static=self.static_graph,
            )
        return self._reducer

    def _same_parameters(self) -> None:
        mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in self._named]
        all_of_them: list[Any] = [None] * self.process_group.size()
        all_gather_object(all_of_them, mine, self.process_group)
        for rank, other in enumerate(all_of_them):
            if len(other) != len(all_of_them[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(all_of_them[0])} params, while rank "
                    f"{rank} has inconsistent {len(other)} params."
                )
            for (name, *first), (other_name, *second) in zip(all_of_them[0], other, strict=True):
                if first != second:
                    raise RuntimeError(
                        f"DDP expects same model across all ranks: parameter {name} has shape {first[0]} and dtype "
                        f"{first[1]} on rank 0, and {other_name} has {second[0]} and {second[1]} on rank {rank}"
                    )

    def _buffers_to_sync(self) -> list[Tensor]:
        return [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _sync(self, tensors: list[Tensor], source: int = 0) -> None:
        """Give all processes the tensors of one."""
        works = [broadcast(t, group=self.process_group, async_op=True, group_src=source) for t in tensors]
        for work in works:
            if work is not None:
                work.wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        reducer = self._reducer
        if reducer is None:
            return self.module(*inputs, **kwargs)
        if self._join is not None and self.require_backward_grad_sync:
            self._join.begin(reducer)
            self._joined_calls += 1
        if self.broadcast_buffers and self.require_backward_grad_sync and self.process_group.size() > 1:
            with no_grad():
                self._sync(self._buffers_to_sync())
        recorded = _core.is_grad_enabled()
        if self._shards is not None and recorded:
            outputs = self._shards(inputs, kwargs)
        else:
            outputs = self.module(*inputs, **kwargs)
        if recorded and self.require_backward_grad_sync:
            without: set[int] = set()
            if self.find_unused_parameters and not self.static_graph:
                found = [leaf for leaf in tree_flatten(outputs)[0] if isinstance(leaf, Tensor)]
                without = unreached(found, reducer.parameters)
            reducer.prepare(without)
        else:
            reducer.active = False
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose gradients stay in this process until the first backward pass after it.

        That one averages them, too.

        Yields:
            None.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """A block for processes with unequal numbers of batches.

        A process that has no more of them takes part in the others' sums with zeros. At the end all have the
        parameters of one that had the most batches.

        Args:
            divide_by_initial_world_size: Whether means are over all processes, or over those that still have batches.
            enable: Whether numbers may differ; otherwise the block does nothing.
            throw_on_early_termination: Whether all processes raise as soon as one has no more batches.

        Yields:
            None.

        Raises:
            RuntimeError: A process has no more batches, and that is to be an error.
        """
        reducer = self._reducer
        if not enable or reducer is None or self.process_group.size() == 1:
            yield
            return
        if reducer.hook is not None:
            raise RuntimeError(
                "DistributedDataParallel: join does not work with communication hooks; leave one of them away"
            )
        self._join = Join(self.process_group, divide_by_initial_world_size, throw_on_early_termination)
        self._joined_calls = 0
        try:
            yield
            # Nobody takes part in the sums of a process that has raised.
            while self._join.follow(reducer):
                if self.broadcast_buffers:
                    self._sync(self._buffers_to_sync())
                self._join.sum_zeros(reducer)
            tensors = [*(p.detach() for p in self.module.parameters()), *self._buffers_to_sync()]
            self._sync(tensors, self._join.last(self._joined_calls))
        finally:
            self._join = None
            reducer.divide_by = self.process_group.size()

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Say how buckets are averaged, in the place of the sum that is divided by the number of processes.

        Args:
            state: What the hook gets.
            hook: Is called with the state and a bucket, and gives a future of a tensor as the bucket's buffer.

        Raises:
            RuntimeError: There is a hook already.
            TypeError: The hook cannot be called.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        reducer = self._reduce()
        if reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        reducer.hook = lambda bucket: hook(state, bucket)
