"""Two runs into one folder, and a quick look before the real thing."""

import pytest

from raybench.judge.compare import compare
from tests.end_to_end.harness import Host

pytestmark = pytest.mark.ray

SWEEP = """\
name: shared
base: {workload: matmul, model: {m: 64, k: 64, n: 64}, num_workers: 1, warmup: 1, measure: 30}
axes: {seed: [0, 1, 2]}
"""


def test_two_clusters_at_the_same_time(host: Host):
    """Twice the rows, none lost; comparing pairs each config with its twin."""
    sweep = host.write("shared.yaml", SWEEP)
    runs = [host.start("run", sweep, "--out", host.out, "--local", "--cluster", name) for name in ("a", "b")]
    ended = [run.communicate(timeout=280) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    rows = host.rows()
    assert rows.groupby("cluster").size().to_dict() == {"a": 3, "b": 3}
    compared = compare(rows, by="cluster")
    assert sorted(compared["work_key"].value_counts()) == [2, 2, 2]


def test_quick_then_full_measures_again(host: Host):
    """A quick row is a look, never a result: the full run does not take it for done."""
    sweep = host.write("shared.yaml", SWEEP)
    for words in (["--quick"], []):
        done = host.run_sweep(sweep, "--local", *words)
        assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
    rows = host.rows()
    assert rows.groupby("quality").size().to_dict() == {"full": 3, "quick": 3}
    assert rows["work_key"].nunique() == 3
