"""What a trial costs besides its work: a warm group against one `TorchTrainer` per trial, in one run."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from raybench import run
from tests.bench.promise import Promise, at_most

SWEEP = """\
name: overhead-{isolation}
isolation: {isolation}
base: {{workload: encdec, model: 3.5m, seq_len: 64, micro_batch: 4, num_workers: 1, warmup: 2, measure: 10}}
axes: {{seed: [{seeds}]}}
"""
WARM_TRIALS, FRESH_TRIALS = 20, 5


def measure() -> list[Promise]:
    """Median overhead of 20 warm trials without the first, and of 5 trials in processes of their own."""
    warm = _overheads("warm", WARM_TRIALS)[1:]
    fresh = _overheads("fresh", FRESH_TRIALS)
    ratio = statistics.median(fresh) / statistics.median(warm)
    return [
        at_most(f"overhead of a warm trial (median of {len(warm)})", statistics.median(warm), 0.5, "s"),
        Promise(
            f"one TorchTrainer per trial (median of {len(fresh)}: {statistics.median(fresh):.1f} s) over a warm one",
            f"{ratio:.0f}x",
            "at least 20x",
            ratio >= 20,
        ),
    ]


def _overheads(isolation: str, trials: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        sweep = Path(folder) / "sweep.yaml"
        sweep.write_text(SWEEP.format(isolation=isolation, seeds=", ".join(map(str, range(trials)))))
        rows = run(sweep, out=Path(folder) / "out", local=True, progress=False)
    assert list(rows["outcome"]) == ["ok"] * trials, rows[["outcome", "error_text"]]
    return [float(value) for value in rows["overhead_s"]]
