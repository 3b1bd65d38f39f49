"""Ray's memory monitor ends a greedy worker; the row says that the host's memory ran out, not that a worker died."""

import psutil
import pytest

from tests.end_to_end.harness import Host

pytestmark = pytest.mark.ray

SWEEP = """\
name: greedy
base: {workload: faulty, num_workers: 1, warmup: 1, measure: 10, timeout: 120}
axes: {model: [greedy, fine]}
"""


def test_greedy_trial_is_out_of_host_memory(host: Host):
    """The threshold is the use at the start + 2 GiB; the trial takes up to 8, and the next one is fine."""
    memory = psutil.virtual_memory()
    threshold = (memory.total - memory.available + 2 * 2**30) / memory.total
    done = host.run_sweep(
        host.write("greedy.yaml", SWEEP), "--local",
        RAY_memory_usage_threshold=f"{threshold:.4f}", RAY_memory_monitor_refresh_ms="100",
    )  # fmt: skip
    rows = host.rows().set_index("model")
    assert rows["outcome"].to_dict() == {"greedy": "oom_host", "fine": "ok"}, done.stdout + host.ray_log()
    assert rows.loc["greedy", "error_type"] == "OutOfMemoryError"
