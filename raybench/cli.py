"""The door: each command is a few lines over one public function of the package that owns the work.

Only typer is imported at the top, so that `--help` and shell completion answer at once.
"""

from __future__ import annotations

import re
import sys
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from raybench.errors import RaybenchError, SweepError, UsageError
from raybench.version import __version__

if TYPE_CHECKING:
    import pandas as pd

PLAN_ROWS = 20

app = typer.Typer(
    name="raybench",
    help="Which GPUs train your models fastest, how that scales, and what it costs: sweeps on Ray, results in Parquet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,       # an unexpected exception keeps Python's own traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"raybench {__version__}")
        raise typer.Exit


def _utc(text: str) -> datetime:
    """A time as `--newer-than` takes it; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-03-01T12:00:00Z") from None
    return found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)


class PlainCommand(TyperCommand):
    """A command whose usage line names its arguments as the rest of its page does: `SWEEP`, not `{SWEEP}`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The pieces of the usage line."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(\w+)(\.*)\}\.*$", r"\1\2", piece) for piece in pieces]


def _sweep_names(incomplete: str) -> list[str]:
    """Shipped sweeps, for completion; where none fits the shell completes files."""
    from raybench.spec.reader import shipped_sweeps

    return [name for name in shipped_sweeps() if name.startswith(incomplete)]


def _outcome_names(incomplete: str) -> list[str]:
    """The outcome that is being typed, behind those that stand already: `timeout,oom_c`."""
    from raybench.record.trial import OUTCOMES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in OUTCOMES if name.startswith(last) and name != "ok"]


def _flag(*names: str, help: str) -> Any:
    """An option without a value, and so without the type of one."""
    return typer.Option(*names, help=help, metavar="")


Sweep = Annotated[
    str,
    typer.Argument(
        metavar="SWEEP", help="A sweep file, or the name of a shipped one: `quick`.", autocompletion=_sweep_names
    ),
]
Outs = Annotated[list[Path], typer.Argument(help="Folders of results.", metavar="OUT...")]
Json = Annotated[bool, _flag("--json", help="One JSON object a line instead of a table.")]
All = Annotated[bool, _flag("--all", help="Every row, however many.")]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="A.B=C",
        help="Set a key of base: model.dropout=0.0; a list makes it an axis: precision=\\[fp32,bf16].",
    ),
]
Only = Annotated[
    list[str],
    typer.Option("--only", metavar="KEY=VALUE", help="Only the trials that match: precision=bf16,num_workers=2."),
]
Quick = Annotated[bool, _flag("--quick", help="Fewer steps: a first look, never mixed with full runs.")]


