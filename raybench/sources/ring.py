"""Batches that a thread reads ahead into memory made once: reading releases the interpreter lock, so steps go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue

import torch

from raybench.sources.base import Filler, Unpack
from raybench.sources.cpu_time import thread_cpu_s
from raybench.spec.samples import Batch


@dataclass(frozen=True)
class Slot:
    """Memory for one micro-batch; `copied`, on CUDA, is when its last copy to the device is done."""

    room: torch.Tensor
    copied: torch.cuda.Event | None

    def wait_until_free(self) -> None:
        """Until what it holds is not needed any more."""
        if self.copied is not None:
            self.copied.synchronize()


class RingBatches:
    """Micro-batches in order, at most `ahead` of them read before they are asked for.

    On CUDA the memory is pinned and the copy to the device does not hold up the host. On CPU the batch may be the
    ring's own memory, which is read into again once the next batch is asked for.
    """

    def __init__(self, filler: Filler, unpack: Unpack, ahead: int, device: torch.device) -> None:
        self._filler, self._unpack, self._device = filler, unpack, device
        self._next = 0
        self._in_use: Slot | None = None
        self._free: SimpleQueue[Slot | None] = SimpleQueue()
        self._filled: SimpleQueue[Slot | Exception] = SimpleQueue()
        for _ in range(ahead + 1):
            self._free.put(self._slot())
        self._thread = threading.Thread(target=self._read, name="raybench-reader", daemon=True)
        self._thread.start()

    def __next__(self) -> Batch:
        if self._in_use is not None:
            self._free.put(self._in_use)
            self._in_use = None
        slot = self._filled.get()
        if isinstance(slot, Exception):
            self._filled.put(slot)       # whoever asks again is told again
            raise slot
        sent = slot.room
        if slot.copied is not None:
            sent = sent.to(self._device, non_blocking=True)
            slot.copied.record()
        self._in_use = slot
        records = self._filler.records(self._next, sent)
        self._next += 1
        return self._unpack(records)

    def cpu_s(self) -> float:
        """CPU time of the thread so far."""
        return thread_cpu_s(self._thread)

    def close(self) -> None:
        """End the thread, after the read that it is in."""
        self._free.put(None)
        self._thread.join()
        self._filler.close()

    def _slot(self) -> Slot:
        room = self._filler.room()
        if self._device.type != "cuda":
            return Slot(room, None)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        return Slot(torch.empty_like(room, pin_memory=True), event)

    def _read(self) -> None:
        micro_step = 0
        while (slot := self._free.get()) is not None:
            try:
                slot.wait_until_free()
                self._filler.fill(micro_step, slot.room)
            except Exception as error:  # noqa: BLE001  raised where the batch is asked for
                self._filled.put(error)
                return
            self._filled.put(slot)
            micro_step += 1
