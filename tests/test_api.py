"""Running from Python, without a Ray: what is shown and what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import raybench
from raybench.record.run import Observer, RunClosed
from tests.factories import make_config, make_trial
from tests.frames import store
from tests.report.runs import OPENED


class Ran:
    """Stands in for the run: tells its observer of a run of two trials, one there before."""

    def __init__(self, out: Path) -> None:
        rows = [make_trial(make_config(num_workers=n), cluster="box", sweep_order=n) for n in (2, 1)]
        store(out, *rows, make_trial(make_config(seed=9), cluster="box"), make_trial(cluster="elsewhere"))
        self.ids = tuple(row.trial_id for row in rows)
        self.out = out
        self.asked: dict[str, Any] = {}

    def __call__(self, sweep: str, *, observer: Observer | None, **options: Any) -> RunClosed:
        self.asked = {"sweep": sweep, "observer": observer, **options}
        closed = RunClosed(
            sweep="quick", cluster="box", trial_ids=self.ids, outcomes={"ok": 2}, not_run=0, invalid=0, exit_code=0,
            out=str(self.out), continue_command="raybench run quick",
        )  # fmt: skip
        if observer is not None:
            observer.joining("starting a private Ray")
            observer.opened(OPENED)
            observer.closed(closed)
        return closed


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """The run is made up, its rows are there."""
    made = Ran(tmp_path / "out")
    monkeypatch.setattr("raybench.cluster.run.run_sweep", made)
    return made


def test_the_rows_of_the_run_come_back(ran: Ran) -> None:
    """Its own trials in the sweep's order, on its own cluster."""
    rows = raybench.run("quick", quick=True, progress=False)
    assert list(rows["num_workers"]) == [1, 2]
    assert ran.asked == {"sweep": "quick", "observer": None, "quick": True}


def test_a_notebook_sees_lines(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands in for standard output gets what a log gets, and is not closed."""
    raybench.run("quick")
    print("after")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("raybench ")
    assert lines[-2:] == ["2 ok", "after"]


def test_a_script_sees_lines_on_its_own_descriptor(ran: Ran, capfd: pytest.CaptureFixture[str]) -> None:
    """The same where standard output is a file or a pipe."""
    raybench.run("quick")
    assert capfd.readouterr().out.splitlines()[-1] == "2 ok"


def test_progress_can_be_turned_off(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said."""
    raybench.run("quick", progress=False)
    assert capsys.readouterr().out == ""


def test_an_observer_is_told_instead(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever watches decides what is shown."""

    class Counts:
        def __getattr__(self, name: str) -> Any:
            told.append(name)
            return lambda *_: None

    told: list[str] = []
    raybench.run("quick", observer=Counts())  # type: ignore[arg-type]
    assert told == ["joining", "opened", "closed"]
    assert capsys.readouterr().out == ""
