"""Lists inside a shape: the widths of layers."""

from __future__ import annotations

import json

import pytest

from raybench.errors import SweepError
from raybench.spec.expand import expand
from raybench.spec.models.mlp import MLPShape
from raybench.spec.reader import sweep_from_bytes


def sweep(model: str, axes: str = "{}") -> bytes:
    """A sweep of one mlp."""
    return f"{{name: a, base: {{workload: mlp, model: {model}}}, axes: {axes}}}".encode()


def test_a_list_is_kept_as_what_never_changes() -> None:
    """A tuple in Python, a list in the stored config, and its widths joined in the label."""
    (trial,) = expand(sweep_from_bytes(sweep("{batch: 8, layers: [4, 6, 2]}"), "s.yaml")).trials
    assert trial.config.model == MLPShape(batch=8, layers=(4, 6, 2))
    assert json.loads(trial.config.canonical())["model"] == {"batch": 8, "layers": [4, 6, 2]}
    assert trial.config.label() == "mlp custom batch=8 layers=4-6-2 fp32 ×1"


def test_lists_can_be_swept() -> None:
    """A dotted axis of lists: one config each."""
    trials = expand(sweep_from_bytes(sweep("b4096", "{model.layers: [[4, 4], [8, 8, 8]]}"), "s.yaml")).trials
    assert [trial.config.model for trial in trials] == [
        MLPShape(batch=4096, layers=(4, 4)), MLPShape(batch=4096, layers=(8, 8, 8)),
    ]  # fmt: skip


@pytest.mark.parametrize(("layers", "what"), [
    ("[4]", "must have at least 2 values, not 1"),
    ("[4, 0]", "must be at least 1, not 0"),
    ("[4, x]", 'must be a whole number, not "x"'),
    ("4", "must be a list, not 4"),
])  # fmt: skip
def test_what_is_no_list_of_widths(layers: str, what: str) -> None:
    """Told at the list."""
    with pytest.raises(SweepError) as caught:
        expand(sweep_from_bytes(sweep(f"{{batch: 8, layers: {layers}}}"), "s.yaml"))
    assert str(caught.value).endswith(f"base.model.layers: {what}")
