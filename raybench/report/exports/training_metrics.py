"""`training_metrics.json` (schema 2.0) and `RUN_COMPLETE.txt` of the GPT-2 fixed-work runs: a folder a trial."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from raybench.report.exports.facts import Epoch, Exported, safe
from raybench.report.exports.text import File, json_text

_PRECISION = {"fp16": "fp16_torch_amp"}


def files(trial: Exported) -> Iterator[File]:
    """The two files of a trial. What raybench does not have (a validation, a command line) is null."""
    folder = f"{safe(str(trial['sweep']))}/{trial.is_unique}"
    path, ended = f"{folder}/training_metrics.json", _ended(trial)
    marker = (
        f"RUN_COMPLETE path={path} world_size={trial['world_size']} "
        f"tokens_per_sec={trial['tokens_per_s']} wall_time_sec={trial['wall_s']} timestamp_utc={ended}"
    )
    yield File(path, json_text(_metrics(trial, ended)))
    yield File(f"{folder}/RUN_COMPLETE.txt", f"{marker}\n")


def _ended(trial: Exported) -> str:
    return (trial.started_at + timedelta(seconds=trial["wall_s"])).isoformat()


def _metrics(trial: Exported, ended: str) -> dict[str, Any]:
    return {
        "schema_version": "2.0",
        "run_id": trial["trial_uid"],
        "timestamp_utc": trial.started_at.isoformat(),
        "git_commit": None,
        "command_line": None,
        "env": {
            "python_version": trial.node.get("python_version"), "torch_version": trial["torch_version"],
            "transformers_version": None, "deepspeed_version": None, "cuda_version": trial["cuda_version"],
        },
        "host": {"hostname": trial.node.get("host"), "os": trial.node.get("os")},
        "hardware": {
            "gpu_name": trial["gpu_model"], "gpu_count_visible": trial.node.get("gpu_count"),
            "world_size": trial["world_size"], "cuda_version": trial["cuda_version"], "instance_type": None,
            "cluster": trial["cluster"],
        },
        "training_config": _training_config(trial),
        "deepspeed_config": None,
        "schema_notes": f"exported by raybench {trial['raybench_version']} from trial {trial['trial_id']}",
        "epochs": [_epoch(trial, epoch) for epoch in trial.epochs],
        "summary": {
            "total_wall_time_sec": trial["wall_s"], "best_val_loss": None,
            "mean_tokens_per_sec_global": trial["tokens_per_s"],
        },
        "shutdown": {"destroy_process_group_called": None, "quiet_nccl_monitor": None},
        "completion": {"run_complete_file": "RUN_COMPLETE.txt", "printed_marker": None, "timestamp_utc": ended},
    }  # fmt: skip


def _training_config(trial: Exported) -> dict[str, Any]:
    precision = str(trial["effective_precision"])
    return {
        "model_name": trial["workload"],
        "model_size": trial["model"],
        "seq_len": trial["seq_len"],
        "epochs": trial.passes,
        "micro_batch_size_per_gpu": trial["micro_batch"],
        "grad_accum_steps": trial["grad_accum"],
        "global_batch_size": trial["global_batch"],
        "lr": trial.setting("optimizer.lr"),
        "optimizer": trial["optimizer"],
        "precision": _PRECISION.get(precision, precision),
        "deepspeed_enabled": trial["strategy"] == "deepspeed",
        "zero_stage": 1 if trial["strategy"] == "zero1" else None,
        "dataset_name": trial["source"],
        "dataset_subset_sizes": {"train": trial.setting("source.num_samples"), "val": None},
    }


def _epoch(trial: Exported, epoch: Epoch) -> dict[str, Any]:
    tokens = None
    if trial["measured_tokens"] is not None:
        tokens = epoch.steps * trial["measured_tokens"] // trial["measured_steps"]
    micro_steps = epoch.steps * (trial["grad_accum"] or 1)
    return {
        "epoch_idx": epoch.number,
        "epoch_wall_time_sec": epoch.wall_s,
        "steps": micro_steps,
        "micro_steps": micro_steps,
        "optimizer_steps": epoch.steps,
        "tokens_processed_global": tokens,
        "tokens_per_sec_global": None if tokens is None else epoch.per_s(tokens),
        "train_loss_avg_global": epoch.loss,
        "val_loss_avg_global": None,
        "max_cuda_mem_allocated_bytes_rank0": None,
        "max_cuda_mem_reserved_bytes_rank0": None,
        "max_cuda_mem_allocated_bytes_global": trial["peak_memory_allocated_bytes"],
        "max_cuda_mem_reserved_bytes_global": trial["peak_memory_reserved_bytes"],
        "step_time_mean_sec": epoch.step_ms_mean / 1e3,
        "step_time_p50_sec": epoch.step_ms_p50 / 1e3,
        "step_time_p95_sec": epoch.step_ms_p95 / 1e3,
        "dataload_time_mean_sec": epoch.data_wait_ms_mean / 1e3,
    }
