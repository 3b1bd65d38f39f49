"""The file that says a data set is complete, and what each of its shards must look like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from raybench.errors import DataError
from raybench.sources.checksums import Described, Told, edges_sha256, whole_sha256
from raybench.sources.layout import Layout, shard_name
from raybench.sources.whole_file import whole_file

NAME: Final = "manifest.json"


def write(directory: Path, layout: Layout, shards: Sequence[Described]) -> None:
    """Describe the finished shards, atomically: with the manifest in place the data set is complete."""
    content = {"layout": layout.facts(), "shards": [asdict(shard) for shard in shards]}
    with whole_file(directory / NAME) as file:
        file.write(json.dumps(content, indent=1).encode())


def exists(directory: Path) -> bool:
    """Whether the data set was completed; without a manifest it is unfinished, whatever lies there."""
    return (directory / NAME).exists()


def check(directory: Path, layout: Layout) -> None:
    """Hold the data set to its manifest, and the manifest to what is asked for.

    Raises:
        DataError: something is missing, cut, altered or foreign; names the file and the cure.
    """
    shards = _read(directory, layout)
    for shard, size in enumerate(layout.shard_sizes):
        path = directory / shard_name(shard)
        if not path.is_file():
            raise _spoilt(path, "is no file" if path.exists() else "is missing")
        if path.stat().st_size != size:
            raise _spoilt(path, f"has {path.stat().st_size} bytes instead of {size}")
        if edges_sha256(path) != shards[shard]["edges_sha256"]:
            raise _spoilt(path, "was altered: its first or last MB is not what was written")


def verify(directory: Path, layout: Layout, told: Told) -> None:
    """The same, and every byte of every shard.

    Raises:
        DataError: likewise, or the manifest is of a version that kept no checksum of the whole.
    """
    check(directory, layout)
    done = 0
    for shard in _read(directory, layout):
        path = directory / shard["name"]
        if "sha256" not in shard:
            raise _spoilt(directory / NAME, "is of an earlier version, without checksums of whole files")
        if whole_sha256(path) != shard["sha256"]:
            raise _spoilt(path, "was altered: its SHA-256 is not that of what was written")
        told(done := done + path.stat().st_size, layout.total_bytes)


def _read(directory: Path, layout: Layout) -> list[dict[str, Any]]:
    """The manifest's shards, once it is sure to be that of this layout."""
    path = directory / NAME
    try:
        content = json.loads(path.read_text())
        found, shards = content["layout"], content["shards"]
        names = [shard["name"] for shard in shards]
        complete = all("edges_sha256" in shard for shard in shards)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _spoilt(path, f"cannot be read ({error})") from error
    if found != layout.facts() or not complete or names != [shard_name(i) for i in range(len(layout.shard_sizes))]:
        raise _spoilt(path, "describes another data set")
    return list(shards)


def _spoilt(path: Path, what: str) -> DataError:
    return DataError(f"{path} {what}; delete the folder {path.parent} and run again, and it is prepared anew")
