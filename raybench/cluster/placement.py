"""On which nodes the workers of a group sit: decided here, so that a sweep over nodes is exact. Arithmetic only.

Ray's own strategies only prefer: `PACK` over two nodes may well be one. So every worker is pinned to the node that
stands for it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raybench.cluster.capacity import NodeRoom, NoRoom, Seat, places, seat
from raybench.spec.config import Packing


@dataclass(frozen=True)
class Placement:
    """The node of each worker, workers of a node together, and what every one of them may hold."""

    node_ids: tuple[str, ...]
    seat: Seat


def place(
    rooms: Sequence[NodeRoom], *, workers: int, nodes: int | None, packing: Packing, device_kind: str,
    cpus_asked: float, data_cpus: int = 0,
) -> Placement | NoRoom:  # fmt: skip
    """Where `workers` workers sit, or why they do not fit. `rooms`: the driver's node first, which is preferred.

    GPUs of different models are never mixed in a group. Every node keeps `data_cpus` for the tasks that read data.
    """
    alike = _alike([replace(room, data_cpus=data_cpus) for room in rooms], device_kind)
    found = [_counts(group, workers, nodes, packing, device_kind) for group in alike]
    chosen = next((counts for counts in found if counts is not None), None)
    if chosen is None:
        return _no_room(alike, workers, nodes, packing, device_kind)
    seats = [seat(room, workers=count, device_kind=device_kind, cpus_asked=cpus_asked) for room, count in chosen]
    for each in seats:
        if isinstance(each, NoRoom):
            return each
    taken = [each for each in seats if isinstance(each, Seat)]
    # One size for all: Ray gives every worker of a group the same.
    smallest = Seat(min(s.cpus for s in taken), taken[0].gpus, min(s.threads for s in taken))
    return Placement(tuple(room.node_id for room, count in chosen for _ in range(count)), smallest)


def _alike(rooms: Sequence[NodeRoom], device_kind: str) -> list[list[NodeRoom]]:
    """Rooms that may share a group, in the order in which their first one stands."""
    groups: dict[str | None, list[NodeRoom]] = {}
    for room in rooms:
        groups.setdefault(room.gpu_model if device_kind == "cuda" else None, []).append(room)
    return list(groups.values())


def _counts(
    rooms: Sequence[NodeRoom], workers: int, nodes: int | None, packing: Packing, device_kind: str
) -> list[tuple[NodeRoom, int]] | None:
    """Workers for each node that gets any, None when they do not fit."""
    free = {room.node_id: places(room, device_kind) for room in rooms}
    with_room = [room for room in rooms if free[room.node_id]]
    # Stable: the driver's node stands before its equals.
    roomiest = sorted(with_room, key=lambda room: -free[room.node_id])
    if packing == "pack":
        used = _fewest(with_room, roomiest, workers, nodes, free)
        full = [free[room.node_id] for room in used]
    else:
        used = roomiest[: workers if packing == "strict_spread" else nodes or workers]
        full = [1 if packing == "strict_spread" else free[room.node_id] for room in used]
    if sum(full) < workers or (nodes is not None and len(used) != nodes):
        return None
    counts = _filled(full, workers) if packing == "pack" else _evenly(full, workers)
    return list(zip(used, counts, strict=True))


def _fewest(
    with_room: Sequence[NodeRoom], roomiest: Sequence[NodeRoom], workers: int, nodes: int | None, free: dict[str, int]
) -> Sequence[NodeRoom]:
    """As many nodes as were asked for, else the first that holds all, else the fewest that do together."""
    if nodes is not None:
        return roomiest[:nodes]
    alone = [room for room in with_room if free[room.node_id] >= workers]
    if alone:
        return alone[:1]
    held = 0
    for number, room in enumerate(roomiest, 1):
        held += free[room.node_id]
        if held >= workers:
            return roomiest[:number]
    return roomiest


def _filled(full: Sequence[int], workers: int) -> list[int]:
    """One node after the other, with one worker left for each that follows. Sums to `workers`."""
    counts: list[int] = []
    for index, most in enumerate(full):
        counts.append(min(most, workers - sum(counts) - (len(full) - index - 1)))
    return counts


def _evenly(full: Sequence[int], workers: int) -> list[int]:
    """One worker more on the emptiest node that has room, until all sit; nodes earlier in the list first."""
    counts = [0] * len(full)
    for _ in range(workers):
        index = min((i for i, most in enumerate(full) if counts[i] < most), key=lambda i: counts[i])
        counts[index] += 1
    return counts


def _no_room(
    alike: Sequence[Sequence[NodeRoom]], workers: int, nodes: int | None, packing: Packing, device_kind: str
) -> NoRoom:
    """The sum: what is asked for, what there is, and what is missing."""
    rooms = [room for group in alike for room in group]
    if len(rooms) == 1 and nodes in (None, 1) and packing != "strict_spread":
        found = seat(rooms[0], workers=workers, device_kind=device_kind, cpus_asked=1.0)
        if isinstance(found, NoRoom):
            return found
    unit = "GPUs" if device_kind == "cuda" else "CPU places"
    needed = nodes or (workers if packing == "strict_spread" else None)
    where = f" on {needed} node{'s' if needed > 1 else ''}" if needed else ""
    there = ", ".join(f"{room.address} has {places(room, device_kind)}{_model(room)}" for room in rooms)
    together = "" if len(alike) < 2 else "; GPUs of different models are not mixed in one group"
    return NoRoom(f"{workers} workers ({packing}){where} need {workers} {unit}; {there}{together}")


def _model(room: NodeRoom) -> str:
    return f" ({room.gpu_model})" if room.gpus and room.gpu_model else ""
