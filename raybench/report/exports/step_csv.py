"""The CSV and Markdown of the forward/backward benchmark: a line a trial, mean and standard deviation of a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from raybench.report.exports.facts import Exported
from raybench.report.exports.text import File, csv_text, markdown_text

COLUMNS: Final = (
    "model_size", "context_length", "batch_size", "warmup_steps", "measure_steps", "pass_type", "num_params",
    "mean_time_ms", "std_time_ms", "cv_percent",
)  # fmt: skip


def files(trials: Iterable[Exported]) -> Iterator[File]:
    """The two files of all trials."""
    rows = [_row(trial) for trial in trials]
    yield File("benchmark_results.csv", csv_text(COLUMNS, rows))
    yield File("benchmark_results.md", markdown_text(COLUMNS, rows))


def _row(trial: Exported) -> dict[str, Any]:
    cv = trial["step_ms_cv"]
    return {
        "model_size": trial["model"],
        "context_length": trial["seq_len"],
        "batch_size": trial["micro_batch"],
        "warmup_steps": trial["warmup_steps"],
        "measure_steps": trial["measured_steps"],
        "pass_type": trial["phase"],
        "num_params": trial["parameters"],
        "mean_time_ms": trial["step_ms_mean"],
        "std_time_ms": trial["step_ms_std"],
        "cv_percent": None if cv is None else 100 * cv,
    }
