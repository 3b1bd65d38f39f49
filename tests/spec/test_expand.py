"""From settings to trials: what is multiplied, inherited, dropped, collapsed, and in which order it runs."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.errors import SweepError, UsageError
from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from raybench.spec.expand import expand
from raybench.spec.plan import plan
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.settings import SETTINGS
from raybench.spec.trial import PlannedTrial


def trials_of(text: str, *overrides: str, **options: Any) -> tuple[PlannedTrial, ...]:
    """The trials of a sweep file's text."""
    return expand(sweep_from_bytes(text.encode(), "s.yaml", overrides), **options).trials


def configs_of(text: str, *overrides: str, **options: Any) -> list[TrialConfig]:
    """The configs of a sweep file's text, in order."""
    return [trial.config for trial in trials_of(text, *overrides, **options)]


def one(base: str) -> TrialConfig:
    """The config of a sweep of one encdec point."""
    (config,) = configs_of(f"name: s\nbase: {{workload: encdec, {base}}}\n")
    return config


def test_the_quick_sweep() -> None:
    """2 workers x 2 precisions x 3 sources of encdec, and 2 x 2 of matmul: 16 trials of 5 + 20 steps."""
    quick = plan("quick")
    configs = [trial.config for trial in quick.trials]
    encdec = [config for config in configs if config.workload == "encdec"]
    matmul = [config for config in configs if config.workload == "matmul"]
    assert (len(encdec), len(matmul), quick.warnings) == (12, 4, ())
    assert {(c.model_name, c.seq_len, c.micro_batch, c.global_batch) for c in encdec} == {
        ("3.5m", 64, 4, 4), ("3.5m", 64, 4, 8),
    }  # fmt: skip
    assert {(c.source.name, c.source.num_samples) for c in encdec if c.source} == {
        ("device", 2000), ("generate", 2000), ("shards", 2000),
    }  # fmt: skip
    assert {(c.model_name, c.seq_len, c.source, c.micro_batch, c.strategy) for c in matmul} == {
        ("sq1024", None, None, None, "split"),
    }  # fmt: skip
    assert {(c.precision, c.num_workers) for c in matmul} == {("fp32", 1), ("fp32", 2), ("bf16", 1), ("bf16", 2)}
    assert {(c.warmup.steps, c.measure.steps, c.quality) for c in configs} == {(5, 20, "full")}
    assert [c.num_workers for c in configs] == [1] * 8 + [2] * 8  # one group after the other
    assert quick.num_groups == 2


def test_defaults() -> None:
    """A sweep that says only `encdec` gets the seed's defaults and a respectable measurement."""
    config = one("seed: 0")
    assert (config.model_name, config.seq_len, config.vocab_size) == ("3.5m", 256, 8192)
    assert (config.micro_batch, config.grad_accum, config.global_batch) == (128, 1, 128)
    assert config.batch_given == "micro_batch"
    assert (config.warmup, config.measure) == (Extent(steps=10), Extent(steps=50))
    assert config.optimizer == Optimizer(name="adamw", lr=1e-4, weight_decay=0.01)
    assert config.source == Source(name="device", num_samples=8192)
    assert one("optimizer: sgd").optimizer == Optimizer(name="sgd", lr=1e-4, weight_decay=0.0, momentum=0.0)
    assert one("source: shards").source == Source(name="shards", num_samples=3_750_000)
    assert one("source: generate").source == Source(name="generate", num_samples=3_750_000)


@pytest.mark.parametrize(("base", "numbers", "given_"), [
    ("micro_batch: 4, num_workers: 2", (4, 1, 8), "micro_batch"),
    ("global_batch: 8, num_workers: 2", (4, 1, 8), "global_batch"),
    ("grad_accum: 2", (128, 2, 256), "grad_accum"),
    ("micro_batch: 4, grad_accum: 3, num_workers: 2", (4, 3, 24), "micro_batch+grad_accum"),
    ("micro_batch: 4, global_batch: 24, num_workers: 2", (4, 3, 24), "micro_batch+global_batch"),
    ("grad_accum: 3, global_batch: 24, num_workers: 2", (4, 3, 24), "grad_accum+global_batch"),
    ("micro_batch: 4, grad_accum: 3, global_batch: 24, num_workers: 2", (4, 3, 24),
     "micro_batch+grad_accum+global_batch"),
])  # fmt: skip
def test_batch_numbers(base: str, numbers: tuple[int, int, int], given_: str) -> None:
    """Any two give the third; 24 = 4 x 3 x 2 workers."""
    config = one(base)
    assert (config.micro_batch, config.grad_accum, config.global_batch) == numbers
    assert config.batch_given == given_


