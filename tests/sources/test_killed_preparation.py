"""Preparing that is killed at any moment leaves nothing that is ever taken for data; two at once make it once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybench.errors import DataError
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


def killed_at(of: TrialConfig, moment: int, finished: int = 0) -> None:
    """Preparing in a process of its own, killed when so many writes are through and the next is not.

    `finished`: those of them that an earlier process made.
    """
    gate = PROCESSES.Semaphore(moment - finished)
    process = PROCESSES.Process(target=prepare_slowly, args=(of, gate))
    process.start()
    while process.is_alive() and not _reached(of, moment):
        process.join(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def _reached(of: TrialConfig, moment: int) -> bool:
    """So many files are whole, and the next lies there in part."""
    names = written(of)
    return len([name for name in names if name.startswith("shard_")]) >= min(moment, SHARDS) and any(
        name.endswith(".part") for name in names
    )


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


def check_killed(root: Path, moments: Iterable[int]) -> None:
    """Killed at each moment in turn in the same folder, then prepared to the end: every byte is right.

    What was finished is not made again: after so many shards the next preparation goes on with one more.
    """
    of, finished = config(root, "shards"), 0
    for moment in moments:
        killed_at(of, moment, finished)
        finished = moment
        assert "manifest.json" not in written(of)
        assert len([name for name in written(of) if name.startswith("shard_")]) == min(finished, SHARDS)
    prepare(of)
    assert content(of) == expected()
    assert not [name for name in written(of) if name.startswith("_")]


def test_killed_at_three_moments(tmp_path: Path) -> None:
    """In the first shard, in the middle, and when all shards lie there and the manifest does not."""
    check_killed(tmp_path, (0, 9, SHARDS))


@pytest.mark.soak
def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    """In each shard but the first, and before the manifest."""
    check_killed(tmp_path, range(1, SHARDS + 1))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 2)


def _alter_inside(path: Path) -> None:
    """A byte in the middle, far from both ends."""
    whole = path.read_bytes()
    path.write_bytes(whole[:12_000] + bytes([whole[12_000] ^ 1]) + whole[12_001:])


def _foreign(path: Path) -> None:
    path.write_bytes(path.with_name("shard_0000.bin").read_bytes())


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _link_to_another(path: Path) -> None:
    path.unlink()
    path.symlink_to("shard_0000.bin")


def _journal_cut(path: Path) -> None:
    journal = path.with_name("_finished.jsonl")
    journal.write_text(journal.read_text()[:-20])


def _journal_foreign(path: Path) -> None:
    path.with_name("_finished.jsonl").write_text('{"name": "shard_0003.bin"}\nnot json\n[1]\n')


@pytest.mark.parametrize("damage", [
    _cut, _alter_inside, _foreign, _dangling, _link_to_another, _journal_cut, _journal_foreign, os.unlink,
])  # fmt: skip
def test_what_was_damaged_while_nobody_prepared_is_made_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """A finished shard is taken only when it is to the last byte what the journal says."""
    of = config(tmp_path, "shards")
    stop_after(of, 5)
    where = place(of)
    assert where is not None
    damage(where / "shard_0003.bin")
    prepare(of)
    assert content(of) == expected()


def test_a_folder_in_a_shard_s_place_is_told(tmp_path: Path) -> None:
    """Nothing of anybody's is deleted: file, reason and cure."""
    of = config(tmp_path, "shards")
    stop_after(of, 5)
    where = place(of)
    assert where is not None
    (where / "shard_0007.bin").mkdir()
    with pytest.raises(DataError, match=r"shard_0007\.bin is a folder where a shard belongs; delete the folder"):
        prepare(of)


def test_finished_shards_are_not_touched(tmp_path: Path) -> None:
    """By their inodes and times: going on writes the others only."""
    of = config(tmp_path, "shards")
    stop_after(of, 5)
    where = place(of)
    assert where is not None
    kept = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(where.glob("shard_*"))]
    assert len(kept) == 5
    prepare(of)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(where.glob("shard_*"))][:5] == kept


class Stop(Exception):
    """Ends a preparation in this process."""


def stop_after(of: TrialConfig, shards: int) -> None:
    """Prepare, and end when so many shards are finished."""
    def told(done: int, total: int) -> None:
        if done >= shards * total / SHARDS:
            raise Stop

    with pytest.raises(Stop):
        prepare(of, told)


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
