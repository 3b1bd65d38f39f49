"""`verify`: does a place of results hold what was planned, whole, and do its columns agree with each other?

Every finding is one line with what to do. An `error` is a number that cannot be trusted or rows that are gone; a
`warning` is what a stopped or killed run leaves behind, or an older version.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from raybench.errors import StoreError
from raybench.results.finding import Finding
from raybench.results.layout import find_root, table_files
from raybench.results.load import frame_of
from raybench.results.objects import ObjectPath, retried
from raybench.results.place import Place, files_below, place_of
from raybench.results.read import Unreadable, read_file
from raybench.results.schema import schema
from raybench.results.spool import waiting_files
from raybench.spec.config import stored_keys

TOLERANCE: Final = 1e-6
"""Relative: what may lie between a column and the same computed again, in double precision."""
DERIVED: Final = {
    "samples_per_s": "measured_samples / measured_s",
    "tokens_per_s": "measured_tokens / measured_s",
    "steps_per_s": "measured_steps / measured_s",
    "samples_per_s_per_gpu": "samples_per_s / world_size",
    "tokens_per_s_per_gpu": "tokens_per_s / world_size",
    "tflops_per_gpu": "model_flops_per_step * steps_per_s / world_size / 1e12",
    "step_ms_cv": "step_ms_std / step_ms_mean",
    "overhead_s": "wall_s - warmup_s - measured_s",
}
"""Columns of an `ok` row that follow from others of the same row."""
_STEP_COLUMNS: Final = ("trial_uid", "rank", "step", "is_warmup", "step_ms")
_AGAIN: Final = "run these trials again, and look at who wrote the file"


@dataclass(frozen=True)
class Verified:
    """`attempts`: rows of `trials` that were looked at."""

    attempts: int
    files: int
    findings: tuple[Finding, ...]

    def exit_code(self, *, strict: bool) -> int:
        """1 when there is an error, or under `strict` anything."""
        return int(any(strict or finding.level == "error" for finding in self.findings))


def verify(out: str | Path) -> Verified:
    """Look at everything under one place of results. StoreError where there is none to look at."""
    place = place_of(out)
    found = _Found(find_root(place))
    findings = [*found.files(), *_spooled(place)]
    if found.trials.empty and not findings:
        raise StoreError(f"no raybench results under {place}")
    findings += [
        *_repeated(found.trials), *_derived(found.trials), *_keys(found.trials), *_flags(found.trials),
        *_apart(found), *_step_figures(found), *_planned(found),
    ]  # fmt: skip
    return Verified(len(found.trials), found.num_files, tuple(findings))


@dataclass
class _Found:
    """What lies under a `raybench-v1`, as far as it can be read. Of steps only what their trials say is kept."""

    root: Place
    trials: pd.DataFrame = field(default_factory=pd.DataFrame)
    nodes: set[str] = field(default_factory=set)
    steps: pd.DataFrame = field(default_factory=pd.DataFrame)      # a row a trial and rank
    telemetry: set[str] = field(default_factory=set)
    num_files: int = 0

    def files(self) -> Iterator[Finding]:
        """Read every file; those that cannot be read, or that an older raybench wrote."""
        self.trials = frame_of((yield from self._tables("trials")), "trials")
        self.nodes = {key for table in (yield from self._tables("nodes")) for key in table["node_key"].to_pylist()}
        ranks = [_ranks(table) for table in (yield from self._tables("steps"))]
        self.steps = pd.concat(ranks, ignore_index=True) if ranks else _ranks(schema("steps").empty_table())
        of_telemetry = yield from self._tables("telemetry")
        self.telemetry = {uid for table in of_telemetry for uid in table["trial_uid"].unique().to_pylist()}

    def _tables(self, table: str) -> Any:
        tables, older = [], []
        for path in table_files(self.root, table):
            self.num_files += 1
            try:
                tables.append(read_file(path, table, _STEP_COLUMNS if table == "steps" else None))
                older += [path] if _lacks(path, table) else []
            except Unreadable as error:
                reason = str(error).removeprefix(f"{path}: ")
                lost = "run again with the next run" if table == "trials" else "stay, without these"
                yield Finding("error", str(path), reason, f"bring it back or remove it: its trials {lost}")
        if older:
            what = f"{len(older)} files of {table} lack columns of today, the first is {older[0]}"
            yield Finding("warning", table, what, "load reads them; compact writes them anew")
        return tables


def _lacks(path: Place, table: str) -> bool:
    data = io.BytesIO(retried(path.read_bytes)) if isinstance(path, ObjectPath) else path
    return not set(schema(table).names) <= set(pq.read_schema(data).names)


def _ranks(steps: pa.Table) -> pd.DataFrame:
    """A row a trial and rank: steps of both kinds, and what the window's step times come to."""
    frame = frame_of([steps], "steps")[list(_STEP_COLUMNS)]
    window = frame[~frame["is_warmup"]].groupby(["trial_uid", "rank"])["step_ms"]
    found = window.agg(measured="size", mean="mean", p50="median", longest="max")
    found["warmup"] = frame[frame["is_warmup"]].groupby(["trial_uid", "rank"]).size()
    ranks: pd.DataFrame = found.fillna({"warmup": 0}).reset_index()
    return ranks


