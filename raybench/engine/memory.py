"""Peaks of one trial's memory, and whether a trial gave back what it took."""

from __future__ import annotations

import gc
import os
import re
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import torch

from raybench.engine.nvml import Nvml
from raybench.record.rank import RankMemory

MAY_GROW_BYTES: Final = 256 * 2**20
"""What NVML may see a process grow by over its baseline: kernels are loaded into the context when first used."""

_PEAK_RESIDENT = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Baseline:
    """What the process holds between trials. `process_bytes` is None where NVML does not see it (most containers)."""

    allocated_bytes: int
    process_bytes: int | None


def baseline(device: torch.device, nvml: Nvml) -> Baseline | None:
    """What is held now; None on CPU. To be asked when everything that can be freed was freed."""
    if device.type != "cuda":
        return None
    return Baseline(torch.cuda.memory_allocated(device), nvml.process_bytes(device_uuid(device), os.getpid()))


def is_back(before: Baseline | None, now: Baseline | None) -> bool:
    """Whether a process holds again what it held before: exactly, by torch's allocator; within 256 MB, by NVML."""
    if before is None or now is None:
        return True
    if now.allocated_bytes != before.allocated_bytes:
        return False
    if now.process_bytes is None or before.process_bytes is None:
        return True
    return now.process_bytes - before.process_bytes <= MAY_GROW_BYTES


def empty_device(device: torch.device) -> None:
    """Free all device memory, and all pinned host memory, that no tensor uses, workspaces of cuBLAS included."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        _empty_pinned_cache()
        torch.cuda.reset_peak_memory_stats(device)


def _empty_pinned_cache() -> None:
    """torch keeps pinned memory for the next who asks; the function that lets it go has had two names."""
    empty = getattr(torch._C, "_host_emptyCache", None) or getattr(torch._C, "_accelerator_emptyHostCache", None)
    if empty is not None:
        empty()


def device_uuid(device: torch.device) -> str | None:
    """A GPU's UUID as NVML writes it, which no `CUDA_VISIBLE_DEVICES` changes; None on CPU."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}" if device.type == "cuda" else None


def room_bytes(device: torch.device, ranks: int) -> int:
    """Memory that a rank may fill: all of its GPU's; on CPU what it holds and its part, among `ranks` on its node, of
    what is free there now."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.Process().memory_info().rss + psutil.virtual_memory().available // ranks)


def restart_host_peak() -> None:
    """Let the kernel count this process's peak resident memory from now on.

    Where it may not be written (some sandboxes), the peak is that of the process's whole life.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def restart_device_peak(device: torch.device) -> None:
    """Count the device's peaks from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peaks(device: torch.device) -> RankMemory:
    """Peaks since they were restarted: of the CUDA allocator, of what it reserved, of resident host memory."""
    cuda = device.type == "cuda"
    return RankMemory(
        allocated_bytes=torch.cuda.max_memory_allocated(device) if cuda else None,
        reserved_bytes=torch.cuda.max_memory_reserved(device) if cuda else None,
        host_bytes=_host_peak_bytes(),
    )


def _host_peak_bytes() -> int:
    """Peak resident memory; of the process's whole life where the kernel does not keep a peak that can be restarted."""
    found = _PEAK_RESIDENT.search(Path("/proc/self/status").read_text())
    kilobytes = int(found.group(1)) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * 1024
