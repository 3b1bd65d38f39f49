"""What a scaling curve is measured from: its own smallest number of GPUs, or the reason why there is nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from raybench.errors import UsageError
from raybench.judge.curves import FACTS, Curve, settings
from raybench.judge.told import told_differences

_COMPUTED: Final = ("model", "seq_len", "vocab_size", "phase")
"""What makes another computation, and so no baseline that somebody could have meant."""

_TRIED: Final = 40          # others that are searched for the most alike


@dataclass(frozen=True)
class Baseline:
    """`workers` GPUs of the curve itself; or of `other`, which is no comparison for the reasons in `errors`.

    Neither: `workers` is None, and `errors` say why.
    """

    workers: int | None
    other: Curve | None = None
    errors: tuple[str, ...] = ()


def baselines(curves: Sequence[Curve], usable: Mapping[int, frozenset[int]], asked: int | None) -> list[Baseline]:
    """The baseline of each curve; `usable` are the numbers of GPUs, by curve, whose figures may be compared.

    Without `asked` it is the smallest of the curve. A row of the same computation that stands alone at a smaller
    number was meant as baseline, so the curve is compared with it, and told why that is none.
    """
    if asked is not None:
        there = sorted(set[int]().union(*(curve.attempted for curve in curves)))
        if asked not in there:
            raise UsageError(f"baseline={asked}: not measured; there are {', '.join(map(str, there))}")
        return [_no_work(curve) or _asked_for(curve, curves, usable[curve.number], asked) for curve in curves]
    return [_no_work(curve) or _smallest(curve, curves, usable[curve.number]) for curve in curves]


def _no_work(curve: Curve) -> Baseline | None:
    """What more GPUs do not make faster has no scaling."""
    if curve.config.get("workload") != "collective":
        return None
    return Baseline(None, errors=("a collective is no work to share: its figure is the bandwidth",))


def _asked_for(curve: Curve, curves: Sequence[Curve], usable: frozenset[int], asked: int) -> Baseline:
    if asked in usable:
        return Baseline(asked)
    if asked in curve.attempted:
        return Baseline(None, errors=(f"no figure with {asked}",))
    others = [other for other in _of_workload(curve, curves) if asked in other.counts]
    return _other(curve, others, asked) if others else Baseline(None, errors=(f"not measured with {asked}",))


def _smallest(curve: Curve, curves: Sequence[Curve], usable: frozenset[int]) -> Baseline:
    lone = [other for other in _of_workload(curve, curves) if len(other.counts) == 1]
    if len(curve.counts) > 1:
        lone = [other for other in lone if _same_computation(curve, other)]
    elif not curve.counts:
        return Baseline(None, errors=("no figure",))
    else:
        lone = lone or _of_workload(curve, curves)
    least = min(curve.attempted)
    if meant := [other for other in lone if min(other.counts, default=least) < least]:
        return _other(curve, meant, min(min(other.counts) for other in meant))
    return Baseline(min(usable)) if usable else Baseline(None, errors=("no valid figure",))


def _of_workload(curve: Curve, curves: Iterable[Curve]) -> list[Curve]:
    workload = curve.config.get("workload")
    return [other for other in curves if other.number != curve.number and other.config.get("workload") == workload]


def _same_computation(curve: Curve, other: Curve) -> bool:
    return all(curve.config.get(name) == other.config.get(name) for name in _COMPUTED)


def _other(curve: Curve, others: Sequence[Curve], workers: int) -> Baseline:
    """The most alike of the others at that number of GPUs, with all in which it differs."""
    at = sorted((other for other in others if workers in other.counts), key=lambda of: not _same_computation(curve, of))
    differing = [(_differences(other, curve), other) for other in at[:_TRIED]]
    found, other = min(differing, key=lambda pair: len(pair[0]))
    return Baseline(workers, other, tuple(told_differences(found)))


def _differences(a: Curve, b: Curve) -> dict[str, tuple[Any, Any]]:
    """What was asked and what ran, by name, where it is not the same."""
    of_a, of_b = ({**settings(curve.config, curve.kind), "scaling": curve.kind} for curve in (a, b))
    asked = {name: (of_a.get(name), of_b.get(name)) for name in dict.fromkeys([*of_a, *of_b])}
    facts = {name: (a.facts[name], b.facts[name]) for name in FACTS if not _follows(name, asked)}
    return {name: pair for name, pair in {**asked, **facts}.items() if pair[0] != pair[1]}


def _follows(fact: str, asked: Mapping[str, tuple[Any, Any]]) -> bool:
    """Whether it differs because something else was asked, which is told already."""
    of_asked = asked.get(fact.removeprefix("effective_"))
    return fact.startswith("effective_") and of_asked is not None and of_asked[0] != of_asked[1]
