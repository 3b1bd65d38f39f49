"""Where the data of a window came from, by the kernel's own counters: the disk, or memory that passes for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raybench.record.rank import RankResult

MOSTLY, HARDLY = 0.9, 0.1


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """Bytes in files and from storage, over all ranks; None as soon as one rank does not know."""

    file_bytes: int | None
    storage_read_bytes: int | None
    cache_state: str | None


def fetched(ranks: Sequence[RankResult]) -> Fetched:
    """Sum over ranks: what one of them fetched ahead and another then found in memory was fetched once."""
    in_files = _sum([rank.file_bytes for rank in ranks])
    from_storage = None if in_files is None else _sum([rank.storage_read_bytes for rank in ranks])
    return Fetched(
        file_bytes=in_files, storage_read_bytes=from_storage, cache_state=cache_state(in_files, from_storage)
    )


def cache_state(file_bytes: int | None, storage_read_bytes: int | None) -> str | None:
    """`cold` when at least 90 % came from storage, `warm` when at least 90 % did not, else `mixed`."""
    if not file_bytes or storage_read_bytes is None:
        return None
    share = storage_read_bytes / file_bytes
    return "cold" if share >= MOSTLY else "warm" if share <= HARDLY else "mixed"


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
