"""Ranks in plain processes over gloo, which serve many trials each: starting them is what takes the time."""

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


def on_ranks(folder: Path, main: Callable[[Session, int], Mapping[str, Any]], world_size: int = 2) -> Ranks:
    """What `main(session, rank)` returned on each rank. It must be a module's own function."""
    torch.multiprocessing.spawn(_rank_main, (world_size, str(folder), main), nprocs=world_size)
    files = [folder / f"{rank}.pickle" for rank in range(world_size)]
    return [pickle.loads(file.read_bytes()) for file in files]  # noqa: S301  (we wrote them)


def without_fingerprints(session: Session) -> None:
    """Where a test counts what a trial does."""
    session._fingerprints.of = lambda config: None  # type: ignore[method-assign]


def _rank_main(rank: int, world_size: int, folder: str, main: Callable[[Session, int], Mapping[str, Any]]) -> None:
    torch.set_num_threads(1)
    rendezvous = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world_size)
    session = Session(place(rank, world_size))
    try:
        found = main(session, rank)
    except BaseException:
        traceback.print_exc()       # spawn tells only one rank's
        raise
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(dict(found)))
    dist.destroy_process_group()
