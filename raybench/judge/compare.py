"""Which is faster, and by how much: equal work, put side by side along one or more axes, against one baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from raybench.errors import UsageError
from raybench.judge.attribution import ATTRIBUTION, ATTRIBUTION_READ, LIMIT, along_sources, attributed, split_ceilings
from raybench.judge.axes import Axis, ParsedConfigs, axis_names, left_out_of_pairs, pairs_of, read_axes, varied
from raybench.judge.cost import COSTS, Prices, warn_of, with_costs
from raybench.judge.fingerprints import fingerprints_of, maths_key, tells_of_other_maths
from raybench.judge.given import given_rows, without_probes
from raybench.judge.refusals import (
    refuse_mixed_work,
    refuse_nothing_in_common,
    refuse_quick_against_full,
    refuse_single_value,
    refuse_unlike_devices,
)
from raybench.judge.sides import SIDE, sides_of, used_rows
from raybench.judge.weak_scaling import WeakScaling, weak_scaling
from raybench.measure.statistics import ratio_interval
from raybench.record.trial import Trial
from raybench.results.configs import NOT_WORK, distinct_labels

FIGURES: Final = (
    "samples_per_s", "tokens_per_s", "samples_per_s_per_gpu", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu",
    "step_ms_mean", "step_ms_cv", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes",
    "peak_host_memory_bytes", "j_per_sample", "j_per_token", "tokens_per_j", "ratio", "ratio_low", "ratio_high",
)  # fmt: skip
_ENDED: Final = (
    "cluster", "outcome", "valid", "invalid_reasons", "warnings", "quality", "attempted", "repeats", "num_workers",
    "device_kind", "gpu_model",
)  # fmt: skip
_READ: Final = (
    "config", "work_key", "sweep_order", "repeat", "invalid_reasons", "warnings", "quality", "num_workers",
    "precision", "source", "model", "micro_batch", "seq_len", "device_kind", "gpu_model", "world_size",
    "measured_steps", "measured_samples", "measured_tokens", "model_flops_per_step", "measured_s", "samples_per_s",
    "tokens_per_s", "mfu", "step_ms_mean", "step_ms_std", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes",
    "peak_host_memory_bytes", "energy_j", "wall_s", "fingerprint_loss",
)  # fmt: skip
_NOISE: Final = r"\b(?:noisy_steps|wide_interval|short_window)\b"


@dataclass(frozen=True)
class Comparison:
    """A comparison and what its reader must know: `superseded` quick rows do not count, their work was measured in
    full too; `weak_scaling` where more workers do more work; `unpriced` are the GPUs and clusters without a price."""

    table: pd.DataFrame
    superseded: int
    weak_scaling: WeakScaling | None
    unpriced: tuple[str, ...] = ()


def columns_for(by: str) -> list[str]:
    """The columns of `trials` that a comparison by these axes looks at, for `load`."""
    known = {field.name for field in fields(Trial)}
    return list(dict.fromkeys([*_read(by), *(name for name in axis_names(by) if name in known)]))


def _read(by: str | Sequence[str]) -> tuple[str, ...]:
    return (*_READ, *ATTRIBUTION_READ) if along_sources(axis_names(by)) else _READ


def compare(
    rows: pd.DataFrame | str | Path,
    *,
    by: str | Sequence[str] = "cluster",
    baseline: Any = None,
    prices: Prices | None = None,
    allow_quick: bool = False,
    include_invalid: bool = False,
) -> pd.DataFrame:
    """Rows of `load` (or a folder of results), paired on the work they did and put side by side along the axes `by`.

    One row for each work and value: `work` (a label), a column an axis, `baseline` (whether it is the one), how its
    attempts ended, the figures over its repeats (total work / total time), and `ratio`: its throughput over the
    baseline's, in tokens where there are tokens, with a 95 % interval where both sides have repeats. `quotable` is
    false for a ratio without an interval of which a side is noisy or short, and for one of quick rows. `best` marks the
    highest throughput of each work, all of those that tie. No figures for what failed, no ratio for what is not valid.
    Quick rows of a work that was measured in full do not count.
    Along sources there are `ceiling_samples_per_s` (what the source delivered alone, in phase `load`),
    `data_stall_fraction`, `au` with its interval (the step time with source `device` in the same worker group over that
    with this one) and `limit`, in a word what a faster step needs first (`measure.attribution.limit`).
    `baseline` is a value of the axis (of each axis: a list, or joined by commas); else the smallest number, the
    alphabetically first cluster, or the value that the sweep lists first.

    With `prices` (the path of a `prices.yaml`, or a mapping of its form) there are costs: `usd_per_hour`,
    `usd_per_epoch`, `usd_per_run`, `usd_per_million_samples`, `usd_per_million_tokens`, `samples_per_usd`,
    `tokens_per_usd`; what has no price is blank, with a `MissingPriceWarning`.

    Raises UsageError for an unknown axis or baseline, ComparisonError for what must not be compared.
    """
    frame = given_rows(rows, _read(by), "compare")
    compared = side_by_side(
        frame, by=by, baseline=baseline, prices=prices, allow_quick=allow_quick, include_invalid=include_invalid
    )
    warn_of(compared.unpriced)
    return compared.table


def side_by_side(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = "cluster",
    baseline: Any = None,
    prices: Prices | None = None,
    allow_quick: bool = False,
    include_invalid: bool = False,
) -> Comparison:
    """What `compare` does, with what must be said beside the table."""
    frame, ceilings = _apart(without_probes(frame), by)
    configs = ParsedConfigs.of(frame)
    axes = read_axes(by, frame, configs)
    rows = _paired(frame, axes, configs)
    refuse_single_value(axes, rows, configs)
    refuse_nothing_in_common(axes, rows, configs)
    refuse_mixed_work(rows, configs)
    base = _baseline(axes, baseline)
    best = _best_quality(rows)
    sides = sides_of(best, include_invalid=include_invalid)
    refuse_unlike_devices(sides)
    if not allow_quick:
        refuse_quick_against_full(sides)
    used = best[used_rows(best, include_invalid)]
    if along_sources(axis_names(by)):
        sides = attributed(sides, used, configs, ceilings)
    unpriced: tuple[str, ...] = ()
    if prices is not None:
        sides, unpriced = with_costs(sides, used, configs, prices)
    sides = _with_maths(sides, used, configs)
    table = _laid_out(_with_ratios(sides, used, base), axes, base)
    return Comparison(table, len(rows) - len(best), weak_scaling(axes, rows, configs), unpriced)


def _apart(frame: pd.DataFrame, by: str | Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Along sources, rows of a source alone are no side of their own: they are the ceilings of the others."""
    return split_ceilings(frame) if along_sources(axis_names(by)) else (frame, frame.head(0))


