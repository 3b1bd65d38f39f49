"""Batches from whatever streams them: one pass of a rank's share of the data set after the other, without a gap.

What streams is built elsewhere and handed in; all that is known of it here is `iter_torch_batches`, as Ray Data calls
it. A pass is costly to begin, and all ranks begin it together. So there are two streams of the same data, and while a
pass of one is under way, the next pass is begun on the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from raybench.errors import DataError
from raybench.sources.base import Batches, Unpack
from raybench.sources.host import Sender
from raybench.spec.samples import Batch


class Stream(Protocol):
    """One rank's share of a data set, pass after pass: each call goes once over it."""

    def iter_torch_batches(
        self, *, batch_size: int, prefetch_batches: int, drop_last: bool, device: str, pin_memory: bool
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Rows by column, (batch_size, values); the last batch of a pass may be shorter."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What is taken of a stream: which column, in batches of how many rows, of which shape, and how far ahead."""

    column: str
    micro_batch: int
    shape: tuple[int, ...]
    prefetch: int
    a_pass: int                  # rows that a pass gives this rank, as far as is known before


class StreamBatches:
    """Micro-batches of a rank. One that a pass does not fill is filled from the next: nothing is dropped or padded.

    `passes`: how many rows each whole pass gave, which is for the streams to decide.
    """

    def __init__(self, streams: Sequence[Stream], rows: Rows, unpack: Unpack, device: torch.device) -> None:
        self._streams, self._rows, self._pinned = streams, rows, device.type == "cuda"
        self._send = Sender(unpack, device)
        self._taken = 0
        self._rest: torch.Tensor | None = None
        self._begun = 0
        self._pass = self._begin()
        self._coming: _Pass | None = None
        self.passes: list[int] = []

    def __next__(self) -> Batch:
        wanted, pieces = self._rows.micro_batch, list[torch.Tensor]()
        while wanted:
            piece = self._some()
            if len(piece) > wanted:
                piece, self._rest = piece[:wanted], piece[wanted:]
            pieces.append(piece)
            wanted -= len(piece)
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        return self._send(whole.unflatten(1, self._rows.shape))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        for begun in (self._pass, self._coming):
            if begun is not None:
                begun.close()
        self._rest = self._coming = None
        self._streams = ()
        self._send.close()

    def _some(self) -> torch.Tensor:
        """Rows that come next in this pass or, where it has ended, in the next."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        while (rows := self._pass.next()) is None:
            self.passes.append(self._taken)
            if not self._taken:
                raise DataError("a whole pass held no row for this rank; give a larger source.num_samples")
            self._taken = 0
            self._pass, self._coming = self._coming or self._begin(), None
        self._taken += len(rows)
        if self._coming is None and 2 * self._taken >= self._rows.a_pass:      # the same on all ranks: they go in step
            self._coming = self._begin()
        return rows

    def _begin(self) -> _Pass:
        assert self._streams, "closed, or opened where nothing streams"
        stream = self._streams[self._begun % len(self._streams)]
        self._begun += 1
        return _Pass(stream, self._rows, pinned=self._pinned)


def finished_passes(batches: Batches) -> tuple[int, ...] | None:
    """How many rows each pass that has ended gave this rank; None where batches are not streamed."""
    return tuple(batches.passes) if isinstance(batches, StreamBatches) else None


class _Pass:
    """One pass, its first batch fetched by a thread: that is when a stream begins, and waits for the other ranks."""

    def __init__(self, stream: Stream, rows: Rows, *, pinned: bool) -> None:
        self._batches: Iterator[dict[str, torch.Tensor]] = iter(())
        self._first: torch.Tensor | None = None
        self._error: Exception | None = None
        self._column, self._closed, self._ending = rows.column, False, threading.Lock()
        self._thread = threading.Thread(
            target=self._open, args=(stream, rows, pinned), name="raybench-stream", daemon=True
        )
        self._thread.start()

    def next(self) -> torch.Tensor | None:
        """Rows, (N, values); None when the pass has ended."""
        self._thread.join()
        if self._error is not None:
            raise _told(self._error) from self._error
        first, self._first = self._first, None
        try:
            return self._following() if first is None else first
        except (OSError, ValueError, KeyError) as error:
            raise _told(error) from error

    def close(self) -> None:
        """Let go of it, and of what it has fetched ahead.

        One that is being begun is not waited for: where a peer has failed, it never will be. It ends when whoever made
        the streams ends them.
        """
        self._closed = True
        if not self._thread.is_alive():
            self._end()

    def _open(self, stream: Stream, rows: Rows, pinned: bool) -> None:
        try:
            batches = stream.iter_torch_batches(
                batch_size=rows.micro_batch, prefetch_batches=rows.prefetch, drop_last=False, device="cpu",
                pin_memory=pinned,
            )  # fmt: skip
            self._batches = iter(batches)
            self._first = self._following()
        except Exception as error:  # noqa: BLE001  raised where the batch is asked for
            self._error = error
        if self._closed:
            self._end()

    def _following(self) -> torch.Tensor | None:
        found = next(self._batches, None)
        return None if found is None else found[self._column]

    def _end(self) -> None:
        with self._ending:      # by the thread itself, or by whoever closes
            batches, self._batches, self._first = self._batches, iter(()), None
            close: Callable[[], None] | None = getattr(batches, "close", None)
            if close is not None:
                close()


def _told(error: Exception) -> Exception:
    """A file that is gone or spoilt, in one line; anything else as it is."""
    if not isinstance(error, OSError | ValueError | KeyError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[-1] if lines else type(error).__name__
    return DataError(f"the stream broke off: {reason}; see that its files are whole on every node")
