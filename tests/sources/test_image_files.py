"""Images in Parquet: what is prepared, what a rank is given of it, and what is said of a damaged one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raybench.errors import DataError, UnsupportedError
from raybench.sources.encoding import UndecodableError, decoded, encoded
from raybench.sources.image_files import image_folder
from raybench.sources.images import image_records, unpack_images
from raybench.sources.loader import LoaderBatches
from raybench.sources.parquet import NAME
from raybench.sources.prepare import prepare, verify
from raybench.sources.registry import open_source, share
from raybench.spec.config import Source, TrialConfig
from raybench.spec.models.resnet import ResNetShape
from raybench.spec.samples import Images, ImageSample
from tests.factories import make_config

CPU = torch.device("cpu")
SAMPLE = ImageSample(channels=3, height=6, width=6, num_classes=7)


def config(root: Path, name: str = "images", *, workers: int = 2, **changes: Any) -> TrialConfig:
    """Images of 6 x 6 pixels over some ranks, as PNG unless another format is asked for."""
    batch = {"micro_batch": changes.pop("micro_batch", 3), "grad_accum": changes.pop("grad_accum", 2)}
    image_format = {"image_format": changes.pop("image_format", "png")} if name == "images" else {}
    options = {"num_samples": 11, "num_shards": 3, "loader_workers": 0, **image_format, **changes}
    return make_config(
        workload="resnet", model=ResNetShape(image_size=6, num_classes=7), seq_len=None, vocab_size=None, seed=5,
        num_workers=workers, source=Source(name=name, data_dir=str(root), **options), **batch,
    )  # fmt: skip


def batches(of: TrialConfig, rank: int, count: int) -> list[Images]:
    """The first micro-batches of a rank, copied."""
    prepare(of)
    source = open_source(of, rank, of.num_workers, CPU)
    try:
        return [Images(*(part.clone() for part in next(source))) for _ in range(count)]
    finally:
        source.close()


def spoil(of: TrialConfig, row: int, content: bytes | None = None, label: int | None = None) -> Path:
    """Change a row of the first shard, whose manifest nobody looks at any more."""
    path = image_folder(of) / "shard_0000.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[row] = {"image": rows[row]["image"] if content is None else content, "label": 0 if label is None else label}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return path


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    num_samples=st.integers(1, 20), num_shards=st.integers(1, 25), micro_batch=st.integers(1, 7),
    grad_accum=st.integers(1, 3), rank=st.integers(0, 2),
)  # fmt: skip
def test_the_same_samples_as_every_source(
    tmp_path: Path, num_samples: int, num_shards: int, micro_batch: int, grad_accum: int, rank: int
) -> None:
    """Over sizes, ranks and shard counts that do not divide; PNG loses nothing."""
    of = {
        name: config(tmp_path, name, workers=3, num_samples=num_samples, num_shards=num_shards,
                     micro_batch=micro_batch, grad_accum=grad_accum)
        for name in ("images", "shards")
    }  # fmt: skip
    for ours, theirs in zip(batches(of["images"], rank, 6), batches(of["shards"], rank, 6), strict=True):
        assert torch.equal(ours.images, theirs.images)
        assert torch.equal(ours.labels, theirs.labels)


def test_each_image_once_an_epoch_over_all_ranks(tmp_path: Path) -> None:
    """12 images over two ranks in batches of 3: one step of 2 x 2 x 3 is an epoch, and each image is in it once."""
    of = config(tmp_path, num_samples=12)
    found = [image for rank in (0, 1) for batch in batches(of, rank, 2) for image in batch.images]
    wanted = unpack_images(torch.from_numpy(image_records(5, np.arange(12), SAMPLE)), SAMPLE).images
    assert sorted(image.numpy().tobytes() for image in found) == sorted(image.numpy().tobytes() for image in wanted)


def test_loader_processes_decode_in_order_and_are_gone_afterwards(tmp_path: Path) -> None:
    """Two processes by turns, over more than two epochs; their CPU time is told; closed, they have ended."""
    of = config(tmp_path, loader_workers=2)
    prepare(of)
    source = open_source(of, 1, 2, CPU)
    assert isinstance(source, LoaderBatches)
    part = share(of, 1, 2)
    for micro in range(9):
        batch = next(source)
        assert isinstance(batch, Images)
        wanted = unpack_images(torch.from_numpy(image_records(5, part.indices(micro), SAMPLE)), SAMPLE)
        assert torch.equal(batch.images, wanted.images)
        assert torch.equal(batch.labels, wanted.labels)
    processes = source.processes
    assert len(processes) == 2
    assert source.cpu_s() > 0
    source.close()
    _until_gone(processes)


def test_loader_processes_end_when_the_rank_is_killed(tmp_path: Path) -> None:
    """SIGKILL leaves the rank no time to end them."""
    code = """
        import sys, time, torch
        from pathlib import Path
        from tests.sources.test_image_files import config
        from raybench.sources.prepare import prepare
        from raybench.sources.registry import open_source
        if __name__ == "__main__":
            of = config(Path(sys.argv[1]), loader_workers=2)
            prepare(of)
            source = open_source(of, 0, 2, torch.device("cpu"))
            next(source)
            print(*source.processes, flush=True)
            time.sleep(600)
    """
    script = tmp_path / "rank.py"
    script.write_text(textwrap.dedent(code))
    root = Path(__file__).parents[2]
    rank = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert rank.stdout is not None
    processes = [int(pid) for pid in rank.stdout.readline().split()]
    assert len(processes) == 2
    rank.send_signal(signal.SIGKILL)
    rank.wait()
    rank.stdout.close()
    _until_gone(processes)


@pytest.mark.parametrize("loader_workers", [0, 1])
def test_a_damaged_image_names_file_and_row(tmp_path: Path, loader_workers: int) -> None:
    """Cut in the middle: never grey pixels, but one line. Rank 0 is given row 2 in its first batch."""
    of = config(tmp_path, loader_workers=loader_workers)
    prepare(of)
    (record,) = image_records(5, np.array([2]), SAMPLE)
    path = spoil(of, 2, content=encoded(record[8:].reshape(3, 6, 6), "png")[:60])
    source = open_source(of, 0, 2, CPU)
    with pytest.raises(DataError, match=rf"^{path} row 2 cannot be decoded \(.*\); delete the folder .* run again$"):
        next(source)
    source.close()


def test_what_else_may_be_wrong_with_a_row(tmp_path: Path) -> None:
    """A label that no class has; a file that ends too early; an image of another size; bytes of another kind."""
    of = config(tmp_path)
    prepare(of)
    spoil(of, 1, label=7)
    with pytest.raises(DataError, match="row 1 has the label 7, and there are 7 classes"):
        next(open_source(of, 0, 2, CPU))
    (image_folder(of) / "shard_0000.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"shard_0000.parquet cannot be read at row 0 \("):
        next(open_source(of, 0, 2, CPU))
    with pytest.raises(UndecodableError, match="is 4 x 5 pixels instead of 6 x 6"):
        decoded(encoded(np.zeros((3, 5, 4), np.uint8), "jpeg"), 6, 6)
    for content in (b"", b"\x80\x04pickled", b"GIF89a" + bytes(100), b"\x89PNG\r\n\x1a\n" + bytes(30)):
        with pytest.raises(UndecodableError, match="cannot be decoded"):
            decoded(content, 6, 6)


def test_what_lies_on_the_disk(tmp_path: Path) -> None:
    """Bytes and labels, of which anybody's decoder makes the same; another format is another folder; and a second time
    nothing is written."""
    of, other = config(tmp_path), config(tmp_path, image_format="jpeg")
    prepare(of)
    rows = pq.read_table(image_folder(of)).to_pylist()
    records = image_records(5, np.arange(11), SAMPLE)
    assert [row["label"] for row in rows] == unpack_images(torch.from_numpy(records), SAMPLE).labels.tolist()
    assert all(row["image"].startswith(b"\x89PNG") for row in rows)
    assert image_folder(of) != image_folder(other)
    before = (image_folder(of) / NAME).stat().st_mtime_ns
    prepare(of)
    assert (image_folder(of) / NAME).stat().st_mtime_ns == before
    verify(of)
    os.truncate(image_folder(of) / "shard_0001.parquet", 100)
    with pytest.raises(DataError, match=r"shard_0001.parquet has 100 bytes instead of"):
        prepare(of)


def test_jpeg_is_nearly_the_same_picture(tmp_path: Path) -> None:
    """Of a smooth ramp each pixel comes back within 8 of 255."""
    ramp = np.broadcast_to(np.arange(0, 240, 15, dtype=np.uint8), (3, 16, 16))
    assert np.abs(decoded(encoded(ramp, "jpeg"), 16, 16).astype(int) - ramp.astype(int)).max() <= 8
    (batch,) = batches(config(tmp_path, image_format="jpeg"), 0, 1)
    assert (batch.images.shape, batch.images.dtype) == ((3, 3, 6, 6), torch.uint8)


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the cure, before anything is written."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r"needs Pillow on every node: pip install 'raybench\[images\]'"):
        prepare(config(tmp_path))
    assert list(tmp_path.iterdir()) == []


def _until_gone(pids: list[int], limit_s: float = 120.0) -> None:
    """A process that only waits to be asked for its end by its parent is gone, too."""
    deadline = time.monotonic() + limit_s
    while alive := [pid for pid in pids if _lives(pid)]:
        assert time.monotonic() < deadline, f"{alive} live on"
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
