"""Each rule fires for what it is about, and for nothing else."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from raybench.measure.counts import Counts
from raybench.measure.summary import figures
from raybench.measure.validity import INVALID, MEANINGS, WARNINGS
from raybench.record.rank import RankResult
from tests.factories import make_config
from tests.measure.ranks import COUNTS, gpu, make_rank, make_steps

LONG = (500.0,) * 40  # 40 steps in 20 s: long enough for no warning


def judged(ranks: Sequence[RankResult], counts: Counts = COUNTS) -> tuple[bool, str, str]:
    """What the row says."""
    found = figures(make_config(), counts, ranks)
    return found.valid, found.invalid_reasons, found.warnings


def pair(**changes: Any) -> list[RankResult]:
    """Two ranks alike."""
    return [make_rank(rank, **{"step_ms": LONG, **changes}) for rank in (0, 1)]


def test_a_quiet_trial_is_valid_without_a_word() -> None:
    """Nothing fires by itself."""
    assert judged(pair()) == (True, "", "")


def test_fewer_than_ten_steps_are_invalid() -> None:
    """Nine are too few, ten are not; both are short."""
    assert judged(pair(step_ms=(500.0,) * 9)) == (False, "too_few_steps", "short_window")
    assert judged(pair(step_ms=(500.0,) * 10)) == (True, "", "short_window")


@pytest.mark.parametrize(("steps", "step_ms", "warned"), [
    (29, 300.0, True),   # 8.7 s
    (30, 300.0, False),  # 9 s, but 30 steps
    (20, 500.0, False),  # 10 s
])  # fmt: skip
def test_short_window_needs_few_steps_and_little_time(steps: int, step_ms: float, warned: bool) -> None:
    """Either enough steps or enough time is enough."""
    assert judged(pair(step_ms=(step_ms,) * steps)) == (True, "", "short_window" if warned else "")


def test_more_than_the_chip_can_do_is_invalid() -> None:
    """An H200 does 989.5 TFLOP/s in bf16: 4e15 FLOP a step at 2 steps/s on 2 GPUs are 4000 (104 % MFU on record)."""
    ranks = [make_rank(rank, step_ms=LONG, environment=gpu(str(rank))) for rank in (0, 1)]
    assert judged(ranks, dataclasses.replace(COUNTS, model_flops_per_step=4e15)) == (False, "above_peak", "")
    assert judged(ranks, dataclasses.replace(COUNTS, model_flops_per_step=0.98e15)) == (True, "", "")


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_invalid(loss: float) -> None:
    """Arithmetic on NaN may be faster or slower than training."""
    assert judged(pair(steps=make_steps((300.0, 100.0, *LONG), warmup=2, loss=loss)))[1] == "loss_not_finite"


def test_work_that_was_not_done_is_invalid() -> None:
    """A rank that dropped one sample, or one that counted tokens twice."""
    one_less = [make_rank(0, step_ms=LONG), make_rank(1, step_ms=LONG, measured_samples=159)]
    assert judged(one_less)[1] == "work_mismatch"
    assert judged(pair(measured_tokens=960))[1] == "work_mismatch"


def test_no_work_at_all_is_no_throughput() -> None:
    """0 samples/s was published once (and so was a missing one as 0)."""
    assert judged(pair(measured_samples=0))[1] == "no_throughput;work_mismatch"
    assert judged(pair(measured_s=math.nan))[1] == "no_throughput;steps_do_not_sum"


def test_another_model_than_counted_is_invalid() -> None:
    """Its FLOPs and MFU would be another model's; unknown on either side is no mismatch."""
    assert judged(pair(parameters=101))[1] == "parameter_mismatch"
    assert judged(pair(parameters=None)) == (True, "", "")
    assert judged(pair(), dataclasses.replace(COUNTS, parameters=None)) == (True, "", "")


def test_ranks_that_ran_other_steps_are_invalid() -> None:
    """One rank did 41 steps; its extra 4 samples do not fit either."""
    ranks = [make_rank(0, step_ms=LONG), make_rank(1, step_ms=(480.0,) * 41)]
    assert judged(ranks)[1] == "work_mismatch;ranks_disagree"


