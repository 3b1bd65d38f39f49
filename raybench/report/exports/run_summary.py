"""`metrics_epoch.jsonl`, `run_summary.json` and `summary.csv` of the GPU training suite: `<experiment>/<run>/`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from raybench.report.exports.facts import Epoch, Exported, safe
from raybench.report.exports.text import File, csv_text, json_text

EPOCH: Final = (
    "epoch", "throughput_samples_per_s", "epoch_time_s", "total_steps", "measured_steps", "measured_samples",
    "mean_step_ms", "p50_step_ms", "p95_step_ms",
)  # fmt: skip


def files(trial: Exported) -> Iterator[File]:
    """The three files of a trial."""
    folder = f"{safe(str(trial['sweep']))}/{trial.is_unique}"
    epochs = [_epoch(trial, epoch) for epoch in trial.epochs]
    yield File(f"{folder}/metrics_epoch.jsonl", "".join(json.dumps(row, allow_nan=False) + "\n" for row in epochs))
    yield File(f"{folder}/run_summary.json", json_text(_summary(trial)))
    yield File(f"{folder}/summary.csv", csv_text(EPOCH, epochs))


def _epoch(trial: Exported, epoch: Epoch) -> dict[str, Any]:
    samples = epoch.steps * (trial["global_batch"] or 1)
    return {
        "epoch": epoch.number,
        "throughput_samples_per_s": epoch.per_s(samples),
        "epoch_time_s": epoch.wall_s,
        "total_steps": epoch.steps + (trial["warmup_steps"] if epoch == trial.epochs[0] else 0),
        "measured_steps": epoch.steps,
        "measured_samples": samples,
        "mean_step_ms": epoch.step_ms_mean,
        "p50_step_ms": epoch.step_ms_p50,
        "p95_step_ms": epoch.step_ms_p95,
    }


def _summary(trial: Exported) -> dict[str, Any]:
    accum, micro = trial["grad_accum"] or 1, trial["micro_batch"]
    return {
        "experiment_name": trial["sweep"],
        "run_id": trial["trial_uid"],
        "world_size": trial["world_size"],
        "precision": "amp" if trial["effective_precision"] == "fp16" else trial["effective_precision"],
        "channels_last": trial.setting("channels_last"),
        "batch_size": micro,
        "global_batch_size": None if micro is None else micro * trial["world_size"],
        "effective_batch_size": trial["global_batch"],
        "gradient_accumulation_steps": accum,
        "total_steps": trial["warmup_steps"] + trial["measured_steps"],
        "total_samples": trial["measured_samples"],
        "total_measured_time_s": trial["measured_s"],
        "total_wall_clock_s": trial["wall_s"],
        "throughput_samples_per_s": trial["samples_per_s"],
        "commit_hash": None,
        "env": _env(trial),
        "notes": trial["note"],
    }


def _env(trial: Exported) -> dict[str, Any]:
    return {
        "hostname": trial.node.get("host"),
        "os": trial.node.get("os"),
        "python": trial.node.get("python_version"),
        "cpu_count": trial.node.get("cpu_cores"),
        "cuda_available": trial["device_kind"] == "cuda",
        "cuda": trial["cuda_version"],
        "torch": trial["torch_version"],
        "nccl_version": trial.node.get("nccl_version"),
        "driver_version": trial["driver_version"],
        "gpus": [name for name in str(trial.node.get("gpu_models") or "").split(";") if name],
    }
