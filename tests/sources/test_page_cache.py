"""What the page cache holds of prepared data when a trial starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybench.sources.places import data_files
from raybench.sources.prepare import prepare
from raybench.spec.config import Source, TrialConfig
from tests.disks import on_storage, resident_share
from tests.factories import make_config


def config(root: Path, name: str, **changes: object) -> TrialConfig:
    """4 MB of tokens, in two shards or one file."""
    source = Source(name=name, num_samples=2000, num_shards=2, data_dir=str(root), dtype="int64")
    return make_config(seq_len=128, source=source, **changes)


@pytest.mark.parametrize("name", ["shards", "tokens"])
def test_cold_holds_nothing_and_warm_all(tmp_path: Path, name: str) -> None:
    """Also of what was written a moment ago and is not on the disk yet."""
    of = config(on_storage(tmp_path), name, data_cache="cold")
    prepare(of)
    files = data_files(of)
    assert len(files) == (2 if name == "shards" else 1)
    assert [resident_share(file) for file in files] == [0.0] * len(files)
    prepare(of.model_copy(update={"data_cache": "warm"}))
    assert [resident_share(file) for file in files] == [1.0] * len(files)
    prepare(of)
    assert [resident_share(file) for file in files] == [0.0] * len(files)
