"""From Python: a Tune callback sees each trial's config and headline, and `run` returns the rows."""

import os

import pytest
from ray.tune import Callback

import raybench

pytestmark = pytest.mark.ray

SWEEP = """\
name: watched
base: {workload: matmul, model: {m: 64, k: 64, n: 64}, num_workers: 1, warmup: 1, measure: 30}
axes: {seed: [0, 1]}
"""


class Watcher(Callback):
    """Notes what Tune hands over at each result."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, float]] = []

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.seen.append((trial.config["trial"]["seed"], result["outcome"], result["samples_per_s"]))


@pytest.mark.filterwarnings("default")  # Ray's own warnings are not ours to fail on
def test_callback_sees_config_and_headline(tmp_path, monkeypatch):
    """The same figure that the row holds."""
    monkeypatch.setenv("HOME", str(tmp_path))
    sweep = tmp_path / "watched.yaml"
    sweep.write_text(SWEEP)
    watcher, before = Watcher(), dict(os.environ)
    rows = raybench.run(sweep, out=tmp_path / "out", local=True, callbacks=[watcher], only="seed=0,1")
    headlines = dict(zip((0, 1), rows["samples_per_s"], strict=True))
    assert watcher.seen == [(seed, "ok", pytest.approx(headlines[seed])) for seed in (0, 1)]
    assert {name for name in os.environ if name.startswith("RAY_T")} <= set(before)
