"""Every way in on one node: nothing running, a Ray of this user's, one beside it, a stale announcement."""

import pytest

from tests.end_to_end.harness import Host, free_port, started_ray, wait_until

pytestmark = pytest.mark.ray

SWEEP = """\
name: small
base: {workload: matmul, model: {m: 64, k: 64, n: 64}, num_workers: 2, warmup: 1, measure: 10}
"""


def test_nothing_runs_then_a_stale_announcement(host: Host):
    """A private Ray without an option; a file that nothing answers behind is named and ignored."""
    sweep = host.write("small.yaml", SWEEP)
    first = host.run_sweep(sweep)
    assert first.returncode == 0, first.stdout + first.stderr + host.ray_log()
    assert "private" in first.stdout.splitlines()[0]
    stale = f"127.0.0.1:{free_port()}"
    (host.ray_folder / "ray").mkdir(exist_ok=True)
    (host.ray_folder / "ray" / "ray_current_cluster").write_text(stale)
    second = host.run_sweep(sweep, "--fresh")
    assert second.returncode == 0, second.stdout + second.stderr + host.ray_log()
    assert stale in second.stdout.splitlines()[0]
    assert "stale" in second.stdout.splitlines()[0]
    assert list(host.rows()["ray_address_source"]) == ["private"]


def test_a_started_ray_is_joined_and_left_running(host: Host):
    """Two workers on a Ray of two CPUs with token authentication; `--local` works beside it."""
    sweep = host.write("small.yaml", SWEEP)
    with started_ray(host) as address:
        joined = host.run_sweep(sweep)
        assert joined.returncode == 0, joined.stdout + joined.stderr + host.ray_log()
        assert address in joined.stdout.splitlines()[0]
        assert list(host.rows()["ray_address_source"]) == ["announced"]
        beside = host.run_sweep(sweep, "--local", "--fresh")
        assert beside.returncode == 0, beside.stdout + beside.stderr + host.ray_log()
        assert list(host.rows()["ray_address_source"]) == ["--local"]
        again = host.run_sweep(sweep, "--fresh", "--address", address)
        assert again.returncode == 0, again.stdout + again.stderr + host.ray_log()
        assert list(host.rows()["ray_address_source"]) == ["--address"]
    wait_until(lambda: not host.processes(), 60.0)


def test_an_address_without_a_ray(host: Host):
    """One line, exit 3, and no row."""
    done = host.run_sweep(host.write("small.yaml", SWEEP), "--address", f"127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "--local" in done.stderr
    assert host.committed() == []
