"""`ray_data` in warm groups: on a Ray of three CPUs, where its tasks could starve, and over two raylets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.sources.tokens import tokens
from raybench.spec.samples import TokenSample
from tests.end_to_end.harness import Host, joined_ray, new_host, started_ray

pytestmark = pytest.mark.ray

# 41 rows in three files: each of two ranks gets 20 an epoch, in batches of 3 that no epoch fills, and one is missing.
# 48 of the 60 in a file of somebody's own are 24 each, in batches of 4. The third trial reads nothing, in the same
# processes.
SWEEP = """\
name: streamed
isolation: warm
base: {{workload: spy, model: {{folder: {folder}}}, num_workers: 2, data_cpus: 1, warmup: 2, measure: 20, timeout: 900}}
axes:
  data:
    - {{micro_batch: 3, source: {{name: ray_data, num_samples: 41, num_shards: 3}}}}
    - micro_batch: 4
      source: {{name: ray_data, path: own, column: text, num_samples: 48, preserve_order: false, block_mb: 1}}
    - {{micro_batch: 3, source: {{name: device, num_samples: 50}}}}
"""
APART = """\
name: apart
base: {{workload: spy, model: {{folder: {folder}}}, num_workers: 2, nodes: 2, micro_batch: 3, timeout: 900,
       source: {{name: ray_data, num_samples: 31, num_shards: 3}}, warmup: 2, measure: 10}}
"""
TOO_SMALL = """\
name: small
base: {{workload: spy, model: {{folder: {folder}}}, num_workers: 2, data_cpus: 3,
       source: {{name: ray_data, num_samples: 9}}}}
"""


KNOWN = tokens(0, np.arange(60), TokenSample((2, 4), 8192)).reshape(60, 8)
"""Samples of seed 0, by their index: as many as any trial here may see."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Three sweeps on a Ray that was started with three CPUs; for the second one it gets another raylet."""
    with new_host(tmp_path_factory.mktemp("streamed")) as host:
        (host.folder / "seen").mkdir()
        (host.folder / "own").mkdir()
        own = pa.table({"id": range(60), "text": pa.array(KNOWN.tolist(), pa.list_(pa.int32()))})
        pq.write_table(own, host.folder / "own" / "corpus.parquet")
        sweeps = {name: host.write(f"{name}.yaml", text.format(folder=host.folder / "seen"))
                  for name, text in (("streamed", SWEEP), ("apart", APART), ("small", TOO_SMALL))}  # fmt: skip
        with started_ray(host, cpus=3) as address:
            done = host.run_sweep(sweeps["streamed"])
            assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
            done = host.run_sweep(sweeps["small"], "--accept", "infeasible")
            with joined_ray(host, address, cpus=3):
                done = host.run_sweep(sweeps["apart"])
                assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
        yield host


def rows(host: Host, sweep: str) -> pd.DataFrame:
    """The rows of a sweep, in its order."""
    found = host.rows()
    return found[found["sweep"] == sweep].sort_values("sweep_order")


def seen(host: Host, name: str) -> list[np.ndarray]:
    """Of each rank, the indices of the samples that it was given, in their order."""
    paths = [host.folder / "seen" / f"{name}-{rank}.jsonl" for rank in (0, 1)]
    return [_indices(path) for path in paths]


def _indices(path: Path) -> np.ndarray:
    index = {tuple(sample): number for number, sample in enumerate(KNOWN.tolist())}
    return np.array([index[tuple(json.loads(line))] for line in path.read_text().splitlines()])


def epochs(ranks: list[np.ndarray], length: int) -> list[list[int]]:
    """What both ranks together were given in each whole epoch, each of them `length` samples."""
    whole = min(map(len, ranks)) // length
    return [sorted(np.concatenate([rank[i * length : (i + 1) * length] for rank in ranks])) for i in range(whole)]


def test_no_tasks_starve(ran: Host) -> None:
    """Two workers, Tune's trial and the reading tasks on three CPUs: all end well, in one warm group."""
    found = rows(ran, "streamed")
    assert list(found["outcome"]) == ["ok"] * 3
    assert list(found["group_trial_index"]) == [0, 1, 2]


@pytest.mark.parametrize(("number", "micro_batch", "num_samples"), [(0, 3, 41), (1, 4, 48)])
def test_each_row_at_most_once_an_epoch(ran: Host, number: int, micro_batch: int, num_samples: int) -> None:
    """22 steps: every rank sees as many samples, an epoch misses what does not divide by two, and the row counts it."""
    ranks, length = seen(ran, f"ray_data-{num_samples}"), num_samples // 2
    assert [len(rank) for rank in ranks] == [22 * micro_batch] * 2
    found = epochs(ranks, length)
    assert len(found) == 22 * micro_batch // length == 3
    assert all(len(set(epoch)) == len(epoch) == 2 * length for epoch in found)
    row = rows(ran, "streamed").iloc[number]
    assert row["samples_dropped"] == 3 * (num_samples % 2)
    assert row["first_batch_s"] > 0


def test_epochs_and_waits_are_those_of_the_stream(ran: Host) -> None:
    """20 rows an epoch and rank in batches of 3: steps 0 to 6 begin in the first one. Every step's wait is known."""
    row = rows(ran, "streamed").iloc[0]
    steps = pd.concat(map(pd.read_parquet, ran.out.glob("raybench-v1/steps/streamed/*.parquet")))
    steps = steps[(steps["trial_uid"] == row["trial_uid"]) & (steps["rank"] == 0)].sort_values("step")
    assert list(steps["epoch"]) == [3 * step // 20 for step in range(22)]
    assert steps["data_wait_ms"].notna().all()


def test_other_sources_share_the_group(ran: Host) -> None:
    """`device` in the same processes, by the index; nothing is said of what it drops."""
    ranks = seen(ran, "device-50")
    assert [list(rank[:3]) for rank in ranks] == [[0, 1, 2], [3, 4, 5]]
    assert pd.isna(rows(ran, "streamed").iloc[2]["samples_dropped"])


def test_what_ray_data_held_is_free_again(ran: Host) -> None:
    """When the third trial has begun, the actors that gave out the rows of the others are gone; the run goes on."""
    assert (ran.folder / "seen" / "left-running").read_text() == "0"


def test_what_does_not_fit_together_is_infeasible(ran: Host) -> None:
    """Three CPUs to read with leave none for workers: the sum is told, and nothing waits."""
    (row,) = rows(ran, "small").to_dict("records")
    assert (row["outcome"], row["error_type"]) == ("infeasible", "capacity")


def test_over_two_raylets(ran: Host) -> None:
    """A worker on each: 31 rows are 15 for each of them, and one is missing."""
    (row,) = rows(ran, "apart").to_dict("records")
    assert (row["num_nodes"], row["world_size"], row["samples_dropped"]) == (2, 2, 2)
    found = epochs(seen(ran, "ray_data-31"), 15)
    assert len(found) == 2
    assert all(len(set(epoch)) == len(epoch) == 30 for epoch in found)
