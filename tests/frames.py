"""Made-up records as `load` returns them, and as result folders for commands."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa

from raybench.record.trial import Trial
from raybench.results.layout import RunFiles
from raybench.results.schema import from_records
from raybench.results.store import RunStore
from tests.factories import RUN_ID

_DTYPES = {
    pa.string(): pd.StringDtype(), pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}  # fmt: skip


def frame_of(*trials: Trial) -> pd.DataFrame:
    """Rows of `trials` with the types that `load` gives them."""
    frame: pd.DataFrame = from_records("trials", list(trials)).to_pandas(types_mapper=_DTYPES.get)
    return frame


def store(out: Path, *trials: Trial) -> RunFiles:
    """Commit trials of the sweep `quick` under `out`, as one run."""
    run = RunStore(out, "quick", RUN_ID)
    for trial in trials:
        run.commit(trial)
    return run.files
