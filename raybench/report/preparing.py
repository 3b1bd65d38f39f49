"""How far preparing data is: a bar on a terminal, elsewhere a line now and then, both on stderr."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

LINE_EVERY_S: Final = 10.0


class Preparing:
    """Hears of each path how many of its bytes are done. What is done at once is not shown at all."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, file=sys.stderr)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, console=self._console, transient=True)
        self._tasks: dict[Path, object] = {}
        self._told_s = time.monotonic()

    def __enter__(self) -> Preparing:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __call__(self, path: Path, done_bytes: int, total_bytes: int) -> None:
        """So much of it is done."""
        if self._console.is_terminal:
            if path not in self._tasks:
                self._tasks[path] = self._bars.add_task(path.name)
            self._bars.update(self._tasks[path], completed=done_bytes, total=total_bytes)  # type: ignore[arg-type]
        elif time.monotonic() - self._told_s >= LINE_EVERY_S:
            self._told_s = time.monotonic()
            text = f"{path}: {done_bytes / 1e9:.1f} of {total_bytes / 1e9:.1f} GB"
            self._console.print(Text(text), soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()
