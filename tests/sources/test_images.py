"""Images by index, and the micro-batches of them from every source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from raybench.sources.images import image_records, record_bytes, unpack_images
from raybench.sources.layout import folder, layout
from raybench.sources.prepare import prepare
from raybench.sources.records import copy_of_first, samples_at_a_time, samples_in
from raybench.sources.registry import open_source, share
from raybench.spec.config import Source, TrialConfig
from raybench.spec.models.resnet import ResNetShape
from raybench.spec.samples import Images, ImageSample, TokenSample
from tests.factories import make_config
from tests.sources.test_tokens import MASK, splitmix64

CPU = torch.device("cpu")
SAMPLE = ImageSample(channels=3, height=5, width=5, num_classes=7)


def config(root: Path, name: str, **source: int) -> TrialConfig:
    """Images of 5 x 5 pixels over two workers from a source of that name."""
    options = {"num_samples": 11, "num_shards": 3} | source
    return make_config(
        workload="resnet", model=ResNetShape(image_size=5, num_classes=7), seq_len=None, vocab_size=None, micro_batch=3,
        grad_accum=2, seed=5, source=Source(name=name, data_dir=str(root), **options),
    )  # fmt: skip


def batches(of: TrialConfig, rank: int, count: int) -> list[Images]:
    """The first micro-batches of a rank, copied, as a source gives them."""
    prepare(of)
    source = open_source(of, rank, of.num_workers, CPU)
    try:
        found = []
        for _ in range(count):
            batch = next(source)
            assert isinstance(batch, Images)
            found.append(Images(batch.images.clone(), batch.labels.clone()))
        return found
    finally:
        source.close()


def test_records_follow_the_formula() -> None:
    """Sample 5 of seed 3: 75 pixels are 10 words and the label one, so counter 5 x 11 + position, offset by the seed.

    The label is drawn as a token is; the pixels are the bytes of the other words, the lowest first.
    """
    (record,) = image_records(3, np.array([5]), SAMPLE)
    words = [splitmix64((5 * 11 + position + splitmix64(3)) & MASK) for position in range(11)]
    assert int.from_bytes(record[:8].tobytes(), "little") == (words[0] >> 32) * 7 >> 32
    assert record[8:].tobytes() == b"".join(word.to_bytes(8, "little") for word in words[1:])[:75]


def test_unpacked_records_are_pixels_and_labels() -> None:
    """(B, 3, 5, 5) bytes and (B,) int64 in 0 .. 6; labels and pixels are those of the record."""
    records = torch.from_numpy(image_records(0, np.arange(50), SAMPLE))
    assert records.shape == (50, record_bytes(SAMPLE)) == (50, 83)
    found = unpack_images(records, SAMPLE)
    assert (found.images.dtype, found.labels.dtype) == (torch.uint8, torch.int64)
    assert found.images.shape == (50, 3, 5, 5)
    assert torch.equal(found.images.flatten(1), records[:, 8:])
    assert torch.equal(found.labels, records[:, 0].to(torch.int64))
    assert set(found.labels.tolist()) == set(range(7))


def test_a_single_record_at_an_odd_place() -> None:
    """A batch of one, which lies 83 bytes into its memory."""
    records = torch.from_numpy(image_records(0, np.arange(2), SAMPLE))
    one = unpack_images(records[1:], SAMPLE)
    assert torch.equal(one.labels, unpack_images(records, SAMPLE).labels[1:])


def test_pixels_are_uniform() -> None:
    """The mean of 256 x 10 000 bytes lies within five standard errors of 127.5; all values occur."""
    sample = ImageSample(channels=1, height=16, width=16, num_classes=2)
    pixels = image_records(1, np.arange(10_000), sample)[:, 8:]
    assert abs(pixels.mean() - 127.5) <= 5 * np.sqrt((256**2 - 1) / 12 / pixels.size)
    assert len(np.unique(pixels)) == 256


@pytest.mark.parametrize("name", ["device", "memory", "generate", "shards"])
@pytest.mark.parametrize("loader_workers", [0, 1])
@pytest.mark.parametrize("rank", [0, 1])
def test_every_source_gives_the_rule_s_images(tmp_path: Path, name: str, loader_workers: int, rank: int) -> None:
    """12 samples a step over a cycle of 11: every batch sooner or later wraps around."""
    of = config(tmp_path, name, loader_workers=loader_workers)
    if loader_workers and name in ("device", "memory"):
        pytest.skip("made before the first step, in the rank itself")
    part = share(of, rank, 2)
    for micro, got in enumerate(batches(of, rank, 12)):
        wanted = unpack_images(torch.from_numpy(image_records(5, part.indices(micro), SAMPLE)), SAMPLE)
        assert torch.equal(got.images, wanted.images)
        assert torch.equal(got.labels, wanted.labels)


def test_shards_of_images_are_records_of_bytes(tmp_path: Path) -> None:
    """11 records of 83 bytes over 3 shards: 4, 4 and 3; the folder is another than that of other images."""
    of = config(tmp_path, "shards")
    prepare(of)
    found = layout(of)
    assert (found.dtype, found.sample_bytes, found.shard_sizes) == ("|u1", 83, (332, 332, 249))
    content = b"".join(path.read_bytes() for path in sorted(folder(of).glob("shard_*.bin")))
    assert content == image_records(5, np.arange(11), SAMPLE).tobytes()
    larger = of.model_copy(update={"model": ResNetShape(image_size=6, num_classes=7)})
    assert layout(larger).folder_name() != found.folder_name()


def test_images_are_made_a_few_at_a_time() -> None:
    """32 MiB hold 222 records of 3 x 224 x 224 + 8 bytes, and 8192 samples of 2 x 256 tokens of 8 bytes."""
    assert samples_at_a_time(ImageSample(3, 224, 224, 1000)) == 222
    assert samples_at_a_time(TokenSample((2, 256), 8192)) == 8192
    assert samples_at_a_time(TokenSample((2**30,), 2)) == 1


def test_a_copy_of_the_first_two() -> None:
    """Of a batch of one, of that one; it is a copy, so that the batch's memory can go."""
    labels = torch.arange(3)
    batch = Images(torch.zeros(3, 3, 2, 2, dtype=torch.uint8), labels)
    few = copy_of_first(batch)
    assert isinstance(few, Images)
    assert (samples_in(few), few.labels.tolist()) == (2, [0, 1])
    assert few.labels.data_ptr() != labels.data_ptr()
    assert copy_of_first(torch.ones(1, 4)).shape == (1, 4)
