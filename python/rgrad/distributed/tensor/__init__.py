"""Tensors in parts on many devices; none can be made."""

from .._refused import Refused
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh


class DTensor(Refused):
    """A tensor in parts on many devices: it is refused, and no tensor is one.

    Raises:
        NotImplementedError: Always.
    """

    instead = "use a Tensor"


__all__ = ["DTensor", "DeviceMesh", "init_device_mesh"]
