"""What each side of a comparison costs: a price book's USD an hour, put on its figures by cluster and GPU model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from raybench.judge.axes import ParsedConfigs
from raybench.judge.sides import SIDE
from raybench.measure.cost import Floats, per_usd, usd_of, usd_per_million
from raybench.results.configs import value_at
from raybench.spec.prices import PriceBook, read_prices

Prices = str | os.PathLike[str] | Mapping[str, Any] | PriceBook
COSTS: Final = (
    "usd_per_hour", "usd_per_epoch", "usd_per_run", "usd_per_million_samples", "usd_per_million_tokens",
    "samples_per_usd", "tokens_per_usd",
)  # fmt: skip


class MissingPriceWarning(UserWarning):
    """A GPU model or cluster without a price: what it cost is not known."""


def with_costs(
    sides: pd.DataFrame, used: pd.DataFrame, configs: ParsedConfigs, prices: Prices
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The sides with the columns `COSTS`, and what has no price: `GPU NVIDIA H200`, `cluster a (no GPU)`.

    `usd_per_run` is of whole trials, warm-up and starting included; `usd_per_epoch` of one pass over the data set at
    the measured rate. A cluster's price is for all of it, however many of its GPUs are used.
    """
    prices_per_hour, missing = _hourly(sides, read_prices(prices))
    hourly = np.array(prices_per_hour, dtype=np.float64)
    samples_per_s, tokens_per_s = (_floats(sides[name]) for name in ("samples_per_s", "tokens_per_s"))
    sized = used.assign(size=configs.spread([_size(config) for config in configs.configs])[used["row"]])
    of_side = sized.astype({"size": "float64", "wall_s": "float64"}).groupby(SIDE, sort=False)
    data_set, wall_s = of_side["size"].first().reindex(sides.index), of_side["wall_s"].mean().reindex(sides.index)
    costs = {
        "usd_per_hour": hourly,
        "usd_per_epoch": usd_of(hourly, _floats(data_set) / samples_per_s),
        "usd_per_run": usd_of(hourly, _floats(wall_s)),
        "usd_per_million_samples": usd_per_million(hourly, samples_per_s),
        "usd_per_million_tokens": usd_per_million(hourly, tokens_per_s),
        "samples_per_usd": per_usd(hourly, samples_per_s),
        "tokens_per_usd": per_usd(hourly, tokens_per_s),
    }
    return sides.assign(**{name: costs[name] for name in COSTS}), missing


def warn_of(missing: Sequence[str]) -> None:
    """Tell a caller from Python what has no price."""
    if missing:
        warnings.warn(f"no price for {', '.join(missing)}: its cost is blank", MissingPriceWarning, stacklevel=3)


def _floats(values: pd.Series[Any]) -> Floats:
    """As numpy has them, NaN where null."""
    return values.astype("float64").to_numpy(dtype=np.float64, na_value=np.nan)


def _size(config: Mapping[str, Any]) -> float:
    size = value_at(config, "source.num_samples")
    return float(size) if isinstance(size, int) else np.nan


def _hourly(sides: pd.DataFrame, book: PriceBook) -> tuple[list[float], tuple[str, ...]]:
    """USD an hour of each side that has figures, and what lacks a price."""
    hourly: list[float] = []
    missing: dict[str, None] = {}
    for cluster, model, ranks, repeats in zip(
        sides["cluster"], sides["gpu_model"], sides["world_size"], sides["repeats"], strict=True
    ):
        models = [] if pd.isna(model) or pd.isna(ranks) else _models(str(model), int(ranks))
        price = book.usd_per_hour(str(cluster), models) if repeats else None
        hourly.append(np.nan if price is None else price)
        if price is None and repeats:
            missing |= dict.fromkeys(f"GPU {name}" for name in models if book.usd_per_hour("", [name]) is None)
            missing |= {} if models else {f"cluster {cluster} (no GPU)": None}
    return hourly, tuple(missing)


def _models(gpu_model: str, ranks: int) -> list[str]:
    """The GPU of each rank: one model for all, or, where a group is mixed, a name a rank, joined by `;`."""
    names = gpu_model.split(";")
    return names if len(names) == ranks else [gpu_model] * ranks
