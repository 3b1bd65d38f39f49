"""Where the time of an attempt went: every part of its wall time, and what no part explains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Seconds. All but `wall_s` and `overhead_s`, with `measured_s`, sum to `wall_s`."""

    wall_s: float
    placement_s: float
    worker_start_s: float
    prepare_s: float
    build_s: float
    warmup_s: float
    teardown_s: float
    handoff_s: float      # the rest: messages between driver and workers, and clocks of ranks that end at odds
    fingerprint_s: float
    overhead_s: float     # what the trial cost beyond the steps it was made for


def ledger(
    *,
    wall_s: float,
    placement_s: float,
    worker_start_s: float,
    prepare_s: float,
    build_s: float,
    warmup_s: float,
    measured_s: float,
    teardown_s: float,
    fingerprint_s: float = 0.0,
) -> Ledger:
    """Work out what is left of `wall_s`.

    Parts that differ between ranks are given as their maxima, which may belong to different ranks; `handoff_s` can
    then be a little below zero, and is kept so that the parts still sum to the wall time.
    """
    parts = (placement_s, worker_start_s, prepare_s, build_s, warmup_s, measured_s, teardown_s, fingerprint_s)
    return Ledger(
        wall_s=wall_s,
        placement_s=placement_s,
        worker_start_s=worker_start_s,
        prepare_s=prepare_s,
        build_s=build_s,
        warmup_s=warmup_s,
        teardown_s=teardown_s,
        handoff_s=wall_s - sum(parts),
        fingerprint_s=fingerprint_s,
        overhead_s=wall_s - warmup_s - measured_s,
    )