@pytest.mark.parametrize(("measure", "extent"), [
    ("7", Extent(steps=7)),
    ("{steps: 7}", Extent(steps=7)),
    ("{seconds: 3}", Extent(seconds=3.0)),
    ("{samples: 80}", Extent(steps=10)),       # 80 samples / 8 a step
    ("{tokens: 5040}", Extent(steps=10)),      # 8 samples x 63 target tokens = 504 a step
    ("{epochs: 2}", Extent(steps=500)),        # 2 x 2000 samples / 8 a step
])  # fmt: skip
def test_measure_forms(measure: str, extent: Extent) -> None:
    """However it is said, it becomes steps or seconds."""
    base = "seq_len: 64, micro_batch: 4, num_workers: 2, source: {name: device, num_samples: 2000}"
    assert one(f"{base}, measure: {measure}").measure == extent


def test_a_source_by_name_keeps_the_options_it_knows() -> None:
    """`num_samples` goes along to every source, `num_shards` only to shards; a mapping with a name starts afresh."""
    sources = [config.source for config in configs_of("""
name: s
base: {workload: encdec, source: {name: shards, num_samples: 40, num_shards: 4, data_dir: /d}}
axes: {source: [device, shards, {name: shards}, {num_samples: 50}]}
""")]  # fmt: skip
    assert sources == [
        Source(name="device", num_samples=40),
        Source(name="shards", num_samples=40, num_shards=4, data_dir="/d"),
        Source(name="shards", num_samples=3_750_000),
        Source(name="shards", num_samples=50, num_shards=4, data_dir="/d"),
    ]


def test_values_that_are_mappings_move_together_and_dotted_keys_reach_inside() -> None:
    """Two sizes times two dropouts; the preset's name stays only where its shape does."""
    configs = configs_of("""
name: s
base: {workload: encdec}
axes:
  size: [{model: 3.5m, micro_batch: 32}, {model: 53m, micro_batch: 4}]
  model.dropout: [0, 0.1]
""")
    shapes = [config.model.model_dump() for config in configs]
    assert [shape["d_model"] for shape in shapes] == [128, 128, 512, 512]
    assert [shape["dropout"] for shape in shapes] == [0.0, 0.1, 0.0, 0.1]
    assert [(config.model_name, config.micro_batch) for config in configs] == [
        ("custom", 32), ("3.5m", 32), ("custom", 4), ("53m", 4),
    ]  # fmt: skip


def test_a_custom_model_is_told_by_what_it_changes() -> None:
    """Beside the preset most like it, which need not be the one written; a shape of its own kind is only custom.

    dim_feedforward 1024 is the only difference from 3.5m; d_model 64 and nhead 8 are two; for the matmul, m alone
    differs from sq1024. The last has six fields of its own.
    """
    own = "{d_model: 96, nhead: 3, num_encoder_layers: 1, num_decoder_layers: 1, dim_feedforward: 96, dropout: 0.5}"
    configs = configs_of(f"""
name: s
base: {{workload: encdec}}
axes: {{model: [3.5m, {{dim_feedforward: 1024}}, {{d_model: 64, nhead: 8}}, {own}]}}
include: [{{workload: matmul, model: sq1024, model.m: 512}}]
""")
    assert [" ".join(config.label().split()[:-5]) for config in configs[:4]] == [
        "encdec 3.5m", "encdec custom dim_feedforward=1024", "encdec custom d_model=64 nhead=8", "encdec custom",
    ]  # fmt: skip
    assert configs[4].label() == "matmul custom m=512 fp32 ×1"


