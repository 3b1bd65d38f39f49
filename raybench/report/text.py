"""Text from outside (names, notes, errors) prints literally: it can neither move the cursor nor colour a table."""

from __future__ import annotations

import re

from rich.text import Text

NULL = "–"
GROUP = "\u202f"     # narrow no-break space, as ISO 80000 groups digits; never a comma, which some read as a point
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def literal(text: str, *, lines: bool = False) -> str:
    """`text` without colour sequences, control and direction characters; on one line unless `lines`."""
    plain = _COLOURS.sub("", text.replace("\r\n", "\n"))
    return "".join(_kept(char, lines) for char in plain).strip()


def _kept(char: str, lines: bool) -> str:
    if char == "\n" and lines:
        return char
    if char.isprintable() or char == GROUP:
        return char
    return " " if char.isspace() else ""


def shortened(text: str, width: int) -> str:
    """At most `width` characters, the end replaced by an ellipsis."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)].rstrip()}…"


def middle_shortened(text: str, width: int) -> str:
    """At most `width` characters, an ellipsis in the middle: of an error both ends count, as of a label."""
    if len(text) <= width:
        return text
    kept = max(width - 1, 0)
    start = kept // 2
    return f"{text[:start].rstrip()}…{text[len(text) - (kept - start) :].lstrip()}"[: max(width, 0)]


def cell(text: str, style: str = "") -> Text:
    """A piece of output that rich takes as it is: no markup is looked for in it."""
    return Text(literal(text), style=style)
