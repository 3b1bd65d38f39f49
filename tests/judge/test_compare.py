"""Comparisons worked by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from raybench.errors import ComparisonError, UsageError
from raybench.judge.compare import columns_for, compare, side_by_side
from raybench.judge.varying import NothingVaries
from raybench.record.trial import Trial
from raybench.spec.config import Extent, Source
from raybench.spec.families.encdec import ENCDEC, EncDecShape
from tests.factories import make_config, make_trial
from tests.frames import frame_of, store

MODELS = (("encdec", "3.5m"), ("matmul", "sq1024"))
GPU = {"device_kind": "cuda", "gpu_model": "NVIDIA H200"}


def two_clusters(**overrides: Any) -> list[Trial]:
    """The same trial at 50 ms on cluster a and at 25 ms on cluster b."""
    return [make_trial(step_ms=ms, cluster=name, **overrides) for name, ms in (("a", 50.0), ("b", 25.0))]


def by_value(compared: pd.DataFrame, axis: str, column: str) -> dict[Any, Any]:
    """A column as plain values by the value of the axis."""
    values = [None if pd.isna(value) else value for value in compared[column]]
    return dict(zip(compared[axis], values, strict=True))


def test_two_clusters_are_paired_on_equal_work() -> None:
    """8 samples and 8 x 63 tokens a step: 160/s and 10 080/s at 50 ms, twice that at 25 ms; the baseline is a."""
    compared = compare(frame_of(*two_clusters()))
    assert by_value(compared, "cluster", "samples_per_s") == {"a": 160.0, "b": 320.0}
    assert by_value(compared, "cluster", "tokens_per_s") == {"a": 10080.0, "b": 20160.0}
    assert by_value(compared, "cluster", "samples_per_s_per_gpu") == {"a": 80.0, "b": 160.0}
    assert by_value(compared, "cluster", "step_ms_mean") == {"a": 50.0, "b": 25.0}
    assert by_value(compared, "cluster", "ratio") == {"a": 1.0, "b": 2.0}
    assert by_value(compared, "cluster", "ratio_low") == {"a": None, "b": None}
    assert compared["baseline"].to_list() == [True, False]
    assert compared["work"].unique().tolist() == ["encdec 3.5m s64 b4 fp32 device ×2"]


@pytest.mark.parametrize(("changes", "losses", "told"), [
    ({"compile": "default"}, (9.0, 8.0), "fingerprint_loss (9 / 8)"),
    ({"compile": "default"}, (9.0, 9.005), ""),                       # 1e-3 of 9 is 0.009
    ({"precision": "bf16"}, (9.0, 9.1), ""),                          # 2 % is 0.18
    ({"precision": "bf16"}, (9.0, 9.2), "fingerprint_loss (9 / 9.2)"),
    ({"optimizer.lr": 0.1}, (9.0, 8.0), ""),                          # other maths was asked for
    ({"compile": "default"}, (None, 8.0), ""),
])  # fmt: skip
def test_a_speedup_that_changed_the_maths_is_not_quotable(
    changes: dict[str, Any], losses: tuple[float | None, float], told: str
) -> None:
    """Where the same was asked, up to what changes the speed only, the same loss must be reached."""
    (path, value), = changes.items()
    name, _, part = path.partition(".")
    config = make_config()
    changed = {name: config.optimizer.model_copy(update={part: value}) if part and config.optimizer else value}
    sides = zip((config, config.model_copy(update=changed)), losses, (50.0, 25.0), strict=True)
    rows = [make_trial(each, fingerprint_loss=loss, step_ms=ms) for each, loss, ms in sides]
    compared = compare(frame_of(*rows), by=path)
    assert compared["other_maths"].to_list() == ["", told]
    assert compared["quotable"].to_list()[1] is (not told)


def test_works_of_other_data_have_other_labels() -> None:
    """Two sources of 2 000 samples, and one of 100, which is no pair of theirs."""
    sources = [Source(name=name, num_samples=n) for name, n in (("device", 2000), ("memory", 2000), ("memory", 100))]
    rows = [make_trial(make_config().model_copy(update={"source": source})) for source in sources]
    works = compare(frame_of(*rows), by="source")["work"]
    assert sorted(work.split()[-1] for work in works) == ["num_samples=100", "num_samples=2000", "num_samples=2000"]


def test_flops_and_mfu_are_over_all_the_time() -> None:
    """Two repeats of 20 steps, 1 s and 3 s: 40 steps' FLOPs in 4 s on 2 ranks; MFU (0.6 x 1 + 0.2 x 3) / 4 = 0.3."""
    rows = [
        make_trial(step_ms=ms, repeat=repeat, mfu=mfu, model_flops_per_step=2e12, cluster="a")
        for repeat, ms, mfu in ((1, 50.0, 0.6), (2, 150.0, 0.2))
    ]
    compared = compare(frame_of(*rows, make_trial(cluster="b")))
    assert by_value(compared, "cluster", "tflops_per_gpu")["a"] == pytest.approx(40 * 2 / 4 / 2)
    assert by_value(compared, "cluster", "mfu") == {"a": pytest.approx(0.3), "b": None}


