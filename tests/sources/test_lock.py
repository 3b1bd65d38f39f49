"""Waiting for another writer of the same folder."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from raybench.errors import DataError
from raybench.sources import lock
from raybench.sources.lock import locked


class Clock:
    """Time that passes while somebody sleeps; each sleep may do something."""

    def __init__(self, *during: object) -> None:
        self.now_s, self.during, self.sleeps = 0.0, list(during), 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.sleeps += 1
        if self.during:
            self.during.pop(0)()  # type: ignore[operator]


def test_a_holder_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changes: after the limit, one line with both cures."""
    clock = Clock()
    monkeypatch.setattr(lock, "time", clock)
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"changed nothing there for 300 s; end it, or choose another"):
            locked(tmp_path).__enter__()
    assert clock.now_s == pytest.approx(300.0, abs=0.2)


def test_a_holder_that_writes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change starts the 1 s anew: written at 0.1, 0.9 and 1.7 s, freed at 2.5 s, and nobody gave up at 1 s."""
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def write() -> None:
            (tmp_path / f"shard_{clock.sleeps}").write_text("x")

        def free() -> None:
            fcntl.flock(other, fcntl.LOCK_UN)

        def nothing() -> None: ...

        clock = Clock(write, *[nothing] * 7, write, *[nothing] * 7, write, *[nothing] * 7, free)
        monkeypatch.setattr(lock, "time", clock)
        with locked(tmp_path, stuck_s=1.0):
            assert clock.sleeps == 25
