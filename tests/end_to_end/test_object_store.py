"""A run into S3, from its first row to reading it back, with the store away when it is told to stop."""

import json
import signal
import time
from collections import Counter

import pytest

from raybench.results.load import load
from tests.end_to_end.harness import LIMIT_S, Host, wait_until
from tests.results.s3 import CREDENTIALS, started_s3

pytestmark = pytest.mark.ray

TRIALS = 6
SWEEP = """\
name: far
base: {workload: faulty, model: {step_s: 0.02}, num_workers: 1, warmup: 1, measure: 20}
axes: {seed: [0, 1, 2, 3, 4, 5]}
"""
LEAVE_LIMIT_S = 2.5


def test_a_run_into_s3(host: Host, monkeypatch: pytest.MonkeyPatch):
    """Interrupted while the server answers nothing: gone in time, rows wait in the spool. The same command goes on."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    spools = host.folder / "spool"
    host.env |= CREDENTIALS | {"RAYBENCH_SPOOL_DIR": str(spools)}

    def starts() -> int:
        logs = spools.glob("*/*/raybench-v1/_meta/*/*/log.jsonl")
        return sum(json.loads(line)["event"] == "start" for log in logs for line in log.read_text().splitlines())

    with started_s3(host.folder) as s3:
        uri = s3.uri("results")
        words = ("run", host.write("far.yaml", SWEEP), "--out", uri, "--local")
        process = host.start(*words)
        wait_until(lambda: starts() >= 3 or process.poll() is not None, LIMIT_S)
        s3.stop()
        process.send_signal(signal.SIGINT)
        sent_s = time.monotonic()
        out, err = process.communicate(timeout=60)
        took_s = time.monotonic() - sent_s
        s3.go_on()
        assert process.returncode == 130, out + err
        assert took_s <= LEAVE_LIMIT_S
        assert f"rows wait in {spools}" in out
        assert f"--out '{uri}'" in out
        before = Counter(load(uri, strict=True)["outcome"])
        assert before["ok"] >= 2

        done = host.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "which had waited on this machine, were put into s3://bucket/results" in done.stdout
        rows = load(uri, latest=False, strict=True)
        assert Counter(load(uri)["outcome"]) == {"ok": TRIALS}
        assert Counter(rows["outcome"])["ok"] == TRIALS      # none ran twice
        assert "interrupted" in set(rows["outcome"])
        assert list(spools.rglob("*.parquet")) == []
        assert f"raybench compare '{uri}'" in done.stdout or f"raybench show '{uri}'" in done.stdout
