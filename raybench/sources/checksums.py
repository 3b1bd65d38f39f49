"""What a file of prepared data was when it was written: its size and two checksums, one of them quick to look at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

_EDGE_BYTES: Final = 2**20      # of each end of a file; all of it would take as long as preparing again
_BLOCK_BYTES: Final = 4 * 2**20

Told: TypeAlias = Callable[[int, int], None]
"""Is told how far preparing is, as often as there is something new: bytes done, bytes in all."""


def nobody(done_bytes: int, total_bytes: int) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """A whole file. `edges_sha256` is over its first and last MB."""

    name: str
    bytes: int
    edges_sha256: str
    sha256: str


def described(path: Path) -> Described:
    """Read the whole file."""
    return Described(
        name=path.name, bytes=path.stat().st_size, edges_sha256=edges_sha256(path), sha256=whole_sha256(path)
    )


def edges_sha256(path: Path) -> str:
    """SHA-256 over the first and the last MB of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_EDGE_BYTES))
        file.seek(max(0, path.stat().st_size - _EDGE_BYTES))
        digest.update(file.read(_EDGE_BYTES))
    return digest.hexdigest()


def whole_sha256(path: Path) -> str:
    """SHA-256 over all of a file."""
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()


def blocks(path: Path, size: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """A file's content, piece by piece."""
    with path.open("rb", buffering=0) as file:
        while block := file.read(size):
            yield block
