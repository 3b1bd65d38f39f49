"""What `ray job submit --working-dir FOLDER` would carry to the cluster: all but what the ignore files name."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

MAX_UPLOAD_BYTES = 512 * 2**20
"""Ray's limit for the packed folder, that of one of its messages."""


@dataclass(frozen=True)
class Upload:
    """Sizes before packing. `largest`: the entry of the folder that holds the most of it."""

    num_files: int
    num_bytes: int
    largest: str


def upload_of(folder: Path) -> Upload:
    """Walk the folder as Ray does, `.rayignore` and `.gitignore` included."""
    from ray._private.runtime_env.packaging import _dir_travel  # what packs it

    root = folder.absolute()
    sizes: Counter[str] = Counter()
    num_files = 0

    def add(path: Path) -> None:
        nonlocal num_files
        if path.is_file():
            num_files += 1
            sizes[path.relative_to(root).parts[0]] += path.stat().st_size

    _dir_travel(root, [], add, include_gitignore=True, logger=logging.getLogger(__name__))
    return Upload(num_files, sizes.total(), sizes.most_common(1)[0][0] if sizes else "")
