"""Which resource a step waits for, from what is known of it."""

from __future__ import annotations

import pytest

from raybench.measure.attribution import limit

KNOWN = {"au": 0.5, "au_high": 0.52, "delivered": 95.0, "ceiling": 100.0, "stall": 0.5, "loader_cpu_share": 0.9}


@pytest.mark.parametrize(("changed", "found"), [
    ({"au": 0.97, "au_high": 0.99}, "compute"),                                  # the interval reaches 0.98
    ({"au": 0.99, "au_high": None}, "compute"),
    ({"au": 0.97, "au_high": None, "loader_cpu_share": 0.1}, "read"),
    ({}, "loader cpu"),                                                          # all it can deliver, by hard work
    ({"loader_cpu_share": 0.3}, "read"),                                         # all it can deliver, mostly waiting
    ({"loader_cpu_share": None}, "source"),
    ({"delivered": 50.0, "stall": 0.01}, "contention"),                          # half its ceiling, and never awaited
    ({"ceiling": None, "stall": 0.01}, "contention"),
    ({"ceiling": None}, "loader cpu"),                                           # half is lost, half is waiting
    ({"ceiling": None, "stall": None}, "contention"),
    ({"au": None}, None),
])  # fmt: skip
def test_limit(changed: dict[str, float | None], found: str | None) -> None:
    """Half the speed of the null source, at 95 of 100 samples a second that the source can deliver; changed."""
    assert limit(**{**KNOWN, **changed}) == found
