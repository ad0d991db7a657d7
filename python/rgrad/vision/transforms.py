"""From images to tensors, step by step."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rgrad
from rgrad import Tensor

__all__ = ["Compose", "Lambda", "Normalize", "ToTensor"]


class Compose:
    """Several steps, one after the other.

    Args:
        transforms: Functions of one argument.

    Example:
        >>> import numpy as np
        >>> from rgrad.vision import transforms
        >>> steps = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
        >>> steps(np.array([[0, 255]], dtype=np.uint8))
        tensor([[[-1.,  1.]]])
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for step in self.transforms:
            img = step(img)
        return img

    def __repr__(self) -> str:
        return "\n".join(["Compose(", *(f"    {step}" for step in self.transforms), ")"])


class Lambda:
    """A step that calls a function.

    Args:
        lambd: A function of one argument.

    Raises:
        TypeError: It cannot be called.

    Example:
        >>> from rgrad.vision import transforms
        >>> transforms.Lambda(abs)(-3)
        3
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


class ToTensor:
    """An image as a tensor of shape ``(C, H, W)``.

    It takes arrays of shape ``(H, W)`` or ``(H, W, C)`` and images of the package Pillow. Numbers of 8 bits are divided
    by 255, which gives float32 in ``[0, 1]``; other dtypes are kept.

    Raises:
        TypeError: It is neither an array nor an image.
        ValueError: An array has another number of dimensions.

    Example:
        >>> import numpy as np
        >>> from rgrad.vision import transforms
        >>> transforms.ToTensor()(np.array([[0, 51], [102, 255]], dtype=np.uint8))
        tensor([[[0.0000, 0.2000],
                 [0.4000, 1.0000]]])
    """

    def __call__(self, pic: Any) -> Tensor:
        if not isinstance(pic, np.ndarray):
            if not hasattr(pic, "__array_interface__"):
                raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
            bits = getattr(pic, "mode", "") == "1"
            pic = np.asarray(pic).astype(np.uint8) * 255 if bits else np.asarray(pic)
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        layers = pic[:, :, None] if pic.ndim == 2 else pic
        made = rgrad.from_numpy(np.array(layers.transpose(2, 0, 1), order="C"))
        return made.to(rgrad.get_default_dtype()).div(255) if made.dtype == rgrad.uint8 else made

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize:
    """Subtracts a mean from each channel and divides by a deviation.

    Args:
        mean: The mean of each channel.
        std: The deviation of each channel.
        inplace: Write the result into the image.

    Raises:
        TypeError: What is given is no tensor, or no float tensor.
        ValueError: It has fewer than three dimensions, or a deviation is 0.

    Shape:
        ``(*, C, H, W)``, also the result.

    Example:
        >>> from rgrad.vision import transforms
        >>> transforms.Normalize((0.5,), (0.25,))(rgrad.ones(1, 1, 2))
        tensor([[[2., 2.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def __call__(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
        if not tensor.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
        if tensor.ndim < 3:
            raise ValueError(
                f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
            )
        mean, std = (rgrad.tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (self.mean, self.std))
        if bool((std == 0).any()):
            raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
        mean, std = (v.view(-1, 1, 1) if v.ndim else v for v in (mean, std))
        image = tensor if self.inplace else tensor.clone()
        return image.sub_(mean).div_(std)

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"
