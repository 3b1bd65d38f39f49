"""`PlannedTrial`: one config, one repeat, and its place in the sweep."""

from __future__ import annotations

from dataclasses import dataclass, field

from raybench.spec.config import TrialConfig
from raybench.spec.ladder import Ladder
from raybench.spec.names import gpu_words
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
        """`config_key-RR`, and the GPU model where one is asked for: the same in every run of the same sweep."""
        return f"{self.config_key}-{self.repeat:02d}{self._machine}"

    @property
    def point_id(self) -> str:
        """What all repeats share. The machine is no part of `config_key`, and still makes another trial."""
        return f"{self.config_key}{self._machine}"

    @property
    def _machine(self) -> str:
        return machine_of(self.config)

    def label(self, config_label: str | None = None) -> str:
        """What a person recognises the trial by; the repeat is said from the second on."""
        return (config_label or self.config_label()) + (f" #{self.repeat}" if self.repeat > 1 else "")

    def config_label(self) -> str:
        """What all repeats are recognised by."""
        return self.config.label() + (" b=auto" if self.ladder else "")


def machine_of(config: TrialConfig) -> str:
    """`-h100` where such a GPU is asked for, else nothing."""
    return f"-{gpu_words(config.gpu_model).replace(' ', '-')}" if config.gpu_model else ""


def worker_group(config: TrialConfig) -> tuple[object, ...]:
    """What must be equal for two configs to run in the same worker processes."""
    return (config.num_workers, config.device, config.backend, config.cpus_per_worker, config.nodes,
            config.packing, config.data_cpus_held, config.gpu_model, tuple(sorted(config.resources.items())))
