"""One sweep that holds every way to fail that one node can produce; each ends as its own typed row."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.end_to_end.harness import Host, new_host

pytestmark = pytest.mark.ray

SWEEP = """\
name: faults
base: {workload: faulty, model: fine, num_workers: 2, warmup: 1, measure: 10, timeout: 15}
axes:
  model: [fine, absent, stopped, killed, raises]
include:
  - {workload: faulty, num_workers: 1, axes: {model: [miscounts, oom_host, oom_cuda, exits]}}
  - {workload: faulty, model: fine, num_workers: 64}
  - {workload: matmul, model: {m: 64, k: 64, n: 64}, precision: tf32, num_workers: 1}
  - {workload: matmul, model: {m: 64, k: 64, n: 64}, precision: fp32, num_workers: 1}
  - workload: encdec
    model: {d_model: 16, nhead: 2, num_encoder_layers: 1, num_decoder_layers: 1, dim_feedforward: 32}
    seq_len: 8
    vocab_size: 64
    micro_batch: 2
    num_workers: 1
    axes: {source: [{name: generate, num_samples: 64}, {name: shards, num_samples: 64, num_shards: 2}]}
"""
CUT_SHARD = "shard_0001.bin"
PREPARE = """
import sys
from raybench.sources.prepare import prepare
from raybench.spec.plan import plan
(trial,) = plan(sys.argv[1], only=["source=shards"]).trials
prepare(trial.config)
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host whose prepared shards were cut by two bytes, and whose sweep of faults has run."""
    with new_host(tmp_path_factory.mktemp("faults")) as made:
        sweep = made.write("faults.yaml", SWEEP)
        subprocess.run([sys.executable, "-c", PREPARE, str(sweep)], env=made.env, check=True, timeout=60)
        (shard,) = Path(made.env["RAYBENCH_DATA_DIR"]).rglob(CUT_SHARD)
        shard.write_bytes(shard.read_bytes()[:-2])
        made.done = made.run_sweep(sweep, "--local")  # type: ignore[attr-defined]
        yield made


@pytest.fixture(scope="module")
def rows(host: Host) -> pd.DataFrame:
    """The latest rows, by what was asked."""
    frame = host.rows()
    return frame.set_index(frame["model"].where(frame["num_workers"] < 64, "too_many") + "/" + frame["precision"]
                           + "/" + frame["source"].fillna("-"))  # fmt: skip


@pytest.mark.parametrize(
    ("which", "outcome", "error_type", "rank"),
    [
        ("oom_host/fp32/-", "oom_host", "RuntimeError", 0),
        ("oom_cuda/fp32/-", "oom_cuda", "OutOfMemoryError", 0),
        ("absent/fp32/-", "timeout", "DeadlineExceeded", 1),
        ("stopped/fp32/-", "timeout", "DeadlineExceeded", 1),
        ("killed/fp32/-", "worker_died", "ActorDiedError", 1),
        ("raises/fp32/-", "workload_error", "ValueError", 1),
        ("exits/fp32/-", "workload_error", "SystemExit", 0),
        ("miscounts/fp32/-", "workload_error", "KeyError", None),
        ("too_many/fp32/-", "infeasible", "capacity", None),
        ("custom/tf32/-", "infeasible", "unsupported", None),
        ("custom/fp32/shards", "data_error", "DataError", None),
    ],
)
def test_each_fault_has_its_outcome(rows, which, outcome, error_type, rank):
    """Outcome, class of the error and the rank to blame."""
    row = rows.loc[which]
    assert (row["outcome"], row["error_type"]) == (outcome, error_type), row["error_text"]
    assert (None if pd.isna(row["error_rank"]) else row["error_rank"]) == rank


@pytest.mark.parametrize("which", ["fine/fp32/-", "custom/fp32/-", "custom/fp32/generate"])
def test_all_other_trials_are_ok(rows, which):
    """A sweep goes on after each failure, and what follows is sound."""
    assert rows.loc[which, "outcome"] == "ok"


def test_one_row_for_each_planned_trial(host, rows):
    """Fourteen trials; the exit code says that some are not ok, the closing line which."""
    assert len(rows) == 14
    assert host.done.returncode == 1
    assert "3 ok" in host.done.stdout
    assert "2 timeout" in host.done.stdout


def test_texts_are_clear_and_clean(rows):
    """What to do is in the row, and nothing that a terminal would obey."""
    assert "64 workers" in rows.loc["too_many/fp32/-", "error_text"]
    assert CUT_SHARD in rows.loc["custom/fp32/shards", "error_text"]
    assert rows.loc["raises/fp32/-", "error_text"] == "the shape is wrong [bold]"
    assert rows.loc["exits/fp32/-", "error_text"] == "it called sys.exit(3)"


def test_both_stacks_of_a_hang_are_kept(host, rows):
    """One rank in its collective, the other in the workload's own code."""
    (trace,) = host.out.glob(f"raybench-v1/_meta/**/*{rows.loc['absent/fp32/-', 'trial_uid']}*")
    text = trace.read_text()
    assert "rank 0" in text
    assert "all_reduce" in text
    assert "rank 1" in text
    assert "_absent" in text


def test_failures_are_measured_nowhere(rows):
    """Whatever failed has no figure and is not valid."""
    failed = rows[rows["outcome"] != "ok"]
    assert failed[["samples_per_s", "measured_s", "step_ms_mean", "wall_s"]].isna().all(axis=None)
    assert not failed["valid"].any()
