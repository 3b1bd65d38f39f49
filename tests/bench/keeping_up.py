"""What a source that can keep up adds to the step: `shards` and `tokens` from the page cache over `device`.

One process, one thread for computing; trials A B B A, the median step of each. The A/A ratio of the same run, the first
over the second trial of `device`, says what the machine's own noise is.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable

import torch

from raybench.engine.place import Place
from raybench.engine.session import Session
from raybench.measure.statistics import Interval, paired_ratio_interval
from raybench.sources.prepare import prepare
from raybench.spec.config import Extent, Source, TrialConfig
from tests.bench.promise import Promise
from tests.bench.work import bench_config

BLOCKS, STEPS, WARMUP = 10, 30, 5
MOST = 1.05


def measure() -> list[Promise]:
    """10 blocks of source, device, device, source for each."""
    torch.set_num_threads(1)
    session = Session(Place(0, 1, 0, "cpu", host="here", node_key="0123456789abcdef"))
    device = bench_config().model_copy(update={"measure": Extent(steps=STEPS), "warmup": Extent(steps=WARMUP)})
    with tempfile.TemporaryDirectory() as root:
        return [_over_device(session, device, _reading(device, name, root)) for name in ("shards", "tokens")]


def _reading(device: TrialConfig, name: str, root: str) -> TrialConfig:
    """The same trial from files that hold one epoch of it."""
    assert device.global_batch is not None
    samples = (WARMUP + STEPS) * device.global_batch
    config = device.model_copy(update={"source": Source(name=name, num_samples=samples, data_dir=root)})  # type: ignore[arg-type]
    prepare(config)
    return config


def _over_device(session: Session, device: TrialConfig, reading: TrialConfig) -> Promise:
    a, b = _median_ms(session, reading), _median_ms(session, device)
    a(), b()      # the first of each pays for imports and the fingerprint
    blocks = [(a(), b(), b(), a()) for _ in range(BLOCKS)]
    ratio = paired_ratio_interval([((a1 * a2) / (b1 * b2)) ** 0.5 for a1, b1, b2, a2 in blocks])
    noise = paired_ratio_interval([b1 / b2 for _, b1, b2, _ in blocks])
    assert ratio is not None
    assert noise is not None
    assert reading.source is not None
    what = f"{reading.source.name}: step time over that of device, {BLOCKS} blocks A B B A"
    words = f"{_shown(ratio)}  (A/A {_shown(noise)})"
    return Promise(what, words, f"interval below {MOST}", ratio.high <= MOST)


def _median_ms(session: Session, config: TrialConfig) -> Callable[[], float]:
    def run() -> float:
        steps = session.run(config).steps
        return statistics.median(
            ms for ms, is_warmup in zip(steps.step_ms, steps.is_warmup, strict=True) if not is_warmup
        )

    return run


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
