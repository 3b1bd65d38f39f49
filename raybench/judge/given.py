"""What callers from Python hand in: rows of `load`, or a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from raybench.errors import UsageError
from raybench.results.load import load

_ALWAYS: Final = ("cluster", "outcome", "valid")       # those that `load` reads in any case


def without_probes(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows without those that only looked for the micro batch that fits; where all are such, all of them."""
    probes = frame["quality"].eq("probe")
    return frame if probes.all() else frame[~probes].reset_index(drop=True)


def given_rows(rows: Any, needed: Sequence[str], function: str) -> pd.DataFrame:
    """The rows that `function` was given, with the columns it needs; UsageError for what are none."""
    if isinstance(rows, str | Path):
        return load(rows)
    if not isinstance(rows, pd.DataFrame):
        raise UsageError(f"{function} takes rows of raybench.load or a folder of results, not {type(rows).__name__}")
    missing = [name for name in (*_ALWAYS, *needed) if name not in rows]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UsageError(f"these are no whole rows of raybench.load: without {', '.join(missing[:3])}{more}")
    if rows.empty:
        raise UsageError("there are no rows to compare")
    return rows
