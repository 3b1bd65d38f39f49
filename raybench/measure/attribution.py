"""What limits a step that reads data: the compute, what makes batches, what they are read from, or sharing."""

from __future__ import annotations

from typing import Final

KEEPS_UP: Final = 0.98
"""Of the speed with the null source: a source that reaches it costs nothing that one would buy anything for."""
AT_CEILING: Final = 0.90
"""Of what the source delivers by itself: more than that and there is nothing left to deliver."""
BUSY: Final = 0.80
"""Of their time that makers of batches compute: the rest goes to queues, which are never quite empty or full."""


def limit(
    *,
    au: float | None,
    au_high: float | None,
    delivered: float | None,
    ceiling: float | None,
    stall: float | None,
    loader_cpu_share: float | None,
) -> str | None:
    """What a faster step needs first; None where too little is known.

    `compute`: the source keeps up. `loader cpu`: it does not, and what makes batches computes all the time. `read`: it
    does not, and its makers wait for storage or network. `source`: it does not, and nothing says why. `contention`: it
    could deliver more, stands ready, and compute is slower beside it all the same: they share cores, memory or bus.
    """
    if au is None:
        return None
    if (au if au_high is None else au_high) >= KEEPS_UP:
        return "compute"
    if not _source_limits(au, delivered, ceiling, stall):
        return "contention"
    if loader_cpu_share is None:
        return "source"
    return "loader cpu" if loader_cpu_share >= BUSY else "read"


def _source_limits(au: float, delivered: float | None, ceiling: float | None, stall: float | None) -> bool:
    """Whether more could not be delivered. Without a ceiling: whether most of what is lost is waiting."""
    if delivered is not None and ceiling is not None and delivered >= AT_CEILING * ceiling:
        return True
    return stall is not None and stall >= (1 - au) / 2
