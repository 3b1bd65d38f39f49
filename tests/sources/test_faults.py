"""Everything that may be wrong with data on a disk: one line with file, reason and cure, before the first step.

One table. A data set is 10 samples of 4 tokens and the next one, or of 2 x 4 tokens in shards of 4, 4 and 2.
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from raybench.errors import DataError
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.sources.wanted import place
from raybench.spec.config import Source, TrialConfig
from raybench.spec.families.decoder import DECODER
from tests.factories import make_config


class Trap:
    """Writes a file where it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self._canary, "unpickled"))


def shards(root: Path, **changes: Any) -> TrialConfig:
    """Shards of 64, 64 and 32 bytes."""
    source = Source(name="shards", num_samples=10, num_shards=3, data_dir=str(root / "data"))
    return make_config(source=source, seq_len=4, vocab_size=100, num_workers=1, **changes)


def made(root: Path, **changes: Any) -> TrialConfig:
    """A token file that is prepared: 82 bytes."""
    source = Source(name="tokens", num_samples=10, data_dir=str(root / "data"))
    return _decoder(source, **changes)


def own(root: Path, **changes: Any) -> TrialConfig:
    """A token file of one's own: 0 to 40, 82 bytes."""
    path = root / "train.bin"
    if not path.exists() and not path.is_symlink():
        np.arange(41, dtype=np.uint16).tofile(path)
    return _decoder(Source(name="tokens", num_samples=10, path=str(path)), **changes)


def _decoder(source: Source, **changes: Any) -> TrialConfig:
    values: dict[str, Any] = {"seq_len": 4, "vocab_size": 100, **changes}
    return make_config(
        workload="decoder", model=DECODER.presets["small"], micro_batch=2, num_workers=1, source=source, **values
    )


def file_of(of: TrialConfig) -> Path:
    """The file that is damaged: the second shard, or the tokens."""
    where = place(of)
    assert where is not None
    return where / "shard_0001.bin" if where.is_dir() else where


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 2)


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)


def foreign(path: Path) -> None:
    """Another file of the same length."""
    path.write_bytes(bytes(range(path.stat().st_size)))


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def numpy_pickle(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([Trap(path.with_name("canary"))], dtype=object), allow_pickle=True)


def torch_pickle(path: Path) -> None:
    torch.save(Trap(path.with_name("canary")), path)


def old_torch_pickle(path: Path) -> None:
    torch.save(Trap(path.with_name("canary")), path, _use_new_zipfile_serialization=False)


def plain_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Trap(path.with_name("canary"))))


FAULTS = [(make, damage, what) for make in (shards, made, own) for damage, what in (
    (truncate, r"has \d+ bytes instead of (64|82)"),
    (alter, "was altered"),
    (os.unlink, "is missing"),
    (foreign, "was altered"),
    (folder, "is no file"),
    (dangling, "is missing"),
    (numpy_pickle, "instead of"),
    (torch_pickle, "instead of"),
    (old_torch_pickle, "instead of"),
    (plain_pickle, "instead of"),
)]  # fmt: skip


@pytest.mark.parametrize(("make", "damage", "what"), FAULTS)
def test_after_it_was_prepared(
    tmp_path: Path, make: Callable[..., TrialConfig], damage: Callable[[Path], None], what: str
) -> None:
    """Told by name with the cure; nothing in a file is ever run, and no batch is handed out."""
    of = make(tmp_path)
    prepare(of)
    path = file_of(of)
    damage(path)
    with pytest.raises(DataError, match=what) as caught:
        prepare(of)
    told = str(caught.value)
    assert told.startswith(f"{path} ")
    assert "and run again" in told
    assert "\n" not in told
    assert not list(tmp_path.rglob("canary"))


@pytest.mark.parametrize(("damage", "what"), [
    (os.unlink, "is no file; give source.path the flat file of tokens"),
    (folder, "is no file; give source.path"),
    (dangling, "is no file; give source.path"),
    (numpy_pickle, "is a NumPy array and no flat file of tokens"),
    (torch_pickle, "is a zip archive, as torch.save writes and no flat file of tokens"),
    (old_torch_pickle, "is a pickle, as torch.save wrote and no flat file of tokens"),
    (plain_pickle, "is a pickle and no flat file of tokens"),
    (lambda path: path.write_bytes(b"abc"), "has 3 bytes, which is no number of uint16 tokens; give its source.dtype"),
])  # fmt: skip
def test_before_it_was_described(tmp_path: Path, damage: Callable[[Path], None], what: str) -> None:
    """Somebody else's file is looked at first."""
    of = own(tmp_path)
    damage(file_of(of))
    with pytest.raises(DataError, match=what):
        prepare(of)
    assert not list(tmp_path.rglob("canary"))
    assert not file_of(of).with_name("train.bin.json").exists()


@pytest.mark.parametrize(("changes", "what"), [
    ({"vocab_size": 40}, "holds token 40, which vocab_size 40 does not reach; give vocab_size at least 41"),
    ({"seq_len": 5}, "holds 8 samples of 6 tokens, and source.num_samples asks for 10; give at most 8"),
])  # fmt: skip
def test_what_it_cannot_serve(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    """Whole and as it was described, and not for this config."""
    prepare(own(tmp_path))
    with pytest.raises(DataError, match=what):
        prepare(own(tmp_path, **changes))


def test_another_type_than_it_has(tmp_path: Path) -> None:
    """The description wins, in words."""
    of = own(tmp_path)
    prepare(of)
    assert of.source is not None
    wide = of.model_copy(update={"source": of.source.model_copy(update={"dtype": "int32"})})
    with pytest.raises(DataError, match=r"holds uint16 and source\.dtype says int32"):
        prepare(wide)


@pytest.mark.parametrize("make", [shards, made])
def test_nothing_is_there(tmp_path: Path, make: Callable[..., TrialConfig]) -> None:
    """A node that was not prepared says so when the source is opened, before any step."""
    with pytest.raises(DataError, match="is not prepared on this node"):
        open_source(make(tmp_path), 0, 1, torch.device("cpu"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mounting a small disk takes privilege: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def large(make: Callable[..., TrialConfig], root: Path) -> TrialConfig:
    """2 MB or more of the same."""
    of = make(root)
    assert of.source is not None
    more = of.source.model_copy(update={"num_samples": 300_000, "num_shards": 20 if make is shards else None})
    return of.model_copy(update={"source": more})


@pytest.mark.parametrize("make", [shards, made])
def test_a_full_disk(small_disk: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., TrialConfig]) -> None:
    """Refused before anything is written. Filled meanwhile by others, it is told, and no half file stays in the way."""
    of = large(make, small_disk)
    with pytest.raises(DataError, match=r"needs 0\.0 GB and its disk has 0\.0 GB to spare; choose another"):
        prepare(of)
    assert not [path for path in small_disk.rglob("*.*") if path.name != ".lock"]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2**40))
    with pytest.raises(DataError, match=rf"{os.strerror(errno.ENOSPC)}.*; choose another source\.data_dir"):
        prepare(of)
    assert not list(small_disk.rglob("*.part"))
    assert not list(small_disk.rglob("*.json"))
