"""What a comparison puts against what: the line above its table."""

from __future__ import annotations

import pandas as pd
from rich.text import Text

from raybench.report.tables import axes_of
from raybench.report.text import literal


def compare_text(compared: pd.DataFrame) -> Text:
    """`by cluster · baseline a100 · ratio of tokens/s, with its 95 % interval over repeats`."""
    axes = axes_of(compared)
    first = compared[compared["baseline"]].head(1)
    told = [(axis, str(first[axis].iloc[0])) for axis in axes if len(first)]
    values = ", ".join(value if len(axes) == 1 else f"{axis} {value}" for axis, value in told) or "without a row"
    metric = "tokens/s" if compared["tokens_per_s"].notna().any() else "samples/s"
    if metric == "tokens/s" and compared.loc[compared["samples_per_s"].notna(), "tokens_per_s"].isna().any():
        metric = "tokens/s (samples/s where there are no tokens)"
    interval = ", with its 95 % interval over repeats" if compared["ratio_low"].notna().any() else ""
    return Text.assemble(
        (f"by {literal(', '.join(axes))}", "bold"),
        f" · baseline: {literal(values)} · ratio of {metric}{interval}",
        "\n",
    )
