"""The residual networks that are built: torchvision's, name by name, and the counts' formulas."""

from __future__ import annotations

import hashlib
import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from raybench.errors import UnsupportedError
from raybench.spec.models.resnet import PRESETS, ResNetShape
from raybench.spec.samples import Images
from raybench.workloads.registry import workload
from raybench.workloads.resnet.model import ImageClassifier, ResNet, build
from tests.workloads.test_counts_resnet import config

STATE_DICTS = {
    "resnet18": (122, "84fb10d9c6905a1c"),
    "resnet34": (218, "28f9096d51307499"),
    "resnet50": (320, "d7e4f8bb0a536344"),
    "resnet101": (626, "02c0f34f4842751f"),
    "resnet152": (932, "685c66205bc823aa"),
}
"""Entries of torchvision's state dict, and SHA-256 over its lines `name shape` in order: made by its own source."""
SMALL = "{architecture: resnet18, width: 4, num_classes: 10, image_size: 48}"


def images(batch: int, size: int, classes: int = 10) -> Images:
    """A random batch."""
    random = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (batch, 3, size, size), generator=random, dtype=torch.uint8)
    return Images(pixels, torch.randint(classes, (batch,), generator=random))


def small(**base: Any) -> ImageClassifier:
    """A narrow resnet18 for 48 x 48 pixels."""
    torch.manual_seed(0)
    return build(config(model=SMALL, **base))


@pytest.mark.parametrize("name", PRESETS)
def test_names_and_shapes_are_torchvision_s(name: str) -> None:
    """Every entry in order: weights trained there load here."""
    with torch.device("meta"):
        state = ResNet(PRESETS[name]).state_dict()
    lines = "\n".join(f"{entry} {tuple(tensor.shape)}" for entry, tensor in state.items())
    assert (len(state), hashlib.sha256(lines.encode()).hexdigest()[:16]) == STATE_DICTS[name]