def test_include_of_another_workload_inherits_only_what_is_common() -> None:
    """A matmul takes precision and warm-up over from `base`, and neither its shape nor batch nor axes."""
    matmul = configs_of("""
name: s
base: {workload: encdec, model: 53m, seq_len: 64, micro_batch: 4, strategy: none, precision: bf16, warmup: 3}
axes: {seed: [1, 2]}
include: [{workload: matmul}, {model: 3.5m}]
""")[2:]
    assert [(c.workload, c.model_name, c.strategy, c.precision, c.warmup.steps, c.seed) for c in matmul] == [
        ("matmul", "sq4096", "split", "bf16", 3, 0), ("encdec", "3.5m", "none", "bf16", 3, 0),
    ]  # fmt: skip
    assert matmul[1].seq_len == 64


def test_base_without_a_workload_is_what_the_includes_share() -> None:
    """Then `base` itself is nothing to run."""
    text = "name: s\nbase: {precision: bf16}\ninclude: [{workload: matmul}, {workload: encdec}]\n"
    assert [(c.workload, c.precision) for c in configs_of(text)] == [("matmul", "bf16"), ("encdec", "bf16")]


def test_exclude_drops_before_anything_is_wrong() -> None:
    """12 does not divide over 8 workers, but that config is excluded; a rule that matches nothing is a warning."""
    spec = sweep_from_bytes(b"""
name: s
base: {workload: encdec, global_batch: 12}
axes: {num_workers: [1, 2, 8], source: [device, shards]}
exclude:
  - {num_workers: 8}
  - {source: shards, num_workers: 2, model: 3.5m, optimizer: adamw, model.nhead: 4, phase: train}
  - {source: generate}
""", "s.yaml")  # fmt: skip
    expansion = expand(spec)
    assert [(t.config.num_workers, t.config.source and t.config.source.name) for t in expansion.trials] == [
        (1, "device"), (1, "shards"), (2, "device"),
    ]  # fmt: skip
    assert expansion.warnings == ("s.yaml:8:5 exclude[2]: matches no config",)


def test_exclude_may_not_drop_everything() -> None:
    """A sweep of which nothing is left is a mistake of the one who asks for it."""
    text = "name: s\nbase: {workload: encdec}\naxes: {num_workers: [1, 2]}\nexclude: [{workload: encdec}]\n"
    with pytest.raises(UsageError, match=r"^s.yaml: exclude leaves no trial$"):
        trials_of(text)


def test_exclude_may_drop_all_that_auto_is_so_far() -> None:
    """Before a cluster is there, 1 is a guess for `auto`: no mistake yet, but a plan with it is empty and refused."""
    text = b"name: s\nbase: {workload: encdec, num_workers: auto}\nexclude: [{num_workers: 1}]\n"
    spec = sweep_from_bytes(text, "s.yaml")
    assert expand(spec, auto_workers=[1]).trials == ()
    assert [trial.config.num_workers for trial in expand(spec, auto_workers=[1, 2]).trials] == [2]
    with pytest.raises(UsageError, match=r"^s.yaml: exclude leaves no trial$"):
        plan(spec, auto_workers=[1])


def test_equal_configs_collapse_with_a_warning() -> None:
    """A preset and its own shape are one config; what is no part of the key makes no second one."""
    shape = "{d_model: 128, nhead: 4, num_encoder_layers: 3, num_decoder_layers: 3, dim_feedforward: 512}"
    text = f"name: s\nbase: {{workload: encdec}}\naxes: {{model: [3.5m, {shape}]}}\n"
    expansion = expand(sweep_from_bytes(text.encode(), "s.yaml"))
    assert [trial.config.model_name for trial in expansion.trials] == ["3.5m"]
    assert expansion.warnings == ("1 config collapsed into an equal one",)
    text = "name: s\nbase: {workload: encdec}\naxes: {timeout: [5, 6]}\n"
    expansion = expand(sweep_from_bytes(text.encode(), "s.yaml"))
    assert expansion.warnings == (
        "1 config collapsed into an equal one; timeout_s alone does not make another config",
    )


