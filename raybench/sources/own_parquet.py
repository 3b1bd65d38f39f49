"""Somebody else's folder of Parquet, held to what a trial will read of it: by what its files say of themselves where
that is enough, so that a large one is not read twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raybench.errors import DataError
from raybench.sources.layout import DTYPES, Layout
from raybench.spec.samples import TokenSample


def check_own(directory: Path, name: str, wanted: Layout, dtype: str | None) -> None:
    """Rows of one sample's tokens each, enough of them, of the type and vocabulary that are asked for.

    Raises:
        DataError: something else is there; names the file and the cure.
    """
    paths = sorted(path for path in directory.rglob("*.parquet") if not path.name.startswith(("_", ".")))
    if not paths:
        raise DataError(f"{directory} is no folder of Parquet files; give source.path the folder that holds *.parquet")
    assert isinstance(wanted.sample, TokenSample)
    there = 0
    for path in paths:
        with _opened(path) as file:
            _check_type(path, file, name, wanted.sample, dtype)
            for group in range(file.num_row_groups):
                _check_values(path, file, group, name, wanted.sample)
            there += file.metadata.num_rows
    if there < wanted.num_samples:
        raise DataError(
            f"{directory} holds {there} rows, and source.num_samples asks for {wanted.num_samples}; give at most "
            f"{there}"
        )


def _opened(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} cannot be read as Parquet ({reason}); write it anew or take it away") from error


def _check_type(path: Path, file: Any, name: str, sample: TokenSample, dtype: str | None) -> None:
    schema = file.schema_arrow
    if name not in schema.names:
        known = ", ".join(schema.names)
        raise DataError(f"{path} has no column {name}; it has {known}: give source.column one of them")
    kind = schema.field(name).type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not _is_token(kind.value_type):
        raise DataError(f"{path}: column {name} holds {kind}; each row must be a list of {', '.join(DTYPES)}")
    if fixed and kind.list_size != sample.length:
        raise _wrong_length(path, name, kind.list_size, sample)
    if dtype not in (None, str(kind.value_type)):
        raise DataError(f"{path} holds {kind.value_type} and source.dtype says {dtype}; leave source.dtype out")


def _is_token(kind: pa.DataType) -> bool:
    return str(kind) in DTYPES


def _check_values(path: Path, file: Any, group: int, name: str, sample: TokenSample) -> None:
    """Lengths and the range of tokens, from the row group's statistics; from its values where it has none."""
    lowest, highest = _said(file, group, name, sample) or _read(path, file, group, name, sample)
    if lowest < 0:
        raise DataError(f"{path}: column {name} holds the negative number {lowest}, which is no token")
    if highest >= sample.vocab_size:
        raise DataError(
            f"{path} holds token {highest}, which vocab_size {sample.vocab_size} does not reach; give vocab_size at "
            f"least {highest + 1}"
        )


def _said(file: Any, group: int, name: str, sample: TokenSample) -> tuple[int, int] | None:
    """Smallest and largest token; None where the statistics do not settle that every row is whole and without nulls."""
    rows = file.metadata.row_group(group)
    columns = [rows.column(i) for i in range(rows.num_columns)]
    (chunk,) = [each for each in columns if each.path_in_schema.split(".")[0] == name]
    found = chunk.statistics
    if not pa.types.is_fixed_size_list(file.schema_arrow.field(name).type) or found is None or not found.has_min_max:
        return None
    if chunk.num_values != rows.num_rows * sample.length or not found.has_null_count or found.null_count:
        return None
    return int(found.min), int(found.max)


def _read(path: Path, file: Any, group: int, name: str, sample: TokenSample) -> tuple[int, int]:
    rows = file.read_row_group(group, columns=[name]).column(name)
    if rows.null_count:
        raise DataError(f"{path}: column {name} has rows without tokens; leave them out")
    lengths = pc.min_max(pc.list_value_length(rows)).as_py()
    for length in (lengths["min"], lengths["max"]):
        if length not in (None, sample.length):
            raise _wrong_length(path, name, length, sample)
    tokens = pc.list_flatten(rows)
    if tokens.null_count:
        raise DataError(f"{path}: column {name} has missing tokens; leave out rows that are not whole")
    found = pc.min_max(tokens).as_py()
    return (0, 0) if found["min"] is None else (found["min"], found["max"])


def _wrong_length(path: Path, name: str, length: int, sample: TokenSample) -> DataError:
    return DataError(
        f"{path}: column {name} has rows of {length} tokens, and a sample has {sample.length}; give the seq_len that "
        "they were written for"
    )
