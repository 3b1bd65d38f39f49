"""What runs again: wrong here means hours of GPU time spent twice, or a gap nobody notices."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from raybench.errors import UsageError
from raybench.record.trial import OUTCOMES, RUN_AGAIN
from raybench.results.read import UnreadableFileWarning
from raybench.results.resume import (
    Committed,
    EarlierAttempt,
    as_earlier,
    earlier_attempts,
    other_clusters,
    outcome_set,
    retry_set,
)
from raybench.results.store import RunStore
from raybench.spec.trial import PlannedTrial
from tests.factories import EPOCH, RUN_ID, make_config, make_trial

CONFIG = make_config()
PLANNED = tuple(
    PlannedTrial(config=CONFIG, config_key=CONFIG.config_key(), repeat=repeat, order=repeat - 1) for repeat in (1, 2, 3)
)


def earlier(
    repeat: int, outcome: str, attempt: int = 1, *, cluster: str = "a", device: str | None = "cpu", hours: int = 0
):
    """One committed attempt at a repeat of the planned config."""
    return EarlierAttempt(
        cluster, f"{CONFIG.config_key()}-{repeat:02d}", attempt, outcome, EPOCH + timedelta(hours=hours), device,
        f"{repeat}{attempt}{outcome}{cluster}",
    )  # fmt: skip


def left(*attempts: EarlierAttempt, **options) -> list[int]:
    """The repeats still to run on cluster a, cpu."""
    committed = Committed(attempts, **{"cluster": "a", **options})
    return [trial.repeat for trial in PLANNED if committed.done(trial.trial_id, "cpu") is None]


def test_nothing_earlier_runs_all():
    """All planned trials, in their order."""
    assert left() == [1, 2, 3]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_runs_again_exactly_where_the_table_says(outcome: str):
    """Repeat 2 ended once: it runs again for the outcomes that the design's table marks with yes."""
    again = outcome in {
        "node_lost", "preempted", "comm_error", "infeasible", "gpu_busy", "internal_error", "interrupted",
        "store_error",
    }  # fmt: skip
    assert left(earlier(2, outcome)) == ([1, 2, 3] if again else [1, 3])


def test_an_interrupted_second_try_leaves_an_ok_first_one_done():
    """The latest attempt decides, and interrupted does not replace ok."""
    assert left(earlier(1, "ok"), earlier(1, "interrupted", 2)) == [2, 3]
    assert left(earlier(1, "interrupted"), earlier(1, "ok", 2)) == [2, 3]


def test_other_clusters_and_devices_do_not_count():
    """Done on cluster b or on cuda is not done here; an attempt that reached no device is neither."""
    assert left(earlier(1, "ok", cluster="b"), earlier(2, "ok", device="cuda")) == [1, 2, 3]
    assert left(earlier(3, "data_error", device=None)) == [1, 2]


def test_newer_than_forgets_what_started_before():
    """Only a row started after the stamp counts, and the latest is taken among those."""
    rows = (earlier(1, "ok", hours=1), earlier(2, "ok", hours=2), earlier(3, "ok", hours=3))
    assert left(*rows, newer_than=EPOCH + timedelta(hours=2)) == [1, 2]
    assert left(earlier(1, "ok"), earlier(1, "interrupted", 2, hours=5), newer_than=EPOCH + timedelta(hours=2)) == [
        1,
        2,
        3,
    ]


def test_retry_adds_and_none_empties():
    """`timeout` runs again when asked for; under `none` even what would usually run again stays."""
    rows = (earlier(1, "timeout"), earlier(2, "comm_error"))
    assert left(*rows, retry=retry_set("timeout")) == [1, 2, 3]
    assert left(*rows, retry=retry_set("none")) == [3]


def test_retry_set_reads_lists():
    """Commas, spaces, nothing at all, and `none` with others."""
    assert retry_set("timeout, oom_cuda") == RUN_AGAIN | {"timeout", "oom_cuda"}
    assert retry_set("") == RUN_AGAIN
    assert retry_set("none") == frozenset()
    assert retry_set("none,timeout") == {"timeout"}


def test_an_unknown_outcome_is_told_with_the_nearest():
    """One line with the option, the word and what was probably meant."""
    with pytest.raises(UsageError, match=r"--retry: no outcome 'oom_cda'; did you mean oom_cuda\?"):
        retry_set("timeout,oom_cda")
    with pytest.raises(UsageError, match="--accept: no outcome 'zzz'; outcomes are ok, oom_cuda"):
        outcome_set("zzz", option="--accept")


def test_next_attempt_is_one_more_than_the_highest():
    """Of this cluster and trial, whatever device it ran on."""
    rows = (earlier(1, "ok", 1), earlier(1, "timeout", 4, device="cuda"), earlier(1, "ok", 7, cluster="b"))
    trial_id = PLANNED[0].trial_id
    assert [Committed(rows, cluster=cluster).next_attempt(trial_id) for cluster in "abc"] == [5, 8, 1]


def test_other_clusters_are_told_only_when_this_one_is_new():
    """A changed host name looks like a new cluster: then, and only then, the user should be told."""
    rows = (earlier(1, "ok", cluster="b"), earlier(2, "ok", cluster="a"))
    assert other_clusters(rows, "new") == ("a", "b")
    assert other_clusters(rows, "a") == ()
    assert other_clusters((), "a") == ()


def test_earlier_attempts_come_from_the_files(tmp_path: Path):
    """Every committed attempt of the sweep; none in a folder without results."""
    assert earlier_attempts(tmp_path, "quick") == ()
    store = RunStore(tmp_path, "quick", RUN_ID)
    trials = [
        make_trial(outcome="interrupted"),
        make_trial(attempt=2, cluster="b"),
        make_trial(repeat=2, device_kind=None),
    ]
    for trial in trials:
        store.commit(trial)
    found = earlier_attempts(tmp_path, "quick")
    assert {vars(one)["trial_uid"]: one for one in found} == {
        trial.trial_uid: as_earlier(trial)
        for trial in trials
    }
    assert earlier_attempts(tmp_path, "other") == ()


def test_an_unreadable_file_is_named_and_its_trials_run_again(tmp_path: Path):
    """Better to measure again than to stop, or to believe a gap."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    store.commit(make_trial())
    (store.files.root / "trials" / "quick" / "bad.parquet").write_bytes(b"PAR1")
    with pytest.warns(UnreadableFileWarning, match=r"bad\.parquet.*count as not run"):
        assert len(earlier_attempts(tmp_path, "quick")) == 1
