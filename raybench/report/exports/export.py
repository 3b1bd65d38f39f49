"""Results in the shapes of other tools, for people whose scripts read those: from Parquet alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from raybench.errors import UsageError
from raybench.report.exports import bench_json, run_summary, step_csv, training_metrics
from raybench.report.exports.facts import Exported, exported
from raybench.report.exports.text import File
from raybench.results.atomic import make_folder, write_file

Exporter = Callable[[Iterable[Exported]], Iterator[File]]


def _each(files: Callable[[Exported], Iterator[File]]) -> Exporter:
    return lambda trials: chain.from_iterable(map(files, trials))


FORMS: Final[Mapping[str, Exporter]] = {
    "bench-json": _each(bench_json.files),
    "step-csv": step_csv.files,
    "training-metrics": _each(training_metrics.files),
    "run-summary": _each(run_summary.files),
}
"""By the names of the files that they write."""


def export(
    outs: str | Path | Sequence[str | Path], *, form: str, to: str | Path, include_invalid: bool = False
) -> list[Path]:
    """Write the trials under `outs` that ended `ok` below the folder `to`, in one of `FORMS`; the files' paths.

    Those forms have no word for a number that must not be used, so invalid rows are left out unless they are asked
    for. The same rows make the same files again. Raises UsageError for an unknown form or where there is nothing.
    """
    if form not in FORMS:
        raise UsageError(f"as={form}: no such form; there are {', '.join(FORMS)}")
    trials = list(exported(outs, include_invalid=include_invalid))
    if not trials:
        raise UsageError("nothing to export: no trial ended ok with a valid number")
    written = []
    for file in FORMS[form](trials):
        path = Path(to, *file.path.split("/"))
        make_folder(path.parent)
        write_file(path, file.text.encode())
        written.append(path)
    return written
