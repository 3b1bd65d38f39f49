"""The tables of the terminal, each a list of columns over rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from raybench.report.columns import ALWAYS, Row, Shown, filled_with, fit, rows_of, table
from raybench.report.numbers import count, gib, giga, is_null, percent, ratio, significant, size, spread, three
from raybench.report.short_id import short_ids
from raybench.report.status import marked_outcome, notes, outcome_style, told_outcome
from raybench.report.text import GROUP, NULL
from raybench.results.configs import NOT_KEYED, distinct_labels, parsed

if TYPE_CHECKING:
    import pandas as pd  # `plan` and `workloads` print tables too, and need no pandas

_NOTES: Final = "notes"
_LEFT: Final[Mapping[str, Any]] = {"align": "left"}


def _au(row: Row) -> str:
    return "" if is_null(row["au"]) else ratio(row["au"], row["au_low"], row["au_high"]).replace("x", "")


def _interval(row: Row) -> str:
    return spread(row["samples_per_s_ci_low"], row["samples_per_s_ci_high"], row["samples_per_s"])


def _speed_columns(per: str) -> tuple[Shown, ...]:
    return (
        Shown("tokens/s", "tokens_per_s", significant, priority=2),
        Shown(f"samples/s/{per}", "samples_per_s_per_gpu", significant, priority=7),
        Shown(f"TFLOP/s/{per}", "tflops_per_gpu", three, priority=4),
        Shown("MFU %", "mfu", percent, priority=3),
        Shown("step ms", "step_ms_mean", significant, priority=1),
        Shown("CV %", "step_ms_cv", percent, priority=3),
    )


_BANDWIDTH: Final = (
    Shown("memory GB/s", "memory_bandwidth_bytes_per_s", giga, priority=4),
    Shown("algbw GB/s", "algorithm_bandwidth_bytes_per_s", giga, priority=4),
    Shown("busbw GB/s", "bus_bandwidth_bytes_per_s", giga, priority=2),
)


_MEMORY: Final = (
    Shown("GPU GiB", "peak_memory_reserved_bytes", gib, priority=5),
    Shown("host GiB", "peak_host_memory_bytes", gib, priority=9),
)


def _trial_columns(per: str) -> tuple[Shown, ...]:
    return (
        Shown("id", "short_id", **_LEFT, spare=True, style=lambda row: "dim"),
        Shown("cluster", "cluster", **_LEFT, least=6, spare=True, if_varied=True),
        Shown("sweep", "sweep", **_LEFT, least=6, spare=True, if_varied=True),
        Shown("trial", "label", **_LEFT, least=12),
        Shown("repeat", "repeat", count, priority=2, if_varied=True),
        Shown("samples/s", "samples_per_s", significant, style=lambda row: "bold"),
        Shown("", "", _interval, priority=6, of_row=True),
        *_speed_columns(per),
        *_BANDWIDTH,
        Shown("data wait %", "data_stall_fraction", percent, priority=6),
        *_MEMORY,
        Shown("overhead s", "overhead_s", three, priority=8),
        Shown("outcome", "", told_outcome, **_LEFT, of_row=True, style=outcome_style),
        Shown(_NOTES, "", notes, **_LEFT, of_row=True, priority=2, least=15, style=lambda row: "yellow"),
    )


def trial_rows(frame: pd.DataFrame, among: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The rows of `load`, each with `label` and `short_id`, which is unique among the ids in `among` (the rows')."""
    texts = [str(text) for text in frame["config"].unique()]
    configs = [parsed(text) for text in texts]
    nothing = frozenset[str]()
    labels = dict(zip(texts, distinct_labels(configs, [nothing] * len(texts), NOT_KEYED | {"quality"}), strict=True))
    ids = short_ids(map(str, frame["trial_id"] if among is None else among))
    return [
        {str(name): value for name, value in row.items()}
        | {"label": labels[row["config"]], "short_id": ids[row["trial_id"]]}
        for row in frame.to_dict("records")
    ]


