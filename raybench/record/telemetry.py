"""The `telemetry` table: one row per GPU or node and sample. Nothing fills it yet; the columns are fixed."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.record.column import column

_UNSUPPORTED = "when the device does not answer"


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """One reading of one GPU or node."""

    trial_uid: str = column("row of the trials table it belongs to")
    node_key: str = column("row of the nodes table")
    scope: str = column("gpu or node")
    gpu_uuid: str | None = column("which GPU", null="when scope is node")
    t_s: float = column("since the window's start on that node", unit="s")
    in_window: bool = column("inside the measured window")
    gpu_utilization: float | None = column("share of time with a kernel running, 0 to 1", null=_UNSUPPORTED)
    power_w: float | None = column("power draw", unit="W", null=_UNSUPPORTED)
    memory_used_bytes: int | None = column("memory in use on the device", unit="B", null=_UNSUPPORTED)
