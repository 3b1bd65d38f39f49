"""Scaling as a person reads it: curves one under the other, and what is to be said of them above and below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd
from rich.table import Table
from rich.text import Text

from raybench.judge.scaling import Scaling
from raybench.report.columns import Row, Shown, rows_of, table
from raybench.report.numbers import count, is_null, percent, ratio, significant, three
from raybench.report.status import names, notes, told_outcome
from raybench.report.tables import counted, each
from raybench.report.text import literal

_EQUAL: Final = {"strong": "equal work in all", "weak": "equal work on each {each}"}
_STYLES: Final = {"near-perfect": "bold green", "good": "bold", "poor": "bold yellow", "none": "bold red"}


def scaling_table(scaled: pd.DataFrame, width: int) -> Table:
    """The result of `judge.scaling`: each curve named once."""
    one = each(scaled["device_kind"])
    several = scaled.loc[scaled["speedup"].notna(), "baseline_workers"].nunique() > 1
    columns = (
        Shown("work", "shown_work", align="left", least=12),
        Shown("cluster", "cluster", align="left", priority=2, if_varied=True),
        Shown("scaling", "scaling", align="left", priority=3, if_varied=True),
        Shown(f"{one}s", "num_workers", count),
        Shown("tokens/s", "tokens_per_s", significant, priority=4),
        Shown("samples/s", "samples_per_s", significant, priority=7 if scaled["tokens_per_s"].notna().any() else 4),
        Shown("speed-up", "", _speedup_of_several if several else _speedup, of_row=True, style=_style),
        Shown("eff. %", "efficiency", percent),
        Shown("wall s", "wall_s", three, priority=8),
        Shown("by wall", "wall_speedup", ratio, priority=5),
        Shown("class", "band", align="left", priority=1, style=_style),
        Shown("repeats", "repeats", lambda repeats: count(repeats or None), priority=9, if_varied=True),
        Shown("notes", "", _notes, align="left", of_row=True, priority=2, least=12, style=lambda row: "yellow"),
    )
    repeated = scaled["curve"].eq(scaled["curve"].shift()).fillna(False)
    return table(columns, rows_of(scaled.assign(shown_work=scaled["work"].mask(repeated, ""))), width)


def scaling_text(scaled: pd.DataFrame) -> Text:
    """`strong scaling (equal work in all) · speed-up of tokens/s against 1 GPU, with its 95 % interval`."""
    one, measured = each(scaled["device_kind"]), scaled[scaled["samples_per_s"].notna()]
    kinds = [kind for kind in _EQUAL if scaled["scaling"].eq(kind).any()]
    equal = f" ({_EQUAL[kinds[0]].format(each=one)})" if len(kinds) == 1 else ""
    against = sorted({int(value) for value in scaled.loc[scaled["speedup"].notna(), "baseline_workers"]})
    base = f"against {counted(against[0], one)}" if len(against) == 1 else f"against the smallest number of {one}s"
    tokens = measured["tokens_per_s"].notna()
    metric = "throughput" if tokens.any() and not tokens.all() else "tokens/s" if tokens.any() else "samples/s"
    interval = ", 95 % intervals over repeats" if scaled["speedup_low"].notna().any() else ""
    return Text.assemble(
        (f"{' and '.join(kinds)} scaling{equal}", "bold"), f" · speed-up of {metric} {base}{interval}", "\n"
    )


def below_scaling(found: Scaling, width: int) -> list[str | Text | Table]:
    """Averages over shapes, what the classes advise, and why there are numbers missing."""
    several = found.averages[found.averages["shapes"].gt(1)]
    parts: list[list[str | Text | Table]] = [
        [Text("speed-up over several shapes", style="bold"), average_table(several, width)] if len(several) else [],
        list(_advice(found.table)),
        list(_problems(found.table, "comparison_errors", "no number")),
        list(_problems(found.table, "comparison_warnings", "warning")),
        [f"{counted(found.superseded, 'quick row')} left out: the work was measured in full too"]
        if found.superseded
        else [],
    ]
    return [line for part in parts if part for line in ["", *part]]


def average_table(averages: pd.DataFrame, width: int) -> Table:
    """The averages over shapes, each under the name of what it is."""
    one = each(averages["device_kind"])
    columns = (
        Shown("cluster", "cluster", align="left", priority=2, if_varied=True),
        Shown("GPU", "gpu_model", align="left", priority=3, if_varied=True),
        Shown("precision", "precision", align="left", priority=1, if_varied=True),
        Shown("scaling", "scaling", align="left", priority=1, if_varied=True),
        Shown("shapes", "shapes", count),
        Shown(f"{one}s", "", lambda row: f"{row['num_workers']} vs {row['baseline_workers']}", of_row=True),
        Shown("geometric mean", "geometric_mean_speedup", ratio),
        Shown("arithmetic mean", "arithmetic_mean_speedup", ratio),
        Shown("all the work", "total_work_speedup", ratio),
        Shown("least", "min_speedup", ratio, priority=4),
        Shown("most", "max_speedup", ratio, priority=4),
    )
    return table(columns, rows_of(averages), width)


def _advice(scaled: pd.DataFrame) -> Iterator[Text]:
    """What each class that occurs means, best first."""
    classed = scaled[scaled["band"].notna()].sort_values("efficiency", ascending=False)
    for row in rows_of(classed.drop_duplicates("band")):
        yield Text.assemble((f"{row['band']}: ", _style(row)), literal(row["advice"]))


def _problems(scaled: pd.DataFrame, column: str, word: str) -> Iterator[Text]:
    """Errors and warnings apart, each reason once with all numbers of GPUs it is about."""
    told = scaled[scaled[column].fillna("").ne("")]
    one = each(scaled["device_kind"])
    for (work, status, reason), rows in told.groupby(["work", "status", column], sort=False):
        numbers = " and ".join(str(number) for number in rows["num_workers"])
        base = rows["baseline_workers"].iloc[0]
        against = "" if is_null(base) else f" against {base}"
        head = status if column == "comparison_errors" else word
        yield Text.assemble((f"{head}: ", "yellow"), literal(f"{work}, {numbers} {one}s{against}: {reason}"))


def _speedup(row: Row) -> str:
    """The figure, marked where warnings are without an interval to judge them by, or what there is instead."""
    if row["status"] == "not measured":
        return told_outcome(row)
    if row["status"] != "ok":
        return str(row["status"])
    told = ratio(row["speedup"], row["speedup_low"], row["speedup_high"])
    return f"{told} ⚠" if names(row["warnings"]) and is_null(row["speedup_low"]) else told


def _speedup_of_several(row: Row) -> str:
    """With the number that it is against, where not all curves have the same."""
    told = _speedup(row)
    return f"{told} vs {row['baseline_workers']}" if row["status"] == "ok" else told


def _style(row: Mapping[str, Any]) -> str:
    return "dim" if is_null(row["band"]) else _STYLES.get(str(row["band"]), "bold")


def _notes(row: Row) -> str:
    some = f"{row['repeats']} of {row['attempted']} repeats" if 0 < row["repeats"] < row["attempted"] else ""
    return ", ".join(filter(None, [some, notes(row)]))
