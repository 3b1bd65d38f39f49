"""Room on the disk, looked at before anything is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from raybench.errors import DataError

SPARE_BYTES: Final = 256 * 2**20           # left free on the disk


def check_space(place: Path, needed_bytes: int, *, reused_bytes: int = 0, cure: str) -> None:
    """Refuse what would fill the disk of `place`, a folder that exists. What is written over counts as free.

    Raises:
        DataError: it would.
    """
    free = shutil.disk_usage(place).free + reused_bytes - SPARE_BYTES
    if needed_bytes > free:
        raise DataError(
            f"{place} needs {needed_bytes / 1e9:.1f} GB and its disk has {max(0, free) / 1e9:.1f} GB to spare; {cure}"
        )
