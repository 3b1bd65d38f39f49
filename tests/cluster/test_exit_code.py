"""Exit codes over the latest rows of the planned trials."""

import pytest

from raybench.cluster.exit_code import exit_code


@pytest.mark.parametrize(
    ("outcomes", "planned", "accepted", "code"),
    [
        ({"ok": 4}, 4, (), 0),
        ({"ok": 3, "skipped": 1}, 4, (), 0),
        ({"ok": 3, "oom_cuda": 1}, 4, (), 1),
        ({"ok": 3, "oom_cuda": 1}, 4, ("oom_cuda",), 0),
        ({"infeasible": 4}, 4, (), 3),
        ({"infeasible": 4}, 4, ("infeasible",), 0),
        ({"infeasible": 3, "ok": 1}, 4, (), 1),
        ({"ok": 3}, 4, (), 1),      # one planned trial has no row
        ({}, 0, (), 0),             # --only left nothing
    ],
)
def test_exit_code(outcomes, planned, accepted, code):
    """0 all expected, 1 something else, 3 nothing could run."""
    assert exit_code(outcomes, planned, frozenset(accepted)) == code
