"""The commands that shipped sweeps tell in their comments plan something: they are what people copy."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from raybench.spec.plan import plan
from raybench.spec.reader import shipped_sweeps

_TOLD = re.compile(r"^#.*?\braybench run (.+)$", re.M)
COMMANDS = [(name, typed) for name, path in shipped_sweeps().items() for typed in _TOLD.findall(path.read_text())]


@pytest.mark.parametrize(("name", "typed"), COMMANDS)
def test_commands_in_comments_plan(name: str, typed: str) -> None:
    """Each is about the sweep it stands in, and leaves trials to run on 1, 2, 4 or 8 workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sweep")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args(shlex.split(typed))
    assert asked.sweep == name
    planned = plan(name, overrides=asked.set, only=asked.only, quick=asked.quick, auto_workers=[1, 2, 4, 8])
    assert planned.trials


def test_the_seeds_commands_are_told() -> None:
    """So that the search above has something to find."""
    assert {name for name, _ in COMMANDS} >= {"seed_encdec", "seed_matmul_scaling"}
    assert len(COMMANDS) >= 10
