"""Signals, in a process whose main thread does not come back to Python."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, threading
from raybench.cluster import signals
signals._COMMIT_LIMIT_S = 600.0             # so that only the second signal can end a stop that hangs
def stop():
    {stop}
with signals.watching_signals() as watch:
    watch.on_stop = stop
    print("ready", flush=True)
    while True:
        ctypes.CDLL(None).sleep(1000)       # in C, as the main thread is in Ray's; a signal cuts it short
"""


def start(stop: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(stop=stop)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_commits_and_leaves(number):
    """The stop runs in its own thread and the exit code is 130."""
    process = start("print('committed', flush=True)")
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "committed\n")


def test_second_signal_leaves_at_once():
    """A commit that hangs does not hold the user."""
    process = start("print('stopping', flush=True); threading.Event().wait()")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
