"""Which wrapping runs, in a plain process."""

from __future__ import annotations

import pytest

from raybench.engine.strategy import wrap
from tests.engine.small import OneWeight, encdec, place


@pytest.mark.parametrize("strategy", ["ddp", "none", "fsdp", "zero1"])
def test_without_a_process_group_nothing_wraps(strategy: str) -> None:
    """DDP needs a group, and none is made behind the user's back: `none` is what ran."""
    network = OneWeight()
    wrapped = wrap(network, encdec(strategy=strategy), place(), grouped=False)
    assert wrapped.module is network
    assert wrapped.effective == "none"


def test_none_is_one_worker() -> None:
    """Two ranks that do not speak would train two networks."""
    with pytest.raises(AssertionError, match="one worker only"):
        wrap(OneWeight(), encdec(strategy="none"), place(world_size=2), grouped=True)
