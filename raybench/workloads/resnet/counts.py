"""What a step of a residual network amounts to, from its shape alone. No torch, so that `plan` is instant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raybench.measure.counts import Counts
from raybench.measure.phase import FORWARD_MULTIPLE, OPERAND_BYTES, state_bytes
from raybench.spec.config import TrialConfig
from raybench.spec.models.resnet import ResNetShape
from raybench.workloads.resnet.stages import STAGES, expansion

_COLOURS = 3


@dataclass(frozen=True)
class Convolution:
    """A `kernel` x `kernel` convolution without bias to `size` x `size` pixels; a batch norm always follows it."""

    channels_in: int
    channels_out: int
    kernel: int
    size: int

    @property
    def parameters(self) -> int:
        """Its weights, and scale and shift of the batch norm."""
        return self.channels_in * self.channels_out * self.kernel**2 + 2 * self.channels_out

    @property
    def flops(self) -> int:
        """2 x C_in x K^2 for each number that comes out: a multiplication and an addition a weight."""
        return 2 * self.channels_in * self.kernel**2 * self.outputs

    @property
    def outputs(self) -> int:
        """Numbers that come out, of one image."""
        return self.channels_out * self.size**2


def counts(config: TrialConfig) -> Counts:
    """Work of one step (one global batch): samples are images.

    Nothing is known of another model of torchvision before it is built: its parameters are those of the built module,
    and it has no FLOPs.
    """
    shape = _shape(config)
    assert config.global_batch is not None
    known = shape.torchvision_name is None
    return Counts(
        parameters=parameters(shape) if known else None,
        samples_per_step=config.global_batch,
        tokens_per_step=None,
        model_flops_per_step=float(config.global_batch * flops(config)) if known else None,
        model_flops_causal_per_step=None,
        memory_bytes=memory_bytes(config) if known else None,
    )


def convolutions(shape: ResNetShape) -> Iterator[Convolution]:
    """All convolutions in order, the stem first (He et al. 2015, arXiv:1512.03385, table 1)."""
    size = _halved(shape.image_size)
    yield Convolution(_COLOURS, shape.width, 7, size)
    size, channels = _halved(size), shape.width                    # max pooling
    for stage, blocks in enumerate(STAGES[shape.architecture]):
        planes = shape.width * 2**stage
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            yield from _block(shape, channels, planes, size, stride)
            size = _halved(size) if stride == 2 else size
            channels = planes * expansion(shape.architecture)


def parameters(shape: ResNetShape) -> int:
    """Trainable numbers: convolutions, batch norms and the classifier with its bias."""
    features = _features(shape)
    return sum(each.parameters for each in convolutions(shape)) + (features + 1) * shape.num_classes


def forward_flops(shape: ResNetShape) -> int:
    """FLOPs of the forward pass of one image, a multiplication and an addition each counting as one.

    Counted as torchvision's table of models and fvcore do, but those count multiply-adds, which are half as many:
    4.09 for ResNet-50 there is 8.18 GFLOP here. Left out: batch norm, ReLU, pooling, biases, loss.
    """
    return sum(each.flops for each in convolutions(shape)) + 2 * _features(shape) * shape.num_classes


def flops(config: TrialConfig) -> int:
    """FLOPs of one image in the config's phase: the backward pass is twice the forward pass, less one product.

    Nobody asks for the gradient of the image itself, so the stem has only that of its weights.
    """
    assert config.phase is not None
    shape = _shape(config)
    stem = next(convolutions(shape)).flops if config.phase != "forward" else 0
    return FORWARD_MULTIPLE[config.phase] * forward_flops(shape) - stem


def memory_bytes(config: TrialConfig) -> int:
    """Rough device memory of one rank: state, and what the backward pass needs of each image.

    What each convolution gives is kept for its batch norm, and what that gives, after ReLU in place, for the next
    convolution. The image itself is there as bytes and as fp32. Forward only, the widest pair lives at a time.
    """
    shape = _shape(config)
    assert config.phase is not None
    assert config.micro_batch is not None
    outputs = [2 * each.outputs for each in convolutions(shape)]
    kept = max(outputs) if config.phase == "forward" else sum(outputs)
    image = (1 + 4) * _COLOURS * shape.image_size**2
    state = state_bytes(parameters(shape), config)
    return state + config.micro_batch * (OPERAND_BYTES[config.precision] * kept + image)


def _block(shape: ResNetShape, channels: int, planes: int, size: int, stride: int) -> Iterator[Convolution]:
    """One residual block. A stride, or another number of channels, gives the shortcut a convolution of its own."""
    inner = _halved(size) if stride == 2 else size
    wide = planes * expansion(shape.architecture)
    if expansion(shape.architecture) == 1:
        yield Convolution(channels, planes, 3, inner)
        yield Convolution(planes, planes, 3, inner)
    else:
        yield Convolution(channels, planes, 1, size)
        yield Convolution(planes, planes, 3, inner)
        yield Convolution(planes, wide, 1, inner)
    if stride == 2 or channels != wide:
        yield Convolution(channels, wide, 1, inner)


def _features(shape: ResNetShape) -> int:
    return shape.width * 8 * expansion(shape.architecture)


def _halved(size: int) -> int:
    """Pixels after a stride of 2, the edges padded."""
    return (size + 1) // 2


def _shape(config: TrialConfig) -> ResNetShape:
    assert isinstance(config.model, ResNetShape)
    return config.model
