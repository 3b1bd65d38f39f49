"""Keys, which users' data depends on for years: what they are made of, and that they never change."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raybench.spec import config as config_module
from raybench.spec.config import Extent, Optimizer, Source, TrialConfig, canonical_json, pairing_key
from raybench.spec.expand import expand
from raybench.spec.families.matmul import MATMUL, MatmulShape
from raybench.spec.models.encdec import EncDecShape
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.trial import worker_group

GOLDEN = json.loads((Path(__file__).parent / "golden_keys.json").read_text())
MATMUL_SQ1024 = TrialConfig(
    workload="matmul", model_name="sq1024", model=MatmulShape(m=1024, k=1024, n=1024), strategy="split",
    num_workers=2, warmup=Extent(steps=5), measure=Extent(steps=20),
)  # fmt: skip
KEYED_TEXT = (
    '{"backend":"auto","compile":"off","device":"auto","global_batch":null,"grad_accum":null,"isolation":"repeat",'
    '"measure":{"seconds":null,"steps":20},"micro_batch":null,"model":{"k":1024,"m":1024,"n":1024},"num_workers":2,'
    '"optimizer":null,"phase":null,"precision":"fp32","quality":"full","seed":0,"seq_len":null,"source":null,'
    '"strategy":"split","vocab_size":null,"warmup":{"seconds":null,"steps":5},"workload":"matmul"}'
)


def encdec(**changes: Any) -> TrialConfig:
    """An encdec config on one worker."""
    values: dict[str, Any] = {
        "workload": "encdec", "model_name": "3.5m", "model": EncDecShape(), "seq_len": 64, "vocab_size": 8192,
        "micro_batch": 4, "grad_accum": 1, "global_batch": 4, "phase": "train", "strategy": "ddp",
        "optimizer": Optimizer(), "source": Source(), "warmup": Extent(steps=5), "measure": Extent(steps=20),
    } | changes  # fmt: skip
    return TrialConfig(**values)


def test_a_key_worked_by_hand() -> None:
    """16 hex of SHA-256 over `rb1:` and the canonical JSON that stands above, typed out."""
    by_hand = hashlib.sha256(b"rb1:" + KEYED_TEXT.encode()).hexdigest()[:16]
    assert MATMUL_SQ1024.config_key() == by_hand == GOLDEN["0.1.0"]["matmul sq1024"]["config_key"]


@pytest.mark.parametrize(("release", "name"), [(release, name) for release in GOLDEN for name in GOLDEN[release]])
def test_golden_keys(release: str, name: str) -> None:
    """What an earlier release called a config is what it is called for ever: resume and comparison hang on it."""
    golden = GOLDEN[release][name]
    (trial,) = expand(sweep_from_bytes(golden["sweep"].encode(), "s.yaml")).trials
    assert (trial.config_key, trial.config.work_key()) == (golden["config_key"], golden["work_key"])


@pytest.mark.parametrize("change", [
    {"model_name": "mine"}, {"batch_given": "global_batch"}, {"timeout_s": 9.0}, {"cpus_per_worker": 2.0},
    {"source": Source(data_dir="/elsewhere")}, {"data_cpus": 2}, {"gpu_model": "H100"},
])  # fmt: skip
def test_names_paths_and_limits_are_not_in_the_keys(change: dict[str, Any]) -> None:
    """They change neither the work nor how it is measured."""
    assert encdec(**change).config_key() == encdec().config_key()
    assert encdec(**change).work_key() == encdec().work_key()


@pytest.mark.parametrize("change", [
    {"warmup": Extent(steps=6)}, {"measure": Extent(seconds=20.0)}, {"quality": "quick"}, {"isolation": "fresh"},
])  # fmt: skip
def test_how_it_is_measured_is_in_the_config_key_only(change: dict[str, Any]) -> None:
    """A longer measurement is measured again, and compared all the same."""
    assert encdec(**change).config_key() != encdec().config_key()
    assert encdec(**change).work_key() == encdec().work_key()


@pytest.mark.parametrize("change", [
    {"seed": 1}, {"precision": "bf16"}, {"num_workers": 2}, {"optimizer": Optimizer(lr=1e-3)}, {"phase": "forward"},
    {"source": Source(num_samples=9)}, {"model": EncDecShape(dropout=0.0)}, {"device": "cpu"}, {"compile": "default"},
    {"num_workers": 2, "nodes": 2}, {"packing": "spread"},
])  # fmt: skip
def test_what_is_computed_is_in_both_keys(change: dict[str, Any]) -> None:
    """Other work is never taken for the same."""
    assert encdec(**change).config_key() != encdec().config_key()
    assert encdec(**change).work_key() != encdec().work_key()


def test_a_field_added_later_leaves_old_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it holds its default it is left out, at the top and inside; with another value it counts."""
    class LaterSource(Source):
        prefetch: int = 2

    class LaterConfig(TrialConfig):
        later: str | None = "auto"

    added = config_module.ADDED_SINCE_RB1 | {"later": (None, "auto"), "source.prefetch": (2,)}
    monkeypatch.setattr(config_module, "ADDED_SINCE_RB1", added)
    values = {name: getattr(encdec(), name) for name in TrialConfig.model_fields} | {"source": LaterSource()}
    later = LaterConfig(**values)
    assert later.config_key() == encdec().config_key()
    assert LaterConfig(**values | {"later": "math"}).config_key() != encdec().config_key()


