"""Parquet that `ray_data` streams: samples as they are in the other sources, one a row, made once; or tokens of one's
own, checked before they are read.

A row's one column holds the values of a sample in order: tokens, or the bytes of a label and its image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from raybench.sources import manifest
from raybench.sources.checksums import Told, whole_sha256
from raybench.sources.layout import DTYPES, Layout, layout
from raybench.sources.lock import locked
from raybench.sources.own_parquet import check_own
from raybench.sources.records import record_shape, records, samples_at_a_time
from raybench.sources.root import data_root
from raybench.sources.whole_file import whole_file
from raybench.sources.write_shards import end_journal, finished_shards
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.samples import TokenSample

FORMAT_VERSION: Final = 1
NAME: Final = "_manifest.json"            # readers of a folder of Parquet skip names that begin so
_ARROW: Final = {**{dtype: getattr(pa, name)() for name, dtype in DTYPES.items()}, "|u1": pa.uint8()}


def parquet_folder(config: TrialConfig) -> Path:
    """The folder that a config's `ray_data` reads: its own, or the one that is prepared for it."""
    assert config.source is not None
    if config.source.path is not None:
        return Path(config.source.path).expanduser()
    name = hashlib.sha256(canonical_json(_facts(layout(config))).encode()).hexdigest()[:16]
    return data_root(config.source.data_dir) / f"parquet-{name}"


def column(config: TrialConfig) -> str:
    """The column that holds the samples."""
    assert config.source is not None
    made = "tokens" if isinstance(layout(config).sample, TokenSample) else "record"
    return config.source.column or made


def prepare_parquet(config: TrialConfig, told: Told) -> None:
    """Make the folder and check it, or check one that somebody else made.

    Raises:
        DataError: it is not what it should be, or cannot serve the config; names the file and the cure.
    """
    assert config.source is not None
    directory, wanted = parquet_folder(config), layout(config)
    if config.source.path is not None:
        check_own(directory, column(config), wanted, config.source.dtype)
        return
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if not (directory / NAME).exists():
            _write(directory, column(config), wanted, told)
        _check(directory, wanted)


def verify_parquet(config: TrialConfig, told: Told) -> None:
    """Hash every byte of what was prepared. Nobody knows what somebody else's should be.

    Raises:
        DataError: a file is not what was written; names it and the cure.
    """
    assert config.source is not None
    directory, wanted = parquet_folder(config), layout(config)
    if config.source.path is None:
        _check(directory, wanted)
        manifest.verify_shards(
            directory / NAME, manifest.read(directory / NAME, _facts(wanted), _names(wanted)), told
        )


def _write(directory: Path, name: str, wanted: Layout, told: Told) -> None:
    """What is not finished yet, then the manifest: without one all is unfinished."""
    paths = [directory / each for each in _names(wanted)]
    shards = finished_shards(paths, wanted, lambda path, shard: _write_shard(path, name, wanted, shard), told)
    manifest.write_to(directory / NAME, _facts(wanted), shards)
    end_journal(directory)


def _facts(wanted: Layout) -> dict[str, Any]:
    return wanted.facts() | {"parquet_format_version": FORMAT_VERSION}


def _name(shard: int) -> str:
    return f"shard_{shard:04d}.parquet"


def _names(wanted: Layout) -> list[str]:
    return [f"shard_{shard:04d}.parquet" for shard in range(len(wanted.shard_sizes))]


def _write_shard(path: Path, name: str, wanted: Layout, shard: int) -> str:
    """One shard, and the SHA-256 of what then lies there: Parquet goes back to nothing that it has written."""
    # Without nulls, which cost a level of nesting for every value that is read.
    value = pa.field("element", _ARROW[wanted.dtype], nullable=False)
    kind = pa.list_(value, prod(record_shape(wanted.sample)))
    schema = pa.schema([pa.field(name, kind, nullable=False)])
    with whole_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        for values in _chunks(wanted, shard * wanted.samples_per_shard):
            rows = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=kind)
            writer.write_table(pa.table([rows], schema=schema))
    return whole_sha256(path)


def _chunks(wanted: Layout, start: int) -> Iterator[npt.NDArray[Any]]:
    """The samples of a shard from `start` on, a row group at a time."""
    stop, step = min(start + wanted.samples_per_shard, wanted.num_samples), samples_at_a_time(wanted.sample)
    for first in range(start, stop, step):
        indices = np.arange(first, min(first + step, stop), dtype=np.int64)
        yield records(wanted.seed, indices, wanted.sample).astype(wanted.dtype, copy=False)


def _check(directory: Path, wanted: Layout) -> None:
    """Hold the folder to its manifest, and the manifest to what is asked for."""
    shards = manifest.read(directory / NAME, _facts(wanted), _names(wanted))
    for foreign in {file.name for file in directory.glob("*.parquet")} - set(_names(wanted)):
        raise manifest.spoilt(directory / foreign, "does not belong there")
    for shard in shards:
        manifest.check_shard(directory / shard["name"], shard["bytes"], shard["edges_sha256"])
