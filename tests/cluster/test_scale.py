"""Many workers in a group, many trials in a run: neither memory nor overhead creeps up."""

from __future__ import annotations

import json
import secrets
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.harness import Host, new_host

pytestmark = [pytest.mark.ray, pytest.mark.soak, pytest.mark.timeout(3600)]

LIMIT_S = 3500.0
SETTLED = 100      # trials after which modules are imported and buffers have their size
SWEEP = """\
name: many
isolation: warm
base: {{workload: matmul, model: {{m: 64, k: 64, n: 64}}, warmup: 1, measure: 10}}
axes: {{num_workers: [1, 2], seed: [{seeds}]}}
include: [{{workload: matmul, model: {{m: 64, k: 64, n: 64}}, num_workers: 16, warmup: 1, measure: 10}}]
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What was noted of 1 000 trials in two warm groups and one of 16 workers, on eight raylets."""
    with new_host(tmp_path_factory.mktemp("scale")) as host:
        yield ran(host, trials=1000)


def ran(host: Host, trials: int) -> list[dict[str, Any]]:
    """Run the sweep in a process of its own, with a token as any cluster has one."""
    token = Path(host.env["HOME"]) / ".ray" / "auth_token"
    token.parent.mkdir(mode=0o700)
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    sweep = host.write("many.yaml", SWEEP.format(seeds=", ".join(map(str, range(trials // 2)))))
    report = host.folder / "report.json"
    process = host.start_python("-m", "tests.cluster.many_trials", sweep, host.out, report, RAY_AUTH_MODE="token")
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out[-3000:] + err[-3000:] + host.ray_log()
    found: list[dict[str, Any]] = json.loads(report.read_text())
    return found


def test_sixteen_workers_in_one_group(notes: list[dict[str, Any]]):
    """Over eight raylets, two on each."""
    (wide,) = [note for note in notes if note["num_workers"] == 16]
    assert (wide["outcome"], wide["num_nodes"]) == ("ok", 8), wide["error_text"]


def test_a_thousand_trials(notes: list[dict[str, Any]]):
    """The driver grows by at most 0.1 MB a trial; the second half's median overhead is at most 1.1 times the first."""
    many = [note for note in notes if note["num_workers"] < 16]
    assert [note["outcome"] for note in many] == ["ok"] * 1000
    assert {note["group_trial_index"] for note in many} == set(range(500))
    grown = (many[-1]["rss_bytes"] - many[SETTLED]["rss_bytes"]) / (len(many) - SETTLED) / 1e6
    print(f"\ndriver: {many[-1]['rss_bytes'] / 1e6:.0f} MB at the end, {grown:.4f} MB a trial")
    for workers in (1, 2):
        overheads = [note["overhead_s"] for note in many if note["num_workers"] == workers][1:]
        first, second = (statistics.median(half) for half in (overheads[:250], overheads[250:]))
        told = f"{1e3 * first:.1f} ms, then {1e3 * second:.1f} ms: {second / first:.3f}x"
        print(f"{workers} workers: median overhead {told}")
        assert second <= 1.1 * first
    assert grown <= 0.1
