"""Where each table of a run lies under `<out>`: the only place that knows folder and file names."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from raybench.errors import StoreError, UsageError
from raybench.results.objects import ObjectPath, retried
from raybench.results.place import Place
from raybench.spec.names import is_name

MAJOR: Final = 1
LAYOUT: Final = f"raybench-v{MAJOR}"

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_UID = re.compile(r"[0-9a-f]{32}")
_LAYOUTS = re.compile(r"raybench-v(\d+)")


def check_name(what: str, name: str) -> str:
    """`name`, if it may become a folder's name; `what` it names is told in the `UsageError` otherwise."""
    if not is_name(name):
        raise UsageError(
            f"{what} {name!r} is no usable name: 1 to 64 of a-z 0-9 . _ -, "
            "starting with a letter or digit and without `..`"
        )
    return name


def new_run_id(now: datetime) -> str:
    """A `sweep_run_id`: UTC stamp and 8 random hex, so that two runs started in the same second stay apart."""
    assert now.tzinfo is not None
    return f"{now.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class RunFiles:
    """The files that one run owns. `root` is the `raybench-v1` folder; with `Path()`, names within one anywhere."""

    root: Path
    sweep: str
    sweep_run_id: str

    def __post_init__(self) -> None:
        check_name("sweep", self.sweep)
        assert _RUN_ID.fullmatch(self.sweep_run_id), self.sweep_run_id

    def segment(self, table: str, number: int) -> Path:
        """A segment of `trials`, `steps` or `telemetry`, counted from 0; one number, one set of trials."""
        return self.root / table / self.sweep / f"{self.sweep_run_id}-{number:04d}.parquet"

    @property
    def nodes(self) -> Path:
        """The run's file of the `nodes` table."""
        return self.root / "nodes" / self.sweep / f"{self.sweep_run_id}.parquet"

    @property
    def meta(self) -> Path:
        """What no reader of the tables needs: log, resolved sweep, tracebacks, the note that the run is complete."""
        return self.root / "_meta" / self.sweep / self.sweep_run_id

    @property
    def log(self) -> Path:
        """One JSON object a line, one line an event."""
        return self.meta / "log.jsonl"

    def traceback(self, trial_uid: str) -> Path:
        """The whole traceback of an attempt that failed."""
        assert _UID.fullmatch(trial_uid), trial_uid
        return self.meta / "tracebacks" / f"{trial_uid}.txt"


def find_root(out: Place) -> Place:
    """The `raybench-v1` folder of `out`, which may be that folder itself; `StoreError` where there is none."""
    candidates: Sequence[Place]
    if isinstance(out, ObjectPath):
        candidates = [out] if _LAYOUTS.fullmatch(out.name) else retried(lambda: out.below(recursive=False))
    else:
        candidates = _folders(out)
    roots = {int(found[1]): path for path in candidates if (found := _LAYOUTS.fullmatch(path.name))}
    newer = [path for major, path in roots.items() if major > MAJOR]
    if newer:
        raise StoreError(f"{newer[0]}: written by a newer raybench, this one reads up to {LAYOUT}; upgrade raybench")
    if MAJOR not in roots:
        raise StoreError(f"no raybench results under {out}")
    return roots[MAJOR]


def _folders(out: Path) -> list[Path]:
    if not out.is_dir():
        raise StoreError(f"{out}: not a folder" if out.exists() else f"{out}: no such folder")
    resolved = out.resolve()
    return [resolved] if _LAYOUTS.fullmatch(resolved.name) else sorted(out.glob("raybench-v*/"))


def table_files(root: Place, table: str, sweep: str | None = None) -> list[Place]:
    """The Parquet files of a table, sorted; of one sweep's folder when it is named. What starts with `_` is not one."""
    found: Sequence[Place]
    if isinstance(root, ObjectPath):
        folder = root / table if sweep is None else root / table / sweep
        depth = root.key.count("/") + 3
        below = [path for path in retried(folder.below) if path.key.count("/") == depth]
        found = [path for path in below if path.name.endswith(".parquet")]
    else:
        found = sorted((root / table).glob(f"{sweep or '*'}/*.parquet"))
    return [path for path in found if not path.name.startswith(("_", "."))]
