"""CIFAR-100's binary version, on an archive of the same form that is made here."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from raybench.engine.session import Session
from raybench.errors import DataError
from raybench.sources import cifar100
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.spec.config import Source, TrialConfig
from raybench.spec.models.resnet import ResNetShape
from raybench.spec.samples import Images
from tests.engine.small import place, resnet

SAMPLES = 11


def made_up() -> bytes:
    """11 records of 2 labels and 3 x 32 x 32 pixels; record i has coarse label i, fine label 50 + i."""
    pixels = np.random.default_rng(0).integers(256, size=(SAMPLES, 3072), dtype=np.uint8)
    labels = np.array([[i, 50 + i] for i in range(SAMPLES)], dtype=np.uint8)
    return np.concatenate([labels, pixels], axis=1).tobytes()


def archive(path: Path, member: str = "cifar-100-binary/train.bin") -> None:
    """A gzipped tar file with one member."""
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo(member)
        info.size = len(made_up())
        tar.addfile(info, io.BytesIO(made_up()))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive as a server has it, with its checksums in place of CIFAR's."""
    path = tmp_path / "server" / "cifar-100-binary.tar.gz"
    path.parent.mkdir()
    archive(path)
    monkeypatch.setattr(cifar100, "URL", path.as_uri())
    monkeypatch.setattr(cifar100, "ARCHIVE_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(cifar100, "TRAIN_SHA256", hashlib.sha256(made_up()).hexdigest())
    return path


def config(root: Path, **changes: object) -> TrialConfig:
    """A tiny network for 40 x 40 pixels and 100 classes."""
    source = Source(name="cifar100", data_dir=str(root / "data"), num_samples=SAMPLES)
    shape = ResNetShape(architecture="resnet18", width=2, num_classes=100, image_size=40)
    return resnet(source=source, model=shape, **changes)


def folder(root: Path) -> Path:
    """Where it is kept."""
    return root / "data" / "cifar100"


def test_what_is_pinned() -> None:
    """The archive's own address, and 64 hex digits of SHA-256 for it and for the file inside."""
    assert cifar100.URL == "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    assert cifar100.RECORD_BYTES * 50_000 == 153_700_000
    assert {len(bytes.fromhex(each)) for each in (cifar100.ARCHIVE_SHA256, cifar100.TRAIN_SHA256)} == {32}


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("prefetch", [0, 2])
def test_images_and_fine_labels(tmp_path: Path, prefetch: int) -> None:
    """Batches of 4 over 11: the third wraps around. Pixels are the planes of red, green and blue, row by row."""
    of = config(tmp_path)
    assert of.source is not None
    of = of.model_copy(update={"source": of.source.model_copy(update={"prefetch": prefetch})})
    prepare(of)
    source = open_source(of, 0, 1, torch.device("cpu"))
    pixels = np.frombuffer(made_up(), np.uint8).reshape(SAMPLES, 3074)[:, 2:].reshape(SAMPLES, 3, 32, 32)
    for indices in ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 0]):
        batch = next(source)
        assert isinstance(batch, Images)
        assert batch.labels.tolist() == [50 + index for index in indices]
        assert np.array_equal(batch.images.numpy(), pixels[indices])
    source.close()


@pytest.mark.usefixtures("published")
def test_a_network_trains_on_it(tmp_path: Path) -> None:
    """Resized from 32 to 40 pixels inside the step."""
    prepare(config(tmp_path))
    result = Session(place()).run(config(tmp_path))
    assert result.measured_samples == 12
    assert result.first_batch_s is not None


def test_it_is_downloaded_once(tmp_path: Path, published: Path) -> None:
    """Found again without the server; only the file that is read and the archive are kept."""
    prepare(config(tmp_path))
    published.unlink()
    prepare(config(tmp_path))
    assert sorted(os.listdir(folder(tmp_path))) == [".lock", "cifar-100-binary.tar.gz", "train.bin"]


def test_without_a_network(tmp_path: Path, published: Path) -> None:
    """One line: what could not be had, and what to do; done so, it works."""
    elsewhere = published.read_bytes()
    published.unlink()
    with pytest.raises(DataError, match=r"cannot be downloaded \(.*\); put cifar-100-binary.tar.gz from") as caught:
        prepare(config(tmp_path))
    assert "\n" not in str(caught.value)
    (folder(tmp_path) / "cifar-100-binary.tar.gz").write_bytes(elsewhere)
    prepare(config(tmp_path))


@pytest.mark.parametrize("name", ["cifar-100-binary.tar.gz", "train.bin"])
@pytest.mark.usefixtures("published")
def test_other_data_is_never_read(tmp_path: Path, name: str) -> None:
    """Another archive, or images that were altered: named, with the cure."""
    folder(tmp_path).mkdir(parents=True)
    (folder(tmp_path) / name).write_bytes(b"another")
    with pytest.raises(DataError, match=f"{name} is not what was published .* delete it and run again"):
        prepare(config(tmp_path))


@pytest.mark.parametrize("member", ["../train.bin", "cifar-100-binary/test.bin"])
def test_an_archive_without_the_images(
    tmp_path: Path, published: Path, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No member chooses where it goes: only the one that is wanted is looked for."""
    archive(published, member)
    monkeypatch.setattr(cifar100, "ARCHIVE_SHA256", hashlib.sha256(published.read_bytes()).hexdigest())
    with pytest.raises(DataError, match=r"has no cifar-100-binary/train\.bin"):
        prepare(config(tmp_path))
    assert not (folder(tmp_path) / "train.bin").exists()


def test_a_node_without_it(tmp_path: Path) -> None:
    """Says so before any step."""
    with pytest.raises(DataError, match="is not prepared on this node"):
        open_source(config(tmp_path), 0, 1, torch.device("cpu"))


def test_room_on_the_disk_is_looked_at_first(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images and archive, 307.4 MB, beside 256 MiB that stay free: a byte less is refused, and nothing is fetched."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=307_400_000 + 256 * 2**20 - 1))
    with pytest.raises(DataError, match=r"needs 0\.3 GB .*; choose another source\.data_dir"):
        prepare(config(tmp_path))
    assert [path.name for path in folder(tmp_path).iterdir()] == [".lock"]
