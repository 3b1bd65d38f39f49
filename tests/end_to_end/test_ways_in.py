"""Every way in on one node: nothing running, a Ray of this user's, one beside it, a stale announcement."""

import signal

import pytest

from tests.end_to_end.harness import Host, free_port, started_ray, wait_until

pytestmark = pytest.mark.ray

SWEEP = """\
name: small
base: {workload: faulty, model: {step_s: 0.02}, num_workers: 2, warmup: 1, measure: 20}
axes: {seed: [0, 1, 2, 3, 4, 5]}
"""


def test_a_stale_announcement_is_named_and_ignored(host: Host):
    """Nothing answers behind the file: a private Ray, and the first line says why."""
    stale = f"127.0.0.1:{free_port()}"
    (host.ray_folder / "ray").mkdir()
    (host.ray_folder / "ray" / "ray_current_cluster").write_text(stale)
    done = host.run_sweep(host.write("small.yaml", SWEEP))
    assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
    first_line = done.stdout.splitlines()[0]
    assert "private" in first_line
    assert stale in first_line
    assert "stale" in first_line
    assert set(host.rows()["ray_address_source"]) == {"private"}


def test_a_started_ray_is_joined_and_left_running(host: Host):
    """Two workers on two CPUs with token authentication, without an option; a killed driver's CPUs come back.

    `--local` works beside it, and `--address` joins it too.
    """
    sweep = host.write("small.yaml", SWEEP)
    with started_ray(host) as address:
        killed = host.start("run", sweep, "--out", host.out)
        wait_until(lambda: len(host.starts()) >= 3 or killed.poll() is not None, 120.0)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        joined = host.run_sweep(sweep)
        assert joined.returncode == 0, joined.stdout + joined.stderr + host.ray_log()
        assert address in joined.stdout.splitlines()[0]
        assert list(host.rows()["outcome"]) == ["ok"] * 6
        assert set(host.rows()["ray_address_source"]) == {"announced"}
        beside = host.run_sweep(sweep, "--local", "--fresh", "--only", "seed=0")
        assert beside.returncode == 0, beside.stdout + beside.stderr + host.ray_log()
        again = host.run_sweep(sweep, "--fresh", "--only", "seed=1", "--address", address)
        assert again.returncode == 0, again.stdout + again.stderr + host.ray_log()
        sources = host.rows(latest=False).groupby("ray_address_source").size().to_dict()
        assert sources["--local"] == sources["--address"] == 1


def test_an_address_without_a_ray(host: Host):
    """One line, exit 3, and no row."""
    done = host.run_sweep(host.write("small.yaml", SWEEP), "--address", f"127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "--local" in done.stderr
    assert host.committed() == []
