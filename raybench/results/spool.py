"""The folder on this machine where a run keeps what goes to an object store, until it is known to lie there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from raybench.results.atomic import make_folder, told_as_store_error, write_file
from raybench.results.layout import LAYOUT
from raybench.results.objects import ObjectPath

_LOCK = "lock"
_PLACE = "place.txt"


def spool_root() -> Path:
    """`RAYBENCH_SPOOL_DIR`, or a folder in this user's cache."""
    return Path(os.environ.get("RAYBENCH_SPOOL_DIR") or "~/.cache/raybench/spool").expanduser()


@dataclass(frozen=True)
class Spool:
    """One run's folder, which no other process touches as long as this one holds its lock."""

    folder: Path
    lock: int

    @property
    def root(self) -> Path:
        """The `raybench-v1` folder in it: `raybench show` reads the spool as any other results."""
        return self.folder / LAYOUT

    def files(self) -> list[Path]:
        """What lies in it, in the order to put it."""
        found = [path for path in self.root.rglob("*") if path.is_file() and not path.name.endswith(".part")]
        return sorted(found, key=lambda path: (order(path.relative_to(self.root)), path))

    def remove(self) -> None:
        """Everything in it lies in the store."""
        shutil.rmtree(self.folder, ignore_errors=True)      # what is left of it, the next run puts once more
        os.close(self.lock)

    def release(self) -> None:
        """Leave it to the next run into the same place."""
        os.close(self.lock)


def order(name: Path) -> int:
    """When a file of a run is put: what a trial's row implies, the rows, the note that the run is complete."""
    return 1 if name.parts[0] == "trials" else 2 if name.name == "COMPLETE.json" else 0


def new_spool(place: ObjectPath, sweep_run_id: str) -> Spool:
    """The spool of a run that begins. StoreError where this machine cannot keep one."""
    folder = _folder(place) / sweep_run_id
    make_folder(folder)
    write_file(folder.parent / _PLACE, f"{place}\n".encode())
    with told_as_store_error(folder):
        lock = _lock(folder)
    assert lock is not None, folder
    return Spool(folder, lock)


def left_spools(place: ObjectPath) -> Iterator[Spool]:
    """What ended runs into this place left behind, oldest first."""
    for folder in sorted(path.parent for path in _folder(place).glob(f"*/{_LOCK}")):
        with suppress(FileNotFoundError):      # another run has just emptied it
            lock = _lock(folder)
            if lock is not None:
                yield Spool(folder, lock)


def waiting_files(place: ObjectPath) -> list[Path]:
    """What waits on this machine to be put into this place."""
    return sorted(path for path in _folder(place).glob(f"*/{LAYOUT}/*/*/*") if path.suffix == ".parquet")


def _folder(place: ObjectPath) -> Path:
    told = re.sub(r"[^a-z0-9-]+", "-", place.key.lower())[:40].strip("-")
    digest = hashlib.sha256(f"{place.scheme}://{place.key}@{place.endpoint}".encode()).hexdigest()
    return spool_root() / f"{told}-{digest[:12]}"


def _lock(folder: Path) -> int | None:
    """A lock that goes with this process, however it ends; None where another holds it. FileNotFoundError if gone."""
    descriptor = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / _LOCK).stat()      # whoever held it may have removed it
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor
