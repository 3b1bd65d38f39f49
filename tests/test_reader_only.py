"""A laptop without torch and Ray: `pip install --no-deps` and the README's list are enough to plan and to read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import readme
from tests.factories import make_config, make_trial
from tests.frames import store

WITHOUT = """
import importlib.abc, json, sys

class Absent(importlib.abc.MetaPathFinder):
    names = frozenset(json.loads(sys.argv.pop(1)))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
SWEEP = "name: s\nbase: {workload: encdec, seq_len: 64, micro_batch: 4}\naxes: {num_workers: auto}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of one config on two clusters and one that failed, and a sweep that asks for `auto` workers."""
    rows = [make_trial(cluster=name, step_ms=ms) for name, ms in (("a", 50.0), ("b", 25.0))]
    rows.append(make_trial(make_config(precision="bf16"), outcome="timeout", trial_uid="f" * 32, sweep_order=1))
    store(tmp_path / "results", *rows)
    (tmp_path / "s.yaml").write_text(SWEEP)
    return tmp_path


@pytest.fixture(scope="module")
def absent() -> str:
    """JSON list of the modules installed here that the README's list does not bring."""
    there = with_dependencies(listed()) | {"raybench"}
    found = [
        module for module, distributions in packages_distributions().items()
        if not there & {canonicalize_name(name) for name in distributions}
    ]  # fmt: skip
    assert {"torch", "ray", "psutil", "pynvml", "pytest"} <= set(found)
    assert not {"pandas", "typer", "ruamel", "pygments"} & set(found)
    return json.dumps(found)


READING = [
    "show results", "show results --trial ffff", "show results --json", "compare results",
    "compare results --by cluster --json", "plan quick", "plan s.yaml", "plan s.yaml --json", "workloads",
    "schema", "schema --columns", "compact results --to fewer",
]  # fmt: skip


@pytest.mark.parametrize("words", READING)
def test_reading_commands(folder: Path, absent: str, words: str) -> None:
    """Each does its work, and says nothing of what is absent."""
    done = run(folder, "from raybench.cli import main\nmain()", absent, *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_verify(folder: Path, absent: str) -> None:
    """It finds that these made-up rows have no steps."""
    done = run(folder, "from raybench.cli import main\nmain()", absent, "verify", "results")
    assert (done.returncode, done.stderr) == (1, "")
    assert "error: steps: 2 rows" in done.stdout


@pytest.mark.parametrize(
    ("program", "words"),
    [("from raybench.cli import main\nmain()", ["run", "quick"]), ("import raybench\nraybench.run('quick')", [])],
)
def test_running_names_what_is_missing(folder: Path, absent: str, program: str, words: list[str]) -> None:
    """One line with the cure, exit 2; from Python the same as an exception."""
    before = set(folder.rglob("*"))
    done = run(folder, program, absent, *words)
    assert done.stdout == ""
    told = done.stderr.splitlines()[-1]
    assert told.split("error: ")[-1].split("Error: ")[-1] == (
        "running needs ray, torch, psutil, pynvml: not installed here, so raybench can only plan and read; "
        "to install: pip install 'ray[train,tune,data]' torch psutil nvidia-ml-py"
    )
    if words:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert set(folder.rglob("*")) == before


def test_load_compare_and_plan_from_python(folder: Path, absent: str) -> None:
    """The same for the functions that a notebook calls."""
    program = (
        "import raybench\n"
        "frame = raybench.load('results')\n"
        "print(len(frame), len(raybench.compare(frame)), len(raybench.plan('quick').trials))\n"
    )
    done = run(folder, program, absent)
    assert (done.stdout, done.stderr) == ("3 3 16\n", "")


def test_the_absent_are_absent(folder: Path, absent: str) -> None:
    """What the other tests rely on: an import of one of them fails."""
    assert "No module named 'torch'" in run(folder, "import torch", absent).stderr


def run(folder: Path, program: str, absent: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python without those modules."""
    command = [sys.executable, "-c", WITHOUT + program, absent, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def listed() -> set[str]:
    """The packages of the README's `pip install` line for readers."""
    found = re.search(r"pip install --no-deps \S+\n\s*pip install (.+)\n", readme.README.read_text())
    assert found is not None
    return {canonicalize_name(name) for name in found[1].split()}


def with_dependencies(names: set[str]) -> set[str]:
    """These distributions and what pip would install with them here."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            needed = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue      # needed on another platform only
        here = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
        waiting += [canonicalize_name(one.name) for one in here]
    return found