def test_repeats_are_total_work_over_total_time() -> None:
    """Steps of 40 and 60 ms: 2 x 160 samples in 0.8 + 1.2 s are 160/s, not the mean of the rates, 166.7/s."""
    rows = [make_trial(step_ms=ms, repeat=repeat, cluster="a") for repeat, ms in ((1, 40.0), (2, 60.0))]
    rows += [make_trial(step_ms=50.0, repeat=repeat, cluster="b") for repeat in (1, 2)]
    compared = compare(frame_of(*rows))
    assert by_value(compared, "cluster", "samples_per_s") == {"a": pytest.approx(160.0), "b": pytest.approx(160.0)}
    assert by_value(compared, "cluster", "step_ms_mean")["a"] == pytest.approx(50.0)
    assert by_value(compared, "cluster", "repeats") == {"a": 2, "b": 2}
    # ln(60/40) / 2 = 0.2027 is the standard error of the log mean with 1 degree of freedom: t = 12.706.
    low, high = (by_value(compared, "cluster", column)["b"] for column in ("ratio_low", "ratio_high"))
    middle = 50.0 / (40.0 * 60.0) ** 0.5
    assert high / low == pytest.approx(2.718281828 ** (2 * 12.7062 * 0.202733), rel=1e-3)
    assert (low * high) ** 0.5 == pytest.approx(1 / middle, rel=1e-6)


def test_spread_is_pooled_over_repeats() -> None:
    """CVs of 2 % at 40 and 60 ms: sqrt((0.8^2 + 1.2^2) / 2) = 1.0198 ms over a mean of 50 ms is 2.04 %."""
    rows = [make_trial(step_ms=ms, repeat=repeat, cluster="a") for repeat, ms in ((1, 40.0), (2, 60.0))]
    compared = compare(frame_of(*rows, make_trial(cluster="b")))
    assert by_value(compared, "cluster", "step_ms_cv")["a"] == pytest.approx(0.020396, rel=1e-4)


def test_published_scaling_table() -> None:
    """Strong scaling by GPU count, global batch fixed: 1.94 and 3.41 from tokens per second (GS-02)."""
    rows = []
    for gpus, tokens_per_s in ((1, 29600.05), (2, 57289.31), (4, 100791.44)):
        config = make_config(
            num_workers=gpus, micro_batch=16 // gpus, global_batch=16, batch_given="global_batch", seq_len=513
        )
        rows.append(make_trial(config, step_ms=1e3 * 16 * 512 / tokens_per_s, **GPU))
    compared = compare(frame_of(*rows), by="num_workers")
    ratios = {workers: round(ratio, 2) for workers, ratio in by_value(compared, "num_workers", "ratio").items()}
    assert ratios == {1: 1.0, 2: 1.94, 4: 3.41}
    assert set(compared["work"]) == {"encdec 3.5m s513 g16 fp32 device"}


def test_weak_scaling_pairs_without_the_derived_global_batch() -> None:
    """micro_batch was given, so global batches of 4 and 8 follow from the workers and are no difference."""
    rows = [make_trial(make_config(num_workers=workers), step_ms=50.0) for workers in (1, 2)]
    assert by_value(compare(frame_of(*rows), by="num_workers"), "num_workers", "ratio") == {1: 1.0, 2: 2.0}


def test_a_given_global_batch_is_a_difference() -> None:
    """Both numbers given and both differing is other work, whatever the workers."""
    rows = [
        make_trial(make_config(num_workers=n, global_batch=4 * n, batch_given="micro_batch+grad_accum+global_batch"))
        for n in (1, 2)
    ]
    with pytest.raises(ComparisonError, match=r"nothing in common.*global_batch \(4 / 8\)"):
        compare(frame_of(*rows), by="num_workers")


