"""Flat files of tokens: made, described, checked, and refused with file and reason."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from raybench.errors import DataError
from raybench.sources.layout import located
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.sources.token_file import token_path
from raybench.spec.config import Source, TrialConfig
from raybench.spec.families.decoder import DECODER
from tests.factories import make_config


def config(**source: Any) -> TrialConfig:
    """Sequences of 4 tokens and the next one, micro-batches of 2, one worker."""
    return make_config(
        workload="decoder", model=DECODER.presets["small"], seq_len=4, vocab_size=100, micro_batch=2, num_workers=1,
        source=Source(name="tokens", **{"num_samples": 5, **source}),
    )  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Tokens 0 to 20 as nanoGPT writes them: uint16 and nothing else. Five sequences of 4, and the token after."""
    path = tmp_path / "train.bin"
    np.arange(21, dtype=np.uint16).tofile(path)
    return path


def read(of: TrialConfig, count: int) -> list[list[list[int]]]:
    """The first micro-batches."""
    prepare(of)
    source = open_source(of, 0, 1, torch.device("cpu"))
    try:
        found = []
        for _ in range(count):
            batch = next(source)
            assert isinstance(batch, torch.Tensor)
            found.append(batch.tolist())
        return found
    finally:
        source.close()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_corpus_of_one_s_own(corpus: Path, prefetch: int) -> None:
    """Sample i is tokens 4 i to 4 i + 4; the third micro-batch wraps around from sample 4 to sample 0."""
    found = read(config(path=str(corpus), prefetch=prefetch), 3)
    assert found[0] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    assert found[2] == [[16, 17, 18, 19, 20], [0, 1, 2, 3, 4]]


def test_what_is_written_beside_it(corpus: Path) -> None:
    """Once, with the largest token, so that a vocabulary too small is known before any step; a hit writes nothing."""
    prepare(config(path=str(corpus)))
    sidecar = corpus.with_name("train.bin.json")
    said = json.loads(sidecar.read_text())
    assert (said["dtype"], said["num_tokens"], said["max_token"]) == ("uint16", 21, 20)
    before = sidecar.stat().st_mtime_ns
    prepare(config(path=str(corpus)))
    assert sidecar.stat().st_mtime_ns == before
    assert sorted(os.listdir(corpus.parent)) == ["train.bin", "train.bin.json"]


def test_one_is_made_where_none_is_given(tmp_path: Path) -> None:
    """5 x 4 tokens and the one after, two bytes each; for a vocabulary beyond 65 536 four; the seed is another file."""
    of = config(data_dir=str(tmp_path))
    prepare(of)
    assert token_path(of).stat().st_size == 42
    assert sorted(os.listdir(token_path(of).parent)) == [".lock", "tokens.bin", "tokens.bin.json"]
    large = of.model_copy(update={"vocab_size": 65_537})
    prepare(large)
    assert token_path(large).stat().st_size == 84
    assert len({token_path(each).parent for each in (of, large, of.model_copy(update={"seed": 1}))}) == 3


def test_an_unfinished_one_is_made_again(tmp_path: Path) -> None:
    """Without its description it is not there."""
    of = config(data_dir=str(tmp_path))
    prepare(of)
    whole = token_path(of).read_bytes()
    token_path(of).with_name("tokens.bin.json").unlink()
    token_path(of).write_bytes(b"half")
    prepare(of)
    assert token_path(of).read_bytes() == whole


@pytest.mark.parametrize(("change", "what"), [
    ({"vocab_size": 20}, "holds token 20, which vocab_size 20 does not reach; give vocab_size at least 21"),
    ({"seq_len": 5}, "holds 4 samples of 6 tokens, and source.num_samples asks for 5; give at most 4"),
])  # fmt: skip
def test_what_a_file_cannot_serve(corpus: Path, change: dict[str, Any], what: str) -> None:
    """Known before the first step, with the number that would do."""
    with pytest.raises(DataError, match=what):
        prepare(config(path=str(corpus)).model_copy(update=change))


def _numpy(path: Path) -> None:
    np.save(path.with_suffix(".npy"), np.arange(21, dtype=np.uint16))
    path.with_suffix(".npy").replace(path)


def _torch(path: Path) -> None:
    torch.save(torch.arange(21), path)


@pytest.mark.parametrize(("make", "source", "what"), [
    (_numpy, {}, "is a NumPy array and no flat file of tokens"),
    (_torch, {}, "is a zip archive, as torch.save writes and no flat file of tokens"),
    (lambda path: path.write_bytes(b"\x80\x04\x95pickled"), {}, "is a pickle and no flat file of tokens"),
    (lambda path: path.write_bytes(b"abc"), {}, "has 3 bytes, which is no number of uint16 tokens"),
    (lambda path: path.write_bytes(b""), {}, "has 0 bytes"),
    (os.unlink, {}, "is no file"),
    (lambda path: None, {"dtype": "int32"}, "has 42 bytes, which is no number of int32 tokens"),
    (lambda path: path.write_bytes(b"\xff" * 8), {"dtype": "int32"}, "holds negative numbers as int32"),
])  # fmt: skip
def test_what_is_no_file_of_tokens(
    corpus: Path, make: Callable[[Path], None], source: dict[str, Any], what: str
) -> None:
    """Never read as if it were: a header would be tokens, and nothing in it is ever unpickled."""
    make(corpus)
    with pytest.raises(DataError, match=what):
        prepare(config(path=str(corpus), **source))
    assert not corpus.with_name("train.bin.json").exists()


def test_another_type_than_was_described(corpus: Path) -> None:
    """The description wins over what is asked, in words."""
    prepare(config(path=str(corpus)))
    with pytest.raises(DataError, match=r"holds uint16 and source\.dtype says int32"):
        prepare(config(path=str(corpus), dtype="int32"))


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """42 bytes are needed beside 256 MiB that stay free: one byte less is not enough."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=256 * 2**20 + 41))
    with pytest.raises(DataError, match=r"choose another source\.data_dir"):
        prepare(config(data_dir=str(tmp_path)))


def test_a_node_without_it(tmp_path: Path) -> None:
    """Says so before any step."""
    with pytest.raises(DataError, match="is not prepared on this node"):
        open_source(config(data_dir=str(tmp_path)), 0, 1, torch.device("cpu"))


def test_paths_travel_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker of a joined Ray has another working folder."""
    monkeypatch.chdir(tmp_path)
    source = located(config(path="train.bin")).source
    assert source is not None
    assert source.path == str(tmp_path / "train.bin")
