"""Batches that are made in host memory and sent to the device, in the rank's own process."""

from __future__ import annotations

import time

import torch

from raybench.sources.base import Reader, Unpack
from raybench.spec.samples import Batch

_SLOTS = 2     # one batch may still be on its way to the device while the next is filled in


class HostBatches:
    """Asks a reader for each batch in turn and sends it to the device."""

    def __init__(self, reader: Reader, unpack: Unpack, device: torch.device) -> None:
        self._reader = reader
        self._next = self._cpu_ns = 0
        self._send = Sender(unpack, device)

    def __next__(self) -> Batch:
        began_ns = time.thread_time_ns()
        batch = self._reader.read(self._next)
        self._cpu_ns += time.thread_time_ns() - began_ns
        self._next += 1
        return self._send(batch)

    def cpu_s(self) -> float:
        """CPU time that the rank itself has taken to make batches."""
        return self._cpu_ns / 1e9

    def close(self) -> None:
        self._reader.close()
        self._send.close()


class Sender:
    """Copies host records to the device without waiting for the copy, through pinned memory made once, and gives the
    batch that they are.

    A pinned slot is filled again only when its last copy is done. On CPU a batch is handed on as it is.
    """

    def __init__(self, unpack: Unpack, device: torch.device) -> None:
        self._unpack = unpack
        self._device = device
        self._slots: list[tuple[torch.Tensor, torch.cuda.Event]] = []
        self._next = 0

    def __call__(self, records: torch.Tensor) -> Batch:
        """The batch of `records` on the device; what is pinned already is copied from where it is."""
        return self._unpack(self._sent(records))

    def _sent(self, batch: torch.Tensor) -> torch.Tensor:
        if self._device.type != "cuda":
            return batch
        if batch.is_pinned():
            return batch.to(self._device, non_blocking=True)
        if len(self._slots) < _SLOTS:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._slots.append((torch.empty_like(batch, pin_memory=True), event))
        pinned, copied = self._slots[self._next]
        self._next = (self._next + 1) % _SLOTS
        copied.synchronize()
        pinned.copy_(batch)
        sent = pinned.to(self._device, non_blocking=True)
        copied.record()
        return sent

    def close(self) -> None:
        """Let go of the pinned memory."""
        self._slots.clear()
