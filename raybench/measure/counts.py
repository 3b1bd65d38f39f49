"""`Counts`: what a step of a config amounts to, worked out from its shape alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Work of one step over all ranks.

    `parameters`: trainable numbers, None where nothing is trained. `model_flops_per_step`: full attention, embedding
    look-ups left out, None for what computes nothing; the causal twin counts a causal mask's half and is None where
    there is none; `recomputed_flops_per_step` is what the backward pass computes again, by the policy that runs. The
    other fields with a default are for split work only.
    """

    parameters: int | None
    samples_per_step: int
    tokens_per_step: int | None
    model_flops_per_step: float | None
    model_flops_causal_per_step: float | None
    memory_bytes: int | None              # rough estimate of one rank's device memory; None where nothing is known
    small_share: bool = False             # a rank's share is too small to fill a GPU (rule `small_share`)
    rows_per_rank: int | None = None      # where rows are what is split
    bytes_per_step: int | None = None     # least memory traffic, where that is what limits the work
    message_bytes: int | None = None      # collectives: the size S of nccl-tests
    bus_factor: float | None = None       # collectives: bus over algorithm bandwidth, None for one rank
    recomputed_flops_per_step: float = 0.0

    @property
    def hardware_flops_per_step(self) -> float | None:
        """What the chip is given to do: the model's work, and what is computed again."""
        return None if self.model_flops_per_step is None else self.model_flops_per_step + self.recomputed_flops_per_step
