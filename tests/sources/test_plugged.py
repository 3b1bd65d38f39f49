"""Sources of installed plug-ins: in a sweep, on a rank, and without them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from raybench.cluster.outcome import outcome_of
from raybench.engine.session import Session
from raybench.errors import SweepError, UsageError
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.spec.built_in import plug_ins, source_kinds
from raybench.spec.config import Extent, Source, TrialConfig
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes
from tests.engine.small import encdec, place

PLUGINS = Path(__file__).parents[1] / "plugins"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plug-in `throttled`, by being on the path."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    plug_ins.cache_clear()
    yield
    plug_ins.cache_clear()


def planned(source: str, *, no_plugins: bool = False) -> list[TrialConfig]:
    """The configs of a sweep with that source."""
    text = f"name: s\nbase: {{workload: encdec, source: {source}}}\n"
    return [trial.config for trial in expand(sweep_from_bytes(text.encode(), "s.yaml", no_plugins=no_plugins)).trials]


def throttled(sleep_ms: float) -> TrialConfig:
    """2 + 10 steps of a tiny network that waits so long for each batch."""
    source = Source(name="throttled", num_samples=10, options={"sleep_ms": sleep_ms})
    return encdec(source=source, warmup=Extent(steps=2), measure=Extent(steps=10))


def test_a_sweep_names_it_like_any_other() -> None:
    """With its own default of samples and all its options told, which are part of the key."""
    (by_name,), (with_options,) = planned("throttled"), planned("{name: throttled, options: {sleep_ms: 5}}")
    assert by_name.source == Source(name="throttled", num_samples=2000, options={"sleep_ms": 0.0})
    assert with_options.source is not None
    assert with_options.source.options == {"sleep_ms": 5.0}
    assert by_name.config_key() != with_options.config_key()
    assert "throttled" in by_name.label()


@pytest.mark.parametrize(("source", "told"), [
    ("throtled", r's.yaml:2:34 base.source: must be one of device, .*, throttled, not "throtled"; did you mean'),
    ("{name: throttled, options: {sleep_ms: -1}}", r"source.options: throttled: sleep_ms: must be at least 0, not -1"),
    ("{name: throttled, options: {pause: 1}}", r"base.source.options: throttled: pause: unknown key"),
    ("{name: throttled, options: {sleep_ms: 70000}}", r"base.source: throttled sleeps a minute at most"),
    ("{name: throttled, prefetch: 3}", r"base.source.prefetch: source throttled has no prefetch"),
    ("{name: shards, options: {sleep_ms: 1}}", r"base.source.options: source shards has no options"),
])  # fmt: skip
def test_mistakes(source: str, told: str) -> None:
    """In one line each, with its place."""
    with pytest.raises(SweepError, match=told):
        planned(source)


def test_without_plug_ins_it_is_unknown_and_none_of_its_code_runs() -> None:
    """In a process of its own, where nothing has imported it yet."""
    assert source_kinds(no_plugins=True) == {}
    code = (
        "import sys; from raybench.spec.plan import plan; from raybench.errors import SweepError\n"
        "plan('quick', no_plugins=True)\n"
        "assert 'raybench_throttled' not in sys.modules\n"
        "plan('quick')\n"
        "assert 'raybench_throttled' in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": f"{PLUGINS}:{PLUGINS.parents[1]}"}, check=True)
    with pytest.raises(SweepError, match=r"must be one of device, .*, ray_data, not"):
        planned("throttled", no_plugins=True)


def test_a_node_without_the_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker where it is not installed."""
    monkeypatch.setattr("raybench.sources.plugged.source_kinds", dict)
    with pytest.raises(UsageError, match="there is no source 'throttled' here; install its package on every node"):
        open_source(throttled(0.0), 0, 1, torch.device("cpu"))


def test_it_prepares_its_own_data() -> None:
    """As its `prepare` says."""
    from raybench_throttled.source import PREPARED

    config = throttled(0.0)
    prepare(config)
    assert PREPARED[-1] == config.config_key()


def test_its_errors_are_a_plug_in_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not raybench's own, which would be tried again."""
    import raybench_throttled.source

    monkeypatch.setattr(raybench_throttled.source, "DeviceBatches", None)
    with pytest.raises(TypeError) as caught:
        open_source(throttled(0.0), 0, 1, torch.device("cpu"))
    assert outcome_of(caught.value, "encdec") == ("workload_error", "TypeError")


def test_a_throttled_source_is_attributed() -> None:
    """20 ms of sleep before each batch: the share of the window that compute waited is what the source slept in it, by
    its own clock, within 5 %. The first batch is fetched while building, so step 2 waits for the third sleep."""
    from raybench_throttled.source import SLEPT_S

    session = Session(place())
    SLEPT_S.clear()
    result = session.run(throttled(20.0))
    session.close()
    waited_ms = [ms for ms, warmup in zip(result.steps.data_wait_ms, result.steps.is_warmup, strict=True) if not warmup]
    truth = sum(SLEPT_S[2:12]) / result.measured_s
    assert truth > 0.02
    assert sum(waited_ms) / 1e3 / result.measured_s == pytest.approx(truth, rel=0.05)
    assert result.loader_cpu_s == 0.0
