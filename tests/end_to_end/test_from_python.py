"""`raybench.run` as a script calls it: rows, Tune callbacks, a quick look before the full run, and Ctrl-C."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.end_to_end.harness import LIMIT_S, Host, wait_until

pytestmark = pytest.mark.ray

SWEEP = """\
name: watched
base: {workload: faulty, num_workers: 1, warmup: 1, measure: 20}
axes:
  of: [{seed: 0, model: {step_s: 0.001}}, {seed: 1, model: {step_s: 0.002}}, {seed: 2, model: {step_s: 100.0}}]
"""
SCRIPT = """\
import json, os, sys
from ray.tune import Callback
import raybench

class Watcher(Callback):
    seen = []

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.seen.append([trial.config["trial"]["seed"], result["outcome"], result["samples_per_s"]])

before = dict(os.environ)
options = {"out": sys.argv[2], "local": True}
quick = raybench.run(sys.argv[1], quick=True, only="seed=0", progress=False, **options)
try:
    raybench.run(sys.argv[1], callbacks=[Watcher()], **options)
except KeyboardInterrupt:
    left = [name for name in os.environ if name.startswith(("RAY_T", "TUNE_")) and name not in before]
    print(json.dumps({"quick": quick["seed"].tolist(), "seen": Watcher.seen, "left": left}))
"""


@pytest.fixture(scope="module")
def told(module_host: Host) -> dict[str, Any]:
    """The script, interrupted while its third full trial runs: its last line, and what else it printed."""
    script, sweep = module_host.write("script.py", SCRIPT), module_host.write("watched.yaml", SWEEP)
    process = module_host.start_python(script, sweep, module_host.out)
    wait_until(lambda: len(module_host.starts()) == 4 or process.poll() is not None, LIMIT_S)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err + module_host.ray_log()
    *lines, last = out.splitlines()
    return {"lines": lines, **json.loads(last)}


def test_callbacks_see_config_and_headline(told: dict[str, Any], module_host: Host) -> None:
    """Of each trial that ended, the figure that its row holds."""
    rows = module_host.rows()
    full = rows[rows["quality"].eq("full") & rows["outcome"].eq("ok")].sort_values("sweep_order")
    figures = [pytest.approx(figure) for figure in full["samples_per_s"]]
    assert told["seen"] == [[seed, "ok", figure] for seed, figure in zip((0, 1), figures, strict=True)]


def test_ctrl_c_commits_the_running_trial_and_raises(told: dict[str, Any], module_host: Host) -> None:
    """What was done stays; a quick row is not taken for done, so the full run measured that trial again."""
    rows = module_host.rows()
    assert rows.groupby(["quality", "seed"])["outcome"].agg(list).to_dict() == {
        ("full", 0): ["ok"], ("full", 1): ["ok"], ("full", 2): ["interrupted"], ("quick", 0): ["ok"],
    }  # fmt: skip


def test_a_script_prints_what_a_log_does(told: dict[str, Any]) -> None:
    """Nothing of the run with `progress=False`; of the other its opening, a line a trial, and how to go on."""
    first, sweep, *trials, count, last = told["lines"]
    assert first.startswith("raybench ")
    assert "3 trials · 3 to run" in sweep
    ended = [line[:5] for line in trials if line.startswith("[")]      # a slow machine's run says that it is alive, too
    assert ended == ["[1/3]", "[2/3]"]
    assert count == "2 ok, 1 interrupted"
    assert last.startswith("interrupted; to go on:  raybench run ")


def test_nothing_is_left_behind(told: dict[str, Any]) -> None:
    """The rows of the quick look came back, and Ray's settings are as they were."""
    assert told["quick"] == [0]
    assert told["left"] == []
