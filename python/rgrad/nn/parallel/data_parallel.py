"""PyTorch's wrapper for several CUDA devices, and its parts.

There are no such devices here. The wrapper calls the module that it wraps; the parts fail as they do in a PyTorch
without CUDA devices, but for what needs no device.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Never

from ... import _core
from ..._core import Tensor
from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def _refuse(name: str) -> Never:
    raise RuntimeError(f"nn.parallel.{name}: Found no NVIDIA driver on your system: there are no CUDA devices")


def _checked(device: Any) -> None:
    """Refuse what is no CUDA device.

    Raises:
        RuntimeError: There is no such device.
        ValueError: It is another device, or none.
    """
    if isinstance(device, (str, _core.device)):
        device = _core.device(device)
        if device.type != "cuda":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
    elif device is not None and not isinstance(device, int):
        raise ValueError(f"Expected a device with a specified index or an integer, but got: {device}")


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """A copy of a module for each CUDA device.

    Args:
        network: The module.
        devices: CUDA devices. None of them exist: with others than none, only modules without parameters are copied.
        detach: Whether gradients of the copies stay away from the module.

    Returns:
        One copy for each device.

    Raises:
        AssertionError: The module's parameters are not on CUDA devices.
        RuntimeError: So are its buffers, or all of them with ``detach``.
        ValueError: A device is no CUDA device.

    Example:
        >>> nn.parallel.replicate(nn.ReLU(), [0, 1])
        [ReLU(), ReLU()]
    """
    for device in devices:
        _checked(device)
    if not devices:
        return []
    parameters, buffers = next(network.parameters(), None), next(network.buffers(), None)
    if parameters is not None and not detach:
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    if parameters is not None or buffers is not None:
        raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
    return [deepcopy(network) for _ in devices]


def _split(tensor: Tensor, devices: Sequence[Any], dim: int) -> tuple[Tensor, ...]:
    """The parts of a tensor; -1 stands for the CPU."""
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    for device in devices:
        _checked(device)
        if device is None:
            raise ValueError("Expected a device with a specified index or an integer, but got: None")
    if any(device != -1 for device in devices):
        _refuse("scatter")
    return tuple(tensor.chunk(len(devices), dim))


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The inputs for each CUDA device: parts of tensors, and other objects as they are.

    Args:
        inputs: Tensors, other objects, and tuples, lists and dicts of them.
        target_gpus: CUDA devices, -1 for the CPU. There are no others, so they are refused for tensors.
        dim: The dimension that tensors are split along.

    Returns:
        For each device an object as `inputs`; for a tensor a tuple of its parts.

    Raises:
        RuntimeError: There is a tensor, and a device is not there.
        ValueError: There is a tensor, and a device is no CUDA device.

    Example:
        >>> [part.shape for part in nn.parallel.scatter(rgrad.ones(4, 3), [-1, -1])]
        [rgrad.Size([2, 3]), rgrad.Size([2, 3])]
    """
    if isinstance(inputs, Tensor):
        return _split(inputs, target_gpus, dim)
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*(scatter(item, target_gpus, dim) for item in inputs), strict=False)
        if isinstance(inputs, list):
            return [list(part) for part in parts]
        return [type(inputs)(*part) if hasattr(inputs, "_fields") else part for part in parts]
    if isinstance(inputs, dict) and inputs:
        items = [scatter(item, target_gpus, dim) for item in inputs.items()]
        return [type(inputs)(part) for part in zip(*items, strict=False)]
    return [inputs for _ in target_gpus]


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The outputs of several CUDA devices as one.

    Args:
        outputs: One output of each device.
        target_device: Where to. There are no CUDA devices, so tensors are refused.
        dim: The dimension that tensors are joined along.

    Returns:
        An object as each of the outputs.

    Raises:
        AssertionError: The outputs are tensors.

    Example:
        >>> nn.parallel.gather([None, None], "cpu") is None
        True
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    parts = [gather(list(part), target_device, dim) for part in zip(*outputs, strict=False)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its input on its CUDA device, all at once.

    Args:
        modules: The modules.
        inputs: The arguments of each of them.
        kwargs_tup: The keyword arguments of each of them.
        devices: CUDA devices. None of them exist.

    Returns:
        Nothing: it always raises.

    Raises:
        AssertionError: There are more or fewer inputs, arguments or devices than modules.
        RuntimeError: There are no CUDA devices.
        ValueError: A device is no CUDA device.

    Example:
        >>> try:
        ...     nn.parallel.parallel_apply([nn.ReLU()], [])
        ... except AssertionError as error:
        ...     print(error)
        The number of modules 1 is not equal to the number of inputs 0
    """
    for given, what in ((inputs, "inputs"), (kwargs_tup, "kwargs_tup"), (devices, "devices")):
        if given is not None and len(given) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} {len(given)}"
            )
    for device in devices or ():
        if isinstance(device, (str, _core.device)) and _core.device(device).type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
    _refuse("parallel_apply")


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Tensor:
    """Call a module on several CUDA devices. There are none; :class:`DataParallel` calls the module where it is.

    Args:
        module: The module.
        inputs: Its input, or a tuple of them.
        device_ids: CUDA devices.
        output_device: Where the output goes.
        dim: The dimension that tensors are split along.
        module_kwargs: Keyword arguments.

    Returns:
        Nothing: it always raises.

    Raises:
        RuntimeError: Always.

    Example:
        >>> try:
        ...     nn.parallel.data_parallel(nn.ReLU(), rgrad.ones(2))
        ... except RuntimeError as error:
        ...     print(str(error).partition(": there")[0])
        data_parallel: device type could not be determined
    """
    raise RuntimeError(
        "data_parallel: device type could not be determined: there are no CUDA devices; call the module itself"
    )


class DataParallel(Module):
    """Calls the wrapped module, which PyTorch does too where there is no CUDA device.

    Names in state dicts begin with ``module.``.

    Args:
        module: The module.
        device_ids: Accepted; has no effect.
        output_device: Accepted; has no effect.
        dim: Accepted; has no effect.

    Shape:
        As the module.

    Example:
        >>> net = nn.DataParallel(nn.Linear(2, 1))
        >>> list(net.state_dict())
        ['module.weight', 'module.bias']
        >>> net(rgrad.ones(3, 2)).shape
        rgrad.Size([3, 1])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """A copy of a module for each device.

        Args:
            module: The module.
            device_ids: CUDA devices; see the function :func:`replicate`.

        Returns:
            One for each device.
        """
        return replicate(module, device_ids, not _core.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """The inputs and the keyword arguments for each device.

        Args:
            inputs: The positional arguments.
            kwargs: The keyword arguments.
            device_ids: CUDA devices, -1 for the CPU; see the function :func:`scatter`.

        Returns:
            Tuples of positional and of keyword arguments.
        """
        parts = scatter(inputs, device_ids) if inputs else []
        named = scatter(kwargs, device_ids) if kwargs else []
        parts += [()] * (len(named) - len(parts))
        named += [{}] * (len(parts) - len(named))
        return tuple(parts), tuple(named)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Call each copy with its input.

        Args:
            replicas: The copies.
            inputs: The arguments of each of them.
            kwargs: The keyword arguments of each of them; see the function :func:`parallel_apply`.

        Returns:
            Nothing: it always raises.
        """
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The outputs of several devices as one.

        Args:
            outputs: One output of each device.
            output_device: Where to; see the function :func:`gather`.

        Returns:
            An object as each of the outputs.
        """
        return gather(outputs, output_device)