def _paired(frame: pd.DataFrame, axes: Sequence[Axis], configs: ParsedConfigs) -> pd.DataFrame:
    """The rows that have a value on every axis, with `pair`, `value` (a number), `work`, `order` and `row`."""
    shape = [max(len(axis.levels), 1) for axis in axes]
    placed = np.all([axis.codes >= 0 for axis in axes], axis=0)
    codes = [np.maximum(axis.codes, 0) for axis in axes]
    pairs = pairs_of(frame, axes, configs)
    if _vary_within_clusters(frame, axes):
        pairs = pairs + "@" + frame["cluster"].to_numpy(dtype=object)
    rows: pd.DataFrame = frame.assign(
        pair=pairs,
        value=np.ravel_multi_index(codes, shape),
        work=configs.spread(_labels(axes, configs)),
        row=np.arange(len(frame)),
    )[placed]
    rows["order"] = rows.groupby("pair", sort=False)["sweep_order"].transform("min").astype("int64")
    return rows


def _labels(axes: Sequence[Axis], configs: ParsedConfigs) -> list[str]:
    """What each config's work is called: the same for all of a pair, so without what may differ in it."""
    left_out = [left_out_of_pairs(config, varied(axes)) for config in configs.configs]
    return distinct_labels(configs.configs, left_out, NOT_WORK)


