"""From ranks to the figures of a row: whole answers, worked by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from raybench.measure.summary import Figures, figures
from raybench.record.trial import Trial
from raybench.spec.config import Extent, TrialConfig
from raybench.spec.models.matmul import MatmulShape
from raybench.workloads.matmul.counts import counts as matmul_counts
from tests.factories import make_config
from tests.measure.ranks import COUNTS, gpu, make_rank

# Five blocks of four steps, with means 98, 99, 100, 101, 102: sum 2000 ms, squares 4 x (4 + 1 + 0 + 1 + 4) = 40.
STEP_MS = tuple(float(block) for block in (98, 99, 100, 101, 102) for _ in range(4))
STD = (40 / 19) ** 0.5
HALF_WIDTH = 2.776445 * (2.5 / 5) ** 0.5  # t(4, 97.5 %), standard deviation of the block means sqrt(2.5)


def test_whole_answer_on_two_gpus() -> None:
    """Two H200s; rank 1 is the slower, 2 s for 20 steps; every figure by hand."""
    ranks = [
        make_rank(
            0,
            step_ms=(99.0,) * 20,
            environment=gpu("a"),
            telemetry={"utilization_mean": 0.5, "power_mean_w": 300.0, "energy_j": 600.0},
            memory={"allocated_bytes": 10, "reserved_bytes": 40, "host_bytes": 7},
            first_batch_s=0.5,
            fingerprint_loss=6.0,
            fingerprint_steps=3,
            sample_bytes=512,
            loader_cpu_s=0.25,
        ),
        make_rank(
            1,
            step_ms=STEP_MS,
            environment=gpu("b"),
            telemetry={"utilization_mean": 0.9, "power_mean_w": 500.0, "energy_j": 1000.0},
            memory={"allocated_bytes": 20, "reserved_bytes": 30, "host_bytes": 5},
            fingerprint_loss=7.0,
            fingerprint_steps=3,
            sample_bytes=512,
            loader_cpu_s=0.5,
        ),
    ]
    assert figures(make_config(), COUNTS, ranks) == Figures(
        parameters=100,
        warmup_steps=2,
        measured_steps=20,
        measured_samples=160,  # 2 ranks x 20 steps x 4
        measured_tokens=480,
        model_flops_per_step=4e9,
        model_flops_causal_per_step=3e9,
        hardware_flops_per_step=5e9,
        loss_finite=True,
        optimizer_steps=20,
        skipped_optimizer_steps=0,
        forward_ms_mean=20.0,
        backward_ms_mean=40.0,
        optimizer_ms_mean=10.0,
        fingerprint_loss=6.5,           # the mean of 6 and 7
        fingerprint_steps=3,
        measured_s=2.0,
        samples_per_s=80.0,  # 160 / 2
        tokens_per_s=240.0,
        steps_per_s=10.0,
        samples_per_s_per_gpu=40.0,
        tokens_per_s_per_gpu=120.0,
        samples_per_s_ci_low=pytest.approx(80 * 100 / (100 + HALF_WIDTH), rel=1e-6),
        samples_per_s_ci_high=pytest.approx(80 * 100 / (100 - HALF_WIDTH), rel=1e-6),
        tflops_per_gpu=pytest.approx(0.02),  # 4e9 x 10 / 2 / 1e12
        mfu=pytest.approx(20e9 / 989.5e12),
        mfu_causal=pytest.approx(15e9 / 989.5e12),
        hfu=pytest.approx(25e9 / 989.5e12),  # 1e9 of each 5e9 were computed again
        step_ms_mean=100.0,
        step_ms_std=pytest.approx(STD),
        step_ms_cv=pytest.approx(STD / 100),
        step_ms_min=98.0,
        step_ms_p50=100.0,
        step_ms_p95=102.0,
        step_ms_p99=102.0,
        step_ms_max=102.0,
        rows_per_rank=None,
        bytes_per_step=None,
        memory_bandwidth_bytes_per_s=None,
        algorithm_bandwidth_bytes_per_s=None,
        bus_bandwidth_bytes_per_s=None,
        create_s=None,
        retrieve_s=None,
        data_wait_s=pytest.approx(0.020),  # 20 steps x 1 ms
        data_stall_fraction=pytest.approx(0.020 / 1.98),  # rank 0's share is the larger
        first_batch_s=0.5,
        delivered_bytes_per_s=40960.0,  # 160 samples x 512 / 2 s
        loader_cpu_s=0.75,
        samples_dropped=None,
        file_bytes=None,
        storage_read_bytes=None,
        cache_state=None,
        peak_memory_allocated_bytes=20,
        peak_memory_reserved_bytes=40,
        peak_host_memory_bytes=7,
        gpu_utilization_mean=pytest.approx(0.7),
        gpu_utilization_min=0.5,
        power_mean_w=400.0,
        energy_j=1600.0,
        compile_s=None,
        compile_cache=None,
        valid=True,
        invalid_reasons="",
        warnings="short_window",
    )


def test_whole_answer_of_a_split_workload() -> None:
    """Four ranks of one matmul: an operation a step, told by rank 0; 2 x 4 x 3 x 5 = 120 FLOP in 0.1 s."""
    config = TrialConfig(
        workload="matmul",
        model_name="custom",
        model=MatmulShape(m=4, k=3, n=5),
        strategy="split",
        num_workers=4,
        warmup=Extent(steps=2),
        measure=Extent(steps=20),
    )
    ranks = [_split(rank, completed=20 if rank == 0 else 0) for rank in range(4)]
    found = figures(config, matmul_counts(config), ranks)
    assert (found.measured_samples, found.samples_per_s, found.samples_per_s_per_gpu) == (20, 10.0, 2.5)
    assert (found.measured_tokens, found.tokens_per_s, found.parameters, found.loss_finite) == (None, None, None, True)
    assert found.tflops_per_gpu == pytest.approx(120 * 10 / 4 / 1e12)
    assert (found.model_flops_causal_per_step, found.mfu, found.mfu_causal, found.hfu) == (None, None, None, None)
    assert found.hardware_flops_per_step == found.model_flops_per_step == 120
    assert (found.first_batch_s, found.valid) == (None, True)
    assert (found.rows_per_rank, found.create_s, found.retrieve_s) == (1, 0.4, 0.08)      # the slowest rank's


def test_every_figure_is_a_column() -> None:
    """Figures can be spread into a row."""
    columns = {field.name for field in dataclasses.fields(Trial)}
    assert {field.name for field in dataclasses.fields(Figures)} <= columns


def test_compile_time_is_the_first_step_over_the_median() -> None:
    """Rank 0: 300 - 100 = 200 ms, rank 1: 300 - 90 = 210 ms; one cold cache makes it cold."""
    ranks = [make_rank(0, compile_cache="warm"), make_rank(1, step_ms=(90.0,) * 20, compile_cache="cold")]
    compiled = make_config(compile="default")
    assert figures(compiled, COUNTS, ranks).compile_s == pytest.approx(0.21)
    assert figures(compiled, COUNTS, ranks).compile_cache == "cold"
    assert figures(make_config(), COUNTS, ranks).compile_s is None


def test_a_gpu_stalls_while_it_waits_itself_and_not_while_its_host_does() -> None:
    """20 steps of 100 ms: the host waited 1 ms of each, rank 0's GPU 25 ms and rank 1's 10. The share is a quarter."""
    found_ms = {0: 25.0, 1: 10.0}
    ranks = [_with_gaps(make_rank(rank, environment=gpu("ab"[rank])), gap_ms) for rank, gap_ms in found_ms.items()]
    found = figures(make_config(), COUNTS, ranks)
    assert (found.data_wait_s, found.data_stall_fraction) == (pytest.approx(0.020), pytest.approx(0.25))


def test_a_source_alone_stalls_nothing() -> None:
    """There is no compute to wait, no compiled graph and nothing to know of makers of batches that are not there."""
    found = figures(make_config(phase="load", compile="default"), COUNTS, [make_rank(rank) for rank in (0, 1)])
    assert (found.data_stall_fraction, found.compile_s, found.loader_cpu_s) == (None, None, None)
    assert found.data_wait_s == pytest.approx(0.020)


def test_no_compile_time_without_a_warm_up_step() -> None:
    """Nothing to take the median from."""
    bare = [_without_warmup(make_rank(rank)) for rank in (0, 1)]
    assert figures(make_config(compile="default"), COUNTS, bare).compile_s is None


def test_a_gpu_that_does_not_answer_leaves_the_sum_unknown() -> None:
    """600 J from one of two GPUs is not the energy of the trial."""
    telemetry = {"utilization_mean": 0.5, "power_mean_w": 300.0, "energy_j": 600.0}
    ranks = [make_rank(0, environment=gpu("a"), telemetry=telemetry), make_rank(1, environment=gpu("b"))]
    found = figures(make_config(), COUNTS, ranks)
    assert (found.energy_j, found.power_mean_w, found.gpu_utilization_mean, found.gpu_utilization_min) == (None,) * 4


def test_ranks_that_share_a_gpu_count_its_energy_once() -> None:
    """Both read the same meter."""
    telemetry = {"utilization_mean": 0.5, "power_mean_w": 300.0, "energy_j": 600.0}
    ranks = [make_rank(rank, environment=gpu("a"), telemetry=telemetry) for rank in (0, 1)]
    assert figures(make_config(), COUNTS, ranks).energy_j == 600.0


def test_below_twenty_steps_there_is_no_interval() -> None:
    """19 steps have a mean but no interval."""
    found = figures(make_config(), COUNTS, [make_rank(rank, step_ms=(100.0,) * 19) for rank in (0, 1)])
    assert found.step_ms_mean == pytest.approx(100.0)
    assert (found.samples_per_s_ci_low, found.samples_per_s_ci_high) == (None, None)


def test_a_missing_rank_is_a_bug() -> None:
    """Rank 0 never speaks for all."""
    with pytest.raises(AssertionError):
        figures(make_config(), COUNTS, [make_rank(0)])


def _split(rank: int, completed: int) -> Any:
    return make_rank(
        rank, world_size=4, measured_samples=completed, measured_tokens=None, parameters=None, first_batch_s=None,
        create_s=0.1 * (rank + 1), retrieve_s=0.02 * (rank + 1),
    )  # fmt: skip


def _with_gaps(rank: Any, gap_ms: float) -> Any:
    return dataclasses.replace(rank, steps=dataclasses.replace(rank.steps, device_gap_ms=(gap_ms,) * 22))


def _without_warmup(rank: Any) -> Any:
    kept = {name: values[2:] for name, values in dataclasses.asdict(rank.steps).items()}
    return dataclasses.replace(rank, steps=dataclasses.replace(rank.steps, **kept), warmup_steps=0)


@pytest.mark.parametrize(("passes", "dropped"), [
    ((None, None), None),                                   # not streamed
    (((), ()), None),                                       # no epoch ended
    (((1000, 1000), (1000, 1000)), 0),
    (((999, 999), (1000, 1000)), 2),                        # one in each of two epochs
    (((999, 999), (999,)), 2),                              # the second epoch has not ended on every rank
])  # fmt: skip
def test_samples_dropped(passes: tuple[tuple[int, ...] | None, ...], dropped: int | None) -> None:
    """Of 2000 an epoch, those that no rank was given."""
    ranks = [make_rank(rank, passes=given) for rank, given in enumerate(passes)]
    assert figures(make_config(), COUNTS, ranks).samples_dropped == dropped
