"""Output whose reader has gone away (`| head`): that is no error, and what is left to say goes nowhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Around what is written to standard output; when its reader is gone, the rest is left out and nobody is told."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What the stream still holds must go somewhere, or the interpreter complains of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
