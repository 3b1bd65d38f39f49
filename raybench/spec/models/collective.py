"""Exchanges between ranks: their shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from raybench.spec.shapes import Frozen

Op = Literal["all_reduce", "all_gather", "all_to_all"]


class CollectiveShape(Frozen):
    """One exchange of `size_bytes`, the size of nccl-tests: what each rank holds (all_reduce), has received in the end
    (all_gather), or sends in all (all_to_all)."""

    ALWAYS_TOLD: ClassVar[frozenset[str]] = frozenset({"op"})

    op: Op
    size_bytes: Annotated[int, Field(ge=1, le=2**40)]


_SIZES = {"k": 2**10, "m": 2**20, "g": 2**30}
_NAMED = ("1k", "4k", "16k", "64k", "256k", "1m", "4m", "16m", "64m", "256m", "1g")
PRESETS: Mapping[str, CollectiveShape] = MappingProxyType({
    f"{op}-{name}": CollectiveShape(op=op, size_bytes=int(name[:-1]) * _SIZES[name[-1]])
    for op in get_args(Op)
    for name in _NAMED
})