def trial_table(frame: pd.DataFrame, width: int, among: Iterable[str] | None = None) -> Table:
    """One line a row of `load`. Ids are unique among those in `among`."""
    columns, rows = _trial_columns(each(frame["device_kind"])), trial_rows(frame, among)
    if _notes_fit(columns, rows, width):
        return table(columns, rows, width)
    marked = [replace(column, show=marked_outcome) if column.header == "outcome" else column for column in columns]
    return table([column for column in marked if column.header != _NOTES], rows, width)


def _notes_fit(columns: Sequence[Shown], rows: Sequence[Row], width: int) -> bool:
    """Whether what must be known beside the outcome has a column, or there is nothing."""
    return any(filled.column.header == _NOTES for filled in fit(filled_with(columns, rows), width)) or not any(
        notes(row) for row in rows
    )


_DELIVERED: Final = (Shown("samples/s", "samples_per_s", significant, spare=True),)
_ATTRIBUTION: Final = (
    Shown("ceiling/s", "ceiling_samples_per_s", significant),
    Shown("samples/s", "samples_per_s", significant),
    Shown("stall %", "data_stall_fraction", percent),
    Shown("AU", "", _au, of_row=True),
    Shown("limit", "limit", **_LEFT),
)
"""What a source can deliver, what it did, and what compute lost by it: there, the ratio says nothing new."""


def compare_table(compared: pd.DataFrame, width: int) -> Table:
    """The result of `judge.compare`: works one under the other, each named once."""
    axes = axes_of(compared)
    columns = (
        Shown("work", "shown_work", **_LEFT, least=8),
        *([] if "cluster" in axes else [Shown("cluster", "cluster", **_LEFT, priority=1, if_varied=True)]),
        *(Shown(axis, axis, _axis_value, **_LEFT) for axis in axes),
        *(_ATTRIBUTION if "au" in compared else _DELIVERED),
        *_speed_columns(each(compared["device_kind"])),
        *_MEMORY,
        Shown("tokens/J", "tokens_per_j", significant, priority=8),
        Shown("repeats", "repeats", lambda repeats: count(repeats or None), priority=5, if_varied=True),
        Shown("ratio", "", _ratio, of_row=True, style=_ratio_style, priority=2 if "au" in compared else ALWAYS),
        Shown("", "best", lambda best: "★" if not is_null(best) and best else "", priority=6),
        Shown(_NOTES, "", _compare_notes, **_LEFT, of_row=True, priority=1, least=10, style=lambda row: "yellow"),
    )
    return table(columns, _named_once(compared), width)


def axes_of(compared: pd.DataFrame) -> list[str]:
    """The axes of a comparison: its columns between `pair` and `baseline`."""
    names = [str(name) for name in compared.columns]
    return names[names.index("pair") + 1 : names.index("baseline")]


def _named_once(compared: pd.DataFrame) -> list[dict[str, Any]]:
    repeated = compared["pair"].eq(compared["pair"].shift()).fillna(False)
    shown = compared.assign(shown_work=compared["work"].mask(repeated, ""))
    return rows_of(shown)


def _axis_value(value: Any) -> str:
    return NULL if is_null(value) else str(value)


def _ratio(row: Row) -> str:
    if row["baseline"]:
        return "baseline" if not is_null(row["ratio"]) else NULL
    told = ratio(row["ratio"], row["ratio_low"], row["ratio_high"])
    return told if is_null(row["quotable"]) or row["quotable"] else f"~{told} ⚠"


def _ratio_style(row: Row) -> str:
    if row["baseline"] or is_null(row["ratio"]):
        return "dim"
    low, high = (row["ratio"] if is_null(row[end]) else row[end] for end in ("ratio_low", "ratio_high"))
    return "bold green" if low > 1 else "bold red" if high < 1 else "bold"


def _compare_notes(row: Row) -> str:
    told = [] if told_outcome(row) == "ok" else [told_outcome(row)]
    if 0 < row["repeats"] < row["attempted"]:
        told.append(f"{row['repeats']} of {row['attempted']} repeats")
    return ", ".join([*told, *filter(None, [notes(row)])])


