"""The options of a run: what is refused before anything starts, and the command that continues."""

from datetime import datetime, timezone

import pytest

from raybench.cluster.options import RunOptions
from raybench.errors import UsageError

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"fresh": True, "newer_than": NOON}, "--fresh"),
        ({"local": True, "address": "10.0.0.4:6379"}, "--local"),
        ({"accept": "oom_gpu"}, "oom_gpu"),
        ({"out": "ftp://host/x"}, "--out ftp://host/x: results go to a folder, s3://BUCKET/PREFIX"),
        ({"out": ""}, "--out: give a folder"),
        ({"out": "~nobody-of-that-name/x"}, "no such user"),
        ({"cluster": "A B!"}, "--cluster"),
        ({"cluster": ""}, "--cluster"),
        ({"tags": {"Bad Name": "x"}}, "--tag"),
        ({"note": "x" * 1001}, "--note"),
    ],
)
def test_refused(changes, word):
    """One line that names the option."""
    with pytest.raises(UsageError, match=word):
        RunOptions(sweep="quick", **changes).checked()


def test_relative_out_inside_a_ray_job(monkeypatch):
    """Ray deletes a job's working directory, and results with it."""
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(UsageError, match="absolute"):
        RunOptions(sweep="quick").checked()
    assert RunOptions(sweep="quick", out="/data/results").checked().out == "/data/results"


def test_continue_command_repeats_the_options():
    """Words are quoted for the shell; defaults are left out."""
    options = RunOptions(sweep="my sweep.yaml", out="r", cluster="a", overrides=("seed=1",), quick=True, note="a b")
    expected = "raybench run 'my sweep.yaml' --out r --cluster a --note 'a b' --set seed=1 --quick"
    assert options.continue_command(None) == expected


@pytest.mark.parametrize(
    ("asked", "ended", "retry"),
    [
        (None, ("ok", "timeout", "oom_cuda"), "oom_cuda,timeout"),      # neither runs again by itself
        ("timeout", ("ok", "timeout", "oom_cuda"), "timeout"),          # one does: that is going on
        (None, ("ok", "comm_error", "timeout"), None),
        ("worker_died", ("timeout",), "worker_died,timeout"),
        ("none", ("interrupted", "ok"), "none,interrupted"),
        (None, ("ok", "skipped"), None),
        (None, (), None),
    ],
)
def test_what_would_not_run_again_by_itself_is_asked_for(asked, ended, retry):
    """A command that would find nothing to do is no way to go on."""
    expected = "raybench run quick" + (f" --retry {retry}" if retry else "")
    assert RunOptions(sweep="quick", retry=asked).continue_command(None, ended) == expected


def test_what_is_accepted_need_not_run_again():
    """`--accept oom_cuda`: of the two only the timeout is left."""
    options = RunOptions(sweep="quick", accept="oom_cuda")
    expected = "raybench run quick --retry timeout --accept oom_cuda"
    assert options.continue_command(None, ("oom_cuda", "timeout")) == expected


def test_fresh_continues_from_its_own_start():
    """`--fresh` again would measure everything a third time; the stamp keeps what this run did."""
    options = RunOptions(sweep="quick", fresh=True)
    since = options.done_since(NOON)
    assert options.continue_command(since) == "raybench run quick --newer-than 2026-11-21T12:00:00.000000Z"
