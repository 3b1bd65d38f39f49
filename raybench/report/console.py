"""The console that commands print to: the terminal as it is, or plain and wide where nobody looks."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

PLAIN_WIDTH = 200     # a log has no width of its own: tables keep all their columns and never wrap


class PatientConsole(Console):
    """A console whose reader may go away: that is told as BrokenPipeError, and rich does not end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console_on(file: TextIO | None = None) -> Console:
    """A console on `file`, by default standard output. Respects NO_COLOR, FORCE_COLOR, COLUMNS and the terminal."""
    target = file or sys.stdout
    nobody_looks = not target.isatty() and "COLUMNS" not in os.environ
    return PatientConsole(
        file=target, highlight=False, markup=False, emoji=False, width=PLAIN_WIDTH if nobody_looks else None
    )