def _steps(row: Row) -> str:
    """`5 + 20`: warm-up and measured steps, or seconds."""
    extents = (row["warmup"], row["measure"])
    return " + ".join(f"{of['seconds']:g} s" if isinstance(of, Mapping) else str(of) for of in extents)


def _rows(row: Row) -> str:
    """A worker's rows of split work, `16 small` where they are too few to fill a GPU."""
    return f"{count(row['rows_per_rank'])}{' small' if row['small_share'] else ''}"


_PLAN: Final = (
    Shown("#", "position", count),
    Shown("id", "short_id", **_LEFT, spare=True, style=lambda row: "dim"),
    Shown("trial", "label", **_LEFT, least=12),
    Shown("repeat", "repeat", count, if_varied=True),
    Shown("workers", "num_workers", count, priority=5),
    Shown("parameters", "parameters", count, priority=3),
    Shown("GFLOP/step", "model_flops_per_step", giga, priority=3),
    Shown("rows/worker", "", _rows, priority=2, of_row=True),
    Shown("steps", "", _steps, of_row=True, priority=4),
    Shown("memory/worker", "memory_bytes", size, priority=1),
)


def plan_table(rows: Sequence[Row], width: int) -> Table:
    """Planned trials, as `workloads.describe` tells them, each with a `short_id`."""
    return table(_PLAN, rows, width)


_WORKLOADS: Final = (
    Shown("workload", "workload", **_LEFT),
    Shown("preset", "preset", **_LEFT),
    Shown("shape", "shape", **_LEFT, priority=6, least=60, wraps=True),
    Shown("parameters", "parameters", count, spare=True),
    Shown("GFLOP/sample", "flops_per_sample", giga, spare=True),
    Shown("GFLOP/token", "flops_per_token", giga, priority=3),
    Shown("seq_len", "seq_len", count, priority=4),
    Shown("batch", "micro_batch", count, priority=2),
    Shown("memory", "memory_bytes", size, priority=1),
    Shown("phase", "phase", priority=5),
    Shown("from", "origin", **_LEFT, priority=1, if_varied=True),
)


_MOST_PRESETS: Final = 14


def few_presets(rows: Sequence[Row]) -> list[Row]:
    """Of a workload with very many presets the default and the ends of each row of sizes: `all_reduce-1k`, `-1g`."""
    number = Counter(row["workload"] for row in rows)
    kinds = [(row["workload"], str(row["preset"]).rpartition("-")[0]) for row in rows]
    ends = {kinds.index(kind) for kind in kinds} | {len(kinds) - 1 - kinds[::-1].index(kind) for kind in kinds}
    return [
        row
        for index, row in enumerate(rows)
        if number[row["workload"]] <= _MOST_PRESETS or row["default"] or index in ends
    ]


def workload_table(rows: Sequence[Row], width: int) -> Table:
    """Workloads and their presets."""
    return table(_WORKLOADS, rows, width)


_COLUMNS: Final = (
    Shown("column", "name", **_LEFT, style=lambda row: "bold"),
    Shown("type", "kind", **_LEFT, priority=2),
    Shown("unit", "unit", **_LEFT, priority=1),
    Shown("over ranks", "over_ranks", **_LEFT, priority=4),
    Shown("null", "null", **_LEFT, priority=3),
    Shown("meaning", "meaning", **_LEFT, least=36, wraps=True),
)


def column_tables(rows: Sequence[Row], width: int) -> Iterator[RenderableType]:
    """The columns of the results' tables, each table under its name."""
    for name in dict.fromkeys(row["table"] for row in rows):
        of_table = [row for row in rows if row["table"] == name]
        yield Text.assemble((name, "bold"), f" · {counted(len(of_table), 'column')}\n")
        yield table(_COLUMNS, of_table, width)
        yield ""


def each(device_kinds: Iterable[Any]) -> str:
    """Whose share a per-worker figure is: a GPU's, unless there are CPU rows only."""
    known = {kind for kind in device_kinds if not is_null(kind)}
    return "worker" if known == {"cpu"} else "GPU"


def counted(number: int, noun: str) -> str:
    """`1 trial`, `16 trials`, `10 000 trials`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", GROUP)
