"""The micro-batches of every source, which must be the same tokens."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raybench.errors import DataError
from raybench.sources.layout import folder, layout, sample_of
from raybench.sources.prepare import prepare
from raybench.sources.records import unpack
from raybench.sources.registry import open_source, share
from raybench.sources.ring import RingBatches
from raybench.sources.shards import ShardReader
from raybench.sources.tokens import tokens
from raybench.spec.config import Source, TrialConfig
from raybench.spec.families.decoder import DECODER
from raybench.spec.samples import TokenSample
from tests.factories import make_config

CPU = torch.device("cpu")


def config(root: Path, name: str, **source: Any) -> TrialConfig:
    """Tiny sequences over two workers from a source of that name."""
    options: dict[str, Any] = {"num_samples": 11, "num_shards": 3} | source
    return make_config(
        seq_len=4, vocab_size=97, micro_batch=3, grad_accum=2, seed=5,
        source=Source(name=name, data_dir=str(root), **options),
    )  # fmt: skip


def batches(of: TrialConfig, rank: int, count: int) -> list[torch.Tensor]:
    """The first micro-batches of a rank, copied, as a source gives them."""
    prepare(of)
    source = open_source(of, rank, of.num_workers, CPU)
    try:
        return [next(source).clone() for _ in range(count)]
    finally:
        source.close()


def expected(of: TrialConfig, rank: int, count: int) -> list[torch.Tensor]:
    """The same batches by the rule: tokens of a rank's indices."""
    part = share(of, rank, of.num_workers)
    return [torch.from_numpy(tokens(5, part.indices(micro), TokenSample((2, 4), 97))) for micro in range(count)]


@pytest.mark.parametrize("name", ["device", "memory", "generate", "shards", "tokens"])
@pytest.mark.parametrize("rank", [0, 1])
def test_every_source_gives_the_rule_s_tokens(tmp_path: Path, name: str, rank: int) -> None:
    """12 samples a step over a cycle of 11: every batch sooner or later wraps around."""
    of = config(tmp_path, name)
    for got, wanted in zip(batches(of, rank, 24), expected(of, rank, 24), strict=True):
        assert torch.equal(got, wanted)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(num_samples=st.integers(1, 20), num_shards=st.integers(1, 25), micro=st.integers(0, 40), rank=st.integers(0, 1))
def test_shards_give_the_same_tokens_however_they_are_cut(
    tmp_path: Path, num_samples: int, num_shards: int, micro: int, rank: int
) -> None:
    """More shards than samples, batches larger than the data set, counts that do not divide."""
    of = config(tmp_path, "shards", num_samples=num_samples, num_shards=num_shards)
    wanted = tokens(5, share(of, rank, 2).indices(micro), TokenSample((2, 4), 97))
    assert np.array_equal(batches(of, rank, micro + 1)[micro].numpy(), wanted)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    num_samples=st.integers(1, 20), num_shards=st.integers(1, 25), micro_batch=st.integers(1, 7),
    grad_accum=st.integers(1, 3), rank=st.integers(0, 2), prefetch=st.integers(0, 3), workload=st.integers(0, 1),
    dtype=st.sampled_from([None, "uint16", "int32", "int64"]),
)  # fmt: skip
def test_every_source_gives_the_same_samples(
    tmp_path: Path, num_samples: int, num_shards: int, micro_batch: int, grad_accum: int, rank: int, prefetch: int,
    workload: int, dtype: Any,
) -> None:  # fmt: skip
    """Over sizes, ranks and shard counts that do not divide; pairs of their own, and sequences that share a token."""
    kind = {"workload": "decoder", "model": DECODER.presets["small"]} if workload else {"workload": "encdec"}
    found = {}
    for name in ("device", "memory", "generate", "shards", "tokens"):
        of = make_config(
            **kind, seq_len=5, vocab_size=97, micro_batch=micro_batch, grad_accum=grad_accum, num_workers=3, seed=9,
            source=Source(
                name=name, data_dir=str(tmp_path), num_samples=num_samples, num_shards=num_shards, prefetch=prefetch,
                dtype=dtype,
            ),
        )  # fmt: skip
        found[name] = torch.stack(batches(of, rank, 6))
    assert found["device"].dtype == torch.int64
    for name, got in found.items():
        assert torch.equal(got, found["device"]), name


