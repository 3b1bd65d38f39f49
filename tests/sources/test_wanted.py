"""Preparing by hand, from a sweep or from a source's name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raybench.errors import DataError, UsageError
from raybench.sources.layout import located
from raybench.sources.wanted import SOURCES, place, prepare_all
from raybench.spec.expand import expand
from raybench.spec.options import KNOWN_OPTIONS
from raybench.spec.reader import sweep_from_bytes
from tests.test_cli import run

SWEEP = """\
name: small
base: {workload: encdec, seq_len: 4, vocab_size: 9, source: {name: shards, num_samples: 10}}
axes:
  precision: [fp32, bf16]
  source: [device, shards, tokens]
  seed: [0, 1]
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where data goes."""
    monkeypatch.setenv("RAYBENCH_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_what_a_sweep_s_trials_read(root: Path, tmp_path: Path) -> None:
    """Of 12 trials 8 read data, of 2 seeds in 2 forms: four data sets, where the trials will look for them."""
    file = tmp_path / "small.yaml"
    file.write_text(SWEEP)
    found = list(prepare_all(str(file)))
    trials = expand(sweep_from_bytes(SWEEP.encode(), "s")).trials
    wanted = {place(located(trial.config)) for trial in trials} - {None}
    assert {each.path for each in found} == wanted
    assert len(found) == 4
    assert not any(each.was_there for each in found)
    assert all(each.was_there for each in prepare_all(str(file)))


def test_one_source_by_name(root: Path) -> None:
    """A decoder's sequences: 20 x 8 tokens and the one after, of two bytes each."""
    (found,) = prepare_all("tokens", ["source.num_samples=20", "seq_len=8"])
    assert found.path.stat().st_size == 2 * (20 * 8 + 1) == found.num_bytes
    assert found.path.is_relative_to(root)


def test_every_byte_by_the_command(root: Path) -> None:
    """Says what it did; a byte changed in the middle of 4 MB is found by that alone."""
    what = ("data", "prepare", "shards", "--set", "source.num_samples=16000", "--set", "seq_len=128",
            "--set", "source.num_shards=1")  # fmt: skip
    assert "prepared in" in run(*what).stdout
    assert "verified in" in run(*what, "--verify").stdout
    (shard,) = root.glob("*/shard_0000.bin")
    content = bytearray(shard.read_bytes())
    content[4_000_000] ^= 1
    shard.write_bytes(content)
    assert "checked in" in run(*what).stdout
    with pytest.raises(DataError, match=r"shard_0000\.bin was altered: its SHA-256 .*; delete the folder"):
        run(*what, "--verify")


def test_every_source_that_can_be_prepared_is_known() -> None:
    """Those with a `data_dir` are those that prepare something."""
    prepared = {name for name, options in KNOWN_OPTIONS["source"].items() if "data_dir" in options}
    assert SOURCES.keys() == prepared


def test_the_command(root: Path) -> None:
    """One line a data set; again, it is only checked; as JSON with its path and size."""
    words = ("data", "prepare", "shards", "--set", "source.num_samples=10", "--seq_len=4")
    first = run(*words)
    assert first.exit_code == 0
    assert "prepared in" in first.output
    assert "checked in" in run(*words).output
    row = json.loads(run(*words, "--json").output)
    assert row["was_there"] is True
    assert Path(row["path"]).parent == root


def test_a_sweep_that_reads_nothing(tmp_path: Path) -> None:
    """Says so."""
    file = tmp_path / "none.yaml"
    file.write_text("name: none\nbase: {workload: matmul}\n")
    assert "nothing to prepare" in run("data", "prepare", str(file)).output


def test_no_such_thing() -> None:
    """Neither a source nor a sweep."""
    with pytest.raises(UsageError, match="nosuch: neither a file nor a shipped sweep"):
        list(prepare_all("nosuch"))
