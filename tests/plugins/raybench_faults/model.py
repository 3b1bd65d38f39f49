"""The faults themselves. The last rank misbehaves, the others wait for it in a collective."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from raybench.spec.config import TrialConfig


def build(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, dtype: torch.dtype
) -> Callable[[], torch.Tensor]:
    """One call is one step: wait, fail if this is the rank to fail, then meet the others."""
    shape = config.model
    fault = FAULTS[shape.fault] if rank == world_size - 1 else _fine

    def step() -> torch.Tensor:
        time.sleep(shape.step_s)
        fault()
        if config.micro_batch * config.seq_len > shape.fits:
            _oom_cuda()
        together = torch.ones(1, device=device, dtype=torch.float32)
        if world_size > 1:
            dist.all_reduce(together)
        return together

    return step


def _fine() -> None:
    pass


def _oom_host() -> None:
    torch.empty(2**48, dtype=torch.uint8)      # 256 TiB


def _oom_cuda() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. (made up by a test)")


def _absent() -> None:
    threading.Event().wait()


def _stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _exits() -> None:
    sys.exit(3)


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises() -> None:
    raise ValueError("the shape is wrong [bold]\x1b[31m")


def _greedy() -> None:
    """Take memory until somebody objects, 8 GiB at most: beyond the test's threshold, within the machine."""
    held = []
    for _ in range(128):
        held.append(bytearray(os.urandom(1 << 20)) * 64)
        time.sleep(0.02)      # the memory monitor looks once a while
    raise AssertionError("nobody objected to 8 GiB")


FAULTS = {
    "fine": _fine,
    "miscounts": _fine,
    "oom_host": _oom_host,
    "oom_cuda": _oom_cuda,
    "absent": _absent,
    "stopped": _stopped,
    "exits": _exits,
    "killed": _killed,
    "raises": _raises,
    "greedy": _greedy,
}