def test_any_setting_is_an_axis() -> None:
    """A dotted key reaches into the shape; the smallest number is the baseline."""
    shapes = {rate: ENCDEC.presets["3.5m"].model_copy(update={"dropout": rate}) for rate in (0.1, 0.0)}
    rows = [
        make_trial(make_config(model=shape, model_name="custom"), step_ms=50.0 - 100 * rate, sweep_order=order)
        for order, (rate, shape) in enumerate(shapes.items())
    ]
    compared = compare(frame_of(*rows), by="model.dropout")
    assert by_value(compared, "model.dropout", "ratio") == {0.0: 1.0, 0.1: pytest.approx(1.25)}
    assert isinstance(shapes[0.0], EncDecShape)


def test_two_axes_are_one_table() -> None:
    """Each combination against the first of both."""
    rows = [
        make_trial(make_config(precision=precision, num_workers=workers), step_ms=ms, sweep_order=order)
        for order, (precision, workers, ms) in enumerate(
            [("fp32", 1, 40.0), ("fp32", 2, 50.0), ("bf16", 1, 20.0), ("bf16", 2, 25.0)]
        )
    ]
    compared = compare(frame_of(*rows), by="precision,num_workers")
    assert list(zip(compared["precision"], compared["num_workers"], compared["ratio"], strict=True)) == [
        ("fp32", 1, 1.0), ("fp32", 2, pytest.approx(1.6)), ("bf16", 1, 2.0), ("bf16", 2, pytest.approx(3.2)),
    ]  # fmt: skip
    other = compare(frame_of(*rows), by="precision,num_workers", baseline="bf16,2")
    assert other["baseline"].tolist() == [True, False, False, False]
    assert other["ratio"].iloc[0] == 1.0


def test_the_baseline_can_be_chosen() -> None:
    """By any value as it is printed."""
    compared = compare(frame_of(*two_clusters()), baseline="b")
    assert by_value(compared, "cluster", "ratio") == {"b": 1.0, "a": 0.5}


def test_words_keep_the_order_of_the_sweep() -> None:
    """fp32 is listed first, so it is the baseline although bf16 sorts before it."""
    rows = [make_trial(make_config(precision=name), sweep_order=i) for i, name in enumerate(("fp32", "bf16"))]
    assert compare(frame_of(*rows), by="precision")["precision"].tolist() == ["fp32", "bf16"]


def test_sources_pair_although_their_options_differ() -> None:
    """Shards have a number that the device source lacks; the data itself must be the same size."""
    rows = [
        make_trial(make_config(source=Source(name=name, num_samples=2000, num_shards=shards)), sweep_order=order)
        for order, (name, shards) in enumerate((("device", None), ("shards", 4)))
    ]
    assert compare(frame_of(*rows), by="source")["ratio"].tolist() == [1.0, 1.0]
    rows[1] = make_trial(make_config(source=Source(name="shards", num_samples=3000)), sweep_order=1)
    with pytest.raises(ComparisonError, match=r"source.num_samples \(2000 / 3000\)"):
        compare(frame_of(*rows), by="source")


def test_another_axis_is_compared_inside_each_cluster() -> None:
    """Rows of two clusters are never each other's repeats."""
    rows = [
        make_trial(make_config(num_workers=workers), step_ms=ms, cluster=name)
        for name, ms in (("a", 50.0), ("b", 25.0))
        for workers in (1, 2)
    ]
    compared = compare(frame_of(*rows), by="num_workers")
    assert compared["cluster"].tolist() == ["a", "a", "b", "b"]
    assert compared["repeats"].tolist() == [1, 1, 1, 1]
    assert compared["samples_per_s"].tolist() == [80.0, 160.0, 160.0, 320.0]


def test_what_tells_clusters_apart_is_compared_across_them() -> None:
    """The GPU model differs between clusters only."""
    rows = [
        make_trial(step_ms=ms, cluster=name, device_kind="cuda", gpu_model=gpu)
        for name, ms, gpu in (("a", 50.0, "A100"), ("b", 25.0, "H200"))
    ]
    assert by_value(compare(frame_of(*rows), by="gpu_model"), "gpu_model", "ratio") == {"A100": 1.0, "H200": 2.0}
    rows.append(make_trial(cluster="c", device_kind="cuda", gpu_model="H200"))
    with pytest.raises(ComparisonError, match=r"holds rows of b and c.*--by ...,cluster"):
        compare(frame_of(*rows), by="gpu_model")


