"""Sweeps that depend on results, as far as they are known beforehand: stages and `micro_batch: auto`."""

import pytest

from raybench.errors import SweepError, UsageError
from raybench.report.plan_text import plan_text
from raybench.spec.expand import expand, expand_stage
from raybench.spec.plan import plan
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.sweep import SweepSpec
from raybench.workloads.describe import planned_row

STAGES = """
name: s
maximize: tokens_per_s
base: {workload: encdec, seq_len: 64}
stages:
  - axes: {micro_batch: [4, 8]}
  - {measure: 20, axes: {precision: [fp32, bf16], model.dropout: [0.0, 0.1]}}
exclude: [{precision: bf16, model.dropout: 0.1}]
"""
AUTO = "name: s\nbase: {workload: encdec, micro_batch: auto, max_micro_batch: 100}\n"


def spec_of(text: str, *overrides: str) -> SweepSpec:
    """The sweep in a text."""
    return sweep_from_bytes(text.encode(), "s.yaml", overrides)


def mistakes_of(text: str, *overrides: str) -> list[str]:
    """What is wrong with a sweep, a line a mistake."""
    with pytest.raises(SweepError) as error:
        expand(spec_of(text, *overrides))
    return str(error.value).splitlines()


def test_a_plan_of_stages_is_its_first_and_the_most_of_the_others() -> None:
    """2 configs, then at most 2 x 2; the exclusion of the second stage is no idle one."""
    planned = plan(spec_of(STAGES))
    assert [trial.config.micro_batch for trial in planned.trials] == [4, 8]
    assert (planned.later_stages, planned.maximize, planned.warnings) == ((4,), "tokens_per_s", ())
    told = "\n".join(line.plain for line in plan_text(planned, None))
    assert "stage 1 of 2; then at most 4 more: each stage goes on from the best so far by tokens_per_s" in told


def test_a_later_stage_takes_over_what_was_chosen() -> None:
    """Micro batch 8 of the first; its own settings and axes are stronger; the exclusion leaves 3 of 4."""
    spec = spec_of(STAGES)
    best = expand(spec).trials[1]
    trials = expand_stage(spec, 1, best.choice)
    assert {(c.micro_batch, c.measure.steps) for c in (trial.config for trial in trials)} == {(8, 20)}
    assert len(trials) == 3
    again = "workload: encdec, seq_len: 64, micro_batch: 8, measure: 20, precision: bf16, model.dropout: 0"
    (plain,) = expand(spec_of(f"name: s\nbase: {{{again}}}\n")).trials
    assert plain.trial_id in {trial.trial_id for trial in trials}


@pytest.mark.parametrize(("text", "mistake"), [
    (STAGES.replace("name: s", "name: s\naxes: {seed: [0, 1]}"),
     "s.yaml:3:1 axes: cannot stand beside stages: put the axes in them"),
    (STAGES.replace("[fp32, bf16]", "[fp32, bf61]"),
     "s.yaml:7:44 stages[1].axes.precision[1]: must be one of fp32"),
    (STAGES.replace("[4, 8]", "[4, 8], num_workers: [1, 3]").replace("20,", "20, global_batch: 8,"),
     "s.yaml:6:26 stages[0].axes.micro_batch[0]: global_batch 8 does not divide by micro_batch 4 x num_workers 3"),
    (STAGES.replace("axes: {micro_batch: [4, 8]}", "seed: 1"),
     "s.yaml:6:5 stages[0].axes: is missing: what should the stage try?"),
    (STAGES.replace("measure: 20", "workload: matmul"),
     "s.yaml:7:16 stages[1].workload: belongs under base: stages share it"),
    ("name: s\nmaximize: tokens_per_s\nbase: {workload: encdec}",
     "s.yaml:2:1 maximize: is for stages, and there are none"),
    ("name: s\nmaximize: tokens_per_s\nbase: {workload: matmul}\nstages: [{axes: {precision: [fp32]}}]",
     "s.yaml:2:11 maximize: matmul counts no tokens; give samples_per_s"),
])  # fmt: skip
def test_mistakes_of_every_stage_are_told_before_the_first_runs(text: str, mistake: str) -> None:
    """Also what only shows when settings of two stages meet."""
    found = mistakes_of(text)
    assert any(line.startswith(mistake) for line in found), found


