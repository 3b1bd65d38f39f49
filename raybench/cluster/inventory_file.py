"""An inventory as a file: `raybench doctor` writes what a cluster has, `raybench plan` plans for it anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raybench.cluster.capacity import NodeRoom, NoRoom
from raybench.cluster.inventory import Inventory
from raybench.cluster.placement import place
from raybench.errors import UsageError
from raybench.spec.trial import PlannedTrial

VERSION = 1
_LIMIT_BYTES = 16 * 2**20


def write_inventory(inventory: Inventory, path: Path) -> None:
    """Keep what the nodes hold. Raises UsageError when the file cannot be written."""
    kept = {
        "version": VERSION,
        "device_kind": inventory.device_kind,
        "rooms": [asdict(room) for room in inventory.rooms],
    }
    try:
        path.write_text(json.dumps(kept, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"--inventory {path}: {error.strerror or error}") from None


def read_inventory(path: Path) -> Inventory:
    """What `write_inventory` kept. Raises UsageError for a file that is not one."""
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise UsageError(f"--inventory {path}: too large for an inventory")
        found = json.loads(path.read_bytes())
        version, kind, rooms = found["version"], str(found["device_kind"]), tuple(map(_room, found["rooms"]))
        first = rooms[0].node_id
    except OSError as error:
        raise UsageError(f"--inventory {path}: {error.strerror or error}") from None
    except (ValueError, TypeError, LookupError):
        raise UsageError(f"--inventory {path}: not written by `raybench doctor --inventory`") from None
    if version != VERSION:
        raise UsageError(f"--inventory {path}: of another version of raybench; write it anew with raybench doctor")
    return Inventory(rooms, first, kind)


def _room(values: Mapping[str, Any]) -> NodeRoom:
    """One room, each value made what it must be. Raises ValueError, TypeError or LookupError."""
    model = values["gpu_model"]
    return NodeRoom(
        node_id=str(values["node_id"]),
        address=str(values["address"]),
        cores=int(values["cores"]),
        cpus=float(values["cpus"]),
        gpus=int(values["gpus"]),
        gpu_model=None if model is None else str(model),
        resources={str(name): float(amount) for name, amount in values.get("resources", {}).items()},
    )


def what_does_not_fit(inventory: Inventory, trials: Sequence[PlannedTrial]) -> tuple[str, ...]:
    """A sentence for each thing that is missing, with how many of the trials would be infeasible for it."""
    counts: dict[str, int] = {}
    for trial in trials:
        config = trial.config
        found = place(
            inventory.rooms,
            workers=config.num_workers,
            nodes=config.nodes,
            packing=config.packing,
            device_kind=inventory.device_kind if config.device == "auto" else config.device,
            cpus_asked=config.cpus_per_worker,
            data_cpus=config.data_cpus_held,
            gpu_model=config.gpu_model,
            resources=config.resources,
        )
        if isinstance(found, NoRoom):
            counts[found.reason] = counts.get(found.reason, 0) + 1
    return tuple(
        f"{count} trial{'s' if count > 1 else ''} would be infeasible: {reason}" for reason, count in counts.items()
    )
