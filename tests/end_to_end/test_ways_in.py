"""The ways to a Ray: one that was started, a private one beside it, none, and a stale announcement.

With nothing at all: see test_quick.py.
"""

import signal

import psutil
import pytest

from tests.end_to_end.harness import LIMIT_S, Host, free_port, started_ray, wait_until

pytestmark = pytest.mark.ray

SWEEP = """\
name: small
base: {workload: faulty, model: {step_s: 0.02}, num_workers: 2, warmup: 1, measure: 20}
axes: {seed: [0, 1, 2, 3, 4, 5]}
"""
GREEDY = """\
name: greedy
base: {workload: faulty, num_workers: 1, warmup: 1, measure: 10, timeout: 120}
axes: {model: [greedy, fine]}
"""


def test_a_started_ray_is_joined_and_left_running(host: Host):
    """Two workers on two CPUs with token authentication, without an option; a killed driver's CPUs come back.

    `--local` works beside it, at the same time.
    """
    sweep = host.write("small.yaml", SWEEP)
    with started_ray(host) as address:
        killed = host.start("run", sweep, "--out", host.out)
        wait_until(lambda: len(host.starts()) >= 3 or killed.poll() is not None, LIMIT_S)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        beside = host.start("run", sweep, "--out", host.out, "--local", "--cluster", "beside", "--only", "seed=0")
        joined = host.run_sweep(sweep)
        assert joined.returncode == 0, joined.stdout + joined.stderr + host.ray_log()
        assert address in joined.stdout.splitlines()[0]
        out, err = beside.communicate(timeout=LIMIT_S)
        assert beside.returncode == 0, out + err
    rows = host.rows()
    assert list(rows["outcome"]) == ["ok"] * 7
    assert rows.groupby("ray_address_source").size().to_dict() == {"announced": 6, "--local": 1}


def test_an_address_without_a_ray(host: Host):
    """One line, exit 3, and no row."""
    done = host.run_sweep(host.write("small.yaml", SWEEP), "--address", f"127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "--local" in done.stderr
    assert host.committed() == []


@pytest.mark.alone
def test_greedy_trial_beside_a_stale_announcement(host: Host):
    """Nothing answers behind the file: the first line names it, and a Ray of the run's own is used.

    The monitor's threshold is the use at the start + 2 GiB; the trial takes up to 8, ends as the host's memory running
    out and not as a dead worker, and the next one is fine. Alone: memory that others take counts as the trial's.
    """
    stale = f"127.0.0.1:{free_port()}"
    (host.ray_folder / "ray").mkdir()
    (host.ray_folder / "ray" / "ray_current_cluster").write_text(stale)
    memory = psutil.virtual_memory()
    threshold = (memory.total - memory.available + 2 * 2**30) / memory.total
    done = host.run_sweep(
        host.write("greedy.yaml", GREEDY),
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
