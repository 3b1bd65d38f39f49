"""From a sweep to its trials: pure and deterministic, and refused before it starts when there would be too many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from raybench.errors import UsageError
from raybench.spec.config import NOT_IN_KEY, TrialConfig
from raybench.spec.mistakes import Mistakes, printable
from raybench.spec.points import Point, points_of
from raybench.spec.selection import Only, read_selection, select
from raybench.spec.settings import AUTO, Given, Layer
from raybench.spec.sweep import Axis, Block, SweepSpec
from raybench.spec.trial import PlannedTrial, worker_group

MAX_TRIALS = 100_000


@dataclass(frozen=True)
class Expansion:
    """The trials in the order they run, and what a careful reader of the sweep should know."""

    trials: tuple[PlannedTrial, ...]
    warnings: tuple[str, ...]


def expand(
    spec: SweepSpec, *, auto_workers: Sequence[int] | None = None, quick: bool = False, only: Only = ()
) -> Expansion:
    """All trials of a sweep, ordered by repeat, then worker group, then config.

    `auto_workers` is what `num_workers: auto` stands for on this cluster. `only` (texts `key=value`, or a mapping)
    leaves out trials but does not renumber them. Raises SweepError with all mistakes that show when settings meet,
    UsageError where `auto` is not resolved, there are over `MAX_TRIALS` trials or (without `auto`) none, or `only`
    asks for what no trial has.
    """
    selection = read_selection(only)
    if selection and spec.stages:
        raise UsageError(f"--only picks trials that are known beforehand, and those of {spec.name} depend on results")
    mistakes = Mistakes()
    points, warnings = _points(with_workers(spec.all_stages() if spec.stages else spec, auto_workers), quick, mistakes)
    mistakes.raise_if_any()
    if spec.stages:
        trials = expand_stage(spec, 0, (), auto_workers=auto_workers, quick=quick)
        return Expansion(trials, tuple(warnings))
    if not points and not spec.uses_auto:  # what auto stands for may still be a guess, made before a cluster is there
        raise UsageError(nothing_left(spec))
    keyed, collapsed = _collapse(points)
    trials = select(tuple(_ordered(spec, keyed)), selection)
    return Expansion(trials, (*warnings, *collapsed))


def expand_stage(
    spec: SweepSpec,
    number: int,
    chosen: Sequence[Layer],
    *,
    auto_workers: Sequence[int] | None = None,
    quick: bool = False,
) -> tuple[PlannedTrial, ...]:
    """The trials of one stage, from 0, that goes on from the settings `chosen` in those before it.

    What is wrong with any of them was told by `expand`, which looks at all stages at once.
    """
    stage = with_workers(spec.stage(number, chosen), auto_workers)
    points, _ = _points(stage, quick, Mistakes())
    return tuple(_ordered(stage, _collapse(points)[0]))


def most_in_stage(spec: SweepSpec, number: int, auto_workers: Sequence[int] | None = None) -> int:
    """The most trials that a stage can have, whatever it goes on from."""
    return _count(with_workers(spec.stage(number, ()), auto_workers))


def nothing_left(spec: SweepSpec) -> str:
    """What to say of a sweep of which no trial is left."""
    return f"{printable(spec.file)}: exclude leaves no trial"


def find_mistakes(spec: SweepSpec, mistakes: Mistakes) -> None:
    """Add what is wrong with settings together, in a sweep that has other mistakes already."""
    whole = spec.all_stages() if spec.stages else spec
    if _count(whole) <= MAX_TRIALS and not mistakes.are_plenty:
        _points(with_workers(whole, (1,)), False, mistakes)


def with_workers(spec: SweepSpec, auto_workers: Sequence[int] | None) -> SweepSpec:
    """The sweep with each `num_workers: auto` replaced by what it stands for."""
    if not spec.uses_auto:
        return spec
    if not auto_workers:
        cure = "give the numbers with --set num_workers=[1,2]"
        raise UsageError(f"{printable(spec.file)}: num_workers: auto waits for a cluster; {cure}")
    return replace(spec, blocks=tuple(_block_with_workers(block, auto_workers) for block in spec.blocks))


def _block_with_workers(block: Block, numbers: Sequence[int]) -> Block:
    axes = tuple(
        Axis(axis.name, tuple(layer for option in axis.options for layer in _spread(option, numbers)))
        for axis in block.axes
    )
    settled = any("num_workers" in option for axis in axes for option in axis.options)
    asked = [layer["num_workers"] for layer in block.fixed if "num_workers" in layer][-1:]
    if asked and asked[0].value == AUTO and not settled:
        axes = (*axes, Axis("num_workers", tuple(_spread({"num_workers": asked[0]}, numbers))))
    return replace(block, axes=axes)


def _spread(layer: Layer, numbers: Sequence[int]) -> Iterator[Layer]:
    given = layer.get("num_workers")
    if given is None or given.value != AUTO:
        yield layer
        return
    for number in numbers:
        yield {**layer, "num_workers": Given(number, given.node, swept=True)}


def _count(spec: SweepSpec) -> int:
    return spec.head.repeats * sum(prod(len(axis.options) for axis in block.axes) for block in spec.blocks)


def _points(spec: SweepSpec, quick: bool, mistakes: Mistakes) -> tuple[list[Point], list[str]]:
    if (count := _count(spec)) > MAX_TRIALS:
        raise UsageError(f"{printable(spec.file)}: {count} trials; a sweep may have {MAX_TRIALS}")
    points, unused = points_of(spec, quick, mistakes)
    return points, [f"{printable(str(rule.place))} {rule.path}: matches no config" for rule in unused]


def _collapse(points: Iterable[Point]) -> tuple[dict[str, Point], list[str]]:
    """Points by key, the first of equals; a warning where any were equal."""
    keyed: dict[str, Point] = {}
    equal, differing = 0, set[str]()
    for point in points:
        first = keyed.setdefault(point.key, point)
        if first is not point:
            equal += 1
            mine, kept = _unkeyed(point.config), _unkeyed(first.config)
            differing |= {name for name in mine if kept[name] != mine[name]}
    if not equal:
        return keyed, []
    told = f"{equal} config{'s' if equal > 1 else ''} collapsed into an equal one"
    names = ", ".join(sorted(differing - {"batch_given", "model_name"}))
    return keyed, [f"{told}; {names} alone does not make another config" if names else told]


def _unkeyed(config: TrialConfig) -> Mapping[str, Any]:
    """What is no part of the key."""
    fields = {name: getattr(config, name) for name in NOT_IN_KEY}
    return fields | {name: config.source and getattr(config.source, name) for name in ("data_dir", "path")}


def _ordered(spec: SweepSpec, keyed: Mapping[str, Point]) -> Iterator[PlannedTrial]:
    """Groups come in the order in which the sweep first asks for them."""
    groups: dict[Any, list[str]] = {}
    for key, point in keyed.items():
        groups.setdefault(worker_group(point.config), []).append(key)
    order = 0
    for repeat in range(1, spec.head.repeats + 1):
        for keys in groups.values():
            for key in _shuffled(spec.name, repeat, keys) if spec.head.order == "shuffled" else keys:
                point = keyed[key]
                yield PlannedTrial(point.config, point.config_key, repeat, order, point.ladder, point.choice)
                order += 1


def _shuffled(name: str, repeat: int, keys: Iterable[str]) -> list[str]:
    """Sorted by a hash: the same on every machine and Python, and unchanged for the others when a config is added."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{name}:{repeat}:{key}".encode()).digest())
