"""Parquet for `ray_data`: the samples of every other source, described and checked; and somebody else's, checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.layout import sample_of
from raybench.sources.parquet import column, parquet_folder
from raybench.sources.prepare import prepare, verify
from raybench.sources.records import records
from raybench.sources.registry import share
from raybench.spec.config import Source, TrialConfig
from raybench.spec.families.resnet import RESNET
from raybench.spec.models.resnet import ResNetShape
from tests.factories import make_config


def config(**source: Any) -> TrialConfig:
    """Pairs of 2 x 4 tokens below 97."""
    values = {"num_samples": 11, "num_shards": 3} | source
    return make_config(seq_len=4, vocab_size=97, seed=5, source=Source(name="ray_data", **values))


def stored(of: TrialConfig) -> np.ndarray[Any, Any]:
    """All rows, as anybody's reader sees them."""
    return np.stack(pd.read_parquet(parquet_folder(of))[column(of)].to_list())


def test_the_samples_of_every_other_source(tmp_path: Path) -> None:
    """11 over 3 files are 4, 4 and 3; row i is sample i, its tokens in the smallest type."""
    of = config(data_dir=str(tmp_path))
    prepare(of)
    assert [pq.read_metadata(path).num_rows for path in sorted(parquet_folder(of).glob("*.parquet"))] == [4, 4, 3]
    found = stored(of)
    assert found.dtype == np.uint16
    assert (found == records(5, np.arange(11), sample_of(of)).reshape(11, 8)).all()


def test_images_are_their_records(tmp_path: Path) -> None:
    """A label of 8 bytes and 3 x 33 x 33 pixels."""
    of = make_config(
        workload="resnet", model=ResNetShape(image_size=33, num_classes=10), model_name="custom", seq_len=None,
        vocab_size=None, source=Source(name="ray_data", num_samples=4, data_dir=str(tmp_path)),
    )  # fmt: skip
    assert RESNET.name == of.workload
    prepare(of)
    assert column(of) == "record"
    assert (stored(of) == records(0, np.arange(4), sample_of(of))).all()
    assert stored(of).shape == (4, 8 + 3 * 33 * 33)


def test_other_parameters_are_another_folder(tmp_path: Path) -> None:
    """Also another number of files: they are what is measured."""
    of = config(data_dir=str(tmp_path))
    others = [of.model_copy(update={"seed": 6}), config(data_dir=str(tmp_path), num_shards=2)]
    assert len({parquet_folder(each) for each in (of, *others)}) == 3


def test_without_its_manifest_it_is_made_again(tmp_path: Path) -> None:
    """Whatever lies there; with it nothing is written."""
    of = config(data_dir=str(tmp_path))
    prepare(of)
    folder = parquet_folder(of)
    first = folder / "shard_0000.parquet"
    before = first.stat().st_mtime_ns
    prepare(of)
    assert first.stat().st_mtime_ns == before
    (folder / "_manifest.json").unlink()
    first.write_bytes(b"cut")
    prepare(of)
    assert len(stored(of)) == 11


