"""How much of a step is waiting for data, and for what: a source against the null source and against its own ceiling.

The null source is `device`, whose batches cost the host nothing. Accelerator utilisation is the step time with it over
the step time with another source, both trials of one worker group. The ceiling is what a source delivers when nothing
is computed (phase `load`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from raybench.judge.axes import ParsedConfigs
from raybench.judge.sides import SIDE
from raybench.measure.attribution import limit
from raybench.measure.statistics import Interval, combined_ratio_interval, geometric_mean, paired_ratio_interval
from raybench.results.configs import pairing_key, value_at

LIMIT: Final = "limit"
ATTRIBUTION: Final = (
    "ceiling_samples_per_s", "data_stall_fraction", "loader_cpu_share", "au", "au_low", "au_high", LIMIT,
)  # fmt: skip
"""The columns that a comparison along sources has beside the others."""
ATTRIBUTION_READ: Final = (
    "phase", "group_uid", "loader_workers", "loader_cpu_s", "data_stall_fraction", "samples_per_s_ci_low",
    "samples_per_s_ci_high",
)  # fmt: skip
NULL_SOURCE: Final = "device"
_LOAD: Final = "load"
_OF_THE_MODEL: Final = frozenset({
    "phase", "precision", "strategy", "compile", "optimizer", "attention", "activation_checkpointing", "channels_last",
    "cudnn_benchmark", "grad_clip", "bucket_mb", "zero_stage", "timing", "backend",
})  # fmt: skip
"""Settings that a source does not see: its ceiling is the same under all of them."""
_OF_THE_SOURCE: Final = frozenset({"source", "data_cache"})
"""Settings that the null source has otherwise, or not at all."""


def along_sources(axes: Sequence[str]) -> bool:
    """Whether rows are compared along where data comes from."""
    return any(name == "loader_workers" or name.partition(".")[0] == "source" for name in axes)


def split_ceilings(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows that computed, and those of the source alone; where there are none that computed, all are compared."""
    alone = frame["phase"].eq(_LOAD).fillna(False)
    if alone.all():
        return frame, frame.head(0)
    return frame[~alone].reset_index(drop=True), frame[alone].reset_index(drop=True)


def attributed(
    sides: pd.DataFrame, used: pd.DataFrame, configs: ParsedConfigs, ceilings: pd.DataFrame
) -> pd.DataFrame:
    """The sides (indexed by `SIDE`) with the columns of `ATTRIBUTION`; null where it cannot be told."""
    found: pd.DataFrame = sides.join(_waiting(used)).join(_utilisation(used, configs))
    found["ceiling_samples_per_s"] = _ceilings(found.index, used, configs, ceilings)
    found["limit"] = [_limit(row) for row in found.to_dict("records")]
    return found


def _waiting(used: pd.DataFrame) -> pd.DataFrame:
    """Stall and the share of their time that makers of batches computed, over the repeats' whole time."""
    numbers = used[["data_stall_fraction", "measured_s", "loader_cpu_s", "world_size"]].astype("float64")
    makers = numbers["world_size"] * used["loader_workers"].astype("float64").clip(lower=1)
    work = pd.DataFrame({
        **{key: used[key] for key in SIDE},
        "stalled_s": numbers["data_stall_fraction"] * numbers["measured_s"],
        "measured_s": numbers["measured_s"],
        "cpu_s": numbers["loader_cpu_s"],
        "made_s": numbers["measured_s"] * makers,
    })
    totals: pd.DataFrame = work.groupby(SIDE, sort=False).agg(lambda values: values.sum(skipna=False))
    shares: pd.DataFrame = pd.DataFrame({
        "data_stall_fraction": totals["stalled_s"] / totals["measured_s"],
        "loader_cpu_share": totals["cpu_s"] / totals["made_s"],
    })
    return shares


def _utilisation(used: pd.DataFrame, configs: ParsedConfigs) -> pd.DataFrame:
    """`au` with its interval by side: each row against that of the null source in its own repeat and group."""
    names = configs.spread([value_at(config, "source.name") for config in configs.configs])[used["row"].to_numpy()]
    keys = configs.spread([pairing_key(dict(config), without=_OF_THE_SOURCE) for config in configs.configs])
    rows = used.assign(
        null=names == NULL_SOURCE,
        computed=keys[used["row"].to_numpy()],
        step_s=used["measured_s"].astype("float64") / used["measured_steps"].astype("float64"),
    )
    rows = rows[rows["group_uid"].notna() & rows["phase"].ne(_LOAD)]
    together = ["cluster", "group_uid", "repeat", "computed"]
    null = dict(iter(rows[rows["null"]].groupby(together, sort=False)))
    found: dict[Any, list[tuple[float, Interval | None]]] = {}
    for row in rows[~rows["null"]].to_dict("records"):
        partners = null.get(tuple(row[name] for name in together))
        if partners is not None:
            found.setdefault(tuple(row[key] for key in SIDE), []).append(_ratio(row, partners))
    told = {side: _told(ratios) for side, ratios in found.items()}
    index = pd.MultiIndex.from_tuples(list(told), names=SIDE) if told else used.set_index(SIDE).index[:0]
    table: pd.DataFrame = pd.DataFrame(
        list(told.values()), index=index, columns=["au", "au_low", "au_high"], dtype="float64"
    )
    return table


def _ratio(row: dict[Any, Any], partners: pd.DataFrame) -> tuple[float, Interval | None]:
    """One row's utilisation, and its interval by the spread of steps within both trials."""
    au = geometric_mean(partners["step_s"].to_list()) / row["step_s"]
    of_null, of_row = _within(partners.to_dict("records")[0]), _within(row)
    return au, combined_ratio_interval(au, of_null, of_row) if of_null and of_row else None


def _within(row: dict[Any, Any]) -> Interval | None:
    """The interval of a trial's rate."""
    low, rate, high = (row[f"samples_per_s{end}"] for end in ("_ci_low", "", "_ci_high"))
    return None if pd.isna(low) or pd.isna(high) else Interval(estimate=float(rate), low=float(low), high=float(high))


def _told(ratios: Sequence[tuple[float, Interval | None]]) -> tuple[float, float, float]:
    """Over repeats where there are two, else by the steps within the trials."""
    values = [au for au, _ in ratios]
    interval = paired_ratio_interval(values) if len(values) > 1 else ratios[0][1]
    low, high = (np.nan, np.nan) if interval is None else (interval.low, interval.high)
    return geometric_mean(values), low, high


def _ceilings(
    sides: pd.Index[Any], used: pd.DataFrame, configs: ParsedConfigs, ceilings: pd.DataFrame
) -> npt.NDArray[np.float64]:
    """What each side's source delivered alone, total samples / total time; NaN where that was not measured."""
    good = ceilings[ceilings["outcome"].eq("ok") & ceilings["valid"].fillna(False)]
    of_good = ParsedConfigs.of(good)
    totals = good.assign(key=_source_keys(of_good)).groupby(["cluster", "key"], sort=False)[
        ["measured_samples", "measured_s"]].sum()
    rates = (totals["measured_samples"] / totals["measured_s"]).astype("float64")
    keys = used.assign(key=_source_keys(configs)[used["row"].to_numpy()]).groupby(SIDE, sort=False)[
        ["cluster", "key"]].first()
    wanted = pd.MultiIndex.from_frame(keys.reindex(sides))
    found: npt.NDArray[np.float64] = rates.reindex(wanted).to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _source_keys(configs: ParsedConfigs) -> npt.NDArray[Any]:
    return configs.spread([pairing_key(dict(config), without=_OF_THE_MODEL) for config in configs.configs])


def _limit(row: dict[Any, Any]) -> str | None:
    au, high = (None if pd.isna(row[name]) else float(row[name]) for name in ("au", "au_high"))
    return limit(
        au=au,
        au_high=high,
        delivered=_number(row["samples_per_s"]),
        ceiling=_number(row["ceiling_samples_per_s"]),
        stall=_number(row["data_stall_fraction"]),
        loader_cpu_share=_number(row["loader_cpu_share"]),
    )


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
