"""Two runs into one folder at the same time. A quick look before a full run: see test_from_python.py."""

import pytest

from raybench.judge.compare import compare
from tests.end_to_end.harness import LIMIT_S, Host

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
    ended = [run.communicate(timeout=LIMIT_S) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    rows = host.rows()
    assert rows.groupby("cluster").size().to_dict() == {"a": 3, "b": 3}
    compared = compare(rows, by="cluster")
    assert sorted(rows["work_key"].value_counts()) == [2, 2, 2]
    ratios = compared.set_index("cluster")["ratio"]
    assert list(ratios["a"]) == [1.0, 1.0, 1.0]
    assert (ratios["b"] > 0).all()
    assert len(ratios["b"]) == 3
