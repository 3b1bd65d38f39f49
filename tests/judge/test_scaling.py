"""Scaling tables worked by hand, the published ones, and what is no comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.errors import UsageError
from raybench.judge.scaling import READ, scaling, scaling_of
from raybench.record.trial import Trial
from raybench.spec.config import Extent, Source
from raybench.spec.models.decoder import PRESETS
from raybench.spec.models.matmul import MatmulShape
from tests.factories import make_config, make_trial
from tests.frames import frame_of

V100 = {"device_kind": "cuda", "gpu_model": "Tesla V100-SXM2-32GB", "cluster": "big-purple", "backend": "nccl"}
PUBLISHED = ((1, 29600.05, 1017.61), (2, 57289.31, 522.01), (4, 100791.44, 296.10))
GT_S = {
    "4096x4096x4096": (0.234, 0.089), "8192x8192x8192": (1.567, 0.234), "16384x16384x16384": (11.23, 1.498),
    "8192x4096x4096": (0.789, 0.156), "16384x4096x4096": (1.534, 0.198), "32768x2048x2048": (1.123, 0.145),
}  # fmt: skip
"""Seconds on 1 and on 8 GPUs, as the seed program's documentation prints them."""


def on(workers: int, *, step_ms: float = 50.0, changes: Mapping[str, Any] | None = None, **columns: Any) -> Trial:
    """A trial of the global batch 16 on so many workers; `changes` are of its config, `columns` of its row."""
    values = {"num_workers": workers, "micro_batch": 16 // workers, "global_batch": 16, "batch_given": "global_batch"}
    return make_trial(make_config(**values | dict(changes or {})), step_ms=step_ms, **columns)


def published(gpus: int, tokens_per_s: float, wall_s: float, **columns: Any) -> Trial:
    """One run of the fixed-work table: 3 561 steps of 16 sequences of 512 tokens (GS-01)."""
    config = make_config(
        workload="decoder", model_name="gpt2-seed", model=PRESETS["gpt2-seed"], vocab_size=50257, seq_len=512,
        num_workers=gpus, micro_batch=4, grad_accum=4 // gpus, global_batch=16, precision="fp16",
        batch_given="micro_batch+global_batch", measure=Extent(steps=3561),
    )  # fmt: skip
    counted = {"measured_tokens": 29_171_712, "tokens_per_s": tokens_per_s, "parameters": 163_037_184}
    step_ms = 16 * 512 / tokens_per_s * 1e3
    return make_trial(config, step_ms=step_ms, **{"wall_s": wall_s, **V100, **counted, **columns})


def matmul(name: str, workers: int, seconds: float, **columns: Any) -> Trial:
    """One product of that shape, its rows over the workers."""
    m, k, n = (int(part) for part in name.split("x"))
    config = make_config(
        workload="matmul", model_name="custom", model=MatmulShape(m=m, k=k, n=n), seq_len=None, vocab_size=None,
        micro_batch=None, grad_accum=None, global_batch=None, batch_given=None, phase=None, strategy="split",
        optimizer=None, source=None, num_workers=workers,
    )  # fmt: skip
    flops = 2.0 * m * k * n
    speed = {"model_flops_per_step": flops, "tflops_per_gpu": flops / seconds / workers / 1e12, "parameters": None}
    return make_trial(config, step_ms=1e3 * seconds, **{**speed, **V100, **columns})


def column(scaled: pd.DataFrame, name: str, digits: int = 2) -> list[Any]:
    """The values of a column, rounded, null as None."""
    values = [None if pd.isna(value) else value for value in scaled[name]]
    return [round(value, digits) if isinstance(value, float) else value for value in values]


# -- the published tables ----------------------------------------------------------------------------------------------


def test_the_published_fixed_work_table() -> None:
    """GS-02: 57289.31 / 29600.05 = 1.94 on 2, 100791.44 / 29600.05 = 3.41 on 4; by wall 1017.61 / 296.10 = 3.44."""
    scaled = scaling(frame_of(*(published(*row) for row in PUBLISHED)))
    assert column(scaled, "num_workers") == [1, 2, 4]
    assert column(scaled, "tokens_per_s") == [29600.05, 57289.31, 100791.44]
    assert column(scaled, "speedup") == [1.0, 1.94, 3.41]
    assert column(scaled, "efficiency") == [1.0, 0.97, 0.85]
    assert column(scaled, "wall_s") == [1017.61, 522.01, 296.10]
    assert column(scaled, "wall_speedup") == [None, 1.95, 3.44]
    assert column(scaled, "wall_efficiency") == [None, 0.97, 0.86]
    assert column(scaled, "band") == [None, "near-perfect", "good"]
    assert column(scaled, "status") == ["baseline", "ok", "ok"]
    assert column(scaled, "scaling") == ["strong"] * 3
    assert column(scaled, "baseline_workers") == [1, 1, 1]
    assert column(scaled, "comparison_errors") == column(scaled, "comparison_warnings") == ["", "", ""]


def test_three_averages_of_the_example_ratios() -> None:
    """GT-14: the six ratios have 6.23 as arithmetic and 5.85 as geometric mean; all six together take 1/7.10."""
    rows = [matmul(name, gpus, s) for name, both in GT_S.items() for gpus, s in zip((1, 8), both, strict=True)]
    scaled = scaling(frame_of(*rows))
    assert column(scaled[scaled["status"].eq("ok")], "speedup") == [2.63, 6.70, 7.50, 5.06, 7.75, 7.74]
    bands = column(scaled[scaled["status"].eq("ok")], "band")
    assert bands == ["poor", "good", "near-perfect", "good", "near-perfect", "near-perfect"]
    averages = scaling(frame_of(*rows), averages=True)
    (found,) = averages.to_dict("records")
    assert (found["shapes"], found["baseline_workers"], found["num_workers"]) == (6, 1, 8)
    assert round(found["arithmetic_mean_speedup"], 2) == 6.23
    assert round(found["geometric_mean_speedup"], 2) == 5.85
    assert round(found["total_work_speedup"], 2) == 7.10
    assert (round(found["min_speedup"], 2), round(found["max_speedup"], 2)) == (2.63, 7.75)
    assert round(found["geometric_mean_efficiency"], 3) == 0.731      # 5.849 / 8


# -- curves ------------------------------------------------------------------------------------------------------------


def test_weak_scaling_is_by_equal_batches_a_gpu() -> None:
    """4 samples each in 50 ms on 1, in 62.5 ms on 4: 4 x 50 / 62.5 = 3.2 times the throughput, 0.80 of the best."""
    rows = [make_trial(make_config(num_workers=n), step_ms=ms) for n, ms in ((1, 50.0), (4, 62.5))]
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "scaling") == ["weak", "weak"]
    assert column(scaled, "speedup") == [1.0, 3.2]
    assert column(scaled, "efficiency") == [1.0, 0.8]
    # By whole durations: 20 + 5 steps and 0.04 s around them, 1.29 and 1.6025 s: 4 x 1.29 / 1.6025.
    assert column(scaled, "wall_speedup", 4) == [None, round(4 * 1.29 / 1.6025, 4)]


