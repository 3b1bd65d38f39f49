"""Where prepared data lies. Imports nothing heavy: every node is asked how much room there is."""

from __future__ import annotations

import os
from pathlib import Path


def data_root(asked: str | None = None) -> Path:
    """The folder that the source gives, else this node's cache folder."""
    return Path(asked or os.environ.get("RAYBENCH_DATA_DIR") or "~/.cache/raybench/data").expanduser()
