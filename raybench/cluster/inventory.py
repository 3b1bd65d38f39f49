"""What the joined Ray has: every node that may hold workers, its facts, and how nodes differ."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from raybench.cluster.ask_nodes import ask_nodes
from raybench.cluster.capacity import NodeRoom, places
from raybench.cluster.checkup import Checkup, Examined, check_up, examined, usable_cores
from raybench.cluster.code_version import refuse_other_code
from raybench.engine.environment import visible_gpus
from raybench.errors import ClusterError
from raybench.record.node import Node

SURVEY_LIMIT_S = 90.0
"""For all nodes together: each starts a process, and a cold file system makes that slow."""
_BUILT_IN_RESOURCE = re.compile(r"(CPU|GPU|memory|object_store_memory)$|node:|accelerator_type:|.*_group_")
_COMPARED = (
    "os", "python_version", "cpu_model", "cpu_cores", "gpu_count", "gpu_models", "driver_version", "torch_version",
    "cuda_version", "nccl_version", "ray_version",
)  # fmt: skip
"""Facts in which nodes of one cluster are expected to be equal."""


@dataclass(frozen=True)
class Inventory:
    """Every node that may hold workers; the driver's, `node_id`, always stands first.

    `nodes` are the facts of all of them; `silent` the addresses that did not answer;
    `examined` the health of those that came since the last look.
    """

    rooms: tuple[NodeRoom, ...]
    node_id: str
    device_kind: str             # what `device: auto` means in this run
    nodes: tuple[Node, ...] = ()
    silent: tuple[str, ...] = ()
    seen: frozenset[str] = field(default=frozenset())      # ids of all nodes that were alive, rooms or not
    examined: tuple[Examined, ...] = ()

    @property
    def room(self) -> NodeRoom:
        """The driver's own node."""
        return self.rooms[0]

    @property
    def hardware(self) -> str:
        """One phrase for the first line."""
        several = f"{len(self.rooms)} nodes, " if len(self.rooms) > 1 else ""
        if self.device_kind == "cuda":
            models = dict.fromkeys(room.gpu_model or "GPU" for room in self.rooms if room.gpus)
            counts = [(sum(r.gpus for r in self.rooms if (r.gpu_model or "GPU") == model), model) for model in models]
            return several + " + ".join(f"{count}x {model}" for count, model in counts)
        cores = sum(room.cores for room in self.rooms)
        return f"{several}{cores} CPU core{'s' if cores != 1 else ''}, no GPU"

    @property
    def places(self) -> int:
        """Most workers that a group can have: what `num_workers: auto` counts up to."""
        if self.device_kind == "cuda":
            return sum(room.gpus for room in self.rooms)
        return sum(min(room.cores, places(room, "cpu")) for room in self.rooms)

    def host_of(self, node_id: str) -> str | None:
        """Host name of a node."""
        addresses = {room.node_id: room.address for room in self.rooms}
        return next((node.host for node in self.nodes if node.address == addresses.get(node_id)), None)

    def differences(self) -> tuple[str, ...]:
        """A sentence for each fact in which nodes differ."""
        return tuple(text for name in _COMPARED if (text := difference(name, self.nodes)) is not None)


def take_inventory(sweep_run_id: str) -> Inventory:
    """Ask the joined Ray. `device: auto` is cuda when Ray has any GPU, decided here and never again.

    Raises ClusterError when a node runs another raybench than this process.
    """
    import ray

    alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
    node_id = ray.get_runtime_context().get_node_id()
    kind = "cuda" if any(node["Resources"].get("GPU") for node in alive.values()) else "cpu"
    empty = Inventory((), node_id, kind)
    return _with_nodes(empty, {node_id: alive.pop(node_id), **alive}, sweep_run_id)


def refreshed(inventory: Inventory, sweep_run_id: str) -> Inventory:
    """The same where the cluster is the same; else without the nodes that are gone and with those that came.

    What was free on a node stays as it was seen before any group of ours was open.
    """
    import ray

    alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
    if alive.keys() == inventory.seen:
        return inventory
    rooms = tuple(room for room in inventory.rooms if room.node_id in alive)
    addresses = {room.address for room in rooms}
    nodes = tuple(node for node in inventory.nodes if node.address in addresses)
    kept = replace(inventory, rooms=rooms, nodes=nodes, silent=(), seen=inventory.seen & alive.keys())
    return _with_nodes(kept, {id_: node for id_, node in alive.items() if id_ not in inventory.seen}, sweep_run_id)


