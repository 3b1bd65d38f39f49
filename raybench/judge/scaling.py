"""How much more GPUs bring: speed-up and efficiency along each curve, or the reason why there is no such number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from raybench.errors import UsageError
from raybench.judge.averages import averages_of
from raybench.judge.axes import ParsedConfigs
from raybench.judge.baseline import Baseline, baselines
from raybench.judge.cost import COSTS, Prices, warn_of, with_costs
from raybench.judge.curves import STRONG, Curve, curves_of, family_of
from raybench.judge.fingerprints import fingerprints_of
from raybench.judge.given import given_rows
from raybench.judge.like import cautions, errors, other_maths, total_is_equal, work_of
from raybench.judge.sides import SIDE, sides_of, used_rows
from raybench.measure.efficiency import band, efficiency, speedup
from raybench.measure.statistics import ratio_interval
from raybench.results.configs import value_at

_NOT_THE_JOB: Final = ("placement_s", "worker_start_s", "fingerprint_s")
"""Parts of `wall_s` that only some trials of a warm group have, and a check of our own."""
_SHAPE: Final = ("workload", "model", "precision")
BASELINE, OK, INVALID, NO_BASELINE, NOT_MEASURED = (
    "baseline", "ok", "invalid comparison", "no baseline", "not measured",
)  # fmt: skip
_FIGURES: Final = (
    "samples_per_s", "tokens_per_s", "tflops_per_gpu", "step_ms_mean", "wall_s", "speedup", "speedup_low",
    "speedup_high", "efficiency", "efficiency_low", "efficiency_high", "wall_speedup", "wall_efficiency",
    "j_per_sample", "j_per_token", "tokens_per_j",
)  # fmt: skip
_TEXTS: Final = (
    "work", "family", "workload", "model", "precision", "cluster", "device_kind", "gpu_model", "scaling", "status",
    "comparison_errors", "comparison_warnings", "outcome", "invalid_reasons", "warnings", "quality", "band", "advice",
)  # fmt: skip
_ORDER: Final = (
    "work", "curve", "family", "workload", "model", "precision", "cluster", "device_kind", "gpu_model", "scaling",
    "num_workers", "baseline_workers", "status", "comparison_errors", "comparison_warnings", "outcome", "valid",
    "invalid_reasons", "warnings", "quality", "attempted", "repeats", *_FIGURES, "band", "advice",
)  # fmt: skip
_VERDICT: Final = (
    "pair", "value", "family", "scaling", "baseline_workers", "status", "comparison_errors", "comparison_warnings",
    "speedup", "speedup_low", "speedup_high", "efficiency", "efficiency_low", "efficiency_high", "wall_speedup",
    "wall_efficiency", "band", "advice",
)  # fmt: skip
"""What is said of a side here; the rest is its figures."""
READ: Final = (
    "config", "work_key", "sweep_order", "repeat", "invalid_reasons", "warnings", "quality", "num_workers", "workload",
    "model", "precision", "device_kind", "gpu_model", "world_size", "cpu_threads", "num_nodes", "isolation",
    "effective_precision", "effective_strategy", "effective_attention", "backend", "raybench_version", "torch_version",
    "cuda_version", "driver_version", "ray_version", "parameters", "warmup_steps", "measured_steps",
    "measured_samples", "measured_tokens", "model_flops_per_step", "measured_s", "samples_per_s", "tokens_per_s",
    "mfu", "step_ms_mean", "step_ms_std", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes",
    "peak_host_memory_bytes", "energy_j", "wall_s", "placement_s", "worker_start_s",
    "fingerprint_s", "fingerprint_loss",
)  # fmt: skip
"""The columns of `trials` that scaling looks at, for `load`."""


@dataclass(frozen=True)
class Scaling:
    """The table of `scaling`, the averages over its shapes, how many quick rows gave way to full ones, and the GPUs
    and clusters without a price."""

    table: pd.DataFrame
    averages: pd.DataFrame
    superseded: int
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Seen:
    """All that a side is judged by."""

    sides: Mapping[tuple[int, int], Mapping[str, Any]]       # by curve and number of GPUs
    work: Mapping[tuple[int, int], Mapping[str, Any]]
    rates: Mapping[tuple[int, int], Sequence[float]]         # of the repeats


def scaling(
    rows: pd.DataFrame | str | Path,
    *,
    baseline: int | None = None,
    prices: Prices | None = None,
    include_invalid: bool = False,
    averages: bool = False,
) -> pd.DataFrame:
    """Rows of `load` (or a folder of results) as scaling curves: one row for each shape and number of GPUs.

    A curve is one config apart from the number of GPUs, on one cluster, GPU model and software. `scaling` is strong
    where the global batch (or the whole product) is the same at every number, weak where each GPU's batch is.
    `speedup` is throughput over that of `baseline_workers` GPUs, the smallest number of the curve or `baseline`;
    `efficiency` is its share of what as many GPUs would bring at best; both have a 95 % interval where both sides have
    repeats. `wall_speedup` is the same by whole durations (`wall_s` less the start of worker processes and the
    fingerprint), where the whole work was equal. `band` classes the efficiency. `status` is `ok`, `baseline`,
    `not measured` (failed or invalid), `no baseline`, or `invalid comparison`, which has its reasons in
    `comparison_errors` and no number; what only may matter is in `comparison_warnings`. With `prices` there are costs,
    as `compare` has them.

    With `averages`, instead: one row for each kind of curve and number of GPUs over its shapes, with the geometric
    and arithmetic mean of their speed-ups and that of all their work. Raises UsageError for an unknown baseline.
    """
    frame = given_rows(rows, READ, "scaling")
    found = scaling_of(frame, baseline=baseline, prices=prices, include_invalid=include_invalid)
    warn_of(found.unpriced)
    return found.averages if averages else found.table


def scaling_of(
    frame: pd.DataFrame,
    *,
    baseline: int | None = None,
    prices: Prices | None = None,
    include_invalid: bool = False,
) -> Scaling:
    """What `scaling` does, with what must be said beside the table."""
    if baseline is not None and (isinstance(baseline, bool) or not isinstance(baseline, int) or baseline < 1):
        raise UsageError(f"baseline={baseline}: give a number of GPUs, such as 1")
    frame = _measurements(frame)
    configs = ParsedConfigs.of(frame)
    rows, curves = _on_curves(frame, configs)
    best = _best_quality(rows)
    used = best[used_rows(best, include_invalid)]
    sides = _sides(best, used, include_invalid)
    unpriced: tuple[str, ...] = ()
    if prices is not None:
        sides, unpriced = with_costs(sides, used, configs, prices)
    kept = {int(str(pair)) for pair in best["pair"].unique()}
    verdicts = _verdicts([curve for curve in curves if curve.number in kept], _seen(sides, used), baseline)
    table = _laid_out(verdicts, sides)
    return Scaling(table, averages_of(table), len(rows) - len(best), unpriced)


def _on_curves(frame: pd.DataFrame, configs: ParsedConfigs) -> tuple[pd.DataFrame, list[Curve]]:
    """The rows, each on its curve, with the seconds that its window was to last and those of its run."""
    rows, curves = curves_of(frame, configs)
    rows["measured_s_asked"] = configs.spread([value_at(config, "measure.seconds") for config in configs.configs])
    rows["run_s"] = rows["wall_s"] - sum(rows[name].fillna(0.0) for name in _NOT_THE_JOB)
    return rows, curves


def _sides(best: pd.DataFrame, used: pd.DataFrame, include_invalid: bool) -> pd.DataFrame:
    """One row for each curve and number of GPUs, with its figures over the repeats."""
    sides = sides_of(best, include_invalid=include_invalid)
    sides["wall_s"] = used.groupby(SIDE, sort=False)["run_s"].mean().astype("float64").reindex(sides.index)
    sides["fingerprint"] = fingerprints_of(used)
    shaped: pd.DataFrame = sides.join(best.groupby(SIDE, sort=False)[list(_SHAPE)].first())
    return shaped


def _verdicts(curves: Sequence[Curve], seen: _Seen, baseline: int | None) -> list[dict[str, Any]]:
    """What is said of each side."""
    usable = {
        curve.number: frozenset(count for count in curve.counts if _is_usable(seen, curve, count)) for curve in curves
    }
    chosen = baselines(curves, usable, baseline)
    meant = {(base.other.number, base.workers) for base in chosen if base.other is not None}
    return [
        _told(seen, curve, base, count, is_meant=(curve.number, count) in meant)
        for curve, base in zip(curves, chosen, strict=True)
        for count in sorted(curve.attempted)
        if (curve.number, count) in seen.sides
    ]


def _measurements(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that were to measure something: a probe looks for a size, a profiled run for a cause."""
    measured: pd.DataFrame = frame[frame["quality"].isin(["full", "quick"])].reset_index(drop=True)
    if measured.empty:
        raise UsageError(f"there are no measurements to compare, only {' and '.join(frame['quality'].unique())} rows")
    return measured


