"""Token files in object stores: fetched once a node, held to what they were."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
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
from tests.results.s3 import CREDENTIALS, S3, started_s3


def config(uri: str, root: Path) -> TrialConfig:
    """Two sequences of 4 tokens and the next one."""
    return make_config(
        workload="decoder", model=DECODER.presets["small"], seq_len=4, vocab_size=100, micro_batch=2, num_workers=1,
        source=Source(name="tokens", num_samples=2, path=uri, data_dir=str(root)),
    )  # fmt: skip


def first_batch(of: TrialConfig) -> list[list[int]]:
    """Prepared, located as for a worker, and read."""
    prepare(located(of))
    source = open_source(located(of), 0, 1, torch.device("cpu"))
    try:
        batch = next(source)
        assert isinstance(batch, torch.Tensor)
        return batch.tolist()  # type: ignore[no-any-return]
    finally:
        source.close()


def test_fetched_once_and_again_when_it_changed(tmp_path: Path) -> None:
    """Told apart by size and time; the local file is left alone while the other is the same."""
    there = tmp_path / "train.bin"
    np.arange(9, dtype=np.uint16).tofile(there)
    of = config(f"file://{there}", tmp_path / "data")
    assert first_batch(of) == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    before = token_path(of).stat().st_ino
    assert first_batch(of)[0][0] == 0
    assert token_path(of).stat().st_ino == before
    np.arange(10, 19, dtype=np.uint16).tofile(there)
    os.utime(there, ns=(1, 1))
    assert first_batch(of)[0] == [10, 11, 12, 13, 14]


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    """Not there, a folder, no scheme that is known, altered here: one line, before the first step."""
    for uri, what in (
        (f"file://{tmp_path}/nothing.bin", "is no object there"), (f"file://{tmp_path}", "is no object there"),
        ("nope://bucket/train.bin", "cannot be fetched"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=what):
            prepare(config(uri, tmp_path / "data"))
    there = tmp_path / "train.bin"
    np.arange(9, dtype=np.uint16).tofile(there)
    of = config(f"file://{there}", tmp_path / "data")
    prepare(of)
    token_path(of).write_bytes(bytes(18))
    with pytest.raises(DataError, match=r"was altered.*; delete the folder"):
        prepare(of)


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A server with one bucket."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with started_s3(tmp_path) as server:
        yield server


def test_from_s3(s3: S3, tmp_path: Path) -> None:
    """The same bytes by way of a server."""
    uri = s3.uri("corpus/train.bin")
    store, inside = pafs.FileSystem.from_uri(uri)
    with store.open_output_stream(inside) as file:
        file.write(np.arange(9, dtype=np.uint16).tobytes())
    assert first_batch(config(uri, tmp_path / "data")) == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
