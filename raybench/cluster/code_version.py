"""A hash of raybench's own sources: workers must run the driver's code, not an older install of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from raybench.errors import ClusterError
from raybench.version import __version__


@cache
def source_hash() -> str:
    """16 hex of SHA-256 over every Python file of the installed package, by relative path."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def refuse_other_code(workers: Iterable[tuple[str, str, str]]) -> None:
    """`workers`: host, version and source hash of raybench there. Raises ClusterError naming those that differ."""
    others = {host: version for host, version, found in workers if found != source_hash()}
    if others:
        told = ", ".join(f"{host} ({version})" for host, version in sorted(others.items()))
        raise ClusterError(
            f"workers run other sources of raybench than this command's {__version__}: {told}; "
            "install the same raybench on every node, or pass --local"
        )
