"""Planned trials and presets with what they amount to, as rows for a table. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from raybench.measure.counts import Counts
from raybench.spec.config import Extent, TrialConfig
from raybench.spec.expand import expand
from raybench.spec.presets import told
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.shapes import Frozen
from raybench.spec.trial import PlannedTrial
from raybench.workloads.base import Workload
from raybench.workloads.registry import counts_of, workloads


def planned_row(trial: PlannedTrial) -> dict[str, Any]:
    """A planned trial with its counts. `memory_bytes` estimates the device memory of one worker.

    Where the micro batch is yet to be found, only the parameters are known.
    """
    config = trial.config
    first = trial.ladder.rungs[0] if trial.ladder else config
    counted = _counted(counts_of(first))
    if trial.ladder:
        counted = dict.fromkeys(counted) | {"parameters": counted["parameters"]}
    return {
        "trial_id": trial.trial_id,
        "position": trial.order + 1,
        "repeat": trial.repeat,
        "label": trial.config_label(),
        "num_workers": config.num_workers,
        "warmup": _extent(config.warmup),
        "measure": _extent(config.measure),
        **counted,
        "config": config.model_dump(mode="json"),
    }


def _extent(extent: Extent) -> int | dict[str, float | None]:
    """Steps, or seconds as a sweep writes them: `{"seconds": 10.0}`."""
    return extent.steps if extent.steps is not None else {"seconds": extent.seconds}


def _counted(counts: Counts) -> dict[str, Any]:
    return {
        "parameters": counts.parameters,
        "samples_per_step": counts.samples_per_step,
        "tokens_per_step": counts.tokens_per_step,
        "model_flops_per_step": counts.model_flops_per_step,
        "memory_bytes": counts.memory_bytes,
        "rows_per_rank": counts.rows_per_rank,
        "small_share": counts.small_share,
    }


def preset_rows(*, no_plugins: bool = False) -> Iterator[dict[str, Any]]:
    """Every preset of every workload at that workload's defaults, one worker."""
    for known in workloads(no_plugins=no_plugins).values():
        for preset in known.family.presets:
            yield _preset_row(known, preset, no_plugins)


def _preset_row(known: Workload, preset: str, no_plugins: bool) -> dict[str, Any]:
    config = _default_config(known.family.name, preset, no_plugins)
    counts = known.counts(config)
    return {
        "workload": known.family.name,
        "preset": preset,
        "default": preset == known.family.default_model,
        "shape": _shape_text(config.model),
        "parameters": counts.parameters,
        **_flops_per(counts),
        "seq_len": config.seq_len,
        "micro_batch": config.micro_batch,
        "memory_bytes": counts.memory_bytes,
        "phase": config.phase,
        "origin": known.origin,
    }


def _shape_text(shape: Frozen) -> str:
    """`d_model 768, tied`: what is off or not there is not told."""
    parts = ((name, value) for name, value in shape.model_dump(mode="json").items() if value not in (None, False))
    return ", ".join(name if value is True else f"{name} {told(value)}" for name, value in parts)


def _flops_per(counts: Counts) -> dict[str, float | None]:
    """FLOPs of a sample and of a token; None for work without any, or without tokens."""
    flops = counts.model_flops_per_step
    return {
        "flops_per_sample": None if flops is None else flops / counts.samples_per_step,
        "flops_per_token": None if flops is None or not counts.tokens_per_step else flops / counts.tokens_per_step,
    }


def _default_config(name: str, preset: str, no_plugins: bool) -> TrialConfig:
    """The config of a sweep that says nothing but workload and model: the defaults have one home."""
    text = json.dumps({"name": "preset", "base": {"workload": name, "model": preset}})
    (trial,) = expand(sweep_from_bytes(text.encode(), name, no_plugins=no_plugins)).trials
    return trial.config
