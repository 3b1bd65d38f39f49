"""Whether others hold memory on this rank's GPU: a trial beside them would measure them too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from raybench.engine.nvml import Nvml
from raybench.errors import GpuBusyError

MAY_HOLD_BYTES: Final = 500 * 2**20
"""What others may hold: an idle display or monitoring process has a context of a few hundred MB."""
WAIT_S: Final = 30.0
"""How long others may take to leave: the worker group before this one has only just ended."""
_LOOK_EVERY_S: Final = 0.5


def wait_until_alone(
    nvml: Nvml,
    uuid: str | None,
    pid: int,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until processes other than `pid` hold at most 500 MB on the GPU.

    Where NVML does not list `pid` itself, as in a container that renumbers processes, nobody can be told from anybody:
    then there is no wait.

    Raises:
        GpuBusyError: they still hold more after 30 s; names how much and which processes.
    """
    until_s = clock() + WAIT_S
    while (others := _others(nvml, uuid, pid)) and sum(others.values()) > MAY_HOLD_BYTES:
        if clock() >= until_s:
            held = sum(others.values()) / 2**30
            pids = ", ".join(map(str, sorted(others)))
            raise GpuBusyError(
                f"other processes (pid {pids}) hold {held:.1f} GiB on {uuid} after {WAIT_S:g} s; end them and run again"
            )
        pause(_LOOK_EVERY_S)


def _others(nvml: Nvml, uuid: str | None, pid: int) -> dict[int, int]:
    running = nvml.processes(uuid)
    return {other: held for other, held in running.items() if other != pid} if pid in running else {}