def _rows(rows: pd.DataFrame) -> str:
    """`3 rows, the first 0f3a...`."""
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    return f"{count}, the first {rows['trial_uid'].iloc[0]}"


# -- rows that do not agree with themselves ----------------------------------------------------------------------------


def _repeated(trials: pd.DataFrame) -> Iterator[Finding]:
    """A copy of a row is harmless; two different rows of one attempt are not."""
    rows = trials.drop_duplicates()
    twice = rows[rows["trial_uid"].duplicated()]
    if len(twice):
        yield Finding("error", "trials", f"{_rows(twice)}: another row has the same trial_uid", _AGAIN)
    if len(trials) > len(rows):
        what = f"{len(trials) - len(rows)} rows are there twice"
        yield Finding("warning", "trials", what, "load counts them once; compact writes them once")


def _derived(trials: pd.DataFrame) -> Iterator[Finding]:
    """Columns that others of the row give."""
    ok = trials[trials["outcome"].eq("ok")]
    for name, formula in DERIVED.items():
        off = ok[_off(ok[name], ok.eval(formula))]
        if len(off):
            yield Finding("error", f"trials.{name}", f"{_rows(off)}: it is not {formula}", _AGAIN)


def _off(stored: pd.Series[Any], again: pd.Series[Any]) -> pd.Series[bool]:
    """Where both are known and differ."""
    limit = TOLERANCE * stored.abs().clip(lower=1.0)
    return ((stored - again).abs() > limit).fillna(False).astype(bool)


def _keys(trials: pd.DataFrame) -> Iterator[Finding]:
    """Keys and the id, from the stored config."""
    again = [_computed_keys(config) for config in trials["config"]]
    for index, name in enumerate(("config_key", "work_key")):
        off = trials[[keys[index] != key for keys, key in zip(again, trials[name], strict=True)]]
        if len(off):
            yield Finding("error", f"trials.{name}", f"{_rows(off)}: it is not the key of `config`", _AGAIN)
    ids = trials["config_key"] + trials["repeat"].map("-{:02d}".format)
    if len(off := trials[ids != trials["trial_id"]]):
        yield Finding("error", "trials.trial_id", f"{_rows(off)}: it is not config_key-RR", _AGAIN)


def _computed_keys(config: str) -> tuple[str, str]:
    try:
        return stored_keys(json.loads(config))
    except (TypeError, ValueError, AttributeError):
        return "", ""      # no config, which has no key


def _flags(trials: pd.DataFrame) -> Iterator[Finding]:
    """`valid` is what outcome and reasons say."""
    said = trials["outcome"].eq("ok") & trials["invalid_reasons"].fillna("").eq("")
    if len(off := trials[trials["valid"] != said]):
        yield Finding("error", "trials.valid", f"{_rows(off)}: outcome and invalid_reasons say otherwise", _AGAIN)


# -- tables that do not agree with each other --------------------------------------------------------------------------


