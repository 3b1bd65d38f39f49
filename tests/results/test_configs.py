"""What readers ask of a stored config."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.results.configs import (
    NOT_WORK,
    config_label,
    derived_batch_number,
    distinct_labels,
    flattened,
    parsed,
    planned_labels,
    value_at,
)
from raybench.spec.config import Extent, Source
from raybench.spec.expand import expand
from raybench.spec.families.encdec import ENCDEC
from raybench.spec.families.matmul import MATMUL
from raybench.spec.reader import sweep_from_bytes
from tests.factories import make_config

MATMUL_ONLY: dict[str, Any] = {
    "workload": "matmul", "model_name": "sq1024", "model": MATMUL.presets["sq1024"], "seq_len": None,
    "vocab_size": None, "micro_batch": None, "grad_accum": None, "global_batch": None, "batch_given": None,
    "phase": None, "strategy": "split", "optimizer": None, "source": None,
}  # fmt: skip
CHANGES: list[dict[str, Any]] = [
    {}, {"precision": "bf16", "num_workers": 8}, {"grad_accum": 4}, {"phase": "forward"}, {"compile": "default"},
    {"model_name": "custom", "model": ENCDEC.presets["3.5m"].model_copy(update={"d_model": 256})},
    {"strategy": "none", "num_workers": 1}, {"source": Source(name="shards")}, MATMUL_ONLY,
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_a_stored_config_has_the_label_it_ran_under(changes: dict[str, Any]) -> None:
    """The reader's label and the planner's are one."""
    config = make_config(**changes)
    assert config_label(parsed(config.canonical())) == config.label()


def test_a_label_leaves_out_what_is_compared() -> None:
    """Without micro_batch the batch is told by its other name."""
    config = parsed(make_config(num_workers=2).canonical())
    assert config_label(config, frozenset({"num_workers"})) == "encdec 3.5m s64 b4 fp32 device"
    assert config_label(config, frozenset({"num_workers", "micro_batch"})) == "encdec 3.5m s64 g8 fp32 device"


def test_rows_that_share_a_label_are_told_apart_by_what_differs() -> None:
    """Seeds differ, so they are named; the length of the measurement does not make another work."""
    configs = [parsed(make_config(seed=seed, timeout_s=10.0 + seed).canonical()) for seed in (0, 1)]
    configs.append(parsed(make_config(precision="bf16").canonical()))
    assert distinct_labels(configs, [frozenset()] * 3, NOT_WORK) == [
        "encdec 3.5m s64 b4 fp32 device ×2 seed=0",
        "encdec 3.5m s64 b4 fp32 device ×2 seed=1",
        "encdec 3.5m s64 b4 bf16 device ×2",
    ]


def test_lengths_are_told_by_their_own_names() -> None:
    """Steps of what, and seconds as such; never `steps=15 steps=3`."""
    lengths = [(3, Extent(steps=15)), (5, Extent(steps=30)), (5, Extent(seconds=10.0))]
    configs = [parsed(make_config(warmup=Extent(steps=w), measure=m).canonical()) for w, m in lengths]
    labels = distinct_labels(configs, [frozenset()] * 3, frozenset())
    told = [label.removeprefix("encdec 3.5m s64 b4 fp32 device ×2 ") for label in labels]
    assert [sorted(text.split()) for text in told] == [
        ["measure=15", "warmup=3"], ["measure=30", "warmup=5"], ["measure=10.0s", "warmup=5"],
    ]  # fmt: skip


def test_a_custom_model_is_told_by_what_it_changes() -> None:
    """Less what is compared along; a row that holds no shape is only custom."""
    shape = ENCDEC.presets["3.5m"].model_copy(update={"d_model": 256, "dropout": 0.5})
    config = parsed(make_config(model_name="custom", model=shape).canonical())
    assert config_label(config) == "encdec custom d_model=256 dropout=0.5 s64 b4 fp32 device ×2"
    assert config_label(config, frozenset({"model.d_model"})) == "encdec custom dropout=0.5 s64 b4 fp32 device ×2"
    assert config_label({**config, "model": "large"}) == "encdec custom s64 b4 fp32 device ×2"


@pytest.mark.parametrize(
    ("given", "derived"),
    [
        ("micro_batch", "global_batch"), ("micro_batch+grad_accum", "global_batch"), ("global_batch", "micro_batch"),
        ("grad_accum+global_batch", "micro_batch"), ("micro_batch+global_batch", "grad_accum"),
        ("micro_batch+grad_accum+global_batch", None), (None, None),
    ],
)  # fmt: skip
def test_which_batch_number_followed_from_the_others(given: str | None, derived: str | None) -> None:
    """Of three numbers with workers known, the one not given follows; all three given leave nothing to follow."""
    assert derived_batch_number(given) == derived


def test_settings_are_reached_by_dotted_paths() -> None:
    """Inside mappings, and None where there is nothing."""
    config = {"model": {"dropout": 0.1}, "seed": 3}
    assert list(flattened(config)) == [("model.dropout", 0.1), ("seed", 3)]
    assert (value_at(config, "model.dropout"), value_at(config, "model.depth")) == (0.1, None)
    assert value_at(config, "seed.x") is None


def test_a_config_that_is_no_json_has_no_settings() -> None:
    """A file may have been written by anybody."""
    assert (parsed("{"), parsed("[1]")) == ({}, {})


def test_planned_configs_are_told_apart() -> None:
    """Three seeds of one config would look alike; a label that is alone stays as it is."""
    base = b"base: {workload: matmul, model: sq1024}\n"
    sweep = b"name: s\n" + base + b"axes: {seed: [0, 1]}\ninclude: [{model: sq4096}]\nrepeats: 2\n"
    trials = expand(sweep_from_bytes(sweep, "s.yaml"), auto_workers=(1,)).trials
    assert list(planned_labels(trials).values()) == [
        "matmul sq1024 fp32 ×1 seed=0", "matmul sq1024 fp32 ×1 seed=1", "matmul sq4096 fp32 ×1",
    ]  # fmt: skip
