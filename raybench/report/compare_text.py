"""What a comparison puts against what: the line above its table, and what must be known of it below."""

from __future__ import annotations

import pandas as pd
from rich.text import Text

from raybench.judge.compare import Comparison
from raybench.report.tables import axes_of, counted
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


def below_text(comparison: Comparison) -> list[str]:
    """What a reader must know before passing a ratio on, one line each."""
    told, weak = [], comparison.weak_scaling
    if comparison.table["quotable"].eq(False).any():
        told.append("ratios marked ~ are not safe to quote (noisy, short or quick): raise measure or repeats")
    told += _other_maths(comparison.table)
    if weak is not None:
        told.append(
            f"weak scaling: {counted(weak.most, 'worker')} do {weak.batch_ratio:.3g}x the batch of "
            f"{weak.fewest} in a step"
        )
    if comparison.superseded:
        told.append(f"{counted(comparison.superseded, 'quick row')} left out: the work was measured in full too")
    return ["", *told] if told else []


def _other_maths(table: pd.DataFrame) -> list[str]:
    """Sides that computed something else than was asked, one line each."""
    found = table[table["other_maths"].fillna("").ne("")]
    axes = axes_of(table)
    rows = found[["work", "other_maths", *axes]].itertuples(index=False)
    told = [(work, ", ".join(map(str, values)), differing) for work, differing, *values in rows]
    return [literal(f"other maths: {work}, {side}: {differing}; not safe to quote") for work, side, differing in told]
