"""Sweeps that results decide, through the real command: out of memory as an answer, sizes found, stages.

The workload raises torch's error above a size, as a GPU that is full does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from tests.end_to_end.harness import Host, new_host, started_ray

pytestmark = pytest.mark.ray

FIVE_SIZES = """\
name: five-sizes
question: What fits at context 2048? The largest runs out of memory at 64, so 512 is not tried.
skip_larger_after_oom: true
base: {workload: faulty, seq_len: 2048, num_workers: 1, warmup: 1, measure: 10, timeout: 60, device: cpu}
axes:
  size: [{model: {fits: 5000000}}, {model: {fits: 4000000}}, {model: {fits: 3000000}}, {model: {fits: 2000000}},
         {model: {fits: 100000}}]
  micro_batch: [4, 64, 512]
"""
SEARCH = """\
name: search
base: {workload: faulty, model: {fits: 4}, num_workers: 1, warmup: 1, measure: 10, timeout: 60, device: cpu}
stages:
  - {micro_batch: auto, max_micro_batch: 8, memory_share: 1.0, axes: {model.step_s: [0.02]}}
  - axes: {model.step_s: [0.02, 0.005]}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host on which both sweeps have run; the search was stopped by nothing, and is asked for once more."""
    with new_host(tmp_path_factory.mktemp("search")) as made, started_ray(made):
        made.memory = made.run_sweep(  # type: ignore[attr-defined]
            made.write("five.yaml", FIVE_SIZES), "--accept", "oom_cuda"
        )
        search = made.write("search.yaml", SEARCH)
        made.search = made.run_sweep(search)  # type: ignore[attr-defined]
        made.again = made.run_sweep(search)  # type: ignore[attr-defined]
        yield made


@pytest.fixture(scope="module")
def rows(host: Host) -> pd.DataFrame:
    """Every row, in the order in which the attempts started."""
    return host.rows(latest=False).sort_values("started_at", ignore_index=True)


def test_what_does_not_fit_is_an_answer(host, rows):
    """13 figures, one oom_cuda, one skipped that names it; with --accept oom_cuda that is a good end."""
    mine = rows[rows["sweep"] == "five-sizes"]
    assert list(mine["outcome"]) == ["ok"] * 13 + ["oom_cuda", "skipped"]
    assert mine["samples_per_s"].notna().sum() == 13
    full, skipped = mine.iloc[13], mine.iloc[14]
    assert (full["micro_batch"], skipped["micro_batch"], skipped["error_type"]) == (64, 512, "dominated")
    assert full["trial_id"] in skipped["error_text"]
    assert "micro_batch 512 > 64" in skipped["error_text"]
    assert host.memory.returncode == 0, host.memory.stdout
    assert "13 ok, 1 oom_cuda, 1 skipped" in host.memory.stdout


def test_the_micro_batch_is_found_and_the_stages_go_on_from_it(host, rows):
    """1, 2 and 4 fit, 8 raises; the second stage measures 5 ms a step at 4, and the end says what it brought."""
    mine = rows[rows["sweep"] == "search"]
    tried = list(zip(mine["quality"], mine["micro_batch"], mine["outcome"], strict=True))
    assert tried == [
        ("probe", 1, "ok"), ("probe", 2, "ok"), ("probe", 4, "ok"), ("probe", 8, "oom_cuda"), ("full", 4, "ok"),
        ("full", 4, "ok"),
    ]  # fmt: skip
    assert not mine.loc[mine["quality"] == "probe", "valid"].any()
    assert mine["memory_room_bytes"].gt(mine["peak_host_memory_bytes"].max()).all()
    assert host.search.returncode == 0, host.search.stdout
    assert "stage 2 of 2" in host.search.stdout
    assert f"({mine['trial_id'].iloc[-1]})" in host.search.stdout


def test_a_finished_search_runs_nothing_again(host, rows):
    """Its probes and stages are read from the rows."""
    assert host.again.returncode == 0
    assert "2 done earlier · 0 to run" in host.again.stdout
    assert "stage 2 of 2" in host.again.stdout
