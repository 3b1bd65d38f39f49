"""Preparing by hand what trials would have prepared for them: the data sets of a sweep, or one of a source."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from raybench.sources.checksums import nobody
from raybench.sources.places import place
from raybench.sources.prepare import prepare, verify
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.reader import read_sweep, sweep_from_bytes

SOURCES: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "shards": {"workload": "encdec", "source": "shards"},
    "tokens": {"workload": "decoder", "source": "tokens"},
    "cifar100": {"workload": "resnet", "model.num_classes": 100, "source": "cifar100"},
    "ray_data": {"workload": "encdec", "source": "ray_data"},
    "images": {"workload": "resnet", "source": "images"},
})
"""Sources that read prepared data, with the settings that an override starts from."""


@dataclass(frozen=True)
class Prepared:
    """A data set that is there now. `seconds` is what making or checking it took."""

    path: Path
    num_bytes: int
    seconds: float
    was_there: bool
    verified: bool = False


def prepare_all(
    what: str, overrides: str | Sequence[str] = (), *, no_plugins: bool = False, all_bytes: bool = False,
    told: Callable[[Path, int, int], None] | None = None,
) -> Iterator[Prepared]:  # fmt: skip
    """Prepare on this node what a sweep's trials read (a file, or a shipped sweep's name), or what one source reads.

    With `all_bytes` every byte of it is hashed, too. `told` hears of each path how many of its bytes are done.

    Raises:
        SweepError, UsageError: there is no such sweep, or it or an override is wrong.
        DataError: a data set cannot be prepared, or is not what it should be.
    """
    for path, config in _wanted(what, overrides, no_plugins).items():
        was_there, started_s = path.exists(), time.perf_counter()
        tell = nobody if told is None else functools.partial(told, path)
        prepare(config, tell)
        if all_bytes:
            verify(config, tell)
        yield Prepared(path, _size(path), time.perf_counter() - started_s, was_there, all_bytes)


def _wanted(what: str, overrides: str | Sequence[str], no_plugins: bool) -> dict[Path, TrialConfig]:
    """One config for each data set, in the order of the trials."""
    if what in SOURCES:
        text = json.dumps({"name": what, "base": dict(SOURCES[what])})
        spec = sweep_from_bytes(text.encode(), what, overrides, no_plugins=no_plugins)
    else:
        spec = read_sweep(what, overrides, no_plugins=no_plugins)
    configs = [trial.config for trial in expand(spec, auto_workers=(1,)).trials]
    found: dict[Path, TrialConfig] = {}
    for config in configs:
        if (path := place(config)) is not None:
            found.setdefault(path, config)
    return found


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
