"""One side of a comparison: the repeats of one work at one value of the axes, averaged as total work / total time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

SIDE: Final = ["pair", "value"]
_MAXIMA: Final = ("peak_memory_allocated_bytes", "peak_memory_reserved_bytes", "peak_host_memory_bytes")
_SUMS: Final = ("measured_s", "measured_samples", "measured_tokens", "measured_steps", "energy_j")
_ONCE: Final = ("step_ms_mean", "step_ms_std", "model_flops_per_step", "mfu", "world_size")


def sides_of(rows: pd.DataFrame, *, include_invalid: bool) -> pd.DataFrame:
    """One row for each (`pair`, `value`) of `rows`, indexed by them: figures, and how its attempts ended.

    A side's figures are of its valid rows (of all `ok` ones with `include_invalid`, or where none is valid).
    `comparable` says whether they may be put against another side's.
    """
    used = rows[used_rows(rows, include_invalid)]
    sides: pd.DataFrame = _how_it_ended(rows, used).join(_figures(used))
    sides["comparable"] = sides["repeats"].gt(0) & (sides["valid"] | include_invalid)
    return sides


def used_rows(rows: pd.DataFrame, include_invalid: bool) -> pd.Series[bool]:
    """Which rows make the figures of their side."""
    ok: pd.Series[bool] = rows["outcome"].eq("ok").astype(bool)
    if include_invalid:
        return ok
    valid = rows["valid"].fillna(False).astype(bool)
    some_valid = valid.groupby([rows[key] for key in SIDE]).transform("any")
    used: pd.Series[bool] = ok & (valid | ~some_valid)
    return used


def _how_it_ended(rows: pd.DataFrame, used: pd.DataFrame) -> pd.DataFrame:
    grouped = rows.groupby(SIDE, sort=False)
    ended = grouped[["work", "order", "cluster", "outcome", "quality", "num_workers"]].first()
    ended["attempted"] = grouped.size()
    of_used = used.groupby(SIDE, sort=False)
    ended["repeats"] = of_used.size().reindex(ended.index, fill_value=0)
    ended.loc[ended["repeats"] > 0, "outcome"] = "ok"
    ended["quality"] = of_used["quality"].first().reindex(ended.index).fillna(ended["quality"])
    ended["valid"] = of_used["valid"].all().reindex(ended.index, fill_value=False).astype(bool)
    for column in ("invalid_reasons", "warnings"):
        ended[column] = _joined(used, column).reindex(ended.index, fill_value="")
    return ended


def _joined(rows: pd.DataFrame, column: str) -> pd.Series[str]:
    """The names in a `;`-joined column over all rows of a side, each once."""
    named = rows[rows[column].fillna("").ne("")]
    if named.empty:
        return pd.Series([], index=pd.MultiIndex.from_arrays([[], []], names=SIDE), dtype=object)
    joined: pd.Series[str] = named.groupby(SIDE, sort=False)[column].agg(
        lambda texts: ";".join(dict.fromkeys(name for text in texts for name in str(text).split(";")))
    )
    return joined


def _figures(used: pd.DataFrame) -> pd.DataFrame:
    """Figures over the repeats of each side. Unknown where any repeat does not know."""
    numbers = used[[*_SUMS, *_MAXIMA, *_ONCE]]
    work = numbers.astype("float64").assign(**{key: used[key] for key in SIDE})
    work["flops"] = work["model_flops_per_step"] * work["measured_steps"]
    work["mfu_s"] = work["mfu"] * work["measured_s"]
    work["step_ms_sum"] = work["step_ms_mean"] * work["measured_steps"]
    work["freedom"] = work["measured_steps"] - 1
    work["squares"] = work["step_ms_std"] ** 2 * work["freedom"]
    grouped = work.groupby(SIDE, sort=False)
    totals = _summed(grouped, [*_SUMS, "flops", "mfu_s", "step_ms_sum", "freedom", "squares"])
    first = used.groupby(SIDE, sort=False)[["device_kind", "gpu_model", "world_size"]].first()
    seconds, ranks = totals["measured_s"], first["world_size"].astype("float64")
    figures = first.assign(
        samples_per_s=totals["measured_samples"] / seconds,
        tokens_per_s=totals["measured_tokens"] / seconds,
        samples_per_s_per_gpu=totals["measured_samples"] / seconds / ranks,
        tokens_per_s_per_gpu=totals["measured_tokens"] / seconds / ranks,
        tflops_per_gpu=totals["flops"] / seconds / ranks / 1e12,
        mfu=totals["mfu_s"] / seconds,
        step_ms_mean=totals["step_ms_sum"] / totals["measured_steps"],
        j_per_sample=totals["energy_j"] / totals["measured_samples"],
        j_per_token=totals["energy_j"] / totals["measured_tokens"],
        tokens_per_j=totals["measured_tokens"] / totals["energy_j"].where(totals["energy_j"] > 0),
    )
    # Spread within the repeats: what lies between them is what the ratio's interval is about.
    spread_ms = np.sqrt(totals["squares"] / totals["freedom"].where(totals["freedom"] > 0))
    figures["step_ms_cv"] = spread_ms / figures["step_ms_mean"]
    joined: pd.DataFrame = figures.join(grouped[list(_MAXIMA)].max())
    return joined


def _summed(grouped: Any, columns: list[str]) -> pd.DataFrame:
    """Sums that are null where any addend is."""
    totals: pd.DataFrame = grouped[columns].sum()
    known: pd.DataFrame = totals.where(grouped[columns].count().eq(grouped.size(), axis=0))
    return known