def test_mixed_gpus_are_invalid() -> None:
    """Two models in one group, unless the sweep says that they may mix."""
    environments = (gpu("a"), gpu("b", "NVIDIA A100-SXM4-80GB"))
    ranks = [make_rank(rank, step_ms=LONG, environment=environment) for rank, environment in enumerate(environments)]
    assert judged(ranks)[1] == "mixed_gpus"
    assert figures(make_config(gpu_model="mixed"), COUNTS, ranks).invalid_reasons == ""


@pytest.mark.parametrize(("shares", "steps", "reason"), [
    ((0.9, 0.0), 40, "idle_ranks"),       # 20 s, one GPU did it all
    ((0.25, 0.04), 40, "idle_ranks"),
    ((0.9, 0.06), 40, ""),
    ((0.2, 0.0), 40, ""),                 # nobody is busy: the work is small
    ((0.9, None), 40, ""),                # one does not answer
    ((None, None), 40, ""),
    ((0.9, 0.0), 3, "too_few_steps"),     # 1.5 s: NVML may still tell of before
])  # fmt: skip
def test_every_rank_s_gpu_must_have_worked(shares: tuple[float | None, ...], steps: int, reason: str) -> None:
    """GT-18: all GPUs should be active, by the telemetry of each."""
    ranks = [
        make_rank(
            rank, step_ms=(500.0,) * steps, environment=gpu(str(rank)), telemetry={"utilization_mean": share}
        )
        for rank, share in enumerate(shares)
    ]
    assert judged(ranks)[1] == reason


@pytest.mark.parametrize(("energy_j", "reason"), [
    (14_000.0, ""),                       # 700 W for 20 s
    (16_700.0, ""),                       # within the margin of 1.2
    (16_900.0, "energy_implausible"),     # two GPUs: 33 800 J over 1.2 x 1400 W x 20 s = 33 600 J
    (-1.0, "energy_implausible"),
    (math.nan, "energy_implausible"),
])  # fmt: skip
def test_energy_has_a_ceiling(energy_j: float, reason: str) -> None:
    """An H200's board draws 700 W."""
    telemetry = {"energy_j": energy_j}
    ranks = [make_rank(rank, step_ms=LONG, environment=gpu(str(rank)), telemetry=telemetry) for rank in (0, 1)]
    assert judged(ranks)[1] == reason


def test_energy_of_an_unknown_board_is_not_judged() -> None:
    """No ceiling is known, so none is applied."""
    environment, telemetry = gpu("a", "NVIDIA X1"), {"energy_j": 1e9}
    assert judged(pair(environment=environment, telemetry=telemetry))[0] is True


@pytest.mark.parametrize(("measured_s", "reason"), [(20.9, ""), (21.2, "steps_do_not_sum"), (18.9, "steps_do_not_sum")])
def test_steps_must_sum_to_the_window(measured_s: float, reason: str) -> None:
    """20 s of steps in a window of 21.2 s leave 1.2 s, more than 5 % of it; the wait in a window of 20.9 is allowed."""
    assert judged(pair(measured_s=measured_s))[1] == reason


def test_one_time_slice_is_forgiven() -> None:
    """20 steps of 1 ms in a window of 29 ms: 9 ms are lost to a busy machine, not to a wrong clock."""
    assert judged(pair(step_ms=(1.0,) * 20, measured_s=0.029))[0] is True
    assert judged(pair(step_ms=(1.0,) * 20, measured_s=0.031))[1] == "steps_do_not_sum"


def test_noise_is_a_warning_and_never_invalid() -> None:
    """Steps of 400 and 600 ms in turn: standard deviation 101, CV 20 %; blocks of ten agree, so no wide interval."""
    assert judged(pair(step_ms=(400.0, 600.0) * 20)) == (True, "", "noisy_steps")


def test_blocks_that_drift_make_a_wide_interval() -> None:
    """Five blocks of eight, 300 to 700 ms: half-width 2.776 x 158 / sqrt(5) = 196 of 500 ms."""
    drifting = tuple(float(block) for block in (300, 400, 500, 600, 700) for _ in range(8))
    assert judged(pair(step_ms=drifting)) == (True, "", "noisy_steps;wide_interval")


def test_a_straggler_is_named() -> None:
    """Medians 100, 100, 100 and 111 ms: 1.11 times the middle; 109 is not told."""
    def group(last_ms: float) -> list[RankResult]:
        times = (100.0, 100.0, 100.0, last_ms)
        return [
            make_rank(rank, world_size=4, step_ms=(step_ms,) * 120, measured_samples=240, measured_tokens=720)
            for rank, step_ms in enumerate(times)
        ]

    assert judged(group(111.0)) == (True, "", "straggler")
    assert judged(group(109.0)) == (True, "", "")


