"""What Python calls and spans both halves of the house: running a sweep, watched on the screen, to its rows.

The other functions of `raybench` come straight from the folders that own them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from raybench.record.run import Observer


def run(
    sweep: str | Path, *, progress: bool = True, observer: Observer | None = None, **options: Any
) -> pd.DataFrame:
    """Run a sweep and return the latest row of each of its trials on this cluster, in the sweep's order.

    `sweep` is a file or the name of a shipped sweep. What happens is shown as by the command, a line a trial in a
    notebook; `progress=False` shows nothing, an `observer` is told instead. `options` are those of `run_sweep`.
    Ctrl-C commits what is known and raises KeyboardInterrupt. Raises UsageError where Ray is not installed.
    """
    from raybench.cluster.needs import DRIVER, need

    need(*DRIVER)
    from raybench.cluster.run import run_sweep
    from raybench.results.load import load

    with watched() if progress and observer is None else contextlib.nullcontext(observer) as watcher:
        closed = run_sweep(sweep, observer=watcher, **options)
    frame = load(closed.out)
    mine = (frame["sweep"] == closed.sweep) & (frame["cluster"] == closed.cluster)
    mine &= frame["trial_id"].isin(set(closed.trial_ids))
    rows: pd.DataFrame = frame.loc[mine].sort_values("sweep_order", ignore_index=True)
    return rows


@contextlib.contextmanager
def watched() -> Iterator[Observer]:
    """Whoever shows a run on standard output: a display on a terminal, lines in a notebook, a pipe or a log."""
    from raybench.cluster.quiet import kept_stdout
    from raybench.report.console import console_on
    from raybench.report.progress import ProgressDisplay

    with kept_stdout() as terminal, ProgressDisplay(console_on(terminal)) as display:
        yield display
