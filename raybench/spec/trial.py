"""`PlannedTrial`: one config, one repeat, and its place in the sweep."""

from __future__ import annotations

from dataclasses import dataclass, field

from raybench.spec.config import TrialConfig
from raybench.spec.ladder import Ladder
from raybench.spec.settings import Layer


@dataclass(frozen=True)
class PlannedTrial:
    """One planned execution. `order` counts from 0 in the order the sweep runs.

    `ladder` is there while the micro batch waits to be found; until then `config_key` only tells it from others.
    `choice` is what the sweep's axes gave it.
    """

    config: TrialConfig
    config_key: str
    repeat: int
    order: int
    ladder: Ladder | None = None
    choice: tuple[Layer, ...] = field(default=(), compare=False, repr=False)

    @property
    def trial_id(self) -> str:
        """`config_key-RR`: the same in every run of the same sweep."""
        return f"{self.config_key}-{self.repeat:02d}"

    def label(self, config_label: str | None = None) -> str:
        """What a person recognises the trial by; the repeat is said from the second on."""
        return (config_label or self.config_label()) + (f" #{self.repeat}" if self.repeat > 1 else "")

    def config_label(self) -> str:
        """What all repeats are recognised by."""
        return self.config.label() + (" b=auto" if self.ladder else "")


def worker_group(config: TrialConfig) -> tuple[object, ...]:
    """What must be equal for two configs to run in the same worker processes."""
    return (config.num_workers, config.device, config.backend, config.cpus_per_worker, config.nodes,
            config.packing, config.data_cpus_held)