def without(inventory: Inventory, node_ids: frozenset[str]) -> Inventory:
    """The same without nodes that are known to be lost, though Ray may list them for a while yet."""
    return replace(inventory, rooms=tuple(room for room in inventory.rooms if room.node_id not in node_ids))


def worker_counts(places: int) -> tuple[int, ...]:
    """What `num_workers: auto` stands for: 1, 2, 4, ... and all of them."""
    powers = [2**i for i in range(places.bit_length()) if 2**i < places]
    return (*powers, places)


def _with_nodes(base: Inventory, added: Mapping[str, dict[str, object]], sweep_run_id: str) -> Inventory:
    """`base` and the added nodes that can hold anything; the driver's is asked without a task."""
    from ray._private.state import available_resources_per_node  # the public call sums over all nodes

    free = available_resources_per_node()
    useful = [id_ for id_ in added if id_ != base.node_id and _has_room(free.get(id_, {}))]
    began_s = time.time()
    answered = ask_nodes(check_up, useful, sweep_run_id, limit_s=SURVEY_LIMIT_S)
    ended_s = time.time()
    found: dict[str, Checkup] = dict(answered.results)
    silent = [id_ for id_, error in answered.failed.items() if error is None]
    _refuse_failed({id_: error for id_, error in answered.failed.items() if error is not None}, added)
    rooms = [_room(id_, str(added[id_]["NodeManagerAddress"]), each.cores, each.node.gpu_models, free[id_])
             for id_, each in sorted(found.items(), key=lambda item: item[1].node.address)]  # fmt: skip
    refuse_other_code((each.node.host, each.node.raybench_version, each.source_hash) for each in found.values())
    if base.node_id in added:
        rooms.insert(0, _own_room(base.node_id, str(added[base.node_id]["NodeManagerAddress"]), free))
        found = {base.node_id: check_up(sweep_run_id), **found}
    return replace(
        base,
        rooms=(*base.rooms, *rooms),
        nodes=(*base.nodes, *(each.node for each in found.values())),
        silent=(*base.silent, *(str(added[id_]["NodeManagerAddress"]) for id_ in silent)),
        seen=base.seen | added.keys(),
        examined=tuple(examined(found, added, began_s=began_s, ended_s=ended_s).values()),
    )


def _has_room(free: Mapping[str, float]) -> bool:
    return free.get("CPU", 0.0) > 0 or free.get("GPU", 0.0) > 0


def _own_room(node_id: str, address: str, free: Mapping[str, Mapping[str, float]]) -> NodeRoom:
    models = ";".join(gpu.model for gpu in visible_gpus())
    return _room(node_id, address, usable_cores(), models, free.get(node_id, {}))


def _room(node_id: str, address: str, cores: int, models: str, free: Mapping[str, float]) -> NodeRoom:
    return NodeRoom(
        node_id=node_id,
        address=address,
        cores=cores,
        cpus=float(free.get("CPU", 0.0)),
        gpus=int(free.get("GPU", 0)),
        gpu_model=models.partition(";")[0] or None,
        resources={name: amount for name, amount in free.items() if not _BUILT_IN_RESOURCE.match(name)},
    )


def difference(name: str, nodes: Sequence[Node]) -> str | None:
    """In a sentence, in what nodes differ; None where they do not."""
    by_value: dict[object, list[str]] = {}
    for node in nodes:
        by_value.setdefault(getattr(node, name), []).append(node.host)
    if len(by_value) < 2:
        return None
    told = "; ".join(f"{_shown(value)} on {', '.join(hosts)}" for value, hosts in by_value.items())
    return f"nodes differ in {name}: {told}"


def _shown(value: object) -> str:
    return "none" if value in (None, "") else str(value)


def _refuse_failed(failed: Mapping[str, BaseException], nodes: Mapping[str, dict[str, object]]) -> None:
    """A node on which the survey failed has no raybench, or one that does not start."""
    for node_id, error in failed.items():
        reason = " ".join(str(getattr(error, "cause", None) or error).split())[-300:]
        raise ClusterError(
            f"raybench does not run on the node {nodes[node_id]['NodeManagerAddress']}: {reason}; "
            "install the same raybench on every node, or pass --local"
        )
