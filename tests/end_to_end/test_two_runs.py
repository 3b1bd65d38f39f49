"""A quick look, then two runs into one folder at the same time."""

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
    """Twice the rows, none lost; comparing pairs each config with its twin; a quick row is not taken for done."""
    sweep = host.write("shared.yaml", SWEEP)
    quick = host.run_sweep(sweep, "--local", "--cluster", "a", "--quick")
    assert quick.returncode == 0, quick.stdout + quick.stderr + host.ray_log()
    runs = [host.start("run", sweep, "--out", host.out, "--local", "--cluster", name) for name in ("a", "b")]
    ended = [run.communicate(timeout=280) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    rows = host.rows()
    assert rows.groupby(["cluster", "quality"]).size().to_dict() == {
        ("a", "full"): 3,
        ("a", "quick"): 3,
        ("b", "full"): 3,
    }
    full = rows[rows["quality"] == "full"]
    compared = compare(full, by="cluster")
    assert sorted(full["work_key"].value_counts()) == [2, 2, 2]
    ratios = compared.set_index("cluster")["ratio"]
    assert list(ratios["a"]) == [1.0, 1.0, 1.0]
    assert (ratios["b"] > 0).all()
    assert len(ratios["b"]) == 3
