"""`scaling: strong | weak`: a curve over GPU counts holds equal work, or the sweep is refused before it starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raybench.spec.config import NOT_IN_KEY, NOT_IN_WORK_KEY, TrialConfig, pairing_key

BATCH = ("micro_batch", "grad_accum", "global_batch")
_MAY_DIFFER = frozenset({"num_workers", *BATCH})
_CURES = {
    "strong": "the global batch: give global_batch, and micro_batch or grad_accum follows",
    "weak": "the batch of each worker: give micro_batch without global_batch",
}
_SHOWN = 3


def unequal_work(scaling: str, configs: Sequence[TrialConfig]) -> str | None:
    """The first reason why the configs are no curves of strong or weak scaling, in one line; None where they are.

    A curve is all configs that differ in `num_workers` and the batch numbers only. Equal work is, for strong scaling,
    the same samples a step and in all; for weak scaling the same for each worker.
    """
    for config in configs:
        if scaling == "weak" and config.strategy == "split":
            return f"{config.workload} splits one piece of work over the workers: that is strong scaling, never weak"
        if config.measure.seconds is not None:
            what = "measure in steps, samples, tokens or epochs"
            return f"scaling compares equal work, and {{seconds: ...}} do not fix it: give {what}"
    curves: dict[str, list[TrialConfig]] = defaultdict(list)
    for config in configs:
        curves[pairing_key(config.model_dump(mode="json"), _MAY_DIFFER)].append(config)
    found = (_lonely(curve, configs) or _unequal(scaling, curve) for curve in curves.values())
    return next((what for what in found if what), None)


def _unequal(scaling: str, curve: Sequence[TrialConfig]) -> str | None:
    """What differs in work between the smallest GPU count of a curve and another."""
    label = curve[0].label().rpartition(" ×")[0]
    of_each = " of each worker" if scaling == "weak" else ""
    differing = _first_difference(_by_count(scaling, curve, _samples_a_step), f"samples a step{of_each} ")
    if differing:
        return f"scaling {scaling} keeps {_CURES[scaling]}; {label} has {differing}"
    differing = _first_difference(_by_count(scaling, curve, _samples_in_all), "")
    return differing and f"scaling {scaling} measures equal work{of_each}; {label} measures samples: {differing}"


def _first_difference(amounts: Mapping[int, Sequence[int]], of: str) -> str | None:
    """`4 samples a step on 1 and 8 on 2`: the smallest GPU count against the first that differs."""
    first = min(amounts)
    other = next((count for count in amounts if amounts[count] != amounts[first]), None)
    if other is None:
        return None
    return f"{_listed(amounts[first])} {of}on {first} and {_listed(amounts[other])} on {other}"


def _by_count(scaling: str, curve: Iterable[TrialConfig], work: Any) -> dict[int, tuple[int, ...]]:
    """Sorted amounts of work for each number of workers; a sweep over batch sizes has several."""
    found: dict[int, list[int]] = defaultdict(list)
    for config in curve:
        found[config.num_workers].append(work(config) // (config.num_workers if scaling == "weak" else 1))
    return {count: tuple(sorted(amounts)) for count, amounts in found.items()}


def _samples_a_step(config: TrialConfig) -> int:
    return config.global_batch or 1      # split work is the same whole for any number of workers


def _samples_in_all(config: TrialConfig) -> int:
    return _samples_a_step(config) * (config.measure.steps or 0)


def _listed(amounts: Iterable[int]) -> str:
    return ", ".join(map(str, amounts))


def _lonely(curve: Sequence[TrialConfig], configs: Sequence[TrialConfig]) -> str | None:
    """What a config without a like one on another GPU count differs in from the most alike one there."""
    config = curve[0]
    others = [other for other in configs if other.workload == config.workload]
    elsewhere = [other for other in others if other.num_workers != config.num_workers]
    if not elsewhere or len({each.num_workers for each in curve}) > 1:
        return None
    differing = min((_differences(config, other) for other in elsewhere), key=len)
    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    told = f"differs from every config on another number of workers in {', '.join(differing[:_SHOWN])}{more}"
    return f"scaling may vary num_workers only: {config.label()} {told}"


def _differences(config: TrialConfig, other: TrialConfig) -> list[str]:
    mine, theirs = (_flat(each.model_dump(mode="json")) for each in (config, other))
    left_out = _MAY_DIFFER | NOT_IN_KEY | NOT_IN_WORK_KEY
    names = [name for name in mine | theirs if name.partition(".")[0] not in left_out]
    return [f"{name} ({mine.get(name)} / {theirs.get(name)})" for name in names if mine.get(name) != theirs.get(name)]


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """One entry a setting, those inside a mapping under a dotted name."""
    inner = {f"{name}.{part}": held for name, value in values.items() if isinstance(value, dict)
             for part, held in value.items()}  # fmt: skip
    return {name: value for name, value in values.items() if not isinstance(value, dict)} | inner