def _apart(found: _Found) -> Iterator[Finding]:
    """Rows whose trial or machine is not there, and trials whose steps are not."""
    known, stepped = set(found.trials["trial_uid"]), set(found.steps["trial_uid"])
    for table, uids in (("steps", stepped), ("telemetry", found.telemetry)):
        if uids - known:
            what = f"{len(uids - known)} trials have {table} and no row: a run was killed between the two"
            yield Finding("warning", table, what, "load leaves them out; compact does not write them")
    bare = found.trials[found.trials["measured_steps"].notna() & ~found.trials["trial_uid"].isin(stepped)]
    if len(bare):
        yield Finding("error", "steps", f"{_rows(bare)}: their steps are gone", "bring the file of steps back")
    keys = found.trials["node_keys"].fillna("").str.split(";").explode()
    if missing := set(keys) - found.nodes - {""}:
        what = f"{len(missing)} machines that rows name are not there, the first {min(missing)}"
        yield Finding("error", "nodes", what, "bring the file of nodes back")


def _step_figures(found: _Found) -> Iterator[Finding]:
    """A row's step figures are those of one of its ranks."""
    names = {"measured_steps": "measured", "warmup_steps": "warmup", "step_ms_p50": "p50", "step_ms_mean": "mean",
             "step_ms_max": "longest"}  # fmt: skip
    both = found.trials[["trial_uid", *names]].merge(found.steps, on="trial_uid")
    for name, again in names.items():
        same = ~_off(both[name].astype("Float64"), both[again].astype("Float64")) & both[name].notna()
        fits = same.groupby(both["trial_uid"]).any()
        asked = both.loc[both[name].notna(), "trial_uid"].unique()
        off = found.trials[found.trials["trial_uid"].isin([uid for uid in asked if not fits[uid]])]
        if len(off):
            yield Finding("error", f"trials.{name}", f"{_rows(off)}: no rank's steps give it", _AGAIN)


# -- what was planned --------------------------------------------------------------------------------------------------


def _planned(found: _Found) -> Iterator[Finding]:
    """Of the newest run of each sweep and cluster: planned trials without a row, and rows that the run counted."""
    runs: dict[tuple[str, str | None], tuple[str, str]] = {}
    notes = _notes(found.root)
    for sweep, run_id in sorted(notes):
        written = found.trials[found.trials["sweep_run_id"].eq(run_id)]["cluster"].unique()
        for cluster in [*written] or [None]:
            runs[sweep, cluster] = (sweep, run_id)
    for (sweep, cluster), run in runs.items():
        yield from _run_findings(found.trials, sweep, cluster, notes[run])


def _notes(root: Place) -> Mapping[tuple[str, str], dict[str, Any]]:
    """`sweep.json` and `COMPLETE.json` of each run, by sweep and run; what is no such note says nothing."""
    notes: dict[tuple[str, str], dict[str, Any]] = {}
    for names, path in files_below(root / "_meta"):
        if len(names) == 3 and names[2] in ("sweep.json", "COMPLETE.json"):
            try:
                notes.setdefault((names[0], names[1]), {})[names[2]] = json.loads(retried(path.read_bytes))
            except ValueError:
                continue
    return notes


def _run_findings(
    trials: pd.DataFrame, sweep: str, cluster: str | None, notes: Mapping[str, Any]
) -> Iterator[Finding]:
    planned = list(notes.get("sweep.json", {}).get("trials", {}))
    mine = trials["sweep"].eq(sweep) & (trials["cluster"].eq(cluster) if cluster else True)
    there = set(trials.loc[mine, "trial_id"])
    missing = [trial_id for trial_id in planned if trial_id not in there]
    where = f"sweep {sweep}" + (f" on {cluster}" if cluster else "")
    counted = notes.get("COMPLETE.json", {}).get("committed")
    if isinstance(counted, int) and counted > len(planned) - len(missing):
        what = f"the run counted {counted} of its trials as committed, {len(planned) - len(missing)} are there"
        yield Finding("error", where, what, "bring their files back, or run them again")
    elif missing:
        what = f"{len(missing)} of {len(planned)} planned trials have no row, the first {missing[0]}"
        yield Finding("warning", where, what, "the same `raybench run` goes on with them")


def _spooled(place: Place) -> Iterator[Finding]:
    """What waits on this machine for an object store."""
    files = waiting_files(place) if isinstance(place, ObjectPath) else []
    if files:
        what = f"{len(files)} files wait on this machine, the first {files[0]}"
        yield Finding("warning", str(place), what, "the next run into it from here puts them")
