"""Fixed work: `scaling` refuses curves of unequal work, and epochs are whole steps or refused with both ways out."""

import pytest

from raybench.errors import SweepError
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes


def configs_of(text: str, *overrides: str) -> list[TrialConfig]:
    """The configs of a sweep file's text, in order."""
    return [trial.config for trial in expand(sweep_from_bytes(text.encode(), "s.yaml", overrides)).trials]


def refused(text: str) -> str:
    """The one line with which a sweep is refused."""
    with pytest.raises(SweepError) as error:
        configs_of(text)
    assert "\n" not in str(error.value)
    return str(error.value)


def sweep(scaling: str, base: str, axes: str = "num_workers: [1, 2, 4]", workload: str = "encdec") -> str:
    """A sweep over worker counts."""
    return f"name: s\nscaling: {scaling}\nbase: {{workload: {workload}, {base}}}\naxes: {{{axes}}}\n"


@pytest.mark.parametrize(("scaling", "base", "expected"), [
    ("strong", "micro_batch: 4, global_batch: 16", [(4, 4, 16), (4, 2, 16), (4, 1, 16)]),
    ("strong", "global_batch: 16", [(16, 1, 16), (8, 1, 16), (4, 1, 16)]),
    ("strong", "grad_accum: 2, global_batch: 16", [(8, 2, 16), (4, 2, 16), (2, 2, 16)]),
    ("weak", "micro_batch: 4", [(4, 1, 4), (4, 1, 8), (4, 1, 16)]),
    ("weak", "micro_batch: 4, grad_accum: 2", [(4, 2, 8), (4, 2, 16), (4, 2, 32)]),
])  # fmt: skip
def test_what_follows_from_which_batch_stays(scaling: str, base: str, expected: list[tuple[int, int, int]]) -> None:
    """On 1, 2 and 4 workers; the first is seed GS's protocol: accumulation 4, 2, 1 at a global batch of 16."""
    configs = configs_of(sweep(scaling, base))
    assert [(c.micro_batch, c.grad_accum, c.global_batch) for c in configs] == expected


def test_scaling_enters_no_key() -> None:
    """It is a promise about the sweep; the configs are those of the same sweep without it."""
    text = sweep("strong", "global_batch: 16")
    plain = text.replace("scaling: strong\n", "")
    assert [c.config_key() for c in configs_of(text)] == [c.config_key() for c in configs_of(plain)]


@pytest.mark.parametrize(("text", "what"), [
    (sweep("strong", "micro_batch: 4"),
     "scaling strong keeps the global batch: give global_batch, and micro_batch or grad_accum follows; "
     "encdec 3.5m s256 b4 fp32 device has 4 samples a step on 1 and 8 on 2"),
    (sweep("weak", "global_batch: 16"),
     "scaling weak keeps the batch of each worker: give micro_batch without global_batch; "
     "encdec 3.5m s256 b16 fp32 device has 16 samples a step of each worker on 1 and 8 on 2"),
    (sweep("weak", "micro_batch: 4, measure: {samples: 320}"),
     "scaling weak measures equal work of each worker; encdec 3.5m s256 b4 fp32 device measures samples: "
     "320 on 1 and 160 on 2"),
    (sweep("strong", "global_batch: 16, measure: {seconds: 3}"),
     "scaling compares equal work, and {seconds: ...} do not fix it: give measure in steps, samples, tokens or epochs"),
    (sweep("weak", "precision: fp32", workload="matmul"),
     "matmul splits one piece of work over the workers: that is strong scaling, never weak"),
    (sweep("strong", "global_batch: 16", "at: [{num_workers: 1, precision: fp32}, {num_workers: 2, precision: bf16}]"),
     "scaling may vary num_workers only: encdec 3.5m s256 b16 fp32 device ×1 differs from every config on another "
     "number of workers in precision (fp32 / bf16)"),
])  # fmt: skip
def test_unequal_work_is_refused_in_one_line(text: str, what: str) -> None:
    """At the line that asks for it: different batches, different totals, time instead of work, other settings."""
    assert refused(text) == f"s.yaml:2:10 scaling: {what}"


def test_total_work_that_is_told_in_samples_is_equal() -> None:
    """320 samples are 20 steps of 16 on any number of workers; split work is one whole by its nature."""
    configs = configs_of(sweep("strong", "global_batch: 16, measure: {samples: 320}"))
    assert [config.measure.steps for config in configs] == [20] * 3
    assert len(configs_of(sweep("strong", "precision: fp32", workload="matmul"))) == 3


def test_batch_sizes_may_be_an_axis_of_their_own() -> None:
    """Each is a curve: {4, 8} on one worker and {4, 8} on two; and one GPU count alone is no curve to refuse."""
    assert len(configs_of(sweep("weak", "seed: 0", "num_workers: [1, 2], micro_batch: [4, 8]"))) == 4
    assert len(configs_of(sweep("weak", "global_batch: 8", "num_workers: [2]"))) == 1


@pytest.mark.parametrize(("samples", "steps"), [
    (50_000, {1: 196, 2: 98, 4: 49, 8: 25}),     # CIFAR-100
    (10_000, {1: 40, 2: 20, 4: 10, 8: 5}),       # seed RS's synthetic images
])  # fmt: skip
def test_epochs_that_leave_a_rest_are_refused_with_both_ways_out(samples: int, steps: dict[int, int]) -> None:
    """Seed RS's steps per epoch at batch 256 a rank round up: they go round to the first samples again."""
    for workers, rounded_up in steps.items():
        text = f"""
name: s
base: {{workload: encdec, micro_batch: 256, num_workers: {workers}, source: {{name: device, num_samples: {samples}}},
  measure: {{epochs: 1}}}}
"""
        down = rounded_up - 1
        assert refused(text).endswith(
            f"{samples} samples are not a whole number of steps of {256 * workers}; "
            f"measure: {down} leaves the rest out, measure: {rounded_up} goes round"
        )


def test_epochs_of_seed_gs() -> None:
    """56976 / 16 = 3561 steps exactly, on 1, 2 and 4 workers; x 16 x 512 = 29 171 712 tokens of seq_len 512."""
    base = "micro_batch: 4, global_batch: 16, source: {name: device, num_samples: 56976}, measure: {epochs: 1}"
    configs = configs_of(sweep("strong", base))
    assert [c.measure.steps for c in configs] == [3561] * 3
    assert 3561 * 16 * 512 == 29_171_712
