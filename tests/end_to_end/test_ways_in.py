"""The ways to a Ray that others use, and a private one beside it. With nothing running: see test_private_ray.py."""

import signal

import pytest

from tests.end_to_end.harness import Host, free_port, started_ray, wait_until

pytestmark = pytest.mark.ray

SWEEP = """\
name: small
base: {workload: faulty, model: {step_s: 0.02}, num_workers: 2, warmup: 1, measure: 20}
axes: {seed: [0, 1, 2, 3, 4, 5]}
"""


def test_a_started_ray_is_joined_and_left_running(host: Host):
    """Two workers on two CPUs with token authentication, without an option; a killed driver's CPUs come back.

    `--local` works beside it, at the same time.
    """
    sweep = host.write("small.yaml", SWEEP)
    with started_ray(host) as address:
        killed = host.start("run", sweep, "--out", host.out)
        wait_until(lambda: len(host.starts()) >= 3 or killed.poll() is not None, 120.0)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        beside = host.start("run", sweep, "--out", host.out, "--local", "--cluster", "beside", "--only", "seed=0")
        joined = host.run_sweep(sweep)
        assert joined.returncode == 0, joined.stdout + joined.stderr + host.ray_log()
        assert address in joined.stdout.splitlines()[0]
        out, err = beside.communicate(timeout=120)
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
