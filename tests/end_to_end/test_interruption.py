"""Kills and signals at random moments: nothing committed is lost, and the same command finishes the sweep."""

import random
import signal
import subprocess
import time
from collections import Counter

import pytest

from raybench.results.load import load
from tests.end_to_end.harness import RAY_GONE_LIMIT_S, Host, started_ray, wait_until

pytestmark = pytest.mark.ray

TRIALS = 12
SWEEP = """\
name: interrupted
base: {workload: faulty, model: {step_s: 0.02}, num_workers: 1, warmup: 1, measure: 20}
axes: {seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}
"""
LEAVE_LIMIT_S = 2.5


def kill_and_finish(host: Host, kills: int, seed: int, *options: str) -> None:
    """SIGKILL the driver `kills` times at random moments of its life, then let it finish; check every promise."""
    moments = random.Random(seed)
    sweep = host.write("interrupted.yaml", SWEEP)
    delivered = 0
    while delivered < kills:
        process = host.start("run", sweep, "--out", host.out, *options)
        try:
            process.wait(moments.uniform(0.5, 15.0))      # the moment itself is what is random here
        except subprocess.TimeoutExpired:
            delivered += 1
        process.kill()
        process.communicate()
        if len(host.committed()) == TRIALS:
            host.forget()
    done = host.run("run", sweep, "--out", host.out, *options)
    assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
    rows = load(host.out, strict=True)      # every file is readable
    assert Counter(rows["outcome"]) == {"ok": TRIALS}
    assert len(load(host.out, latest=False)) == TRIALS      # no committed trial ran twice
    assert len(host.starts()) <= TRIALS + delivered


def test_killed_driver(host: Host):
    """Three kills here, twenty in `make soak`."""
    kill_and_finish(host, 3, 20261121, "--local")


@pytest.mark.soak
def test_killed_driver_twenty_times(host: Host):
    """The full count, on a sweep started anew whenever it gets to its end."""
    kill_and_finish(host, 20, 1, "--local")


def test_killed_driver_frees_a_joined_ray(host: Host):
    """On a Ray that others use, the dead driver's CPUs come back, and the rest of the sweep runs there."""
    with started_ray(host) as address:
        sweep = host.write("interrupted.yaml", SWEEP)
        process = host.start("run", sweep, "--out", host.out)
        wait_until(lambda: len(host.starts()) >= 3, 120.0)
        process.kill()
        process.communicate()
        done = host.run("run", sweep, "--out", host.out)
        assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
        assert address in done.stdout
    assert Counter(host.rows()["outcome"]) == {"ok": TRIALS}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal(host: Host, number: signal.Signals):
    """Once the third trial has started: it ends `interrupted`, the first two stay, Ray is gone, and it can go on."""
    sweep = host.write("interrupted.yaml", SWEEP)
    process = host.start("run", sweep, "--out", host.out, "--local")
    wait_until(lambda: len(host.starts()) >= 3, 120.0)
    process.send_signal(number)
    sent_s = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - sent_s <= LEAVE_LIMIT_S
    assert process.returncode == 130, out + err
    assert "raybench run" in out
    outcomes = Counter(host.rows()["outcome"])
    assert outcomes["ok"] >= 2
    assert outcomes["interrupted"] == len(host.starts()) - outcomes["ok"]
    wait_until(lambda: not host.processes(), RAY_GONE_LIMIT_S)
    done = host.run("run", sweep, "--out", host.out, "--local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert Counter(host.rows()["outcome"]) == {"ok": TRIALS}


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_at_ten_random_moments(host: Host, number: signal.Signals):
    """From the first printed line on, at any moment: gone within 2.5 s, 130, nothing committed lost."""
    moments = random.Random(int(number))
    sweep = host.write("interrupted.yaml", SWEEP)
    for _ in range(10):
        process = host.start("run", sweep, "--out", host.out, "--local", "--fresh")
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            process.wait(moments.uniform(0.0, 12.0))
        except subprocess.TimeoutExpired:
            committed = set(host.committed())
            process.send_signal(number)
            sent_s = time.monotonic()
            out, err = process.communicate(timeout=60)
            assert time.monotonic() - sent_s <= LEAVE_LIMIT_S
            assert process.returncode == 130, out + err
            assert committed <= set(host.committed())
        wait_until(lambda: not host.processes(), RAY_GONE_LIMIT_S)
