"""Everything about one trial, and finding it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from raybench.errors import UsageError
from raybench.measure.validity import MEANINGS
from raybench.record.trial import Trial
from raybench.report.find_trial import find_trial, traceback_file
from raybench.report.trial_page import trial_page
from raybench.results.store import RunStore
from tests.factories import RUN_ID, make_config, make_trial
from tests.frames import frame_of


def page(trial: Trial, traceback: str | None = None) -> str:
    """The page of one trial as text, digits grouped by `_`."""
    file = io.StringIO()
    row = {str(name): value for name, value in frame_of(trial).iloc[0].items()}
    Console(file=file, width=110).print(trial_page(row, traceback, 110))
    return "\n".join(line.rstrip() for line in file.getvalue().replace("\u202f", "_").splitlines())


def test_the_page_of_a_good_trial() -> None:
    """The published example: 172.94 ms with 2.41 ms is a CV of 1.39 % (FB-18); times in ms and in s."""
    shown = page(make_trial(step_ms=172.94, step_ms_std=2.41, step_ms_cv=2.41 / 172.94, warnings="short_window"))
    for line in (
        "encdec 3.5m s64 b4 fp32 device ×2   ok",
        "  ms     172.9     2.410   167.8   172.9   178.1   179.9   181.6",
        "  s     0.1729  0.002410  0.1678  0.1729  0.1781  0.1799  0.1816",
        "  CV 1.39 %: stable",
        "  samples/s                 46.26  ±2.0 % (95 %)",
        "  parameters                3_502_592",
        "  d_model                   128",
        "  optimizer.lr              0.0001",
        f"  short_window              {MEANINGS['short_window']}",
    ):
        assert line in shown
    assert "MFU" not in shown
    assert "Why it ended so" not in shown


def test_energy_is_told_over_the_work() -> None:
    """20 steps of 8 samples and 504 tokens: 3 200 J are 20 J a sample and 0.317 J a token."""
    shown = page(make_trial(energy_j=3200.0))
    assert "  energy a sample           20.0 J" in shown
    assert "  energy a token            0.317 J" in shown
    assert "energy a" not in page(make_trial())


def test_the_page_of_a_failed_trial() -> None:
    """The error comes first, literally, with its rank, host and traceback; there are no figures."""
    trial = make_trial(outcome="worker_died", error_text="[bold]killed\x1b]0;x\nby signal 9")
    shown = page(trial, "out/raybench-v1/_meta/t.txt")
    assert shown.splitlines()[:10] == [
        "encdec 3.5m s64 b4 fp32 device ×2   worker_died",
        "",
        "Why it ended so",
        "  error                     RuntimeError",
        "  on rank                   1",
        "  on host                   host-a",
        "  text                      [bold]killed]0;x",
        "                            by signal 9",
        "  traceback                 out/raybench-v1/_meta/t.txt",
        "",
    ]
    assert "Step time" not in shown
    assert "samples/s" not in shown


def test_a_trial_is_found_by_any_beginning_that_is_its_own() -> None:
    """trial_id means the latest attempt, trial_uid any attempt."""
    old = make_trial(trial_uid="a" * 32, attempt=1)
    new = make_trial(trial_uid="b" * 32, attempt=2)
    other = make_trial(make_config(seed=1), trial_uid="c" * 32)
    attempts, latest = frame_of(old, new, other), frame_of(new, other)
    assert find_trial(attempts, latest, new.trial_id)["attempt"] == 2
    assert find_trial(attempts, latest, new.trial_id[:6])["attempt"] == 2
    assert find_trial(attempts, latest, "aaa")["attempt"] == 1
    with pytest.raises(UsageError, match="no trial zzz"):
        find_trial(attempts, latest, "zzz")


def test_an_id_that_several_share_is_refused_with_what_there_is() -> None:
    """The same trial on two clusters has one trial_id."""
    rows = [make_trial(trial_uid=letter * 32, cluster=name) for letter, name in (("a", "x"), ("b", "y"))]
    frame = frame_of(*rows)
    with pytest.raises(UsageError, match=r"may be 2 trials: aaaaaaaaaaaa \(x, .*bbbbbbbbbbbb \(y, "):
        find_trial(frame, frame, rows[0].trial_id)


def test_the_traceback_is_found_where_the_run_left_it(tmp_path: Path) -> None:
    """Under the folder that was named; a row that names a file elsewhere finds none."""
    run = RunStore(tmp_path, "quick", RUN_ID)
    written = run.write_traceback("d" * 32, "Traceback ...")
    run.commit(make_trial(trial_uid="d" * 32, outcome="timeout"))
    row = {"sweep": "quick", "sweep_run_id": RUN_ID, "trial_uid": "d" * 32}
    assert traceback_file([tmp_path], row) == str(written)
    assert traceback_file([tmp_path], row | {"trial_uid": "e" * 32}) is None
    for name in ("sweep", "sweep_run_id", "trial_uid"):
        assert traceback_file([tmp_path], row | {name: "../../../etc"}) is None
