"""`bench_{GPU}_{N}gpu_{TIME}.json`, as the encoder-decoder GPU benchmark wrote them: one file a trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from raybench.report.exports.facts import Epoch, Exported, safe
from raybench.report.exports.text import File, json_text

_INT64_BYTES: Final = 8
_SHAPE: Final = ("d_model", "nhead", "num_encoder_layers", "num_decoder_layers", "dim_feedforward")


def files(trial: Exported) -> Iterator[File]:
    """The one file of a trial. Its name ends in what no other attempt has, where the tool's overwrote each other."""
    stamp = f"{trial.started_at:%Y%m%d_%H%M%S}"
    name = f"bench_{safe(trial.device)}_{trial['world_size']}gpu_{stamp}_{trial.is_unique}.json"
    yield File(name, json_text({
        "metadata": _metadata(trial), "config": _config(trial), "summary": _summary(trial),
        "epochs": [_epoch(trial, epoch) for epoch in trial.epochs],
    }))  # fmt: skip


def _metadata(trial: Exported) -> dict[str, Any]:
    return {
        "timestamp": trial.started_at.isoformat(),
        "hostname": trial.node.get("host"),
        "gpu_name": trial["gpu_model"],
        "gpu_count": trial["world_size"] if trial["device_kind"] == "cuda" else 0,
        "cuda_version": trial["cuda_version"],
        "pytorch_version": trial["torch_version"],
        "python_version": trial.node.get("python_version"),
        "platform": trial.node.get("os"),
    }


def _config(trial: Exported) -> dict[str, Any]:
    is_disk = trial["source"] == "shards"
    size, seq_len = trial.setting("source.num_samples"), trial["seq_len"]
    return {
        "model_params": trial["parameters"],
        **{name: trial.setting(f"model.{name}") for name in _SHAPE},
        "batch_size_per_gpu": _times(trial["micro_batch"], trial["grad_accum"]),
        "effective_batch_size": trial["global_batch"],
        "seq_len": seq_len,
        "vocab_size": trial["vocab_size"],
        "num_samples": size,
        "dataset_size_gb": None if size is None or seq_len is None else size * 2 * seq_len * _INT64_BYTES / 1e9,
        "data_source": "disk" if is_disk else "memory",
        "num_shards": trial.setting("source.num_shards") if is_disk else None,
        "amp": trial["precision"] == "fp16",
        "num_workers": trial["loader_workers"],
        "warmup_epochs": None if not size else trial["warmup_steps"] * (trial["global_batch"] or 0) / size,
        "measured_epochs": trial.passes,
    }


def _summary(trial: Exported) -> dict[str, Any]:
    size, peak, share = (
        trial.setting("source.num_samples"), trial["peak_memory_allocated_bytes"], trial["gpu_utilization_mean"],
    )  # fmt: skip
    return {
        "avg_wall_time_per_epoch_s": size / trial["samples_per_s"] if size else None,
        "avg_throughput_samples_per_s": trial["samples_per_s"],
        "peak_gpu_memory_mb": None if peak is None else peak / 2**20,
        "avg_gpu_utilisation_pct": None if share is None else 100 * share,
    }


def _epoch(trial: Exported, epoch: Epoch) -> dict[str, Any]:
    samples = epoch.steps * (trial["global_batch"] or 1)
    return {
        "epoch": epoch.number + 1,
        "wall_time_s": epoch.wall_s,
        "total_samples": samples,
        "throughput_samples_per_s": epoch.per_s(samples),
        "avg_loss": epoch.loss_rank0,
    }


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b
