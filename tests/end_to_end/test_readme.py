"""What the README says is true: its snippets run, its commands parse, its sweeps read, its tables are the code's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import raybench
from raybench import cli
from raybench.engine.session import Session
from raybench.measure.validity import INVALID, WARNINGS
from raybench.record.trial import OUTCOMES, RUN_AGAIN
from raybench.spec.built_in import plug_ins
from raybench.spec.expand import expand
from raybench.spec.prices import read_prices
from raybench.spec.reader import read_sweep, sweep_from_bytes
from raybench.spec.settings import SETTINGS
from raybench.workloads import registry
from tests import readme
from tests.end_to_end.finished import Finished
from tests.engine.small import place

PYTHON = [block for block in readme.blocks("python") if block.file is None]
FILES = [block for block in readme.blocks("python", "toml") if block.file is not None]
YAML = readme.blocks("yaml")
MISTAKEN = [block for block in YAML if block.file == "mine.yaml"]
(PRICES,) = [block for block in YAML if block.file == "prices.yaml"]
SWEEPS = [block for block in YAML if block not in (*MISTAKEN, PRICES)]
TEXT = readme.README.read_text()
COMMAND: Any = typer.main.get_command(cli.app)      # typer's own copy of click, which is no public name


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The README's plug-in, installed: its files, and the `.dist-info` that pip would make of its pyproject.toml."""
    for block in FILES:
        assert block.file is not None
        path = tmp_path / block.file
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(block.text)
    project = (tmp_path / "pyproject.toml").read_text()
    entries = re.findall(r'\[project\.entry-points\."(.+)"\]\n(\w+) = "(.+)"', project)
    assert len(entries) == 2
    info = tmp_path / "acme_bench-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{name} = {code}\n" for group, name, code in entries))
    monkeypatch.syspath_prepend(str(tmp_path))
    plug_ins.cache_clear()
    yield
    plug_ins.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_bench"]:
        del sys.modules[name]


# -- snippets ----------------------------------------------------------------------------------------------------------


