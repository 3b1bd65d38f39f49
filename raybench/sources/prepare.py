"""Preparing data once per node, outside any process group: no collective waits while gigabytes are written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.cifar100 import prepare_cifar100
from raybench.sources.layout import Layout, folder, layout, shard_name
from raybench.sources.lock import locked
from raybench.sources.page_cache import settle
from raybench.sources.parquet import prepare_parquet
from raybench.sources.records import records, samples_at_a_time
from raybench.sources.root import data_root
from raybench.sources.token_file import prepare_tokens
from raybench.spec.config import TrialConfig

_SPARE_BYTES = 256 * 2**20           # left free on the disk


def prepare(config: TrialConfig) -> None:
    """Make, or check, what a config's source needs on this node, and settle what the page cache holds of it.

    Sources that need nothing are done at once.

    A second run that wants the same data waits until the first has it, then checks it.

    Raises:
        DataError: prepared data is not what its manifest says, the disk cannot hold or take it, or another run hangs.
    """
    makers = {"shards": _prepare_shards, "tokens": prepare_tokens, "cifar100": prepare_cifar100,
              "ray_data": prepare_parquet}  # fmt: skip
    if config.source is None or config.source.name not in makers:
        return
    try:
        makers[config.source.name](config)
        settle(config)
    except OSError as error:
        where = data_root(config.source.data_dir)
        raise DataError(f"cannot prepare data in {where}: {error}; choose another source.data_dir") from error


def _prepare_shards(config: TrialConfig) -> None:
    directory, wanted = folder(config), layout(config)
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if not manifest.exists(directory):
            _write(directory, wanted)
        manifest.check(directory, wanted)


def _write(directory: Path, wanted: Layout) -> None:
    _check_space(directory, wanted)
    for shard in range(len(wanted.shard_sizes)):
        _write_shard(directory, wanted, shard)
    manifest.write(directory, wanted)


def _check_space(directory: Path, wanted: Layout) -> None:
    """An unfinished attempt's shards are written over, so they count as free."""
    reused = sum(path.stat().st_size for path in directory.glob("shard_*.bin"))
    free = shutil.disk_usage(directory).free + reused - _SPARE_BYTES
    if wanted.total_bytes > free:
        raise DataError(
            f"{directory} needs {wanted.total_bytes / 1e9:.1f} GB and its disk has {max(0, free) / 1e9:.1f} GB to "
            "spare; choose another source.data_dir or a smaller source.num_samples"
        )


def _write_shard(directory: Path, wanted: Layout, shard: int) -> None:
    """One shard under its own name only when it is whole and on the disk."""
    path = directory / shard_name(shard)
    part = directory / f"_{path.name}.part"
    start = shard * wanted.samples_per_shard
    stop = min(start + wanted.samples_per_shard, wanted.num_samples)
    chunk = samples_at_a_time(wanted.sample)
    with part.open("wb") as file:
        for first in range(start, stop, chunk):
            indices = np.arange(first, min(first + chunk, stop), dtype=np.int64)
            samples = records(wanted.seed, indices, wanted.sample)
            file.write(samples.astype(wanted.dtype, copy=False).data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