def test_gpu_models_are_trials_of_one_config() -> None:
    """The machine is no part of the key, and still each is a trial and a worker group of its own."""
    text = "name: s\nbase: {workload: matmul, device: cuda}\naxes: {gpu_model: [H100, A100 SXM4]}\nrepeats: 2\n"
    trials = trials_of(text)
    (key,) = {trial.config_key for trial in trials}
    assert [trial.trial_id for trial in trials] == [
        f"{key}-01-h100", f"{key}-01-a100-sxm4", f"{key}-02-h100", f"{key}-02-a100-sxm4",
    ]  # fmt: skip
    assert [trial.trial_id for trial in trials_of("name: s\nbase: {workload: matmul, device: cuda}\n")] == [f"{key}-01"]


def test_custom_resources_are_an_axis() -> None:
    """A mapping is one value of it; Ray's own resources are no custom ones."""
    text = "name: s\nbase: {workload: matmul}\naxes: {resources: [{}, {fast_disk: 0.5}]}\n"
    assert [config.resources for config in configs_of(text)] == [{}, {"fast_disk": 0.5}]
    with pytest.raises(SweepError, match="GPU is no custom resource"):
        trials_of("name: s\nbase: {workload: matmul, resources: {GPU: 2}}\n")


def test_order_is_repeat_then_group_then_config() -> None:
    """Groups come as the sweep first asks for them, and every repeat goes through all of them."""
    text = "name: s\nrepeats: 2\nbase: {workload: encdec}\naxes: {precision: [fp32, bf16], num_workers: [2, 1]}\n"
    trials = trials_of(text)
    assert [(t.order, t.repeat, t.config.num_workers, t.config.precision) for t in trials] == [
        (0, 1, 2, "fp32"), (1, 1, 2, "bf16"), (2, 1, 1, "fp32"), (3, 1, 1, "bf16"),
        (4, 2, 2, "fp32"), (5, 2, 2, "bf16"), (6, 2, 1, "fp32"), (7, 2, 1, "bf16"),
    ]  # fmt: skip
    assert trials[4].trial_id == f"{trials[0].config_key}-02"


def test_shuffled_stays_within_repeat_and_group() -> None:
    """The same trials in another order, the same order every time, another in the next repeat."""
    text = "name: s\nrepeats: 2\norder: {}\nbase: {{workload: encdec}}\naxes: {{num_workers: [1, 2], seed: [{}]}}\n"
    seeds = ", ".join(map(str, range(20)))
    planned = trials_of(text.format("planned", seeds))
    shuffled = trials_of(text.format("shuffled", seeds))
    assert shuffled == trials_of(text.format("shuffled", seeds))
    assert {trial.trial_id for trial in shuffled} == {trial.trial_id for trial in planned}
    assert [t.config.num_workers for t in shuffled] == [t.config.num_workers for t in planned]
    first, second = ([t.config.seed for t in shuffled[start : start + 20]] for start in (0, 40))
    assert first != second
    assert list(range(20)) not in (first, second)


@pytest.mark.parametrize("text", [
    "name: s\nbase: {workload: encdec, num_workers: auto}\n",
    "name: s\nbase: {workload: encdec}\naxes: {num_workers: auto}\n",
    "name: s\nbase: {workload: encdec}\naxes: {num_workers: [auto]}\n",
    "name: s\nbase: {workload: encdec}\naxes: {both: [{num_workers: auto, seed: 0}]}\n",
])  # fmt: skip
def test_auto_workers(text: str) -> None:
    """`auto` becomes the numbers of the cluster wherever it stands, and without a cluster it is refused."""
    assert [c.num_workers for c in configs_of(text, auto_workers=[1, 2, 4])] == [1, 2, 4]
    with pytest.raises(UsageError, match=r"^s.yaml: num_workers: auto waits .*--set num_workers=\[1,2\]"):
        trials_of(text)


def test_an_axis_of_workers_overrides_auto_in_base() -> None:
    """`auto` that an axis replaces is not multiplied."""
    text = "name: s\nbase: {workload: encdec, num_workers: auto}\naxes: {num_workers: [3]}\n"
    assert [c.num_workers for c in configs_of(text, auto_workers=[1, 2])] == [3]


def test_quick_is_fewer_steps_and_says_so() -> None:
    """`--quick` is another config, so that the full run measures again, but the same work."""
    text = "name: s\nbase: {workload: encdec, measure: {seconds: 9}}\n"
    (full,), (quick,) = configs_of(text), configs_of(text, quick=True)
    assert (quick.warmup, quick.measure, quick.quality) == (Extent(steps=2), Extent(steps=10), "quick")
    assert quick.config_key() != full.config_key()
    assert quick.work_key() == full.work_key()