def main() -> None:
    """The console script: raybench's own errors are one line and an exit code, a closed pipe is no error."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that lacks a sign shows `?`
    try:
        app(prog_name="raybench")
    except RaybenchError as error:
        _complain(error)
        raise SystemExit(error.exit_code) from None
    finally:
        _flush()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


@app.command(cls=PlainCommand)
def run(
    sweep: Sweep,
    out: Annotated[
        str, typer.Option(metavar="OUT", help="Folder of results; what it holds already is not run again.")
    ] = "results",
    local: Annotated[bool, _flag("--local", help="Start a private Ray on this machine.")] = False,
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Join the Ray there.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the cluster in the results.")] = None,
    overrides: Sets = [],  # noqa: B006  # typer reads the default and never changes it; the same below
    only: Only = [],  # noqa: B006
    quick: Quick = False,
    fresh: Annotated[bool, _flag("--fresh", help="Run everything again.")] = False,
    newer_than: Annotated[
        datetime | None, typer.Option(parser=_utc, metavar="UTC", help="Only later rows are done: 2026-03-01T12:00Z.")
    ] = None,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="OUTCOMES",
            autocompletion=_outcome_names,
            help="Run these again too: timeout,oom_cuda; `none`: none.",
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(metavar="OUTCOMES", autocompletion=_outcome_names, help="Outcomes that are no failure: oom_cuda."),
    ] = None,
    tags: Annotated[
        list[str], typer.Option("--tag", metavar="K=V", help="Kept in every row: image=2026-03.")
    ] = [],  # noqa: B006
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="A sentence kept in every row.")] = None,
    verbose: Annotated[bool, _flag("-v", "--verbose", help="Let Ray print too.")] = False,
    dry_run: Annotated[bool, _flag("--dry-run", help="Only say what would run: the same as `plan`.")] = False,
) -> None:
    """Run what a sweep plans and is not done yet; every attempt becomes one row."""
    named = dict(_pair(tag) for tag in tags)
    if dry_run:
        from raybench.report.output import print_parts

        plan(sweep, overrides=overrides, only=only, quick=quick)
        print_parts("", f"a run would put its results in {out}; nothing was started")
        return
    from raybench.cluster.quiet import kept_stdout
    from raybench.cluster.run import run_sweep
    from raybench.report.console import console_on
    from raybench.report.progress import ProgressDisplay
    from raybench.report.run_end import print_run_end

    with kept_stdout() as terminal:
        closed = run_sweep(
            sweep, out=out, local=local, address=address, cluster=cluster, overrides=overrides, only=only,
            quick=quick, fresh=fresh, newer_than=newer_than, retry=retry, accept=accept, tags=named, note=note,
            verbose=verbose, observer=ProgressDisplay(console_on(terminal)), take_signals=True,
        )  # fmt: skip
    print_run_end(closed)
    raise typer.Exit(closed.exit_code)


@app.command(cls=PlainCommand)
def plan(
    sweep: Sweep,
    overrides: Sets = [],  # noqa: B006
    only: Only = [],  # noqa: B006
    quick: Quick = False,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Say what a sweep would run, with sizes and memory; starts nothing."""
    from raybench.report.output import print_left, print_parts, print_rows, stdout_width
    from raybench.report.plan_text import plan_text
    from raybench.report.short_id import short_ids
    from raybench.report.tables import plan_table
    from raybench.spec.plan import plan as plan_sweep
    from raybench.spec.reader import read_sweep
    from raybench.workloads.describe import planned_row

    spec = read_sweep(sweep, overrides)
    workers, machine = _this_machine() if spec.uses_auto else ((1,), None)
    planned = plan_sweep(spec, only=only, quick=quick, auto_workers=workers)
    shown = planned.trials if every or as_json else planned.trials[:PLAN_ROWS]
    rows = (planned_row(trial) for trial in shown)
    if as_json:
        print_rows(rows)
        return
    ids = short_ids(trial.trial_id for trial in planned.trials)
    named = [row | {"short_id": ids[row["trial_id"]]} for row in rows]
    print_parts(*plan_text(planned, machine), plan_table(named, stdout_width()))
    print_left(len(planned.trials) - len(shown))


