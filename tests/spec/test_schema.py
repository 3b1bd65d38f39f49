"""The editors' schema: in step with the types, and it lets through every shipped sweep and stops common slips."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from raybench.spec.plan import plan
from raybench.spec.reader import shipped_sweeps
from raybench.spec.schema import json_schema, schema_text

SWEEPS = Path(__file__).parents[2] / "sweeps"
VALIDATOR = jsonschema.Draft7Validator(json_schema())


def loaded(text: str) -> Any:
    """The text as an editor's YAML reader sees it."""
    return YAML(typ="safe", pure=True).load(text)


def test_the_file_in_the_repository_is_up_to_date() -> None:
    """Otherwise write `raybench.spec.schema.schema_text()` into it."""
    assert json.loads((SWEEPS / "sweep.schema.json").read_text()) == json_schema()
    jsonschema.Draft7Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize("name", sorted(shipped_sweeps()))
def test_shipped_sweeps(name: str) -> None:
    """Each begins with the modeline, fits the schema, is called what its file is, and expands without a warning."""
    text = shipped_sweeps()[name].read_text()
    assert text.splitlines()[0] == "# yaml-language-server: $schema=./sweep.schema.json"
    VALIDATOR.validate(loaded(text))
    planned = plan(name, auto_workers=[1, 2, 4, 8])
    assert (planned.name, planned.warnings) == (name, ())
    assert planned.question


@pytest.mark.parametrize(("text", "right"), [
    ("{name: a, base: {workload: encdec, model: {d_model: 64}, model.dropout: 0, warmup: {seconds: 3}}}", True),
    ("{name: a, axes: {num_workers: auto, model.dropout: [0.1], size: [{model: 53m, micro_batch: 4}]}}", True),
    ("{name: a, include: [{workload: matmul, axes: {num_workers: [1, auto]}}], exclude: [{source: shards}]}", True),
    ("{name: a, maximize: mfu, stages: [{axes: {seed: [1]}}]}", False),
    ("{name: a, maximize: tokens_per_s, stages: [{micro_batch: auto, axes: {seed: [1]}}]}", True),
    ("{name: a, stages: [{seed: 1}]}", False),
    ("{base: {}}", False),
    ("{name: A}", False),
    ("{name: a, base: {seqlen: 4}}", False),
    ("{name: a, base: {seq_len: true}}", False),
    ("{name: a, base: {measure: {steps: 1, seconds: 2}}}", False),
    ("{name: a, axes: {compile: []}}", False),
    ("{name: a, axes: {precision: [fp64]}}", False),
    ("{name: a, axes: {source.num_shards: [0]}}", False),
    ("{name: a, repeats: 100}", False),
])  # fmt: skip
def test_what_it_lets_through(text: str, right: bool) -> None:
    """The forms of a sweep are right, and the slips that need no arithmetic are underlined while typing."""
    assert VALIDATOR.is_valid(loaded(text)) is right