def test_strong_and_weak_curves_of_one_sweep_are_kept_apart() -> None:
    """A global batch of 16 on 1 and 4; 4 each on 1, 2 and 4, of which the last is 16 too."""
    weak = [make_trial(make_config(num_workers=n), step_ms=50.0) for n in (1, 2, 4)]
    scaled = scaling(frame_of(*weak, *(on(n, step_ms=200.0 / n) for n in (1, 4))))
    of_kind = {kind: column(group, "speedup") for kind, group in scaled.groupby("scaling")}
    assert of_kind == {"strong": [1.0, 4.0], "weak": [1.0, 2.0, 4.0]}
    assert scaled["curve"].nunique() == 2


def test_batches_written_out_are_told_by_what_is_equal() -> None:
    """4 a GPU and 4, 8 and 16 in all were given: weak. With 16 in all on 1, 2 and 4 as well, those are strong."""
    given = {"batch_given": "micro_batch+global_batch"}
    weak = [make_trial(make_config(num_workers=n, **given)) for n in (1, 2, 4)]
    assert column(scaling(frame_of(*weak)), "scaling") == ["weak"] * 3
    strong = [make_trial(make_config(num_workers=n, grad_accum=4 // n, **given)) for n in (1, 2)]
    scaled = scaling(frame_of(*weak, *strong))
    of_kind = {kind: column(group, "num_workers") for kind, group in scaled.groupby("scaling")}
    assert of_kind == {"strong": [1, 2, 4], "weak": [1, 2]}


def test_rows_may_be_numbered_twice() -> None:
    """As two frames that were put one below the other."""
    frames = [frame_of(on(n, step_ms=100.0 / n)) for n in (1, 2)]
    assert column(scaling(pd.concat(frames)), "speedup") == [1.0, 2.0]


def test_any_numbers_and_any_baseline() -> None:
    """3, 6 and 12 GPUs; against 6, 3 GPUs are half and 12 are 1.6 times: efficiencies 1.0 and 0.8."""
    rows = [on(n, step_ms=ms, changes=batch(n)) for n, ms in ((3, 100.0), (6, 50.0), (12, 31.25))]
    assert column(scaling(frame_of(*rows)), "speedup") == [1.0, 2.0, 3.2]
    scaled = scaling(frame_of(*rows), baseline=6)
    assert column(scaled, "speedup") == [0.5, 1.0, 1.6]
    assert column(scaled, "efficiency") == [1.0, 1.0, 0.8]
    assert column(scaled, "baseline_workers") == [6, 6, 6]
    with pytest.raises(UsageError, match=r"baseline=4: not measured; there are 3, 6, 12"):
        scaling(frame_of(*rows), baseline=4)


def batch(workers: int, whole: int = 24) -> dict[str, Any]:
    """A global batch for counts that 16 does not divide by."""
    return {"micro_batch": whole // workers, "global_batch": whole}


def test_the_smallest_usable_number_is_the_baseline() -> None:
    """1 GPU ran out of memory and 2 were invalid: 4 and 8 are put against 4, and the table says so."""
    rows = [
        on(1, outcome="oom_cuda"), on(2, valid=False, invalid_reasons="above_peak"), on(4, step_ms=40.0),
        on(8, step_ms=25.0),
    ]  # fmt: skip
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "status") == ["not measured", "not measured", "baseline", "ok"]
    assert column(scaled, "speedup") == [None, None, 1.0, 1.6]
    assert column(scaled, "baseline_workers") == [4, 4, 4, 4]
    assert column(scaling(frame_of(*rows), baseline=1), "status")[2:] == ["no baseline", "no baseline"]
    assert column(scaling(frame_of(*rows), include_invalid=True), "baseline_workers") == [2, 2, 2, 2]


def test_an_interval_over_repeats() -> None:
    """40 and 60 ms against 20 and 20: the middle is sqrt(40 x 60) / 20; as wide as `compare` says for 1 degree."""
    rows = [on(1, step_ms=ms, repeat=repeat) for repeat, ms in ((1, 40.0), (2, 60.0))]
    rows += [on(2, step_ms=20.0, repeat=repeat) for repeat in (1, 2)]
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "repeats") == [2, 2]
    assert column(scaled, "speedup") == [1.0, 2.5]      # all the work in all the time: 100 ms against 40
    low, high = scaled["speedup_low"][1], scaled["speedup_high"][1]
    assert (low * high) ** 0.5 == pytest.approx((40 * 60) ** 0.5 / 20)
    assert high / low == pytest.approx(2.718281828 ** (2 * 12.7062 * 0.202733), rel=1e-3)
    assert scaled["efficiency_low"][1] == pytest.approx(low / 2)
    assert column(scaled, "speedup_low")[0] is None


def test_curves_are_never_pooled() -> None:
    """RS-X15: two clusters, two precisions, two sources are curves of their own, each with its own baseline."""
    rows = [
        on(n, step_ms=ms / n, changes={"precision": precision, "source": Source(name=source)}, cluster=cluster)
        for n in (1, 2)
        for cluster, ms in (("a", 80.0), ("b", 40.0))
        for precision in ("fp32", "bf16")
        for source in ("device", "generate")
    ]
    scaled = scaling(frame_of(*rows))
    assert scaled["curve"].nunique() == 8
    assert set(column(scaled, "efficiency")) == {1.0}
    assert len(scaling(frame_of(*rows), averages=True)) == 4      # by cluster and precision, over two sources each


# -- no comparison -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of_baseline", "reason"), [
    ({"changes": {"strategy": "none"}}, "strategy (none / ddp)"),
    ({"changes": {"precision": "bf16"}}, "precision (bf16 / fp32)"),
    ({"changes": {"compile": "default"}}, "compile (default / off)"),
    ({"changes": {"source": Source(name="generate", num_samples=2000)}}, "source.name (generate / device)"),
    ({"changes": {"quality": "quick"}}, "quality (quick / full)"),
    ({"changes": {"micro_batch": 8, "global_batch": 8}}, "global_batch (8 / 16)"),
    ({"changes": {"seq_len": 128}}, "seq_len (128 / 64)"),
    ({"changes": {"batch_given": "micro_batch"}}, "scaling (weak / strong)"),
    ({"raybench_version": "0.0.9"}, "raybench_version (0.0.9 / "),
    ({"torch_version": "2.6.0"}, "torch_version (2.6.0 / 2.13.0)"),
    ({"ray_version": "2.56.0"}, "ray_version (2.56.0 / 2.60.0)"),
    ({"cuda_version": "12.4"}, "cuda_version (12.4 / –)"),
    ({"driver_version": "550.1"}, "driver_version (550.1 / –)"),
    ({"gpu_model": "NVIDIA A100-SXM4-40GB"}, "gpu_model (NVIDIA A100-SXM4-40GB / –)"),
    ({"device_kind": "cuda"}, "device_kind (cuda / cpu)"),
    ({"cluster": "elsewhere"}, "cluster (elsewhere / host-a)"),
    ({"effective_attention": "flash"}, "effective_attention (flash / math)"),
    ({"effective_precision": "tf32"}, "effective_precision (tf32 / fp32)"),
])  # fmt: skip
def test_a_baseline_that_differs_in_anything_else_is_no_comparison(of_baseline: Any, reason: str) -> None:
    """The reason, and no number (GS-X2, GS-23): 2 and 4 GPUs would have a baseline of their own, which nobody meant."""
    several = [] if reason.startswith("seq_len") else [on(4)]     # another computation is meant by a lone row only
    rows = [on(1, **of_baseline), on(2), *several]
    scaled = scaling(frame_of(*rows))
    others = scaled[scaled["num_workers"].ne(1)]
    assert set(column(others, "status")) == {"invalid comparison"}
    assert all(reason in told for told in column(others, "comparison_errors"))
    for name in ("speedup", "speedup_low", "efficiency", "wall_speedup", "wall_efficiency", "band", "advice"):
        assert set(column(others, name)) == {None}
    assert column(scaled[scaled["num_workers"].eq(1)], "status") == ["baseline"]
    assert scaling(frame_of(*rows), averages=True).empty


