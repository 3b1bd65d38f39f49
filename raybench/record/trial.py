"""The `trials` table: one row per attempt, with everything a comparison needs.

New columns are only ever added at the end of the class, and nothing is renamed or retyped under `SCHEMA_VERSION` 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from raybench.record.column import column

SCHEMA_VERSION: Final = 1

OUTCOMES: Final = (
    "ok", "oom_cuda", "oom_host", "timeout", "worker_died", "node_lost", "preempted", "comm_error", "infeasible",
    "gpu_busy", "gpu_fault", "data_error", "workload_error", "internal_error", "interrupted", "store_error", "skipped",
)  # fmt: skip
RUN_AGAIN: Final = frozenset({
    "node_lost", "preempted", "comm_error", "infeasible", "gpu_busy", "internal_error", "interrupted", "store_error",
})  # fmt: skip
"""Outcomes that the next `run` of the same sweep tries again without being told to."""
NEVER_REPLACES_OK: Final = frozenset({"interrupted", "store_error", "skipped"})
"""Outcomes that, though later, leave an earlier `ok` attempt the latest one."""

_ASKED = "when the workload has no such setting"
_OK = "unless ok"
_GPU = "unless ok on a GPU that answers"
_SPLIT = "unless ok and split by rows"
_COLLECTIVE = "unless ok and a collective"
_FILES = "unless ok, a source that reads files, and a kernel that says"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One attempt at a trial, as stored. What was measured is None unless `outcome == "ok"`."""

    # identity
    trial_uid: str = column("uuid4 hex made when the attempt starts: the key of the row and the join key of all tables")
    sweep: str = column("name of the sweep")
    sweep_run_id: str = column("the command that wrote the row: UTC stamp and 8 random hex")
    cluster: str = column("name of the cluster it ran on")
    config_key: str = column("16 hex of SHA-256 over the resolved config; resume uses it")
    work_key: str = column("the same without warm-up, measure, quality and isolation; comparison pairs on it")
    config: str = column("the resolved config as canonical JSON")
    trial_id: str = column("config_key-RR, RR the repeat")
    repeat: int = column("which repeat, from 1")
    attempt: int = column("which try at this trial on this cluster, from 1")
    sweep_order: int = column("position of the trial in the sweep's plan, from 0")
    started_at: datetime = column("when the attempt started")
    tags: str = column("canonical JSON object of --tag values, {} when none")
    note: str | None = column("the --note text", null="when none was given")
    schema_version: int = column("version of this table's columns")
    raybench_version: str = column("version of raybench that wrote the row")
    # outcome
    outcome: str = column("how the attempt ended")
    valid: bool = column("outcome is ok and no rule found the number wrong")
    invalid_reasons: str = column("names of the rules that failed, joined by ;")
    warnings: str = column("what a careful reader should know, joined by ;")
    quality: str = column("what was asked: full, quick, probe or profiled")
    error_type: str | None = column("class of the root error", null="when ok")
    error_text: str | None = column("the root error in at most 2 kB, control characters removed", null="when ok")
    error_rank: int | None = column("rank of the root error", null="when ok or no rank is to blame")
    error_host: str | None = column("host of the root error", null="when ok or no host is to blame")
    # asked
    workload: str = column("what is computed")
    model: str = column("the preset's name, or custom")
    seq_len: int | None = column("tokens in a sequence", null=_ASKED)
    vocab_size: int | None = column("number of token values", null=_ASKED)
    num_workers: int = column("Ray Train workers asked for")
    nodes: int | None = column("nodes asked for", null="when none were asked for")
    packing: str | None = column("how workers are placed: pack, spread or strict_spread", null="in older rows")
    micro_batch: int | None = column("samples a rank sees in a micro step", null=_ASKED)
    grad_accum: int | None = column("micro steps in a step", null=_ASKED)
    global_batch: int | None = column("samples in a step over all ranks", null=_ASKED)
    batch_given: str | None = column("which batch numbers were given, joined by +", null=_ASKED)
    precision: str = column("precision asked for: fp32, tf32, bf16, fp16 or bf16_params")
    phase: str | None = column("forward, forward_backward, train or load", null=_ASKED)
    strategy: str = column("how ranks share the work: none, ddp, fsdp, zero1, deepspeed or split")
    compile: str = column("torch.compile mode, or off")
    attention: str | None = column("attention kernel asked for, or auto", null=_ASKED)
    optimizer: str | None = column("optimizer's name", null=_ASKED)
    source: str | None = column("where batches come from", null=_ASKED)
    data_cache: str | None = column("what the page cache held at first: cold, warm or as_is", null=_ASKED)
    loader_workers: int | None = column("data-loading processes of each rank", null=_ASKED)
    isolation: str = column("how long worker processes live: repeat, warm or fresh")
    timing: str | None = column("how steps are timed: events, sync or none", null="in rows of raybench 0.1.0")
    device_requested: str = column("device asked for: auto, cuda or cpu")
    seed: int = column("seed of weights, data and dropout")
    # ran
    device_kind: str | None = column("cuda or cpu", null="when no worker started")
    gpu_model: str | None = column("the GPU's name as its driver gives it", null="on CPU, or when no worker started")
    num_nodes: int | None = column("nodes the ranks ran on", null="when no worker started")
    world_size: int | None = column("ranks in the process group", null="when no worker started")
    cpu_threads: int | None = column("intra-op CPU threads of a rank", null="when no worker started")
    ray_address_source: str = column("how the Ray that ran it was chosen")
    effective_precision: str | None = column("precision that ran", null=_OK)
    effective_attention: str | None = column("attention kernel that ran", null=_OK)
    effective_strategy: str | None = column("strategy that ran", null=_OK)
    backend: str | None = column("collective backend that ran: nccl or gloo", null="when no worker started")
    node_keys: str = column("keys of the nodes table, sorted, joined by ;")
    group_trial_index: int | None = column(
        "0 in a new worker group, counts up in a warm one", null="when no worker started"
    )
    torch_version: str | None = column("version of torch in the workers", null="when no worker started")
    ray_version: str | None = column("version of Ray", null="when Ray was not reached")
    cuda_version: str | None = column("CUDA version torch was built for", null="on CPU, or when no worker started")
    driver_version: str | None = column("version of the GPU driver", null="on CPU, or when no worker started")
    # counted
    parameters: int | None = column("trainable parameters of the built model", null="unless ok, or no parameters")
    warmup_steps: int | None = column("steps recorded but left out", over_ranks="same", null=_OK)
    measured_steps: int | None = column("steps that count", over_ranks="same", null=_OK)
    measured_samples: int | None = column("samples processed in the window", over_ranks="sum", null=_OK)
    measured_tokens: int | None = column(
        "tokens processed in the window", over_ranks="sum", null="unless ok, or no tokens"
    )
    model_flops_per_step: float | None = column(
        "FLOPs of a whole step over all ranks, full attention, embedding look-ups left out",
        unit="FLOP", null="unless ok, or no FLOPs",
    )  # fmt: skip
    model_flops_causal_per_step: float | None = column(
        "the same, counting a causal mask's half", unit="FLOP", null="unless ok, or no causal attention"
    )
    loss_finite: bool | None = column("every recorded loss was finite", over_ranks="all", null="unless ok, or no loss")
    # speed
    measured_s: float | None = column("wall time of the window, host clock", unit="s", over_ranks="max", null=_OK)
    samples_per_s: float | None = column("measured_samples / measured_s", unit="1/s", null=_OK)
    tokens_per_s: float | None = column("measured_tokens / measured_s", unit="1/s", null="unless ok, or no tokens")
    steps_per_s: float | None = column("measured_steps / measured_s", unit="1/s", null=_OK)
    samples_per_s_per_gpu: float | None = column("samples_per_s / world_size", unit="1/s", null=_OK)
    tokens_per_s_per_gpu: float | None = column("tokens_per_s / world_size", unit="1/s", null="unless ok, or no tokens")
    samples_per_s_ci_low: float | None = column(
        "lower end of the 95 % interval over block means", unit="1/s", null="below 20 steps"
    )
    samples_per_s_ci_high: float | None = column("upper end of the same interval", unit="1/s", null="below 20 steps")
    tflops_per_gpu: float | None = column(
        "model_flops_per_step x steps_per_s / world_size / 1e12", unit="TFLOP/s", null="unless ok, or no FLOPs"
    )
    mfu: float | None = column(
        "model FLOP/s over the dense peak of the precision that ran", null="when the peak is unknown"
    )
    mfu_causal: float | None = column("the same, counting a causal mask's half", null="when the peak is unknown")
    step_ms_mean: float | None = column("mean step time of the slowest rank", unit="ms", null=_OK)
    step_ms_std: float | None = column("sample standard deviation (ddof 1)", unit="ms", null="below 2 steps")
    step_ms_cv: float | None = column("standard deviation / mean", null="below 2 steps")
    step_ms_min: float | None = column("fastest step", unit="ms", null=_OK)
    step_ms_p50: float | None = column("median step (linear interpolation)", unit="ms", null=_OK)
    step_ms_p95: float | None = column("95th percentile", unit="ms", null=_OK)
    step_ms_p99: float | None = column("99th percentile", unit="ms", null=_OK)
    step_ms_max: float | None = column("slowest step", unit="ms", null=_OK)
    # data
    data_wait_s: float | None = column(
        "time spent waiting for batches in the window", unit="s", over_ranks="max", null=_OK
    )
    data_stall_fraction: float | None = column(
        "share of the window in which compute waited for data", over_ranks="max", null=_OK
    )
    first_batch_s: float | None = column(
        "time until the first batch was on the device", unit="s", over_ranks="max", null="unless ok, or no source"
    )
    samples_dropped: int | None = column(
        "samples that no rank was given, over the epochs that ended, warm-up included", over_ranks="sum",
        null="unless ok, from ray_data, and an epoch ended",
    )
    # memory, telemetry
    peak_memory_allocated_bytes: int | None = column(
        "peak of the CUDA allocator after warm-up", unit="B", over_ranks="max", null=_GPU
    )
    peak_memory_reserved_bytes: int | None = column(
        "peak of what it reserved after warm-up", unit="B", over_ranks="max", null=_GPU
    )
    peak_host_memory_bytes: int | None = column(
        "peak resident memory of a rank's process", unit="B", over_ranks="max", null=_OK
    )
    gpu_utilization_mean: float | None = column(
        "time mean of NVML's utilisation in the window, 0 to 1", over_ranks="mean", null=_GPU
    )
    gpu_utilization_min: float | None = column("that of the idlest GPU", over_ranks="min", null=_GPU)
    power_mean_w: float | None = column(
        "time mean of a GPU's power in the window", unit="W", over_ranks="mean", null=_GPU
    )
    energy_j: float | None = column("energy of all GPUs in the window", unit="J", over_ranks="sum", null=_GPU)
    # ledger
    wall_s: float | None = column(
        "from the trial function's start to its record, on the driver", unit="s", null="unless ok"
    )
    placement_s: float | None = column("waiting for resources; 0 when warm", unit="s", null=_OK)
    worker_start_s: float | None = column("starting worker processes; 0 when warm", unit="s", null=_OK)
    prepare_s: float | None = column("preparing or checking data on the nodes", unit="s", over_ranks="max", null=_OK)
    build_s: float | None = column("building model, optimizer and source", unit="s", over_ranks="max", null=_OK)
    warmup_s: float | None = column("warm-up steps", unit="s", over_ranks="max", null=_OK)
    teardown_s: float | None = column(
        "freeing everything and checking that it is free", unit="s", over_ranks="max", null=_OK
    )
    handoff_s: float | None = column(
        "what the other parts do not explain: messages between driver and workers", unit="s", null=_OK
    )
    overhead_s: float | None = column("wall_s - warmup_s - measured_s", unit="s", null=_OK)
    compile_s: float | None = column(
        "first warm-up step minus median measured step", unit="s", over_ranks="max", null="unless ok and compiled"
    )
    compile_cache: str | None = column(
        "cold or warm: whether compiled code was found on disk", null="unless ok and compiled"
    )
    # split work
    rows_per_rank: int | None = column("rows that each rank computed", null=_SPLIT)
    create_s: float | None = column(
        "making the operands on the device, of a collective with one exchange that is checked; part of build_s",
        unit="s", over_ranks="max", null="unless ok and split",
    )  # fmt: skip
    retrieve_s: float | None = column(
        "copying a rank's result to host memory after the window; part of teardown_s",
        unit="s", over_ranks="max", null="unless ok and split, with a result",
    )  # fmt: skip
    bytes_per_step: int | None = column(
        "memory traffic of a step over all ranks: each operand read once, each result written once",
        unit="B", null="unless ok and elementwise",
    )  # fmt: skip
    memory_bandwidth_bytes_per_s: float | None = column(
        "bytes_per_step x steps_per_s / world_size", unit="B/s", null="unless ok and elementwise"
    )
    algorithm_bandwidth_bytes_per_s: float | None = column(
        "size of the collective x steps_per_s, as nccl-tests defines it (algbw)", unit="B/s", null=_COLLECTIVE
    )
    bus_bandwidth_bytes_per_s: float | None = column(
        "the same x 2 (n - 1) / n for all_reduce, x (n - 1) / n for all_gather and all_to_all (busbw)",
        unit="B/s", null="unless ok, a collective, and more than one rank",
    )  # fmt: skip
    network_interface: str | None = column(
        "network interface of the ranks' collectives, each once, joined by ;",
        null="when no worker started, and in older rows",
    )
    workers_by_host: str | None = column(
        "hosts of the ranks and how many each had, joined by ;: alpha=2;beta=1",
        null="when no worker started, and in older rows",
    )
    channels_last: bool | None = column("images and convolutions asked to have the channel fastest", null=_ASKED)
    cudnn_benchmark: bool | None = column("cuDNN asked to time its algorithms and keep the fastest", null=_ASKED)
    effective_channels_last: bool | None = column(
        "convolutions had the channel fastest", null="unless ok, or no convolutions"
    )
    effective_cudnn_benchmark: bool | None = column("cuDNN's benchmark switch was on", null="unless ok on a GPU")
    # optimizer
    effective_optimizer: str | None = column(
        "optimizer and implementation that ran: fused, foreach or for_loop", null="unless ok and phase train"
    )
    optimizer_steps: int | None = column(
        "optimizer steps made in the window, counted", over_ranks="same", null="unless ok and phase train"
    )
    skipped_optimizer_steps: int | None = column(
        "optimizer steps skipped because gradients overflowed in fp16", over_ranks="same",
        null="unless ok and phase train",
    )  # fmt: skip
    ray_job_id: str | None = column(
        "id that `ray job submit` gave, else Ray's own number of the driver", null="in older rows"
    )
    slurm: str | None = column(
        "canonical JSON object of the Slurm job: id, name, partition, nodes, cluster", null="outside Slurm"
    )
    memory_room_bytes: int | None = column(
        "memory of a rank's GPU; on CPU its part of what the node had free when the worker started", unit="B",
        over_ranks="min", null="when no worker started",
    )  # fmt: skip
    # parts of a step
    forward_ms_mean: float | None = column(
        "mean forward pass of the slowest rank, all micro steps of a step together", unit="ms",
        null="unless ok and the workload has a phase",
    )
    backward_ms_mean: float | None = column("mean backward pass, likewise", unit="ms", null="without gradients")
    optimizer_ms_mean: float | None = column(
        "mean time of clipping and optimizer step, likewise", unit="ms", null="unless ok and phase train"
    )
    # recomputation
    activation_checkpointing: str | None = column("what the backward pass computes again: off or full", null=_ASKED)
    hardware_flops_per_step: float | None = column(
        "model_flops_per_step and what was computed again", unit="FLOP", null=_OK
    )
    hfu: float | None = column(
        "the same FLOP/s over the dense peak: the MFU that the hardware sees", null="when the peak is unknown"
    )
    # maths fingerprint
    fingerprint_loss: float | None = column(
        "loss of the last step of a run of its own: same seed, dropout 0, batch norm fixed", over_ranks="mean",
        null="unless ok and the workload has a loss that is finite",
    )
    fingerprint_steps: int | None = column("steps of that run", null="unless ok and the workload has a phase")
    fingerprint_s: float | None = column(
        "that run, apart from all that is measured", unit="s", over_ranks="max", null=_OK
    )
    # page cache
    file_bytes: int | None = column(
        "bytes that the window's batches have in their files", unit="B", over_ranks="sum", null=_FILES
    )
    storage_read_bytes: int | None = column(
        "bytes that the kernel fetched from storage for the ranks and their loaders in the window", unit="B",
        over_ranks="sum", null=_FILES,
    )  # fmt: skip
    cache_state: str | None = column(
        "where file_bytes came from: cold (storage, 90 % and more), warm (memory, likewise) or mixed", null=_FILES
    )
    # data attribution
    group_uid: str | None = column(
        "worker group that ran it: rows that share it ran in the same processes",
        null="when no worker started, and in older rows",
    )
    delivered_bytes_per_s: float | None = column(
        "bytes of the batches as the network is given them, a second of the window", unit="B/s", over_ranks="sum",
        null="unless ok, or no source",
    )  # fmt: skip
    loader_cpu_s: float | None = column(
        "CPU time in the window of what makes batches: loader processes, a thread that reads ahead, or the rank",
        unit="s", over_ranks="sum", null="unless ok, or where the source does not say",
    )  # fmt: skip
