"""Where prepared samples lie, against numbers worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybench.sources.layout import Layout, automatic_shards, folder, layout, shard_name
from raybench.spec.config import Source
from raybench.spec.samples import TokenSample
from tests.factories import make_config


def small(num_samples: int, num_shards: int) -> Layout:
    """A layout at seq_len 1, so that a sample is 2 x 8 = 16 bytes."""
    return Layout(num_samples=num_samples, sample=TokenSample((2, 1), 2), num_shards=num_shards, seed=0, dtype="<i8")


@pytest.mark.parametrize(
    ("num_samples", "expected"), [(3_750_000, 115), (7_500_000, 229), (1, 1), (32_768, 1), (32_769, 2)]
)
def test_automatic_shard_counts(num_samples: int, expected: int) -> None:
    """At seq_len 256 a sample is 4096 bytes, so 128 MiB hold 32 768 of them (ED-23)."""
    assert automatic_shards(num_samples, TokenSample((2, 256), 8192), "<i8") == expected


def test_a_sample_larger_than_a_shard_has_its_own() -> None:
    """2 x 2**24 x 8 bytes are 256 MiB: more than a shard's 128, so one sample a shard."""
    assert automatic_shards(3, TokenSample((2, 2**24), 2), "<i8") == 3


@pytest.mark.parametrize(
    ("num_samples", "num_shards", "expected"),
    [(10, 6, (2, 2, 2, 2, 2)), (10, 3, (4, 4, 2)), (10, 1, (10,)), (3, 8, (1, 1, 1))],
)
def test_no_shard_is_empty(num_samples: int, num_shards: int, expected: tuple[int, ...]) -> None:
    """ceil(N / shards) samples each, fewer in the last; 10 over 6 is five shards of two, not a sixth of none."""
    assert small(num_samples, num_shards).shard_sizes == tuple(16 * samples for samples in expected)


def test_sizes_sum_to_the_data_set() -> None:
    """3.75 million samples of 4096 bytes are 15.36 GB over 115 shards of about 128 MiB."""
    full = Layout(num_samples=3_750_000, sample=TokenSample((2, 256), 8192), num_shards=115, seed=0, dtype="<i8")
    assert sum(full.shard_sizes) == full.total_bytes == 15_360_000_000
    assert len(full.shard_sizes) == 115
    assert max(full.shard_sizes) <= 128 * 2**20


def test_names_are_four_digits() -> None:
    """ED-21."""
    assert [shard_name(0), shard_name(114)] == ["shard_0000.bin", "shard_0114.bin"]


def test_other_parameters_are_another_folder() -> None:
    """Each number that changes a byte on disk changes the folder's name."""
    base = make_config(source=Source(name="shards", num_samples=100, num_shards=3))
    others = [
        make_config(source=Source(name="shards", num_samples=101, num_shards=3)),
        make_config(source=Source(name="shards", num_samples=100, num_shards=4)),
        make_config(source=base.source, seq_len=65),
        make_config(source=base.source, vocab_size=8193),
        make_config(source=base.source, seed=1),
    ]
    names = {layout(config).folder_name() for config in (base, *others)}
    assert len(names) == 6
    assert layout(make_config(source=base.source, micro_batch=8)).folder_name() == layout(base).folder_name()


def test_where_the_folder_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The config's data_dir wins over RAYBENCH_DATA_DIR, which wins over the user's cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAYBENCH_DATA_DIR", raising=False)
    plain = make_config(source=Source(name="shards"))
    assert folder(plain).parent == tmp_path / ".cache/raybench/data"
    monkeypatch.setenv("RAYBENCH_DATA_DIR", str(tmp_path / "env"))
    assert folder(plain).parent == tmp_path / "env"
    assert folder(make_config(source=Source(name="shards", data_dir="/mnt/nvme"))).parent == Path("/mnt/nvme")
