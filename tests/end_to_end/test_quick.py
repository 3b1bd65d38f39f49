"""The main job as a newcomer meets it: `raybench run quick` where nothing runs, and everything that comes of it."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from tests.end_to_end.finished import Finished

pytestmark = pytest.mark.ray

WARMUP, MEASURED = 5, 20
# Every part of an attempt's wall time, the window among them, as `measure.ledger` names them.
LEDGER = ["placement_s", "worker_start_s", "prepare_s", "build_s", "warmup_s", "measured_s", "teardown_s", "handoff_s",
          "fingerprint_s"]  # fmt: skip
TRIAL_LINE = re.compile(r"\[ ?\d+/16\] ")


def test_it_ends_well(finished: Finished) -> None:
    """Exit 0, and nothing on stderr."""
    assert finished.exit_code == 0, finished.told() + finished.host.ray_log()
    assert finished.stderr == ""


def test_its_ray_leaves_no_folder(finished: Finished) -> None:
    """The private Ray's logs and sockets go with it; what it printed stays in `_meta`."""
    assert not list((finished.host.ray_folder / "ray").glob("session_2*"))
    assert list(finished.out.glob("raybench-v1/_meta/*/*/ray.log"))


def test_one_ok_row_for_each_config(finished: Finished) -> None:
    """encdec: 3 sources x 2 precisions x 1 and 2 workers = 12; matmul: 2 x 2 = 4."""
    rows = finished.trials()
    assert rows[["outcome", "valid"]].value_counts().to_dict() == {("ok", True): 16}
    assert rows["config_key"].nunique() == 16
    ran = rows[["workload", "source", "precision", "num_workers"]].fillna("-").itertuples(index=False, name=None)
    encdec = {("encdec", s, p, n) for s in ("device", "generate", "shards") for p in ("fp32", "bf16") for n in (1, 2)}
    assert set(ran) == encdec | {("matmul", "-", p, n) for p in ("fp32", "bf16") for n in (1, 2)}


def test_plain_pandas_reads_the_trials(finished: Finished) -> None:
    """One call, no options, and a plain bool to filter by."""
    frame = pd.read_parquet(finished.out / "raybench-v1" / "trials")
    assert len(frame[frame.valid & (frame.outcome == "ok")]) == 16


def test_readers_are_not_disturbed_by_the_writer(finished: Finished) -> None:
    """pandas and `load` read from the first row to the last, and never saw fewer rows than before."""
    reads = finished.reads
    assert reads.errors == []
    for rows in (reads.pandas, reads.load):
        assert len(rows) > 10
        assert rows == sorted(rows)
        assert 1 <= rows[0] < 16


def test_first_line_says_which_ray_and_why(finished: Finished) -> None:
    """A private one, since none was running, and how to get another."""
    first = finished.stdout.splitlines()[0]
    assert first.startswith("raybench ")
    assert "private Ray 2." in first
    assert "none runs on this node" in first
    assert "--address" in first
    assert set(finished.trials()["ray_address_source"]) == {"private"}


def test_nothing_of_rays_or_tunes_own_is_printed(finished: Finished) -> None:
    """No banner, no box, no log line, no terminal codes in a pipe."""
    for word in ("ray.", "Tune", "tune", "(pid=", "INFO", "WARNING", "╭", "│", "+---", "\x1b", "\r"):
        assert word not in finished.stdout, word
    assert (finished.host.folder / "results").is_dir()
    assert [path.name for path in finished.host.folder.iterdir() if path.name.startswith("ray")] == []


def test_output_stays_short(finished: Finished) -> None:
    """At most 200 characters a line, and 3 lines a trial beside 10 and the table of 16 rows with its head."""
    lines = finished.stdout.splitlines()
    assert max(map(len, lines)) <= 200
    assert len(lines) <= 3 * 16 + 10 + (16 + 2)
    assert sum(bool(TRIAL_LINE.match(line)) for line in lines) == 16


def test_it_closes_with_a_count_and_the_next_command(finished: Finished) -> None:
    """`16 ok`, and a comparison that then works."""
    lines = finished.stdout.splitlines()
    assert "16 ok" in lines
    assert lines[-1].startswith("next:  raybench ")
    done = finished.host.run(*lines[-1].split()[2:])
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_step_of_every_rank_is_kept(finished: Finished) -> None:
    """5 warm-up and then 20 measured steps of each of 1 or 2 ranks: 8 x 25 + 8 x 2 x 25 = 600 rows."""
    steps = finished.steps()
    assert len(steps) == 600
    for (_, rank), one in steps.sort_values("step").groupby(["trial_uid", "rank"]):
        assert list(one["step"]) == list(range(WARMUP + MEASURED))
        assert list(one["is_warmup"]) == [True] * WARMUP + [False] * MEASURED
        assert rank < one["world_size"].iloc[0]
        assert one["start_s"].is_monotonic_increasing


