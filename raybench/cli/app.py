"""The typer application that the commands join, and how its help looks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from raybench.cli.as_set import settings_as_set
from raybench.version import __version__


class _Plain:
    """Help that names things as a person types them: `SWEEP`, not `{SWEEP} <str>`; a flag has no value and no type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The pieces of the usage line."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [re.sub(r"^\{(\w+)(\.*)\}\.*$", r"\1\2", piece) for piece in pieces]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag, and an argument whose name says what it is, show no type. Choices stay."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            named = isinstance(param, TyperArgument) and param.metavar is not None
            if named or getattr(param, "is_flag", False):
                param.display_type_rich = _no_type
        return params


class PlainCommand(_Plain, TyperCommand):
    """A command. Where it takes `--set`, settings may also be given as options of their own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take in the words of the command line."""
        options = {name: not getattr(param, "is_flag", False) for param in self.params for name in param.opts}
        if "--set" in options:
            args = settings_as_set(args, options)
        left: list[str] = super().parse_args(ctx, args)
        return left


class PlainGroup(_Plain, TyperGroup):
    """The page that lists the commands."""


def _no_type(ctx: Any) -> None:
    return None


app = typer.Typer(
    name="raybench",
    cls=PlainGroup,
    help="Which GPUs train your models fastest, how that scales, and what it costs: sweeps on Ray, results in Parquet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,       # an unexpected exception keeps Python's own traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_commands(*commands: Callable[..., None], to: typer.Typer = app) -> None:
    """Make functions the commands of their names, listed in this order."""
    for function in commands:
        to.command(cls=PlainCommand)(function)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"raybench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass
