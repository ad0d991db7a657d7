"""Residual networks (He et al. 2016), with torchvision's names of layers.

A state dict of torchvision fits. :func:`rgrad.load` does not read PyTorch's files, so its tensors come as NumPy arrays:
in an environment with PyTorch ``numpy.savez(file, **{name: t.numpy() for name, t in torch.load(other).items()})``, then
``model.load_state_dict({name: rgrad.from_numpy(a) for name, a in numpy.load(file).items()})``.
"""

from collections.abc import Callable
from typing import Any

from rgrad import Tensor, nn

__all__ = [
    "ResNet",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]

Norm = Callable[[int], nn.Module]


def _conv3x3(inside: int, out: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, out, 3, stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


def _conv1x1(inside: int, out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, out, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3x3, and the input added to their result."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = _conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(planes, planes)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, of shape ``(N, planes, H / stride, W / stride)``."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        kept = x if self.downsample is None else self.downsample(x)
        out += kept
        made: Tensor = self.relu(out)
        return made


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1, and the input added to their result; the stride is in the second."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = _conv1x1(inplanes, width)
        self.bn1 = norm(width)
        self.conv2 = _conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = _conv1x1(width, planes * self.expansion)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, of shape ``(N, 4 * planes, H / stride, W / stride)``."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        kept = x if self.downsample is None else self.downsample(x)
        out += kept
        made: Tensor = self.relu(out)
        return made


class ResNet(nn.Module):
    """A residual network: one large convolution, four groups of blocks, a mean over the image, a linear layer.

    Args:
        block: :class:`BasicBlock` or :class:`Bottleneck`.
        layers: How many blocks each group has.
        num_classes: The number of outputs.
        zero_init_residual: Whether the last norm of each block begins with weight 0, so that blocks begin as the
            identity (Goyal et al. 2017).
        groups: Groups of the convolutions of 3x3.
        width_per_group: Channels in each of them, where the first group of blocks has 64.
        replace_stride_with_dilation: For each of the last three groups whether it dilates instead of striding.
        norm_layer: What makes a norm of a number of channels.

    Raises:
        ValueError: ``replace_stride_with_dilation`` has not three elements, or the block takes no groups or widths.

    Shape:
        ``(N, 3, H, W)`` to ``(N, num_classes)``.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        self._norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        self.inplanes = 64
        self.dilation = 1
        dilate = [False, False, False] if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, 7, 2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, (Bottleneck, BasicBlock)):
                    last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                    if last.weight is not None:
                        nn.init.zeros_(last.weight)

    def _make_layer(
        self, block: type[BasicBlock | Bottleneck], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        out = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != out:
            downsample = nn.Sequential(_conv1x1(self.inplanes, out, stride), self._norm_layer(out))
        made: list[nn.Module] = [
            block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, self._norm_layer)
        ]
        self.inplanes = out
        made += [
            block(
                out,
                planes,
                groups=self.groups,
                base_width=self.base_width,
                dilation=self.dilation,
                norm_layer=self._norm_layer,
            )
            for _ in range(1, blocks)
        ]
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes, of shape ``(N, num_classes)``, for images of shape ``(N, 3, H, W)``."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        scores: Tensor = self.fc(self.avgpool(x).flatten(1))
        return scores


def _network(
    block: type[BasicBlock | Bottleneck], layers: list[int], weights: object, options: dict[str, Any]
) -> ResNet:
    pretrained = options.pop("pretrained", False)
    if weights is not None or pretrained:
        raise ValueError(
            "resnet: there are no trained weights here; make the network with weights=None. A state dict of "
            "torchvision fits, but its file is PyTorch's, which rgrad.load does not read: save the tensors as NumPy "
            "arrays there (numpy.savez), and here model.load_state_dict({name: rgrad.from_numpy(a) for name, a in "
            "numpy.load(file).items()})"
        )
    options.pop("progress", None)
    return ResNet(block, layers, **options)


def resnet18(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 18 layers, with 11.7 million parameters.

    Args:
        weights: None; trained weights are not shipped.
        options: Those of :class:`ResNet`.

    Raises:
        ValueError: Trained weights are asked for.
    """
    return _network(BasicBlock, [2, 2, 2, 2], weights, options)


def resnet34(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 34 layers, with 21.8 million parameters; see :func:`resnet18`."""
    return _network(BasicBlock, [3, 4, 6, 3], weights, options)


def resnet50(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 50 layers, with 25.6 million parameters; see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 6, 3], weights, options)


def resnet101(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 101 layers, with 44.5 million parameters; see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 23, 3], weights, options)


def resnet152(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 152 layers, with 60.2 million parameters; see :func:`resnet18`."""
    return _network(Bottleneck, [3, 8, 36, 3], weights, options)


def resnext50_32x4d(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 50 layers with 32 groups of 4 channels (Xie et al. 2017); see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 6, 3], weights, {"groups": 32, "width_per_group": 4, **options})


def resnext101_32x8d(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 101 layers with 32 groups of 8 channels (Xie et al. 2017); see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 23, 3], weights, {"groups": 32, "width_per_group": 8, **options})


def wide_resnet50_2(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 50 layers, twice as wide inside (Zagoruyko and Komodakis 2016); see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 6, 3], weights, {"width_per_group": 128, **options})


def wide_resnet101_2(*, weights: object = None, **options: Any) -> ResNet:
    """Make a network of 101 layers, twice as wide inside (Zagoruyko and Komodakis 2016); see :func:`resnet18`."""
    return _network(Bottleneck, [3, 4, 23, 3], weights, {"width_per_group": 128, **options})
