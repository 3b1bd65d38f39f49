"""What a command says beside its output, on standard error."""

from __future__ import annotations

import sys
from typing import Any

from raybench.errors import RaybenchError, SweepError


def tell(text: str) -> None:
    """One line, or a few; signs from outside print literally."""
    from raybench.report.text import literal

    sys.stderr.write(literal(text, lines=True) + "\n")


def complain(error: RaybenchError) -> None:
    """A sweep's mistakes are lines already, made for editors to jump to; anything else is one line."""
    tell(str(error) if isinstance(error, SweepError) else f"error: {error}")


def complain_of_words(misuse: Any) -> int:
    """What typer makes of a wrong command line, on one line that names the help; the exit code."""
    if type(misuse).__name__ == "NoArgsIsHelpError":      # it carries the help itself
        misuse.show()
    else:
        told = " ".join(misuse.format_message().split()).rstrip(".")
        page = misuse.ctx.command_path if misuse.ctx is not None else "raybench"
        tell(f"error: {told[:1].lower()}{told[1:]}; see {page} --help")
    return int(misuse.exit_code)
