"""What rows are compared along: a column of `trials`, or a setting inside `config` such as `model.dropout`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd

from raybench.errors import UsageError
from raybench.judge.varying import varying_axes, what_varies
from raybench.results.configs import derived_batch_number, flattened, pairing_key, parsed, value_at

IDENTITY: Final = ("cluster", "sweep", "sweep_run_id")
RAN: Final = (
    "device_kind", "gpu_model", "num_nodes", "cpu_threads", "ray_address_source", "effective_precision",
    "effective_attention", "effective_strategy", "backend", "torch_version", "ray_version", "cuda_version",
    "driver_version", "raybench_version",
)  # fmt: skip
ASKED: Final = (
    "workload", "model", "seq_len", "vocab_size", "num_workers", "micro_batch", "grad_accum", "global_batch",
    "precision", "phase", "strategy", "compile", "attention", "activation_checkpointing", "optimizer", "source",
    "data_cache", "loader_workers", "quality", "isolation", "device_requested", "seed", "nodes", "packing",
)  # fmt: skip
_PATHS: Final = {
    "loader_workers": {"source.loader_workers"},
    "device_requested": {"device"},
    "source": {f"source.{part}" for part in (
        "name", "num_shards", "loader_workers", "dtype", "prefetch", "image_format", "options",
    )},
}
"""Where a column is not the one setting of its name. Not every source has the options that are listed with it."""
_BATCH: Final = frozenset({"num_workers", "micro_batch", "grad_accum", "global_batch"})
"""When one of these varies, the batch number derived from it varies too and is no difference in what was asked."""

Configs = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Axis:
    """One axis over the rows of a frame: the different values in the order they are shown, and each row's place."""

    name: str
    levels: tuple[Any, ...]
    codes: np.ndarray[Any, np.dtype[np.int64]]     # (rows,), -1 where a row has no such setting

    @property
    def paths(self) -> frozenset[str]:
        """What it varies in `config`; nothing for what is no setting, such as the cluster."""
        if self.name in IDENTITY or self.name in RAN:
            return frozenset()
        return frozenset(_PATHS.get(self.name, {self.name}))


@dataclass(frozen=True)
class ParsedConfigs:
    """The column `config`, parsed once for each different text."""

    configs: Configs
    codes: np.ndarray[Any, np.dtype[np.int64]]     # (rows,), into `configs`

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ParsedConfigs:
        codes, texts = pd.factorize(frame["config"].fillna("").to_numpy(dtype=object))
        return cls([parsed(str(text)) for text in texts], codes.astype(np.int64))

    def spread(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        """One value a config, as one value a row."""
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column[self.codes] if len(values) else column

    def row(self, index: int) -> Mapping[str, Any]:
        """The config of one row."""
        return self.configs[int(self.codes[index])]


def read_axes(by: str | Sequence[str], frame: pd.DataFrame, parsed_configs: ParsedConfigs) -> tuple[Axis, ...]:
    """The axes that `by` names (`cluster`, or `precision,num_workers`). Raises UsageError for one that is none."""
    names = axis_names(by)
    if not all(names) or not names or len(set(names)) < len(names):
        raise UsageError(f"by={by}: name each axis once, joined by commas")
    return tuple(_axis(name, frame, parsed_configs) for name in names)


def axis_names(by: str | Sequence[str]) -> list[str]:
    """The names in `precision,num_workers`, or in a list of them."""
    return [name.strip() for name in (by.split(",") if isinstance(by, str) else by)]


def _axis(name: str, frame: pd.DataFrame, parsed_configs: ParsedConfigs) -> Axis:
    if name in (*IDENTITY, *RAN, *ASKED):
        if name not in frame:
            raise UsageError(f"by={name}: the rows come without this column; load it too")
        values = np.array([None if pd.isna(value) else value for value in frame[name]], dtype=object)
    else:
        values = parsed_configs.spread([_plain(value_at(config, name)) for config in parsed_configs.configs])
        if all(value is None for value in values):
            raise UsageError(f"by={name}: no such axis{_meant(name, frame, parsed_configs.configs)}")
    codes, found = pd.factorize(values, use_na_sentinel=True)
    levels = _in_order(name, list(found), frame, codes)
    position = {level: index for index, level in enumerate(levels)}
    places = np.array([position[level] for level in found] + [-1], dtype=np.int64)
    return Axis(name, tuple(levels), places[codes])


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Mapping | list) else value


def _in_order(name: str, found: list[Any], frame: pd.DataFrame, codes: np.ndarray[Any, Any]) -> list[Any]:
    """Numbers ascend, clusters and machines go by the alphabet, settings as the sweep lists them."""
    numeric = all(isinstance(value, Real) for value in found)       # numpy's numbers are no int
    if numeric or name in IDENTITY or name in RAN:
        return sorted(found)
    first = frame["sweep_order"].groupby(codes).min()
    return [found[code] for code in sorted(range(len(found)), key=lambda code: (first[code], code))]


def pairs_of(frame: pd.DataFrame, axes: Sequence[Axis], parsed_configs: ParsedConfigs) -> np.ndarray[Any, Any]:
    """A key for each row: equal for rows that did the same work but for the axes."""
    paths = varied(axes)
    if not paths:
        return frame["work_key"].to_numpy(dtype=object)
    return parsed_configs.spread([_pairing_key(config, paths) for config in parsed_configs.configs])


def varied(axes: Sequence[Axis]) -> frozenset[str]:
    """The paths in `config` of all axes."""
    return frozenset[str]().union(*(axis.paths for axis in axes))


def left_out_of_pairs(config: Mapping[str, Any], paths: frozenset[str]) -> frozenset[str]:
    """The settings that may differ within a pair: the axes, and the batch number that follows from them."""
    derived = derived_batch_number(config.get("batch_given")) if paths & _BATCH else None
    return paths | {derived} if derived else paths


def _pairing_key(config: Mapping[str, Any], paths: frozenset[str]) -> str:
    return pairing_key(dict(config), without=left_out_of_pairs(config, paths))


def _meant(name: str, frame: pd.DataFrame, configs: Configs) -> str:
    known = {*IDENTITY, *RAN, *ASKED} | {path for config in configs[:1000] for path, _ in flattened(config)}
    near = difflib.get_close_matches(name, sorted(known), n=1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return what_varies(varying_axes(frame, configs)) or "; it is a setting of the sweep, cluster or gpu_model"