@pytest.mark.parametrize("name", ["device", "memory", "generate", "shards", "tokens"])
@pytest.mark.parametrize(("workers", "num_shards"), [(1, 1), (2, 5), (3, 7)])
def test_each_sample_exactly_once_an_epoch(tmp_path: Path, name: str, workers: int, num_shards: int) -> None:
    """36 pairs, 12 a step over all ranks: of three steps each pair is one row, and there is no other."""
    of = make_config(
        seq_len=4, vocab_size=2**16, micro_batch=12 // workers, num_workers=workers, seed=5,
        source=Source(name=name, data_dir=str(tmp_path), num_samples=36, num_shards=num_shards),
    )  # fmt: skip
    rows = torch.cat([batch for rank in range(workers) for batch in batches(of, rank, 3)])
    data_set = torch.from_numpy(tokens(5, np.arange(36), TokenSample((2, 4), 2**16)))
    assert len(rows.flatten(1).unique(dim=0)) == 36
    assert torch.equal(rows.flatten(1).unique(dim=0), data_set.flatten(1).unique(dim=0))


def test_sequences_of_a_decoder_share_a_token(tmp_path: Path) -> None:
    """Sample i is tokens i T to i T + T of one stream: its last token is the first of the next."""
    of = make_config(
        workload="decoder", model=DECODER.presets["small"], seq_len=4, vocab_size=97, num_workers=1, micro_batch=5,
        source=Source(num_samples=5),
    )  # fmt: skip
    (batch,) = batches(of, 0, 1)
    assert batch.shape == (5, 5)
    assert torch.equal(batch[1:, 0], batch[:-1, -1])
    stream = tokens(0, np.arange(6), TokenSample((4,), 97)).reshape(-1)
    assert np.array_equal(batch[3].numpy(), stream[12:17])


def test_the_reader_is_ahead_and_stops(tmp_path: Path) -> None:
    """With 3 ahead, 4 micro-batches are read while the first waits to be asked for, and not one more; closed, the
    thread is gone."""
    of = config(tmp_path, "shards", prefetch=3)
    prepare(of)
    read: list[int] = []
    enough = threading.Event()

    class Counted(ShardReader):
        def fill(self, micro_step: int, room: torch.Tensor) -> None:
            super().fill(micro_step, room)
            read.append(micro_step)
            if micro_step == 3:
                enough.set()

    filler = Counted(share(of, 0, 2), layout(of), folder(of))
    ring = RingBatches(filler, partial(unpack, sample=sample_of(of)), 3, CPU)
    assert enough.wait(60)
    first = next(ring)
    assert torch.equal(first, expected(of, 0, 1)[0])
    assert read == [0, 1, 2, 3]
    ring.close()
    ring.close()
    assert not any(thread.name == "raybench-reader" for thread in threading.enumerate())


@pytest.mark.parametrize("name", ["generate", "shards"])
def test_loader_processes_keep_the_order(tmp_path: Path, name: str) -> None:
    """Two processes make batches by turns; they come in the order of one."""
    of = config(tmp_path, name, loader_workers=2)
    for got, wanted in zip(batches(of, 1, 9), expected(of, 1, 9), strict=True):
        assert torch.equal(got, wanted)


def test_a_source_gives_everything_back(tmp_path: Path) -> None:
    """No file stays open; closing twice is closing once."""
    of = config(tmp_path, "shards")
    prepare(of)
    source = open_source(of, 0, 2, CPU)
    next(source)
    assert any(str(tmp_path) in path for path in _open_files())
    source.close()
    source.close()
    assert not any(str(tmp_path) in path for path in _open_files())


def test_device_batches_are_slices_of_one_memory(tmp_path: Path) -> None:
    """No copy is made in a step, where the batch wraps around neither (start 9 of 11)."""
    source = open_source(config(tmp_path, "device"), 1, 2, CPU)
    storages = {next(source).untyped_storage().data_ptr() for _ in range(24)}
    assert len(storages) == 1


def test_reading_what_was_not_prepared(tmp_path: Path) -> None:
    """A node without the data says so, before any step."""
    with pytest.raises(DataError, match="is not prepared on this node"):
        open_source(config(tmp_path, "shards"), 0, 2, CPU)


@pytest.mark.parametrize("loader_workers", [0, 1])
@pytest.mark.parametrize("damage", [lambda path: os.truncate(path, 20), os.unlink])
def test_a_shard_that_vanishes_while_it_is_read(tmp_path: Path, damage: object, loader_workers: int) -> None:
    """Cut or deleted after the check: named in one line, and not read as zeros."""
    of = config(tmp_path, "shards", loader_workers=loader_workers)
    prepare(of)
    damage(folder(of) / "shard_0001.bin")  # type: ignore[operator]
    source = open_source(of, 0, 2, CPU)
    with pytest.raises(DataError, match=r"^/.*shard_0001\.bin .*run again$") as caught:
        [next(source) for _ in range(3)]
    assert "\n" not in str(caught.value)
    source.close()


def _open_files() -> list[str]:
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if os.path.exists(link)]
