"""What the kernel really fetched from storage for this rank: what it served from its page cache is not in it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from raybench.sources.places import micro_batch_bytes
from raybench.spec.config import TrialConfig


def storage_read_bytes() -> int | None:
    """Bytes fetched from storage so far by this process and those it started, loader processes among them.

    Local disks and NFS are counted, memory file systems have nothing to count. None where the kernel does not say.
    """
    pids = [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]
    own, *others = (_read_bytes(pid) for pid in pids)
    return None if own is None else own + sum(found or 0 for found in others)


def file_bytes(config: TrialConfig, steps: int) -> int | None:
    """Bytes that the batches of so many steps have in this rank's files; None for a source that reads none."""
    if config.grad_accum is None or (of_one := micro_batch_bytes(config)) is None:
        return None
    return round(of_one * config.grad_accum * steps)


def _read_bytes(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:      # another system, another user's process, or one that has just ended
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes:")), None)