def test_a_setting_of_a_later_version_is_no_difference_while_it_is_the_default() -> None:
    """A row from before `timing` and `grad_clip` differs from today's in its version alone."""
    old = frame_of(on(1, raybench_version="0.0.9"))
    config = json.loads(old["config"][0])
    del config["timing"], config["grad_clip"]
    old["config"] = json.dumps(config)
    scaled = scaling(pd.concat([old, frame_of(on(2))], ignore_index=True))
    (told,) = column(scaled, "comparison_errors")[1:]
    assert told.startswith("raybench_version (0.0.9 / ")
    assert ";" not in told


@pytest.mark.parametrize(("measured", "reason"), [
    ({"measured_samples": 20 * 12}, "samples a step (16 / 12)"),
    ({"measured_tokens": 20 * 16 * 60}, "tokens a step (1008 / 960)"),
    ({"model_flops_per_step": 1e9}, "FLOPs a step (21183676416 / 1000000000)"),
    ({"measured_steps": 10, "measured_samples": 160, "measured_tokens": 10080}, "samples in all (320 / 160)"),
    ({"world_size": 1}, "ranks that ran (1 / 1)"),
    ({"parameters": 7}, "parameters (3502592 / 7)"),
])  # fmt: skip
def test_work_that_was_not_done_is_no_comparison(measured: dict[str, int], reason: str) -> None:
    """What was counted decides, whatever was asked."""
    scaled = scaling(frame_of(on(1), on(2, **measured)))
    assert column(scaled, "status") == ["baseline", "invalid comparison"]
    assert column(scaled, "comparison_errors")[1] == reason
    assert column(scaled, "speedup") == [1.0, None]


