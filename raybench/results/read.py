"""Reading one Parquet file that anybody may have written: bounded, checked, and with one plain error.

A file of a few hundred kB can decode to gigabytes while its metadata claims a few hundred kB, because a repeated
string is stored once. So text columns are kept as dictionaries until their decoded size is known to be acceptable.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raybench.errors import StoreError
from raybench.record.trial import SCHEMA_VERSION
from raybench.results.objects import ObjectPath, ahead, retried
from raybench.results.place import Place
from raybench.results.schema import SCHEMA_VERSION_KEY, TABLE_KEY, schema

MAX_COLUMNS: Final = 500
MAX_TEXT_CHARACTERS: Final = 4096
PARQUET_END: Final = b"PAR1"
_BATCH_ROWS: Final = 65_536


@dataclass(frozen=True)
class Limits:
    """The most that one file may hold, in rows and decoded."""

    rows: int
    decoded_bytes: int


LIMITS: Final = {
    "trials": Limits(rows=100_000, decoded_bytes=256 * 2**20),
    "nodes": Limits(rows=100_000, decoded_bytes=256 * 2**20),
    "steps": Limits(rows=10_000_000, decoded_bytes=2**30),
    "telemetry": Limits(rows=10_000_000, decoded_bytes=2**30),
}
REQUIRED: Final = {
    "trials": ("trial_uid", "sweep", "cluster", "trial_id", "attempt", "started_at", "outcome", "valid"),
    "nodes": ("node_key",),
    "steps": ("trial_uid", "rank", "step"),
    "telemetry": ("trial_uid", "t_s"),
}
"""Without these a file is not that table. Any other column may be missing: an older version did not have it."""


class Unreadable(StoreError):
    """One file that cannot be read; `str()` is its path and the reason."""


class UnreadableFileWarning(UserWarning):
    """A file that was left out, with its path and the reason."""


def read_file(path: Place, table: str, names: Sequence[str] | None = None) -> pa.Table:
    """The known columns of one file (or those of them in `names`), in the order and types of today's schema.

    Columns that an older version did not write are null; unknown ones are ignored. Raises `Unreadable`.
    """
    wanted = readable_schema(table, names)
    batches = list(iterate_file(path, table, names))
    return pa.Table.from_batches(batches, schema=wanted)


def read_each(
    paths: Sequence[Place], table: str, names: Sequence[str] | None = None
) -> Iterator[Callable[[], pa.Table]]:
    """`read_file` of each, to be called in turn; of an object store several are on their way at once."""
    works = [partial(read_file, path, table, names) for path in paths]
    return ahead(works) if any(isinstance(path, ObjectPath) for path in paths) else iter(works)


def iterate_file(path: Place, table: str, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The same as batches, for a caller that keeps only some rows of a large file."""
    wanted = readable_schema(table, names)
    try:
        # One open handle from metadata to last batch: a run may replace the path in between.
        with _fetched(path) if isinstance(path, ObjectPath) else path.open("rb") as handle:
            yield from _batches(handle, table, wanted)
    except Unreadable as error:
        raise Unreadable(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise Unreadable(f"{path}: {_first_line(error)}") from error


def _fetched(path: ObjectPath) -> pa.BufferReader:
    """An object whole, in memory. One that a run replaced between asking for its size and its bytes is cut: again."""
    for pause_s in (0.05, 0.2, None):
        data = retried(path.read_bytes)
        if data.endswith(PARQUET_END) or pause_s is None:
            break
        time.sleep(pause_s)
    return pa.BufferReader(data)


def readable_schema(table: str, names: Sequence[str] | None = None) -> pa.Schema:
    """Today's schema with every column nullable: what is never null today may be missing in an older file."""
    return pa.schema([f.with_nullable(True) for f in schema(table) if names is None or f.name in names])


def _batches(handle: object, table: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    metadata = pq.read_metadata(handle)
    _check_size(metadata, LIMITS[table])
    paths = {metadata.schema.column(index).path for index in range(metadata.num_columns)}
    texts = [field.name for field in schema(table) if field.type == pa.string() and field.name in paths]
    file = pq.ParquetFile(handle, metadata=metadata, read_dictionary=texts, page_checksum_verification=True)
    found = file.schema_arrow
    _check_schema(found, table)
    names = [field.name for field in wanted if field.name in found.names]
    decoded_bytes = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
        decoded_bytes += sum(map(_decoded_bytes, batch.columns))
        if decoded_bytes > LIMITS[table].decoded_bytes:
            raise Unreadable(_too_large(LIMITS[table]))
        yield _conformed(batch, wanted)


def _check_size(metadata: pq.FileMetaData, limits: Limits) -> None:
    if metadata.num_rows > limits.rows or metadata.num_columns > MAX_COLUMNS:
        raise Unreadable(f"{metadata.num_rows} rows and {metadata.num_columns} columns are more than any run writes")
    groups = range(metadata.num_row_groups)
    if sum(metadata.row_group(group).total_byte_size for group in groups) > limits.decoded_bytes:
        raise Unreadable(_too_large(limits))


def _too_large(limits: Limits) -> str:
    return f"decodes to more than {limits.decoded_bytes >> 20} MiB"


def _check_schema(found: pa.Schema, table: str) -> None:
    noted = found.metadata or {}
    version = noted.get(SCHEMA_VERSION_KEY, b"1")
    if not version.isdigit() or int(version) > SCHEMA_VERSION:
        raise Unreadable(f"schema version {version.decode(errors='replace')} is newer than this raybench; upgrade it")
    if noted.get(TABLE_KEY, table.encode()) != table.encode():
        raise Unreadable(f"holds the table {noted[TABLE_KEY].decode(errors='replace')}, not {table}")
    missing = [name for name in REQUIRED[table] if name not in found.names]
    if missing:
        raise Unreadable(f"not a {table} file: it lacks {', '.join(missing)}")
    kinds = {field.name: field.type for field in found}
    for field in schema(table):
        if not _readable_as(kinds.get(field.name, pa.null()), field.type):
            raise Unreadable(f"{field.name} is {kinds[field.name]}, not {field.type}")


def _readable_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """What other tools make of our types when they rewrite a file is accepted; nothing else is guessed at."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(found):
        return bool(found.tz == wanted.tz)
    same = {wanted, pa.null(), *([pa.large_string()] if wanted == pa.string() else [])}
    return found in same


def _decoded_bytes(column: pa.Array) -> int:
    if not isinstance(column, pa.DictionaryArray):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    text_bytes = pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    return int(text_bytes) + 4 * len(column)


def _conformed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in wanted:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(len(batch), field.type))
            continue
        column = batch.column(field.name)
        columns.append(_text(column) if field.type == pa.string() else column.cast(field.type))
    conformed = pa.RecordBatch.from_arrays(columns, schema=wanted)
    conformed.validate(full=True)
    return conformed


def _text(column: pa.Array) -> pa.Array:
    """Plain strings, each at most `MAX_TEXT_CHARACTERS` long. Cut in the dictionary, where each stands once."""
    if not isinstance(column, pa.DictionaryArray):
        return column.cast(pa.string())
    column.validate(full=True)
    values = column.dictionary
    if (pc.max(pc.binary_length(values)).as_py() or 0) > MAX_TEXT_CHARACTERS:
        values = pc.utf8_slice_codeunits(values, 0, MAX_TEXT_CHARACTERS)
    return pc.take(values.cast(pa.string()), column.indices)


def _first_line(error: BaseException) -> str:
    return next(itertools.chain(filter(None, str(error).splitlines()), [type(error).__name__]))
