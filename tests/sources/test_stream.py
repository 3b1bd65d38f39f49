"""Batches of a stream: whole passes one after the other, filled over their seams, and begun before they are needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from raybench.errors import DataError
from raybench.sources.stream import Rows, StreamBatches, finished_passes

CPU = torch.device("cpu")


class Passes:
    """A stream that gives these rows each time, each one number, and counts how often it was begun."""

    def __init__(self, rows: Sequence[int], error: Exception | None = None) -> None:
        self.rows, self.error = torch.tensor(rows).view(-1, 1), error
        self.asked: list[dict[str, Any]] = []
        self.begun = threading.Semaphore(0)
        self.closed = threading.Semaphore(0)

    def iter_torch_batches(self, **options: Any) -> Iterator[dict[str, torch.Tensor]]:
        self.asked.append(options)
        self.begun.release()
        try:
            for piece in self.rows.split(options["batch_size"]):
                yield {"tokens": piece}
            if self.error is not None:
                raise self.error
        finally:
            self.closed.release()


def batches(streams: Sequence[Passes], micro_batch: int, a_pass: int) -> StreamBatches:
    rows = Rows(column="tokens", micro_batch=micro_batch, shape=(1,), prefetch=3, a_pass=a_pass)
    return StreamBatches(streams, rows, lambda records: records, CPU)


def taken(source: StreamBatches, count: int) -> list[list[int]]:
    found = []
    for _ in range(count):
        batch = next(source)
        assert isinstance(batch, torch.Tensor)
        found.append(batch.flatten().tolist())
    return found


def test_passes_follow_each_other_without_a_seam() -> None:
    """Passes of 5 in batches of 2, from each stream in turn: the third batch is the last of one and the first of the
    other. Nothing is dropped or padded.
    """
    source = batches([Passes([0, 1, 2, 3, 4]), Passes([10, 11, 12, 13, 14])], 2, 5)
    assert taken(source, 6) == [[0, 1], [2, 3], [4, 10], [11, 12], [13, 14], [0, 1]]
    assert finished_passes(source) == (5, 5)
    source.close()


def test_a_batch_of_several_passes() -> None:
    """Passes of 2 rows, batches of 5."""
    source = batches([Passes([0, 1]), Passes([2, 3])], 5, 2)
    assert taken(source, 2) == [[0, 1, 2, 3, 0], [1, 2, 3, 0, 1]]
    assert finished_passes(source) == (2, 2, 2, 2)
    source.close()


def test_batches_that_fit_are_handed_on_as_they_are() -> None:
    """No copy where a pass divides: the memory is the stream's own."""
    stream = Passes(range(4))
    source = batches([stream, stream], 2, 4)
    first = next(source)
    assert isinstance(first, torch.Tensor)
    assert first.data_ptr() == stream.rows.data_ptr()
    source.close()


def test_the_next_pass_is_begun_before_this_one_ends() -> None:
    """Once half of a pass of 8 is taken, in batches of 2: after the second batch, and not after the first."""
    streams = [Passes(range(8)), Passes(range(8))]
    source = batches(streams, 2, 8)
    taken(source, 1)
    assert not streams[1].begun.acquire(blocking=False)
    taken(source, 1)
    assert streams[1].begun.acquire(timeout=60)
    taken(source, 3)      # into the second pass, for which the first stream was not begun again yet
    assert len(streams[0].asked) == 1
    source.close()


def test_what_a_stream_is_asked() -> None:
    """Whole micro-batches, as many ahead as the config says, no row dropped, in the host's memory."""
    stream = Passes(range(4))
    source = batches([stream, stream], 2, 4)
    taken(source, 1)
    source.close()
    assert stream.asked[0] == {
        "batch_size": 2, "prefetch_batches": 3, "drop_last": False, "device": "cpu", "pin_memory": False,
    }  # fmt: skip


def test_closing_ends_every_pass_that_was_begun() -> None:
    """The one that is read and the one that waits for its turn; a second time is no mistake."""
    streams = [Passes(range(4)), Passes(range(4))]
    source = batches(streams, 2, 4)
    taken(source, 1)
    source.close()
    source.close()
    assert all(stream.closed.acquire(timeout=60) for stream in streams)


class Waiting(Passes):
    """Begins when it is let, as where the other ranks have not come yet."""

    def __init__(self) -> None:
        super().__init__(range(4))
        self.let = threading.Event()

    def iter_torch_batches(self, **options: Any) -> Iterator[dict[str, torch.Tensor]]:
        self.let.wait(60)
        return super().iter_torch_batches(**options)


def test_closing_does_not_wait_for_a_pass_that_never_begins() -> None:
    """A peer that has failed does not come any more; when the stream lets go, the pass is ended all the same."""
    waiting = Waiting()
    source = batches([Passes(range(4)), waiting], 2, 4)
    taken(source, 1)
    source.close()
    assert waiting.asked == []
    waiting.let.set()
    assert waiting.closed.acquire(timeout=60)


@pytest.mark.parametrize("error", [FileNotFoundError("gone.parquet"), ValueError("Parquet magic bytes not found")])
@pytest.mark.parametrize("first", [0, 3])
def test_a_file_that_cannot_be_read_is_a_data_error(error: Exception, first: int) -> None:
    """Before the first batch or after it, told with the last line of what was raised."""
    source = batches([Passes(range(first), error)] * 2, 1, 4)
    with pytest.raises(DataError, match=str(error)):
        taken(source, first + 1)
    source.close()


def test_what_is_no_fault_of_the_files_is_raised_as_it_is() -> None:
    source = batches([Passes([], RuntimeError("the actor died"))] * 2, 1, 4)
    with pytest.raises(RuntimeError, match="the actor died"):
        next(source)
    source.close()


def test_a_pass_without_a_row() -> None:
    """More ranks than rows would ask for ever."""
    source = batches([Passes([])] * 2, 1, 1)
    with pytest.raises(DataError, match="no row for this rank"):
        next(source)
    source.close()
