"""`PlannedTrial`: one config, one repeat, and its place in the sweep."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.spec.config import TrialConfig


@dataclass(frozen=True)
class PlannedTrial:
    """One planned execution. `order` counts from 0 in the order the sweep runs."""

    config: TrialConfig
    config_key: str
    repeat: int
    order: int

    @property
    def trial_id(self) -> str:
        """`config_key-RR`: the same in every run of the same sweep."""
        return f"{self.config_key}-{self.repeat:02d}"

    def label(self) -> str:
        """What a person recognises the trial by; the repeat is said from the second on."""
        return self.config.label() + (f" #{self.repeat}" if self.repeat > 1 else "")


def worker_group(config: TrialConfig) -> tuple[object, ...]:
    """What must be equal for two configs to run in the same worker processes."""
    return (config.num_workers, config.device, config.backend, config.cpus_per_worker, config.nodes,
            config.packing)
