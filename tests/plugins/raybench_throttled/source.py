"""The batches of the null source, each after a sleep."""

import time

import torch

from raybench.sources.device import DeviceBatches
from raybench.sources.index import Share
from raybench.sources.layout import sample_of
from raybench.spec.config import TrialConfig
from raybench.spec.samples import Batch

SLEPT_S: list[float] = []
"""How long each sleep of this process really was: a busy machine wakes nobody in time."""
PREPARED: list[str] = []


class Throttled:
    """Sleeps, then hands out."""

    def __init__(self, batches: DeviceBatches, sleep_s: float) -> None:
        self._batches, self._sleep_s = batches, sleep_s

    def __next__(self) -> Batch:
        began = time.perf_counter()
        if self._sleep_s:
            time.sleep(self._sleep_s)
        SLEPT_S.append(time.perf_counter() - began)
        return next(self._batches)

    def cpu_s(self) -> float:
        """It computes nothing."""
        return 0.0

    def close(self) -> None:
        self._batches.close()


def prepare(config: TrialConfig) -> None:
    """There is nothing to prepare; that it was asked for is noted."""
    PREPARED.append(config.config_key())


def open_source(config: TrialConfig, share: Share, device: torch.device) -> Throttled:
    """One rank's batches."""
    assert config.source is not None
    assert config.source.options is not None
    batches = DeviceBatches(share, config.seed, sample_of(config), device)
    return Throttled(batches, config.source.options["sleep_ms"] / 1e3)