def _best_quality(rows: pd.DataFrame) -> pd.DataFrame:
    """Where a work was measured in full on a cluster, the quick look before it no longer counts."""
    full = rows["quality"].eq("full") & rows["outcome"].eq("ok")
    measured = full.groupby([rows["asked"], rows["cluster"], rows["value"]]).transform("any")
    best: pd.DataFrame = rows[~measured | rows["quality"].eq("full")]
    return best


def _seen(sides: pd.DataFrame, used: pd.DataFrame) -> _Seen:
    records = {(int(str(row["pair"])), int(row["value"])): row for row in sides.reset_index().to_dict("records")}
    rates = used["tokens_per_s"].fillna(used["samples_per_s"]).astype("float64")
    repeats = {key: group.to_list() for key, group in rates.groupby([used[key] for key in SIDE], sort=False)}
    return _Seen(
        {key: {str(name): value for name, value in row.items()} for key, row in records.items()},
        work_of(used),
        {(int(str(pair)), int(str(value))): found for (pair, value), found in repeats.items()},
    )


def _is_usable(seen: _Seen, curve: Curve, count: int) -> bool:
    side = seen.sides.get((curve.number, count))
    return side is not None and bool(side["comparable"])


def _told(seen: _Seen, curve: Curve, base: Baseline, count: int, *, is_meant: bool) -> dict[str, Any]:
    """One row of the table, without the figures that its side has in any case."""
    row: dict[str, Any] = {
        "pair": curve.number, "value": count, "family": family_of(curve.config), "scaling": curve.kind,
        "baseline_workers": base.workers, "comparison_errors": "", "comparison_warnings": "",
    }  # fmt: skip
    if not _is_usable(seen, curve, count):
        return {**row, "status": NOT_MEASURED}
    if base.other is not None:
        return {**row, "status": INVALID, "comparison_errors": "; ".join(base.errors)}
    if base.workers is None or (len(curve.counts) == 1 and not is_meant):
        why = "; ".join(base.errors or ("no other number of GPUs",))
        return {**row, "baseline_workers": None, "status": NO_BASELINE, "comparison_errors": why}
    if count == base.workers:
        return {**row, "status": BASELINE, "speedup": 1.0, "efficiency": 1.0}
    return {**row, **_against(seen, curve, base.workers, count)}


