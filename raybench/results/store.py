"""The write side of a run: every committed row is on disk, readable by others, before the next trial starts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from raybench.errors import StoreError
from raybench.record.node import Node
from raybench.record.rank import RankSteps
from raybench.record.step import Step
from raybench.record.telemetry import Telemetry
from raybench.record.trial import Trial
from raybench.results.atomic import make_folder, remove_leftovers, told_as_store_error, write_file
from raybench.results.layout import LAYOUT, RunFiles, check_name
from raybench.results.objects import ObjectPath
from raybench.results.place import Place
from raybench.results.resume import EarlierAttempt, as_earlier
from raybench.results.schema import from_ranks, from_records, schema
from raybench.results.upload import Upload, begin_upload

SEGMENT_TRIALS: Final = 64
SEGMENT_BYTES: Final = 2 * 2**20
"""A segment is closed at either: few enough rows to rewrite at each commit, enough that readers open few files."""
SETTLE_LIMIT_S: Final = 10.0
"""A commit lets the next trial wait this long for its upload, so that it falls outside of any measured window."""
END_LIMIT_S: Final = 60.0
"""The end of a run waits this long for an object store that does not answer."""
_IN_COMMIT_ORDER: Final = ("steps", "telemetry", "trials")

Steps: TypeAlias = Sequence[Step] | Mapping[int, RankSteps]


@dataclass(frozen=True)
class _Segment:
    """The rows of the files being rewritten at each commit, by table."""

    number: int
    rows: Mapping[str, pa.Table]

    @classmethod
    def empty(cls, number: int) -> _Segment:
        return cls(number, {table: schema(table).empty_table() for table in _IN_COMMIT_ORDER})

    def plus(self, added: Mapping[str, pa.Table]) -> _Segment:
        return replace(self, rows={table: pa.concat_tables([rows, added[table]]) for table, rows in self.rows.items()})


class RunStore:
    """Commits the attempts of one run into `<out>/raybench-v1`, in files that only this run writes.

    Into an object store they go by a spool on this machine, which is where they lie when `commit` returns; `settle`
    waits until they are there, `close` sees that all are.

    Safe to use from several threads. Every method that writes raises `StoreError` naming path and reason when it
    cannot; what was committed before stays readable, and the next commit starts from there.
    """

    def __init__(self, out: Place, sweep: str, sweep_run_id: str) -> None:
        self._upload = begin_upload(out, LAYOUT, sweep_run_id) if isinstance(out, ObjectPath) else None
        root = out / LAYOUT if self._upload is None else self._upload.spool.root
        assert isinstance(root, Path)
        self.files = RunFiles(root, sweep, sweep_run_id)
        self.attempts: list[EarlierAttempt] = []
        self._ended = False      # the spool is gone, or another run's
        self._lock = threading.Lock()
        self._segment = _Segment.empty(0)
        self._nodes: dict[str, Node] = {}
        for folder in (self.files.segment("trials", 0).parent, self.files.meta):
            make_folder(folder)
        remove_leftovers(self.files.root)
        if self._upload is not None:
            self.append_log({"event": "open"})
            self._upload.begin(self.files.log)

    @property
    def meta(self) -> Path:
        """The run's own folder for what is no table."""
        return self.files.meta

    def commit(
        self, trial: Trial, steps: Steps = (), telemetry: Sequence[Telemetry] = (), nodes: Sequence[Node] = ()
    ) -> None:
        """Write one attempt: once its row is visible, all that belongs to it is.

        `steps` are records, or each rank's own columns by rank. `nodes` may repeat those of earlier commits.
        """
        assert trial.sweep == self.files.sweep, trial.sweep
        assert trial.sweep_run_id == self.files.sweep_run_id, trial.sweep_run_id
        added = {
            "trials": from_records("trials", [trial]),
            "steps": from_ranks(trial.trial_uid, steps) if isinstance(steps, Mapping) else from_records("steps", steps),
            "telemetry": from_records("telemetry", telemetry),
        }
        with self._lock:
            if self._ended:
                raise StoreError(f"{self.files.root}: the run has ended; {trial.trial_id} is not kept and runs again")
            self._commit_nodes(nodes)
            grown = self._segment.plus(added)
            changed = [table for table in _IN_COMMIT_ORDER if added[table].num_rows]
            sizes = [self._write_table(self.files.segment(table, grown.number), grown.rows[table]) for table in changed]
            full = grown.rows["trials"].num_rows >= SEGMENT_TRIALS or max(sizes) >= SEGMENT_BYTES
            self._segment = _Segment.empty(grown.number + 1) if full else grown
            self.attempts.append(as_earlier(trial))
            upload = self._upload
            if full and upload is not None:
                self._send(*self.meta.glob("*.*"))
                upload.keep_no_longer([self.files.segment(table, grown.number) for table in _IN_COMMIT_ORDER])

    def _commit_nodes(self, nodes: Sequence[Node]) -> None:
        known = self._nodes | {node.node_key: node for node in nodes if node.node_key not in self._nodes}
        if len(known) > len(self._nodes):
            self._write_table(self.files.nodes, from_records("nodes", list(known.values())))
            self._nodes = known

    def _write_table(self, path: Path, rows: pa.Table) -> int:
        size_bytes = _write_table(path, rows)
        self._send(path)
        return size_bytes

    def _send(self, *paths: Path) -> None:
        """On to where they belong, when that is not where they were written."""
        upload = self._upload
        if upload is not None:
            for path in paths:
                upload.add(path)

    def settle(self) -> list[str]:
        """Wait until what was committed lies where it belongs, or has to wait; what there is to tell of that."""
        upload = self._upload
        if upload is not None:
            upload.settle(SETTLE_LIMIT_S)
        return upload.news() if upload is not None else []

    def news(self) -> list[str]:
        """What there is to tell of an object store since the last time."""
        return self._upload.news() if self._upload is not None else []

    def leave(self, limit_s: float) -> str | None:
        """Close in a hurry: where rows wait for the next run, None where all lie where they belong."""
        self._send(*self.meta.glob("*.*"))
        upload = self._detached()
        return upload.leave(limit_s) if upload is not None else None

    def close(self) -> None:
        """See that everything lies where it belongs. StoreError where it does not, with the place where it waits."""
        self._send(*self.meta.glob("*.*"))
        upload = self._detached()
        if upload is not None:
            upload.end(END_LIMIT_S)

    def _detached(self) -> Upload | None:
        """The upload; from now on nothing is committed."""
        upload, self._upload = self._upload, None
        self._ended = self._ended or upload is not None
        return upload

    def write_meta(self, name: str, text: str) -> Path:
        """Keep a text of this run, such as its resolved sweep."""
        return self._write_text(self.meta / check_name("file", name), text)

    def append_log(self, event: Mapping[str, Any]) -> None:
        """Add one event to the run's log, visible to others at once. The time is added."""
        line = json.dumps({"at": _now(), **event}, ensure_ascii=False) + "\n"
        with self._lock, told_as_store_error(self.files.log):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.files.log, flags, 0o644)
            with os.fdopen(descriptor, "w", encoding="utf-8") as log:
                log.write(line)

    def write_traceback(self, trial_uid: str, text: str) -> Path:
        """Keep the whole traceback of an attempt, of which the row holds 2 kB."""
        return self._write_text(self.files.traceback(trial_uid), text)

    def finish(self, planned: int, committed: int) -> None:
        """Note that the run came to its end. Readers never need the note."""
        note = {"at": _now(), "planned": planned, "committed": committed}
        self._write_text(self.meta / "COMPLETE.json", json.dumps(note) + "\n")

    def _write_text(self, path: Path, text: str) -> Path:
        make_folder(path.parent)
        # An error's text may hold what is no Unicode; it is kept legible rather than refused.
        write_file(path, text.encode("utf-8", "backslashreplace"))
        self._send(path)
        return path


def _write_table(path: Path, rows: pa.Table) -> int:
    """Write a whole file; its size in bytes. The rows are encoded in memory first, so that a full disk is one error."""
    make_folder(path.parent)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_checksum=True)
    encoded = sink.getvalue()

    write_file(path, memoryview(encoded), lambda part: _check_rows(part, rows.num_rows))
    return int(encoded.size)


def _check_rows(part: Path, expected: int) -> None:
    try:
        found = pq.read_metadata(part).num_rows
    except pa.ArrowInvalid as error:
        raise StoreError(f"{part}: what was written does not read back: {error}") from error
    if found != expected:
        raise StoreError(f"{part}: {expected} rows were written, {found} read back")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
