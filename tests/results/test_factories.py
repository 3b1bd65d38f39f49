"""Made-up rows must obey what they stand in for, or tests built on them prove nothing."""

from __future__ import annotations

import pytest

from tests.factories import make_config, make_steps, make_trial


def test_figures_of_a_made_up_row_agree():
    """2 ranks x micro batch 4 every 50 ms are 160 samples/s, and the ledger's parts sum to the wall time."""
    trial = make_trial()
    assert trial.samples_per_s == pytest.approx(160.0)
    assert trial.tokens_per_s == pytest.approx(160.0 * 63)
    parts = (
        trial.placement_s + trial.worker_start_s + trial.prepare_s + trial.build_s + trial.warmup_s
        + trial.measured_s + trial.teardown_s + trial.handoff_s
    )  # fmt: skip
    assert trial.wall_s == pytest.approx(parts)


def test_a_failed_row_has_no_figure():
    """What was measured is None unless the attempt ended `ok`."""
    trial = make_trial(outcome="oom_host")
    assert (trial.valid, trial.samples_per_s, trial.step_ms_p50, trial.parameters) == (False, None, None, None)
    assert trial.error_text


def test_asked_columns_follow_the_config():
    """A row made of a config says what that config asked, and carries its keys."""
    config = make_config(precision="bf16", num_workers=1)
    trial = make_trial(config)
    assert (trial.precision, trial.num_workers, trial.global_batch) == ("bf16", 1, 4)
    assert trial.trial_id == f"{config.config_key()}-01"


def test_steps_cover_every_rank_and_step():
    """2 ranks x (5 + 20) steps."""
    steps = make_steps(make_trial())
    assert len(steps) == 50
    assert sum(step.is_warmup for step in steps) == 10
