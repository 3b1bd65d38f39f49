"""Kills and signals at random moments: nothing committed is lost, and the same command finishes the sweep."""

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from raybench.results.load import load
from tests.end_to_end.harness import LIMIT_S, RAY_GONE_LIMIT_S, Host, wait_until

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
            process.wait(moments.uniform(0.5, 15.0))  # the moment itself is what is random here
        except subprocess.TimeoutExpired:
            delivered += 1
        process.kill()
        process.communicate()
        if len(host.committed()) == TRIALS:
            host.forget()
    done = host.run("run", sweep, "--out", host.out, *options)
    assert done.returncode == 0, done.stdout + done.stderr + host.ray_log()
    rows = load(host.out, strict=True)  # every file is readable
    assert Counter(rows["outcome"]) == {"ok": TRIALS}
    assert len(load(host.out, latest=False)) == TRIALS  # no committed trial ran twice
    assert len(host.starts()) <= TRIALS + delivered


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_driver_twenty_times(host: Host):
    """The full count, on a sweep started anew whenever it gets to its end."""
    kill_and_finish(host, 20, 1, "--local")


class Leaving:
    """Watches a host's processes end, while other tests go on."""

    def __init__(self, host: Host) -> None:
        self.took_s: float | None = None      # None while, or because, some are left
        self._thread = threading.Thread(target=self._watch, args=(host,), daemon=True)
        self._thread.start()

    def _watch(self, host: Host) -> None:
        started_s = time.monotonic()
        while host.processes():
            if time.monotonic() - started_s > 2 * RAY_GONE_LIMIT_S:
                return
            time.sleep(0.5)
        self.took_s = time.monotonic() - started_s

    def wait(self) -> float | None:
        self._thread.join()
        return self.took_s


@pytest.fixture(scope="module")
def leaving(module_host: Host) -> list[Leaving]:
    """Of runs that were interrupted in an earlier test."""
    return []


def test_signals(module_host: Host, host: Host, leaving: list[Leaving]):
    """SIGINT to one run and SIGTERM to another once their third trial has started, side by side.

    The running trial ends `interrupted`, the first two stay, the driver is gone in time, Ray soon after, and the same
    command finishes the sweep.
    """
    with ThreadPoolExecutor(2) as both:      # each is stopped when it is there, whatever the other does
        list(both.map(stopped_in_its_third_trial, (module_host, host), (signal.SIGINT, signal.SIGTERM)))
    leaving.append(Leaving(module_host))
    done = host.run("run", host.folder / "interrupted.yaml", "--out", host.out, "--local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert Counter(host.rows()["outcome"]) == {"ok": TRIALS}


def test_killed_driver(host: Host):
    """Three kills here, twenty in `make soak`."""
    kill_and_finish(host, 3, 20261121, "--local")


def test_rays_processes_leave_after_a_signal(leaving: list[Leaving]):
    """All that the interrupted run had started, two agents last; by now they have had most of their time."""
    if not leaving:
        pytest.skip("no run was interrupted before")
    took_s = leaving[0].wait()
    assert took_s is not None
    assert took_s <= RAY_GONE_LIMIT_S


def stopped_in_its_third_trial(host: Host, number: signal.Signals) -> None:
    """Start the sweep, stop it, and look at what is committed."""
    process = start(host)
    wait_until(lambda: len(host.starts()) >= 3 or process.poll() is not None, LIMIT_S)
    stopped(process, number)
    outcomes = Counter(host.rows()["outcome"])
    assert outcomes["ok"] >= 2
    assert outcomes["interrupted"] == len(host.starts()) - outcomes["ok"]


def start(host: Host, *options: str) -> subprocess.Popen[str]:
    """The sweep as a process, to be interrupted."""
    sweep = host.write("interrupted.yaml", SWEEP)
    return host.start("run", sweep, "--out", host.out, "--local", *options)


def stopped(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal; the driver leaves in time, with 130, and says how to continue."""
    process.send_signal(number)
    sent_s = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - sent_s <= LEAVE_LIMIT_S
    assert process.returncode == 130, out + err
    assert "raybench run" in out


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_at_ten_random_moments(host: Host, number: signal.Signals):
    """From the first printed line on, at any moment: gone within 2.5 s, 130, nothing committed lost."""
    moments = random.Random(int(number))
    for _ in range(10):
        process = start(host, "--fresh")
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            process.wait(moments.uniform(0.0, 12.0))
        except subprocess.TimeoutExpired:
            committed = set(host.committed())
            stopped(process, number)
            assert committed <= set(host.committed())
        wait_until(lambda: not host.processes(), RAY_GONE_LIMIT_S)
