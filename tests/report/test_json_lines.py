"""Results for programs."""

from __future__ import annotations

import json

from raybench.report.json_lines import json_line, json_lines
from tests.factories import make_trial
from tests.frames import frame_of


def test_every_row_is_one_object_with_every_column() -> None:
    """Numbers stay numbers to the last digit, null is null, times are UTC."""
    trial = make_trial(step_ms=1 / 3, error_text="a\nb\x1b", mfu=None)
    (line,) = json_lines(frame_of(trial))
    row = json.loads(line)
    assert row["step_ms_mean"] == 1 / 3
    assert row["mfu"] is None
    assert row["error_text"] == "a\nb\x1b"
    assert row["valid"] is True
    assert row["started_at"] == "2026-03-01T12:00:00+00:00"
    assert list(row) == list(frame_of(trial).columns)


def test_what_json_cannot_hold_is_null() -> None:
    """An infinite ratio is no number to a parser."""
    row = {"x": float("inf"), "y": float("nan"), "z": ["a"]}
    assert json_line(row) == '{"x": null, "y": null, "z": ["a"]}'
