"""Rows that must not be put against each other, each with the reason a person needs to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

import pandas as pd

from raybench.errors import ComparisonError
from raybench.judge.axes import Axis, ParsedConfigs, left_out_of_pairs, varied
from raybench.judge.sides import SIDE
from raybench.judge.varying import NothingVaries, varying_axes
from raybench.results.configs import NOT_WORK, flattened, within

_TRIED: Final = 40          # configs of each side that are searched for the nearest two
_SHOWN: Final = 6
_SAME_MACHINES: Final = ("cluster", "device_kind", "gpu_model")


def refuse_single_value(axes: Sequence[Axis], rows: pd.DataFrame, parsed_configs: ParsedConfigs) -> None:
    """There must be something to compare with. Raises NothingVaries, which says what there is."""
    if rows["value"].nunique() > 1:
        return
    names = ",".join(axis.name for axis in axes)
    only = ", ".join(str(axis.levels[0]) for axis in axes if axis.levels) or "none"
    varying = [name for name in varying_axes(rows, parsed_configs.configs) if name not in names.split(",")]
    raise NothingVaries(f"all rows have the same {names} ({only}), so there is nothing to compare with", varying)


def refuse_nothing_in_common(axes: Sequence[Axis], rows: pd.DataFrame, parsed_configs: ParsedConfigs) -> None:
    """Some work must have been run at two values of the axes."""
    if (rows.groupby("pair", sort=False)["value"].nunique() > 1).any():
        return
    names = ",".join(axis.name for axis in axes)
    _refuse_models_of_different_workloads(axes, rows, parsed_configs)
    differing = _nearest(rows, parsed_configs, varied(axes))
    raise ComparisonError(
        f"nothing in common: no work was run with two values of {names}; the nearest two also differ in {differing}"
    )


def _refuse_models_of_different_workloads(
    axes: Sequence[Axis], rows: pd.DataFrame, parsed_configs: ParsedConfigs
) -> None:
    """Settings are no help where the models have none in common."""
    workload = rows["row"].map(lambda row: parsed_configs.row(row).get("workload"))
    if "model" not in {axis.name for axis in axes} or (rows["value"].groupby(workload).nunique() > 1).any():
        return
    named = ", ".join(sorted({f"{name} {model}" for name, model in zip(workload, rows["model"], strict=True)}))
    raise ComparisonError(f"the models belong to different workloads ({named}), which have no work in common")


def refuse_mixed_work(rows: pd.DataFrame, parsed_configs: ParsedConfigs) -> None:
    """Rows of one side are averaged, so they must be the same work on the same machines."""
    for column in _SAME_MACHINES:
        found = rows.groupby(SIDE, sort=False)[column].nunique()
        if (found > 1).any():
            mixed = _most_mixed(rows, found)
            values = " and ".join(sorted(map(str, mixed[column].dropna().unique())))
            raise ComparisonError(
                f"one value holds rows of {values}: {mixed['work'].iloc[0]}; name {column} too, as in --by ...,{column}"
            )
    kinds = rows.groupby(SIDE, sort=False)["work_key"].nunique()
    if not (kinds > 1).any():
        return
    mixed = _most_mixed(rows, kinds)
    first, *others = mixed.drop_duplicates("work_key")["row"].to_list()
    differing = _differences(parsed_configs.row(first), parsed_configs.row(others[0]), frozenset())
    raise ComparisonError(
        f"one value holds different work: {mixed['work'].iloc[0]} also differs in {_told(differing)}; "
        f"name it too, as in --by ...,{next(iter(differing), 'seed')}"
    )


def _most_mixed(rows: pd.DataFrame, found: pd.Series[int]) -> pd.DataFrame:
    """The rows of the side with the most different values."""
    pair, value = found.index[int(found.to_numpy().argmax())]
    mixed: pd.DataFrame = rows[rows["pair"].eq(pair) & rows["value"].eq(value)]
    return mixed


def refuse_unlike_devices(sides: pd.DataFrame) -> None:
    """A CPU's number says nothing about a GPU's."""
    comparable = sides[sides["comparable"]]
    kinds = comparable.groupby("pair", sort=False)["device_kind"].nunique()
    if (kinds > 1).any():
        work = comparable.loc[kinds.idxmax(), "work"].iloc[0]
        raise ComparisonError(f"CPU against GPU is no comparison: {work} ran on both; compare one kind at a time")


def refuse_quick_against_full(sides: pd.DataFrame) -> None:
    """A quick run is a first look; it must never pass for a measurement."""
    comparable = sides[sides["comparable"]]
    kinds = comparable.groupby("pair", sort=False)["quality"].nunique()
    if (kinds > 1).any():
        mixed = comparable.loc[kinds.idxmax()]
        kinds_told = " against ".join(sorted(set(mixed["quality"])))
        raise ComparisonError(
            f"{kinds_told} is no comparison: {mixed['work'].iloc[0]} was measured as both; "
            "measure again without --quick, or look all the same with --allow-quick"
        )


def _nearest(rows: pd.DataFrame, parsed_configs: ParsedConfigs, paths: frozenset[str]) -> str:
    """The settings in which the two most alike rows of different values differ."""
    by_value = [group["row"].head(_TRIED).to_list() for _, group in rows.groupby("value", sort=True)]
    first, others = by_value[0], [row for group in by_value[1:] for row in group][:_TRIED]
    candidates = [
        _differences(parsed_configs.row(a), parsed_configs.row(b), paths) for a, b in product(first, others)
    ]
    return _told(min(candidates, key=len))


def _differences(
    a: Mapping[str, Any], b: Mapping[str, Any], paths: frozenset[str]
) -> dict[str, tuple[Any, Any]]:
    left_out = left_out_of_pairs(a, paths) | left_out_of_pairs(b, paths)
    settings_a, settings_b = dict(flattened(a)), dict(flattened(b))
    names = dict.fromkeys([*settings_a, *settings_b])
    return {
        name: (settings_a.get(name), settings_b.get(name))
        for name in names
        if settings_a.get(name) != settings_b.get(name) and not within(name, left_out | NOT_WORK)
    }


def _told(differing: Mapping[str, tuple[Any, Any]]) -> str:
    told = [f"{name} ({a} / {b})" for name, (a, b) in list(differing.items())[:_SHOWN]]
    more = len(differing) - len(told)
    return ", ".join(told) + (f" and {more} more" if more > 0 else "") if told else "nothing that is recorded"
