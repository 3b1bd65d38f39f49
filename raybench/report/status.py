"""How an attempt ended, in the words and colours that every table and line uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raybench.report.numbers import is_null
from raybench.report.text import literal, middle_shortened

_MILD: Final = frozenset({"infeasible", "skipped", "interrupted", "preempted"})
_NOTE_WIDTH = 60


def told_outcome(row: Mapping[str, Any]) -> str:
    """`ok`, `invalid` (ok, but the number is wrong) or the outcome."""
    return "invalid" if row["outcome"] == "ok" and not row["valid"] else str(row["outcome"])


def outcome_style(row: Mapping[str, Any]) -> str:
    """Green for a number to trust, yellow for one that could not be had, red for what went wrong."""
    told = told_outcome(row)
    if told == "ok":
        return "green"
    return "yellow" if told == "invalid" or told in _MILD else "red"


def names(joined: Any) -> list[str]:
    """The names in a `;`-joined column."""
    return [] if is_null(joined) else [name for name in str(joined).split(";") if name]


def mark(row: Mapping[str, Any]) -> str:
    """What must survive in the narrowest place: `quick`, `⚠` for warnings, both, or nothing."""
    told = [row["quality"]] if row.get("quality", "full") != "full" else []
    return " ".join([*told, *(["⚠"] if names(row.get("warnings")) else [])])


def marked_outcome(row: Mapping[str, Any]) -> str:
    """`ok ⚠`: the outcome for a table without room for notes."""
    return f"{told_outcome(row)} {mark(row)}".rstrip()


def notes(row: Mapping[str, Any], error_width: int = _NOTE_WIDTH) -> str:
    """What a reader must know beside the outcome: quality, reasons, warnings, both ends of the error."""
    told = [row["quality"]] if row.get("quality", "full") != "full" else []
    told += names(row.get("invalid_reasons"))
    if warned := names(row.get("warnings")):
        told.append(f"⚠ {', '.join(warned)}")
    if not is_null(row.get("error_text")):
        told.append(middle_shortened(literal(str(row["error_text"])), error_width))
    return ", ".join(told)
