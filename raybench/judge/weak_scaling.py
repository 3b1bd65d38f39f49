"""Weak scaling: with more workers a step has a larger batch, so a throughput of 2x is no step of half the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from raybench.judge.axes import Axis, ParsedConfigs


class WeakScaling(NamedTuple):
    """The fewest and the most workers that did one work, and how many times the batch the most had."""

    fewest: int
    most: int
    batch_ratio: float


def weak_scaling(axes: Sequence[Axis], rows: pd.DataFrame, configs: ParsedConfigs) -> WeakScaling | None:
    """What a comparison by `num_workers` must be read with; None where the batch does not follow the workers."""
    if "num_workers" not in {axis.name for axis in axes}:
        return None
    batches = configs.spread([config.get("global_batch") or np.nan for config in configs.configs])[rows["row"]]
    steps = pd.DataFrame({"pair": rows["pair"], "workers": rows["num_workers"], "batch": batches}).astype(
        {"workers": "float64", "batch": "float64"}
    )
    of_work = steps.dropna().sort_values("workers").groupby("pair", sort=False)
    first, last = of_work.first(), of_work.last()
    grows = (first["batch"] < last["batch"]) & (first["workers"] < last["workers"])
    if not grows.any():
        return None
    fewest, most = first.loc[grows.idxmax()], last.loc[grows.idxmax()]
    return WeakScaling(int(fewest["workers"]), int(most["workers"]), most["batch"] / fewest["batch"])
