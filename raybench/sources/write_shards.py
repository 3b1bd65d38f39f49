"""Writing shards, so that a preparation that was killed goes on from those that were finished.

A finished shard stands in a journal beside the shards, with its checksums. What does not stand there, or is not what
stands there to the last byte, is made anew, whatever lies in its place. The manifest comes last and ends the journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.checksums import Described, Told, described, edges_sha256
from raybench.sources.layout import Layout, shard_name
from raybench.sources.records import records, samples_at_a_time
from raybench.sources.space import check_space
from raybench.sources.whole_file import whole_file

JOURNAL: Final = "_finished.jsonl"


def write_shards(directory: Path, wanted: Layout, told: Told) -> None:
    """All shards that are not finished yet, then the manifest.

    Raises:
        DataError: the disk cannot hold them, or something is in a shard's place that cannot be written over.
    """
    _check_space(directory, wanted)
    finished, shards, done = _journal(directory), [], 0
    for shard, size in enumerate(wanted.shard_sizes):
        told(done, wanted.total_bytes)
        shards.append(_kept(directory, finished, shard) or _made(directory, wanted, shard))
        done += size
    told(done, wanted.total_bytes)
    manifest.write(directory, wanted, shards)
    (directory / JOURNAL).unlink(missing_ok=True)


def _check_space(directory: Path, wanted: Layout) -> None:
    """An unfinished attempt's shards are kept or written over, so they count as free."""
    reused = sum(path.stat().st_size for path in directory.glob("shard_*.bin") if path.is_file())
    cure = "choose another source.data_dir or a smaller source.num_samples"
    check_space(directory, wanted.total_bytes, reused_bytes=reused, cure=cure)


def _journal(directory: Path) -> Mapping[str, Described]:
    """What was finished, by name. A line that was cut, the last, is none."""
    path, found = directory / JOURNAL, {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            shard = Described(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[shard.name] = shard
    return found


def _kept(directory: Path, finished: Mapping[str, Described], shard: int) -> Described | None:
    """A shard that lies there as it was finished, read from end to end; else None."""
    path = directory / shard_name(shard)
    noted = finished.get(path.name)
    if noted is None or path.is_symlink() or not path.is_file() or path.stat().st_size != noted.bytes:
        return None
    return noted if described(path) == noted else None


def _made(directory: Path, wanted: Layout, shard: int) -> Described:
    """Write a shard, and then that it is finished."""
    path = directory / shard_name(shard)
    if path.is_dir() and not path.is_symlink():
        raise DataError(f"{path} is a folder where a shard belongs; delete the folder {directory} and run again")
    sha256 = _write_shard(path, wanted, shard)
    made = Described(
        name=path.name, bytes=wanted.shard_sizes[shard], edges_sha256=edges_sha256(path), sha256=sha256
    )
    with (directory / JOURNAL).open("a") as file:
        file.write(f"{json.dumps(asdict(made))}\n")
    return made


def _write_shard(path: Path, wanted: Layout, shard: int) -> str:
    """One shard under its own name only when it is whole and on the disk; the SHA-256 of what was written."""
    start = shard * wanted.samples_per_shard
    stop = min(start + wanted.samples_per_shard, wanted.num_samples)
    chunk, digest = samples_at_a_time(wanted.sample), hashlib.sha256()
    with whole_file(path) as file:
        for first in range(start, stop, chunk):
            indices = np.arange(first, min(first + chunk, stop), dtype=np.int64)
            content = records(wanted.seed, indices, wanted.sample).astype(wanted.dtype, copy=False).data
            file.write(content)
            digest.update(content)
    return digest.hexdigest()
