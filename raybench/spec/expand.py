"""From a sweep to its trials: pure and deterministic, and refused before it starts when there would be too many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from raybench.errors import UsageError
from raybench.spec.assemble import Assembler
from raybench.spec.built_in import families
from raybench.spec.config import NOT_IN_KEY, TrialConfig
from raybench.spec.equal_work import unequal_work
from raybench.spec.mistakes import Mistakes, printable
from raybench.spec.resolve import Dropped
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
    mistakes = Mistakes()
    configs, warnings = _configs(with_workers(spec, auto_workers), quick, mistakes)
    mistakes.raise_if_any()
    if not configs and not spec.uses_auto:  # what auto stands for may still be a guess, made before a cluster is there
        raise UsageError(nothing_left(spec))
    keyed, collapsed = _collapse(configs)
    trials = select(tuple(_ordered(spec, keyed)), selection)
    return Expansion(trials, (*warnings, *collapsed))


def nothing_left(spec: SweepSpec) -> str:
    """What to say of a sweep of which no trial is left."""
    return f"{printable(spec.file)}: exclude leaves no trial"


def find_mistakes(spec: SweepSpec, mistakes: Mistakes) -> None:
    """Add what is wrong with settings together, in a sweep that has other mistakes already."""
    if _count(spec) <= MAX_TRIALS and not mistakes.are_plenty:
        _configs(with_workers(spec, (1,)), False, mistakes)


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


def _configs(spec: SweepSpec, quick: bool, mistakes: Mistakes) -> tuple[list[TrialConfig], list[str]]:
    if (count := _count(spec)) > MAX_TRIALS:
        raise UsageError(f"{printable(spec.file)}: {count} trials; a sweep may have {MAX_TRIALS}")
    known = families(no_plugins=spec.no_plugins)
    dropped = Dropped()
    configs: list[TrialConfig] = []
    unused = dict.fromkeys(spec.exclude)
    for block in spec.blocks:
        made = Assembler(
            block, known, spec.head, spec.exclude, quick=quick, no_plugins=spec.no_plugins, mistakes=mistakes,
            dropped=dropped,
        )  # fmt: skip
        combos = product(*(axis.options for axis in block.axes))
        configs += [config for combo in combos if (config := made.config(combo)) is not None]
        for rule in made.used_exclusions:
            unused.pop(rule, None)
    mistakes.extend(dropped.mistakes())
    if spec.head.scaling and not mistakes and (what := unequal_work(spec.head.scaling, configs)):
        mistakes.add(spec.places["scaling"], "scaling", what)
    return configs, [f"{printable(str(rule.place))} {rule.path}: matches no config" for rule in unused]


def _collapse(configs: Iterable[TrialConfig]) -> tuple[dict[str, TrialConfig], list[str]]:
    """Configs by key, the first of equals; a warning where any were equal."""
    keyed: dict[str, TrialConfig] = {}
    equal, differing = 0, set[str]()
    for config in configs:
        first = keyed.setdefault(config.config_key(), config)
        if first is not config:
            equal += 1
            differing |= {name for name in _unkeyed(config) if _unkeyed(first)[name] != _unkeyed(config)[name]}
    if not equal:
        return keyed, []
    told = f"{equal} config{'s' if equal > 1 else ''} collapsed into an equal one"
    names = ", ".join(sorted(differing - {"batch_given", "model_name"}))
    return keyed, [f"{told}; {names} alone does not make another config" if names else told]


def _unkeyed(config: TrialConfig) -> Mapping[str, Any]:
    """What is no part of the key."""
    fields = {name: getattr(config, name) for name in NOT_IN_KEY}
    return fields | {name: config.source and getattr(config.source, name) for name in ("data_dir", "path")}


def _ordered(spec: SweepSpec, keyed: Mapping[str, TrialConfig]) -> Iterator[PlannedTrial]:
    """Groups come in the order in which the sweep first asks for them."""
    groups: dict[Any, list[str]] = {}
    for key, config in keyed.items():
        groups.setdefault(worker_group(config), []).append(key)
    order = 0
    for repeat in range(1, spec.head.repeats + 1):
        for keys in groups.values():
            for key in _shuffled(spec.name, repeat, keys) if spec.head.order == "shuffled" else keys:
                yield PlannedTrial(config=keyed[key], config_key=key, repeat=repeat, order=order)
                order += 1


def _shuffled(name: str, repeat: int, keys: Iterable[str]) -> list[str]:
    """Sorted by a hash: the same on every machine and Python, and unchanged for the others when a config is added."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{name}:{repeat}:{key}".encode()).digest())
