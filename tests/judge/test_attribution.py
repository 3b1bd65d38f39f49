"""Sources against the null source and against their own ceilings, every figure by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from raybench.judge.compare import columns_for, compare, side_by_side
from raybench.record.trial import Trial
from raybench.report.tables import compare_table
from raybench.results.load import load
from raybench.spec.config import Source
from tests.factories import make_config, make_trial
from tests.frames import frame_of, store


def trial(name: str, step_ms: float, *, group: str | None = "g1", phase: str = "train", **changes: Any) -> Trial:
    """8 samples a step of `step_ms` over 20 steps from a source of that name."""
    config = make_config(
        phase=phase, source=Source(name=name, num_samples=2000), precision=changes.pop("precision", "fp32")
    )
    order = {"device": 0, "memory": 1, "shards": 2}[name]
    if phase == "load":
        changes |= {"data_stall_fraction": None, "model_flops_per_step": None, "parameters": None}
    return make_trial(config, step_ms=step_ms, group_uid=group, sweep_order=order, **changes)


def by_source(*trials: Trial) -> dict[str, dict[str, Any]]:
    """The comparison's rows by source."""
    rows = compare(frame_of(*trials), by="source").to_dict("records")
    return {row["source"]: {name: None if pd.isna(value) else value for name, value in row.items()} for row in rows}


def test_one_table_answers_what_is_lost_to_which_source_and_why() -> None:
    """Steps of 50 ms with the null source, 100 ms with shards: AU 0.5. Shards alone take 90 ms a step: 8 / 0.09 = 88.9
    samples a second, of which 80 are 0.9. Two ranks' threads computed 0.4 s of their 2 x 2 s: they waited to read."""
    found = by_source(
        trial("device", 50.0), trial("shards", 100.0, data_stall_fraction=0.45, loader_cpu_s=0.4),
        trial("shards", 90.0, phase="load"),
    )  # fmt: skip
    assert found["shards"]["au"] == pytest.approx(0.5)
    assert found["shards"]["ceiling_samples_per_s"] == pytest.approx(8 / 0.09)
    assert found["shards"]["data_stall_fraction"] == pytest.approx(0.45)
    assert found["shards"]["limit"] == "read"
    nothing = ("au", "au_low", "limit", "ceiling_samples_per_s")
    assert {name: found["device"][name] for name in nothing} == dict.fromkeys(nothing)
    assert found.keys() == {"device", "shards"}      # a source alone is no side of its own


def test_within_one_trial_each_the_interval_is_that_of_their_steps() -> None:
    """Rates of 98 to 102 % on both sides: on logarithms ln(1.02 / 0.98) / 2 = 0.02 each, 0.02829 together."""
    found = by_source(trial("device", 50.0), trial("shards", 100.0))["shards"]
    assert found["au_low"] == pytest.approx(0.5 * 0.97211, rel=1e-4)
    assert found["au_high"] == pytest.approx(0.5 / 0.97211, rel=1e-4)


def test_repeats_are_paired_within_their_groups() -> None:
    """A machine that is twice as slow in the second repeat: 50 / 100 and 100 / 200 are both 0.5, with no spread at all,
    although the steps differ by a factor of two."""
    found = by_source(*(
        trial(name, step_ms * slow, group=f"g{slow}", repeat=slow)
        for slow in (1, 2)
        for name, step_ms in (("device", 50.0), ("shards", 100.0))
    ))["shards"]  # fmt: skip
    assert (found["au"], found["au_low"], found["au_high"]) == pytest.approx((0.5, 0.5, 0.5))


def test_repeats_in_one_group_are_paired_too() -> None:
    """`isolation: warm` keeps the group; what drifted from one repeat to the next still cancels."""
    found = by_source(*(
        trial(name, step_ms * slow, repeat=slow)
        for slow in (1, 2)
        for name, step_ms in (("device", 50.0), ("shards", 100.0))
    ))["shards"]  # fmt: skip
    assert (found["au"], found["au_low"], found["au_high"]) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("group", ["g2", None])
def test_a_null_source_of_another_group_says_nothing(group: str | None) -> None:
    """Other processes, perhaps another day; rows of before there were groups have none."""
    found = by_source(trial("device", 50.0, group=group), trial("shards", 100.0, group=group and "g1"))["shards"]
    assert (found["au"], found["limit"]) == (None, None)


def test_a_ceiling_is_that_of_the_source_whatever_the_model_computes_in() -> None:
    """The source alone ran in fp32 only; in bf16 the same batches are loaded. Another cluster's is not this one's."""
    rows = [trial(name, 50.0, precision="bf16") for name in ("device", "shards")]
    found = by_source(*rows, trial("shards", 20.0, phase="load"))
    assert found["shards"]["ceiling_samples_per_s"] == pytest.approx(400.0)
    assert found["device"]["ceiling_samples_per_s"] is None
    elsewhere = by_source(*rows, trial("shards", 20.0, phase="load", cluster="b"))
    assert elsewhere["shards"]["ceiling_samples_per_s"] is None


def test_sources_alone_are_compared_like_anything_else() -> None:
    """Where nothing but ceilings was measured, they are the sides."""
    found = by_source(trial("device", 10.0, phase="load"), trial("shards", 40.0, phase="load"))
    assert found["shards"]["ratio"] == pytest.approx(0.25)
    assert found["shards"]["au"] is None


def test_along_other_axes_there_is_no_attribution() -> None:
    """Nor are rows of a source alone set apart: they are another phase."""
    rows = frame_of(trial("device", 50.0), trial("device", 60.0, precision="bf16"))
    assert "au" not in compare(rows, by="precision")


def test_the_table_of_a_comparison_along_sources(tmp_path) -> None:
    """Read from files by just the columns it needs; every column that answers is there at 80 characters."""
    shards = trial("shards", 100.0, data_stall_fraction=0.5)
    store(tmp_path, trial("device", 50.0), shards, trial("shards", 90.0, phase="load"))
    compared = side_by_side(load(tmp_path, columns=columns_for("source")), by="source").table
    headers = [str(column.header) for column in compare_table(compared, 80).columns]
    assert headers[:7] == ["work", "source", "ceiling/s", "samples/s", "stall %", "AU", "limit"]