def test_step_times_sum_to_the_window(finished: Finished) -> None:
    """The slowest rank's measured steps fill `measured_s`; 10 ms are one time slice of a busy machine.

    Ranks of DDP wait for each other in every step, so there each rank's steps do. Split work does not.
    """
    steps = finished.steps()
    ranks = steps[~steps["is_warmup"]].groupby(["trial_uid", "workload", "rank"])
    by_rank = ranks.agg(ms=("step_ms", "sum"), window=("measured_s", "max"))
    by_rank["gap"] = (by_rank["ms"] / 1e3 - by_rank["window"]).abs()
    allowed = (0.05 * by_rank["window"]).clip(lower=0.010)
    assert (by_rank["gap"] <= allowed).xs("encdec", level="workload").all()
    slowest = by_rank.loc[by_rank.groupby("trial_uid")["ms"].idxmax()]
    assert (slowest["gap"] <= allowed.loc[slowest.index]).all()


def test_the_ledger_explains_the_wall_time(finished: Finished) -> None:
    """All parts and the window sum to `wall_s`; starting processes is paid by the first trial of each group only."""
    rows = finished.trials()
    assert rows[LEDGER].sum(axis=1).to_list() == pytest.approx(rows["wall_s"].to_list(), abs=1e-6)
    assert (rows[LEDGER] >= 0).all(axis=None)
    assert list(rows["group_trial_index"]) == [*range(8), *range(8)]
    assert list(rows["worker_start_s"] > 0) == [True, *[False] * 7] * 2
    overhead_s = rows["wall_s"] - rows["warmup_s"] - rows["measured_s"]
    assert rows["overhead_s"].to_list() == pytest.approx(overhead_s.to_list())


def test_the_same_tokens_give_the_same_losses(finished: Finished) -> None:
    """fp32 on one worker: the same seed and the same index, so every source gives the same losses to the last bit."""
    steps = finished.steps()
    one = steps[(steps["workload"] == "encdec") & (steps["precision"] == "fp32") & (steps["num_workers"] == 1)]
    losses = one.pivot(index="step", columns="source", values="loss")
    assert sorted(losses.columns) == ["device", "generate", "shards"]
    assert (losses.nunique(axis=1) == 1).all()
    assert losses["device"].nunique() > 20     # a loss that never moves would agree with itself


def test_losses_are_finite(finished: Finished) -> None:
    """Near ln 8192 = 9.01 before anything is learnt; matmul has none."""
    steps = finished.steps()
    encdec = steps[steps["workload"] == "encdec"]
    assert encdec["loss"].between(8.0, 10.5).all()
    assert steps.loc[steps["workload"] == "matmul", "loss"].isna().all()
    assert finished.trials()["loss_finite"].fillna(True).all()


def test_what_ran_is_what_was_asked(finished: Finished) -> None:
    """DDP also on one worker, so that its curve has a like baseline; matmul is split; gloo between CPU ranks."""
    rows = finished.trials()
    assert (rows["effective_precision"] == rows["precision"]).all()
    assert (rows["effective_strategy"] == rows["strategy"]).all()
    assert rows.groupby("workload")["strategy"].unique().map(list).to_dict() == {"encdec": ["ddp"], "matmul": ["split"]}
    assert (rows["world_size"] == rows["num_workers"]).all()
    assert set(rows["device_kind"]) == {"cpu"}
    assert set(rows["backend"]) == {"gloo"}
    assert rows[["mfu", "gpu_model", "energy_j", "peak_memory_allocated_bytes"]].isna().all(axis=None)


def test_counts_and_headline_agree(finished: Finished) -> None:
    """20 steps of 4 pairs a worker with 63 target tokens each; the headline is that work over the window."""
    rows = finished.trials()
    encdec = rows[rows["workload"] == "encdec"]
    assert set(encdec["parameters"]) == {3_502_592}
    assert (encdec["measured_samples"] == MEASURED * 4 * encdec["num_workers"]).all()
    assert (encdec["measured_tokens"] == encdec["measured_samples"] * 63).all()
    expected = rows["measured_samples"] / rows["measured_s"]
    assert rows["samples_per_s"].to_list() == pytest.approx(expected.to_list())


READING = [
    ("show", "results"), ("compare", "results", "--by", "precision"), ("compare", "results", "--by", "source"),
    ("compare", "results", "--by", "num_workers"),
]  # fmt: skip


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_commands(finished: Finished, words: tuple[str, ...]) -> None:
    """Each prints a table within the width, and with `--json` one object a line."""
    shown = finished.host.run(*words)
    assert shown.returncode == 0, shown.stderr
    assert "encdec 3.5m" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 160
    lines = finished.host.run(*words, "--json").stdout.splitlines()
    objects = [json.loads(line) for line in lines]
    assert len(objects) == (12 if "source" in words else 16)
    assert all("samples_per_s" in one for one in objects)


def test_everything_about_one_trial(finished: Finished) -> None:
    """By a beginning of its id; the page holds the same figures as the row."""
    row = finished.trials().iloc[0]
    shown = finished.host.run("show", "results", "--trial", row["trial_uid"][:8])
    assert shown.returncode == 0, shown.stderr
    assert row["trial_uid"] in shown.stdout
    told = json.loads(finished.host.run("show", "results", "--trial", row["trial_uid"], "--json").stdout)
    assert told["samples_per_s"] == pytest.approx(row["samples_per_s"])


def test_a_second_run_has_nothing_to_do(finished: Finished) -> None:
    """Resume: the same command finds all 16 done and starts no worker."""
    before = len(finished.trials())
    again = finished.host.run("run", "quick")
    assert again.returncode == 0, again.stderr
    assert "16 done earlier · 0 to run" in again.stdout
    assert len(finished.trials()) == before
