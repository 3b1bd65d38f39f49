"""Cold against warm on real files, told apart by what the kernel fetched."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raybench.engine.session import Session
from raybench.engine.storage_reads import storage_read_bytes
from raybench.measure.page_cache import cache_state
from raybench.record.rank import RankResult
from raybench.sources.prepare import prepare
from raybench.spec.config import Extent, Source, TrialConfig
from tests.disks import in_memory, on_storage
from tests.engine.small import encdec, fake, place

WARMUP, STEPS, MICRO_BATCH, SAMPLE_BYTES = 8, 600, 32, 2 * 256 * 2
FILE_BYTES = STEPS * MICRO_BATCH * SAMPLE_BYTES      # 20 MB, in batches of 32 KiB
BATCHES_A_SHARD = 4


@pytest.fixture(scope="module")
def session() -> Session:
    """One for all."""
    return Session(place())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on a disk, for the same data in all tests."""
    return on_storage(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _hardly_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybench.engine.build.workload", lambda name: fake("tests.engine.small:one_weight"))


def config(root: Path, name: str, **changes: Any) -> TrialConfig:
    """Window and warm-up together are one epoch, in small shards: the kernel reads ahead to the end of a file, so that
    what it fetched before the window, or for what comes after it, is little.
    """
    source = Source(
        name=name, num_samples=(WARMUP + STEPS) * MICRO_BATCH, num_shards=(WARMUP + STEPS) // BATCHES_A_SHARD,
        data_dir=str(root), dtype="uint16", loader_workers=changes.pop("loader_workers", 0),
    )  # fmt: skip
    return encdec(
        seq_len=256, vocab_size=1000, micro_batch=MICRO_BATCH, source=source, warmup=Extent(steps=WARMUP),
        measure=Extent(steps=STEPS), **changes,
    )  # fmt: skip


def run(session: Session, of: TrialConfig) -> RankResult:
    """Prepared and run, as a worker does it."""
    prepare(of)
    return session.run(of)


def run_until(right: Callable[[RankResult], bool], session: Session, of: TrialConfig) -> RankResult:
    """At most three runs: on a busy machine pages of programs are fetched from the disk, too, and counted."""
    found = run(session, of)
    for _ in range(2):
        if right(found):
            break
        found = run(session, of)
    return found


@pytest.mark.parametrize("loader_workers", [0, 1])
def test_what_was_fetched_accounts_for_cold_and_warm(session: Session, root: Path, loader_workers: int) -> None:
    """Cold: the bytes of the window's batches within 2 %. Warm: none, again within 2 %. Loader processes count."""
    for data_cache, expected in (("cold", FILE_BYTES), ("warm", 0)):
        right = pytest.approx(expected, abs=0.02 * FILE_BYTES)
        of = config(root, "shards", data_cache=data_cache, loader_workers=loader_workers)
        found = run_until(lambda found, right=right: found.storage_read_bytes == right, session, of)
        assert (found.file_bytes, found.storage_read_bytes) == (FILE_BYTES, right)


def test_a_whole_epoch_of_one_file(session: Session, root: Path) -> None:
    """From opening it to the last step the file is fetched once, within 2 %, however far ahead the kernel reads."""
    of = config(root, "tokens", data_cache="cold")
    prepare(of)
    before = storage_read_bytes()
    found = session.run(of)
    after = storage_read_bytes()
    assert before is not None
    assert after is not None
    assert found.file_bytes == FILE_BYTES
    assert after - before == pytest.approx(FILE_BYTES * (WARMUP + STEPS) / STEPS, rel=0.02)


def test_a_second_epoch_is_no_disk_s(session: Session, root: Path) -> None:
    """The window goes three times over the data: at most a third of it can have come from the disk."""
    of = config(root, "shards", data_cache="cold")
    assert of.source is not None
    small = of.source.model_copy(update={"num_samples": STEPS * MICRO_BATCH // 3})
    found = run(session, of.model_copy(update={"source": small}))
    assert found.file_bytes == FILE_BYTES
    assert cache_state(found.file_bytes, found.storage_read_bytes) == "mixed"


def test_a_memory_file_system_is_told(session: Session, memory_folder: Path) -> None:
    """Asked for cold, nothing can be dropped: all came from memory, and the row says so."""
    found = run(session, config(memory_folder, "tokens", data_cache="cold"))
    assert cache_state(found.file_bytes, found.storage_read_bytes) == "warm"


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder in memory."""
    folder = Path(tempfile.mkdtemp(dir=in_memory()))
    yield folder
    shutil.rmtree(folder)
