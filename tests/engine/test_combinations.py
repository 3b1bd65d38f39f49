"""Everything that a sweep may combine ends well: workload, phase, precision, strategy, one and two workers.

`make test` runs a covering set, in which each two values that go together at all are together in some trial; `make
soak` runs the whole product. Ranks are plain processes that serve one trial after the other.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from raybench.engine.session import Session
from raybench.errors import SweepError
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes
from tests.engine.two_ranks import Ranks, on_ranks

TINY: Mapping[str, Mapping[str, Any]] = {
    "encdec": {
        "model": {"d_model": 16, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 32},
        "seq_len": 8, "vocab_size": 32, "global_batch": 4,
    },
    "decoder": {
        "model": {"d_model": 16, "num_layers": 2, "num_heads": 2, "d_ff": 32},
        "seq_len": 8, "vocab_size": 32, "global_batch": 4,
    },
    "resnet": {
        "model": {"architecture": "resnet18", "width": 2, "num_classes": 5, "image_size": 40}, "global_batch": 4,
    },
    "matmul": {"model": {"m": 8, "k": 4, "n": 6}},
    "mlp": {"model": {"batch": 8, "layers": [4, 8, 4]}},
    "elementwise": {"model": {"rows": 8, "columns": 4}},
    "collective": {"model": {"op": "all_reduce", "size_bytes": 64}},
}  # fmt: skip
AXES: Mapping[str, tuple[Any, ...]] = {
    "workload": tuple(TINY),
    "phase": (None, "forward", "forward_backward", "train"),
    "precision": ("fp32", "bf16", "fp16", "bf16_params"),
    "strategy": ("none", "ddp", "fsdp", "zero1", "split"),       # deepspeed is an extra and has a test of its own
    "num_workers": (1, 2),
}
Row = tuple[Any, ...]
"""One value of each axis, in their order."""


@functools.cache
def whole_product() -> dict[Row, TrialConfig]:
    """Every combination that a sweep may ask for, as the sweep reader has it."""
    workloads, phases, precisions, *others = AXES.values()
    made: dict[Row, TrialConfig] = {}
    for workload, phase, strategy, workers in product(workloads, phases, *others):
        for config in _configs(workload, phase, strategy, workers, precisions):
            made[workload, phase, config.precision, strategy, workers] = config
    return made


def _configs(workload: str, phase: str | None, strategy: str, workers: int, precisions: Row) -> list[TrialConfig]:
    """The configs in these precisions, as far as the sweep reader does not refuse them."""
    networks = "global_batch" in TINY[workload]
    if networks != (phase is not None):
        return []
    asked = {"workload": workload, "strategy": strategy, "num_workers": workers, **TINY[workload]}
    asked |= {"phase": phase, "source": {"name": "device", "num_samples": 10}} if networks else {}
    asked |= {"channels_last": False} if (workload, strategy) == ("resnet", "fsdp") else {}
    base = {**asked, "warmup": 1, "measure": 2}
    sweep = {"name": "combined", "base": base, "axes": {"precision": list(precisions)}}
    try:
        return [trial.config for trial in expand(sweep_from_bytes(json.dumps(sweep).encode(), "combined.yaml")).trials]
    except SweepError:      # of one of them at least
        alone = [_configs(workload, phase, strategy, workers, (one,)) for one in precisions] if precisions[1:] else []
        return [config for configs in alone for config in configs]


def covering(rows: list[Row]) -> list[Row]:
    """Few of the rows, with every two values together that are so in any: always the row with most new pairs."""
    left = set[Any]().union(*map(_pairs, rows))
    chosen = []
    while left:
        best = max(rows, key=lambda row: len(_pairs(row) & left))
        chosen.append(best)
        left -= _pairs(best)
    return chosen


@functools.cache
def _pairs(row: Row) -> frozenset[Any]:
    return frozenset(combinations(enumerate(row), 2))


def run_all(configs: list[TrialConfig], session: Session, rank: int) -> dict[str, Any]:
    """A rank's results."""
    return {config.label(): (config, session.run(config), session.clean) for config in configs}


def _on(workers: int, folder: Path, rows: list[Row]) -> Ranks:
    configs = [whole_product()[row] for row in rows]
    mine = [config for config in configs if config.world_size == workers]
    return on_ranks(folder, functools.partial(run_all, mine), workers)


def _all_end_well(ranks: Ranks) -> None:
    for found in ranks:
        for name, (config, result, clean) in found.items():
            ran = result.environment
            asked = (config.strategy, config.precision)
            assert (ran.effective_strategy, ran.effective_precision) == asked, name
            assert result.measured_steps == 2, name
            assert clean, name
            made, skipped = result.optimizer_steps, result.skipped_optimizer_steps
            assert (made is None) == (skipped is None) == (config.phase != "train"), name
            if made is not None and skipped is not None:
                assert made + skipped == 2, name
                assert skipped == 0 or config.precision == "fp16", name      # its first loss scale may be too large
            assert all(loss is None or math.isfinite(loss) for loss in result.steps.loss), name
            assert (result.fingerprint_loss is None) == (config.phase is None), name


@pytest.mark.parametrize("workers", [1, 2])
def test_a_covering_set_ends_well(tmp_path: Path, workers: int) -> None:
    """Each pair of values once, on one and on two workers."""
    _all_end_well(_on(workers, tmp_path, covering(list(whole_product()))))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_whole_product_ends_well(tmp_path: Path, workers: int) -> None:
    """All of it."""
    ranks = _on(workers, tmp_path, list(whole_product()))
    _all_end_well(ranks)
    print(f"{workers} workers: {len(ranks[0])} combinations ended well")


def test_the_product_is_what_the_table_says() -> None:
    """Networks: none on 1 worker, ddp and fsdp on both in 3 phases, zero1 in train: (3 x 5 + 2) x 4 precisions. Split
    work: in 3 precisions on 1 and 2 workers."""
    counted = {name: sum(row[0] == name for row in whole_product()) for name in TINY}
    assert counted == {**dict.fromkeys(("encdec", "decoder", "resnet"), 68), "matmul": 6, "mlp": 6, "elementwise": 6,
                       "collective": 6}  # fmt: skip


def test_a_covering_set_covers() -> None:
    """Every pair of the product, in a fraction of its rows."""
    rows = list(whole_product())
    chosen = covering(rows)
    assert set[Any]().union(*map(_pairs, chosen)) == set[Any]().union(*map(_pairs, rows))
    assert len(chosen) < len(rows) / 4