def test_weak_work_is_counted_per_gpu() -> None:
    """2 GPUs that did 4 samples a step between them did 2 each, not 4."""
    rows = [make_trial(make_config(num_workers=1)), make_trial(make_config(num_workers=2), measured_samples=80)]
    assert column(scaling(frame_of(*rows)), "comparison_errors")[1] == "samples a step and GPU (4 / 2)"


def test_a_window_of_time_has_no_whole_work_to_compare() -> None:
    """20 s on 1 and on 2 GPUs: throughput is compared, whole durations are not."""
    extent = {"measure": Extent(seconds=20.0)}
    rows = [on(1, changes=extent), on(2, changes=extent, measured_steps=40, measured_samples=640,
                                     measured_tokens=40320, measured_s=1.0)]  # fmt: skip
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "speedup") == [1.0, 2.0]
    assert column(scaled, "wall_speedup") == [None, None]


def test_starting_workers_is_no_part_of_the_wall_time() -> None:
    """A group is started for its first trial only: 105 s less 20 + 10 + 5 of them are 70, twice as fast as 140."""
    started = {"placement_s": 20.0, "worker_start_s": 10.0, "fingerprint_s": 5.0}
    rows = [on(1, wall_s=140.0, fingerprint_s=0.0), on(2, wall_s=105.0, **started)]
    assert column(scaling(frame_of(*rows)), "wall_speedup") == [None, 2.0]


