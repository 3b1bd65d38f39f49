"""Keeping the terminal for raybench: Ray, Tune and their processes print into a log file instead.

Done on the file descriptors, because Ray's own processes inherit them and Tune prints banners whatever `verbose` is.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def kept_stdout() -> Iterator[TextIO]:
    """The standard output as it is now, which `printing_into` leaves alone; a notebook's has no descriptor to lose."""
    sys.stdout.flush()
    if not _is_descriptor_1(sys.stdout):
        yield sys.stdout
        return
    with os.fdopen(
        os.dup(1), "w", buffering=1, encoding=sys.stdout.encoding or "utf-8", errors="replace"
    ) as terminal:
        yield terminal


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, AttributeError):      # io.UnsupportedOperation is an OSError
        return False


@contextlib.contextmanager
def printing_into(log: Path) -> Iterator[None]:
    """Send descriptors 1 and 2, and what Python prints, to `log` for the length of the block."""
    with (
        log.open("a", buffering=1) as file,
        _swapped_descriptors(file.fileno()),
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield


@contextlib.contextmanager
def _swapped_descriptors(target: int) -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
