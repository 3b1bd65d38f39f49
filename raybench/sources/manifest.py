"""The file that says a data set is complete, and what each of its shards must look like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    write_to(directory / NAME, layout.facts(), shards)


def write_to(path: Path, facts: Mapping[str, Any], shards: Sequence[Described]) -> None:
    """The same under any name, of a data set that these facts tell from others."""
    content = {"layout": facts, "shards": [asdict(shard) for shard in shards]}
    with whole_file(path) as file:
        file.write(json.dumps(content, indent=1).encode())


def exists(directory: Path) -> bool:
    """Whether the data set was completed; without a manifest it is unfinished, whatever lies there."""
    return (directory / NAME).exists()


def check(directory: Path, layout: Layout) -> None:
    """Hold the data set to its manifest, and the manifest to what is asked for.

    Raises:
        DataError: something is missing, cut, altered or foreign; names the file and the cure.
    """
    for shard, size in zip(_read(directory, layout), layout.shard_sizes, strict=True):
        check_shard(directory / shard["name"], size, shard["edges_sha256"])


def check_shard(path: Path, size: int, edges: str) -> None:
    """Hold a file to its size and to what its first and last MB were."""
    if not path.is_file():
        raise spoilt(path, "is no file" if path.exists() else "is missing")
    if path.stat().st_size != size:
        raise spoilt(path, f"has {path.stat().st_size} bytes instead of {size}")
    if edges_sha256(path) != edges:
        raise spoilt(path, "was altered: its first or last MB is not what was written")


def verify(directory: Path, layout: Layout, told: Told) -> None:
    """The same, and every byte of every shard.

    Raises:
        DataError: likewise, or the manifest is of a version that kept no checksum of the whole.
    """
    check(directory, layout)
    verify_shards(directory / NAME, _read(directory, layout), told)


def verify_shards(path: Path, shards: Sequence[Mapping[str, Any]], told: Told) -> None:
    """Hash every byte of the files that the manifest at `path` describes."""
    done, total = 0, sum(shard["bytes"] for shard in shards)
    for shard in shards:
        if "sha256" not in shard:
            raise spoilt(path, "is of an earlier version, without checksums of whole files")
        if whole_sha256(path.with_name(shard["name"])) != shard["sha256"]:
            raise spoilt(path.with_name(shard["name"]), "was altered: its SHA-256 is not that of what was written")
        told(done := done + shard["bytes"], total)


def _read(directory: Path, layout: Layout) -> list[dict[str, Any]]:
    return read(directory / NAME, layout.facts(), [shard_name(shard) for shard in range(len(layout.shard_sizes))])


def read(path: Path, facts: Mapping[str, Any], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The manifest's shards, once it is sure to be that of a data set of these facts and files."""
    try:
        content = json.loads(path.read_text())
        found, shards = content["layout"], content["shards"]
        names = [shard["name"] for shard in shards]
        complete = all("edges_sha256" in shard for shard in shards)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise spoilt(path, f"cannot be read ({error})") from error
    if found != facts or not complete or names != list(wanted):
        raise spoilt(path, "describes another data set")
    return list(shards)


def spoilt(path: Path, what: str) -> DataError:
    """What is wrong with a file of prepared data, with the cure."""
    return DataError(f"{path} {what}; delete the folder {path.parent} and run again, and it is prepared anew")
