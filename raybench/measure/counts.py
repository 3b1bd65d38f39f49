"""`Counts`: what a step of a config amounts to, worked out from its shape alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Work of one step over all ranks.

    `parameters`: trainable numbers, None where nothing is trained. `model_flops_per_step`: full attention, embedding
    look-ups left out; the causal twin counts a causal mask's half and is None where there is none.
    """

    parameters: int | None
    samples_per_step: int
    tokens_per_step: int | None
    model_flops_per_step: float
    model_flops_causal_per_step: float | None
    memory_bytes: int            # rough estimate of the device memory of one rank
    small_share: bool = False    # split work only: a rank's share is too small to fill a GPU (rule `small_share`)
