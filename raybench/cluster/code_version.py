"""A hash of raybench's own sources: workers must run the driver's code, not an older install of it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def source_hash() -> str:
    """16 hex of SHA-256 over every Python file of the installed package, by relative path."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
