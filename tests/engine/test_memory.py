"""Whether a trial gave back what it took, and peaks of the host."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
import torch

from raybench.engine.memory import Baseline, is_back, peaks, restart_host_peak

MB = 2**20
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Baseline(1024, 1000 * MB), True),
        (Baseline(1024, 1256 * MB), True),              # 256 MB more: kernels that were loaded
        (Baseline(1024, 1256 * MB + 1), False),
        (Baseline(1536, 1000 * MB), False),             # one block of 512 bytes is still held
        (Baseline(512, 1000 * MB), False),
        (Baseline(1024, 900 * MB), True),
        (Baseline(1024, None), True),                   # NVML does not see the process: torch's figure decides
    ],
)
def test_is_back(now: Baseline, expected: bool) -> None:
    """From 1024 bytes by torch and 1000 MB by NVML: exactly by the first, within 256 MB by the second."""
    assert is_back(Baseline(1024, 1000 * MB), now) is expected


def test_on_cpu_there_is_nothing_to_give_back() -> None:
    """No baseline, no complaint."""
    assert is_back(None, None)


def test_the_host_s_peak_is_of_this_trial() -> None:
    """200 MB touched and freed are in the peak; after a restart they are not."""
    restart_host_peak()
    with mmap.mmap(-1, 200 * MB) as taken:
        for offset in range(0, 200 * MB, mmap.PAGESIZE):
            taken[offset] = 1
    with_it = peaks(CPU).host_bytes
    if not _may_restart():
        pytest.skip("this system does not let a process restart its peak")
    restart_host_peak()
    assert with_it - peaks(CPU).host_bytes >= 190 * MB


def _may_restart() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
