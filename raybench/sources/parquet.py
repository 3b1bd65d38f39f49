"""Parquet that `ray_data` streams: samples as they are in the other sources, one a row, made once; or tokens of one's
own, checked before they are read.

A row's one column holds the values of a sample in order: tokens, or the bytes of a label and its image.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from raybench.errors import DataError
from raybench.sources.checksums import edges_sha256
from raybench.sources.layout import DTYPES, Layout, layout
from raybench.sources.lock import locked
from raybench.sources.own_parquet import check_own
from raybench.sources.records import record_shape, records, samples_at_a_time
from raybench.sources.root import data_root
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.samples import TokenSample

FORMAT_VERSION: Final = 1
NAME: Final = "_manifest.json"            # readers of a folder of Parquet skip names that begin so
_SPARE_BYTES: Final = 256 * 2**20            # left free on the disk
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


def prepare_parquet(config: TrialConfig) -> None:
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
            _write(directory, column(config), wanted)
        _check(directory, wanted)


def _facts(wanted: Layout) -> dict[str, Any]:
    return wanted.facts() | {"parquet_format_version": FORMAT_VERSION}


def _name(shard: int) -> str:
    return f"shard_{shard:04d}.parquet"


def _write(directory: Path, name: str, wanted: Layout) -> None:
    """Every shard under its own name when it is whole; the manifest last, so that without one all is unfinished."""
    free = shutil.disk_usage(directory).free - _SPARE_BYTES
    if wanted.total_bytes > free:
        raise DataError(
            f"{directory} needs up to {wanted.total_bytes / 1e9:.1f} GB and its disk has {max(0, free) / 1e9:.1f} GB "
            "to spare; choose another source.data_dir or a smaller source.num_samples"
        )
    paths = [directory / _name(shard) for shard in range(len(wanted.shard_sizes))]
    for shard, path in enumerate(paths):
        _write_shard(path, name, wanted, shard * wanted.samples_per_shard)
    described = [
        {"name": path.name, "bytes": path.stat().st_size, "edges_sha256": edges_sha256(path)} for path in paths
    ]
    part = directory / f"{NAME}.part"
    with part.open("w") as file:
        json.dump({"layout": _facts(wanted), "shards": described}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(directory / NAME)


def _write_shard(path: Path, name: str, wanted: Layout, start: int) -> None:
    part = path.with_name(f"_{path.name}.part")
    # Without nulls, which cost a level of nesting for every value that is read.
    value = pa.field("element", _ARROW[wanted.dtype], nullable=False)
    kind = pa.list_(value, prod(record_shape(wanted.sample)))
    with part.open("wb") as file:
        with pq.ParquetWriter(file, pa.schema([pa.field(name, kind, nullable=False)])) as writer:
            for values in _chunks(wanted, start):
                rows = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=kind)
                writer.write_table(pa.table([rows], schema=writer.schema))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _chunks(wanted: Layout, start: int) -> Iterator[npt.NDArray[Any]]:
    """The samples of a shard from `start` on, a row group at a time."""
    stop, step = min(start + wanted.samples_per_shard, wanted.num_samples), samples_at_a_time(wanted.sample)
    for first in range(start, stop, step):
        indices = np.arange(first, min(first + step, stop), dtype=np.int64)
        yield records(wanted.seed, indices, wanted.sample).astype(wanted.dtype, copy=False)


def _check(directory: Path, wanted: Layout) -> None:
    """Hold the folder to its manifest, and the manifest to what is asked for."""
    path = directory / NAME
    try:
        content = json.loads(path.read_text())
        found, shards = content["layout"], content["shards"]
        described = {shard["name"]: (shard["bytes"], shard["edges_sha256"]) for shard in shards}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _spoilt(path, f"cannot be read ({error})") from error
    names = [_name(shard) for shard in range(len(wanted.shard_sizes))]
    if found != _facts(wanted) or list(described) != names:
        raise _spoilt(path, "describes another data set")
    for foreign in {file.name for file in directory.glob("*.parquet")} - set(names):
        raise _spoilt(directory / foreign, "does not belong there")
    for name in names:
        _check_shard(directory / name, *described[name])


def _check_shard(path: Path, size: int, edges: str) -> None:
    if not path.is_file():
        raise _spoilt(path, "is missing")
    if path.stat().st_size != size:
        raise _spoilt(path, f"has {path.stat().st_size} bytes instead of {size}")
    if edges_sha256(path) != edges:
        raise _spoilt(path, "was altered: its first or last MB is not what was written")


def _spoilt(path: Path, what: str) -> DataError:
    return DataError(f"{path} {what}; delete the folder {path.parent} and run again, and it is prepared anew")
