"""A trial's deadline inside each worker: the standard library's watchdog writes every stack and ends the process.

It needs no cooperation from Python code, so a rank that hangs in a collective or holds the interpreter lock ends too.
"""

from __future__ import annotations

import faulthandler
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_COLLECTIVE = re.compile(r"torch/distributed|/ddp|c10d")
_EXPIRED = "Timeout ("           # how faulthandler begins what it writes


@contextmanager
def deadline(limit_s: float, stack_file: Path) -> Iterator[None]:
    """End this process after `limit_s` seconds unless the block ends first; its stacks are then in `stack_file`.

    An exception inside the block is written there too: when one rank's deadline ends the group, the others fail in
    their collectives, and where they stood is half of the story.
    """
    stack_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with stack_file.open("w") as file:
        faulthandler.dump_traceback_later(limit_s, exit=True, file=file)
        try:
            yield
        except BaseException:
            faulthandler.dump_traceback(file=file)
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()


def read_stacks(stack_dir: str, trial_uid: str) -> dict[int, str]:
    """What the ranks of a trial left on this node: rank -> text. Runs on the workers' node."""
    files = Path(stack_dir).glob(f"{trial_uid}-*.stack")
    texts = {int(file.stem.rpartition("-")[2]): file.read_text(errors="replace") for file in files}
    return {rank: text for rank, text in sorted(texts.items()) if text}


def stack_file(stack_dir: str, trial_uid: str, rank: int) -> Path:
    """Where a rank of a trial leaves its stack."""
    return Path(stack_dir) / f"{trial_uid}-{rank}.stack"


def expired(stack: str) -> bool:
    """Whether the watchdog itself wrote the stack: the rank's deadline passed."""
    return stack.startswith(_EXPIRED)


def absent_rank(stacks: Mapping[int, str], world_size: int) -> int | None:
    """The one rank that stood outside any collective while the others waited in one, None when that names nobody.

    A rank without a stack is outside: it was frozen, and could write nothing.
    """
    waiting = {rank for rank, text in stacks.items() if _COLLECTIVE.search(text)}
    outside = set(range(world_size)) - waiting
    return outside.pop() if waiting and len(outside) == 1 else None
