"""`compact`: the same rows in few files, in another place, written by today's raybench."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raybench.errors import StoreError, UsageError
from raybench.results.atomic import host_name, make_folder, sync_folder, told_as_store_error
from raybench.results.layout import LAYOUT, RunFiles, find_root, new_run_id, table_files
from raybench.results.objects import ObjectPath, retried
from raybench.results.place import Place, files_below, place_of
from raybench.results.read import Unreadable, iterate_file, readable_schema
from raybench.results.schema import schema

FILE_ROWS: Final = {"trials": 20_000, "nodes": 20_000, "steps": 2_000_000, "telemetry": 2_000_000}
FILE_BYTES: Final = 128 * 2**20
"""Decoded. A file is closed at either: well below what a reader takes of one file."""
GROUP_BYTES: Final = 32 * 2**20

Key = TypeVar("Key")


@dataclass(frozen=True)
class Compacted:
    """What was read and written, in files of tables and rows of `trials`."""

    trials: int
    files_before: int
    files_after: int


def compact(src: str | Path | Sequence[str | Path], *, to: str | Path) -> Compacted:
    """Write all rows under `src` to the new folder `to`, which appears when it is whole; `src` stays as it is.

    Every attempt is kept, a row that is there twice once; steps and telemetry without a trial's row are left out, as
    `load` leaves them out. Raises StoreError for a file that cannot be read, UsageError for a `to` that is there.
    """
    places = [place_of(one) for one in ([src] if isinstance(src, str | Path) else src)]
    roots = [find_root(place) for place in places]
    target = _new_folder(to, roots)
    part = target.with_name(f"_{target.name}.{host_name()}.part")
    make_folder(part.parent)
    try:
        part.mkdir(mode=0o755)
    except FileExistsError:
        raise StoreError(f"{part}: another compact writes it, or one was killed: remove it first") from None
    try:
        with told_as_store_error(target):
            done = _written(roots, part / LAYOUT)
            os.rename(part, target)
            sync_folder(target.parent)
    except Unreadable as error:
        raise StoreError(f"{error}; nothing was written: bring the file back or remove it") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return done


def _new_folder(to: str | Path, roots: Sequence[Place]) -> Path:
    target = place_of(to)
    if isinstance(target, ObjectPath):
        raise UsageError(f"--to {to}: nothing appears whole in an object store; give a folder, and copy it up")
    target = target.absolute()
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(f"--to {to}: is there already; compact makes a new folder")
    if any(isinstance(root, Path) and target.resolve().is_relative_to(root.resolve()) for root in roots):
        raise UsageError(f"--to {to}: lies in the results that are to be compacted; give a folder beside them")
    return target


def _written(roots: Sequence[Place], new: Path) -> Compacted:
    run_id = new_run_id(datetime.now(timezone.utc))
    kept = _Kept()
    counts = [_write_table(roots, table, new, run_id, kept) for table in ("trials", "nodes", "steps", "telemetry")]
    if not kept.trials:
        raise StoreError(f"no raybench results under {', '.join(map(str, roots))}")
    for root in roots:
        _copy_meta(root, new)
    read, written = (sum(numbers) for numbers in zip(*counts, strict=True))
    return Compacted(trials=len(kept.trials), files_before=read, files_after=written)


@dataclass
class _Kept:
    """What was written so far: trials by uid, machines, and trials whose rows of another table came from a file."""

    trials: set[str] = field(default_factory=set)
    nodes: set[tuple[str, str]] = field(default_factory=set)
    whole: dict[str, set[str]] = field(default_factory=lambda: {"steps": set(), "telemetry": set()})


def _write_table(roots: Sequence[Place], table: str, new: Path, run_id: str, kept: _Kept) -> tuple[int, int]:
    """Write one table of all roots, a folder a sweep; the files read and written."""
    writers: dict[str, _Writer] = {}
    paths = [path for root in roots for path in table_files(root, table)]
    for path in paths:
        sweep = path.parent.name
        writer = writers.setdefault(sweep, _Writer(table, RunFiles(new, sweep, run_id)))
        for batch in _new_rows(path, table, kept):
            writer.add(batch)
    for writer in writers.values():
        writer.close()
    return len(paths), sum(writer.files for writer in writers.values())


def _new_rows(path: Place, table: str, kept: _Kept) -> Iterator[pa.RecordBatch]:
    """The rows of a file that were not written before and belong to a trial."""
    of_file: set[str] = set()
    for batch in iterate_file(path, table):
        if table == "trials":
            yield batch.filter(_first_seen(batch["trial_uid"].to_pylist(), kept.trials))
        elif table == "nodes":
            keys = zip(batch["sweep_run_id"].to_pylist(), batch["node_key"].to_pylist(), strict=True)
            yield batch.filter(_first_seen(list(keys), kept.nodes))
        else:
            # One file holds all such rows of a trial, or is a copy of the one that does.
            uids = set(pc.unique(batch["trial_uid"]).to_pylist())
            of_file |= uids
            wanted = pa.array(sorted(uids & kept.trials - kept.whole[table]), pa.string())
            yield batch.filter(pc.is_in(batch["trial_uid"], value_set=wanted))
    if table in kept.whole:
        kept.whole[table] |= of_file


def _first_seen(keys: Sequence[Key], seen: set[Key]) -> pa.Array:
    mask = []
    for key in keys:
        mask.append(key not in seen)
        seen.add(key)
    return pa.array(mask, pa.bool_())


class _Writer:
    """Rows of one table and sweep, in files numbered from 0."""

    def __init__(self, table: str, names: RunFiles) -> None:
        self._table, self._names = table, names
        self._schema = readable_schema(table).with_metadata(schema(table).metadata)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = self._rows = self._bytes = 0
        self._file: pq.ParquetWriter | None = None
        self.files = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some rows."""
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._held_bytes >= GROUP_BYTES:
            self._write_group()
        if self._rows >= FILE_ROWS[self._table] or self._bytes >= FILE_BYTES:
            self.close()

    def close(self) -> None:
        """Finish the current file, if any row of it was taken in."""
        self._write_group()
        if self._file is not None:
            self._file.close()
            _sync(self._path())
            self.files += 1
        self._file, self._rows, self._bytes = None, 0, 0

    def _write_group(self) -> None:
        if not self._held:
            return
        if self._file is None:
            self._path().parent.mkdir(parents=True, exist_ok=True)
            self._file = pq.ParquetWriter(self._path(), self._schema, write_page_checksum=True)
        rows = pa.Table.from_batches(self._held).combine_chunks()
        self._file.write_table(rows.replace_schema_metadata(self._schema.metadata))
        self._bytes += self._held_bytes
        self._held, self._held_bytes = [], 0

    def _path(self) -> Path:
        return self._names.segment(self._table, self.files)


def _copy_meta(root: Place, new: Path) -> None:
    """Logs, sweeps and tracebacks stay with the rows: `show --trial` names them."""
    for names, path in files_below(root / "_meta"):
        copy = new.joinpath("_meta", *names)
        if not names[-1].endswith(".part"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(retried(path.read_bytes))
            _sync(copy)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
