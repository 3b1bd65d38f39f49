"""What the rows at hand can be compared along: the answer to a question that has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from raybench.errors import UsageError
from raybench.results.configs import NOT_WORK, derived_batch_number, flattened, within

_FIRST: Final = ("cluster", "num_workers", "precision", "source", "micro_batch", "global_batch", "seq_len", "model")
_NAMED: Final = {"model_name": "model", "source.name": "source"}
_NO_AXES: Final = NOT_WORK | {"workload", "batch_given"}
_LISTED: Final = 8


class NothingVaries(UsageError):
    """All rows have the same value, so there is nothing to compare with. `varying` are the axes that have several."""

    def __init__(self, told: str, varying: Sequence[str]) -> None:
        super().__init__(f"{told}{what_varies(varying)}{f': compare by={varying[0]}' if varying else ''}")
        self.told, self.varying = told, tuple(varying)


def what_varies(varying: Sequence[str]) -> str:
    """`; what varies is num_workers, precision`, or nothing."""
    return f"; what varies is {', '.join(varying[:_LISTED])}" if varying else ""


def varying_axes(frame: pd.DataFrame, configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The axes along which the rows have several values, the usual ones first; within a workload, as works go."""
    found = ["cluster"] if frame["cluster"].nunique() > 1 else []
    workloads = dict.fromkeys(config.get("workload") for config in configs)
    for workload in workloads:
        found += _varying_in([config for config in configs if config.get("workload") == workload])
    rank = {name: index for index, name in enumerate(_FIRST)}
    return sorted(dict.fromkeys(found), key=lambda name: rank.get(name, len(rank)))


def _varying_in(configs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    settings = [dict(flattened(config)) for config in configs]
    several = {path for values in settings for path in values if values[path] != settings[0].get(path)}
    several -= {derived_batch_number(config.get("batch_given")) for config in configs}
    for path in dict.fromkeys(path for values in settings for path in values):
        follows = path.startswith("model.") and "model_name" in several
        follows |= path.startswith("source.") and path != "source.name" and "source.name" in several
        if path in several and not follows and not within(path, _NO_AXES):
            yield _NAMED.get(path, path)
