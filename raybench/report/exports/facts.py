"""A trial as exporters need it: its row, its settings, its node and its measured epochs, all from Parquet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import pandas as pd

from raybench.report.columns import rows_of
from raybench.report.numbers import is_null
from raybench.results.configs import parsed, value_at
from raybench.results.load import load

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """The measured steps of one pass over the data set, by the rank that took longest; times in s and ms.

    `loss_rank0` and `loss` (over all ranks) are means; None without losses.
    """

    number: int                 # from 0
    steps: int
    wall_s: float
    step_ms_mean: float
    step_ms_p50: float
    step_ms_p95: float
    data_wait_ms_mean: float
    loss_rank0: float | None
    loss: float | None

    def per_s(self, work: float) -> float | None:
        """A rate over the epoch; None where it took no time."""
        return work / self.wall_s if self.wall_s > 0 else None


@dataclass(frozen=True)
class Exported:
    """One trial. Values of the row and of the node that are null are None."""

    row: Mapping[str, Any]
    config: Mapping[str, Any]
    node: Mapping[str, Any]
    epochs: Sequence[Epoch]

    def __getitem__(self, column: str) -> Any:
        return self.row[column]

    def setting(self, path: str) -> Any:
        """What was asked, at a dotted path of the config; None where there is no such setting."""
        return value_at(self.config, path)

    @property
    def started_at(self) -> datetime:
        """When the attempt started, in UTC."""
        started: datetime = self.row["started_at"].to_pydatetime()
        return started.astimezone(timezone.utc)

    @property
    def device(self) -> str:
        """The GPU's name, or `CPU`."""
        return str(self.row["gpu_model"] or "CPU")

    @property
    def passes(self) -> float | None:
        """How often the data set was measured; None where it has no size."""
        size = self.setting("source.num_samples")
        return self.row["measured_samples"] / size if size else None

    @property
    def is_unique(self) -> str:
        """What no other attempt has, for names: the beginning of its trial's id and of its own."""
        return safe(f"{self.row['trial_id']}-{self.row['trial_uid'][:8]}")


def exported(outs: str | Path | Sequence[str | Path], *, include_invalid: bool = False) -> Iterator[Exported]:
    """The trials under `outs` that ended `ok`, in the order they ran; invalid ones only when they are asked for."""
    trials, steps, nodes = load(outs), load(outs, table="steps"), load(outs, table="nodes")
    wanted = trials[trials["outcome"].eq("ok") & (trials["valid"] | include_invalid)]
    of_trial = dict(iter(steps[~steps["is_warmup"]].groupby("trial_uid", sort=False)))
    of_key = {row["node_key"]: row for row in map(_plain, rows_of(nodes))}
    for row in map(_plain, rows_of(wanted)):
        first_node = of_key.get(str(row["node_keys"]).split(";")[0], {})
        measured = of_trial.get(row["trial_uid"], steps.head(0))
        yield Exported(row, parsed(str(row["config"])), first_node, tuple(_epochs(measured)))


def safe(name: str) -> str:
    """A name for a file: letters, digits, `.`, `_` and `-`, as the tools wrote `NVIDIA_H200`; never a path."""
    return _UNSAFE.sub("_", name).strip("._")[:120] or "unnamed"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Null and what is no number in JSON as None, as anybody may have written the rows."""
    return {name: None if is_null(value) or value in (math.inf, -math.inf) else value for name, value in row.items()}


def _epochs(steps: pd.DataFrame) -> Iterator[Epoch]:
    """The epochs of one trial. A source without a size has one that never ends: number 0."""
    for number, rows in steps.assign(epoch=steps["epoch"].fillna(0)).groupby("epoch", sort=True):
        of_rank = rows.groupby("rank")["step_ms"].sum()
        slowest = rows[rows["rank"].eq(of_rank.idxmax())]
        times = slowest["step_ms"].astype("float64")
        yield Epoch(
            number=int(str(number)),
            steps=len(slowest),
            wall_s=float(times.sum()) / 1e3,
            step_ms_mean=float(times.mean()),
            step_ms_p50=float(times.quantile(0.50)),
            step_ms_p95=float(times.quantile(0.95)),
            data_wait_ms_mean=float(slowest["data_wait_ms"].astype("float64").mean()),
            loss_rank0=_mean(rows.loc[rows["rank"].eq(0), "loss"]),
            loss=_mean(rows["loss"]),
        )


def _mean(values: pd.Series[Any]) -> float | None:
    mean = values.astype("float64").mean()
    return float(mean) if not is_null(mean) and math.isfinite(mean) else None
