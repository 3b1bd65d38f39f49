"""The one row that a person means by an id, and where the files that belong to it lie."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from raybench.errors import UsageError
from raybench.report.text import literal, shortened
from raybench.results.layout import RunFiles, find_root
from raybench.results.place import place_of

_LISTED = 5
_SWEEP = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,63}")
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_UID = re.compile(r"[0-9a-f]{32}")


def find_trial(attempts: pd.DataFrame, latest: pd.DataFrame, asked: str) -> dict[str, Any]:
    """The row whose `trial_uid` or `trial_id` is `asked` or alone begins with it.

    A `trial_id` means its latest attempt; older ones are found by their `trial_uid`. Raises UsageError where no row
    or several are meant.
    """
    by_id = latest[latest["trial_id"].str.startswith(asked)]
    by_uid = attempts[attempts["trial_uid"].str.startswith(asked)]
    found = pd.concat([by_id, by_uid]).drop_duplicates("trial_uid") if asked else latest.iloc[:0]
    exact = found[found["trial_id"].eq(asked) | found["trial_uid"].eq(asked)]
    meant = exact if len(exact) else found
    if len(meant) == 1:
        return {str(name): value for name, value in meant.iloc[0].items()}
    told = shortened(literal(asked), 40)
    if not len(meant):
        raise UsageError(f"no trial {told}: give a trial_id, a trial_uid or the beginning of one, as show lists them")
    listed = meant.head(_LISTED).itertuples()
    some = ", ".join(f"{row.trial_uid[:12]} ({literal(str(row.cluster))}, {row.trial_id})" for row in listed)
    raise UsageError(f"{told} may be {len(meant)} trials: {some}{', ...' if len(meant) > _LISTED else ''}")


def traceback_file(outs: Sequence[str | Path], row: Mapping[str, Any]) -> str | None:
    """Path of the file with the whole traceback of an attempt; None where there is none."""
    sweep, run_id, uid = (str(row[name]) for name in ("sweep", "sweep_run_id", "trial_uid"))
    if not (_SWEEP.fullmatch(sweep) and _RUN_ID.fullmatch(run_id) and _UID.fullmatch(uid)):
        return None          # anybody may have written the row: it must not name a file elsewhere
    names = RunFiles(Path(), sweep, run_id).traceback(uid).parts
    paths = [find_root(place_of(out)).joinpath(*names) for out in outs]
    return next((str(path) for path in paths if path.is_file()), None)
