"""The network interface that collectives use: the one that carries the node's Ray address.

Gloo binds to what the host's own name resolves to, which on many hosts is 127.0.0.1 or 127.0.1.1, and then cannot
reach another node. The name of the interface may differ from node to node, so each worker chooses its own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ray.train.torch.config import TorchConfig, _TorchBackend

SETTINGS = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}


class ChoosingBackend(_TorchBackend):  # type: ignore[misc]  # ray has no types here
    """Ray Train's torch backend, with the interface chosen before the process group is made."""

    def on_start(self, worker_group: Any, backend_config: Any) -> None:
        """Choose in every worker, then go on as Ray does."""
        worker_group.execute(choose_interface)
        super().on_start(worker_group, backend_config)


@dataclass
class ChoosingTorchConfig(TorchConfig):  # type: ignore[misc]
    """`TorchConfig` with that backend."""

    @property
    def backend_cls(self) -> type[ChoosingBackend]:
        """What Ray Train makes the process group with."""
        return ChoosingBackend


def choose_interface() -> None:
    """Set the interface for gloo and NCCL in this process, unless the user did."""
    import ray

    from raybench.engine.environment import interface_of

    found = interface_of(ray.util.get_node_ip_address())
    if found is not None:
        for name in SETTINGS.values():
            os.environ.setdefault(name, found)


def chosen_interface(backend: str | None) -> str | None:
    """The interface that collectives of this process use, as it was set; None where nothing was."""
    name = SETTINGS.get(backend or "")
    return os.environ.get(name) if name else None
