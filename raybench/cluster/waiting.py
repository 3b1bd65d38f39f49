"""Waiting for an autoscaler to bring the nodes that a worker group needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from raybench.cluster.capacity import NoRoom
from raybench.cluster.placement import Placement

POLL_S = 1.0


def wait_for_room(
    look: Callable[[], Placement | NoRoom], *, workers: int, device_kind: str, resources: Mapping[str, float],
    limit_s: float,
) -> Placement | NoRoom:  # fmt: skip
    """Ask the autoscaler for the workers' resources, and look until there is room or `limit_s` has passed."""
    from ray.autoscaler.sdk import request_resources

    each = {"CPU": 1, **({"GPU": 1} if device_kind == "cuda" else {}), **resources}
    request_resources(bundles=[each] * workers)
    try:
        until_s = time.monotonic() + limit_s
        while isinstance(found := look(), NoRoom) and time.monotonic() < until_s:
            time.sleep(POLL_S)
        return found
    finally:
        request_resources(bundles=[])      # nodes that came stay until they idle; no more are asked for