def test_failed_rows_are_shown_without_figures() -> None:
    """Their outcome says why; the other side keeps its own figures, and there is no ratio without a baseline."""
    rows = [make_trial(cluster="a", outcome="oom_cuda"), make_trial(cluster="b")]
    compared = compare(frame_of(*rows))
    assert by_value(compared, "cluster", "outcome") == {"a": "oom_cuda", "b": "ok"}
    assert by_value(compared, "cluster", "samples_per_s") == {"a": None, "b": 160.0}
    assert by_value(compared, "cluster", "ratio") == {"a": None, "b": None}


def test_a_failed_repeat_is_counted_not_averaged() -> None:
    """Two of three repeats ended well: figures of two, three attempted."""
    rows = [make_trial(cluster="a", repeat=1), make_trial(cluster="a", repeat=2)]
    rows += [make_trial(cluster="a", repeat=3, outcome="timeout"), make_trial(cluster="b")]
    compared = compare(frame_of(*rows))
    assert by_value(compared, "cluster", "repeats")["a"] == 2
    assert by_value(compared, "cluster", "attempted")["a"] == 3
    assert by_value(compared, "cluster", "outcome")["a"] == "ok"


def test_invalid_rows_are_shown_with_their_reason_and_no_ratio() -> None:
    """Unless asked for."""
    rows = frame_of(
        make_trial(cluster="a"), make_trial(cluster="b", step_ms=25.0, valid=False, invalid_reasons="above_peak")
    )
    compared = compare(rows)
    assert by_value(compared, "cluster", "invalid_reasons")["b"] == "above_peak"
    assert by_value(compared, "cluster", "samples_per_s")["b"] == 320.0
    assert by_value(compared, "cluster", "ratio") == {"a": 1.0, "b": None}
    assert by_value(compare(rows, include_invalid=True), "cluster", "ratio") == {"a": 1.0, "b": 2.0}


def test_an_invalid_repeat_is_left_out_of_its_side() -> None:
    """A valid repeat speaks for the side alone."""
    rows = [make_trial(cluster="a"), make_trial(cluster="b", step_ms=25.0)]
    rows.append(make_trial(cluster="b", repeat=2, step_ms=1.0, valid=False, invalid_reasons="above_peak"))
    assert by_value(compare(frame_of(*rows)), "cluster", "ratio")["b"] == 2.0


def test_cpu_against_gpu_is_refused() -> None:
    """Whatever the axis."""
    rows = [make_trial(cluster="a"), make_trial(cluster="b", **GPU)]
    with pytest.raises(ComparisonError, match=r"CPU against GPU is no comparison: encdec 3.5m"):
        compare(frame_of(*rows))
    with pytest.raises(ComparisonError, match="CPU against GPU"):
        compare(frame_of(*rows), by="device_kind", include_invalid=True)


def test_quick_against_full_is_refused() -> None:
    """A first look must not pass for a measurement, unless one insists."""
    rows = frame_of(make_trial(cluster="a"), make_trial(make_config(quality="quick"), cluster="b", step_ms=25.0))
    with pytest.raises(ComparisonError, match=r"full against quick is no comparison.*--allow-quick"):
        compare(rows)
    assert by_value(compare(rows, allow_quick=True), "cluster", "ratio")["b"] == 2.0


def test_probes_never_count() -> None:
    """They only looked for the micro batch that fits: 1 and 2 are no values to compare 4 with."""
    sizes = [make_trial(make_config(micro_batch=size, quality="probe")) for size in (1, 2)]
    rows = frame_of(*sizes, make_trial(make_config(micro_batch=4)), make_trial(make_config(micro_batch=8)))
    assert set(compare(rows, by="micro_batch")["micro_batch"]) == {4, 8}


def test_a_full_run_supersedes_the_quick_look_before_it() -> None:
    """Quick rows of a work that was measured in full do not count, and do not stand in the way."""
    quick = make_trial(make_config(quality="quick", measure=Extent(steps=10)), cluster="b", step_ms=1.0)
    compared = compare(frame_of(*two_clusters(), quick))
    assert by_value(compared, "cluster", "ratio")["b"] == 2.0


def test_different_work_is_refused_with_what_differs() -> None:
    """The settings of the nearest two rows are named."""
    rows = [make_trial(cluster="a"), make_trial(make_config(precision="bf16", seed=7), cluster="b")]
    with pytest.raises(ComparisonError, match=r"precision \(fp32 / bf16\), seed \(0 / 7\)"):
        compare(frame_of(*rows))


