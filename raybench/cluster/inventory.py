"""What the joined Ray has, asked once a run. Until groups span nodes, only the driver's own node counts."""

from __future__ import annotations

import os
from dataclasses import dataclass

from raybench.cluster.capacity import NodeRoom
from raybench.engine.environment import visible_gpus


@dataclass(frozen=True)
class Inventory:
    """The driver's node, and how many others there are."""

    room: NodeRoom
    node_id: str
    other_nodes: int
    device_kind: str             # what `device: auto` means in this run

    @property
    def hardware(self) -> str:
        """One phrase for the first line."""
        if self.device_kind == "cuda":
            return f"{self.room.gpus}x {self.room.gpu_model or 'GPU'}"
        return f"{self.room.cores} CPU core{'s' if self.room.cores != 1 else ''}, no GPU"

    @property
    def places(self) -> int:
        """Most workers that a group can have: what `num_workers: auto` counts up to."""
        return self.room.gpus if self.device_kind == "cuda" else self.room.cores


def take_inventory() -> Inventory:
    """Ask the joined Ray. `device: auto` is cuda when Ray has any GPU, decided here and never again."""
    import ray
    from ray._private.state import available_resources_per_node  # the public call sums over all nodes

    node_id = ray.get_runtime_context().get_node_id()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    (mine,) = [node for node in nodes if node["NodeID"] == node_id]
    free = available_resources_per_node().get(node_id, {})
    names = [gpu.model for gpu in visible_gpus()]
    room = NodeRoom(
        address=mine["NodeManagerAddress"],
        cores=usable_cores(),
        cpus=float(free.get("CPU", 0.0)),
        gpus=int(free.get("GPU", 0)),
        gpu_model=names[0] if names else None,
    )
    return Inventory(room, node_id, len(nodes) - 1, "cuda" if any(n["Resources"].get("GPU") for n in nodes) else "cpu")


def usable_cores() -> int:
    """Logical cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def worker_counts(places: int) -> tuple[int, ...]:
    """What `num_workers: auto` stands for: 1, 2, 4, ... and all of them."""
    powers = [2**i for i in range(places.bit_length()) if 2**i < places]
    return (*powers, places)