def test_under_ddp_the_time_before_the_first_collective_tells_a_straggler() -> None:
    """All steps take 100 ms because all wait for the slowest; 40, 40, 40 and 80 ms of it are their own."""
    def group(last_ms: float) -> list[RankResult]:
        own = [make_steps((100.0,) * 122, warmup=2, compute_ms=(ms,) * 122) for ms in (40.0, 40.0, 40.0, last_ms)]
        return [
            make_rank(rank, world_size=4, step_ms=(100.0,) * 120, steps=steps, measured_samples=240,
                      measured_tokens=720)
            for rank, steps in enumerate(own)
        ]  # fmt: skip

    assert judged(group(80.0)) == (True, "", "straggler")
    assert judged(group(43.0)) == (True, "", "")


def test_work_that_was_timed_without_waiting_is_invalid() -> None:
    """`timing: none` is there to show what it would claim."""
    found = figures(make_config(timing="none"), COUNTS, pair())
    assert (found.valid, found.invalid_reasons) == (False, "timing_none")


def test_optimizer_steps_are_those_of_the_window() -> None:
    """40 steps: 39 updates are not the work; 38 and two that overflowed are, with a warning."""
    assert judged(pair(optimizer_steps=39))[1] == "work_mismatch"
    assert judged(pair(optimizer_steps=38, skipped_optimizer_steps=2)) == (True, "", "skipped_steps")
    assert judged(pair(optimizer_steps=None, skipped_optimizer_steps=None)) == (True, "", "")


def test_clocks_that_differ_are_told_on_a_gpu() -> None:
    """Events sum to 20 s in a window of 20.5 s: 2.4 %. On CPU there is one clock only."""
    on_gpu = [make_rank(rank, step_ms=LONG, measured_s=20.5, environment=gpu(str(rank))) for rank in (0, 1)]
    assert judged(on_gpu) == (True, "", "clocks_differ")
    assert judged(pair(measured_s=20.5)) == (True, "", "")


def test_a_share_too_small_for_a_gpu_is_told() -> None:
    """The workload knows its shares (GT-16); on CPU cores any share is large enough."""
    small = dataclasses.replace(COUNTS, small_share=True)
    on_gpu = [make_rank(rank, step_ms=LONG, environment=gpu(str(rank))) for rank in (0, 1)]
    assert judged(on_gpu, small) == (True, "", "small_share")
    assert judged(on_gpu) == (True, "", "")
    assert judged(pair(), small) == (True, "", "")


@pytest.mark.parametrize(("asked", "in_files", "from_storage", "judged_as"), [
    ("cold", 1000, 990, (True, "", "")),
    ("cold", 1000, 100, (False, "not_cold", "")),
    ("cold", 1000, 500, (False, "not_cold", "")),
    ("cold", 1000, None, (False, "not_cold", "")),
    ("warm", 1000, 0, (True, "", "")),
    ("warm", 1000, 500, (True, "", "not_warm")),
    ("as_is", 1000, 0, (True, "", "from_memory")),
    ("as_is", 1000, 500, (True, "", "")),
    ("as_is", None, 0, (True, "", "")),
])  # fmt: skip
def test_where_the_data_came_from(
    asked: str, in_files: int | None, from_storage: int | None, judged_as: tuple[bool, str, str]
) -> None:
    """A disk's figure that was memory's is wrong, and so is one that nobody can vouch for; the rest is told."""
    ranks = pair(file_bytes=in_files, storage_read_bytes=from_storage)
    found = figures(make_config(data_cache=asked), COUNTS, ranks)
    assert (found.valid, found.invalid_reasons, found.warnings) == judged_as


def test_every_rule_has_a_name_of_its_own_and_a_sentence() -> None:
    """`show` prints the meaning of each; names are joined by `;`."""
    names = [rule.name for rule in INVALID + WARNINGS]
    assert len(set(names)) == len(names)
    assert set(names) <= set(MEANINGS)      # which also holds what the driver finds
    assert all(meaning[0].isupper() and meaning.endswith(".") for meaning in MEANINGS.values())
    assert max(len(f"{name}: {meaning}") for name, meaning in MEANINGS.items()) <= 79
    assert not any(";" in name for name in names)
