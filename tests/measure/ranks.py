"""Made-up results of ranks: whatever a test says, on a quiet CPU rank that did all its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raybench.measure.counts import Counts
from raybench.record.rank import RankEnvironment, RankMemory, RankResult, RankSteps, RankTelemetry

# A rank below does 4 samples and 12 tokens a step; two ranks make these counts.
COUNTS = Counts(
    parameters=100,
    samples_per_step=8,
    tokens_per_step=24,
    model_flops_per_step=4e9,
    recomputed_flops_per_step=1e9,
    model_flops_causal_per_step=3e9,
    memory_bytes=1000,
)


def make_rank(rank: int = 0, *, step_ms: Sequence[float] = (100.0,) * 20, **changes: Any) -> RankResult:
    """A rank of two with two warm-up steps (300 and 100 ms) and the measured steps `step_ms`, 1 ms of each data wait.

    `changes` replace fields; `environment`, `telemetry` and `memory` are given as mappings of their changed fields.
    """
    times = (300.0, 100.0, *step_ms)
    environment, telemetry, memory = (changes.pop(name, {}) for name in ("environment", "telemetry", "memory"))
    values: dict[str, Any] = {
        "rank": rank,
        "world_size": 2,
        "steps": make_steps(times, warmup=2),
        "measured_s": sum(step_ms) / 1e3,
        "measured_steps": len(step_ms),
        "warmup_steps": 2,
        "measured_samples": 4 * len(step_ms),
        "measured_tokens": 12 * len(step_ms),
        "optimizer_steps": len(step_ms),
        "skipped_optimizer_steps": 0,
        "parameters": 100,
        "first_batch_s": 0.25,
        "build_s": 1.0,
        "warmup_s": 0.4,
        "teardown_s": 0.1,
        "compile_cache": None,
        "memory": RankMemory(**{"allocated_bytes": None, "reserved_bytes": None, "host_bytes": 500, **memory}),
        "telemetry": RankTelemetry(**{"utilization_mean": None, "power_mean_w": None, "energy_j": None, **telemetry}),
        "environment": make_environment(**environment),
    }
    return RankResult(**{**values, **changes})


def make_steps(
    times: Sequence[float], *, warmup: int, loss: float | None = 9.0, compute_ms: Sequence[float] = ()
) -> RankSteps:
    """Steps of the given length in ms, back to back, the first `warmup` of them flagged."""
    count = len(times)
    return RankSteps(
        is_warmup=(True,) * warmup + (False,) * (count - warmup),
        start_s=tuple(sum(times[:step]) / 1e3 for step in range(count)),
        step_ms=tuple(times),
        host_step_ms=tuple(times),
        data_wait_ms=(1.0,) * count,
        device_gap_ms=(None,) * count,
        forward_ms=(20.0,) * count,
        backward_ms=(40.0,) * count,
        optimizer_ms=(10.0,) * count,
        compute_ms=tuple(compute_ms) if compute_ms else (None,) * count,
        epoch=(0,) * count,
        loss=(loss,) * count,
    )


def make_environment(**changes: Any) -> RankEnvironment:
    """A CPU rank."""
    values: dict[str, Any] = {
        "host": "host-a",
        "node_key": "0123456789abcdef",
        "device_kind": "cpu",
        "gpu_model": None,
        "gpu_uuid": None,
        "cpu_threads": 1,
        "backend": "gloo",
        "effective_precision": "fp32",
        "effective_strategy": "ddp",
        "effective_attention": "math",
        "effective_channels_last": None,
        "effective_cudnn_benchmark": None,
        "effective_optimizer": "adamw for_loop",
        "torch_version": "2.13.0",
        "cuda_version": None,
        "driver_version": None,
    }
    return RankEnvironment(**{**values, **changes})


def gpu(uuid: str, model: str = "NVIDIA H200") -> dict[str, str]:
    """What `environment` says of a rank on that GPU."""
    return {"device_kind": "cuda", "gpu_model": model, "gpu_uuid": uuid, "effective_precision": "bf16"}
