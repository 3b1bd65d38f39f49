"""What one rank hands to the driver when its trial ends well: the raw samples and facts that a row is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RankSteps:
    """Every step of one rank, warm-up first; all tuples have the same length."""

    is_warmup: tuple[bool, ...]
    start_s: tuple[float, ...]
    step_ms: tuple[float, ...]
    host_step_ms: tuple[float, ...]
    data_wait_ms: tuple[float, ...]
    device_gap_ms: tuple[float | None, ...]
    forward_ms: tuple[float | None, ...]
    backward_ms: tuple[float | None, ...]
    optimizer_ms: tuple[float | None, ...]
    compute_ms: tuple[float | None, ...]
    epoch: tuple[int | None, ...]
    loss: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class RankEnvironment:
    """What ran, as seen from inside the rank."""

    host: str
    node_key: str
    device_kind: str  # cuda or cpu
    gpu_model: str | None
    gpu_uuid: str | None
    cpu_threads: int
    backend: str | None  # gloo, nccl, None outside a process group
    effective_precision: str
    effective_strategy: str
    effective_attention: str | None
    effective_channels_last: bool | None  # None without convolutions
    effective_cudnn_benchmark: bool | None  # None where there is no cuDNN
    effective_optimizer: str | None
    torch_version: str
    cuda_version: str | None
    driver_version: str | None


@dataclass(frozen=True, kw_only=True)
class RankMemory:
    """Peaks of one rank. CUDA figures are None on CPU."""

    allocated_bytes: int | None
    reserved_bytes: int | None
    host_bytes: int


@dataclass(frozen=True, kw_only=True)
class RankTelemetry:
    """NVML over the window for this rank's GPU; None where the device does not answer or there is none."""

    utilization_mean: float | None  # 0 to 1
    power_mean_w: float | None
    energy_j: float | None


@dataclass(frozen=True, kw_only=True)
class RankResult:
    """One rank's part of a trial that ended well.

    `measured_s` is the window on this rank's host clock: barrier, device synchronisation, t0; work; device
    synchronisation, t1, barrier. `measured_samples` and `measured_tokens` were counted, not derived. `create_s` is
    part of `build_s` and `retrieve_s` of `teardown_s`; both are None where nothing is split. `passes` holds the samples
    that each finished pass over streamed data gave this rank, None where data is not streamed. `file_bytes` is what
    the window's batches have in their files, `storage_read_bytes` what the kernel fetched from storage meanwhile.
    """

    rank: int
    world_size: int
    steps: RankSteps
    measured_s: float
    measured_steps: int
    warmup_steps: int
    measured_samples: int
    measured_tokens: int | None
    optimizer_steps: int | None
    skipped_optimizer_steps: int | None
    parameters: int | None
    first_batch_s: float | None
    build_s: float
    warmup_s: float
    teardown_s: float
    compile_cache: str | None
    memory: RankMemory
    telemetry: RankTelemetry
    environment: RankEnvironment
    create_s: float | None = None
    retrieve_s: float | None = None
    fingerprint_loss: float | None = None  # None without a loss, and where it is no finite number
    fingerprint_steps: int | None = None
    fingerprint_s: float = 0.0
    passes: tuple[int, ...] | None = None
    file_bytes: int | None = None
    storage_read_bytes: int | None = None
    sample_bytes: int | None = None  # of a sample as the network is given it; None without a source
    loader_cpu_s: float | None = None  # in the window; None where the source does not say


@dataclass(frozen=True, kw_only=True)
class RankFailure:
    """How one rank's part of a trial ended, told by the rank itself."""

    rank: int
    host: str
    outcome: str
    error_type: str
    error_text: str
    traceback: str
    elapsed_s: float  # since the rank took the trial
