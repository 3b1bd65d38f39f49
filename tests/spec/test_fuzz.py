"""Whatever is written under the known keys, the reader ends with trials or with plain lines, never with a traceback."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from raybench.errors import UsageError
from raybench.spec.expand import Expansion, expand
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.settings import SETTINGS
from raybench.spec.sweep import PARTS

SCALARS = st.one_of(
    st.sampled_from([
        "encdec", "matmul", "53m", "sq1024", "auto", "shards", "device", "sgd", "none", "ddp", "bf16", "cpu", "forward",
        0, 1, 2, 3, 7, 64, 128, -1, 2**40, 0.1, 1.5, True, None, "",
    ]),
    st.text(max_size=5),
)  # fmt: skip
KEYS = st.sampled_from([
    *SETTINGS, "model.dropout", "model.nhead", "source.num_samples", "source.nam", "optimizer.momentum",
    "measure.seconds", "axes", "sise",
])  # fmt: skip
WITHIN = ["name", "steps", "seconds", "samples", "tokens", "num_shards", "lr", "momentum", "d_model", "m", "k"]
MAPPINGS = st.dictionaries(st.sampled_from(WITHIN), SCALARS, max_size=3)
VALUES = st.one_of(SCALARS, MAPPINGS, st.lists(SCALARS, max_size=2))
LAYERS = st.dictionaries(KEYS, VALUES, max_size=5)
AXES = st.dictionaries(KEYS, st.one_of(VALUES, st.lists(VALUES, max_size=3), st.lists(LAYERS, max_size=2)), max_size=3)
SWEEPS = st.fixed_dictionaries(
    {"name": st.just("s"), "base": LAYERS.map(lambda layer: {"workload": "encdec"} | layer)},
    optional={
        "axes": AXES,
        "include": st.lists(st.tuples(LAYERS, AXES).map(lambda both: both[0] | {"axes": both[1]}), max_size=2),
        "exclude": st.lists(LAYERS, max_size=2),
        "repeats": SCALARS,
        "isolation": SCALARS,
    },
)


def outcome(text: str, overrides: list[str]) -> Expansion | str:
    """The trials, or the lines that say why there are none."""
    try:
        return expand(sweep_from_bytes(text.encode(), "s.yaml", overrides), auto_workers=[1, 2])
    except UsageError as error:
        return str(error)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SWEEPS, st.lists(st.tuples(st.one_of(KEYS, st.sampled_from(PARTS)), VALUES), max_size=2))
@example({"name": "s", "base": {"workload": "encdec"}, "exclude": [{"model.dropout": {"name": "x"}}]}, [])
def test_trials_or_plain_lines(sweep: dict[str, Any], sets: list[tuple[str, Any]]) -> None:
    """JSON is YAML: random sweeps and overrides give the same outcome twice, printable and without jargon."""
    overrides = [f"{key}={json.dumps(value)}" for key, value in sets]
    found = outcome(json.dumps(sweep), overrides)
    assert found == outcome(json.dumps(sweep), overrides)
    if isinstance(found, Expansion):
        assert len({trial.trial_id for trial in found.trials}) == len(found.trials)
    else:
        assert all(line.isprintable() and "Input" not in line for line in found.splitlines())
        assert "something else" not in found