def test_a_killed_preparation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the manifest: what was finished is kept, what was cut is made anew."""
    of = config(data_dir=str(tmp_path))
    monkeypatch.setattr(manifest, "write_to", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare(of)
    monkeypatch.undo()
    first, second = (parquet_folder(of) / f"shard_000{shard}.parquet" for shard in (0, 1))
    before = first.stat().st_mtime_ns
    second.write_bytes(second.read_bytes()[:-9])
    prepare(of)
    assert first.stat().st_mtime_ns == before
    assert (stored(of) == records(5, np.arange(11), sample_of(of)).reshape(11, 8)).all()


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_every_byte_can_be_hashed(tmp_path: Path) -> None:
    """Three million tokens are more than the first and last MB: only `verify` finds a byte between them."""
    of = config(data_dir=str(tmp_path), num_samples=400_000, num_shards=1)
    prepare(of)
    verify(of)
    (path,) = parquet_folder(of).glob("*.parquet")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    prepare(of)
    with pytest.raises(DataError, match=r"shard_0000.parquet was altered: its SHA-256"):
        verify(of)


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)


def foreign(path: Path) -> None:
    path.with_name("another.parquet").write_bytes(path.read_bytes())


SPOILERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.unlink(), r"shard_0001.parquet is missing"),
    (lambda path: path.write_bytes(b""), r"shard_0001.parquet has 0 bytes instead of \d+"),
    (alter, r"shard_0001.parquet was altered"),
    (foreign, r"another.parquet does not belong there"),
    (lambda path: (path.unlink(), path.mkdir()), r"shard_0001.parquet is no file"),
    (lambda path: path.with_name("_manifest.json").write_text("{}"), r"_manifest.json cannot be read"),
    (lambda path: other_layout(path.with_name("_manifest.json")), r"_manifest.json describes another data set"),
]


def other_layout(manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    content["layout"]["seed"] = 9
    manifest.write_text(json.dumps(content))


@pytest.mark.parametrize(("spoil", "what"), SPOILERS)
def test_what_was_spoilt(tmp_path: Path, spoil: Callable[[Path], object], what: str) -> None:
    """Named with the cure, and not read."""
    of = config(data_dir=str(tmp_path))
    prepare(of)
    spoil(parquet_folder(of) / "shard_0001.parquet")
    with pytest.raises(DataError, match=f"{what}.*; delete the folder .* and run again"):
        prepare(of)


def own(folder: Path, rows: Any, **options: Any) -> TrialConfig:
    """A config that reads a file of these rows, its column called `text`."""
    folder.mkdir(exist_ok=True)
    kind = options.pop("kind", pa.list_(pa.uint16(), 8))
    pq.write_table(pa.table({"id": range(len(rows)), "text": pa.array(rows, kind)}), folder / "a.parquet", **options)
    return config(path=str(folder), column="text", num_samples=3, num_shards=None)


ROWS = [[1, 2, 3, 4, 5, 6, 7, 96]] * 3


@pytest.mark.parametrize("kind", [pa.list_(pa.uint16(), 8), pa.list_(pa.int32()), pa.large_list(pa.int64())])
@pytest.mark.parametrize("statistics", [True, False])
def test_somebody_else_s(tmp_path: Path, kind: pa.DataType, statistics: bool) -> None:
    """Lists of fixed or any length, with statistics or without; nothing is written beside them."""
    prepare(own(tmp_path / "own", ROWS, kind=kind, write_statistics=statistics))
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["a.parquet"]


LIST = pa.list_(pa.int32())
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (ROWS[:2], {}, r"holds 2 rows, and source.num_samples asks for 3; give at most 2"),
    ([*ROWS, [97] * 8], {}, r"holds token 97, which vocab_size 97 does not reach; give vocab_size at least 98"),
    ([*ROWS, [97] * 8], {"write_statistics": False}, r"give vocab_size at least 98"),
    ([*ROWS, [-1] * 8], {"kind": LIST}, r"holds the negative number -1, which is no token"),
    ([*ROWS, [1] * 7], {"kind": LIST}, r"has rows of 7 tokens, and a sample has 8; give the seq_len"),
    ([[1] * 9] * 3, {"kind": pa.list_(pa.int32(), 9)}, r"has rows of 9 tokens, and a sample has 8"),
    ([*ROWS, None], {"kind": LIST}, r"has rows without tokens"),
    ([*ROWS, [None] * 8], {}, r"has missing tokens"),
    ([*ROWS, [None] * 8], {"kind": LIST}, r"has missing tokens"),
    ([[0.5] * 8] * 3, {"kind": pa.list_(pa.float32(), 8)}, r"holds fixed_size_list<.*float.*must be a list of uint16"),
    (["a word"] * 3, {"kind": pa.string()}, r"column text holds string; each row must be a list of uint16"),
]


@pytest.mark.parametrize(("rows", "options", "what"), WRONG)
def test_somebody_else_s_that_will_not_do(tmp_path: Path, rows: Any, options: dict[str, Any], what: str) -> None:
    """File, reason and cure, before anything runs."""
    with pytest.raises(DataError, match=what):
        prepare(own(tmp_path / "own", rows, **options))


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    """The default is `tokens`; those that there are are named."""
    of = own(tmp_path / "own", ROWS)
    assert of.source is not None
    named = of.model_copy(update={"source": of.source.model_copy(update={"column": None})})
    with pytest.raises(DataError, match=r"has no column tokens; it has id, text: give source.column one of them"):
        prepare(named)


def test_another_dtype(tmp_path: Path) -> None:
    of = own(tmp_path / "own", ROWS)
    assert of.source is not None
    asked = of.model_copy(update={"source": of.source.model_copy(update={"dtype": "int32"})})
    with pytest.raises(DataError, match=r"holds uint16 and source.dtype says int32"):
        prepare(asked)


def test_no_folder_and_no_parquet(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere is no folder of Parquet files"):
        prepare(config(path=str(tmp_path / "nowhere")))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"a.parquet cannot be read as Parquet"):
        prepare(config(path=str(tmp_path)))


def test_epochs_of_what_ranks_are_given() -> None:
    """Of 11 rows two ranks get 5 each: with 2 a step an epoch lasts 5 steps, whereas a cycle of 11 goes on."""
    of = config(num_samples=11).model_copy(update={"micro_batch": 1})
    assert [share(of, 0, 2).epoch(step) for step in (0, 4, 5, 9, 10)] == [0, 0, 1, 1, 2]
