"""Writing shards, so that a preparation that was killed goes on from those that were finished.

A finished shard stands in a journal beside the shards, with its checksums. What does not stand there, or is not what
stands there to the last byte, is made anew, whatever lies in its place. The manifest comes last and ends the journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
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
    paths = [directory / shard_name(shard) for shard in range(len(wanted.shard_sizes))]
    shards = finished_shards(paths, wanted, lambda path, shard: _write_shard(path, wanted, shard), told)
    manifest.write(directory, wanted, shards)
    end_journal(directory)


def finished_shards(
    paths: Sequence[Path], wanted: Layout, write: Callable[[Path, int], str], told: Told
) -> list[Described]:
    """Each shard as it lies there or, where it is not finished, is made by `write`, which gives its SHA-256."""
    directory, total = paths[0].parent, wanted.total_bytes
    # An unfinished attempt's shards are kept or written over, so they count as free.
    reused = sum(path.stat().st_size for path in directory.glob(f"shard_*{paths[0].suffix}") if path.is_file())
    cure = "choose another source.data_dir or a smaller source.num_samples"
    check_space(directory, total, reused_bytes=reused, cure=cure)
    noted, shards, done = _journal(directory), list[Described](), 0
    for shard, (path, size) in enumerate(zip(paths, wanted.shard_sizes, strict=True)):
        told(done, total)
        shards.append(_kept(path, noted.get(path.name)) or _made(path, shard, write))
        done += size
    told(done, total)
    return shards


def end_journal(directory: Path) -> None:
    """There is a manifest now."""
    (directory / JOURNAL).unlink(missing_ok=True)


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


def _kept(path: Path, noted: Described | None) -> Described | None:
    """A shard that lies there as it was finished, read from end to end; else None."""
    if noted is None or path.is_symlink() or not path.is_file() or path.stat().st_size != noted.bytes:
        return None
    return noted if described(path) == noted else None


def _made(path: Path, shard: int, write: Callable[[Path, int], str]) -> Described:
    """Write a shard, and then that it is finished."""
    if path.is_dir() and not path.is_symlink():
        raise DataError(f"{path} is a folder where a shard belongs; delete the folder {path.parent} and run again")
    sha256 = write(path, shard)
    made = Described(name=path.name, bytes=path.stat().st_size, edges_sha256=edges_sha256(path), sha256=sha256)
    with (path.parent / JOURNAL).open("a") as file:
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