@pytest.mark.ray
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"line {block.line}")
def test_snippets_run_over_real_results(finished: Finished, block: readme.Block) -> None:
    """pandas, raybench, DuckDB, Polars: in the folder that holds `results`, without a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text], cwd=finished.host.folder, env=finished.host.env,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"README line {block.line}\n{done.stderr}"
    assert done.stdout.strip(), f"README line {block.line} prints nothing"


def test_every_reader_has_a_snippet() -> None:
    """None was lost or left unmarked."""
    text = "".join(block.text for block in PYTHON)
    for name in ("pandas", "raybench", "duckdb", "polars"):
        assert f"import {name}" in text


# -- the plug-in -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plug_in")
def test_the_plug_in_is_planned_and_listed() -> None:
    """`raybench workloads` and `plan` know it by what its files say."""
    listed = CliRunner().invoke(cli.app, ["workloads"], env={"COLUMNS": "160"})
    assert "acme-bench" in listed.stdout
    (block,) = [block for block in YAML if "workload: feedforward" in block.text]
    trials = expand(sweep_from_bytes(block.text.encode(), "ours.yaml"), auto_workers=(1, 2)).trials
    assert {trial.config.workload for trial in trials} == {"feedforward"}


@pytest.mark.usefixtures("plug_in")
def test_the_plug_in_runs() -> None:
    """One rank of two, 1 + 3 steps; its FLOPs by hand: 2 products of 8 x 4 by 4 x 16, 2 x 2 x 8 x 4 x 16 = 2048."""
    (block,) = [block for block in YAML if "workload: feedforward" in block.text]
    small = ["model.rows=8", "model.width=4", "num_workers=1", "precision=fp32", "warmup=1", "measure=3"]
    config = expand(sweep_from_bytes(block.text.encode(), "ours.yaml", small)).trials[0].config
    assert registry.workload("feedforward").counts(config).model_flops_per_step == 2048
    session = Session(place())
    try:
        result = session.run(config)
    finally:
        session.close()
    assert (result.warmup_steps, result.measured_steps, result.measured_samples) == (1, 3, 3)


@pytest.mark.usefixtures("plug_in")
def test_the_source_runs() -> None:
    """1 + 3 steps of 4 pairs at 0.2 MB/s: a batch of 4 x 2 x 8 tokens of 8 bytes takes 2.56 ms, so three take 7.7."""
    (block,) = [block for block in YAML if "slow_store" in block.text]
    small = ["model={d_model: 16, nhead: 2, num_encoder_layers: 1, num_decoder_layers: 1, dim_feedforward: 32}",
             "seq_len=8", "micro_batch=4", "warmup=1", "measure=3",
             "source=[{name: slow_store, num_samples: 10, options: {mb_per_s: 0.2}}]"]  # fmt: skip
    config = expand(sweep_from_bytes(block.text.encode(), "stores.yaml", small)).trials[0].config
    session = Session(place())
    try:
        result = session.run(config)
    finally:
        session.close()
    assert result.measured_samples == 12
    assert result.measured_s >= 3 * 4 * 2 * 8 * 8 / 0.2e6


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "typed"), list(readme.commands()))
def test_shell_lines_parse(line: int, typed: str) -> None:
    """Every option exists and takes what it is given; nothing is run."""
    _parse(typed)


@pytest.mark.parametrize("typed", sorted(set(readme.inline_commands())))
def test_commands_in_the_text_parse(typed: str) -> None:
    """The same for those in running text, which may stop before their arguments."""
    _parse(typed, whole=False)


def _parse(typed: str, *, whole: bool = True) -> None:
    words = shlex.split(typed, comments=True)[1:]
    if words[0].startswith("-"):
        assert set(words) <= _options(COMMAND), typed
        return
    command = COMMAND.commands[words.pop(0)]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if whole:
        command.make_context("raybench", words)      # which refuses what is neither an option nor a setting
    else:
        assert {word for word in words if word.startswith("-")} <= _options(command), typed


def _commands(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from _commands(command) if hasattr(command, "commands") else (command,)


def _options(command: Any) -> set[str]:
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts) if option[0] == "-"}


def test_every_option_is_told_of() -> None:
    """All options of all commands occur in the README."""
    options = set[str]().union(*map(_options, _commands(COMMAND)))
    assert sorted(option for option in options if option not in TEXT) == []
    assert len(options) > 20


def test_the_prices_are_read(tmp_path: Path) -> None:
    """By the reader of `--prices`: both sections, each with a price."""
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES.text)
    book = read_prices(path)
    assert len(book.gpu) > 1
    assert len(book.cluster) == 1


# -- sweeps ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize("block", SWEEPS, ids=lambda block: f"line {block.line}")
def test_sweeps_are_right(block: readme.Block) -> None:
    """Each expands to trials, and nothing in it is without effect."""
    spec = sweep_from_bytes(block.text.encode(), f"README.md, line {block.line}")
    expansion = expand(spec, auto_workers=(1, 2, 4, 8))
    assert expansion.trials
    assert expansion.warnings == ()


def test_the_first_sweep_is_the_shipped_one() -> None:
    """What is explained is what runs."""
    shown = sweep_from_bytes(YAML[0].text.encode(), "README.md")
    assert expand(shown).trials == expand(read_sweep("quick")).trials


def test_mistakes_are_told_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep full of mistakes gives exactly the lines below it."""
    (mistaken,) = MISTAKEN
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(mistaken.text)
    with pytest.raises(raybench.errors.SweepError) as told:
        expand(read_sweep("mine.yaml"))
    shown = next(block for block in readme.blocks("console") if "raybench run mine.yaml" in block.text)
    assert shown.text.splitlines()[1:] == str(told.value).splitlines()


# -- tables ------------------------------------------------------------------------------------------------------------


def test_columns_are_those_of_the_code() -> None:
    """Out of step? `python -m tests.readme` writes them anew."""
    assert readme.made("columns") == readme.columns_text()
    assert readme.made("combinations") == readme.combinations_text()


def test_outcomes_are_those_of_the_code() -> None:
    """Every outcome is explained once, and whether it runs again is right."""
    rows = [line.split("|")[1:-1] for line in readme.made("outcomes").splitlines()[2:]]
    again = {name: cells[2].strip() == "yes" for cells in rows for name in re.findall(r"`(\w+)`", cells[0])}
    assert again == {name: name in RUN_AGAIN for name in OUTCOMES}


def test_rules_are_those_of_the_code() -> None:
    """Every rule that invalidates and every warning is named, in its own table."""
    for name, rules in (("invalid", INVALID), ("warnings", WARNINGS)):
        rows = readme.made(name).splitlines()[2:]
        assert [row.split("`")[1] for row in rows] == [rule.name for rule in rules]


def test_settings_are_those_of_the_code() -> None:
    """Every key that `base` takes is explained."""
    rows = readme.made("settings").splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(SETTINGS)


def test_folders_are_those_of_the_code() -> None:
    """Every folder of the package is in the table of the layout."""
    package = Path(raybench.__path__[0])
    rows = readme.made("layout").splitlines()[2:]
    told = [row.split("`")[1].removeprefix("raybench/").rstrip("/") for row in rows]
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert folders <= set(told)
    assert [name for name in told if not (package / name).exists()] == []


def test_screens_fit() -> None:
    """Nothing pasted is wider than 120 columns, and nothing of the machine it was made on is left in it."""
    for block in readme.blocks("console", "text", "sh", "yaml", "python"):
        assert [line for line in block.text.splitlines() if len(line) > 120] == []
    assert [folder for folder in ("/tmp/", "/home/", "/root/") if folder in TEXT] == []
