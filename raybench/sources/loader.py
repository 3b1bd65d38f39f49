"""Batches made by worker processes of a torch DataLoader, in order, for sources that are slow on the host."""

from __future__ import annotations

import functools
import itertools
import os
import select
import threading
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, Dataset

from raybench.errors import DataError
from raybench.sources.base import Reader, Unpack
from raybench.sources.cpu_time import process_cpu_s
from raybench.sources.host import Sender
from raybench.spec.samples import Batch


class MicroSteps(Dataset[torch.Tensor]):
    """A reader as a data set whose items are whole micro-batches."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getitem__(self, micro_step: int) -> torch.Tensor:
        return self._reader.read(micro_step)


class _Endless:
    """Micro steps 0, 1, 2, ...: the order in which loader processes are given work, and in which it comes back."""

    def __iter__(self) -> Iterator[int]:
        return itertools.count()


def _end_with(rank: int, _worker: int) -> None:
    """In a loader process: end when the rank does, however it ends. torch's own watch is for a parent, which here is
    the server."""
    try:
        watched = os.pidfd_open(rank)
    except ProcessLookupError:      # it has ended while this process was started
        os._exit(1)
    threading.Thread(target=_wait_and_end, args=(watched,), name="raybench-watch", daemon=True).start()


def _wait_and_end(watched: int) -> None:
    select.select([watched], [], [])
    os._exit(1)


class LoaderBatches:
    """Batches of `workers` persistent processes, each two batches ahead.

    The processes are forked from a clean server, never from the rank: a fork of a process with CUDA or Ray threads
    may inherit a held lock.
    """

    def __init__(self, reader: Reader, unpack: Unpack, workers: int, device: torch.device) -> None:
        loader: DataLoader[torch.Tensor] = DataLoader(
            MicroSteps(reader),
            batch_size=None,
            sampler=_Endless(),
            num_workers=workers,
            multiprocessing_context="forkserver",
            pin_memory=device.type == "cuda",
            worker_init_fn=functools.partial(_end_with, os.getpid()),
        )
        self._batches: Iterator[torch.Tensor] | None = iter(loader)
        self.processes = [worker.pid for worker in self._batches._workers]  # type: ignore[attr-defined]
        self._send = Sender(unpack, device)

    def __next__(self) -> Batch:
        assert self._batches is not None, "closed"
        try:
            return self._send(next(self._batches))
        except DataError as error:       # arrives with the loader process's whole traceback around its one line
            raise DataError(str(error).strip().rpartition("DataError: ")[2]) from error

    def cpu_s(self) -> float:
        """CPU time of the processes so far."""
        return sum(map(process_cpu_s, self.processes))

    def close(self) -> None:
        # The iterator ends its processes when its last reference goes.
        self._batches = None
        self._send.close()