def test_some_of_resnet50_s_names() -> None:
    """What the digest above stands for, where a reader can see it."""
    with torch.device("meta"):
        state = ResNet(PRESETS["resnet50"]).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer1.0.downsample.0.weight"] == (256, 64, 1, 1)
    assert shapes["layer2.0.conv2.weight"] == (128, 128, 3, 3)
    assert shapes["layer3.5.bn3.running_var"] == (1024,)
    assert shapes["layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert shapes["fc.weight"] == (1000, 2048)
    assert "layer1.1.downsample.0.weight" not in shapes


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_outputs_are_torchvision_s(name: str) -> None:
    """Its state dict loads, and both give the same logits, training and not."""
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported: {error}")
    theirs, ours = models.get_model(name, weights=None), ResNet(PRESETS[name])
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    for training in (True, False):
        assert torch.equal(theirs.train(training)(x), ours.train(training)(x))


@pytest.mark.parametrize("architecture", ["resnet18", "resnet50"])
@pytest.mark.parametrize("phase", ["forward", "forward_backward"])
@pytest.mark.parametrize("size", [48, 65])
def test_flops_are_what_torch_counts(architecture: str, phase: str, size: int) -> None:
    """To the last FLOP, for two images on one worker."""
    model = f"{{architecture: {architecture}, width: 4, num_classes: 10, image_size: {size}}}"
    of = config(model=model, micro_batch=2, phase=phase)
    network = build(of)
    with FlopCounterMode(display=False) as counter:
        loss = network(images(2, size))
        if phase != "forward":
            loss.backward()
    assert counter.get_total_flops() == workload("resnet").counts(of).model_flops_per_step


@pytest.mark.parametrize("name", PRESETS)
def test_parameters_are_what_is_built(name: str) -> None:
    """Every preset, built without memory for its numbers."""
    of = config(model=name)
    with torch.device("meta"):
        built = build(of)
    assert sum(each.numel() for each in built.parameters()) == workload("resnet").counts(of).parameters


def test_bytes_become_numbers_about_zero() -> None:
    """Black, white and grey of the first colour: (0 - 0.485) / 0.229, (1 - 0.485) / 0.229, (51/255 - 0.485) / 0.229."""
    pixels = torch.zeros(1, 3, 48, 48, dtype=torch.uint8)
    pixels[0, 0, 0, 0], pixels[0, 0, 0, 1] = 255, 51
    row = small().pixels(pixels)[0, 0, 0]
    assert row[0].item() == pytest.approx(2.248908, rel=1e-5)
    assert row[1].item() == pytest.approx(-1.244541, rel=1e-5)
    assert row[2].item() == pytest.approx(-2.117904, rel=1e-5)


def test_small_images_are_resized_on_the_way() -> None:
    """CIFAR's 32 x 32 to the network's 48 x 48; an even grey stays what it was."""
    grey = torch.full((2, 3, 32, 32), 128, dtype=torch.uint8)
    resized = small().pixels(grey)
    assert resized.shape == (2, 3, 48, 48)
    assert torch.allclose(resized, small().pixels(torch.full((2, 3, 48, 48), 128, dtype=torch.uint8)))


@pytest.mark.parametrize("channels_last", [True, False])
def test_memory_format(channels_last: bool) -> None:
    """Weights and pixels are in the format asked for, whatever the pixels came in."""
    model = small(channels_last=str(channels_last).lower())
    wanted = torch.channels_last if channels_last else torch.contiguous_format
    assert model.network.layer1[0].conv1.weight.is_contiguous(memory_format=wanted)  # type: ignore[union-attr, index]
    assert model.pixels(images(2, 48).images).is_contiguous(memory_format=wanted)
    assert model.pixels(images(2, 32).images).is_contiguous(memory_format=wanted)


def test_both_formats_are_the_same_maths() -> None:
    """The same seed gives the same loss but for rounding, near ln 10 = 2.3 for a fresh network of ten classes."""
    losses = [small(channels_last=each)(images(4, 48)).item() for each in ("true", "false")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert abs(losses[0] - math.log(10)) < 1.5


def test_torchvision_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: what is missing, where, and what to do."""
    monkeypatch.setitem(sys.modules, "torchvision", None)
    needs = r"^model torchvision:vit_b_16 needs torchvision on every worker"
    with pytest.raises(UnsupportedError, match=needs) as caught:
        build(config(model='"torchvision:vit_b_16"'))
    assert "\n" not in str(caught.value)


class Zoo(ModuleType):
    """The three functions of torchvision that are used."""

    models = SimpleNamespace()
    models.list_models = lambda module: ["vit_b_16", "vgg11"] if module is Zoo.models else ["raft_large"]
    models.get_model = lambda name, weights, num_classes: torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, num_classes)
    )


def test_torchvision_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its network between our bytes and our loss; a name that it does not have is told with the nearest."""
    monkeypatch.setitem(sys.modules, "torchvision", Zoo("torchvision"))
    model = build(config(model='"torchvision:vgg11"'))
    assert model(images(2, 224, 1000)).shape == ()
    with pytest.raises(UnsupportedError, match=r'has no classifier "vit_b_61"; did you mean "torchvision:vit_b_16"\?'):
        build(config(model='"torchvision:vit_b_61"'))


def test_a_shape_s_width_is_not_torchvision_s() -> None:
    """Another model has widths of its own."""
    with pytest.raises(ValueError, match="width is not known to torchvision:vgg11"):
        ResNetShape(architecture="torchvision:vgg11", width=32)


@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_deep_network_that_has_seen_nothing_stays_small(phase: str) -> None:
    """Without statistics of its own, batch norm in evaluation lets the numbers of 152 layers grow past fp16's 65504."""
    torch.manual_seed(0)
    model = build(config(model="{architecture: resnet152, width: 2, image_size: 160}", phase=phase))
    largest = [0.0]
    for module in model.network.modules():
        module.register_forward_hook(lambda _, __, out: largest.append(out.abs().max().item()))
    with torch.no_grad():
        model.train(phase == "train")(images(2, 160))
    assert 1 < max(largest) < 1000
    norms = [each.momentum for each in model.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    assert set(norms) == {0.1}
