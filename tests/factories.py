"""Records that look like a real run's, for tests that need rows but no run.

`make_trial()` is a full `ok` row of encdec 3.5m on two CPU ranks whose figures agree with each other. Give a config
or a step time and every column that follows from it follows; override single columns by name for anything else.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

from raybench.record.node import Node
from raybench.record.step import Step
from raybench.record.trial import SCHEMA_VERSION, Trial
from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from raybench.spec.families.encdec import ENCDEC
from raybench.version import __version__

EPOCH = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
"""When the first made-up attempt starts; later attempts of a trial default to an hour later each."""
PARAMETERS = 3_502_592  # encdec 3.5m at seq_len 64
RUN_ID = "20260301T120000Z-00c0ffee"
NODE_KEY = "0123456789abcdef"


def make_config(**overrides: Any) -> TrialConfig:
    """A resolved encdec config on two workers; `global_batch` follows from the other batch numbers."""
    values: dict[str, Any] = {
        "workload": "encdec", "model_name": "3.5m", "model": ENCDEC.presets["3.5m"], "seq_len": 64,
        "vocab_size": 8192, "micro_batch": 4, "grad_accum": 1, "batch_given": "micro_batch", "precision": "fp32",
        "phase": "train", "strategy": "ddp", "optimizer": Optimizer(), "source": Source(num_samples=2000),
        "num_workers": 2, "warmup": Extent(steps=5), "measure": Extent(steps=20),
    } | overrides  # fmt: skip
    if values["micro_batch"] is not None:
        values.setdefault("global_batch", values["micro_batch"] * values["grad_accum"] * values["num_workers"])
    return TrialConfig(**values)


def make_trial(of: TrialConfig | None = None, *, step_ms: float = 50.0, **overrides: Any) -> Trial:
    """One row of `trials`: `ok` unless `outcome` says otherwise, and then without anything that was measured.

    `of` is the config it ran (default `make_config()`); `step_ms` the median step, from which every speed follows.
    `overrides` replace columns by name.
    """
    config = of or make_config()
    outcome = overrides.get("outcome", "ok")
    ended = _measured(config, step_ms) if outcome == "ok" else _failed(outcome)
    values = {**_identity(config, overrides), **_asked(config), **_ran(config), **ended, **overrides}
    return Trial(**values)


def make_steps(trial: Trial, *, step_ms: float = 50.0) -> list[Step]:
    """The rows of `steps` that belong to a row of `make_trial`: every rank, warm-up first, even steps."""
    warmup, measured = trial.warmup_steps or 0, trial.measured_steps or 0
    return [
        Step(
            trial_uid=trial.trial_uid, rank=rank, step=step, epoch=0, is_warmup=step < warmup,
            start_s=step * step_ms / 1e3, step_ms=step_ms, host_step_ms=step_ms, data_wait_ms=0.1, loss=9.0,
        )
        for rank in range(trial.world_size or 0)
        for step in range(warmup + measured)
    ]  # fmt: skip


def make_node(**overrides: Any) -> Node:
    """One row of `nodes`: a CPU machine."""
    values: dict[str, Any] = {
        "node_key": NODE_KEY, "sweep_run_id": RUN_ID, "seen_at": EPOCH, "host": "host-a", "address": "127.0.0.1",
        "os": "Linux 6.1", "python_version": "3.11.7", "cpu_model": "A CPU", "cpu_cores": 2,
        "memory_bytes": 8 * 2**30, "gpu_count": 0, "gpu_models": "", "gpu_uuids": "", "torch_version": "2.13.0",
        "ray_version": "2.60.0", "raybench_version": __version__,
    } | overrides  # fmt: skip
    return Node(**values)


def _identity(config: TrialConfig, overrides: dict[str, Any]) -> dict[str, Any]:
    key, repeat, attempt = config.config_key(), overrides.get("repeat", 1), overrides.get("attempt", 1)
    return {
        "trial_uid": uuid.uuid4().hex, "sweep": "quick", "sweep_run_id": RUN_ID, "cluster": "host-a",
        "config_key": key, "work_key": config.work_key(), "config": config.canonical(),
        "trial_id": f"{overrides.get('config_key', key)}-{repeat:02d}", "repeat": repeat, "attempt": attempt,
        "sweep_order": 0, "started_at": EPOCH + timedelta(hours=attempt - 1), "tags": "{}",
        "schema_version": SCHEMA_VERSION, "raybench_version": __version__,
    }  # fmt: skip


def _asked(config: TrialConfig) -> dict[str, Any]:
    asked = {
        name: getattr(config, name)
        for name in (
            "workload", "seq_len", "vocab_size", "num_workers", "micro_batch", "grad_accum", "global_batch",
            "batch_given", "precision", "phase", "strategy", "compile", "isolation", "seed", "quality", "channels_last",
            "cudnn_benchmark", "timing", "attention", "activation_checkpointing", "data_cache",
        )
    }  # fmt: skip
    return asked | {
        "model": config.model_name,
        "optimizer": config.optimizer and config.optimizer.name,
        "source": config.source and config.source.name,
        "loader_workers": config.source and config.source.loader_workers,
        "device_requested": config.device,
    }


def _ran(config: TrialConfig) -> dict[str, Any]:
    return {
        "device_kind": "cpu", "num_nodes": 1, "world_size": config.world_size, "cpu_threads": 1,
        "ray_address_source": "local", "backend": "gloo", "node_keys": NODE_KEY, "group_trial_index": 0,
        "torch_version": "2.13.0", "ray_version": "2.60.0",
    }  # fmt: skip


def _measured(config: TrialConfig, step_ms: float) -> dict[str, Any]:
    steps, warmup = config.measure.steps or 20, config.warmup.steps or 5
    samples = config.global_batch or 1
    tokens = samples * (config.seq_len - 1) if config.seq_len else None
    flops = 6.0 * PARAMETERS * (tokens or samples)
    measured_s, steps_per_s = steps * step_ms / 1e3, 1e3 / step_ms
    ledger = {
        "placement_s": 0.0, "worker_start_s": 0.0, "prepare_s": 0.0, "build_s": 0.02,
        "warmup_s": warmup * step_ms / 1e3, "teardown_s": 0.01, "handoff_s": 0.01,
    }  # fmt: skip
    wall_s = measured_s + sum(ledger.values())
    return ledger | {
        "outcome": "ok", "valid": True, "invalid_reasons": "", "warnings": "",
        "effective_precision": config.precision, "effective_strategy": config.strategy,
        "effective_attention": "math", "effective_optimizer": "adamw for_loop", "optimizer_steps": steps,
        "skipped_optimizer_steps": 0, "parameters": PARAMETERS, "warmup_steps": warmup, "measured_steps": steps,
        "measured_samples": steps * samples, "measured_tokens": tokens and steps * tokens,
        "model_flops_per_step": flops, "loss_finite": True, "measured_s": measured_s,
        "samples_per_s": samples * steps_per_s, "tokens_per_s": tokens and tokens * steps_per_s,
        "steps_per_s": steps_per_s, "samples_per_s_per_gpu": samples * steps_per_s / config.world_size,
        "tokens_per_s_per_gpu": tokens and tokens * steps_per_s / config.world_size,
        "samples_per_s_ci_low": 0.98 * samples * steps_per_s, "samples_per_s_ci_high": 1.02 * samples * steps_per_s,
        "tflops_per_gpu": flops * steps_per_s / config.world_size / 1e12,
        "step_ms_mean": step_ms, "step_ms_std": 0.02 * step_ms, "step_ms_cv": 0.02, "step_ms_min": 0.97 * step_ms,
        "step_ms_p50": step_ms, "step_ms_p95": 1.03 * step_ms, "step_ms_p99": 1.04 * step_ms,
        "step_ms_max": 1.05 * step_ms, "data_wait_s": 1e-4 * steps, "data_stall_fraction": 1e-4 * steps / measured_s,
        "first_batch_s": 0.001, "peak_host_memory_bytes": 512 * 2**20, "wall_s": wall_s,
        "overhead_s": wall_s - ledger["warmup_s"] - measured_s,
    }  # fmt: skip


def _failed(outcome: str) -> dict[str, Any]:
    return {
        "outcome": outcome, "valid": False, "invalid_reasons": "", "warnings": "",
        "error_type": "RuntimeError", "error_text": f"made up: {outcome}", "error_rank": 1, "error_host": "host-a",
    }  # fmt: skip
