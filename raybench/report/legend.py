"""What the words in a table's notes mean, each said once below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from raybench.judge.meanings import meaning
from raybench.report.status import names


def legend(rows: Iterable[Mapping[str, Any]]) -> list[Text]:
    """A line for each warning and reason in the rows, in the order in which they come."""
    named = [name for row in rows for key in ("invalid_reasons", "warnings") for name in names(row[key])]
    told = {name: meaning(name) for name in dict.fromkeys(named)}
    lines = [Text.assemble((f"{name}: ", "yellow"), said) for name, said in told.items() if said]
    return [Text(""), *lines] if lines else []
