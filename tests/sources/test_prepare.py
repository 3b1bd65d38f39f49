"""Preparing shards once, and finding what became of them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.layout import folder, layout
from raybench.sources.prepare import prepare, verify
from raybench.sources.tokens import tokens
from raybench.spec.config import Source, TrialConfig
from raybench.spec.samples import TokenSample
from tests.factories import make_config


@pytest.fixture
def config(tmp_path: Path) -> TrialConfig:
    """10 samples of 2 x 4 tokens over 3 shards: 4, 4 and 2 samples of 64 bytes."""
    source = Source(name="shards", num_samples=10, num_shards=3, data_dir=str(tmp_path), dtype="int64")
    return make_config(source=source, seq_len=4, vocab_size=100)


def test_shards_are_headerless_little_endian_int64(config: TrialConfig) -> None:
    """All shards, one after the other, are the samples 0 to 9 and nothing else (ED-22)."""
    prepare(config)
    directory = folder(config)
    content = b"".join(path.read_bytes() for path in sorted(directory.glob("shard_*.bin")))
    written = np.frombuffer(content, "<i8").reshape(10, 2, 4)
    assert np.array_equal(written, tokens(0, np.arange(10), TokenSample((2, 4), 100)))
    assert sorted(os.listdir(directory)) == [
        ".lock", "manifest.json", "shard_0000.bin", "shard_0001.bin", "shard_0002.bin",
    ]  # fmt: skip


def test_the_manifest_says_what_each_shard_is(config: TrialConfig) -> None:
    """Sizes in bytes, dtype, seed, versions, and a checksum that for a short shard covers it twice."""
    prepare(config)
    content = json.loads((folder(config) / manifest.NAME).read_text())
    assert content["layout"] == {
        "num_samples": 10, "sample": {"shape": [2, 4], "vocab_size": 100, "overlap": 0}, "num_shards": 3, "seed": 0,
        "format_version": 1, "generator_version": 1, "dtype": "<i8",
    }  # fmt: skip
    assert [shard["bytes"] for shard in content["shards"]] == [256, 256, 128]
    last = (folder(config) / "shard_0002.bin").read_bytes()
    assert content["shards"][2]["edges_sha256"] == hashlib.sha256(last + last).hexdigest()


def test_a_hit_writes_nothing(config: TrialConfig) -> None:
    """Preparing again checks and leaves every file as it is."""
    prepare(config)
    before = {path: path.stat().st_mtime_ns for path in folder(config).glob("*.*")}
    prepare(config)
    assert {path: path.stat().st_mtime_ns for path in folder(config).glob("*.*")} == before


def _cut(directory: Path) -> None:
    path = directory / "shard_0001.bin"
    os.truncate(path, path.stat().st_size - 2)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"layout": {}, "shards": []}', '{"layout": 1, "shards": [1]}'])
def test_a_foreign_manifest_is_named_with_the_cure(config: TrialConfig, content: str) -> None:
    """A manifest that cannot be read, or is that of other data, is no reason to read other data."""
    prepare(config)
    (folder(config) / manifest.NAME).write_text(content)
    with pytest.raises(DataError, match=r"manifest\.json (cannot be read|describes another data set)"):
        prepare(config)


def test_every_byte_is_hashed_when_asked_for(config: TrialConfig) -> None:
    """Shards of 3.2 MB: between the first and the last MB an altered byte is seen by `verify` only."""
    of = config.model_copy(update={"source": Source(name="shards", num_samples=100_000, num_shards=2, dtype="int64",
                                                    data_dir=config.source and config.source.data_dir)})
    prepare(of)
    heard: list[tuple[int, int]] = []
    verify(of, lambda done, total: heard.append((done, total)))
    assert heard == [(3_200_000, 6_400_000), (6_400_000, 6_400_000)]
    path = folder(of) / "shard_0001.bin"
    with path.open("r+b") as file:
        file.seek(1_500_000)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    prepare(of)
    with pytest.raises(DataError, match=r"shard_0001\.bin was altered: its SHA-256"):
        verify(of)


def test_without_a_manifest_it_is_prepared_again(config: TrialConfig) -> None:
    """Whatever an interrupted run left, cut or foreign, is written over."""
    prepare(config)
    (folder(config) / manifest.NAME).unlink()
    _cut(folder(config))
    (folder(config) / "_shard_0002.bin.part").write_bytes(b"half")
    prepare(config)
    assert not list(folder(config).glob("_*"))


def test_a_full_disk_is_refused_before_anything_is_written(
    config: TrialConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """640 bytes are needed beside 256 MiB that stay free: one byte less is not enough."""
    needed = 256 * 2**20 + 640
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=needed - 1))
    with pytest.raises(DataError, match=r"choose another source\.data_dir"):
        prepare(config)
    assert not list(folder(config).glob("*shard*"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=needed))
    prepare(config)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A data_dir that is a file cannot hold a folder, for root neither."""
    (tmp_path / "file").write_text("")
    source = Source(name="shards", num_samples=10, data_dir=str(tmp_path / "file"))
    with pytest.raises(DataError, match="cannot prepare data in"):
        prepare(make_config(source=source))


def test_a_second_run_waits_and_then_hits(config: TrialConfig) -> None:
    """While one holds the folder's lock the other writes nothing; when it is free, it prepares."""
    directory = folder(config)
    directory.mkdir(parents=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = multiprocessing.get_context("spawn").Process(target=prepare, args=(config,))
        other.start()
        _until_it_has_opened(directory / ".lock", other)
        assert not manifest.exists(directory)
    other.join(60)
    assert other.exitcode == 0
    manifest.check(directory, layout(config))


def _until_it_has_opened(lock: Path, process: multiprocessing.process.BaseProcess) -> None:
    """From then on it asks for the lock again and again."""
    files = Path(f"/proc/{process.pid}/fd")
    while process.is_alive():
        if any(_target(file) == str(lock) for file in files.iterdir()):
            return
    raise AssertionError("it did not wait")


def _target(link: Path) -> str | None:
    """What an open file of another process is; None where that process has just closed it."""
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("name", ["device", "memory", "generate"])
def test_sources_without_files_need_nothing(tmp_path: Path, name: str) -> None:
    """Nothing is written for them."""
    prepare(make_config(source=Source(name=name, data_dir=str(tmp_path))))
    assert not list(tmp_path.iterdir())
