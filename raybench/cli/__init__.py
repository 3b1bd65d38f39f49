"""The door: one module a command, each a few lines over one public function of the package that owns the work.

Only typer is imported at the top, so that `--help` and shell completion answer at once. A new command is a module
with a function of its name, and a line in the list below, which is the order in which the help shows them.
"""

from __future__ import annotations

import sys
from typing import Any

import typer

from raybench.cli.app import PlainGroup, add_commands, app
from raybench.cli.compact import compact
from raybench.cli.compare import compare
from raybench.cli.data import prepare
from raybench.cli.doctor import doctor
from raybench.cli.export import export
from raybench.cli.plan import plan
from raybench.cli.run import run
from raybench.cli.scaling import scaling
from raybench.cli.schema import schema
from raybench.cli.show import show
from raybench.cli.tell import complain, complain_of_words
from raybench.cli.verify import verify
from raybench.cli.workloads import workloads
from raybench.errors import RaybenchError

add_commands(
    run,
    plan,
    show,
    compare,
    scaling,
    export,
    verify,
    compact,
    workloads,
    schema,
    doctor,
)
_data = typer.Typer(cls=PlainGroup, help="Prepare the data that sources read.", no_args_is_help=True)
add_commands(prepare, to=_data)
app.add_typer(_data, name="data")


_Misuse: Any = typer.BadParameter.__base__      # typer's own copy of click's UsageError has no public name


def main() -> None:
    """The console script: whatever was asked wrongly is one line and an exit code, a closed pipe is no error."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that lacks a sign shows `?`
    try:
        code = app(prog_name="raybench", standalone_mode=False)
    except _Misuse as misuse:
        raise SystemExit(complain_of_words(misuse)) from None
    except RaybenchError as error:
        complain(error)
        raise SystemExit(error.exit_code) from None
    finally:
        _flush()
    raise SystemExit(code)


def _flush() -> None:
    """What typer itself prints (help, versions) is still held; nobody may be there to read it."""
    from raybench.report.pipe import reader_may_leave

    with reader_may_leave():
        pass
