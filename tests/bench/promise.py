"""One promise about raybench's own cost, and whether it was kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """What was measured, in words and figures, against its bound."""

    what: str
    measured: str
    bound: str
    kept: bool


def at_most(what: str, value: float, bound: float, unit: str) -> Promise:
    """A figure that may not exceed its bound."""
    return Promise(what, f"{value:.3g} {unit}", f"at most {bound:g} {unit}", value <= bound)
