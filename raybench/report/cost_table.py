"""What work costs in money and energy: a table of its own below a comparison, which has no room for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.table import Table
from rich.text import Text

from raybench.report.columns import Shown, as_text, rows_of, table
from raybench.report.numbers import significant, three
from raybench.report.tables import each

_COLUMNS = (
    Shown("$/h", "usd_per_hour", significant),
    Shown("$/epoch", "usd_per_epoch", significant, priority=3),
    Shown("$/run", "usd_per_run", significant, priority=4),
    Shown("$/1M samples", "usd_per_million_samples", significant),
    Shown("$/1M tokens", "usd_per_million_tokens", significant, priority=1),
    Shown("samples/$", "samples_per_usd", significant, priority=2),
    Shown("J/sample", "j_per_sample", three, priority=5),
    Shown("tokens/J", "tokens_per_j", three, priority=6),
)


def cost_parts(
    compared: pd.DataFrame, by: Sequence[str], unpriced: Sequence[str], width: int
) -> Iterator[Text | Table]:
    """The costs of a comparison's rows that have figures, by `work` and the columns `by`; nothing without prices."""
    if "usd_per_hour" not in compared:
        return
    yield Text("\ncost", style="bold")
    priced = compared[compared["samples_per_s"].notna()]
    repeated = priced["work"].eq(priced["work"].shift()).fillna(False)
    workers = f"{each(compared['device_kind'])}s"
    names = (Shown(name.replace("num_workers", workers), name, as_text, align="left") for name in by)
    columns = (Shown("work", "shown_work", align="left", least=8), *names, *_COLUMNS)
    yield table(columns, rows_of(priced.assign(shown_work=priced["work"].mask(repeated, ""))), width)
    for name in unpriced:
        yield Text(f"no price for {name}: its cost is blank", style="yellow")
