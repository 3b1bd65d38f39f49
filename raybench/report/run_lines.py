"""What is said about a run, as lines of text: pure functions of what the run tells."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from raybench.record.run import RunClosed, RunOpened, StageFound
from raybench.record.trial import OUTCOMES, Trial
from raybench.report.numbers import count, flop_rate, giga, is_null, seconds, significant, spread
from raybench.report.status import mark, notes, outcome_style, told_outcome
from raybench.report.text import NULL, literal, middle_shortened, shortened
from raybench.version import __version__

if TYPE_CHECKING:
    import pandas as pd

GAP: Final = 2
_MOVED: Final = (
    ("bus ", "bus_bandwidth_bytes_per_s"),
    ("", "algorithm_bandwidth_bytes_per_s"),
    ("", "memory_bandwidth_bytes_per_s"),
)
WIDE: Final = 100         # from here on a line has room for the interval
FIGURES_END: Final = 61   # label and figure together, the figure to the right: lines align, and either may be long
ROOMY, ROOMY_END = 140, 81     # from this width on they have more, and labels of many axes stay whole
MAX_NOTE: Final = 200
LEAST_NOTE: Final = 8     # less of a note says nothing
_AXES: Final = ("num_workers", "nodes", "precision", "source", "model", "micro_batch", "seq_len", "compile")


def opening_lines(run: RunOpened) -> tuple[Text, ...]:
    """Which Ray and why; then what there is to do, and what was looked at before."""
    first = Text.assemble((f"raybench {__version__}", "bold"), f" · {literal(run.hardware)} · {literal(run.ray)}")
    done = f" · {count(run.done_earlier)} done earlier" if run.done_earlier else ""
    plan = f" · {count(run.planned)} trials{done} · {count(run.to_run)} to run · cluster {run.cluster}"
    where = f" · results in {run.out}"
    second = Text.assemble((f"sweep {literal(run.sweep)}", "bold"), f" {literal(plan + where)}")
    if not run.preflight:
        return first, second
    found = f"{count(run.findings)} finding{'s' if run.findings != 1 else ''}" if run.findings else "nothing found"
    return first, second, Text(f"preflight: {found} on {literal(run.preflight)}", style="dim")


def trial_line(trial: Trial, label: str, number: int, planned: int, duration_s: float, width: int) -> Text:
    """`[ 7/24] encdec 3.5m s64 b4 bf16 device ×2   1 234 samples/s ±0.4 %   1.3 s  ok`, at most `width` characters.

    Where that is too narrow, gaps and the interval go first, then the notes are shortened, and last the label.
    """
    row = asdict(trial)
    head = f"[{number:>{len(str(planned))}}/{planned}] "
    ended = f"{'':{GAP}}{told_outcome(row)}"
    room = width - len(head) - len(ended)
    body = _body(row, literal(label), seconds(duration_s), room, width)
    beside = _beside(row, room - len(body) - GAP)
    return Text.assemble(
        (head, "dim"), body, (ended, outcome_style(row)), (f"{'':{GAP}}{beside}" if beside else "", "yellow")
    )


def _body(row: Mapping[str, Any], label: str, took: str, room: int, width: int) -> Text:
    """Label, figure and time, in a room that what comes behind them shares: a mark at least, and any reason whole."""
    figure, reach = _figure(row), f" {_spread(row):<8}" if width >= WIDE else ""
    end = ROOMY_END if width >= ROOMY else FIGURES_END
    behind = f"{reach} {took:>6}"
    if figure == NULL and end + len(behind) + GAP + len(notes(row, MAX_NOTE)) > room:
        figure, behind = "", f"{'':{GAP}}{took}"
        field = min(len(label), room - len(behind))
    else:
        field = min(end, room - len(behind) - GAP - max(len(mark(row)), 1)) - len(figure)
    named = middle_shortened(label, field - GAP if figure else field)
    return Text.assemble(f"{named:<{max(field, 0)}}", (figure, "bold"), behind)


def _beside(row: Mapping[str, Any], room: int) -> str:
    """As much of the notes as there is room for: names lose their end, of an error both ends count."""
    told = notes(row, MAX_NOTE)
    if len(told) > room and room < LEAST_NOTE:
        return mark(row)
    return shortened(told, room) if is_null(row["error_text"]) else middle_shortened(told, room)


def _figure(row: Mapping[str, Any]) -> str:
    """`1 234 samples/s`; before it what work without a trained model is for: bytes that moved, else FLOP/s."""
    if is_null(row["samples_per_s"]):
        return NULL
    told = f"{significant(row['samples_per_s'])} samples/s"
    for word, key in _MOVED:
        if not is_null(row.get(key)):
            return f"{word}{giga(row[key])} GB/s  {told}"
    rate = row["tflops_per_gpu"]
    if not is_null(row["parameters"]) or is_null(rate) or is_null(row["world_size"]):
        return told
    return f"{flop_rate(rate * row['world_size'])}  {told}"


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


def found_line(found: StageFound) -> str:
    """`stage 2 of 3: encdec 3.5m ... · 1 234 samples_per_s · 1.02x the stage before`."""
    stage = f"stage {found.stage} of {found.stages}"
    if found.value is None:
        return f"{stage}: nothing ended ok with a valid number, so there is nothing to go on from"
    than = "its first config" if found.stage == 1 else "the stage before"
    ratio = "" if found.ratio is None else f" · {found.ratio:.2f}x {than}"
    return f"{stage}: {literal(found.label or '')} · {significant(found.value)} {found.column}{ratio}"


def fastest_line(found: Sequence[StageFound]) -> str | None:
    """The winner of a search that came to its end."""
    last = found[-1] if found else None
    if last is None or last.value is None or last.stage < last.stages:
        return None
    return f"best: {literal(last.label or '')} ({last.trial_id})"


def next_line(run: RunClosed, by: str | None) -> str:
    """The command to type next: what continues an unfinished run, else what looks at a finished one.

    A plain string, which is never wrapped: a line broken inside a command is another command when it is pasted.
    """
    if run.exit_code:
        return f"to go on:  {literal(run.continue_command)}"
    look = f"raybench compare {shlex.quote(run.out)} --by {by}" if by else f"raybench show {shlex.quote(run.out)}"
    return f"next:  {literal(look)}"


def why_line(run: RunClosed, failed: Sequence[str]) -> str:
    """The command that tells why the first of the `failed` ids failed."""
    more = f"   (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"why:  raybench show {literal(shlex.quote(run.out))} --trial {failed[0]}{more}"


def varying_axis(rows: pd.DataFrame) -> str | None:
    """What a finished run is best compared along; None where nothing varies."""
    good = rows[rows["outcome"].eq("ok")]
    return next((axis for axis in _AXES if good[axis].nunique() > 1), None)
