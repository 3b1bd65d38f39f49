"""Reading some columns only."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybench.errors import UsageError
from raybench.results.load import load
from tests.factories import make_trial
from tests.frames import store


def test_only_what_was_asked_for_is_read(tmp_path: Path) -> None:
    """Beside it only what tells rows and attempts apart; the latest attempt is still the one that counts."""
    store(tmp_path, make_trial(attempt=1, step_ms=50.0), make_trial(attempt=2, step_ms=25.0))
    frame = load(tmp_path, columns=["samples_per_s"])
    # 8 samples a step of 25 ms.
    assert frame["samples_per_s"].to_list() == [320.0]
    assert set(frame.columns) == {
        "samples_per_s", "trial_uid", "sweep", "cluster", "trial_id", "attempt", "started_at", "outcome", "valid",
    }  # fmt: skip


def test_a_column_that_there_is_not_is_told(tmp_path: Path) -> None:
    """With the one that was meant; one name alone is no list of letters."""
    store(tmp_path, make_trial())
    with pytest.raises(UsageError, match="trials have no column 'samples_per_sec'; did you mean \"samples_per_s\""):
        load(tmp_path, columns=["samples_per_sec"])
    with pytest.raises(UsageError, match="schema --columns"):
        load(tmp_path, columns=["zzz"])
    assert "mfu" in load(tmp_path, columns="mfu")


def test_columns_of_other_tables_are_refused(tmp_path: Path) -> None:
    """Said, not ignored."""
    store(tmp_path, make_trial())
    with pytest.raises(UsageError, match="of trials only, not of steps"):
        load(tmp_path, table="steps", columns=["step_ms"])
