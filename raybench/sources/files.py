"""Reading from files that were checked before, and saying so in one line when they are not there any more."""

from __future__ import annotations

import os
from pathlib import Path

from raybench.errors import DataError


class OpenFile:
    """One file open at a time: a rank reads onwards, so the next read is nearly always in the same file."""

    def __init__(self) -> None:
        self._open: tuple[Path, int] | None = None

    def read_into(self, path: Path, view: memoryview, position: int) -> None:
        """Fill `view` (bytes) from `position` of the file; the interpreter lock is free meanwhile.

        Raises:
            DataError: the file is not there or ends too early.
        """
        file = self._descriptor(path)
        while len(view) > 0:
            got = os.preadv(file, [view], position)
            if got == 0:
                raise DataError(f"{path} was cut while it was read; {_cure(path)}")
            view, position = view[got:], position + got

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def _descriptor(self, path: Path) -> int:
        if self._open is None or (self._open[0] is not path and self._open[0] != path):     # comparing paths is slow
            self.close()
            try:
                self._open = (path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as error:
                raise DataError(f"{path} cannot be opened: {error.strerror}; {_cure(path)}") from error
        return self._open[1]


def _cure(path: Path) -> str:
    return f"delete the folder {path.parent} and run again"
