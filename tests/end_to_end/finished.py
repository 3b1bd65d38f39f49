"""One run of the shipped sweep `quick` without an option, watched while it writes and kept for many tests."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa

from raybench.errors import RaybenchError
from raybench.results.load import load
from tests.end_to_end.harness import LIMIT_S, Host

PACE_S = 0.05     # between two reads, which would otherwise take one of the two cores from what is measured


@dataclass
class Reads:
    """What a reader saw while the run was writing: how many rows each time, and what went wrong."""

    pandas: list[int] = field(default_factory=list)
    load: list[int] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)


@dataclass(frozen=True)
class Finished:
    """The run when it is over. `out` is where it put its results: `results` in the folder it was started in."""

    host: Host
    exit_code: int
    stdout: str
    stderr: str
    reads: Reads

    @property
    def out(self) -> Path:
        return self.host.folder / "results"

    def trials(self) -> pd.DataFrame:
        """The rows in the order of the sweep."""
        return load(self.out).sort_values("sweep_order", ignore_index=True)

    def steps(self) -> pd.DataFrame:
        """Every step of every rank, each with the columns of its trial that tests go by."""
        about = ["trial_uid", "workload", "precision", "source", "num_workers", "world_size", "measured_s"]
        return load(self.out, table="steps").merge(self.trials()[about], on="trial_uid", validate="many_to_one")

    def told(self) -> str:
        """Everything the run said, for the message of a failing test."""
        return f"exit {self.exit_code}\n{self.stdout}\n{self.stderr}"


def run_quick(host: Host) -> Finished:
    """Run it to its end, while a thread reads what is there."""
    reads, over = Reads(), threading.Event()
    reader = threading.Thread(target=_read_until, args=(host.folder / "results", over, reads))
    process = host.start("run", "quick")
    reader.start()
    try:
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait()
        over.set()
        reader.join()
    return Finished(host, process.returncode, stdout, stderr, reads)


def _read_until(out: Path, over: threading.Event, reads: Reads) -> None:
    """Read both promised ways from the first committed row on. `strict`: a file that cannot be read is an error."""
    trials = out / "raybench-v1" / "trials"
    while not over.wait(PACE_S):
        if not any(trials.glob("*/*.parquet")):
            continue
        try:
            reads.pandas.append(len(pd.read_parquet(trials)))
            reads.load.append(len(load(out, strict=True)))
        except (OSError, ValueError, pa.ArrowException, RaybenchError) as error:
            reads.errors.append(error)
