"""A source that sleeps before each micro-batch: how much compute waits for it is known beforehand."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from raybench.spec.config import TrialConfig
from raybench.spec.shapes import Frozen
from raybench.spec.source_kind import SourceKind


class Options(Frozen):
    """How long it sleeps; without sleep it is the null source once more."""

    sleep_ms: Annotated[float, Field(ge=0.0)] = 0.0


def rule(config: TrialConfig) -> Iterable[str]:
    """A bound of its own, to be told with the sweep's other mistakes."""
    assert config.source is not None
    assert config.source.options is not None
    if config.source.options["sleep_ms"] > 60_000:
        yield "source: throttled sleeps a minute at most"


SOURCE = SourceKind(
    name="throttled", open="raybench_throttled.source:open_source", prepare="raybench_throttled.source:prepare",
    options=Options, num_samples=2000, rule=rule,
)  # fmt: skip