def _against(seen: _Seen, curve: Curve, base_count: int, count: int) -> dict[str, Any]:
    """The figures of a side over its baseline's, or why there are none."""
    base_key, key = (curve.number, base_count), (curve.number, count)
    times = count / base_count
    wrong = errors(curve, seen.work[base_key], seen.work[key], times)
    if wrong:
        return {"status": INVALID, "comparison_errors": "; ".join(wrong)}
    base, side = seen.sides[base_key], seen.sides[key]
    faster = speedup(_rate(side), _rate(base))
    share = efficiency(faster, times)
    interval = ratio_interval(seen.rates[key], seen.rates[base_key])
    low, high = (np.nan, np.nan) if interval is None else (interval.low, interval.high)
    found = band(share)
    return {
        "status": OK,
        "comparison_warnings": "; ".join([
            *other_maths(curve, base["fingerprint"], side["fingerprint"]),
            *cautions(seen.work[base_key], seen.work[key], share),
        ]),
        "speedup": faster, "speedup_low": low, "speedup_high": high,
        "efficiency": share, "efficiency_low": low / times, "efficiency_high": high / times,
        **_by_wall(seen, curve, base_key, key),
        "band": found.name, "advice": found.advice,
    }  # fmt: skip


def _by_wall(seen: _Seen, curve: Curve, base_key: tuple[int, int], key: tuple[int, int]) -> dict[str, float]:
    """By whole durations: with equal work on each GPU (weak), the same duration is a speed-up by their number."""
    times = key[1] / base_key[1]
    base_s, side_s = seen.sides[base_key]["wall_s"], seen.sides[key]["wall_s"]
    if not total_is_equal(curve, seen.work[base_key], seen.work[key], times) or not (base_s > 0 and side_s > 0):
        return {}
    faster = speedup(base_s, side_s) * (1.0 if curve.kind == STRONG else times)
    return {"wall_speedup": faster, "wall_efficiency": efficiency(faster, times)}


def _rate(side: Mapping[str, Any]) -> float:
    return float(side["samples_per_s"] if pd.isna(side["tokens_per_s"]) else side["tokens_per_s"])


def _laid_out(told: Sequence[Mapping[str, Any]], sides: pd.DataFrame) -> pd.DataFrame:
    """In the order of the sweep, each curve by rising number of GPUs; figures as nullable numbers."""
    rows = pd.DataFrame(told, columns=list(_VERDICT)).join(sides.drop(columns=["num_workers"]), on=SIDE)
    rows = rows.rename(columns={"pair": "curve", "value": "num_workers"})
    ordered = rows.sort_values(["order", "curve", "num_workers"], ignore_index=True)
    costs = [name for name in COSTS if name in ordered]
    types = {**dict.fromkeys((*_FIGURES, *costs), "Float64"), **dict.fromkeys(_TEXTS, "string")}
    typed: pd.DataFrame = ordered[[*_ORDER, *costs]].astype({**types, "baseline_workers": "Int64"})
    return typed
