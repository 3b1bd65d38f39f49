"""How fast `ray_data` hands out batches, against Ray's own `iter_torch_batches` loop over the same Parquet.

Both arms go three times over the data set from a standing start, in the same worker process, with the same read tasks,
and give int64 tokens, which is what a network takes. Ours then has a fourth pass begun, as in the middle of a trial.
The fastest run of each arm counts, as for the other sources; the interval over all runs stands beside it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from raybench.cluster.ray_data import streamed
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.spec.config import Source, TrialConfig
from tests.bench.promise import Promise, speed_of
from tests.factories import make_config

MICRO_BATCH, SEQ_LEN, BATCHES, SHARDS = 128, 256, 256, 8        # 32 768 pairs of 2 x 256 tokens of 16 bits: 34 MB
EPOCHS, BLOCKS = 3, 5
LEAST = 0.95
CPUS = 6
"""Logical ones, and so many processes of Ray's idle without being ended: starting them anew is not what is measured."""


def measure() -> list[Promise]:
    """Blocks of ours, Ray's, Ray's, ours, after one of each that is not counted."""
    import ray

    with tempfile.TemporaryDirectory() as root, _private_ray():
        config = make_config(num_workers=1, micro_batch=MICRO_BATCH, seq_len=SEQ_LEN, source=Source(
            name="ray_data", num_samples=MICRO_BATCH * BATCHES, num_shards=SHARDS, data_dir=root,
        ))  # fmt: skip
        prepare(config)
        worker = ray.remote(num_cpus=1)(_Worker).remote()
        node_ids = [ray.get_runtime_context().get_node_id()]

        def seconds(arm: str) -> float:
            with streamed(config, node_ids) as streams:
                return float(ray.get(getattr(worker, arm).remote([streams], config)))

        seconds("ours"), seconds("rays")
        blocks = [tuple(map(seconds, ("ours", "rays", "rays", "ours"))) for _ in range(BLOCKS)]
    return [_promise(blocks)]


def _promise(blocks: list[tuple[float, ...]]) -> Promise:
    speed = speed_of(blocks, "runs")
    what = f"ray_data: batches over Ray's own loop, fastest of {2 * BLOCKS} runs each"
    return Promise(
        what, speed.words, f"at least {LEAST}, and not surely below 1",
        speed.fastest >= LEAST and speed.all_runs.high >= 1.0,
    )  # fmt: skip


class _Worker:
    """A process that takes batches. `streams` stands in a list, so that Ray does not fetch what it refers to."""

    def ours(self, streams: list[Any], config: TrialConfig) -> float:
        """As a trial takes them."""
        import ray

        (mine,) = ray.get(streams[0])
        started = time.perf_counter()
        batches = open_source(config, 0, 1, torch.device("cpu"), mine)
        for _ in range(EPOCHS * BATCHES):
            next(batches)
        took = time.perf_counter() - started
        batches.close()
        return took

    def rays(self, streams: list[Any], config: TrialConfig) -> float:
        """As Ray's guides write it."""
        import ray

        assert config.source is not None
        ((mine, _),) = ray.get(streams[0])
        started, count = time.perf_counter(), 0
        for _ in range(EPOCHS):
            for batch in mine.iter_torch_batches(batch_size=MICRO_BATCH, prefetch_batches=config.source.prefetch):
                batch["tokens"].to(torch.int64)
                count += 1
        assert count == EPOCHS * BATCHES
        return time.perf_counter() - started


@contextmanager
def _private_ray() -> Iterator[None]:
    import ray

    ray.init(address="local", num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()
