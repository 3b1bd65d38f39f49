"""The rows that a reading command works on."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from raybench.cli.tell import tell

if TYPE_CHECKING:
    import pandas as pd


def loaded(outs: list[str], *, latest: bool = True, columns: list[str] | None = None) -> pd.DataFrame:
    """The rows under `outs`; a file that cannot be read is one line on stderr."""
    from raybench.results.load import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = load(outs, latest=latest, columns=columns)
    for warning in caught:
        tell(f"warning: {warning.message}")
    return frame
