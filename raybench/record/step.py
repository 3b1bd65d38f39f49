"""The `steps` table: one row per rank and step, warm-up steps kept and flagged."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.record.column import column


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of one rank."""

    trial_uid: str = column("row of the trials table it belongs to")
    rank: int = column("rank in the process group")
    step: int = column("step number, counting from 0 through warm-up")
    epoch: int | None = column("pass over the data set, from 0", null="when the source has no size")
    is_warmup: bool = column("recorded but left out of every figure")
    start_s: float = column("since this rank's first warm-up step", unit="s")
    step_ms: float = column(
        "boundary to boundary on the device (CUDA events) or host clock (CPU), data wait included", unit="ms"
    )
    host_step_ms: float = column("the same by the host clock", unit="ms")
    compute_ms: float | None = column(
        "from the step's start to its first gradient collective", unit="ms",
        null="but under ddp and zero1, and while torch still sorts gradients into buckets (three steps)",
    )
    data_wait_ms: float = column("host time spent waiting for this step's batches", unit="ms")
    device_gap_ms: float | None = column("time the device waited for data", unit="ms", null="on CPU")
    loss: float | None = column("loss of the step on this rank", null="when the workload has no loss")
    forward_ms: float | None = column(
        "forward pass, all micro steps together", unit="ms", null="when the workload has no phase"
    )
    backward_ms: float | None = column("backward pass, all micro steps together", unit="ms", null="without gradients")
    optimizer_ms: float | None = column(
        "clipping and optimizer step, on the device's clock where there is one", unit="ms", null="without an optimizer"
    )
