"""Scaling curves: rows that differ in nothing but the number of GPUs, and in what must follow from it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from raybench.judge.axes import ParsedConfigs
from raybench.results.configs import (
    NOT_WORK,
    derived_batch_number,
    distinct_labels,
    flattened,
    pairing_key,
    within,
)
from raybench.spec.config import ADDED_SINCE_RB1

STRONG, WEAK = "strong", "weak"
FACTS: Final = (
    "cluster", "device_kind", "gpu_model", "quality", "effective_precision", "effective_strategy",
    "effective_attention", "backend", "raybench_version", "torch_version", "cuda_version", "driver_version",
    "ray_version",
)  # fmt: skip
"""Columns that are equal on all of a curve: where it ran, what really ran, and with which software."""
_FOLLOWS: Final = frozenset({"num_workers", "nodes", "packing"})
"""Settings that say how many GPUs there are and where."""
_BATCH: Final = frozenset({"micro_batch", "grad_accum", "global_batch"})
_RESOLVED: Final = frozenset({"device", "backend"})
"""Asked as `auto` or by name: what came of it is among the facts."""


@dataclass(frozen=True)
class Curve:
    """One shape, one machine, one software: `counts` are the numbers of GPUs at which it has a row that ended `ok`."""

    number: int
    kind: str                         # strong: equal work in all; weak: equal work on each GPU
    label: str
    config: Mapping[str, Any]         # of its first row
    facts: Mapping[str, Any]          # by column; None where no row ended `ok`
    counts: frozenset[int]
    attempted: frozenset[int]         # also those that failed


def curves_of(frame: pd.DataFrame, configs: ParsedConfigs) -> tuple[pd.DataFrame, list[Curve]]:
    """The rows with `pair` (their curve's number), `value` (GPUs), `work`, `order` and `row`; and the curves."""
    kinds = _kinds(configs.configs)
    asked = [_asked_key(config, kind) for config, kind in zip(configs.configs, kinds, strict=True)]
    rows: pd.DataFrame = frame.assign(
        value=frame["num_workers"].astype("int64"), row=np.arange(len(frame)), asked=configs.spread(asked),
        kind=configs.spread(kinds),
    )  # fmt: skip
    rows["pair"] = _numbered(rows)
    rows["order"] = rows.groupby("pair", sort=False)["sweep_order"].transform("min").astype("int64")
    curves = _told_apart(_curves(rows, configs))
    rows["work"] = rows["pair"].map({curve.number: curve.label for curve in curves})
    return rows, curves


def settings(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The settings in which the rows of a curve are equal, by dotted path; none that an older row lacks by default."""
    left_out = NOT_WORK | _FOLLOWS | _RESOLVED | (_BATCH - _kept_batch(config, kind))
    return {
        path: value
        for path, value in flattened(config)
        if not within(path, left_out) and value not in ADDED_SINCE_RB1.get(path, ())
    }


def _kinds(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which curve each config belongs to: weak where the whole batch follows from the GPUs.

    A batch that was given as a whole is strong scaling, and so is work without batches, of which each rank has a part.
    Given both a GPU's batch and the whole, it is strong where the whole has several numbers of GPUs, else weak where
    that of a GPU has.
    """
    derived = [derived_batch_number(config.get("batch_given")) for config in configs]
    kinds = [WEAK if number == "global_batch" else STRONG for number in derived]
    both = [index for index, config in enumerate(configs) if {"micro_batch", "global_batch"} <= _given(config)]
    keys = {kind: {index: _asked_key(configs[index], kind) for index in both} for kind in (STRONG, WEAK)}
    counts: dict[str, set[Any]] = {}
    for of_kind in keys.values():
        for index, key in of_kind.items():
            counts.setdefault(key, set()).add(configs[index].get("num_workers"))
    for index in both:
        if len(counts[keys[STRONG][index]]) == 1 and len(counts[keys[WEAK][index]]) > 1:
            kinds[index] = WEAK
    return kinds


def _given(config: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(config.get("batch_given") or "").split("+")) & _BATCH


def family_of(config: Mapping[str, Any]) -> str:
    """What is shown together: a workload, and of the products the square ones apart from those of many rows."""
    shape, workload = config.get("model"), str(config.get("workload"))
    if not isinstance(shape, Mapping) or not {"m", "k", "n"} <= shape.keys():
        return workload
    return f"{workload}, {'square' if shape['m'] == shape['k'] == shape['n'] else 'batch'}"


def _kept_batch(config: Mapping[str, Any], kind: str) -> frozenset[str]:
    """The batch numbers that are equal on the curve of a config: the total, or those of a GPU, and what was given."""
    if kind == WEAK:
        return frozenset({"micro_batch", "grad_accum"})
    given = _given(config)
    return given | {"global_batch"} if len(given) < len(_BATCH) else frozenset({"global_batch"})


def _asked_key(config: Mapping[str, Any], kind: str) -> str:
    kept = _kept_batch(config, kind)
    numbers = json.dumps([kind, {name: config.get(name) for name in sorted(kept)}])
    return pairing_key(dict(config), without=_FOLLOWS | _RESOLVED | _BATCH) + numbers


def _numbered(rows: pd.DataFrame) -> list[int]:
    """A curve's number for each row: by what was asked and by all facts, which only rows that ended `ok` have.

    What failed belongs to the first curve that was asked the same on its cluster and lacks its number of GPUs.
    """
    numbers: dict[Hashable, int] = {}
    counts: dict[int, set[int]] = {}
    of_asked: dict[Hashable, list[int]] = {}
    found = dict.fromkeys(rows.index, 0)
    for index, asked, count, facts in _identified(rows, ok=True):
        number = numbers.setdefault((asked, facts), len(numbers))
        counts.setdefault(number, set()).add(count)
        if number not in of_asked.setdefault((asked, facts[0]), []):
            of_asked[asked, facts[0]].append(number)
        found[index] = number
    for index, asked, count, facts in _identified(rows, ok=False):
        lacking = [number for number in of_asked.get((asked, facts[0]), []) if count not in counts[number]]
        found[index] = lacking[0] if lacking else numbers.setdefault((asked, facts[0]), len(numbers))
    return list(found.values())


def _identified(rows: pd.DataFrame, *, ok: bool) -> Iterator[tuple[Any, str, int, tuple[Any, ...]]]:
    chosen = rows[rows["outcome"].eq("ok").astype(bool) == ok]
    facts = zip(*(plain(chosen[name]) for name in FACTS), strict=True)
    yield from zip(chosen.index, chosen["asked"], map(int, chosen["value"]), facts, strict=True)


def plain(column: pd.Series[Any]) -> list[Any]:
    """A column as Python's own values, None where null: a row at a time, pandas takes a hundred times as long."""
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    return values


def _curves(rows: pd.DataFrame, configs: ParsedConfigs) -> list[Curve]:
    """Each curve, with the config of its first row and the facts of its first one that ended `ok`."""
    found: dict[int, Curve] = {}
    columns = [rows["outcome"].eq("ok"), *(rows[name] for name in ("pair", "value", "row", "kind", *FACTS))]
    for ok, pair, value, row, kind, *facts in zip(*map(plain, columns), strict=True):
        seen, config = found.get(pair), configs.row(row)
        if seen is None:
            nothing = dict.fromkeys(FACTS) | {"cluster": facts[0]}
            seen = Curve(pair, kind, "", config, nothing, frozenset(), frozenset())
        known = dict(zip(FACTS, facts, strict=True)) if ok and not seen.counts else seen.facts
        counts = seen.counts | {value} if ok else seen.counts
        found[pair] = replace(seen, facts=known, counts=counts, attempted=seen.attempted | {value})
    return list(found.values())


def _told_apart(curves: Sequence[Curve]) -> list[Curve]:
    """Each with a label; where several share one, with the batch and the facts in which they differ."""
    left_out = [
        _FOLLOWS | ({"global_batch"} if curve.kind == WEAK else {"micro_batch", "grad_accum"}) for curve in curves
    ]
    labels = distinct_labels([curve.config for curve in curves], left_out, NOT_WORK | _RESOLVED)
    alike: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        alike.setdefault(label, []).append(index)
    for members in alike.values():
        said = [_sayable(curves[index]) for index in members]
        varying = [name for name in said[0] if len({str(values.get(name)) for values in said}) > 1]
        for index, values in zip(members, said, strict=True):
            labels[index] += "".join(f" {_short(name)}={values[name]}" for name in varying)
    return [replace(curve, label=label) for curve, label in zip(curves, labels, strict=True)]


def _sayable(curve: Curve) -> dict[str, Any]:
    batch = {name: curve.config.get(name) for name in sorted(_kept_batch(curve.config, curve.kind))}
    facts = {name: value for name, value in curve.facts.items() if name != "cluster"}     # it has its own column
    return {"scaling": curve.kind, **dict.fromkeys(sorted(_BATCH)), **batch, **facts}


def _short(name: str) -> str:
    return name.removeprefix("effective_").removesuffix("_version")
