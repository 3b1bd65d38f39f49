"""How long the commands take that a person waits for, best of five whole processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from raybench.results.layout import LAYOUT, RunFiles
from raybench.results.schema import from_records
from tests.bench.promise import Promise, at_most
from tests.factories import make_config, make_trial

BIG_SWEEP = f"""\
name: big
base: {{workload: encdec, model: 3.5m, micro_batch: 4}}
axes:
  seq_len: [16, 32, 48, 64, 80, 96, 112, 128, 144, 160]
  precision: [fp32, bf16]
  phase: [forward, train]
  num_workers: [1, 2, 4, 8, 16]
  seed: {list(range(50))}
"""                          # 10 x 2 x 2 x 5 x 50 = 10 000
CLUSTERS, CONFIGS = ("a", "b"), 5_000
SEGMENT_ROWS = 64
RUNS = 5


def measure() -> list[Promise]:
    """`--help`, `plan` over 10 000 configs, `compare` over 10 000 rows of two clusters."""
    with tempfile.TemporaryDirectory() as folder:
        sweep, out = Path(folder) / "big.yaml", Path(folder) / "out"
        sweep.write_text(BIG_SWEEP)
        _write_rows(out)
        return [
            at_most("raybench --help (best of 5)", _best_s("--help"), 0.5, "s"),
            at_most("raybench plan, 10 000 configs (best of 5)", _best_s("plan", str(sweep)), 2.0, "s"),
            at_most("raybench compare, 10 000 rows (best of 5)", _best_s("compare", str(out)), 3.0, "s"),
        ]


def _write_rows(out: Path) -> None:
    """Files as a run leaves them, 64 rows each, without the commits between."""
    for cluster in CLUSTERS:
        trials = [
            replace(make_trial(make_config(seed=seed), cluster=cluster), sweep_order=seed) for seed in range(CONFIGS)
        ]
        files = RunFiles(out / LAYOUT, trials[0].sweep, f"20260301T120000Z-{cluster * 8}")
        table = from_records("trials", trials)
        files.segment("trials", 0).parent.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, CONFIGS, SEGMENT_ROWS)):
            part: pa.Table = table.slice(start, SEGMENT_ROWS)
            pq.write_table(part, files.segment("trials", number))


def _best_s(*words: str) -> float:
    return min(_one_s(words) for _ in range(RUNS))


def _one_s(words: tuple[str, ...]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "raybench", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
