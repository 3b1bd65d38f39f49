"""Sweeps of residual networks: their models, defaults, and what is refused."""

from __future__ import annotations

import pytest

from raybench.errors import SweepError
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.models.resnet import ResNetShape
from raybench.spec.reader import sweep_from_bytes


def configs(base: str, more: str = "") -> list[TrialConfig]:
    """The configs of a sweep over resnets."""
    text = f"{{name: a, base: {{workload: resnet, {base}}}{more}}}"
    return [trial.config for trial in expand(sweep_from_bytes(text.encode(), "a.yaml")).trials]


def mistake(base: str) -> str:
    """The one mistake of a sweep, without its place."""
    with pytest.raises(SweepError) as caught:
        configs(base)
    (line,) = str(caught.value).splitlines()
    return line.split(" ", 1)[1]


def test_defaults() -> None:
    """ResNet-50 as torchvision's recipe begins: SGD with momentum, 256 images a GPU, the layout that cuDNN likes."""
    (config,) = configs("")
    assert config.model == ResNetShape(architecture="resnet50", width=64, num_classes=1000, image_size=224)
    assert config.optimizer is not None
    assert (config.optimizer.name, config.optimizer.lr, config.optimizer.momentum) == ("sgd", 0.1, 0.9)
    assert (config.micro_batch, config.channels_last, config.cudnn_benchmark) == (256, True, True)
    assert (config.seq_len, config.vocab_size) == (None, None)
    assert config.label() == "resnet resnet50 b256 fp32 device ×1"


@pytest.mark.parametrize(("source", "samples"), [("device", 1024), ("generate", 50_000), ("shards", 50_000)])
def test_images_are_fewer_than_sequences(source: str, samples: int) -> None:
    """154 MB on the device, 7.5 GB in shards, unless another number is given; for tokens it stays what it was."""
    (config,) = configs(f"source: {source}")
    assert config.source is not None
    assert config.source.num_samples == samples
    (config,) = configs(f"source: {{name: {source}, num_samples: 7}}")
    assert config.source is not None
    assert config.source.num_samples == 7


def test_a_custom_network_says_which_it_is() -> None:
    """The architecture is told even where only something else was changed, and switches where they are off."""
    labels = [config.label() for config in configs("model.num_classes: 100, channels_last: false")]
    labels += [config.label() for config in configs("model: {architecture: resnet18}, cudnn_benchmark: false")]
    labels += [config.label() for config in configs('model: "torchvision:vgg11", model.num_classes: 10')]
    assert labels == [
        "resnet custom architecture=resnet50 num_classes=100 b256 fp32 channels_last=false device ×1",
        "resnet resnet18 b256 fp32 cudnn_benchmark=false device ×1",
        "resnet custom architecture=torchvision:vgg11 num_classes=10 b256 fp32 device ×1",
    ]


def test_models_of_torchvision_are_models_of_an_axis() -> None:
    """By name beside the presets; whether there is one shows where it is built."""
    found = configs("micro_batch: 8", ', axes: {model: [resnet18, "torchvision:vit_b_16"]}')
    assert [config.model_name for config in found] == ["resnet18", "torchvision:vit_b_16"]
    assert [config.label() for config in found][1] == "resnet torchvision:vit_b_16 b8 fp32 device ×1"


@pytest.mark.parametrize(("base", "what"), [
    ("model: resnet51", 'base.model: resnet has no preset "resnet51"; did you mean "resnet50"?'),
    ('model: "torchvision:"',
     'base.model: resnet has no preset "torchvision:"; known: resnet18, resnet34, resnet50, resnet101, resnet152'),
    ("model: {architecture: resnet51}",
     'base.model.architecture: must be one of resnet18, resnet34, resnet50, resnet101, resnet152, torchvision:NAME, not'
     ' "resnet51"'),
    ("seq_len: 64", "base.seq_len: resnet has no seq_len"),
    ("channels_last: 1", "base.channels_last: must be true or false, not 1"),
    ("model: {image_size: 32}, micro_batch: 1",
     "base.micro_batch: must be at least 2 for images this small: batch norm would average a single number"),
])  # fmt: skip
def test_what_is_refused(base: str, what: str) -> None:
    """One line each."""
    assert mistake(base) == what


def test_only_resnets_have_convolutions() -> None:
    """The two settings are refused for a workload without any."""
    text = b"{name: a, base: {workload: encdec, channels_last: true}}"
    with pytest.raises(SweepError, match="encdec has no channels_last"):
        expand(sweep_from_bytes(text, "a.yaml"))