def test_overrides_reach_into_stages() -> None:
    """A value for all replaces the axis, a list replaces it where it is; one of a new key joins the first stage."""
    fixed = spec_of(STAGES, "micro_batch=2", "measure=30")
    (first,) = expand(fixed).trials
    assert (first.config.micro_batch, first.config.measure.steps) == (2, 30)
    assert {trial.config.measure.steps for trial in expand_stage(fixed, 1, first.choice)} == {30}
    listed = spec_of(STAGES, "precision=[bf16]", "seed=[1,2,3]")
    assert [trial.config.seed for trial in expand(listed).trials] == [1, 2, 3] * 2
    assert {t.config.precision for t in expand_stage(listed, 1, ())} == {"bf16"}


def test_trials_that_depend_on_results_cannot_be_picked() -> None:
    """A stage without a part of its trials would choose another best."""
    with pytest.raises(UsageError, match="--only picks trials that are known beforehand"):
        expand(spec_of(STAGES), only="micro_batch=4")


def test_an_open_micro_batch_is_a_ladder_of_powers_of_two() -> None:
    """1 to 64 below the maximum of 100; what depends on it is not known, the parameters are."""
    (trial,) = expand(spec_of(AUTO)).trials
    assert trial.ladder is not None
    assert [rung.micro_batch for rung in trial.ladder.rungs] == [1, 2, 4, 8, 16, 32, 64]
    assert (trial.config.micro_batch, trial.config.global_batch, trial.config.grad_accum) == (None, None, 1)
    assert trial.ladder.memory_share == 0.9
    row = planned_row(trial)
    assert (row["label"], row["parameters"]) == ("encdec 3.5m s256 fp32 device ×1 b=auto", 3_527_168)
    assert (row["memory_bytes"], row["model_flops_per_step"]) == (None, None)
    assert plan(spec_of(AUTO), only="micro_batch=auto").trials == (trial,)


def test_rungs_that_do_not_divide_or_are_excluded_are_left_out() -> None:
    """A global batch of 24 on 2 workers leaves 1, 2, 4; the exclusion takes 2, and is no idle one."""
    text = AUTO.replace("100", "100, global_batch: 24, num_workers: 2") + "exclude: [{micro_batch: 2}]\n"
    expansion = expand(spec_of(text))
    (trial,) = expansion.trials
    assert trial.ladder is not None
    assert [(rung.micro_batch, rung.grad_accum) for rung in trial.ladder.rungs] == [(1, 12), (4, 3)]
    assert (trial.config.global_batch, expansion.warnings) == (24, ())


def test_auto_beside_sizes_and_by_override() -> None:
    """It may be one value of an axis, or come from the command line."""
    axes = "axes: {micro_batch: [auto, 8], precision: [fp32, bf16]}"
    beside = expand(spec_of(f"name: s\nbase: {{workload: encdec}}\n{axes}\n")).trials
    assert [trial.ladder is not None for trial in beside] == [True, True, False, False]
    assert len({trial.trial_id for trial in beside}) == 4
    (overridden,) = expand(spec_of("name: s\nbase: {workload: encdec}", "micro_batch=auto")).trials
    assert overridden.ladder is not None


@pytest.mark.parametrize(("text", "mistake"), [
    (AUTO.replace("encdec", "matmul"), "s.yaml:2:40 base.micro_batch: matmul has no micro_batch"),
    (AUTO.replace("100", "0"), "s.yaml:2:63 base.max_micro_batch: must be at least 1, not 0"),
    (AUTO.replace("max_micro_batch: 100", "memory_share: 2"),
     "s.yaml:2:59 base.memory_share: must be at most 1, not 2"),
    (AUTO.replace("name: s", "name: s\nscaling: weak"),
     "s.yaml:2:10 scaling: micro_batch: auto may find another size on each number of workers: give the size"),
    (AUTO.replace("100", "100, measure: {samples: 7}, grad_accum: 2"),
     "s.yaml:3:1 base.measure: 7 samples are not a whole number of steps of 2; "
     "measure: 3 leaves the rest out, measure: 4 goes round"),
])  # fmt: skip
def test_mistakes_around_auto(text: str, mistake: str) -> None:
    """What is wrong with the smallest size is wrong with all."""
    found = mistakes_of(text)
    assert any(line.partition(" ")[2] == mistake.partition(" ")[2] for line in found), found


def test_the_shipped_search_has_at_most_twelve_configs() -> None:
    """4 micro batches, 2 attention kernels, 3 compile modes x 2 parameter types: 4 + 2 + 6."""
    planned = plan("fastest_gpt2")
    assert (planned.num_configs, planned.later_stages) == (4, (2, 6))
    assert {trial.config.seq_len for trial in planned.trials} == {1024}
