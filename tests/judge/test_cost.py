"""Costs and energy worked by hand, by GPU and never by position (ED-39, ED-X14)."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

from raybench.judge.compare import compare
from raybench.judge.cost import MissingPriceWarning
from raybench.judge.scaling import scaling
from raybench.record.trial import Trial
from raybench.spec.config import Source
from tests.factories import make_config, make_trial
from tests.frames import frame_of

PRICES = {"gpu": {"NVIDIA H100 80GB HBM3": 3.0, "NVIDIA H200": 5.5}}


def run(cluster: str, gpu: str | None, gpus: int, samples_per_s: float, **columns: Any) -> Trial:
    """The default data set of the seed program, 3.75 million samples, on so many GPUs at that rate."""
    config = make_config(num_workers=gpus, source=Source(num_samples=3_750_000))
    kind = {"device_kind": "cpu" if gpu is None else "cuda", "gpu_model": gpu}
    return make_trial(config, step_ms=1e3 * 4 * gpus / samples_per_s, cluster=cluster, **{**kind, **columns})


def h100(**columns: Any) -> Trial:
    """8 H100: 4 x 8 samples in 2.56 ms are 12 500/s, so that an epoch takes 300 s."""
    return run("b-site", "NVIDIA H100 80GB HBM3", 8, 12_500.0, **columns)


def h200(**columns: Any) -> Trial:
    """4 H200 at 10 000/s: an epoch takes 375 s."""
    return run("a-site", "NVIDIA H200", 4, 10_000.0, **columns)


def costs(table: pd.DataFrame, gpu: str) -> dict[str, Any]:
    """The costs of the row of a GPU, rounded to what a cent needs."""
    (row,) = table[table["gpu_model"].str.contains(gpu)].to_dict("records")
    return {name: None if pd.isna(row[name]) else round(row[name], 6) for name in row if "usd" in str(name)}


def test_costs_by_hand() -> None:
    """8 x 3.00 = 24 $/h; 300 s of it 2.00 $ an epoch; the run of 90 s 0.60 $; 1e6 / 12 500 = 80 s 0.5333 $."""
    of = compare(frame_of(h100(wall_s=90.0), run("c", "NVIDIA H100 80GB HBM3", 8, 1.0)), prices=PRICES)
    assert costs(of[of["cluster"].eq("b-site")], "H100") == {
        "usd_per_hour": 24.0, "usd_per_epoch": 2.0, "usd_per_run": 0.6, "usd_per_million_samples": 0.533333,
        "usd_per_million_tokens": round(0.533333333 / 63, 6), "samples_per_usd": 1_875_000.0,
        "tokens_per_usd": 63 * 1_875_000.0,
    }  # fmt: skip


@pytest.mark.parametrize("order", [(h100, h200), (h200, h100)])
def test_costs_go_by_gpu_not_by_position(order: Any) -> None:
    """ED-39: 24 $/h and 2.00 $ an epoch for the H100s, 4 x 5.50 = 22 $/h and 2.291667 for the H200s, as they come."""
    trials = [make() for make in order]
    same_work = [run(t.cluster, t.gpu_model, 4, t.samples_per_s or 0.0) for t in trials]    # 4 GPUs each, to be paired
    of = compare(frame_of(*same_work), prices=PRICES)
    assert costs(of, "H100")["usd_per_hour"] == 12.0
    assert costs(of, "H100")["usd_per_epoch"] == 1.0
    assert costs(of, "H200")["usd_per_hour"] == 22.0
    assert costs(of, "H200")["usd_per_epoch"] == 2.291667


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_relative_throughput_goes_by_gpu_not_by_position(order: tuple[int, ...]) -> None:
    """ED-38: the first file of a list was 1.00x; here the baseline is the one that was named, in whatever order."""
    trials = [
        run("site", gpu, 4, rate)
        for gpu, rate in (("NVIDIA H100 80GB HBM3", 8_000.0), ("NVIDIA H200", 10_000.0), ("NVIDIA L4", 1_000.0))
    ]
    of = compare(frame_of(*(trials[index] for index in order)), by="gpu_model", baseline="NVIDIA H200")
    ratios = {row["gpu_model"]: round(row["ratio"], 3) for row in of.to_dict("records")}
    assert ratios == {"NVIDIA H100 80GB HBM3": 0.8, "NVIDIA H200": 1.0, "NVIDIA L4": 0.1}


def test_a_missing_price_is_blank_and_told() -> None:
    """ED-X14: one price too few dropped the whole section without a word."""
    rows = [run("a", "NVIDIA H200", 4, 1e4), run("b", "NVIDIA L4", 4, 1e3)]
    with pytest.warns(MissingPriceWarning, match="no price for GPU NVIDIA L4: its cost is blank"):
        of = compare(frame_of(*rows), prices=PRICES)
    assert costs(of, "H200")["usd_per_hour"] == 22.0
    assert set(costs(of, "L4").values()) == {None}
    with pytest.warns(MissingPriceWarning, match=r"no price for cluster a \(no GPU\), cluster b \(no GPU\)"):
        compare(frame_of(run("a", None, 2, 1e3), run("b", None, 2, 1e3)), prices=PRICES)


def test_a_cluster_s_price_is_for_all_of_it() -> None:
    """12 $/h whether 4 GPUs are used or none, and it wins over the GPUs' price; no warning then."""
    prices = {**PRICES, "cluster": {"a": 12.0, "b": 12.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of = compare(frame_of(run("a", "NVIDIA H200", 4, 1e4), run("b", "NVIDIA L4", 4, 1e3)), prices=prices)
    assert of["usd_per_hour"].to_list() == [12.0, 12.0]


def test_a_mixed_group_costs_the_sum_of_its_gpus() -> None:
    """A name a rank: 2 x 3.00 + 2 x 5.50 = 17 $/h. Such rows are invalid, so they are asked for."""
    mixed = ";".join(["NVIDIA H100 80GB HBM3", "NVIDIA H200"] * 2)
    rows = [run("a", mixed, 4, 1e4, valid=False, invalid_reasons="mixed_gpus"), run("b", "NVIDIA H200", 4, 1e4)]
    of = compare(frame_of(*rows), prices=PRICES, include_invalid=True)
    assert of["usd_per_hour"].to_list() == [17.0, 22.0]


def test_what_failed_costs_nothing_that_is_known() -> None:
    """No figures, no cost, no warning about its price."""
    rows = [run("a", "NVIDIA H200", 4, 1e4), run("b", "NVIDIA L4", 4, 1e3, outcome="oom_cuda")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of = compare(frame_of(*rows, run("c", "NVIDIA H200", 4, 1e4)), prices=PRICES)
    assert of.set_index("cluster")["usd_per_hour"].isna().to_dict() == {"a": False, "b": True, "c": False}


def test_repeats_cost_their_mean() -> None:
    """Runs of 60 and 120 s are 90 s at 22 $/h: 0.55 $ a run."""
    rows = [run("a", "NVIDIA H200", 4, 1e4, repeat=r, wall_s=s) for r, s in ((1, 60.0), (2, 120.0))]
    of = compare(frame_of(*rows, run("b", "NVIDIA H200", 4, 1e4)), prices=PRICES)
    assert of["usd_per_run"].to_list()[0] == pytest.approx(0.55)


def test_scaling_has_costs_too() -> None:
    """4 GPUs at 3.41 times the throughput: a sample costs 4 / 3.41 as much, and the hour 4 times."""
    rows = [run("a", "NVIDIA H200", n, rate) for n, rate in ((1, 1000.0), (4, 3410.0))]
    of = scaling(frame_of(*rows), prices=PRICES)
    assert of["usd_per_hour"].to_list() == [5.5, 22.0]
    dearer = of["usd_per_million_samples"][1] / of["usd_per_million_samples"][0]
    assert dearer == pytest.approx(4 / 3.41)
    assert "usd_per_hour" not in scaling(frame_of(*rows))


def test_energy_per_sample_and_token() -> None:
    """20 steps of 8 samples and 504 tokens: 3 200 J are 20 J a sample, 0.3175 J a token, 3.15 tokens a J."""
    rows = [make_trial(cluster="a", energy_j=3200.0), make_trial(cluster="b")]
    of = compare(frame_of(*rows)).set_index("cluster")
    assert of.loc["a", "j_per_sample"] == 20.0
    assert of.loc["a", "j_per_token"] == pytest.approx(3200 / 10080)
    assert of.loc["a", "tokens_per_j"] == pytest.approx(3.15)
    assert of.loc["b", ["j_per_sample", "j_per_token", "tokens_per_j"]].isna().all()


def test_energy_of_repeats_is_of_all_of_them() -> None:
    """3 200 and 6 400 J for 320 samples are 30 J each; one repeat that was not metered leaves it unknown."""
    rows = [make_trial(cluster="a", repeat=r, energy_j=j) for r, j in ((1, 3200.0), (2, 6400.0))]
    rows += [make_trial(cluster="b", repeat=r, energy_j=j) for r, j in ((1, 3200.0), (2, None))]
    of = compare(frame_of(*rows)).set_index("cluster")
    assert of.loc["a", "j_per_sample"] == 30.0
    assert pd.isna(of.loc["b", "j_per_sample"])
