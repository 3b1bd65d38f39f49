"""Speed-ups of several shapes in one number: three such numbers, each called what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from raybench.measure.efficiency import efficiency, total_work_speedup
from raybench.measure.statistics import geometric_mean

_LIKE: Final = (
    "cluster", "device_kind", "gpu_model", "precision", "scaling", "quality", "baseline_workers", "num_workers",
)  # fmt: skip
"""Only curves that are alike in these are averaged: no machine, precision or kind of scaling is mixed with another."""
_AVERAGES: Final = (
    "geometric_mean_speedup", "geometric_mean_efficiency", "arithmetic_mean_speedup", "total_work_speedup",
    "min_speedup", "max_speedup",
)  # fmt: skip


def averages_of(scaled: pd.DataFrame) -> pd.DataFrame:
    """One row for each kind of curve and number of GPUs in a table of `scaling`, over the `shapes` that have a number.

    The geometric mean treats every shape alike and is the one to quote; the arithmetic mean of ratios is what other
    tools print, and is never less. The total is that of a step of each shape, one after the other, so that long steps
    weigh more: a weak curve's step counts for as long as the baseline's work takes.
    """
    ok = scaled[scaled["status"].eq("ok")]
    first_step_ms = scaled[scaled["status"].eq("baseline")].groupby("curve", sort=False)["step_ms_mean"].first()
    grouped = ok.assign(baseline_ms=ok["curve"].map(first_step_ms)).groupby(list(_LIKE), sort=False, dropna=False)
    rows = [{**dict(zip(_LIKE, key, strict=True)), **_averaged(group)} for key, group in grouped]
    table = pd.DataFrame(rows, columns=[*_LIKE, "shapes", *_AVERAGES])
    typed: pd.DataFrame = table.astype({**dict.fromkeys(_AVERAGES, "Float64"), "shapes": "int64"})
    return typed


def _averaged(group: pd.DataFrame) -> Mapping[str, Any]:
    speedups, baseline_ms = group["speedup"].astype("float64"), group["baseline_ms"].astype("float64")
    times = float(group["num_workers"].iloc[0]) / float(group["baseline_workers"].iloc[0])
    geometric = geometric_mean(speedups.to_list())
    return {
        "shapes": len(group),
        "geometric_mean_speedup": geometric,
        "geometric_mean_efficiency": efficiency(geometric, times),
        "arithmetic_mean_speedup": speedups.mean(),
        "total_work_speedup": total_work_speedup(baseline_ms.to_list(), (baseline_ms / speedups).to_list()),
        "min_speedup": speedups.min(),
        "max_speedup": speedups.max(),
    }
