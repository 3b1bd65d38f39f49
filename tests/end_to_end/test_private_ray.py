"""A private Ray, started although a stale announcement stands there; and what its memory monitor ends."""

import psutil
import pytest

from tests.end_to_end.harness import Host, free_port

pytestmark = pytest.mark.ray

SWEEP = """\
name: greedy
base: {workload: faulty, num_workers: 1, warmup: 1, measure: 10, timeout: 120}
axes: {model: [greedy, fine]}
"""


def test_greedy_trial_beside_a_stale_announcement(host: Host):
    """Nothing answers behind the file: the first line names it, and a Ray of the run's own is used.

    The monitor's threshold is the use at the start + 2 GiB; the trial takes up to 8, ends as the host's memory running
    out and not as a dead worker, and the next one is fine.
    """
    stale = f"127.0.0.1:{free_port()}"
    (host.ray_folder / "ray").mkdir()
    (host.ray_folder / "ray" / "ray_current_cluster").write_text(stale)
    memory = psutil.virtual_memory()
    threshold = (memory.total - memory.available + 2 * 2**30) / memory.total
    done = host.run_sweep(
        host.write("greedy.yaml", SWEEP),
        RAY_memory_usage_threshold=f"{threshold:.4f}",
        RAY_memory_monitor_refresh_ms="100",
    )
    first_line = done.stdout.splitlines()[0]
    assert "private" in first_line
    assert f"{stale} is stale" in first_line
    rows = host.rows().set_index("model")
    assert rows["outcome"].to_dict() == {"greedy": "oom_host", "fine": "ok"}, done.stdout + host.ray_log()
    assert rows.loc["greedy", "error_type"] == "OutOfMemoryError"
    assert set(rows["ray_address_source"]) == {"private"}
