"""Preparing that is killed at any moment leaves nothing that is ever taken for data; two at once make it once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybench.sources.prepare import prepare
from raybench.sources.records import records
from raybench.sources.wanted import place
from raybench.spec.config import Source, TrialConfig
from raybench.spec.samples import TokenSample
from tests.factories import make_config

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["raybench.sources.prepare", "tests.factories"])
SAMPLES, SHARDS = 4000, 20


def config(root: Path, name: str) -> TrialConfig:
    """4000 pairs of 2 x 32 tokens: 20 shards, or one file, of 512 kB in all."""
    source = Source(name=name, num_samples=SAMPLES, num_shards=SHARDS, data_dir=str(root))
    return make_config(seq_len=32, vocab_size=1000, source=source)


def prepare_slowly(of: TrialConfig, gate: Any) -> None:
    """Prepare, and before each write to the disk wait until the gate lets one through."""
    wait = os.fsync

    def held(file: int) -> None:
        wait(file)
        gate.acquire()

    os.fsync = held
    prepare(of)


def killed_at(of: TrialConfig, moment: int) -> None:
    """Preparing in a process of its own, killed when so many of its writes are through and the next is not."""
    gate = PROCESSES.Semaphore(moment)
    process = PROCESSES.Process(target=prepare_slowly, args=(of, gate))
    process.start()
    while process.is_alive() and len(written(of)) < min(moment, SHARDS) + 1:
        process.join(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def written(of: TrialConfig) -> list[str]:
    """What lies in the folder but the lock: whole files, and the one that is being written."""
    where = place(of)
    assert where is not None
    folder = where.parent if of.source is not None and of.source.name == "tokens" else where
    return sorted(name for name in os.listdir(folder) if name != ".lock") if folder.is_dir() else []


def content(of: TrialConfig) -> bytes:
    """All of the data set."""
    where = place(of)
    assert where is not None
    files = [where] if where.is_file() else sorted(where.glob("shard_*.bin"))
    return b"".join(file.read_bytes() for file in files)


def expected() -> bytes:
    """The same from the rule, of 16 bits a token."""
    return records(0, np.arange(SAMPLES), TokenSample((2, 32), 1000)).astype("<u2").tobytes()


def check_killed(root: Path, moments: Iterator[int] | range) -> None:
    """Killed at each moment in turn in the same folder, then prepared to the end: every byte is right."""
    of = config(root, "shards")
    for moment in moments:
        killed_at(of, moment)
        assert "manifest.json" not in written(of)
    prepare(of)
    assert content(of) == expected()
    assert not [name for name in written(of) if name.startswith("_")]


def test_killed_at_three_moments(tmp_path: Path) -> None:
    """In the first shard, in the middle, and when all shards lie there and the manifest does not."""
    check_killed(tmp_path, iter((0, 9, SHARDS)))


@pytest.mark.soak
def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    """In each shard, and before the manifest."""
    check_killed(tmp_path, range(1, SHARDS + 1))


def test_a_token_file_killed_before_it_is_described(tmp_path: Path) -> None:
    """The tokens lie there, in part or whole: without their description they are made again."""
    of = config(tmp_path, "tokens")
    killed_at(of, 0)
    assert written(of) == ["_tokens.bin.part"]
    prepare(of)
    assert content(of) == expected()
    assert written(of) == ["tokens.bin", "tokens.bin.json"]


@pytest.mark.parametrize("name", ["shards", pytest.param("tokens", marks=pytest.mark.soak)])
def test_two_that_want_the_same_make_it_once(tmp_path: Path, name: str) -> None:
    """Both end well, the files are those of one, and every byte is right."""
    of = config(tmp_path, name)
    processes: list[BaseProcess] = [PROCESSES.Process(target=prepare, args=(of,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert content(of) == expected()
    assert not [name for name in written(of) if name.startswith("_")]
