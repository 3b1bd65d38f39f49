"""torch.compile, and whether the code it needed was found on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from raybench.spec.config import CompileMode

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def compiled(call: Compiled, mode: CompileMode) -> Compiled:
    """`call` compiled in torch's mode of that name, or as it is when off. Compiling happens in its first call."""
    if mode == "off":
        return call
    from torch._dynamo.utils import counters

    counters.clear()
    return torch.compile(call, mode=mode)  # type: ignore[return-value]


def cache_state(mode: CompileMode) -> str | None:
    """`warm` when every graph compiled since `compiled` was found in Inductor's cache on disk, `cold` when one was not.

    None when compile is off, and when nothing was looked up (the cache is switched off, or nothing ran).
    """
    if mode == "off":
        return None
    from torch._dynamo.utils import counters

    lookups = counters["inductor"]
    if lookups["fxgraph_cache_miss"] or lookups["fxgraph_cache_bypass"]:
        return "cold"
    return "warm" if lookups["fxgraph_cache_hit"] else None