def test_a_curve_of_its_own_is_not_taken_for_a_wrong_baseline() -> None:
    """fp32 on 1, 2 and 4, bf16 on 2 and 4, which did not fit on 1: bf16 is put against 2."""
    rows = [on(n, step_ms=80.0 / n) for n in (1, 2, 4)]
    rows += [on(n, step_ms=40.0 / n, changes={"precision": "bf16"}) for n in (2, 4)]
    scaled = scaling(frame_of(*rows))
    assert column(scaled[scaled["precision"].eq("bf16")], "baseline_workers") == [2, 2]
    assert set(column(scaled, "status")) == {"baseline", "ok"}
    asked = scaling(frame_of(*rows), baseline=1)
    (told,) = set(column(asked[asked["precision"].eq("bf16")], "comparison_errors"))
    assert told == "precision (fp32 / bf16)"


def test_a_single_number_of_gpus_is_no_curve() -> None:
    """Nothing else was measured, so there is nothing to say."""
    scaled = scaling(frame_of(on(2)))
    assert column(scaled, "status") == ["no baseline"]
    assert column(scaled, "comparison_errors") == ["no other number of GPUs"]


def test_what_may_matter_is_told_apart() -> None:
    """Threads and nodes do not forbid it; more than linear is told as such: 100 ms against 40 on 2 is 1.25."""
    rows = [on(1, step_ms=100.0, cpu_threads=2), on(2, step_ms=40.0, num_nodes=2)]
    (told,) = column(scaling(frame_of(*rows)), "comparison_warnings")[1:]
    assert told == (
        "cpu_threads (2 / 1); num_nodes (1 / 2); "
        "more than linear: something else than the number of GPUs held the baseline back"
    )
    assert column(scaling(frame_of(*rows)), "status") == ["baseline", "ok"]


@pytest.mark.parametrize(("changes", "loss", "told"), [
    ({}, 8.0, "other maths: fingerprint_loss (9 / 8)"),
    ({}, 9.0005, ""),
    ({}, None, ""),
    ({"precision": "bf16"}, 9.1, ""),
    ({"precision": "bf16"}, 8.8, "other maths: fingerprint_loss (9 / 8.8)"),
    ({"workload": "resnet"}, 8.0, ""),
])  # fmt: skip
def test_a_speedup_that_changed_the_maths_is_seen(changes: dict[str, Any], loss: float | None, told: str) -> None:
    """Equal batches give equal losses, up to rounding; batch norm is of each rank's own images."""
    rows = [on(1, changes=changes, fingerprint_loss=9.0), on(2, changes=changes, fingerprint_loss=loss)]
    assert column(scaling(frame_of(*rows)), "comparison_warnings")[1] == told


def test_weak_scaling_has_other_fingerprints() -> None:
    """Twice the batch is another loss."""
    rows = [make_trial(make_config(num_workers=n), fingerprint_loss=9.0 + n) for n in (1, 2)]
    assert column(scaling(frame_of(*rows)), "comparison_warnings") == ["", ""]


