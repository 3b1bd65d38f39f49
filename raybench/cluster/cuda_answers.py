"""Whether torch computes on each GPU of a node, tried in a process of its own: what is broken there may end it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

TRY_LIMIT_S = 60.0
_TRY = """\
import json, torch
def told(number):
    try:
        torch.ones(8, device=f"cuda:{number}").sum().item()
    except Exception as error:
        return " ".join(str(error).split())[:200]
print(json.dumps([told(number) for number in range(torch.cuda.device_count())]))
"""


def cuda_answers() -> tuple[str | None, ...]:
    """For each GPU that torch sees on this node why it does not compute, None where it does."""
    # A Ray task without GPUs is shown none.
    seeing = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TRY], env=seeing, capture_output=True, text=True, timeout=TRY_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return (f"no answer in {TRY_LIMIT_S:.0f} s",)
    if done.returncode != 0:
        return (f"python ended with {done.returncode}: {done.stderr.strip()[-200:]}",)
    return tuple(json.loads(done.stdout.splitlines()[-1]))
