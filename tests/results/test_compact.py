"""The same rows in few files: nothing is lost, added or half there."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raybench import cli
from raybench.errors import StoreError, UsageError
from raybench.results import compact as compact_module
from raybench.results.compact import compact
from raybench.results.load import load
from raybench.results.resume import earlier_attempts
from raybench.results.schema import from_records, schema
from raybench.results.store import RunStore
from raybench.results.verify import verify
from tests.factories import EPOCH, RUN_ID, make_config, make_node, make_steps, make_trial

OTHER_RUN = "20260302T120000Z-00c0ffee"


def commit(out: Path, run_id: str, *numbers: int, sweep: str = "quick", **overrides: object) -> None:
    """Commit made-up trials of a run, of which each third one failed with a traceback."""
    store = RunStore(out, sweep, run_id)
    for number in numbers:
        outcome = "ok" if number % 3 else "timeout"
        trial = make_trial(
            sweep=sweep, sweep_run_id=run_id, outcome=outcome, sweep_order=number, seed=number,
            of=make_config(seed=number), **({"step_ms_max": 50.0} if number % 3 else {}), **overrides,
        )  # fmt: skip
        store.commit(trial, make_steps(trial), nodes=[make_node(sweep_run_id=run_id)])
        if outcome != "ok":
            store.write_traceback(trial.trial_uid, "Traceback: ...")


@pytest.fixture
def src(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sweeps, one of them in two runs with a second attempt; many small files."""
    monkeypatch.setattr("raybench.results.store.SEGMENT_TRIALS", 2)
    out = tmp_path / "src"
    commit(out, RUN_ID, *range(7))
    commit(out, OTHER_RUN, 0, 3, attempt=2)
    commit(out, OTHER_RUN, 1, sweep="other")
    return out


def assert_same(before: Path, after: Path) -> None:
    """Every table, latest attempts and all."""
    for table in ("trials", "steps", "telemetry"):
        for latest in (True, False):
            one, other = (load(out, table=table, latest=latest, strict=True) for out in (before, after))
            pd.testing.assert_frame_equal(one, other)
    one, other = (load(out, table="nodes").sort_values(["sweep_run_id"], ignore_index=True) for out in (before, after))
    pd.testing.assert_frame_equal(one, other)


def test_the_same_rows_in_few_files(src: Path, tmp_path: Path):
    """Of 6 files of trials, 3 of nodes, 4 of steps one a table and sweep; resume goes on; the source is as it was."""
    names = sorted(src.rglob("*"))
    done = compact(src, to=tmp_path / "dst")
    assert (done.trials, done.files_before, done.files_after) == (10, 6 + 3 + 4, 2 + 2 + 2)
    assert_same(src, tmp_path / "dst")
    assert sorted(src.rglob("*")) == names
    assert earlier_attempts(tmp_path / "dst", "quick") == earlier_attempts(src, "quick")
    traces = [sorted(path.relative_to(out) for path in out.rglob("*.txt")) for out in (src, tmp_path / "dst")]
    assert traces[0] == traces[1] != []
    assert verify(tmp_path / "dst").findings == ()
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("src", "dst")] == []


def test_a_run_goes_on_in_the_new_folder(src: Path, tmp_path: Path):
    """New rows beside the compacted ones: `load` and plain pandas read both."""
    dst = tmp_path / "dst"
    compact(src, to=dst)
    commit(dst, "20260303T120000Z-00c0ffee", 20, 22)
    assert len(load(dst, latest=False, strict=True)) == 12
    assert len(pd.read_parquet(dst / "raybench-v1" / "trials")) == 12


def test_several_folders_and_copies_become_one(src: Path, tmp_path: Path):
    """A copied folder adds no row; steps whose trial never was written are left out."""
    copy = tmp_path / "copy"
    pq_files = [path for path in src.rglob("*") if path.is_file()]
    for path in pq_files:
        target = copy / path.relative_to(src)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    orphan = make_trial()
    pq.write_table(from_records("steps", make_steps(orphan)), copy / "raybench-v1/steps/quick/orphan.parquet")
    commit(copy, "20260304T120000Z-00c0ffee", 40)
    done = compact([src, copy], to=tmp_path / "dst")
    assert done.trials == 11
    steps = pd.read_parquet(tmp_path / "dst" / "raybench-v1" / "steps")
    assert (len(steps), orphan.trial_uid in set(steps["trial_uid"])) == (50 * 6, False)


def test_older_files_get_todays_columns(src: Path, tmp_path: Path):
    """What an older raybench did not write is null, and plain pandas sees every column."""
    older = from_records("trials", [make_trial(config_key="d" * 16)]).drop_columns(["energy_j", "note"])
    pq.write_table(older, src / "raybench-v1/trials/quick/00-older.parquet")
    compact(src, to=tmp_path / "dst")
    plain = pd.read_parquet(tmp_path / "dst" / "raybench-v1" / "trials")
    assert list(plain.columns) == schema("trials").names
    assert len(plain) == 11


