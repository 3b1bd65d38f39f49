"""The points of a sweep: each combination of axis values as a config, or as the ladder of micro batches to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from raybench.spec.assemble import Assembler
from raybench.spec.built_in import families
from raybench.spec.config import TrialConfig
from raybench.spec.criteria import Criterion
from raybench.spec.document import BAD
from raybench.spec.equal_work import unequal_work
from raybench.spec.ladder import Ladder, rung_layers
from raybench.spec.mistakes import Mistakes
from raybench.spec.resolve import Dropped
from raybench.spec.settings import AUTO, Layer
from raybench.spec.sweep import Axis, Block, SweepSpec
from raybench.spec.trial import machine_of

_NO_RUNG: Layer = {}


@dataclass(frozen=True)
class Point:
    """A config, the axis values that made it, and where its micro batch is yet to be found the ladder to climb."""

    config: TrialConfig
    choice: tuple[Layer, ...]
    ladder: Ladder | None = None

    @cached_property
    def config_key(self) -> str:
        """The config's, or while that is not known yet `auto` and 12 hex."""
        return f"auto{self.ladder.rungs[0].config_key()[:12]}" if self.ladder else self.config.config_key()

    @property
    def key(self) -> str:
        """What tells it from the others: its `config_key`, and the GPU model where one is asked for."""
        return f"{self.config_key}{machine_of(self.config)}"


def points_of(spec: SweepSpec, quick: bool, mistakes: Mistakes) -> tuple[list[Point], list[Criterion]]:
    """Every point of a sweep without `num_workers: auto`, in order, and the exclusions that matched none."""
    dropped = Dropped()
    points: list[Point] = []
    unused = dict.fromkeys(spec.exclude)
    for block in spec.blocks:
        maker = _BlockPoints(spec, block, quick, mistakes, dropped)
        points += maker.points()
        for rule in maker.used_exclusions:
            unused.pop(rule, None)
    mistakes.extend(dropped.mistakes())
    _check_together(spec, points, mistakes)
    return points, list(unused)


class _BlockPoints:
    """One block's points. The rungs are an axis of their own, of which all other points take no value."""

    def __init__(self, spec: SweepSpec, block: Block, quick: bool, mistakes: Mistakes, dropped: Dropped) -> None:
        self._block, self._rungs = block, _rungs(block)
        with_rungs = replace(block, axes=(*block.axes, Axis("micro_batch", (_NO_RUNG, *self._rungs))))
        known = families(no_plugins=spec.no_plugins)

        def assembler(told: Mistakes) -> Assembler:
            return Assembler(
                with_rungs, known, spec.head, spec.exclude, quick=quick, no_plugins=spec.no_plugins, mistakes=told,
                dropped=dropped,
            )  # fmt: skip

        # A larger rung that does not divide is no mistake: it is none that can be found.
        self._made, self._tried = assembler(mistakes), assembler(Mistakes())

    @property
    def used_exclusions(self) -> set[Criterion]:
        """The exclusions that dropped something."""
        return self._made.used_exclusions | self._tried.used_exclusions

    def points(self) -> Iterator[Point]:
        """Each combination of axis values that is not excluded and no mistake."""
        for choice in product(*(axis.options for axis in self._block.axes)):
            combo = (*choice, _NO_RUNG)
            if self._rungs and self._made.asked("micro_batch", combo) == AUTO:
                yield from self._open_point(choice)
            elif (config := self._made.config(combo)) is not None:
                yield Point(config, choice)

    def _open_point(self, choice: tuple[Layer, ...]) -> Iterator[Point]:
        """A point whose micro batch is to be found; none where its smallest one is excluded or a mistake."""
        most, share = (self._made.asked(name, (*choice, _NO_RUNG)) for name in ("max_micro_batch", "memory_share"))
        first, *larger = self._rungs
        config = self._made.config((*choice, first))
        if config is None or BAD in (most, share):
            return
        tried = [(self._tried.config((*choice, rung)), rung) for rung in larger if rung["micro_batch"].value <= most]
        found = [(config, first), *((each, rung) for each, rung in tried if each is not None)]
        rungs, layers = zip(*found, strict=True)
        ladder = Ladder(rungs, layers, share)
        yield Point(ladder.open_config(), choice, ladder)


def _rungs(block: Block) -> Sequence[Layer]:
    """The powers of two that `micro_batch: auto` may stand for; none where nothing in the block says so."""
    layers = [*block.fixed, *(option for axis in block.axes for option in axis.options)]
    auto = [layer["micro_batch"] for layer in layers if "micro_batch" in layer and layer["micro_batch"].value == AUTO]
    return rung_layers(auto[0].node) if auto else ()


def _check_together(spec: SweepSpec, points: Sequence[Point], mistakes: Mistakes) -> None:
    """Add what is wrong with the configs as a whole, where each by itself is right."""
    if mistakes:
        return
    counting = families(no_plugins=spec.no_plugins)
    if spec.head.maximize.startswith("tokens"):
        for name in dict.fromkeys(point.config.workload for point in points):
            if counting[name].tokens_per_sample is None:
                mistakes.add(spec.places["maximize"], "maximize", f"{name} counts no tokens; give samples_per_s")
    if not spec.head.scaling:
        return
    if spec.head.scaling == "weak" and any(point.ladder for point in points):
        what: str | None = "micro_batch: auto may find another size on each number of workers: give the size"
    else:
        configs = [point.ladder.rungs[0] if point.ladder else point.config for point in points]
        what = unequal_work(spec.head.scaling, configs)
    if what:
        mistakes.add(spec.places["scaling"], "scaling", what)
