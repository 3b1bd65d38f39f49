"""Whether two sides of a scaling curve did like work, by what was counted, and what else a reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from raybench.judge.curves import STRONG, Curve, plain
from raybench.judge.fingerprints import tells_of_other_maths
from raybench.judge.sides import SIDE
from raybench.judge.told import told_differences

MORE_THAN_LINEAR = 1.05
_PER_STEP = ("measured_samples", "measured_tokens", "model_flops")
_SEEN = ("cpu_threads", "num_nodes", "isolation", "warmup_steps")


def work_of(used: pd.DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    """By curve and number of GPUs: what was counted in a step and in a trial, and how it ran.

    A number of which the repeats differ is told with all its values, so that it equals no other.
    """
    steps = used["measured_steps"]
    columns = {
        "measured_samples": used["measured_samples"] / steps,
        "measured_tokens": used["measured_tokens"] / steps,
        "model_flops": used["model_flops_per_step"],
        "total_samples": used["measured_samples"],
        "total_tokens": used["measured_tokens"],
        "by_time": used["measured_s_asked"].notna(),
        **{name: used[name] for name in ("world_size", "parameters", *_SEEN)},
    }
    values = [plain(column) for column in columns.values()]
    found: dict[tuple[int, int], dict[str, dict[Any, None]]] = {}
    for pair, value, *row in zip(*(used[key] for key in SIDE), *values, strict=True):
        of_side = found.setdefault((int(pair), int(value)), {name: {} for name in columns})
        for name, one in zip(columns, row, strict=True):
            of_side[name][one] = None
    return {key: {name: _only(tuple(different)) for name, different in side.items()} for key, side in found.items()}


def _only(different: tuple[Any, ...]) -> Any:
    return different[0] if len(different) == 1 else different


def errors(curve: Curve, base: Mapping[str, Any], side: Mapping[str, Any], times: float) -> list[str]:
    """Why the side is no comparison with its baseline of `1 / times` as many GPUs, though the same was asked."""
    return list(told_differences(dict(_unlike_work(curve, base, side, times))))


def _unlike_work(
    curve: Curve, base: Mapping[str, Any], side: Mapping[str, Any], times: float
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    grows = 1.0 if curve.kind == STRONG else times
    each = "a step" if curve.kind == STRONG else "a step and GPU"
    names = dict(zip(_PER_STEP, ("samples", "tokens", "FLOPs"), strict=True))
    for name, word in names.items():
        if not _equal(base[name], side[name], grows):
            yield f"{word} {each}", (_number(base[name], 1.0), _number(side[name], grows))
            return
    if not _equal(base["world_size"], side["world_size"], times):
        yield "ranks that ran", (base["world_size"], side["world_size"])
    if base["parameters"] != side["parameters"]:
        yield "parameters", (base["parameters"], side["parameters"])
    if side["by_time"] is not True and not total_is_equal(curve, base, side, times):
        if _equal(base["total_samples"], side["total_samples"], 1.0):
            return          # a fixed total, of which more GPUs have less each: fewer steps of the same size
        yield "samples in all", (_number(base["total_samples"], 1.0), _number(side["total_samples"], 1.0))


def total_is_equal(curve: Curve, base: Mapping[str, Any], side: Mapping[str, Any], times: float) -> bool:
    """Whether both did the same work in all (weak: on each GPU), so that whole durations may be compared."""
    grows = 1.0 if curve.kind == STRONG else times
    return all(_equal(base[name], side[name], grows) for name in ("total_samples", "total_tokens"))


def cautions(base: Mapping[str, Any], side: Mapping[str, Any], efficiency: float | None) -> list[str]:
    """What does not forbid the comparison and may still explain it."""
    told = list(told_differences({name: (base[name], side[name]) for name in _SEEN if base[name] != side[name]}))
    if efficiency is not None and efficiency > MORE_THAN_LINEAR:
        told.append("more than linear: something else than the number of GPUs held the baseline back")
    return told


def other_maths(curve: Curve, base: float, side: float) -> list[str]:
    """Whether the fingerprints of equal work tell of another computation; nothing where one is not known.

    Weak scaling has other batches, and batch norm is of each rank's own images: their fingerprints are not compared.
    """
    if curve.kind != STRONG or curve.config.get("workload") == "resnet":
        return []
    told = tells_of_other_maths(base, side, (str(curve.config.get("precision")),))
    return [f"other maths: {told}"] if told else []


def _equal(base: Any, side: Any, grows: float) -> bool:
    if base is None or side is None or isinstance(base, tuple) or isinstance(side, tuple):
        return base is None and side is None
    return abs(float(side) - float(base) * grows) <= 1e-9 * abs(float(side))


def _number(value: Any, divided_by: float) -> Any:
    if value is None or isinstance(value, tuple):
        return value
    number = float(value) / divided_by
    return int(number) if number.is_integer() else number
