"""CPU time that others than the calling thread have taken, by the kernel's clocks (Linux)."""

from __future__ import annotations

import threading
import time
from typing import Final

_SCHEDULED: Final = 2      # CPUCLOCK_SCHED of the kernel's posix-timers.h: all threads of the process, in nanoseconds


def thread_cpu_s(thread: threading.Thread) -> float:
    """CPU seconds of a thread of this process so far; 0 for one that has ended."""
    if thread.ident is None or not thread.is_alive():
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def process_cpu_s(pid: int) -> float:
    """CPU seconds of another process so far, with its threads; 0 for one that has ended."""
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULED)      # what clock_getcpuclockid(3) makes of a process
    except OSError:
        return 0.0
