"""On which nodes the workers of a group sit: decided here, so that a sweep over nodes is exact. Arithmetic only.

Ray's own strategies only prefer: `PACK` over two nodes may well be one. So every worker is pinned to the node that
stands for it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from raybench.cluster.capacity import NOTHING, NodeRoom, NoRoom, Seat, places, seat
from raybench.spec.config import MIXED_GPUS, Packing
from raybench.spec.names import gpu_words


@dataclass(frozen=True)
class Placement:
    """The node of each worker, workers of a node together, and what every one of them may hold."""

    node_ids: tuple[str, ...]
    seat: Seat


def place(
    rooms: Sequence[NodeRoom], *, workers: int, nodes: int | None, packing: Packing, device_kind: str,
    cpus_asked: float, data_cpus: int = 0, gpu_model: str | None = None, resources: Mapping[str, float] = NOTHING,
) -> Placement | NoRoom:  # fmt: skip
    """Where `workers` workers sit, or why they do not fit. `rooms`: the driver's node first, which is preferred.

    GPUs of different models are mixed in a group only where `gpu_model` says so; else it names the model by some of
    its words. Each worker takes `resources` of Ray's custom ones; every node keeps `data_cpus` for tasks that read.
    """
    if gpu_model is not None and device_kind != "cuda":
        return NoRoom(f"gpu_model {gpu_model} asks for GPUs, and this trial runs on {device_kind}")
    rooms = [replace(room, data_cpus=data_cpus) for room in rooms]
    asked = _Asked(workers, nodes, packing, device_kind, gpu_model, resources)
    alike = _alike(rooms, asked)
    found = [_counts(group, asked) for group in alike]
    chosen = next((counts for counts in found if counts is not None), None)
    if chosen is None:
        return _no_room(rooms, len(alike), asked)
    seats = [seat(room, workers=count, device_kind=device_kind, cpus_asked=cpus_asked) for room, count in chosen]
    for each in seats:
        if isinstance(each, NoRoom):
            return each
    taken = [each for each in seats if isinstance(each, Seat)]
    # One size for all: Ray gives every worker of a group the same.
    smallest = Seat(min(s.cpus for s in taken), taken[0].gpus, min(s.threads for s in taken))
    return Placement(tuple(room.node_id for room, count in chosen for _ in range(count)), smallest)


@dataclass(frozen=True)
class _Asked:
    workers: int
    nodes: int | None
    packing: Packing
    device_kind: str
    gpu_model: str | None
    resources: Mapping[str, float]

    def places(self, room: NodeRoom) -> int:
        return places(room, self.device_kind, self.resources)

    def takes(self, room: NodeRoom) -> bool:
        """Whether the node's GPUs are of the model that is asked for, if one is."""
        if self.gpu_model in (None, MIXED_GPUS):
            return True
        return set(gpu_words(str(self.gpu_model)).split()) <= set(gpu_words(room.gpu_model or "").split())


def _alike(rooms: Sequence[NodeRoom], asked: _Asked) -> list[list[NodeRoom]]:
    """Rooms that may share a group, in the order in which their first one stands."""
    apart = asked.device_kind == "cuda" and asked.gpu_model != MIXED_GPUS
    groups: dict[str | None, list[NodeRoom]] = {}
    for room in filter(asked.takes, rooms):
        groups.setdefault(room.gpu_model if apart else None, []).append(room)
    return list(groups.values())


def _counts(rooms: Sequence[NodeRoom], asked: _Asked) -> list[tuple[NodeRoom, int]] | None:
    """Workers for each node that gets any, None when they do not fit."""
    workers, nodes, packing = asked.workers, asked.nodes, asked.packing
    free = {room.node_id: asked.places(room) for room in rooms}
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


def _no_room(rooms: Sequence[NodeRoom], num_alike: int, asked: _Asked) -> NoRoom:
    """The sum: what is asked for, what there is, and what is missing."""
    workers, nodes, packing, device_kind = asked.workers, asked.nodes, asked.packing, asked.device_kind
    if len(rooms) == 1 and nodes in (None, 1) and packing != "strict_spread":
        found = seat(rooms[0], workers=workers, device_kind=device_kind, cpus_asked=1.0)
        if isinstance(found, NoRoom):
            return found
    unit = f"GPUs{_of_model(asked)}" if device_kind == "cuda" else "CPU places"
    taken = "".join(f" with {amount:g} {name} each" for name, amount in sorted(asked.resources.items()))
    needed = nodes or (workers if packing == "strict_spread" else None)
    where = f" on {needed} node{'s' if needed > 1 else ''}" if needed else ""
    there = ", ".join(
        f"{room.address} has {asked.places(room) if asked.takes(room) else 0}{_model(room)}" for room in rooms
    )
    together = "" if num_alike < 2 else "; GPUs of different models are mixed only with gpu_model: mixed"
    return NoRoom(f"{workers} workers ({packing}){where} need {workers} {unit}{taken}; {there}{together}")


def _of_model(asked: _Asked) -> str:
    return "" if asked.gpu_model in (None, MIXED_GPUS) else f" named {asked.gpu_model}"


def _model(room: NodeRoom) -> str:
    return f" ({room.gpu_model})" if room.gpus and room.gpu_model else ""
