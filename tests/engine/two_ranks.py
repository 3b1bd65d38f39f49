"""Two ranks in two plain processes over gloo, which serve many trials each: starting them is what takes the time."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

from raybench.engine.session import Session
from tests.engine.small import place

Ranks = list[dict[str, Any]]
"""What each rank found, by trial."""


def on_two_ranks(folder: Path, main: Callable[[Session, int], Mapping[str, Any]]) -> Ranks:
    """What `main(session, rank)` returned on each of two ranks. It must be a module's own function."""
    torch.multiprocessing.spawn(_rank_main, (str(folder), main), nprocs=2)
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in (0, 1)]  # noqa: S301  (we wrote them)


def without_fingerprints(session: Session) -> None:
    """Where a test counts what a trial does."""
    session._fingerprints.of = lambda config: None  # type: ignore[method-assign]


def _rank_main(rank: int, folder: str, main: Callable[[Session, int], Mapping[str, Any]]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    session = Session(place(rank, 2))
    try:
        found = main(session, rank)
    except BaseException:
        traceback.print_exc()       # spawn tells only one rank's
        raise
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(dict(found)))
    dist.destroy_process_group()
