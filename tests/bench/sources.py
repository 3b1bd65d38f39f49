"""How fast `shards` and `tokens` hand out batches from the page cache, against plainly reading the same files.

Both arms read every byte once, in the order of the files, with one reader, in calls of one micro-batch into memory made
before, as much of it in both. Tokens are int64 here, so that nothing but reading is in it: narrower ones are widened by
the device. The fastest pass of each arm counts: what they can do is asked, and not what else the machine had to do.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from raybench.sources.layout import folder
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.sources.token_file import token_path
from raybench.spec.config import Source, TrialConfig
from tests.bench.promise import Promise, speed_of
from tests.factories import make_config

MICRO_BATCH, SEQ_LEN, BATCHES = 128, 256, 512        # 512 KiB a batch, 256 MiB in all: pairs of 2 x 256 tokens
BLOCKS = 10
LEAST = 0.7


def measure() -> list[Promise]:
    """10 blocks of source, plain, plain, source for each; first once through, so that all lies in the page cache."""
    with tempfile.TemporaryDirectory() as root:
        return [_against_plain(_config(name, Path(root))) for name in ("shards", "tokens")]


def _config(name: str, root: Path) -> TrialConfig:
    source = Source(name=name, data_dir=str(root), num_samples=MICRO_BATCH * BATCHES, dtype="int64")
    return make_config(num_workers=1, micro_batch=MICRO_BATCH, seq_len=SEQ_LEN, source=source)


def _against_plain(config: TrialConfig) -> Promise:
    prepare(config)
    assert config.source is not None
    files = _files(config)
    batches = open_source(config, 0, 1, torch.device("cpu"))

    def source() -> float:
        return _seconds(lambda: next(batches))

    def plain() -> float:
        with PlainReader(files) as reader:
            return _seconds(reader.read)

    source(), plain()
    blocks = [(source(), plain(), plain(), source()) for _ in range(BLOCKS)]
    batches.close()
    speed = speed_of(blocks, "passes")
    what = f"{config.source.name}: batches over plain reading, fastest of {2 * BLOCKS} passes each"
    return Promise(what, speed.words, f"at least {LEAST}", speed.fastest >= LEAST)


def _files(config: TrialConfig) -> list[Path]:
    assert config.source is not None
    return [token_path(config)] if config.source.name == "tokens" else sorted(folder(config).glob("shard_*.bin"))


def _seconds(one: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(BATCHES):
        one()
    return time.perf_counter() - started


class PlainReader:
    """Reads files one after the other, a micro-batch a call, into as many places by turns as the source has."""

    def __init__(self, files: list[Path]) -> None:
        self._memory = [bytearray(MICRO_BATCH * 2 * SEQ_LEN * 8) for _ in range(Source().prefetch + 1)]
        self._reads = 0
        self._files = [os.open(path, os.O_RDONLY) for path in files]
        self._current = 0

    def read(self) -> None:
        """The next micro-batch."""
        view = memoryview(self._memory[self._reads % len(self._memory)])
        self._reads += 1
        while len(view):
            got = os.readv(self._files[self._current], [view])
            view = view[got:]
            self._current += got == 0

    def __enter__(self) -> PlainReader:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            os.close(file)