def test_quick_rows_give_way() -> None:
    """Where the same was measured in full."""
    rows = [on(1, changes={"quality": "quick"}), on(1, step_ms=60.0), on(2, step_ms=30.0)]
    found = scaling_of(frame_of(*rows))
    assert column(found.table, "speedup") == [1.0, 2.0]
    assert found.superseded == 1


ROWS = st.lists(
    st.builds(
        dict,
        workers=st.sampled_from([1, 2, 4, 8]),
        changes=st.sampled_from([{}, {"strategy": "none"}, {"precision": "bf16"}, {"quality": "quick"}, {"seed": 1}]),
        cluster=st.sampled_from(["a", "b"]),
        torch_version=st.sampled_from([None, "2.6.0"]),
        outcome=st.sampled_from(["ok", "ok", "ok", "timeout"]),
        valid=st.booleans(),
        step_ms=st.floats(min_value=1.0, max_value=1e4),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(rows=ROWS, baseline=st.sampled_from([None, 1, 4]))
def test_whatever_the_rows_a_number_has_a_like_baseline(rows: list[dict[str, Any]], baseline: int | None) -> None:
    """Every row comes out once a side, has a number exactly when it is ok, and a reason when there is no comparison."""
    trials = [on(row.pop("workers"), **row | {"valid": row["valid"] and row["outcome"] == "ok"}) for row in rows]
    frame = frame_of(*trials)
    if baseline is not None and baseline not in set(frame["num_workers"]):
        with pytest.raises(UsageError, match="not measured"):
            scaling(frame, baseline=baseline)
        return
    scaled = scaling(frame, baseline=baseline)
    assert not scaled.duplicated(["curve", "num_workers"]).any()
    assert scaled["speedup"].notna().eq(scaled["status"].isin(["ok", "baseline"])).all()
    without = scaled["status"].isin(["invalid comparison", "no baseline"])
    assert scaled["comparison_errors"].ne("").eq(without).all()
    numbers = scaled[scaled["status"].eq("ok")]
    bases = scaled[scaled["status"].eq("baseline")].set_index("curve")["num_workers"]
    assert (numbers["curve"].map(bases) == numbers["baseline_workers"]).all()
    assert (numbers["speedup"] * numbers["baseline_workers"] / numbers["num_workers"]).to_list() == pytest.approx(
        numbers["efficiency"].to_list()
    )


def test_a_collective_is_no_work_to_share() -> None:
    """Every rank takes part in the whole of it, so that more ranks are no help: its bandwidth is the figure."""
    rows = [on(n, changes={"workload": "collective", "strategy": "split"}) for n in (2, 4)]
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "status") == ["no baseline", "no baseline"]
    assert column(scaled, "comparison_errors") == ["a collective is no work to share: its figure is the bandwidth"] * 2


def test_probes_and_profiled_runs_are_no_measurements() -> None:
    """A probe for the largest batch on 1 GPU is no baseline that somebody meant."""
    rows = [on(1, changes={"quality": "probe"}), on(2), on(4, step_ms=25.0), on(8, changes={"quality": "profiled"})]
    scaled = scaling(frame_of(*rows))
    assert column(scaled, "num_workers") == [2, 4]
    assert column(scaled, "speedup") == [1.0, 2.0]
    with pytest.raises(UsageError, match="no measurements to compare, only probe and profiled rows"):
        scaling(frame_of(rows[0], rows[3]))


@pytest.mark.parametrize("baseline", [0, -1, True, "1"])
def test_a_baseline_is_a_number_of_gpus(baseline: Any) -> None:
    """Anything else is told."""
    with pytest.raises(UsageError, match="give a number of GPUs"):
        scaling(frame_of(on(1), on(2)), baseline=baseline)


def test_part_of_the_columns_is_enough() -> None:
    """Those that the command loads."""
    frame = frame_of(on(1), on(2, step_ms=25.0))
    some = frame[[*READ, "cluster", "outcome", "valid"]]
    assert column(scaling(some), "speedup") == [1.0, 2.0]
    with pytest.raises(UsageError, match=r"no whole rows of raybench.load: without config, work_key, sweep_order and"):
        scaling(frame[["outcome", "cluster", "valid"]])