def test_one_value_is_nothing_to_compare() -> None:
    """What does vary is said."""
    rows = [make_trial(make_config(precision=precision)) for precision in ("fp32", "bf16")]
    with pytest.raises(NothingVaries, match=r"same cluster .host-a.*what varies is precision: compare by=precision"):
        compare(frame_of(*rows))


def test_models_of_different_workloads_are_told_as_such() -> None:
    """A list of all their settings would hide the reason."""
    rows = [make_trial(make_config(workload=name, model_name=model)) for name, model in MODELS]
    with pytest.raises(ComparisonError, match=r"different workloads \(encdec 3.5m, matmul sq1024\)"):
        compare(frame_of(*rows), by="model")


def test_an_unknown_axis_is_answered_with_what_varies() -> None:
    """The batch that follows from the workers is no axis of its own."""
    rows = [make_trial(make_config(num_workers=n, seed=n)) for n in (1, 2)]
    with pytest.raises(UsageError, match=r"by=foo: no such axis; what varies is num_workers, seed$"):
        compare(frame_of(*rows), by="foo")


def test_the_smallest_number_is_the_baseline() -> None:
    """Although the sweep lists 2 workers first: batches of 4, 8 and 16 in the same time."""
    rows = [make_trial(make_config(num_workers=n), sweep_order=order) for order, n in enumerate((2, 1, 4))]
    compared = compare(frame_of(*rows), by="num_workers")
    assert list(zip(compared["num_workers"], compared["ratio"], strict=True)) == [(1, 1.0), (2, 2.0), (4, 4.0)]


def test_the_baseline_may_be_a_value() -> None:
    """The number 2 as well as its text, alone or one of two."""
    rows = [make_trial(make_config(num_workers=n)) for n in (1, 2)]
    for asked in (2, "2", [2], ("2",)):
        assert by_value(compare(frame_of(*rows), by="num_workers", baseline=asked), "num_workers", "ratio")[2] == 1.0
    assert compare(frame_of(*rows), by=["num_workers", "precision"], baseline=[2, "fp32"])["baseline"].sum() == 1


