"""The files that exporters write, as texts."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from raybench.report.numbers import significant
from raybench.report.text import literal

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class File:
    """A file to be written: its path below the folder that was named, with `/`, and its text."""

    path: str
    text: str


def json_text(value: Mapping[str, Any]) -> str:
    """One JSON document, indented. What is no number in JSON (NaN, infinity) is refused, never written."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A CSV whose cells stand below their own names; nothing for null, and no text that a sheet takes as a formula."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="raise")
    writer.writeheader()
    writer.writerows({name: _cell(row[name]) for name in columns} for row in rows)
    return file.getvalue()


def markdown_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A Markdown table; figures to four digits. Text from outside ends no cell, and is no markup of its own."""
    cells = [[_told(row[name]) for name in columns] for row in rows]
    lines = [columns, ["---"] * len(columns), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _told(value: Any) -> str:
    if isinstance(value, float):
        return significant(value)
    return "" if value is None else re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", literal(str(value)))


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
