"""How far preparing is, where nobody sees a bar."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from raybench.report import preparing
from raybench.report.preparing import Preparing


def test_a_line_now_and_then_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 10 s at most, with what is done and what is to do; nothing where it is done at once."""
    clock, out = [0.0], io.StringIO()
    monkeypatch.setattr(preparing.time, "monotonic", lambda: clock[0])
    with Preparing(Console(file=out, width=200)) as told:
        for now_s in (1.0, 9.0, 10.0, 11.0, 21.0):
            clock[0] = now_s
            told(Path("/data/tokens.bin"), int(now_s * 1e9), 50_000_000_000)
    assert out.getvalue().splitlines() == ["/data/tokens.bin: 10.0 of 50.0 GB", "/data/tokens.bin: 21.0 of 50.0 GB"]


def test_a_bar_on_a_terminal() -> None:
    """With the name and how many bytes of all; it is gone at the end."""
    out = io.StringIO()
    with Preparing(Console(file=out, width=100, force_terminal=True)) as told:
        told(Path("/data/tokens.bin"), 1_000_000_000, 2_000_000_000)
        told(Path("/data/tokens.bin"), 2_000_000_000, 2_000_000_000)
    assert "tokens.bin" in out.getvalue()
    assert "2.0/2.0 GB" in out.getvalue()
