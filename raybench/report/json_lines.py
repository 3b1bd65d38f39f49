"""Results for programs: one JSON object a line, every column, null for what is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from raybench.report.numbers import is_null

if TYPE_CHECKING:
    import pandas as pd


def json_lines(frame: pd.DataFrame) -> Iterator[str]:
    """Each row as one line; times are ISO 8601 in UTC."""
    names = [str(name) for name in frame.columns]
    columns = [frame[name].tolist() for name in frame.columns]
    for values in zip(*columns, strict=True):
        yield json_line(dict(zip(names, values, strict=True)))


def json_line(row: Mapping[str, Any]) -> str:
    """One object on one line."""
    return json.dumps({key: _plain(value) for key, value in row.items()}, ensure_ascii=True, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple):
        return value
    if is_null(value):
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value