def test_a_stored_config_pairs_as_its_work_key_does() -> None:
    """The column `config`, paths and all, gives the same 16 hex; an axis left out makes its values pair."""
    one, other = encdec(source=Source(data_dir="/a")), encdec(precision="bf16", source=Source(data_dir="/b"))
    assert pairing_key(json.loads(one.canonical()), frozenset()) == one.work_key()
    without = frozenset({"precision"})
    assert pairing_key(json.loads(one.canonical()), without) == pairing_key(json.loads(other.canonical()), without)
    lower = encdec(model=EncDecShape(dropout=0.0))
    inside = frozenset({"model.dropout"})
    assert pairing_key(json.loads(one.canonical()), inside) == pairing_key(json.loads(lower.canonical()), inside)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(st.text(), st.one_of(st.integers(), FINITE, st.text())))
def test_canonical_json_does_not_depend_on_the_order_of_keys(values: dict[str, Any]) -> None:
    """Reversing a mapping changes nothing, and reading it back gives the same values."""
    text = canonical_json(values)
    assert canonical_json(dict(reversed(values.items()))) == text
    assert json.loads(text) == values


@pytest.mark.parametrize(("config", "label"), [
    (encdec(num_workers=2), "encdec 3.5m s64 b4 fp32 device ×2"),
    (encdec(phase="forward", grad_accum=3, compile="default", strategy="none"),
     "encdec 3.5m s64 b4 a3 fp32 forward compile=default none device ×1"),
    (MATMUL_SQ1024, "matmul sq1024 fp32 ×2"),
])  # fmt: skip
def test_label(config: TrialConfig, label: str) -> None:
    """A person recognises a trial by what usually varies."""
    assert config.label() == label


def test_strict_values() -> None:
    """`true` is no int, an int is a float, and the rows of a matmul must divide over its workers."""
    with pytest.raises(ValidationError):
        encdec(seed=True)
    assert Optimizer(lr=1) == Optimizer(lr=1.0)
    odd = MATMUL_SQ1024.model_copy(update={"num_workers": 3})
    assert list(MATMUL.rule(odd)) == ["model: 1024 rows do not divide over 3 workers; 1023 and 1026 do"]


@pytest.mark.parametrize(("source", "asked", "held"), [
    ("device", None, 0), ("ray_data", None, 1), ("ray_data", 3, 3), ("device", 1, 1),
])  # fmt: skip
def test_cpus_kept_for_reading(source: Any, asked: int | None, held: int) -> None:
    """One where Ray Data reads; asked for, others keep them too, and so share its worker group."""
    config = encdec(source=Source(name=source), data_cpus=asked)
    assert config.data_cpus_held == held
    assert (worker_group(config) == worker_group(encdec())) == (held == 0)
