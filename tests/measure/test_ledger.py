"""The ledger adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.measure.ledger import Ledger, ledger

seconds = st.floats(min_value=0, max_value=1e4)


def test_ledger_by_hand() -> None:
    """Of 30 s, 1+2+3+4+5+6+7+0.5 = 28.5 are explained, 1.5 are not; 30 - 5 - 6 = 19 are overhead."""
    assert ledger(
        wall_s=30.0,
        placement_s=1.0,
        worker_start_s=2.0,
        prepare_s=3.0,
        build_s=4.0,
        warmup_s=5.0,
        measured_s=6.0,
        teardown_s=7.0,
        fingerprint_s=0.5,
    ) == Ledger(
        wall_s=30.0,
        placement_s=1.0,
        worker_start_s=2.0,
        prepare_s=3.0,
        build_s=4.0,
        warmup_s=5.0,
        teardown_s=7.0,
        handoff_s=1.5,
        fingerprint_s=0.5,
        overhead_s=19.0,
    )


@given(seconds, st.lists(seconds, min_size=8, max_size=8))
def test_parts_sum_to_the_wall_time(wall_s: float, parts: list[float]) -> None:
    """Whatever the parts, they and the rest make the whole."""
    placement_s, worker_start_s, prepare_s, build_s, warmup_s, measured_s, teardown_s, fingerprint_s = parts
    found = ledger(
        wall_s=wall_s,
        placement_s=placement_s,
        worker_start_s=worker_start_s,
        prepare_s=prepare_s,
        build_s=build_s,
        warmup_s=warmup_s,
        measured_s=measured_s,
        teardown_s=teardown_s,
        fingerprint_s=fingerprint_s,
    )
    assert sum(parts) + found.handoff_s == pytest.approx(wall_s, abs=1e-6)
    assert found.overhead_s + warmup_s + measured_s == pytest.approx(wall_s, abs=1e-6)
