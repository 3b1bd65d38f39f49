"""Finding workloads by name, plug-ins included."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raybench import cli
from raybench.cluster.options import RunOptions
from raybench.errors import SweepError, UsageError
from raybench.spec.built_in import BUILT_IN, families, plug_ins
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes
from raybench.workloads import registry
from tests.factories import make_config

BUILT_IN_NAMES = [family.name for family in BUILT_IN]


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed distribution `acme-bench` whose entry point `ours` names `acme_bench:WORKLOAD`."""
    info = tmp_path / "acme_bench-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[raybench.workloads]\nours = acme_bench:WORKLOAD\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plug_ins.cache_clear()
    yield tmp_path / "acme_bench.py"
    plug_ins.cache_clear()
    sys.modules.pop("acme_bench", None)


def workload_source(name: str) -> str:
    """Python that defines a workload of that name."""
    return textwrap.dedent(f"""
        import dataclasses
        from raybench.workloads.matmul import WORKLOAD as MATMUL
        family = dataclasses.replace(MATMUL.family, name="{name}")
        WORKLOAD = dataclasses.replace(MATMUL, family=family)
    """)


def test_built_in_workloads() -> None:
    """All are found, come from raybench, and are the families that the sweep reader knows."""
    found = registry.workloads()
    assert list(found) == BUILT_IN_NAMES
    assert set(found) == set(families())
    assert [found[name].family for name in found] == [families()[name] for name in found]
    assert {workload.origin for workload in found.values()} == {"raybench"}


def test_a_plug_in_is_found_with_its_origin(plug_in: Path) -> None:
    """The entry point's workload carries the name of the distribution it came from."""
    plug_in.write_text(workload_source("ours"))
    assert list(registry.workloads()) == [*BUILT_IN_NAMES, "ours"]
    assert registry.workload("ours").origin == "acme-bench"


def test_a_plug_in_cannot_take_a_built_in_name(plug_in: Path) -> None:
    """`matmul` stays raybench's."""
    plug_in.write_text(workload_source("matmul"))
    assert registry.workloads()["matmul"].origin == "raybench"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import a_module_that_is_not_there", "cannot be loaded: No module named 'a_module_that_is_not_there'"),
        ("", "cannot be loaded"),
        ("raise RuntimeError('not today')", "cannot be loaded: not today; --no-plugins does without plug-ins"),
        ("WORKLOAD = 3", "is no Workload; --no-plugins does without plug-ins"),
    ],
)
def test_a_broken_plug_in_is_named(plug_in: Path, source: str, reason: str) -> None:
    """One line with the plug-in and its distribution, no traceback of theirs."""
    plug_in.write_text(source)
    with pytest.raises(UsageError) as caught:
        registry.workloads()
    assert str(caught.value).startswith("workload plug-in ours of acme-bench ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("command", [["plan", "quick"], ["run", "quick", "--dry-run"], ["workloads"]])
def test_no_plugins_runs_none_of_their_code(plug_in: Path, command: list[str]) -> None:
    """A plug-in that would stop every command is left alone, and so is its evidence."""
    plug_in.write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\nraise SystemExit(7)")
    done = CliRunner().invoke(cli.app, [*command, "--no-plugins"])
    assert done.exit_code == 0, done.output
    assert "acme" not in done.stdout
    assert not plug_in.with_name("ran").exists()


def test_without_plug_ins_their_workloads_are_unknown(plug_in: Path) -> None:
    """The mistake says why, and the command that continues a run keeps the option."""
    plug_in.write_text(workload_source("ours"))
    text = b"{name: a, base: {workload: ours, model: sq1024}}"
    assert len(expand(sweep_from_bytes(text, "s.yaml")).trials) == 1
    with pytest.raises(SweepError, match=r'there is no workload "ours" \(--no-plugins leaves out installed ones\)'):
        expand(sweep_from_bytes(text, "s.yaml", no_plugins=True))
    assert RunOptions(sweep="s.yaml", no_plugins=True).continue_command(None) == "raybench run s.yaml --no-plugins"


def test_an_unknown_name_gets_a_suggestion() -> None:
    """A near miss is suggested, anything else gets the list."""
    with pytest.raises(UsageError, match=r"^unknown workload 'endcec'; did you mean encdec\?$"):
        registry.workload("endcec")
    with pytest.raises(UsageError) as caught:
        registry.workload("zzz")
    assert str(caught.value) == f"unknown workload 'zzz'; there are {', '.join(sorted(BUILT_IN_NAMES))}"


def test_the_registry_is_torch_free() -> None:
    """Naming, listing and counting import nothing heavy."""
    code = (
        "import sys; from raybench.workloads.registry import workloads; workloads(); "
        "print({'torch', 'ray', 'pandas', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_a_source_alone_counts_its_samples_only() -> None:
    """8 pairs of 63 target tokens a step, whatever the phase; without a model there are no parameters and no FLOPs."""
    loaded, trained = (registry.counts_of(make_config(phase=phase)) for phase in ("load", "train"))
    assert (loaded.samples_per_step, loaded.tokens_per_step) == (8, 504)
    assert (trained.samples_per_step, trained.tokens_per_step) == (8, 504)
    assert (loaded.parameters, loaded.model_flops_per_step, loaded.hardware_flops_per_step) == (None, None, None)
    assert trained.parameters