@pytest.mark.parametrize(("asked", "warmup", "measured"), [
    ("warmup: 1, measure: 5", 1, 5),                       # fewer than 2 and 10 asked: they stay
    ("warmup: 0, measure: 10", 0, 10),
    ("warmup: 3, measure: 11", 2, 10),
    ("micro_batch: 4, measure: {samples: 20}", 2, 5),      # 20 samples / 4 a step = 5 steps; warm-up 10 by default
    ("warmup: {seconds: 1}, measure: {seconds: 1}", 2, 10),
])  # fmt: skip
def test_quick_never_measures_more(asked: str, warmup: int, measured: int) -> None:
    """At most 2 steps of warm-up and 10 measured, and never more than the sweep asks for."""
    (quick,) = configs_of(f"name: s\nbase: {{workload: encdec, {asked}}}\n", quick=True)
    assert (quick.warmup, quick.measure) == (Extent(steps=warmup), Extent(steps=measured))


def test_only() -> None:
    """`only` selects by settings as the sweep writes them, keeps each trial's place, and refuses to select nothing."""
    quick = plan("quick", only=["source=device,shards", "precision=bf16", "num_workers=2"])
    assert [trial.label() for trial in quick.trials] == [
        "encdec 3.5m s64 b4 bf16 device ×2", "encdec 3.5m s64 b4 bf16 shards ×2",
    ]  # fmt: skip
    assert [trial.order for trial in quick.trials] == [11, 13]
    chosen = quick.trials[0].trial_id
    assert [trial.trial_id for trial in plan("quick", only=[f"trial_id={chosen}"]).trials] == [chosen]
    assert len(plan("quick", only=["model=sq1024", "model=3.5m", "model.m=1024"]).trials) == 4


ALL_KEYS = ", ".join([*SETTINGS, "trial_id", "config_key", "repeat"])


@pytest.mark.parametrize(("only", "message"), [
    ("presicion=bf16", 'presicion=bf16: unknown key; did you mean "precision"?'),
    ("gpus=2", 'gpus=2: unknown key; did you mean "num_workers"?'),
    ("dropout=0.1", 'dropout=0.1: unknown key; did you mean "model.dropout"?'),
    ("foo=1", f"foo=1: unknown key; known: {ALL_KEYS}"),
    ("precision", "precision: must be key=value"),
    ("precision=", "precision=: must be key=value"),
    ("precision=bf16,", "precision=bf16,: must be key=value"),
    ("bf16,precision=fp32", "bf16,precision=fp32: must be key=value"),
    ("precision=fp64", "precision=fp64: none of the 16 trials matches; there are fp32, bf16"),
    ("precision=bf16,fp17", "precision=fp17: none of the 16 trials matches; there are fp32, bf16"),
    ("precision=bf16,num_workers=3", "num_workers=3: none of the 16 trials matches; there are 1, 2"),
    ("measure=21", "measure=21: none of the 16 trials matches; there is 20"),
    ("model=53m", "model=53m: none of the 16 trials matches; there are 3.5m, sq1024"),
    ("timeout=5", "timeout=5: none of the 16 trials matches; none has a timeout"),
    ("repeat=2", "repeat=2: none of the 16 trials matches; there is 1"),
    ("trial_id=xyz", "trial_id=xyz: none of the 16 trials matches; the plan lists the ids"),
    ("workload=matmul,source=device", "workload=matmul source=device: none of the 16 trials matches all of it"),
])  # fmt: skip
def test_only_that_selects_nothing(only: str, message: str) -> None:
    """Each value must be that of some trial of the quick sweep; what is not is told with what there is."""
    with pytest.raises(UsageError) as caught:
        plan("quick", only=[only])
    assert str(caught.value) == f"--only {message}"


def test_many_values_are_cut() -> None:
    """Of 20 seeds the first 12 are listed."""
    text = f"name: s\nbase: {{workload: encdec}}\naxes: {{seed: {list(range(20))}}}\n"
    listed = ", ".join(str(seed) for seed in range(12))
    with pytest.raises(UsageError, match=rf"; there are {listed}, ... \(20 in all\)$"):
        trials_of(text, only="seed=99")


