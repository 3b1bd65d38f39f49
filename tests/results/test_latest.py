"""Which attempt counts: cases worked by hand, then against the rule stated in another way."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.record.trial import OUTCOMES
from raybench.results.latest import latest
from raybench.results.load import _latest_only
from raybench.results.resume import EarlierAttempt
from tests.factories import EPOCH


def attempt(number: int, outcome: str, *, hours: int = 0, uid: str = "", cluster: str = "c", trial_id: str = "t-01"):
    """One attempt; unless told otherwise it starts at the epoch."""
    started_at = EPOCH + timedelta(hours=hours)
    return EarlierAttempt(cluster, trial_id, number, outcome, started_at, "cpu", uid or f"{number:02d}{outcome}")


def by_pandas(attempts: list[EarlierAttempt]) -> dict[tuple[str, str], str]:
    """What `load` would keep: uid by cluster and trial."""
    rows = _latest_only(pd.DataFrame([vars(one) for one in attempts]).assign(sweep="s"))
    return {(row.cluster, row.trial_id): row.trial_uid for row in rows.itertuples()}


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [
        (["ok"], 1),
        (["oom_cuda", "ok"], 2),
        (["ok", "oom_cuda"], 2),  # a later answer counts, also a worse one
        (["ok", "interrupted"], 1),
        (["ok", "store_error", "skipped"], 1),
        (["interrupted", "ok"], 2),
        (["interrupted", "skipped"], 2),  # no ok to protect
        (["timeout", "interrupted"], 2),
        (["ok", "timeout", "interrupted"], 3),  # the ok one had been replaced already
        (["ok", "interrupted", "timeout"], 3),
        (["ok", "interrupted", "ok", "skipped"], 3),
    ],
)
def test_cases_by_hand(outcomes: list[str], kept: int):
    """Attempts 1, 2, 3, ... end as listed; the number of the latest is written beside them."""
    attempts = [attempt(number, outcome) for number, outcome in enumerate(outcomes, start=1)]
    assert latest(reversed(attempts))["c", "t-01"].attempt == kept
    assert by_pandas(attempts[::-1]) == {("c", "t-01"): attempts[kept - 1].trial_uid}


def test_equal_attempts_go_by_start_then_uid():
    """Two runs at once may both make attempt 2: the later start wins, then the higher uid."""
    tied = [attempt(2, "ok", hours=1, uid="a"), attempt(2, "ok", hours=3, uid="b"), attempt(2, "ok", hours=3, uid="c")]
    assert latest(tied)["c", "t-01"].trial_uid == "c"
    assert by_pandas(tied) == {("c", "t-01"): "c"}


def test_clusters_and_trials_are_apart():
    """Each (cluster, trial) has its own latest attempt."""
    apart = [
        attempt(1, "ok", cluster="a", uid="1"),
        attempt(2, "ok", cluster="b", uid="2"),
        attempt(3, "ok", trial_id="u-01", uid="3"),
    ]
    assert {key: one.trial_uid for key, one in latest(apart).items()} == by_pandas(apart)
    assert len(latest(apart)) == 3


ATTEMPTS = st.lists(
    st.builds(
        attempt,
        st.integers(1, 3),
        st.sampled_from(OUTCOMES),
        hours=st.integers(0, 2),
        cluster=st.sampled_from("ab"),
        trial_id=st.sampled_from(["t-01", "t-02"]),
        uid=st.uuids().map(lambda uid: uid.hex),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda one: one.trial_uid,
)


def stated_otherwise(attempts: list[EarlierAttempt], key: tuple[str, str]) -> EarlierAttempt:
    """The highest; but where it may not replace an ok one, and the highest of those that may is ok, then that one."""

    def highest(some: list[EarlierAttempt]) -> EarlierAttempt | None:
        above = lambda a, b: (a.attempt, a.started_at, a.trial_uid) > (b.attempt, b.started_at, b.trial_uid)  # noqa: E731
        return next((one for one in some if not any(above(other, one) for other in some)), None)

    own = [one for one in attempts if (one.cluster, one.trial_id) == key]
    deciding = highest([one for one in own if one.outcome not in ("interrupted", "store_error", "skipped")])
    top = highest(own)
    assert top is not None
    return deciding if deciding is not None and deciding.outcome == "ok" else top


@settings(max_examples=150, deadline=None)
@given(ATTEMPTS)
def test_both_forms_agree_with_the_rule_stated_otherwise(attempts: list[EarlierAttempt]):
    """The fold that resume uses and the column operations of `load` choose what the statement chooses."""
    expected = {
        key: stated_otherwise(attempts, key).trial_uid for key in {(one.cluster, one.trial_id) for one in attempts}
    }
    assert {key: one.trial_uid for key, one in latest(attempts).items()} == expected
    assert by_pandas(attempts) == expected
