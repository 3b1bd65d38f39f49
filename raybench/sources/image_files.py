"""The `images` source: JPEG or PNG bytes in Parquet, as image data sets are kept, decoded where batches are made.

A folder holds `shard_0000.parquet`, ..., a row an image in the order of the samples, with the columns `image` (binary)
and `label` (int64), in row groups of a few images; `_manifest.json` comes last.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.checksums import Told, whole_sha256
from raybench.sources.encoding import ENCODER_VERSION, UndecodableError, decoded, encoded, need_pillow
from raybench.sources.images import LABEL_BYTES, image_records, record_bytes
from raybench.sources.index import Share, runs
from raybench.sources.layout import Layout, layout
from raybench.sources.lock import locked
from raybench.sources.parquet import NAME
from raybench.sources.root import data_root
from raybench.sources.whole_file import whole_file
from raybench.sources.write_shards import end_journal, finished_shards
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.samples import ImageSample

FORMAT_VERSION: Final = 1
IMAGE, LABEL = "image", "label"
DEFAULT_FORMAT: Final = "jpeg"
ROW_GROUP: Final = 64                  # images that are read together: a micro-batch reads at most two groups too many
_SCHEMA: Final = pa.schema([pa.field(IMAGE, pa.binary(), nullable=False), pa.field(LABEL, pa.int64(), nullable=False)])


def image_folder(config: TrialConfig) -> Path:
    """Where a config's images lie on this node."""
    assert config.source is not None
    name = hashlib.sha256(canonical_json(_facts(config)).encode()).hexdigest()[:16]
    return data_root(config.source.data_dir) / f"images-{name}"


def image_names(wanted: Layout) -> list[str]:
    """The files in it."""
    return [f"shard_{shard:04d}.parquet" for shard in range(len(wanted.shard_sizes))]


def prepare_images(config: TrialConfig, told: Told) -> None:
    """Encode the images that every source has, once, and check what lies there.

    Raises:
        DataError: a file is missing, cut, altered or foreign; names it and the cure.
        UnsupportedError: there is no Pillow here.
    """
    need_pillow()
    directory, wanted = image_folder(config), layout(config)
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if not (directory / NAME).exists():
            paths = [directory / name for name in image_names(wanted)]
            shards = finished_shards(paths, wanted, lambda path, shard: _write_shard(path, config, shard), told)
            manifest.write_to(directory / NAME, _facts(config), shards)
            end_journal(directory)
        for found in manifest.read(directory / NAME, _facts(config), image_names(wanted)):
            manifest.check_shard(directory / found["name"], found["bytes"], found["edges_sha256"])


def verify_images(config: TrialConfig, told: Told) -> None:
    """Hash every byte of what was prepared.

    Raises:
        DataError: a file is not what was written; names it and the cure.
    """
    place = image_folder(config) / NAME
    manifest.verify_shards(place, manifest.read(place, _facts(config), image_names(layout(config))), told)


def _facts(config: TrialConfig) -> dict[str, Any]:
    return layout(config).facts() | {
        "image_format": _format(config), "encoder_version": ENCODER_VERSION, "images_format_version": FORMAT_VERSION,
    }  # fmt: skip


def _format(config: TrialConfig) -> str:
    assert config.source is not None
    return config.source.image_format or DEFAULT_FORMAT


def _write_shard(path: Path, config: TrialConfig, shard: int) -> str:
    """One shard, and the SHA-256 of what then lies there."""
    wanted = layout(config)
    start = shard * wanted.samples_per_shard
    stop = min(start + wanted.samples_per_shard, wanted.num_samples)
    # The bytes are compressed already, and each is its own value.
    options: dict[str, Any] = {"compression": "NONE", "use_dictionary": False, "write_statistics": False}
    with whole_file(path) as file, pq.ParquetWriter(file, _SCHEMA, **options) as writer:
        for first in range(start, stop, ROW_GROUP):
            writer.write_table(_rows(config, wanted, first, min(first + ROW_GROUP, stop)))
    return whole_sha256(path)


def _rows(config: TrialConfig, wanted: Layout, first: int, stop: int) -> pa.Table:
    assert isinstance(wanted.sample, ImageSample)
    made = image_records(wanted.seed, np.arange(first, stop, dtype=np.int64), wanted.sample)
    labels = np.ascontiguousarray(made[:, :LABEL_BYTES]).view("<i8").reshape(-1)
    images = [encoded(record[LABEL_BYTES:].reshape(wanted.sample.shape), _format(config)) for record in made]
    return pa.table([pa.array(images, pa.binary()), pa.array(labels)], schema=_SCHEMA)


class ImageReader:
    """Decodes each micro-batch of a rank. It is pickled to loader processes before its first use."""

    def __init__(self, share: Share, config: TrialConfig) -> None:
        need_pillow()
        self._directory, self._wanted, self._share = image_folder(config), layout(config), share
        if not (self._directory / NAME).exists():
            raise DataError(f"{self._directory} is not prepared on this node; run raybench.sources.prepare first")
        self._file: tuple[int, Any] | None = None
        self._group: tuple[int, int, Any] | None = None

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, record bytes): labels and pixels, as every source has them.

        Raises:
            DataError: an image is damaged, or a file is not there any more; names the file and the row.
        """
        sample = self._wanted.sample
        assert isinstance(sample, ImageSample)
        batch = np.empty((self._share.micro_batch, record_bytes(sample)), dtype=np.uint8)
        at = 0
        for first, count in runs(self._share.start(micro_step), self._share.micro_batch, self._share.num_samples):
            for index in range(first, first + count):
                self._decode(index, batch[at], sample)
                at += 1
        return torch.from_numpy(batch)

    def close(self) -> None:
        """Close the open file."""
        if self._file is not None:
            self._file[1].close()
        self._file = self._group = None

    def _decode(self, index: int, record: np.ndarray[Any, np.dtype[np.uint8]], sample: ImageSample) -> None:
        shard, row = divmod(index, self._wanted.samples_per_shard)
        path = self._directory / image_names(self._wanted)[shard]
        try:
            group = self._rows(path, shard, row // ROW_GROUP)
            content, label = (group.column(name)[row % ROW_GROUP].as_py() for name in (IMAGE, LABEL))
            pixels = decoded(content, sample.height, sample.width)
        except UndecodableError as error:
            raise self._damaged(path, f"row {row} {error}") from error
        except (OSError, IndexError, pa.ArrowException) as error:
            raise self._damaged(path, f"cannot be read at row {row} ({' '.join(str(error).split())})") from error
        if not 0 <= label < sample.num_classes:
            raise self._damaged(path, f"row {row} has the label {label}, and there are {sample.num_classes} classes")
        record[:LABEL_BYTES] = np.frombuffer(np.int64(label).astype("<i8").tobytes(), np.uint8)
        record[LABEL_BYTES:] = pixels.reshape(-1)

    def _rows(self, path: Path, shard: int, group: int) -> Any:
        """A row group, which the next images most likely lie in, too."""
        if self._group is None or self._group[:2] != (shard, group):
            if self._file is None or self._file[0] != shard:
                self.close()
                self._file = (shard, pq.ParquetFile(path))
            self._group = (shard, group, self._file[1].read_row_group(group, columns=[IMAGE, LABEL], use_threads=False))
        return self._group[2]

    @staticmethod
    def _damaged(path: Path, what: str) -> DataError:
        return DataError(f"{path} {what}; delete the folder {path.parent} and run again")