@pytest.mark.parametrize("only", [
    "precision=bf16,num_workers=2",
    ["precision=bf16, num_workers=2"],
    ["precision=bf16", "num_workers=2"],
    {"precision": "bf16", "num_workers": 2},
    {"precision": ["bf16"], "num_workers": (2,)},
])  # fmt: skip
def test_ways_to_say_only(only: Any) -> None:
    """Both keys must hold, however it is said: bf16 on 2 workers is 3 sources of encdec and one matmul."""
    configs = [trial.config for trial in plan("quick", only=only).trials]
    assert [(c.workload, c.precision, c.num_workers) for c in configs] == [
        ("encdec", "bf16", 2), ("encdec", "bf16", 2), ("encdec", "bf16", 2), ("matmul", "bf16", 2),
    ]  # fmt: skip


def test_values_and_pairs_in_one_text() -> None:
    """What follows a pair without a key of its own is another value of it: 2 of 3 sources x 2 precisions on 2."""
    assert len(plan("quick", only="source=device,shards,num_workers=2").trials) == 4
    assert len(plan("quick", only={"source": ["device", "shards"], "num_workers": 2}).trials) == 4


def test_only_by_the_beginning_of_an_id() -> None:
    """A prefix stands for every trial whose id begins with it: a config's key for all its repeats."""
    text = "name: s\nrepeats: 2\nbase: {workload: encdec}\naxes: {seed: [1, 2]}\n"
    first = trials_of(text)[0]
    assert [t.trial_id for t in trials_of(text, only=f"trial_id={first.config_key[:8]}")] == [
        f"{first.config_key}-01", f"{first.config_key}-02",
    ]  # fmt: skip
    assert [t.trial_id for t in trials_of(text, only={"trial_id": first.trial_id})] == [first.trial_id]


def test_one_override_as_a_text() -> None:
    """A text is one override, not one for each of its letters."""
    assert {trial.config.precision for trial in plan("quick", overrides="precision=bf16").trials} == {"bf16"}


SET = "name: s\nbase: {workload: encdec, seq_len: 64}\naxes: {num_workers: [1, 2], seed: [1]}\n" \
      "include: [{workload: matmul, seed: 5, axes: {num_workers: [1, 4]}}]\n"  # fmt: skip


@pytest.mark.parametrize(("override", "expected"), [
    ("seed=9", [("encdec", 1, 9, 64), ("matmul", 1, 9, None), ("encdec", 2, 9, 64), ("matmul", 4, 9, None)]),
    ("num_workers=8", [("encdec", 8, 1, 64), ("matmul", 8, 5, None)]),
    ("num_workers=[8]", [("encdec", 8, 1, 64), ("matmul", 8, 5, None)]),
    ("seq_len=32", [("encdec", 1, 1, 32), ("matmul", 1, 5, None), ("encdec", 2, 1, 32), ("matmul", 4, 5, None)]),
])  # fmt: skip
def test_set(override: str, expected: list[tuple[Any, ...]]) -> None:
    """`--set` replaces values and axes in every block; what belongs to a workload leaves the others alone."""
    assert [(c.workload, c.num_workers, c.seed, c.seq_len) for c in configs_of(SET, override)] == expected


def test_set_a_list_makes_an_axis() -> None:
    """Dotted, too; and what the sweep says of itself can be set."""
    text = "name: s\nbase: {workload: encdec}\n"
    configs = configs_of(text, "optimizer.lr=[1e-3, 1]", "isolation=warm", "model={nhead: 8}")
    assert [config.optimizer and config.optimizer.lr for config in configs] == [0.001, 1.0]
    assert {config.isolation for config in configs} == {"warm"}
    assert {config.model.model_dump()["nhead"] for config in configs} == {8}


