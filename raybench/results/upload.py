"""Taking a run's files from its spool to the object store, in a thread, so that nobody waits for a store that is away.

Every file is written to the spool first, as it would be to a folder of results. An object is put whole under its final
name and only replaced by this run, so a reader never sees a part of one, whatever becomes of the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from raybench.errors import StoreError
from raybench.results.objects import ObjectPath, ObjectStoreError, retried
from raybench.results.spool import Spool, left_spools, new_spool, order

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0


class Upload:
    """The spool of one run and the thread that empties it into `root`, the `raybench-v1` of the place."""

    def __init__(self, root: ObjectPath, spool: Spool, news: Sequence[str] = ()) -> None:
        self._root, self.spool, self._news = root, spool, list(news)
        self._changed = threading.Condition()
        self._pending: dict[Path, None] = {}
        self._closed: set[Path] = set()      # never written again
        self._doubtful: set[Path] = set()    # a try that failed may still arrive, after the one that did not
        self._busy: Path | None = None
        self._error: ObjectStoreError | None = None
        self._away = False
        self._ending = self._broken = False
        self._pause_s, self._not_before_s = FIRST_PAUSE_S, 0.0
        self._thread = threading.Thread(target=self._serve, name="raybench-upload", daemon=True)
        self._thread.start()

    def begin(self, path: Path) -> None:
        """Put a first file, to know that the place may be written. ObjectStoreError, and no spool, where it may not."""
        try:
            retried(lambda: self._object(path).write_bytes(path.read_bytes()))
        except ObjectStoreError:
            self._end_thread()
            self.spool.remove()
            raise

    def add(self, path: Path) -> None:
        """A file of the spool is new or was replaced."""
        with self._changed:
            self._pending[path] = None
            self._changed.notify_all()

    def keep_no_longer(self, paths: Iterable[Path]) -> None:
        """These files are never written again: the spool need not hold what lies in the store."""
        with self._changed:
            self._closed |= set(paths)
            for path in self._closed - self._pending.keys() - {self._busy} - self._doubtful:
                self._drop(path)

    def _drop(self, path: Path) -> None:
        self._closed.discard(path)
        path.unlink(missing_ok=True)

    def settle(self, limit_s: float) -> None:
        """Wait until everything lies in the store, or the store is known not to answer."""
        with self._changed:
            self._changed.wait_for(lambda: not self._left() or self._error is not None, limit_s)

    def news(self) -> list[str]:
        """What there is to tell since the last time: that rows were put that had waited, that the store went away."""
        with self._changed:
            told, self._news = self._news, []
        return told

    def end(self, limit_s: float) -> None:
        """Put what is left and remove the spool. StoreError, with the spool's path, when the store stays away."""
        until_s = time.monotonic() + limit_s
        with self._changed:
            if not self._broken:
                self._error, self._not_before_s = None, 0.0      # once more, whatever it was
            self._changed.notify_all()
        while self._drained(until_s) and self._doubtful:
            self._look_again()
        if not self._over():
            raise StoreError(f"{self._error or f'{self._root.parent} is slow'}; {self.waiting()}")

    def leave(self, limit_s: float) -> str | None:
        """The same in a hurry: where rows wait, None where all are put."""
        self.settle(limit_s)
        return None if self._over() else self.waiting()

    def waiting(self) -> str:
        """Where rows wait, and what puts them."""
        return f"rows wait in {self.spool.folder}; the next run into the same place puts them there"

    def _over(self) -> bool:
        """End the thread; whether everything lies in the store. Only then is the spool removed."""
        self._end_thread()
        with self._changed:
            done = not self._left() and not self._doubtful
            (self.spool.remove if done else self.spool.release)()
            return done

    def _end_thread(self) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def _drained(self, until_s: float) -> bool:
        """Whether all was put in time. What cannot be mended by waiting is not waited for."""
        with self._changed:
            self._changed.wait_for(lambda: not self._left() or self._in_vain(), max(until_s - time.monotonic(), 0.0))
            return not self._left()

    def _in_vain(self) -> bool:
        return self._error is not None and self._error.hopeless

    def _look_again(self) -> None:
        """Put again what a late arrival replaced by something older."""
        for path in sorted(self._doubtful):
            with self._changed:
                self._doubtful.discard(path)
            if _differs(self._object(path), path):
                self.add(path)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while (taken := self._next()) is not None:
                self._try(*taken)
        except Exception as error:  # noqa: BLE001  told by whoever waits for the thread
            with self._changed:
                self._broken = True
                self._error = ObjectStoreError(f"cannot read {self.spool.folder}: {error}", hopeless=True)
                self._changed.notify_all()

    def _try(self, path: Path, data: bytes) -> None:
        try:
            self._object(path).write_bytes(data)
        except ObjectStoreError as error:
            self._failed(path, error)
        else:
            self._put(path)

    def _next(self) -> tuple[Path, bytes] | None:
        """The next file and what it holds now; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._ending)
            while not self._ending and (wait_s := self._not_before_s - time.monotonic()) > 0:
                self._changed.wait(wait_s)
            if self._ending:
                return None
            # Read under the lock: a row that is committed meanwhile announces its steps before it is in this file.
            path = min(self._pending, key=lambda path: order(path.relative_to(self.spool.root)))
            self._busy = path
            del self._pending[path]
            return path, path.read_bytes()

    def _put(self, path: Path) -> None:
        with self._changed:
            self._busy, self._error, self._pause_s = None, None, FIRST_PAUSE_S
            if self._away:
                self._away = False
                self._news.append(f"{self._root.parent} answers again")
            if path in self._closed and path not in self._pending and path not in self._doubtful:
                self._drop(path)
            self._changed.notify_all()

    def _failed(self, path: Path, error: ObjectStoreError) -> None:
        with self._changed:
            self._busy, self._error = None, error
            if not self._away:
                self._away = True
                self._news.append(f"{error}; rows wait in {self.spool.folder} until it answers")
            self._pending.setdefault(path)
            self._doubtful.add(path)
            self._not_before_s = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self._changed.notify_all()

    def _left(self) -> bool:
        return bool(self._pending) or self._busy is not None or self._broken

    def _object(self, path: Path) -> ObjectPath:
        return self._root.joinpath(*path.relative_to(self.spool.root).parts)


def begin_upload(place: ObjectPath, layout: str, sweep_run_id: str) -> Upload:
    """Put what ended runs left, and begin a spool. ObjectStoreError where the store does not answer."""
    root = place / layout
    news = [_replayed(root, spool) for spool in left_spools(place)]
    return Upload(root, new_spool(place, sweep_run_id), news)


def _replayed(root: ObjectPath, spool: Spool) -> str:
    files = spool.files()
    try:
        for path in files:
            _put_whole(root.joinpath(*path.relative_to(spool.root).parts), path)
    except ObjectStoreError as error:
        spool.release()
        raise ObjectStoreError(f"{error}; rows wait in {spool.folder}", hopeless=error.hopeless) from error
    spool.remove()
    return f"{len(files)} files of {spool.folder.name}, which had waited on this machine, were put into {root.parent}"


def _put_whole(target: ObjectPath, path: Path) -> None:
    """Put a file of a run that ended, and see that nothing it had sent arrives after it."""
    data = path.read_bytes()
    retried(lambda: target.write_bytes(data))
    if _differs(target, path):
        retried(lambda: target.write_bytes(data))


def _differs(target: ObjectPath, path: Path) -> bool:
    try:
        return retried(target.read_bytes) != path.read_bytes()
    except (ObjectStoreError, FileNotFoundError):
        return True
