"""`SourceKind`: a source of an installed plug-in, as the sweep reader and the workers see it. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from raybench.spec.shapes import Frozen

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


class NoOptions(Frozen):
    """A source without options of its own."""


def _no_rule(config: TrialConfig) -> Iterable[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class SourceKind:
    """A source by name.

    `open` is `package.module:function`, imported in workers only: `function(config, share, device)` gives the `Batches`
    of one rank (`raybench.sources.base`), whose samples `share` (`raybench.sources.index.Share`) numbers. `prepare`, in
    the same form, is called with the config on each node before the trial, and checks what it finds. `options` is what
    may stand under `source.options`; `num_samples` how many samples there are where a sweep does not say; `rule` yields
    `source: what` for each thing that is wrong with a config although each of its values is right.
    """

    name: str
    open: str
    prepare: str | None = None
    options: type[Frozen] = NoOptions
    num_samples: int = 8192
    rule: Callable[[TrialConfig], Iterable[str]] = _no_rule


def imported(code: str) -> Callable[..., Any]:
    """What `package.module:function` names."""
    module, _, attribute = code.partition(":")
    return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
