"""What a command says beside its output, on standard error."""

from __future__ import annotations

import sys

from raybench.errors import RaybenchError, SweepError


def tell(text: str) -> None:
    """One line, or a few; signs from outside print literally."""
    from raybench.report.text import literal

    sys.stderr.write(literal(text, lines=True) + "\n")


def complain(error: RaybenchError) -> None:
    """A sweep's mistakes are lines already, made for editors to jump to; anything else is one line."""
    tell(str(error) if isinstance(error, SweepError) else f"error: {error}")
