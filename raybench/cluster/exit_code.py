"""The exit code of a run, over the trials that this command planned."""

from __future__ import annotations

from collections.abc import Mapping

EXPECTED = frozenset({"ok", "skipped"})


def exit_code(outcomes: Mapping[str, int], planned: int, accepted: frozenset[str]) -> int:
    """0: every latest row is ok, skipped or accepted; 3: nothing could run; 1: anything else.

    `outcomes` counts the latest rows; a planned trial without a row is not expected.
    """
    if planned and outcomes.get("infeasible", 0) == planned and "infeasible" not in accepted:
        return 3
    fine = sum(count for outcome, count in outcomes.items() if outcome in EXPECTED | accepted)
    return 0 if fine == planned else 1
