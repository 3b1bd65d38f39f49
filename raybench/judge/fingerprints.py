"""Whether two measurements computed the same, by their maths fingerprints, where their settings say they should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from raybench.judge.sides import SIDE
from raybench.judge.told import told_differences
from raybench.results.configs import pairing_key

_TOLERANCE: Final = {"fp32": 1e-3}
_ROUNDED: Final = 0.02
"""Share of the loss by which rounding and the order of sums may change it."""
_SPEED_ONLY: Final = frozenset({
    "activation_checkpointing", "attention", "backend", "bucket_mb", "channels_last", "compile", "cudnn_benchmark",
    "device", "grad_accum", "micro_batch", "nodes", "num_workers", "optimizer.implementation", "packing", "precision",
    "source", "strategy", "timing", "zero_stage",
})  # fmt: skip
"""Settings that change how fast something is computed, not what. The global batch is none of them."""


def tells_of_other_maths(base_loss: float, side_loss: float, precisions: tuple[str, ...]) -> str:
    """`fingerprint_loss (9 / 8)` where rounding in the least precise of these cannot explain it, else nothing."""
    if pd.isna(base_loss) or pd.isna(side_loss):
        return ""
    tolerance = max(_TOLERANCE.get(precision, _ROUNDED) for precision in precisions)
    if abs(side_loss - base_loss) <= tolerance * abs(base_loss):
        return ""
    return next(told_differences({"fingerprint_loss": (f"{base_loss:.5g}", f"{side_loss:.5g}")}))


def fingerprints_of(used: pd.DataFrame) -> pd.Series[float]:
    """The mean fingerprint of each (`pair`, `value`) over its repeats; null where there is none."""
    losses: pd.Series[float] = used["fingerprint_loss"].astype("float64").groupby([used[key] for key in SIDE]).mean()
    return losses


def maths_key(config: Mapping[str, Any]) -> str:
    """Equal for configs that compute the same loss, however fast: batch norm is of each rank's own images."""
    of_its_own = {"num_workers", "micro_batch"} if config.get("workload") == "resnet" else set()
    return pairing_key(dict(config), without=_SPEED_ONLY - of_its_own)
