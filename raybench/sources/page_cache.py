"""What the kernel's page cache holds of the data when a trial starts: nothing, all of it, or whatever it holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from raybench.errors import DataError
from raybench.sources.places import data_files
from raybench.spec.config import TrialConfig

_BLOCK_BYTES: Final = 4 * 2**20


def settle(config: TrialConfig) -> None:
    """Bring this node's page cache into the state that the config asks for, after the data was checked.

    Nobody on the node may have the files mapped: pages of a mapped file stay. raybench's own readers map none.

    Raises:
        DataError: this system cannot drop what it caches.
    """
    for file in data_files(config):
        if config.data_cache == "cold":
            _drop(file)
        elif config.data_cache == "warm":
            _read_through(file)


def _drop(path: Path) -> None:
    """Forget the file's pages. Those not yet on the disk cannot be forgotten, so they are written first."""
    if not hasattr(os, "posix_fadvise"):
        raise DataError("data_cache: cold needs posix_fadvise, which this system lacks; give data_cache: as_is")
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _read_through(path: Path) -> None:
    memory = bytearray(_BLOCK_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(memory):
            pass
