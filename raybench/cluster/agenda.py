"""What a sweep runs next, as far as results decide it: micro batches to be found, stages that go on from the best.

Pure and deterministic: it is told how trials ended, earlier or now, so a run that is continued takes the same way.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from raybench.record.run import StageFound
from raybench.results.resume import EarlierAttempt
from raybench.spec.dominated import needs_more
from raybench.spec.expand import expand_stage, most_in_stage
from raybench.spec.ladder import probe_of
from raybench.spec.settings import Layer
from raybench.spec.sweep import SweepSpec
from raybench.spec.trial import PlannedTrial

OUT_OF_MEMORY = frozenset({"oom_cuda", "oom_host"})
Done = Callable[[PlannedTrial], EarlierAttempt | None]
"""How a trial ended earlier, if it is not to run again."""


@dataclass(frozen=True)
class _Best:
    """The best config so far, all settings that the stages chose for it, and its figure."""

    planned: PlannedTrial
    chosen: tuple[Layer, ...]
    value: float


class Agenda:
    """The trials of one run, handed out one by one. `reached` holds those known so far by `trial_id`, without probes;
    `found` what each finished stage came to."""

    def __init__(
        self,
        spec: SweepSpec,
        first: Sequence[PlannedTrial],
        done: Done,
        *,
        auto_workers: Sequence[int] | None = None,
        quick: bool = False,
    ) -> None:
        self._spec, self._done, self._auto_workers, self._quick = spec, done, auto_workers, quick
        self._most = [most_in_stage(spec, number, auto_workers) for number in range(1, len(spec.stages))]
        self._ended: dict[str, EarlierAttempt] = {}
        self._ran_out: dict[str, tuple[PlannedTrial, EarlierAttempt]] = {}
        self._handed: dict[str, PlannedTrial] = {}
        self._num_probes = 0
        self._pending: PlannedTrial | None = None
        self.reached: dict[str, PlannedTrial] = {}
        self.found: list[StageFound] = []
        self._reach(first)
        self._walk = self._trials(tuple(first))

    # -- what runs ---------------------------------------------------------------------------------------------------

    def peek(self) -> PlannedTrial | None:
        """The next trial, which stays the next; None where there is none."""
        if self._pending is None:
            self._pending = self._advance()
        return self._pending

    def next(self) -> PlannedTrial | None:
        """The next trial. The one before must have been told of."""
        planned, self._pending = self.peek(), None
        if planned is not None:
            self._handed[planned.trial_id] = planned
            self._num_probes += planned.config.quality == "probe"
        return planned

    def trial(self, trial_id: str) -> PlannedTrial:
        """A trial that was handed out."""
        return self._handed[trial_id]

    def tell(self, planned: PlannedTrial, ended: EarlierAttempt) -> None:
        """How a trial ended."""
        self._ended[planned.trial_id] = ended
        self._note_memory(planned, ended)

    def skip_reason(self, planned: PlannedTrial) -> str | None:
        """Why a trial need not run: one that needs less memory ran out of it. Only where the sweep asks for this."""
        if not self._spec.head.skip_larger_after_oom:
            return None
        for other, ended in self._ran_out.values():
            if more := needs_more(planned.config, other.config):
                return f"{other.label()} ended {ended.outcome} ({other.trial_id}), and this needs more memory: {more}"
        return None

    # -- how much there is -------------------------------------------------------------------------------------------

    @property
    def num_planned(self) -> int:
        """Trials that a finished run has a row of; of stages that are not reached yet the most they can have."""
        return len(self.reached) + sum(self._most)

    @property
    def num_with_probes(self) -> int:
        """The same and the probes so far: what a person sees go by."""
        return self.num_planned + self._num_probes

    @property
    def num_done(self) -> int:
        """Of these, the trials that need not run again."""
        return len(self.reached) - len(self.left())

    def left(self) -> tuple[PlannedTrial, ...]:
        """The trials known so far that are still to run."""
        return tuple(
            planned for planned in self.reached.values()
            if planned.trial_id not in self._ended and (planned.ladder or self._done(planned) is None)
        )  # fmt: skip

    # -- how it goes on ----------------------------------------------------------------------------------------------

    def _advance(self) -> PlannedTrial | None:
        for planned in self._walk:
            if planned.trial_id in self._ended:
                continue
            ended = self._done(planned)
            if ended is None:
                return planned
            self.tell(planned, ended)
        return None

    def _trials(self, first: tuple[PlannedTrial, ...]) -> Iterator[PlannedTrial]:
        """Every trial in order; after each, how it ended is known."""
        found = yield from self._resolved(first)
        best: _Best | None = None
        for number in range(len(self._spec.stages)):
            if number:
                assert best is not None
                found = yield from self._resolved(self._next_stage(number, best.chosen))
            best = self._judge(number, found, best)
            if best is None:
                return

    def _next_stage(self, number: int, chosen: tuple[Layer, ...]) -> tuple[PlannedTrial, ...]:
        self._most.pop(0)
        trials = expand_stage(self._spec, number, chosen, auto_workers=self._auto_workers, quick=self._quick)
        start = 1 + max(planned.order for planned in self.reached.values())
        placed = tuple(replace(planned, order=start + planned.order) for planned in trials)
        self._reach(placed)
        return placed

    def _resolved(self, trials: Sequence[PlannedTrial]) -> Generator[PlannedTrial, None, list[PlannedTrial]]:
        """The trials, each micro batch found before its trial; returns them as they ran."""
        ran: list[PlannedTrial] = []
        for planned in trials:
            if planned.ladder is not None:
                ran.append((yield from self._climb(planned)))
            else:
                ran.append(planned)
            yield ran[-1]
        return ran

    def _climb(self, planned: PlannedTrial) -> Generator[PlannedTrial, None, PlannedTrial]:
        """Probe rung after rung until one does not fit; the largest that fits makes the trial, else the smallest."""
        ladder = planned.ladder
        assert ladder is not None
        found = 0
        for index, rung in enumerate(ladder.rungs):
            probe = probe_of(rung)
            trial = replace(planned, config=probe, config_key=probe.config_key(), repeat=1, ladder=None)
            yield trial
            if not fits(self._ended[trial.trial_id], ladder.memory_share):
                break
            found = index
        config = ladder.rungs[found]
        choice = (*planned.choice, ladder.layers[found])
        resolved = replace(planned, config=config, config_key=config.config_key(), ladder=None, choice=choice)
        self._replace_reached(planned, resolved)
        return resolved

    def _judge(self, number: int, ran: Sequence[PlannedTrial], before: _Best | None) -> _Best | None:
        """The best so far by the column that the sweep names; None where nothing of this stage may be used."""
        chosen = before.chosen if before else ()
        by_config: dict[str, list[PlannedTrial]] = {}
        for planned in ran:
            by_config.setdefault(planned.point_id, []).append(planned)
        figures = [(repeats[0], self._figure(repeats)) for repeats in by_config.values()]
        usable = [_Best(planned, (*chosen, *planned.choice), value) for planned, value in figures if value is not None]
        candidates = ([before] if before else []) + usable
        best = max(candidates, key=lambda one: one.value) if usable else None      # the first of equals
        reference = before.value if before else figures[0][1]
        self.found.append(StageFound(
            stage=number + 1,
            stages=len(self._spec.stages),
            column=self._spec.head.maximize,
            trial_id=best.planned.trial_id if best else None,
            label=best.planned.config_label() if best else None,
            value=best.value if best else None,
            ratio=best.value / reference if best and reference else None,
        ))  # fmt: skip
        return best

    def _figure(self, repeats: Sequence[PlannedTrial]) -> float | None:
        """The median over the repeats that ended ok with a valid number; None without any."""
        ended = [self._ended[planned.trial_id] for planned in repeats]
        values = [getattr(one, self._spec.head.maximize) for one in ended if one.outcome == "ok" and one.valid]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    # -- what is known -----------------------------------------------------------------------------------------------

    def _reach(self, trials: Sequence[PlannedTrial]) -> None:
        for planned in trials:
            self.reached.setdefault(planned.trial_id, planned)
            if planned.ladder is None and (ended := self._done(planned)) is not None:
                self._note_memory(planned, ended)

    def _replace_reached(self, planned: PlannedTrial, by: PlannedTrial) -> None:
        """In the same place, so that the order stays."""
        self.reached = {(by if one is planned else one).trial_id: by if one is planned else one
                        for one in self.reached.values()}  # fmt: skip

    def _note_memory(self, planned: PlannedTrial, ended: EarlierAttempt) -> None:
        if ended.outcome in OUT_OF_MEMORY:
            self._ran_out[planned.trial_id] = (planned, ended)


def fits(ended: EarlierAttempt, share: float) -> bool:
    """Whether a probe ended ok within its share of the memory: on a GPU what its allocator reserved of the device's,
    on CPU what the process held of its part of the node's free memory."""
    on_gpu = ended.device_kind == "cuda"
    used = ended.peak_memory_reserved_bytes if on_gpu else ended.peak_host_memory_bytes
    room = ended.memory_room_bytes
    return ended.outcome == "ok" and used is not None and room is not None and used <= share * room