def test_large_tables_are_cut(src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Below what a reader takes of one file: a file of 4 rows or more takes no further batch."""
    monkeypatch.setattr(compact_module, "FILE_ROWS", dict.fromkeys(compact_module.FILE_ROWS, 4))
    monkeypatch.setattr(compact_module, "GROUP_BYTES", 1)
    compact(src, to=tmp_path / "dst")
    assert_same(src, tmp_path / "dst")
    sizes = [pq.read_metadata(path).num_rows for path in sorted((tmp_path / "dst").glob("raybench-v1/trials/*/*"))]
    assert sizes == [1, 4, 5]


def test_what_is_refused(src: Path, tmp_path: Path):
    """Never in place, never into what is there, never half; nothing appears."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    before = sorted(tmp_path.rglob("*"))
    for to, told in (
        (tmp_path / "full", "is there already"),
        (src / "raybench-v1" / "new", "lies in the results that are to be compacted"),
        ("s3://bucket/x", "give a folder, and copy it up"),
    ):
        with pytest.raises(UsageError, match=told):
            compact(src, to=to)
    cut = next((src / "raybench-v1" / "steps" / "quick").iterdir())
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(StoreError, match=rf"{cut.name}: .*; nothing was written: bring the file back or remove it"):
        compact(src, to=tmp_path / "dst")
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_appears_before_it_is_whole(src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stopped right before the last step there is no folder; what a killed one left is named."""
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    dst = tmp_path / "dst"
    monkeypatch.setattr(os, "rename", kill)
    with pytest.raises(KeyboardInterrupt):
        compact(src, to=dst)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["src"]
    monkeypatch.setattr("raybench.results.compact.shutil.rmtree", lambda *_, **__: None)      # as if by SIGKILL
    with pytest.raises(KeyboardInterrupt):
        compact(src, to=dst)
    assert not dst.exists()
    with pytest.raises(StoreError, match=r"_dst\..*\.part: another compact writes it, or one was killed: remove it"):
        compact(src, to=dst)


def ten_thousand(out: Path) -> None:
    """10 000 trials as a long run leaves them: 157 files of trials, 157 of steps with two steps a trial."""
    one = make_trial()
    trials = pa.concat_tables([from_records("trials", [one])] * 64).combine_chunks()
    steps = pa.concat_tables([from_records("steps", make_steps(one)[:2])] * 64).combine_chunks()
    for number in range(157):
        rows = range(64 * number, min(64 * (number + 1), 10_000))
        uids = [f"{row:032x}" for row in rows]
        started = [EPOCH + timedelta(seconds=row) for row in rows]
        of_trials = replaced(trials, trial_uid=uids, trial_id=[f"{row:016x}-01" for row in rows], started_at=started)
        of_steps = replaced(steps, trial_uid=[uid for uid in uids for _ in range(2)])
        for table, values in (("trials", of_trials), ("steps", of_steps)):
            path = out / "raybench-v1" / table / "quick" / f"{RUN_ID}-{number:04d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(values, path)


def replaced(table: pa.Table, **columns: list[object]) -> pa.Table:
    """As many rows as the columns have, and these in place of the table's."""
    for name, values in columns.items():
        index, table = table.schema.get_field_index(name), table.slice(0, len(values))
        table = table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))
    return table


def test_ten_thousand_trials(tmp_path: Path):
    """One file of trials and one of steps; the same to `load`, pandas, DuckDB and Polars."""
    src, dst = tmp_path / "src", tmp_path / "dst"
    ten_thousand(src)
    told = CliRunner().invoke(cli.app, ["compact", str(src), "--to", str(dst)])
    assert told.output == f"10\u202f000 rows of trials in {dst}; 314 files before, 2 now\n"
    rows = load(dst, strict=True)
    pd.testing.assert_frame_equal(rows, load(src, strict=True))
    assert len(rows) == 10_000
    trials = dst / "raybench-v1" / "trials"
    total = float(rows["samples_per_s"].sum())
    assert pd.read_parquet(trials)["samples_per_s"].sum() == pytest.approx(total)
    both = f"'{trials}/*/*.parquet' join '{dst}/raybench-v1/steps/*/*.parquet' using (trial_uid)"
    query = f"select count(*), sum(samples_per_s) from {both}"
    assert duckdb.sql(query).fetchall() == [(20_000, pytest.approx(2 * total))]
    assert pl.read_parquet(f"{trials}/*/*.parquet")["samples_per_s"].sum() == pytest.approx(total)
