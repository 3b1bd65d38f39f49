"""Asking nodes: a small task pinned to each, and no wait for one that does not answer.

Ray notices the loss of a node after its health checks failed, which takes from seconds to more than a minute. Until
then a task for it is neither run nor refused.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PROBE_LIMIT_S = 30.0
"""A node that runs nothing for so long has lost its network, its power or its mind. A first task starts a process."""

SLOW_S = 30.0      # then a person is told what is waited for


@dataclass(frozen=True)
class Answered:
    """What nodes said: `results` by node, and for each of the others why there is none (None: silence)."""

    results: Mapping[str, Any]
    failed: Mapping[str, BaseException | None]


def ask_nodes(
    function: Callable[..., Any], node_ids: Iterable[str], *words: Any, limit_s: float | None,
    on_slow: Callable[[], None] | None = None,
) -> Answered:  # fmt: skip
    """Run `function(*words)` on each node, all at once; wait for the answers, at most `limit_s` where it is given.

    `on_slow` is called once when some are missing after 30 s.
    """
    import ray

    pending = {on_node(function, node_id).remote(*words): node_id for node_id in dict.fromkeys(node_ids)}
    until_s = None if limit_s is None else time.monotonic() + limit_s
    if on_slow is not None and len(ray.wait(list(pending), num_returns=len(pending), timeout=SLOW_S)[1]):
        on_slow()
    results: dict[str, Any] = {}
    failed: dict[str, BaseException | None] = {}
    while pending:
        done, _ = ray.wait(list(pending), timeout=until_s and max(0.0, until_s - time.monotonic()))
        if not done:
            break
        node_id = pending.pop(done[0])
        try:
            results[node_id] = ray.get(done[0])
        except ray.exceptions.RayError as error:
            failed[node_id] = error
    for reference, node_id in pending.items():
        ray.cancel(reference, force=False)
        failed[node_id] = None
    return Answered(results, failed)


def on_node(function: Callable[..., Any], node_id: str) -> Any:
    """A Ray task of no CPUs, pinned to a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return _remote(function).options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False))


def actor_here(cls: type) -> Any:
    """A Ray actor class of no CPUs, pinned to this node: what the driver hangs on must not die with another one."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, max_concurrency=1000, scheduling_strategy=here)(cls)


def is_there() -> bool:
    """What a node is asked to find out whether it answers at all."""
    return True


@functools.cache
def _remote(function: Callable[..., Any]) -> Any:
    """One remote function for each function: Ray keeps every one it is given."""
    import ray

    return ray.remote(num_cpus=0, max_retries=0)(function)