@pytest.mark.parametrize(("override", "message"), [
    ("seqlen=3", '--set seqlen=3: unknown key; did you mean "seq_len"?'),
    ("dropout=0.5", '--set dropout=0.5: unknown key; did you mean "model.dropout"?'),
    ("seq_len=x", '--set seq_len=x: must be a whole number, not "x"'),
    ("seq_len", "--set seq_len: must be key=value"),
    ("seq_len=", "--set seq_len=: must be key=value"),
    ("source={name: q}",
     '--set source={name: q} source.name: must be one of device, memory, generate, shards, tokens, cifar100, '
     'images, ray_data, not "q"'),
    ("seed=[1", "--set seed=[1: not YAML: a bracket is not closed"),
    ("seq_len=8,16", "--set seq_len=8,16: a list is written [8,16]"),
    ("model=3.5m,53m", "--set model=3.5m,53m: a list is written [3.5m,53m]"),
    ("base.precision=bf16", "--set base.precision=bf16: leave out `base.`: precision=..."),
    ("axes.num_workers=[1,2]", "--set axes.num_workers=[1,2]: leave out `axes.`: num_workers=..."),
    ("gpus=2", '--set gpus=2: unknown key; did you mean "num_workers"?'),
])  # fmt: skip
def test_wrong_set(override: str, message: str) -> None:
    """A wrong override is told as such, not as a mistake of the file."""
    with pytest.raises(SweepError) as caught:
        configs_of(SET, override)
    assert str(caught.value) == message


def test_a_comma_in_a_path() -> None:
    """A folder's name may hold one."""
    (config,) = configs_of("name: s\nbase: {workload: encdec, source: shards}\n", "source.data_dir=/a,b")
    assert config.source is not None
    assert config.source.data_dir == "/a,b"


def test_a_billion_trials_are_refused_before_they_are_made() -> None:
    """1000 x 1000 x 1000 from a file of 12 kB: counted, not built."""
    values = ", ".join(map(str, range(1, 1001)))
    axes = ", ".join(f"{name}: [{values}]" for name in ("seed", "seq_len", "micro_batch"))
    text = f"name: s\nbase: {{workload: encdec}}\naxes: {{{axes}}}\n"
    spec = sweep_from_bytes(text.encode(), "s.yaml")
    start = time.perf_counter()
    with pytest.raises(UsageError, match=r"^s.yaml: 1000000000 trials; a sweep may have 100000$"):
        expand(spec)
    assert time.perf_counter() - start < 1.0
    with pytest.raises(SweepError):  # nor are they made to find more mistakes
        sweep_from_bytes(text.encode() + b"repeats: 0\n", "s.yaml")


@settings(max_examples=30, deadline=None)
@given(
    st.permutations(["workload: encdec", "model: 53m", "precision: bf16", "seed: 3", "measure: {seconds: 2}"]),
    st.sampled_from(["{lr: 1, name: sgd}", "{name: sgd, lr: 1.0}", "{name: sgd, lr: 10e-1}"]),
)
def test_keys_do_not_depend_on_how_it_is_written(lines: list[str], optimizer: str) -> None:
    """Any order of keys, `lr: 1` or `lr: 1.0`, and twice the same expansion."""
    base = ", ".join([*lines, f"optimizer: {optimizer}"])
    text = f"axes: {{num_workers: [1, 2]}}\nbase: {{{base}}}\nname: s\n"
    trials = trials_of(text)
    assert trials == trials_of(text)
    reference = trials_of("""
name: s
base: {workload: encdec, model: 53m, precision: bf16, seed: 3, measure: {seconds: 2.0}, optimizer: {name: sgd, lr: 1.0}}
axes: {num_workers: [1, 2]}
""")
    assert [trial.config_key for trial in trials] == [trial.config_key for trial in reference]


@pytest.mark.parametrize(("asked", "mistake"), [
    ("num_workers: 2, nodes: 3", "s.yaml:2:64 base.nodes: 3 nodes need at least as many workers, not 2"),
    ("num_workers: 4, nodes: 2, packing: strict_spread",
     "s.yaml:2:64 base.nodes: strict_spread puts one worker on a node: 4 workers need 4 nodes, not 2"),
])  # fmt: skip
def test_nodes_that_the_workers_cannot_fill(asked: str, mistake: str) -> None:
    """A node without a worker, or with more than the packing allows, is a mistake of the sweep, told at its place."""
    text = f"name: s\nbase: {{workload: matmul, model: sq1024, {asked}}}\n"
    with pytest.raises(SweepError) as caught:
        trials_of(text)
    assert str(caught.value) == mistake
