"""The same training step in a bare loop in a plain process: no Ray, no raybench engine. A child of step_time.py.

Reads a number of steps per line on stdin, answers with the median step time in ms.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np
import torch

from raybench.sources.layout import sample_of
from raybench.sources.tokens import tokens
from raybench.spec.config import TrialConfig
from raybench.workloads.encdec.model import build
from tests.bench.work import bench_config


def main() -> None:
    """Build once, then time a block of steps whenever asked."""
    step = _step(bench_config())
    for _ in range(5):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_median_ms(step, int(line))), flush=True)


def _step(config: TrialConfig):
    torch.manual_seed(config.seed)
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.optimizer.lr)
    data = torch.from_numpy(tokens(config.seed, np.arange(config.micro_batch), sample_of(config)))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(data).backward()
        optimizer.step()

    return step


def _median_ms(step, count: int) -> float:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        step()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
