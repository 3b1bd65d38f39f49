"""`raybench.load`: the rows of any number of result folders, of any version, as one DataFrame."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from raybench.errors import StoreError, UsageError
from raybench.record.trial import NEVER_REPLACES_OK
from raybench.results.layout import find_root, table_files
from raybench.results.objects import ObjectPath
from raybench.results.place import Place, place_of
from raybench.results.read import REQUIRED, Unreadable, UnreadableFileWarning, iterate_file, read_each, readable_schema
from raybench.results.schema import TABLES

MAX_TOTAL_BYTES: Final = 2 * 2**30

_DTYPES: Final = {
    pa.string(): pd.StringDtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
_TRIAL: Final = ["cluster", "sweep", "trial_id"]
_ROW_KEYS: Final = {
    "trials": ["trial_uid"],
    "steps": ["trial_uid", "rank", "step"],
    "telemetry": ["trial_uid", "node_key", "scope", "gpu_uuid", "t_s"],
    "nodes": ["sweep_run_id", "node_key"],
}


def load(
    *outs: str | Path | Sequence[str | Path],
    latest: bool = True,
    strict: bool = False,
    table: str = "trials",
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The rows of `table` (`trials`, `steps`, `telemetry` or `nodes`) under one or more result folders.

    A folder may be a prefix in an object store: `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`.

    Columns have pandas' nullable types and are today's; those that an older raybench did not write are null.
    `latest`: only the latest attempt at each trial, and only its steps and telemetry. Rows of `trials` come in the
    order they started. A file that cannot be read is left out with an `UnreadableFileWarning`, or with `strict` is an
    error. `columns` of `trials` reads only those, and those that tell rows apart, in a fraction of the time. Safe while
    runs are writing. Raises `StoreError` when there is no row at all, `UsageError` for a column that there is not.
    """
    if table not in TABLES:
        raise UsageError(f"no table {table!r}: there are {', '.join(TABLES)}")
    if columns is not None and table != "trials":
        raise UsageError(f"columns can be chosen of trials only, not of {table}: choose them from what comes back")
    paths = _flat(outs)
    roots = _roots(paths)
    names = None if columns is None else [*REQUIRED["trials"], *_known(columns)]
    trials = _read(roots, "trials", strict, names)
    if trials.empty:
        raise StoreError(f"no raybench results under {', '.join(map(str, paths))}")
    if latest:
        trials = _latest_only(trials)
    rows = trials.sort_values(["started_at", "trial_uid"])
    if table != "trials":
        # After the trials, so that a run that is writing has already written what belongs to them.
        rows = _read(roots, table, strict)
        rows = rows[rows["trial_uid"].isin(trials["trial_uid"])] if "trial_uid" in rows else rows
    numbered: pd.DataFrame = rows.reset_index(drop=True)
    return numbered


def _known(columns: Sequence[str]) -> Sequence[str]:
    """The columns, each of which must be one of `trials`."""
    known = readable_schema("trials").names
    for name in [columns] if isinstance(columns, str) else columns:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f'; did you mean "{near[0]}"?' if near else "; `raybench schema --columns` lists them"
            raise UsageError(f"columns: trials have no column {name!r}{hint}")
    return [columns] if isinstance(columns, str) else columns


def load_steps(outs: str | Path | Sequence[str | Path], trial_uid: str) -> pd.DataFrame:
    """Every step of every rank of one attempt, by rank and step; only its rows are ever held."""
    found = []
    for path in _files(_roots(_flat([outs])), "steps"):
        with _left_out(strict=False):
            found.append(_rows_of(path, trial_uid))
    steps: pd.DataFrame = frame_of(found, "steps").sort_values(["rank", "step"], ignore_index=True)
    return steps


def _rows_of(path: Place, trial_uid: str) -> pa.Table:
    batches = [batch.filter(pc.equal(batch.column("trial_uid"), trial_uid)) for batch in iterate_file(path, "steps")]
    return pa.Table.from_batches(batches, schema=readable_schema("steps"))


def _flat(outs: Iterable[str | Path | Sequence[str | Path]]) -> list[Place]:
    paths = [place_of(one) for out in outs for one in ([out] if isinstance(out, str | Path) else out)]
    if not paths:
        raise UsageError("name at least one folder of results")
    return paths


def _roots(outs: Iterable[Place]) -> list[Place]:
    """The layout folders of `outs`, each once."""
    roots = (find_root(out) for out in outs)
    return list(dict.fromkeys(root if isinstance(root, ObjectPath) else root.resolve() for root in roots))


def _files(roots: Iterable[Place], table: str) -> list[Place]:
    return [path for root in roots for path in table_files(root, table)]


def _read(roots: Iterable[Place], table: str, strict: bool, names: Sequence[str] | None = None) -> pd.DataFrame:
    tables: list[pa.Table] = []
    total_bytes = 0
    for one in read_each(_files(roots, table), table, names):
        with _left_out(strict):
            tables.append(one())
            total_bytes += tables[-1].nbytes
        if total_bytes > MAX_TOTAL_BYTES:
            raise StoreError(f"more than {MAX_TOTAL_BYTES >> 30} GiB of {table}: load fewer folders at once")
    # A folder that was copied holds the same rows once more.
    rows: pd.DataFrame = frame_of(tables, table, names).drop_duplicates(_ROW_KEYS[table])
    return rows


def frame_of(tables: Sequence[pa.Table], table: str, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Tables of `readable_schema` as one frame with pandas' nullable types."""
    rows = pa.concat_tables(tables) if tables else readable_schema(table, names).empty_table()
    # One array a column: converted in one go, where a chunk a file would make pandas join thousands of pieces.
    frame: pd.DataFrame = rows.combine_chunks().to_pandas(types_mapper=_DTYPES.get)
    return frame


@contextmanager
def _left_out(strict: bool) -> Iterator[None]:
    try:
        yield
    except Unreadable as error:
        if strict:
            raise
        warnings.warn(f"{error}; left out", UnreadableFileWarning, stacklevel=2)


def _latest_only(trials: pd.DataFrame) -> pd.DataFrame:
    """The rule of `results.latest` on columns: an `ok` row is set aside when nothing after it may replace it."""
    ordered = trials.sort_values(["attempt", "started_at", "trial_uid"])
    decisive = ordered[~ordered["outcome"].isin(NEVER_REPLACES_OK)].drop_duplicates(_TRIAL, keep="last")
    stays = decisive[decisive["outcome"] == "ok"]
    # Put last, it is what is kept for its trial.
    chosen: pd.DataFrame = pd.concat([ordered, stays]).drop_duplicates(_TRIAL, keep="last")
    return chosen