def _vary_within_clusters(frame: pd.DataFrame, axes: Sequence[Axis]) -> bool:
    """Whether to compare inside each cluster: yes for what varies there (workers, precision), no for what only tells
    clusters apart (the cluster itself, usually the GPU model). Rows of two clusters are never each other's repeats.
    """
    if any(axis.name == "cluster" for axis in axes):
        return False
    return any((pd.Series(axis.codes).groupby(frame["cluster"].to_numpy()).nunique() > 1).any() for axis in axes)


def _best_quality(rows: pd.DataFrame) -> pd.DataFrame:
    """Where a work was measured in full, the quick look before it no longer counts."""
    full = rows["quality"].eq("full") & rows["outcome"].eq("ok")
    best: pd.DataFrame = rows[~full.groupby([rows[key] for key in SIDE]).transform("any") | rows["quality"].eq("full")]
    return best


def _baseline(axes: Sequence[Axis], asked: Any) -> int:
    """The baseline's `value`. Each axis' levels are in order, so by default it is the first of each."""
    wanted: Sequence[Any] = [None] * len(axes) if asked is None else _value_of_each(asked, len(axes))
    if len(wanted) != len(axes):
        raise UsageError(f"baseline={asked}: give one value for each of {', '.join(axis.name for axis in axes)}")
    codes = [_level(axis, value) for axis, value in zip(axes, wanted, strict=True)]
    return int(np.ravel_multi_index(codes, [len(axis.levels) for axis in axes]))


def _value_of_each(asked: Any, axes: int) -> list[Any]:
    if isinstance(asked, str):
        return [text.strip() for text in asked.split(",")] if axes > 1 else [asked]
    return list(asked) if isinstance(asked, list | tuple) else [asked]


def _level(axis: Axis, asked: Any) -> int:
    """The place of a value, given as such or as it is printed."""
    if asked is None:
        return 0
    names = [str(level) for level in axis.levels]
    if str(asked) not in names:
        raise UsageError(f"baseline={asked}: no such {axis.name}; there are {', '.join(names)}")
    return names.index(str(asked))


def _with_maths(sides: pd.DataFrame, used: pd.DataFrame, configs: ParsedConfigs) -> pd.DataFrame:
    """`maths` is equal for sides that should compute the same loss; `fingerprint` is the loss that they did."""
    keys = configs.spread([maths_key(config) for config in configs.configs])
    of_sides = used.assign(maths=keys[used["row"]]).groupby(SIDE, sort=False)[["maths", "precision"]].first()
    known: pd.DataFrame = sides.join(of_sides.assign(fingerprint=fingerprints_of(used)))
    return known


def _with_ratios(sides: pd.DataFrame, used: pd.DataFrame, base: int) -> pd.DataFrame:
    """`ratio`, `ratio_low`, `ratio_high` of each side that may be compared, against its pair's baseline."""
    sides = sides.reset_index()
    sides["baseline"] = sides["value"].eq(base)
    rate = sides["tokens_per_s"].fillna(sides["samples_per_s"])
    of_base = rate[sides["baseline"] & sides["comparable"]]
    of_base.index = pd.Index(sides.loc[of_base.index, "pair"])
    sides["ratio"] = (rate / sides["pair"].map(of_base)).where(sides["comparable"])
    sides["ratio_low"] = sides["ratio_high"] = np.nan
    _add_intervals(sides, used, base)
    sides["other_maths"] = _other_maths(sides)
    sides["quotable"] = _quotable(sides)
    most = rate.where(sides["comparable"]).groupby(sides["pair"]).transform("max")
    sides["best"] = rate.eq(most).astype("boolean").where(sides["comparable"])
    return sides


