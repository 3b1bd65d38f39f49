"""Sources of installed plug-ins, as the workers find them."""

from __future__ import annotations

from raybench.errors import UsageError
from raybench.spec.built_in import source_kinds
from raybench.spec.config import TrialConfig
from raybench.spec.options import KNOWN_OPTIONS
from raybench.spec.source_kind import SourceKind


def plugged(config: TrialConfig) -> SourceKind | None:
    """The plug-in's source that a config names; None for a built-in one.

    Raises:
        UsageError: no installed plug-in has it here.
    """
    if config.source is None or config.source.name in KNOWN_OPTIONS["source"]:
        return None
    found = source_kinds().get(config.source.name)
    if found is None:
        raise UsageError(f"there is no source {config.source.name!r} here; install its package on every node")
    return found
