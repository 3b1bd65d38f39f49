"""One writer a folder of prepared data: the others wait for it, but not for one that hangs."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from raybench.errors import DataError

STUCK_S = 300.0      # a writer changes its folder many times a minute, a reader of first and last MBs is gone by then
_POLL_S = 0.1


@contextmanager
def locked(directory: Path, stuck_s: float = STUCK_S) -> Iterator[None]:
    """Hold the folder's lock; the kernel frees it when the process ends, however it ends.

    Another holder is waited for as long as something in the folder changes.

    Raises:
        DataError: nothing changed for `stuck_s` seconds.
    """
    with (directory / ".lock").open("a") as file:
        _wait_for(file, directory, stuck_s)
        yield


def _wait_for(file: IO[str], directory: Path, stuck_s: float) -> None:
    seen, since_s = _state(directory), time.monotonic()
    while not _taken(file):
        now = _state(directory)
        if now != seen:
            seen, since_s = now, time.monotonic()
        elif time.monotonic() - since_s > stuck_s:
            raise DataError(
                f"another process holds {file.name} and has changed nothing there for {stuck_s:g} s; end it, or choose "
                "another source.data_dir"
            )
        time.sleep(_POLL_S)


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _state(directory: Path) -> frozenset[tuple[str, int, int]]:
    found = set()
    for path in directory.iterdir():
        with suppress(FileNotFoundError):      # renamed since it was listed
            status = path.stat()
            found.add((path.name, status.st_size, status.st_mtime_ns))
    return frozenset(found)