def _other_maths(sides: pd.DataFrame) -> list[str]:
    """What tells that a side computed something else than its baseline, which asked for the same; else nothing."""
    seen = ["maths", "fingerprint", "precision"]
    bases = sides[sides["baseline"] & sides["comparable"]].set_index("pair")[seen].add_suffix("_of_base")
    put_against = sides.join(bases, on="pair")
    alike = put_against["comparable"] & put_against["maths"].eq(put_against["maths_of_base"])
    columns = (put_against[name] for name in ("fingerprint_of_base", "fingerprint", "precision_of_base", "precision"))
    return [
        tells_of_other_maths(base, side, (str(base_precision), str(precision))) if like else ""
        for like, base, side, base_precision, precision in zip(alike, *columns, strict=True)
    ]


def _quotable(sides: pd.DataFrame) -> pd.Series[Any]:
    """Whether a ratio may be passed on: null where there is none. Noise on either side needs repeats to judge it."""
    quick = sides["quality"].ne("full")
    noisy = sides["warnings"].str.contains(_NOISE)
    base = sides["baseline"] & sides["comparable"]
    of_base = pd.DataFrame({"quick": quick, "noisy": noisy})[base].set_index(sides.loc[base, "pair"])
    doubtful = quick | sides["other_maths"].ne("") | sides["pair"].map(of_base["quick"]).eq(True)
    unsure = (noisy | sides["pair"].map(of_base["noisy"]).eq(True)) & sides["ratio_low"].isna()
    told: pd.Series[Any] = (~(doubtful | unsure)).astype("boolean").where(sides["ratio"].notna() & ~sides["baseline"])
    return told


def _add_intervals(sides: pd.DataFrame, used: pd.DataFrame, base: int) -> None:
    """Intervals where both sides have repeats; the baseline against itself has none."""
    wanted = sides.index[sides["ratio"].notna() & ~sides["baseline"] & sides["repeats"].gt(1)]
    if wanted.empty:
        return
    rates = used["tokens_per_s"].fillna(used["samples_per_s"]).astype("float64")
    repeats = {key: group.to_list() for key, group in rates.groupby([used[key] for key in SIDE], sort=False)}
    keys = sides.loc[wanted, SIDE].itertuples(index=False)
    intervals = [ratio_interval(repeats[pair, value], repeats[pair, base]) for pair, value in keys]
    sides.loc[wanted, "ratio_low"] = [np.nan if interval is None else interval.low for interval in intervals]
    sides.loc[wanted, "ratio_high"] = [np.nan if interval is None else interval.high for interval in intervals]


def _laid_out(sides: pd.DataFrame, axes: Sequence[Axis], base: int) -> pd.DataFrame:
    """In the order of the sweep, each work's baseline first; figures as nullable numbers."""
    sides["baseline_first"] = sides["value"].ne(base)
    ordered = sides.sort_values(["order", "work", "pair", "baseline_first", "value"], ignore_index=True)
    codes = np.unravel_index(ordered["value"].to_numpy(), [len(axis.levels) for axis in axes])
    values: dict[str, Any] = {
        axis.name: [axis.levels[code] for code in places] for axis, places in zip(axes, codes, strict=True)
    }
    numbers = [name for name in (*FIGURES, *ATTRIBUTION, *COSTS) if name in ordered and name != LIMIT]
    figures = ordered[numbers].astype("Float64")
    ended = ordered[[name for name in _ENDED if name not in values]]
    parts = [ordered[["work", "pair"]], pd.DataFrame(values), ordered[["baseline"]], ended, figures]
    last = [name for name in (LIMIT, "quotable", "best", "other_maths") if name in ordered]
    laid_out: pd.DataFrame = pd.concat([*parts, ordered[last]], axis=1)
    typed: pd.DataFrame = laid_out.astype(dict.fromkeys(_words(laid_out), "string"))
    return typed


def _words(frame: pd.DataFrame) -> list[Any]:
    """The columns of text, which came by different ways."""
    return [name for name in frame if pd.api.types.infer_dtype(frame[name], skipna=True) in ("string", "empty")]