@pytest.mark.parametrize(
    ("warned", "repeats", "quotable"),
    [
        ("", 1, [None, True]), ("noisy_steps", 1, [None, False]), ("straggler;short_window", 1, [None, False]),
        ("straggler", 1, [None, True]), ("noisy_steps", 2, [None, True]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("noisy", ["a", "b"])
def test_a_ratio_of_a_noisy_side_is_not_quotable(
    noisy: str, warned: str, repeats: int, quotable: list[bool | None]
) -> None:
    """Whichever side it is; repeats give an interval, which says how noisy."""
    rows = [
        make_trial(cluster=name, repeat=repeat, step_ms=50.0 + repeat, warnings=warned if name == noisy else "")
        for name in "ab" for repeat in range(1, repeats + 1)
    ]  # fmt: skip
    assert list(by_value(compare(frame_of(*rows)), "cluster", "quotable").values()) == quotable


def test_quick_is_never_pooled_with_full() -> None:
    """Full alone counts, asked for or not: 160/s, not the mean with the quick 8000/s."""
    quick = make_trial(make_config(quality="quick", measure=Extent(steps=10)), cluster="a", step_ms=1.0)
    for allowed in (False, True):
        found = side_by_side(frame_of(*two_clusters(), quick), allow_quick=allowed)
        assert by_value(found.table, "cluster", "samples_per_s") == {"a": 160.0, "b": 320.0}
        assert (by_value(found.table, "cluster", "repeats"), found.superseded) == ({"a": 1, "b": 1}, 1)


def test_the_quality_told_is_that_of_the_figures() -> None:
    """The full attempt failed, so the quick one speaks; its ratio is not quotable."""
    rows = [make_trial(cluster="a", outcome="timeout"), make_trial(cluster="b")]
    rows.append(make_trial(make_config(quality="quick"), cluster="a", sweep_order=1))
    compared = compare(frame_of(*rows), allow_quick=True)
    assert by_value(compared, "cluster", "quality") == {"a": "quick", "b": "full"}
    assert by_value(compared, "cluster", "quotable") == {"a": None, "b": False}


def test_weak_scaling_is_found() -> None:
    """Batches of 4 and 16 on 1 and 4 workers; with a fixed global batch there is none."""
    weak = [make_trial(make_config(num_workers=n)) for n in (4, 1)]
    strong = [
        make_trial(make_config(num_workers=n, micro_batch=16 // n, batch_given="global_batch")) for n in (1, 4)
    ]
    assert side_by_side(frame_of(*weak), by="num_workers").weak_scaling == (1, 4, 4.0)
    assert side_by_side(frame_of(*strong), by="num_workers").weak_scaling is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame(), "no whole rows of raybench.load: without cluster, outcome, valid and"),
        ({"a": 1}, "takes rows of raybench.load or a folder of results, not dict"),
        (frame_of(make_trial()).head(0), "no rows to compare"),
        (frame_of(make_trial()).drop(columns="config"), "no whole rows of raybench.load: without config$"),
    ],
)
def test_what_holds_no_rows_is_told(given: Any, message: str) -> None:
    """In one line, where pandas would name a key."""
    with pytest.raises(UsageError, match=message):
        compare(given)


def test_a_folder_is_as_good_as_its_rows(tmp_path: Path) -> None:
    """`raybench.compare("results")`."""
    store(tmp_path, *two_clusters())
    for given in (tmp_path, str(tmp_path)):
        assert by_value(compare(given), "cluster", "ratio") == {"a": 1.0, "b": 2.0}


def test_words_have_one_type() -> None:
    """Whatever way a column came."""
    compared = compare(frame_of(*two_clusters(gpu_model=None)))
    words = ["work", "pair", "cluster", "outcome", "invalid_reasons", "warnings", "quality", "device_kind", "gpu_model"]
    assert {str(compared[name].dtype) for name in words} == {"string"}


def test_one_value_must_be_one_work() -> None:
    """Custom models share a name; averaging them would be wrong."""
    wide = ENCDEC.presets["3.5m"].model_copy(update={"d_model": 256})
    rows = [make_trial(make_config(model_name=name), sweep_order=0) for name in ("3.5m", "custom")]
    rows.append(make_trial(make_config(model_name="custom", model=wide), sweep_order=1))
    with pytest.raises(ComparisonError, match=r"model.d_model"):
        compare(frame_of(*rows), by="model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "precison"}, 'no such axis; did you mean "precision"'),
        ({"by": "cluster,cluster"}, "each axis once"),
        ({"by": ""}, "each axis once"),
        ({"baseline": "c"}, "baseline=c: no such cluster; there are a, b"),
        ({"by": "cluster,precision", "baseline": "a"}, "one value for each of cluster, precision"),
    ],
)
def test_a_wrong_question_is_told_in_one_line(options: dict[str, str], message: str) -> None:
    """What is wrong and what there is."""
    with pytest.raises(UsageError, match=message):
        compare(frame_of(*two_clusters()), **options)  # type: ignore[arg-type]


def test_rows_without_the_setting_are_left_out() -> None:
    """Rows that do not have the axis at all cannot be on any side of it."""
    rows = [*two_clusters(), make_trial(cluster="c", gpu_model=None)]
    frame = frame_of(*rows)
    frame.loc[frame["cluster"].ne("c"), ["device_kind", "gpu_model"]] = "cuda"
    frame.loc[frame["cluster"].eq("b"), "gpu_model"] = "H200"
    assert compare(frame, by="gpu_model")["cluster"].tolist() == ["b", "a"]


def test_a_comparison_needs_no_other_columns() -> None:
    """The command reads only these, so nothing else may be looked at."""
    frame = frame_of(*two_clusters())
    needed = ["trial_uid", "sweep", "cluster", "trial_id", "attempt", "started_at", "outcome", "valid"]
    few = frame[list(dict.fromkeys([*needed, *columns_for("cluster")]))]
    pd.testing.assert_frame_equal(compare(few), compare(frame))


def test_the_best_of_a_work_is_marked_and_so_is_a_tie() -> None:
    """ED-38: 25 ms beat 50; two of 25 ms tie; what failed has no mark; another work has its own best."""
    rows = [make_trial(step_ms=ms, cluster=name) for name, ms in (("a", 50.0), ("b", 25.0), ("c", 25.0))]
    rows += [make_trial(cluster="d", outcome="timeout")]
    rows += [make_trial(make_config(seed=1), step_ms=ms, cluster=name) for name, ms in (("a", 10.0), ("b", 20.0))]
    compared = compare(frame_of(*rows))
    first, second = (by_value(group, "cluster", "best") for _, group in compared.groupby("pair", sort=False))
    assert first == {"a": False, "b": True, "c": True, "d": None}
    assert second == {"a": True, "b": False}