@app.command(cls=PlainCommand)
def show(
    outs: Outs,
    trial: Annotated[
        str | None, typer.Option(metavar="ID", help="Everything about this trial (or a beginning of its id).")
    ] = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Show results, one line a trial, or everything about one."""
    from raybench.report.legend import legend
    from raybench.report.output import TABLE_ROWS, print_frame, print_left, print_parts, stdout_width
    from raybench.report.tables import trial_table

    if trial is not None:
        _show_trial(outs, trial, as_json)
        return
    frame = _loaded(outs).sort_values(["cluster", "sweep", "sweep_order"], ignore_index=True)
    if as_json:
        print_frame(frame)
        return
    shown = frame if every else frame.head(TABLE_ROWS)
    print_parts(trial_table(shown, stdout_width(), frame["trial_id"]), *legend(shown.to_dict("records")))
    print_left(len(frame) - len(shown))


@app.command(cls=PlainCommand)
def compare(
    outs: Outs,
    by: Annotated[
        str, typer.Option(metavar="AXIS", help="What to compare along: num_workers, or source,precision.")
    ] = "cluster",
    baseline: Annotated[
        str | None, typer.Option(metavar="VALUE", help="What the others are put against: 1, or device,fp32.")
    ] = None,
    allow_quick: Annotated[bool, _flag("--allow-quick", help="Put quick rows against full ones.")] = False,
    include_invalid: Annotated[bool, _flag("--include-invalid", help="Ratios of invalid rows too.")] = False,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Put equal work side by side across clusters or along any axis."""
    from raybench.judge.compare import columns_for, side_by_side
    from raybench.judge.varying import NothingVaries, what_varies
    from raybench.report.compare_text import below_text, compare_text
    from raybench.report.output import TABLE_ROWS, print_frame, print_left, print_parts, stdout_width
    from raybench.report.tables import compare_table

    frame = _loaded(outs, columns=columns_for(by))
    try:
        compared = side_by_side(
            frame, by=by, baseline=baseline, allow_quick=allow_quick, include_invalid=include_invalid
        )
    except NothingVaries as error:
        command = f": raybench compare {' '.join(map(str, outs))} --by {error.varying[0]}" if error.varying else ""
        raise UsageError(f"{error.told}{what_varies(error.varying)}{command}") from None
    if as_json:
        print_frame(compared.table)
        return
    shown = compared.table if every else compared.table.head(TABLE_ROWS)
    print_parts(compare_text(compared.table), compare_table(shown, stdout_width()), *below_text(compared))
    print_left(len(compared.table) - len(shown))


@app.command(cls=PlainCommand)
def workloads(as_json: Json = False) -> None:
    """List what can be run: every workload and preset, with parameters and FLOPs."""
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.tables import workload_table
    from raybench.workloads.describe import preset_rows

    if as_json:
        print_rows(preset_rows())
    else:
        print_parts(workload_table(list(preset_rows()), stdout_width()))


@app.command(cls=PlainCommand)
def schema(
    columns: Annotated[bool, _flag("--columns", help="The columns of the results instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of sweep files, for editors."""
    from raybench.report.columns_list import column_rows
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.tables import column_table
    from raybench.spec.schema import json_schema

    if columns and not as_json:
        print_parts(column_table(column_rows(), stdout_width()))
    elif as_json:
        print_rows(column_rows() if columns else [json_schema()])
    else:
        _print_schema()


def _pair(tag: str) -> tuple[str, str]:
    name, equals, value = tag.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--tag {tag}: give a name and a value, as in --tag image=2026-03")
    return name, value


def _this_machine() -> tuple[tuple[int, ...], str]:
    """What `num_workers: auto` stands for here, and what `here` is."""
    from raybench.cluster.inventory import usable_cores, worker_counts
    from raybench.engine.environment import visible_gpus

    gpus, cores = len(visible_gpus()), usable_cores()
    places, kind = (gpus, "GPU") if gpus else (cores, "CPU core")
    return worker_counts(places), f"{places} {kind}{'' if places == 1 else 's'}"


def _loaded(outs: list[Path], *, latest: bool = True, columns: list[str] | None = None) -> pd.DataFrame:
    """The rows under `outs`; a file that cannot be read is one line on stderr."""
    from raybench.results.load import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = load(outs, latest=latest, columns=columns)
    for warning in caught:
        _tell(f"warning: {warning.message}")
    return frame


def _show_trial(outs: list[Path], asked: str, as_json: bool) -> None:
    from raybench.report.find_trial import find_trial, traceback_file
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.trial_page import trial_page

    row = find_trial(_loaded(outs, latest=False), _loaded(outs), asked)
    path = traceback_file(outs, row)
    if as_json:
        print_rows([row | {"traceback": path}])
    else:
        print_parts(trial_page(row, path, stdout_width()))


def _complain(error: RaybenchError) -> None:
    """A sweep's mistakes are lines already, made for editors to jump to; anything else is one line."""
    _tell(str(error) if isinstance(error, SweepError) else f"error: {error}")


def _tell(text: str) -> None:
    from raybench.report.text import literal

    sys.stderr.write(literal(text, lines=True) + "\n")


def _flush() -> None:
    """What typer itself prints (help, versions) is still held; nobody may be there to read it."""
    from raybench.report.pipe import reader_may_leave

    with reader_may_leave():
        pass


def _print_schema() -> None:
    from raybench.report.pipe import reader_may_leave
    from raybench.spec.schema import schema_text

    with reader_may_leave():
        sys.stdout.write(schema_text())


if __name__ == "__main__":
    main()
