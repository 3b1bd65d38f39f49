"""`Workload`: one thing that can be benchmarked, as everything outside its folder sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from raybench.measure.counts import Counts
from raybench.spec.config import TrialConfig
from raybench.spec.family import Family


@dataclass(frozen=True)
class Workload:
    """A workload: what the sweep reader knows of it, what a step amounts to, and where its torch code is.

    `code` is `package.module:function`, imported in workers only, so that `plan` never imports torch.
    For the strategies `ddp` and `none` it is `build(config) -> torch.nn.Module`, whose `forward(batch)` returns the
    scalar loss; its tokens are counted where it has `tokens_in(batch) -> int`. For `split` it is
    `build(config, rank, world_size, device, dtype) -> Callable[[], torch.Tensor | None]`: building makes this rank's
    operands on the device (timed as `create_s`), one call is its share of one step and gives its part of the result
    (fetched once after the window, timed as `retrieve_s`), or None where there is nothing to fetch.
    """

    family: Family
    counts: Callable[[TrialConfig], Counts]
    code: str
    origin: str = "raybench"     # the distribution it comes from

    def builder(self) -> Callable[..., Any]:
        """The function that `code` names. Imports torch."""
        module, _, attribute = self.code.partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
