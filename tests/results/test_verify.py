"""Each thing that can be wrong with results is found, named and told with what to do; sound ones have nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raybench import cli
from raybench.errors import StoreError
from raybench.results.store import RunStore
from raybench.results.verify import verify
from tests.factories import RUN_ID, make_config, make_node, make_steps, make_trial


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run of three trials, one of which failed, as a run leaves it."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    trials = [
        make_trial(make_config(seed=0), seed=0, outcome="timeout"),
        *(make_trial(make_config(seed=seed), seed=seed, sweep_order=seed, step_ms_max=50.0) for seed in (1, 2)),
    ]      # whose steps are all of 50 ms
    planned = ",".join(f'"{trial.trial_id}":{trial.config}' for trial in trials)
    store.write_meta("sweep.json", f'{{"name":"quick","trials":{{{planned}}}}}')
    for trial in trials:
        store.commit(trial, make_steps(trial), nodes=[make_node()])
    store.finish(planned=3, committed=3)
    return tmp_path


def file_of(out: Path, table: str) -> Path:
    """The one file of a table."""
    (path,) = (out / "raybench-v1" / table / "quick").iterdir()
    return path


def rewritten(out: Path, table: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the rows of a table, as somebody with another tool might."""
    path = file_of(out, table)
    read = pq.read_table(path, partitioning=None)
    rows = read.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=read.schema), path)


def test_sound_results_have_no_finding(out: Path):
    """Three rows in three files; exit code 0."""
    found = verify(out)
    assert (found.attempts, found.files, found.findings, found.exit_code(strict=True)) == (3, 3, (), 0)


COLUMNS = {
    "samples_per_s": "it is not measured_samples / measured_s",
    "tokens_per_s_per_gpu": "it is not tokens_per_s / world_size",
    "tflops_per_gpu": "it is not model_flops_per_step * steps_per_s / world_size / 1e12",
    "overhead_s": "it is not wall_s - warmup_s - measured_s",
    "step_ms_p50": "no rank's steps give it",
    "measured_steps": "no rank's steps give it",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_does_not_follow(out: Path, column: str):
    """One part in ten thousand more (a whole step of a count) is an error that names the column and the row."""
    def change(rows: list[dict[str, Any]]) -> None:
        rows[1][column] = rows[1][column] + 1 if isinstance(rows[1][column], int) else rows[1][column] * 1.0001

    rewritten(out, "trials", change)
    uid = pq.read_table(file_of(out, "trials"), partitioning=None)["trial_uid"][1].as_py()
    found = verify(out)
    told = {finding.where: finding.what for finding in found.findings}
    assert told[f"trials.{column}"] == f"1 row, the first {uid}: {COLUMNS[column]}"
    assert found.exit_code(strict=False) == 1


def drop(rows: list[dict[str, Any]]) -> None:
    rows[:] = [row for row in rows if row["trial_uid"] != rows[-1]["trial_uid"]]


def twice(rows: list[dict[str, Any]]) -> None:
    rows.append(dict(rows[0]))


def other_uid(rows: list[dict[str, Any]]) -> None:
    rows[2]["trial_uid"] = rows[1]["trial_uid"]


CHANGES: dict[str, tuple[str, Callable[[list[dict[str, Any]]], object], str, str]] = {
    "config": ("trials", lambda rows: rows[1].update(config='{"seed":7}'), "error: trials.config_key", "not the key"),
    "no config": ("trials", lambda rows: rows[1].update(config="[]"), "error: trials.work_key", "not the key"),
    "trial_id": ("trials", lambda rows: rows[1].update(trial_id="a-01"), "error: trials.trial_id", "config_key-RR"),
    "valid": ("trials", lambda rows: rows[0].update(valid=True), "error: trials.valid", "1 row, the first"),
    "a row gone": ("trials", drop, "error: sweep quick on host-a", "counted 3 of its trials as committed, 2 are there"),
    "orphaned steps": ("trials", drop, "warning: steps", "1 trials have steps and no row"),
    "a row twice": ("trials", twice, "warning: trials", "1 rows are there twice"),
    "two of one uid": ("trials", other_uid, "error: trials", "another row has the same trial_uid"),
    "steps gone": ("steps", drop, "error: steps", "1 row, the first"),
    "a node gone": ("nodes", lambda rows: rows[0].update(node_key="f" * 16), "error: nodes", "0123456789abcdef"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_tables_that_do_not_agree(out: Path, change: str):
    """Each with its level, place and reason."""
    table, work, begins, told = CHANGES[change]
    rewritten(out, table, work)
    lines = [str(finding) for finding in verify(out).findings]
    assert [line for line in lines if line.startswith(f"{begins}: ") and told in line], lines


def test_planned_trials_without_a_row(out: Path):
    """A run that was stopped is a warning with the number, and under --strict exit code 1."""
    (out / "raybench-v1" / "_meta" / "quick" / RUN_ID / "COMPLETE.json").unlink()
    rewritten(out, "trials", lambda rows: rows.pop(0))
    (found,) = verify(out).findings
    assert (found.level, found.where) == ("warning", "sweep quick on host-a")
    assert found.what.startswith("1 of 3 planned trials have no row, the first ")
    assert [verify(out).exit_code(strict=strict) for strict in (False, True)] == [0, 1]


def test_unreadable_and_older_files(out: Path):
    """By path, with the reason; the good rows are looked at all the same."""
    good = file_of(out, "trials")
    (good.parent / "cut.parquet").write_bytes(good.read_bytes()[:-20])
    older = pq.read_table(good, partitioning=None).drop_columns(["note"])
    pq.write_table(older, good)
    found = verify(out)
    assert found.attempts == 3
    lines = [str(finding) for finding in found.findings]
    assert len(lines) == 2
    assert lines[0].startswith(f"error: {good.parent / 'cut.parquet'}: ")
    assert lines[0].endswith("; bring it back or remove it: its trials run again with the next run")
    assert lines[1].startswith("warning: trials: 1 files of trials lack columns of today")


def test_the_command(out: Path, tmp_path: Path):
    """A line a finding and one of what was looked at; objects under --json; a place without results is exit code 4."""
    def run(*words: str) -> tuple[int, list[str]]:
        done = CliRunner().invoke(cli.app, ["verify", *words])
        return done.exit_code, done.output.splitlines()

    assert run(str(out)) == (0, ["looked at 3 rows of trials in 3 files: nothing is wrong"])
    rewritten(out, "trials", lambda rows: rows[0].update(valid=True))
    code, lines = run(str(out))
    assert (code, lines[-1]) == (1, "looked at 3 rows of trials in 3 files: 1 finding")
    assert lines[0].startswith("error: trials.valid: 1 row, the first ")
    code, lines = run(str(out), "--json")
    assert code == 1
    assert json.loads(lines[0]).keys() == {"level", "where", "what", "cure"}
    with pytest.raises(StoreError, match="no raybench results under"):
        verify(tmp_path / "raybench-v1" / "trials")
