"""Residual networks: what one step of `resnet` computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from raybench.spec.config import TrialConfig
from raybench.spec.models.resnet import ResNetShape
from raybench.spec.samples import Images
from raybench.workloads.resnet.stages import STAGES, expansion
from raybench.workloads.resnet.zoo import torchvision_network

_MEAN = (0.485, 0.456, 0.406)     # of ImageNet's colours, as torchvision's own models are trained
_STD = (0.229, 0.224, 0.225)


class Block(nn.Module):
    """A residual block, its modules named as torchvision names them: two 3x3 convolutions, or a bottleneck of three.

    The stride is in the first 3x3 convolution. `relu` is last in each, so that its result is stored once.
    """

    def __init__(self, channels: int, planes: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        wide = 4 * planes if bottleneck else planes
        if bottleneck:
            self.conv1, self.bn1 = _convolution(channels, planes, 1), nn.BatchNorm2d(planes)
            self.conv2, self.bn2 = _convolution(planes, planes, 3, stride), nn.BatchNorm2d(planes)
            self.conv3, self.bn3 = _convolution(planes, wide, 1), nn.BatchNorm2d(wide)
        else:
            self.conv1, self.bn1 = _convolution(channels, planes, 3, stride), nn.BatchNorm2d(planes)
            self.conv2, self.bn2 = _convolution(planes, planes, 3), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.bottleneck = bottleneck
        shortcut = (_convolution(channels, wide, 1, stride), nn.BatchNorm2d(wide))
        self.downsample = nn.Sequential(*shortcut) if stride != 1 or channels != wide else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, channels, H, W) to (B, wide, H / stride, W / stride)."""
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            out = self.bn3(self.conv3(self.relu(out)))
        out += x if self.downsample is None else self.downsample(x)
        return cast(torch.Tensor, self.relu(out))


class ResNet(nn.Module):
    """The network alone, images in and logits out. torchvision's state dict of the same depth loads into it."""

    def __init__(self, shape: ResNetShape) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, shape.width, 7, 2, 3, bias=False), nn.BatchNorm2d(shape.width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2, self.layer3, self.layer4 = _stages(shape)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * shape.width * expansion(shape.architecture), shape.num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits (B, num_classes) of images (B, 3, H, W) about 0."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return cast(torch.Tensor, self.fc(self.avgpool(x).flatten(1)))


class ImageClassifier(nn.Module):
    """A network between the bytes of images and the loss of their labels.

    Bytes become numbers about 0 here, on the device, so that what travels there is a quarter of the size and all
    sources do the same work; images of another size than the network's are resized here, too.
    """

    def __init__(self, network: nn.Module, image_size: int, channels_last: bool) -> None:
        super().__init__()
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self.network = network.to(memory_format=self._format)  # type: ignore[call-overload]
        self._size = image_size
        # No buffers: DDP broadcasts buffers before every forward pass. x / 255 - mean over std is scale x + shift.
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (_MEAN, _STD))
        self._scale, self._shift = 1 / (255 * std), -mean / std

    def forward(self, batch: Images) -> torch.Tensor:
        """Mean cross-entropy of the labels."""
        held_in = next(self.network.parameters()).dtype      # other than fp32 with parameters in bf16
        logits = self.network(self.pixels(batch.images).to(held_in))
        return F.cross_entropy(logits, batch.labels)

    def pixels(self, images: torch.Tensor) -> torch.Tensor:
        """Bytes (B, 3, H, W) as fp32 numbers about 0, (B, 3, size, size) in the network's memory format."""
        pixels = images.to(torch.float32, memory_format=self._format)
        pixels = torch.addcmul(self._shift, pixels, self._scale)
        if images.shape[-2:] == (self._size, self._size):
            return pixels
        return F.interpolate(pixels, size=(self._size, self._size), mode="bilinear")


def build(config: TrialConfig) -> ImageClassifier:
    """The model of a config, on torch's current default device, from torch's current random state.

    Raises:
        UnsupportedError: it is a model of torchvision, and that is not installed or has none of this name.
    """
    shape = config.model
    assert isinstance(shape, ResNetShape)
    name = shape.torchvision_name
    network = ResNet(shape) if name is None else torchvision_network(name, shape.num_classes)
    if config.phase == "forward":
        _settle(network, shape.image_size)
    return ImageClassifier(network, shape.image_size, bool(config.channels_last))


@torch.no_grad()
def _settle(network: nn.Module, image_size: int) -> None:
    """Give batch norm the statistics of noise, for a forward pass that is not training uses what was seen before.

    A fresh network has seen nothing and normalises nothing: through 150 layers numbers grow to 4e8, past fp16.
    """
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    network.train()(torch.randn(2, 3, image_size, image_size))
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum


def _stages(shape: ResNetShape) -> Iterator[nn.Sequential]:
    """Four, each of twice the channels of the one before; all but the first halve the image in their first block."""
    widen, channels = expansion(shape.architecture), shape.width
    for stage, blocks in enumerate(STAGES[shape.architecture]):
        layer, planes = [], shape.width * 2**stage
        for block in range(blocks):
            layer.append(Block(channels, planes, 2 if stage and block == 0 else 1, bottleneck=widen > 1))
            channels = planes * widen
        yield nn.Sequential(*layer)


def _convolution(channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels_out, kernel, stride, padding=kernel // 2, bias=False)
