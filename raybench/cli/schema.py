"""`raybench schema`."""

from __future__ import annotations

import sys
from typing import Annotated

from raybench.cli.options import Json, flag


def schema(
    columns: Annotated[bool, flag("--columns", help="The columns of the results instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of sweep files, for editors."""
    from raybench.report.columns_list import column_rows
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.tables import column_tables
    from raybench.spec.schema import json_schema

    if columns and not as_json:
        print_parts(*column_tables(column_rows(), stdout_width()))
    elif as_json:
        print_rows(column_rows() if columns else [json_schema()])
    else:
        _print_schema()


def _print_schema() -> None:
    from raybench.report.pipe import reader_may_leave
    from raybench.spec.schema import schema_text

    with reader_may_leave():
        sys.stdout.write(schema_text())
