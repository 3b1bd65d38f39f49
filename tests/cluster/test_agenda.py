"""What runs next when results decide it: ladders of micro batches, stages, and what memory rules out. No Ray."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from raybench.cluster.agenda import Agenda
from raybench.results.resume import EarlierAttempt
from raybench.spec.config import TrialConfig
from raybench.spec.dominated import needs_more
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.trial import PlannedTrial
from tests.factories import EPOCH, make_config

GIB = 2**30
Ending = Callable[[TrialConfig], dict]

LADDER = """
name: s
base: {workload: encdec, micro_batch: auto, max_micro_batch: 64, memory_share: 0.8}
"""
STAGES = """
name: s
maximize: tokens_per_s
base: {workload: encdec}
stages:
  - axes: {micro_batch: [16, 32, 64]}
  - axes: {precision: [fp32, bf16]}
  - axes: {compile: [off, default], model.dropout: [0.0, 0.1]}
"""


class World:
    """Runs an agenda to its end; `ending` says how each config ends. Remembers rows, as a folder of results does."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.rows: dict[str, EarlierAttempt] = {}
        self.ran: list[PlannedTrial] = []

    def run(self, text: str, at_most: int = 99) -> Agenda:
        """Until there is no more, or after so many trials as if the run was stopped."""
        spec = sweep_from_bytes(text.encode(), "s.yaml")
        agenda = Agenda(spec, expand(spec).trials, lambda planned: self.rows.get(planned.trial_id))
        self.ran = []
        while len(self.ran) < at_most and (planned := agenda.next()) is not None:
            self.ran.append(planned)
            reason = agenda.skip_reason(planned)
            ended = {"outcome": "skipped"} if reason else self.ending(planned.config)
            self.rows[planned.trial_id] = row(planned, ended)
            agenda.tell(planned, self.rows[planned.trial_id])
        return agenda

    def tried(self) -> list[tuple[str, int | None]]:
        """Quality and micro batch of what ran."""
        return [(planned.config.quality, planned.config.micro_batch) for planned in self.ran]


def row(planned: PlannedTrial, ended: dict) -> EarlierAttempt:
    """A committed attempt."""
    values = {"outcome": "ok", "device_kind": "cuda", "valid": ended.get("outcome", "ok") == "ok"} | ended
    return EarlierAttempt(
        cluster="a", trial_id=planned.trial_id, attempt=1, started_at=EPOCH, trial_uid=planned.trial_id, **values
    )


def takes_gib_a_sample(config: TrialConfig) -> dict:
    """1 GiB a sample on a GPU of 24 GiB."""
    assert config.micro_batch is not None
    if config.micro_batch > 24:
        return {"outcome": "oom_cuda"}
    return {"peak_memory_reserved_bytes": config.micro_batch * GIB, "memory_room_bytes": 24 * GIB}


def test_the_largest_power_of_two_within_the_share_is_found() -> None:
    """0.8 x 24 GiB = 19.2: 16 fits, 32 runs out of memory. Then the trial itself, as any sweep of 16 would have it."""
    world = World(takes_gib_a_sample)
    agenda = world.run(LADDER)
    assert world.tried() == [*(("probe", size) for size in (1, 2, 4, 8, 16, 32)), ("full", 16)]
    plain = LADDER.replace("auto, max_micro_batch: 64, memory_share: 0.8", "16")
    (same,) = expand(sweep_from_bytes(plain.encode(), "s.yaml")).trials
    assert world.ran[-1].trial_id == same.trial_id
    assert list(agenda.reached) == [same.trial_id]
    assert (agenda.num_planned, agenda.num_with_probes, agenda.left()) == (1, 7, ())


def test_a_smaller_share_and_the_stated_maximum_end_the_search() -> None:
    """0.5 x 24 = 12: 16 would run but takes more than its share. With at most 4, 8 is never tried."""
    world = World(takes_gib_a_sample)
    world.run(LADDER.replace("0.8", "0.5"))
    assert world.tried() == [*(("probe", size) for size in (1, 2, 4, 8, 16)), ("full", 8)]
    world = World(takes_gib_a_sample)
    world.run(LADDER.replace("64", "4"))
    assert world.tried() == [("probe", 1), ("probe", 2), ("probe", 4), ("full", 4)]


