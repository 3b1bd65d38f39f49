"""A file appears whole or not at all, whatever kills the process or fills the disk."""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from raybench.errors import StoreError

LEFTOVER_AGE_S: Final = 86_400.0

_CURES: Final = {
    errno.ENOSPC: "free some space or choose another --out",
    errno.EDQUOT: "free some space or choose another --out",
    errno.EROFS: "choose a folder that may be written with --out",
    errno.EACCES: "choose a folder that may be written with --out",
    errno.EPERM: "choose a folder that may be written with --out",
    errno.ENOTDIR: "a file is in the way: choose a folder with --out",
    errno.EEXIST: "something else made it: remove it or choose another --out",
}


def write_file(path: Path, data: bytes | memoryview, check: Callable[[Path], None] | None = None) -> None:
    """Put `data` at `path`, replacing what was there, once `check` accepted it as it lies on disk.

    Raises `StoreError` naming path and reason; then `path` is what it was before and nothing partial is left.
    """
    part = _part_path(path)
    with told_as_store_error(path):
        # O_EXCL | O_NOFOLLOW: in a folder shared with others, what somebody put there is not written through.
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, memoryview(data))
            os.fsync(descriptor)
            if check is not None:
                check(part)
            os.fchmod(descriptor, 0o644)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, durably."""
    with told_as_store_error(path):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)


def remove_leftovers(root: Path, now_s: float | None = None) -> None:
    """Remove the temporary files that killed runs of this host left a day ago or earlier under a `raybench-v1`."""
    oldest_s = (time.time() if now_s is None else now_s) - LEFTOVER_AGE_S
    for pattern in (f"*/*/_*.{host_name()}.part", f"_meta/*/*/_*.{host_name()}.part"):
        for part in root.glob(pattern):
            # Another run may be tidying too, and what another user left is not ours to remove: neither stops a run.
            with suppress(FileNotFoundError, PermissionError):
                if part.lstat().st_mtime < oldest_s:
                    part.unlink()


@contextmanager
def told_as_store_error(path: Path) -> Iterator[None]:
    """What the operating system refuses becomes one line: path, reason, cure."""
    try:
        yield
    except OSError as error:
        cure = _CURES.get(error.errno or 0)
        reason = error.strerror or str(error)
        raise StoreError(f"cannot write {path}: {reason}" + (f"; {cure}" if cure else "")) from error


def _part_path(path: Path) -> Path:
    # Leading underscore and no `.parquet` ending: pandas skips the first, DuckDB and Polars go by the second.
    return path.with_name(f"_{path.name}.{host_name()}.part")


def host_name() -> str:
    """This host, as a part of a file's name."""
    return re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:63] or "unnamed"


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def sync_folder(folder: Path) -> None:
    """See that the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
