"""What is said about a run, as lines of text: pure functions of what the run tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from raybench.record.run import RunClosed, RunOpened
from raybench.record.trial import OUTCOMES, Trial
from raybench.report.numbers import count, is_null, seconds, significant, spread
from raybench.report.status import notes, outcome_style, told_outcome
from raybench.report.text import NULL, literal
from raybench.version import __version__

if TYPE_CHECKING:
    import pandas as pd

LABEL_WIDTH: Final = 42
_AXES: Final = ("num_workers", "precision", "source", "model", "micro_batch", "seq_len", "compile")
_FIGURE_WIDTH: Final = 18


def opening_lines(run: RunOpened) -> tuple[Text, Text]:
    """Which Ray and why; then what there is to do."""
    first = Text.assemble((f"raybench {__version__}", "bold"), f" · {literal(run.hardware)} · {literal(run.ray)}")
    done = f" · {count(run.done_earlier)} done earlier" if run.done_earlier else ""
    plan = f" · {count(run.planned)} trials{done} · {count(run.to_run)} to run · cluster {run.cluster}"
    where = f" · results in {run.out}"
    return first, Text.assemble((f"sweep {literal(run.sweep)}", "bold"), f" {literal(plan + where)}")


def trial_line(trial: Trial, label: str, number: int, planned: int, duration_s: float) -> Text:
    """`[ 7/24] encdec 3.5m s64 b4 bf16 device ×2   1 234 samples/s ±0.4 %   1.3 s  ok`."""
    row = asdict(trial)
    beside = notes(row)
    return Text.assemble(
        (f"[{number:>{len(str(planned))}}/{planned}] ", "dim"),
        f"{literal(label):<{LABEL_WIDTH}} ",
        (f"{_figure(row):>{_FIGURE_WIDTH}}", "bold"),
        f" {_spread(row):<8} {seconds(duration_s):>6}  ",
        (told_outcome(row), outcome_style(row)),
        (f"  {beside}" if beside else "", "yellow"),
    )


def _figure(row: Mapping[str, Any]) -> str:
    return NULL if is_null(row["samples_per_s"]) else f"{significant(row['samples_per_s'])} samples/s"


def _spread(row: Mapping[str, Any]) -> str:
    return spread(row["samples_per_s_ci_low"], row["samples_per_s_ci_high"], row["samples_per_s"])


def outcome_counts(outcomes: Mapping[str, int], not_run: int) -> str:
    """`22 ok, 1 oom_cuda, 3 not run`, in the order in which outcomes are documented."""
    order = {outcome: index for index, outcome in enumerate(OUTCOMES)}
    told = [f"{count(outcomes[name])} {name}" for name in sorted(outcomes, key=lambda name: order.get(name, 99))]
    return ", ".join([*told, *([f"{count(not_run)} not run"] if not_run else [])]) or "nothing was run"


def closing_line(run: RunClosed) -> Text:
    """How the planned trials ended, and whether their numbers may be used."""
    told = Text(outcome_counts(run.outcomes, run.not_run), style="bold green" if run.exit_code == 0 else "bold yellow")
    if run.invalid:
        told.append(f" · of the ok {count(run.invalid)} not valid: `raybench show` says why", style="yellow")
    return told


def next_line(run: RunClosed, by: str | None) -> Text:
    """The command to type next: what continues an unfinished run, else what looks at a finished one."""
    if run.exit_code:
        return Text.assemble(("to go on:  ", "dim"), literal(run.continue_command))
    look = f"raybench compare {run.out} --by {by}" if by else f"raybench show {run.out}"
    return Text.assemble(("next:  ", "dim"), literal(look))


def varying_axis(rows: pd.DataFrame) -> str | None:
    """What a finished run is best compared along; None where nothing varies."""
    good = rows[rows["outcome"].eq("ok")]
    return next((axis for axis in _AXES if good[axis].nunique() > 1), None)