def test_on_a_cpu_host_memory_decides() -> None:
    """What the process held at its peak, of its part of the node's free memory: 3 GiB + 1 a sample of 10."""
    def ending(config: TrialConfig) -> dict:
        assert config.micro_batch is not None
        held = (3 + config.micro_batch) * GIB
        return {"device_kind": "cpu", "peak_host_memory_bytes": held, "memory_room_bytes": 10 * GIB}

    world = World(ending)
    world.run(LADDER)
    assert world.tried()[-1] == ("full", 4)      # 7 of 8; 8 samples would take 11


def test_where_nothing_fits_the_smallest_says_so_itself() -> None:
    """An ordinary row of micro batch 1, with its own outcome."""
    world = World(lambda config: {"outcome": "oom_cuda"})
    world.run(LADDER)
    assert world.tried() == [("probe", 1), ("full", 1)]


def test_a_continued_search_takes_the_same_way_and_probes_nothing_twice() -> None:
    """Stopped after any number of trials, the second run does only what is left; a finished one does nothing."""
    for stopped_after in range(8):
        world = World(takes_gib_a_sample)
        world.run(LADDER, at_most=stopped_after)
        world.run(LADDER)
        assert len(world.ran) == 7 - stopped_after
    agenda = world.run(LADDER)
    assert (world.ran, agenda.num_done, agenda.num_planned) == ([], 1, 1)


def test_repeats_share_their_probes_and_keep_a_global_batch() -> None:
    """Three repeats of one config; on 2 workers a global batch of 24 divides by 2, 4, 8 and 24 only: 4 is found."""
    text = LADDER.replace("name: s", "name: s\nrepeats: 3").replace(
        "micro_batch: auto", "micro_batch: auto, global_batch: 24, num_workers: 2"
    )
    world = World(lambda config: takes_gib_a_sample(config))
    world.run(text)
    assert world.tried() == [*(("probe", size) for size in (1, 2, 4)), *[("full", 4)] * 3]
    assert {planned.config.global_batch for planned in world.ran} == {24}
    assert {planned.config.grad_accum for planned in world.ran if planned.config.quality == "full"} == {3}


SPEED = {16: 100.0, 32: 180.0, 64: 150.0}


def speed(config: TrialConfig) -> dict:
    """32 is the fastest micro batch; bf16 doubles; compiling gains a tenth, and only dropout 0 compiles."""
    assert config.micro_batch is not None
    rate = SPEED[config.micro_batch] * (2.0 if config.precision == "bf16" else 1.0)
    if config.compile == "default":
        if config.model.dropout:  # type: ignore[attr-defined]
            return {"outcome": "workload_error"}
        rate *= 1.1
    return {"tokens_per_s": rate}


def test_each_stage_goes_on_from_the_best_before_it() -> None:
    """3 + 2 + 4 configs, of which fp32 at 32 and bf16 without compiling at dropout 0.1 were measured already: 7."""
    world = World(speed)
    agenda = world.run(STAGES)
    told = [(c.micro_batch, c.precision, c.compile, c.model.dropout) for c in (p.config for p in world.ran)]  # type: ignore[attr-defined]
    assert told == [
        (16, "fp32", "off", 0.1), (32, "fp32", "off", 0.1), (64, "fp32", "off", 0.1),
        (32, "bf16", "off", 0.1),
        (32, "bf16", "off", 0.0), (32, "bf16", "default", 0.0), (32, "bf16", "default", 0.1),
    ]  # fmt: skip
    assert [(one.stage, one.value, one.ratio) for one in agenda.found] == [
        (1, 180.0, 1.8), (2, 360.0, 2.0), (3, pytest.approx(396.0), pytest.approx(1.1)),
    ]  # fmt: skip
    assert agenda.found[-1].trial_id == world.ran[5].trial_id
    assert (agenda.num_planned, agenda.left()) == (7, ())
    assert [planned.order for planned in agenda.reached.values()] == sorted(p.order for p in agenda.reached.values())


def test_stages_are_continued_by_their_rows() -> None:
    """Whenever it was stopped, the rest is what is left of the same seven trials; before that, at most nine."""
    for stopped_after in range(8):
        world = World(speed)
        first = world.run(STAGES, at_most=stopped_after)
        assert first.num_planned <= 9
        world.run(STAGES)
        assert (len(world.ran), len(world.rows)) == (7 - stopped_after, 7)


def test_a_stage_without_a_usable_row_ends_the_search() -> None:
    """Invalid numbers and failures are never chosen; the rest counts as not run, so that the run cannot end well."""
    world = World(lambda config: {"valid": False, "tokens_per_s": 1.0} if config.precision == "bf16" else speed(config))
    agenda = world.run(STAGES.replace("[fp32, bf16]", "[bf16]"))
    assert len(world.ran) == 4
    assert [(one.stage, one.value) for one in agenda.found] == [(1, 180.0), (2, None)]
    assert agenda.num_planned == 4 + 4


def test_the_best_so_far_stays_where_a_stage_is_slower() -> None:
    """bf16 is slower here: the third stage goes on in fp32."""
    world = World(lambda config: {"tokens_per_s": 50.0} if config.precision == "bf16" else speed(config))
    agenda = world.run(STAGES.replace("[fp32, bf16]", "[bf16]"))
    assert {planned.config.precision for planned in world.ran[4:]} == {"fp32"}
    assert [one.ratio for one in agenda.found] == [1.8, 1.0, pytest.approx(1.1)]


SKIPPING = """
name: s
skip_larger_after_oom: true
base: {workload: encdec, source: device}
axes: {precision: [fp32, bf16], micro_batch: [8, 32, 64], seq_len: [64, 128]}
"""


def outcomes(world: World) -> dict[tuple, str]:
    """How each ended, by precision, micro batch and sequence length."""
    configs = {planned.trial_id: planned.config for planned in world.ran}
    return {(c.precision, c.micro_batch, c.seq_len): world.rows[key].outcome for key, c in configs.items()}


def test_what_needs_more_than_what_ran_out_of_memory_is_skipped() -> None:
    """fp32 holds 2048 tokens, bf16 twice that: (32, 128) runs out, so (64, 128) is skipped but (64, 64) is tried."""
    def ending(config: TrialConfig) -> dict:
        assert config.micro_batch is not None
        assert config.seq_len is not None
        limit = 2048 if config.precision == "fp32" else 4096
        return {"outcome": "oom_cuda"} if config.micro_batch * config.seq_len > limit else {}

    world = World(ending)
    agenda = world.run(SKIPPING)
    assert outcomes(world) == {
        ("fp32", 8, 64): "ok", ("fp32", 8, 128): "ok", ("fp32", 32, 64): "ok", ("fp32", 32, 128): "oom_cuda",
        ("fp32", 64, 64): "oom_cuda", ("fp32", 64, 128): "skipped",
        ("bf16", 8, 64): "ok", ("bf16", 8, 128): "ok", ("bf16", 32, 64): "ok", ("bf16", 32, 128): "ok",
        ("bf16", 64, 64): "ok", ("bf16", 64, 128): "oom_cuda",
    }  # fmt: skip
    small, last = world.ran[3], world.ran[5]
    assert agenda.skip_reason(last) == (
        f"{small.label()} ended oom_cuda ({small.trial_id}), and this needs more memory: micro_batch 64 > 32"
    )
    off = World(ending)
    off.run(SKIPPING.replace("skip_larger_after_oom: true\n", ""))
    assert "skipped" not in outcomes(off).values()


def test_skipping_goes_by_earlier_runs_too() -> None:
    """The row of the first run says it; a larger trial that the second run adds is skipped."""
    world = World(lambda config: {"outcome": "oom_cuda"})
    world.run(SKIPPING.replace("[8, 32, 64]", "[8]").replace("[64, 128]", "[64]"))
    world.run(SKIPPING.replace("[64, 128]", "[64]"))
    assert set(outcomes(world).values()) == {"skipped"}


@pytest.mark.parametrize(("changes", "certain"), [
    ({"micro_batch": 8}, "micro_batch 8 > 4"),
    ({"micro_batch": 8, "seq_len": 128}, "micro_batch 8 > 4, seq_len 128 > 64"),
    ({"micro_batch": 8, "seq_len": 32}, None),       # more samples, shorter ones
    ({"micro_batch": 8, "grad_accum": 2}, "micro_batch 8 > 4"),
    ({"micro_batch": 8, "precision": "bf16"}, None),
    ({"micro_batch": 8, "num_workers": 4}, None),
    ({"micro_batch": 4}, None),
])  # fmt: skip
def test_which_config_certainly_needs_more(changes: dict, certain: str | None) -> None:
    """Against micro batch 4, sequence 64, no accumulation, two workers in fp32."""
    assert needs_more(make_config(**changes), make_config()) == certain
    accumulating = make_config(grad_accum=2)
    assert needs_more(make_config(micro_batch=8), accumulating) is None
