"""`Place`: where one rank runs. Everything the engine must be told by whoever started the process."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Place:
    """One rank's position in its group and on its machine. `device` is `cpu` or `cuda:0`."""

    rank: int
    world_size: int
    local_rank: int
    device: str
    host: str
    node_key: str

    @property
    def torch_device(self) -> torch.device:
        """The device as torch names it."""
        return torch.device(self.device)
